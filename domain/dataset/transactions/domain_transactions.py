"""Domain transactions: datasets that span requests, stored in the database (spec 03, 3.2).

A request locks the transaction's row, loads only the pending rows it needs, works in an ordinary Dataset and writes the
changed pending rows back, all in one database transaction: a killed process leaves the state before the request. Any
node can serve any request.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from domain.dataset.checks import access
from domain.dataset.commit.entity_changes import ChangeOperation, change_of, report_changes
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName, Record
from domain.dataset.tables.models import DomainTransaction, PendingChange
from domain.dataset.tables.write_transaction import write_transaction
from domain.dataset.transactions import write_lock_time
from domain.dataset.transactions.change_waits import change_waits
from domain.dataset.transactions.pending_rows import GONE, PendingRows
from domain.dataset.transactions.stored_writes import writes_load, writes_store
from domain.model.attributes import Attribute
from domain.model.custom_properties import PREFIX, escape_code
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import dry_runs, errors
from foundation.fields import utc_now
from identity.context import CallContext

LIFETIME = timedelta(minutes=25)
MAX_OPEN = getattr(settings, "MAX_OPEN_TRANSACTIONS", 10)


def transaction_begin(context: CallContext, *, model: ModelName = "common", track_changes: bool = False) -> str:
    """Open a Domain transaction; returns its id (32 hex). Raises Refused(TRANSACTION_LIMIT)."""
    now = utc_now()
    with transaction.atomic():
        DomainTransaction.objects.filter(expires_at__lte=now).delete()
        owned = DomainTransaction.objects.filter(**_ownership(context))
        if owned.count() >= MAX_OPEN:
            raise errors.Refused(errors.TRANSACTION_LIMIT, MAX_OPEN)
        row = DomainTransaction.objects.create(
            id=secrets.token_hex(16),
            application=context.application,
            model=model,
            track_changes=track_changes,
            began_at=now,
            expires_at=now + LIFETIME,
            **_ownership(context),
        )
    return row.id


def transactions_close(session_id: str) -> int:
    """End every transaction of a closed session; returns their number."""
    deleted, _ = DomainTransaction.objects.filter(session_id=session_id).delete()
    return deleted


def transactions_expire() -> int:
    """Delete expired transactions; returns the number of rows."""
    deleted, _ = DomainTransaction.objects.filter(expires_at__lte=utc_now()).delete()
    return deleted


@contextmanager
def opened(
    context: CallContext, id: str, begin: Callable[[], AbstractContextManager[object]] = write_transaction
) -> Iterator[TransactionDataset]:
    """The transaction's dataset for one request, locked until the block ends; changes are stored if it succeeds.

    begin   begins the database transaction
    Raises BadRequest(INVALID_TRANSACTION_ID) if the transaction is unknown, over, or another caller's, TooManyRequests
    if the caller has held SQLite's write lock for too long (write_lock_time).
    """
    with begin(), write_lock_time.limited(context):
        row = _locked(context, id)
        dataset = TransactionDataset(context, row)
        yield dataset
        if dataset.ended:
            if dataset.changed():
                # A part of a group after its EndTransaction.
                raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, id, target="TransactionId")
            row.delete()
        else:
            _note_changes(dataset)
            dataset.keep()
        if change_waits.waits_for(id):
            transaction.on_commit(change_waits.wake)


def check(context: CallContext, id: str) -> None:
    """Raise BadRequest(INVALID_TRANSACTION_ID) if the transaction is unknown, over, or another caller's."""
    if not _open(context, id).exists():
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, id, target="TransactionId")


def _open(context: CallContext, id: str) -> QuerySet[DomainTransaction]:
    return DomainTransaction.objects.filter(id=id, expires_at__gt=utc_now(), **_ownership(context))


def _locked(context: CallContext, id: str) -> DomainTransaction:
    query = _open(context, id)
    if connection.features.has_select_for_update:
        query = query.select_for_update()
    row = query.first()
    if row is None:
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, id, target="TransactionId")
    return row


def _ownership(context: CallContext) -> dict[str, Any]:
    return {"session_id": context.session_id, "user_id": context.user_id or None}


class TransactionDataset(Dataset):
    """The dataset of an open Domain transaction within one request.

    restarts   counts the commits and rollbacks of scripts, after which the transaction goes on
    """

    def __init__(self, context: CallContext, row: DomainTransaction) -> None:
        super().__init__(context, model=cast(ModelName, row.model))
        self.row = row
        self.source = PendingRows(self, row)
        self.pending_source = self.source
        self.ended = False
        self.restarts = 0

    def end(self, *, commit: bool) -> None:
        """EndTransaction. After a failed commit the transaction stays open with its pending changes."""
        if commit:
            self.source.load_all()
            writes_load(self, self.row)
            self.commit()
        self.discard()
        self.ended = True

    def commit_and_continue(self) -> None:
        """Transaction.commit() of a script inside this transaction (spec 03, 3.3): commit, then continue without
        changes.
        """
        self.source.load_all()
        writes_load(self, self.row)
        self.commit()
        self._forget_pending()

    def rollback_and_continue(self) -> None:
        """Transaction.rollback() of a script inside this transaction: discard the pending changes."""
        self.discard()
        self._forget_pending()

    def _forget_pending(self) -> None:
        self.row.changes.all().delete()
        self.row.writes.all().delete()
        self.source.forget()
        self.restarts += 1

    def keep(self) -> None:
        """Store the changed pending rows."""
        self.source.store()
        writes_store(self, self.row)


def _note_changes(dataset: TransactionDataset) -> None:
    """In a dry run, collect this request's changes in the transaction: pending entities compared with stored ones."""
    run = dry_runs.current()
    if run is None:
        return
    operations: Mapping[str, ChangeOperation] = {"Added": "create", "Modified": "update", "Deleted": "delete"}
    changes = (
        change_of(record, operations[record.state], {}, pending=True)
        for record in dataset.changed()
        if dataset.source.is_changed(record) and _is_reportable(record)
    )
    report_changes(changes, run)


#: (record, attribute) → the attribute's value as the API shows it
Show = Callable[[Record, Attribute], Any]


def changes_collect(dataset: TransactionDataset, operation: str, show: Show) -> dict[str, dict[str, dict[str, Any]]]:
    """{"insert", "update", "delete": {set: {id: {attribute: value}}}} since the last call; {} without changes.

    Clears the returned changes. Raises Refused(CHANGES_NOT_TRACKED), which names the operation.
    """
    if not dataset.row.track_changes:
        raise errors.Refused(errors.CHANGES_NOT_TRACKED, operation)
    dataset.keep()
    result: dict[str, dict[str, dict[str, Any]]] = {}
    rows = _unreported_rows(dataset.row.id).order_by("sequence")
    dataset.source.add_rows([row for row in rows if row.state != GONE])
    remeasured: list[tuple[Record, list[str]]] = []
    for row in rows:
        record = dataset.records.get((row.identity, row.entity_id))
        if row.state == GONE:
            # Only entities that an earlier call reported.
            result.setdefault("delete", {}).setdefault(repositories[row.repository].set_name, {})[row.entity_id] = {}
            continue
        if record is None or not _is_reportable(record):
            continue
        values = {} if row.reported["operation"] == "delete" else _as_seen(record, row.reported["values"], show)
        by_set = result.setdefault(row.reported["operation"], {}).setdefault(repositories[row.repository].set_name, {})
        by_set[row.entity_id] = values
        if row.reported["operation"] == "update":
            remeasured += _remeasured(record, values)
    for record, names in remeasured:
        set_name = record.repository.set_name
        if not any(record.id in result.get(operation, {}).get(set_name, {}) for operation in ("insert", "delete")):
            values = _as_seen(record, {name: record.values[name] for name in names}, show)
            by_set = result.setdefault("update", {}).setdefault(set_name, {})
            by_set[record.id] = {**values, **by_set.get(record.id, {})}
    rows.update(reported=None)
    dataset.row.changes.filter(state=GONE).delete()
    # Clients of the reference implementation read the three members without a check (spec 14.1).
    return {operation: result.get(operation, {}) for operation in ("insert", "update", "delete")} if result else {}


def _remeasured(record: Record, changed: Collection[str]) -> Iterator[tuple[Record, list[str]]]:
    """The entity and those of its parts whose amounts and quantities have another currency or unit, because references
    of the entity have changed; with the names of these attributes.
    """
    if names := _valued(record, _measured_by(record.repository, (), changed)):
        yield record, names
    for child in record.repository.collections.values():
        part = repositories[child.repository]
        if part.owner is None or part.owner.name != child.back_reference:
            continue
        if measured := _measured_by(part, (part.owner.name,), changed):
            for each in record.children(child.name):
                if (names := _valued(each, measured)) and _is_reportable(each):
                    yield each, names


def _valued(record: Record, names: list[str]) -> list[str]:
    return [name for name in names if record.values[name] is not None]


def _measured_by(repository: Repository[Any], start: tuple[str, ...], changed: Collection[str]) -> list[str]:
    """API names of the attributes whose path to their currency or unit continues after `start` by a changed one."""
    return [
        attribute.name
        for attribute in repository.attributes.values()
        if attribute.measure[: len(start)] == start
        and set(attribute.measure[len(start) : len(start) + 1]) & set(changed)
    ]


def _is_reportable(record: Record) -> bool:
    """Whether the caller may see the change: rules and defaults also change hidden entities."""
    if record.by_client:
        return True
    context = record.dataset.context
    if not access.allowed(context, record.repository, "read"):
        return False
    if record.state != "Added":
        return access.record_visible(record)
    with record.dataset.flushed(around=record.id):
        return access.row_visible(context, record.repository, record.id)


def _as_seen(record: Record, values: dict[str, Any], show: Show) -> dict[str, Any]:
    """The values as queries show them: a hidden reference is null (spec 01, 1.7)."""
    attributes, references = record.repository.attributes, record.repository.references
    hidden = {name for name in references if name in values and access.leads_to_hidden(record, name)}
    shown_custom = access.visible_custom(record)
    hidden |= {PREFIX + escape_code(code) for code in record.custom if code not in shown_custom}
    return {
        # The report has current values. Custom properties are stored in API form.
        name: None if name in hidden else show(record, attributes[name]) if name in attributes else value
        for name, value in values.items()
    }


def changes_collect_later(
    context: CallContext, id: str, show: Show
) -> tuple[dict[str, dict[str, dict[str, Any]]], int]:
    """As `changes_collect`, in a separate request; also the transaction's sequence that the report covers.

    Raises BadRequest(INVALID_TRANSACTION_ID) for one that is over.
    """
    # Of many clients that wait for one transaction, one gets the change; the others check without a lock.
    row = DomainTransaction.objects.filter(id=id).first()
    if row is not None and not _unreported_rows(id).exists():
        return {}, row.sequence
    with opened(context, id) as dataset:
        return changes_collect(dataset, "WaitForChanges", show), dataset.row.sequence


def _unreported_rows(id: str) -> QuerySet[PendingChange]:
    return PendingChange.objects.filter(Q(transaction_id=id) & ~Q(reported=None))
