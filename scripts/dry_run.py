"""Dry runs of managed scripts from their admin page (spec 04, 4.4): as Execute, then rolled back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Self

from django.db import transaction

from domain.dataset.dataset import Dataset
from domain.dataset.records.commit_result import CommitResult
from domain.model.registry import repositories
from foundation import errors
from identity.context import CallContext
from scripts import managed
from scripts.services import FailedRun
from scripts.validation import SCRIPTS


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run. error: None after success. line, column: position of the failure, if known."""

    duration_ms: float
    console: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    return_value: Any = None
    error: errors.PlatformError | None = None
    line: int | None = None
    column: int | None = None


class DryRunDataset(Dataset):
    """A dataset that scripts can commit, and that is rolled back at the end.

    The database transaction begins only with the first commit, so that until then a dry run blocks no other writer.
    """

    @classmethod
    @contextmanager
    def opened(cls, context: CallContext) -> Iterator[Self]:
        """A dataset for the duration of the block."""
        dataset = cls(context)
        with ExitStack() as dataset._rollback:
            yield dataset

    _rollback: ExitStack
    _committed = False

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Commit within the transaction that is rolled back."""
        if not self._committed:
            self._rollback.enter_context(_rolled_back())
            self._committed = True
        return super().commit(savepoint=savepoint)


@contextmanager
def _rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def script_dry_run(
    script_id: str, arguments: Mapping[str, Any], context: CallContext, *, text: str | None = None
) -> DryRun:
    """Run a script with arguments, and roll back. text: the editor's text to run instead of the saved text."""
    start = monotonic()
    with DryRunDataset.opened(context) as dataset:
        try:
            script = dataset.open(repositories[SCRIPTS], script_id)
            outcome = managed.execute(script, arguments, dataset, text=text)
        except errors.PlatformError as error:
            return DryRun((monotonic() - start) * 1000, error=error)
        if isinstance(outcome, FailedRun):
            return DryRun(
                (monotonic() - start) * 1000,
                outcome.console,
                error=outcome.error,
                line=outcome.line,
                column=outcome.column,
            )
        return DryRun(outcome.duration_ms, outcome.console, outcome.outputs, outcome.return_value)
