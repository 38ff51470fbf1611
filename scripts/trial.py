"""Trying a managed script from its page (spec 04, 4.4): the service of Execute, in a dataset that is thrown away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Self

from django.db import transaction

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import CommitResult
from domain.model.registry import repositories
from foundation import errors
from identity.context import CallContext
from scripts import managed
from scripts.services import FailedRun
from scripts.validation import SCRIPTS


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial showed. error None: it succeeded. line, column: where in the script it failed, if known there."""

    duration_ms: float
    console: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    return_value: Any = None
    error: errors.PlatformError | None = None
    line: int | None = None
    column: int | None = None


class TrialDataset(Dataset):
    """Lets a script commit and go on, and takes all of it back at the end.

    The database transaction begins with the first commit only: until then a trial holds up nobody who writes.
    """

    @classmethod
    @contextmanager
    def trying(cls, context: CallContext) -> Iterator[Self]:
        """A dataset for the time of the block."""
        dataset = cls(context)
        with ExitStack() as dataset._taken_back:
            yield dataset

    _taken_back: ExitStack
    _committed = False

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """As ever, for the time of the trial."""
        if not self._committed:
            self._taken_back.enter_context(_rolled_back())
            self._committed = True
        return super().commit(savepoint=savepoint)


@contextmanager
def _rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def trial_run(script_id: str, arguments: Mapping[str, Any], context: CallContext, *, text: str | None = None) -> Trial:
    """Run a script with arguments, and undo what it did. text: what stands in the editor, instead of the saved text."""
    begun = monotonic()
    with TrialDataset.trying(context) as dataset:
        try:
            script = dataset.open(repositories[SCRIPTS], script_id)
            outcome = managed.execute(script, arguments, dataset, text=text)
        except errors.PlatformError as error:
            return Trial((monotonic() - begun) * 1000, error=error)
        if isinstance(outcome, FailedRun):
            return Trial(
                (monotonic() - begun) * 1000,
                outcome.console,
                error=outcome.error,
                line=outcome.line,
                column=outcome.column,
            )
        return Trial(outcome.duration_ms, outcome.console, outcome.outputs, outcome.return_value)
