"""The unit of work of one Domain transaction: entities loaded, created, changed and deleted, and one commit.

    ds = Dataset(ctx)
    order = ds.create(repositories["Crm.Sales.SalesOrders"], {"Customer": customer_id})
    ds.commit()

Discarding is the default, commit is a call. Only the outermost caller ends a dataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from domain.dataset.checks import access
from domain.dataset.commit.commit_preview import CommitPreview
from domain.dataset.commit.completion import calculate_only, complete
from domain.dataset.commit.pipeline import MAX_ROUNDS, commit
from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.dataset.records.commit_result import CommitResult, CommittedEvent
from domain.dataset.records.dispatch import listeners
from domain.dataset.records.dry_run_hooks import ReportEntry
from domain.dataset.records.record import Record
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.failures import record_failure
from identity.context import CallContext


class Dataset(ChangeTracker):
    """A unit of work: a change tracker with a commit. Not thread-safe; lives within one request, script or command."""

    #: The copies of the last read.
    _preview: CommitPreview | None = None

    @contextmanager
    def shown(self, *, around: str | None = None, start: Repository[Any] | None = None) -> Iterator[None]:
        """As `flushed`, for reads of a caller: shows pending changes with the values that the commit would fill in
        (spec 03, 3.2).

        start   repository of `around`, if the read shows no other entity of its kind
        """
        if self.is_committing or not self.is_pending:
            # Within a commit they are filled in already, or are being filled in.
            with self.flushed(around=around):
                yield
            return
        preview = self._current_preview()
        preview.start = None if start is None or around is None else (start, around)
        with self._flushing(around, preview):
            yield

    def previewed(self, records: Sequence[Record]) -> Sequence[Record]:
        """The records as the commit of the Domain transaction would leave them; read-only copies. Records that this
        request has changed are returned as they are.
        """
        if self.pending_source is None or self.is_committing:
            return records
        unchanged = [record for record in records if not record.mutations]
        return self._current_preview(are_rows=False).of(unchanged, records) if unchanged else records

    def complete(self, record: Record) -> None:
        """Fill in the pending entities of the record's aggregate as the commit would, before an operation reads them.

        What waits for the commit even in the frontend model (numbers) stays empty. The caller does not count as the
        cause. Raises PlatformError, as the commit would.
        """
        before, self._operating = self._operating, False
        try:
            complete(self, record)
        finally:
            self._operating = before

    def calculate_only(self, records: Sequence[Record]) -> None:
        """As `calculate`, for these records and what follows from them: other pending changes wait for the commit."""
        calculate_only(self, records)

    def _current_preview(self, *, are_rows: bool = True) -> CommitPreview:
        if self._preview is None or not self._preview.follow(are_rows=are_rows):
            self._preview = CommitPreview(self)
        return self._preview

    def end_commit(self) -> None:
        super().end_commit()
        self._preview = None

    def discard(self) -> None:
        super().discard()
        self._preview = None

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Write all changes or none; afterwards the dataset is unchanged and usable.

        savepoint: inside a database transaction, a failure preserves the earlier writes of the transaction. False if
        the caller ends that transaction after a failure.
        """
        result = commit(self, savepoint=savepoint)
        self.undo.end()
        if result.committed_events:
            transaction.on_commit(_CommittedEvents(self.context, result))
        return result


@dataclass(frozen=True, slots=True)
class _CommittedEvents:
    """Raises the events after the commit. A dry run names the rules that it does not run."""

    context: CallContext
    result: CommitResult

    def __call__(self) -> None:
        _raise_committed_events(self.context, self.result)

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """One entry for each rule on each event, for events that the caller may see."""
        for event in self.result.committed_events:
            repository = repositories[event.repository]
            if not access.allowed(context, repository, "read"):
                continue
            # A deleted entity was visible when the caller deleted it, or is hidden like every row that is not there.
            if not access.row_visible(context, repository, event.id):
                continue
            for name in listeners(event.repository, event.event):
                entity = f"{repository.set_name}({event.id})"
                yield "notRun", {"kind": "rule", "rule": name, "event": event.event, "entity": entity}


def _raise_committed_events(context: CallContext, result: CommitResult) -> None:
    """Raise each event in its own dataset; a failure is recorded and does not undo the commit.

    Rules here may change and commit the same entity, which raises the event again: the lineage limits that (spec 05,
    5.3).
    """
    if len(result.lineage) > MAX_ROUNDS:
        record_failure("COMMITTED rules", errors.Refused(errors.RULE_LOOP, " → ".join(result.lineage)))
        return
    for event in result.committed_events:
        try:
            run_with_retries(partial(_raise_one, context, result.lineage, event))
        except Exception as exc:
            record_failure(f"{event.event} of {event.repository}({event.id})", exc)


def _raise_one(context: CallContext, lineage: tuple[str, ...], event: CommittedEvent, retry: RetryState) -> None:
    with retry.locking():
        dataset = Dataset(context.with_(client_initiated=False), lineage=lineage)
        record = dataset.load(event.repository, event.id) if event.values is None else _deleted(dataset, event)
        if record is not None:
            record.committed_as = event.state
            dataset.raise_event(record, event.event)
            # The events of the rules' own changes tell what that commit does.
            record.committed_as = ""
            dataset.commit()


def _deleted(dataset: Dataset, event: CommittedEvent) -> Record:
    """The deleted entity as it was, outside of the dataset, whose commit would delete it again."""
    record = Record(dataset, repositories[event.repository], event.id, "Deleted", dict(event.values or {}))
    record.custom = dict(event.custom or {})
    return record
