"""Previews of saving: pages run a change as a dry run and show its report (spec 12, 12.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from domain.dataset.tables.write_transaction import write_transaction
from domain.model.template_syntax import format_value
from domain.odata.message.dry_run_report import Report, report_of
from foundation import dry_runs, errors
from foundation.languages import active_language
from identity.context import CallContext

#: Name of the button that runs a dry run instead of saving.
TRY = "_dry_run"
#: The button next to Save, in the form that Unfold's row of buttons needs.
TRY_BUTTON = SimpleNamespace(action_name=TRY, description=_("Preview"), icon="", attrs={})


@dataclass(frozen=True, slots=True)
class ShownChange:
    """An entity of the report, with (attribute, old, new) as texts."""

    entity: str
    operation: str
    attributes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class SavePreview:
    """The report of the dry run of a change. problems: messages, if it was refused."""

    report: Report
    problems: tuple[str, ...] = ()

    @property
    def changes(self) -> Iterator[ShownChange]:
        """The changes as texts."""
        for change in self.report["changes"]:
            attributes = tuple(
                (name, _text(values["old"]), _text(values["new"]))
                for name, values in change.get("attributes", {}).items()
            )
            yield ShownChange(f"{change['set']}({change['key']})", change["operation"], attributes)


def previewed(context: CallContext, work: Callable[[], object]) -> SavePreview:
    """Run the work as a dry run; the result includes a refusal (PlatformError)."""
    problems: tuple[str, ...] = ()
    with dry_runs.dry_run(write_transaction) as run:
        try:
            with transaction.atomic():
                work()
        except errors.PlatformError as error:
            problems = tuple(dict.fromkeys([error.message, *(detail.message for detail in error.details)]))
        return SavePreview(report_of(run, context), problems)


def _text(value: Any) -> str:
    """A value of the report: amounts and quantities with their measure."""
    if isinstance(value, dict):
        parts = (format_value(inner, language=active_language()) for inner in value.values() if inner is not None)
        return " ".join(parts)
    return "" if value is None else format_value(value, language=active_language())
