"""What the report of a dry run takes from the hooks that its commits have left (foundation.dry_runs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from identity.context import CallContext

#: Sections of the report that come from hooks.
Section = Literal["changes", "webhooks", "mails", "notRun"]
ReportEntry = tuple[Section, Mapping[str, Any]]


@runtime_checkable
class ReportedHook(Protocol):
    """A hook of `transaction.on_commit` that tells a dry run what it would do."""

    def __call__(self) -> None: ...

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """Entries of the report, as far as the caller of the context may see them. Called before the rollback."""
        ...
