"""Interface of on_commit hooks that contribute entries to the report of a dry run (foundation.dry_runs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from identity.context import CallContext

#: Sections of the report that come from hooks.
Section = Literal["changes", "webhooks", "mails", "notRun"]
ReportEntry = tuple[Section, Mapping[str, Any]]


@runtime_checkable
class ReportedHook(Protocol):
    """A hook of `transaction.on_commit` that describes its effects to a dry run, which does not run it."""

    def __call__(self) -> None: ...

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """Entries of the report, as far as the caller of the context may see them. Called before the rollback."""
        ...
