"""Domain transactions: datasets that live across requests, in the database (spec 03, 3.2).

A request locks the transaction's row, loads only the pending rows it needs, works in an ordinary Dataset and writes the
changed pending rows back, all in one database transaction: whatever kills the process leaves the state before the
request. Any node serves any request.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, cast

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from domain.dataset.checks import access
from domain.dataset.checks.limits import check_limits
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.record import ModelName, PendingSource, Record, State, UnitOfWork
from domain.dataset.tables.models import DomainTransaction, PendingChange
from domain.dataset.tables.storage import chunks, storage_of
from domain.dataset.tables.write_transaction import write_transaction
from domain.dataset.transactions.change_report import report, report_gone
from domain.dataset.transactions.change_waits import watch
from domain.dataset.transactions.stored_writes import writes_load, writes_store
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import freeze, thaw
from foundation import errors
from foundation.fields import utc_now
from identity.context import CallContext

#: What stands beside the attributes in `current`: the record's entry of Dataset.stated_measures.
_STATED = "@stated"
#: And the Python names of what behaviours gave it: in the frontend model that follows what it was taken from.
_GIVEN = "@given"
#: And what it was looked for by, if it was made because it was not found.
_LOOKUP = "@lookup"
#: And the authorities behind its changes (Dataset.authorities).
_AUTHORITIES = "@authorities"
#: State of the row of a new entity that was deleted again, kept until GetChanges has told of it.
_GONE = "Gone"
LIFETIME = timedelta(minutes=25)
MAX_OPEN = getattr(settings, "MAX_OPEN_TRANSACTIONS", 10)
MAX_PENDING = getattr(settings, "MAX_PENDING_ENTITIES", 50_000)


def transaction_begin(context: CallContext, *, model: ModelName = "common", track_changes: bool = False) -> str:
    """Open a Domain transaction; its id (32 hex). Raises Refused(TRANSACTION_LIMIT)."""
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
    """End every transaction of a session that closed; how many there were."""
    deleted, _ = DomainTransaction.objects.filter(session_id=session_id).delete()
    return deleted


def transactions_expire() -> int:
    """Remove what has outlived its time; how many rows."""
    deleted, _ = DomainTransaction.objects.filter(expires_at__lte=utc_now()).delete()
    return deleted


@contextmanager
def opened(context: CallContext, id: str) -> Iterator[TransactionDataset]:
    """The transaction's dataset for one request, locked until the block ends; what changed is kept when it succeeds.

    Raises BadRequest(INVALID_TRANSACTION_ID) for one that is unknown, over, or another caller's.
    """
    with write_transaction():
        row = _locked(context, id)
        dataset = TransactionDataset(context, row)
        yield dataset
        if dataset.ended:
            row.delete()
        else:
            dataset.keep()
        if watch.waits_for(id):
            transaction.on_commit(partial(watch.wake, id))


def _locked(context: CallContext, id: str) -> DomainTransaction:
    query = DomainTransaction.objects.filter(id=id, expires_at__gt=utc_now(), **_ownership(context))
    if connection.features.has_select_for_update:
        query = query.select_for_update()
    row = query.first()
    if row is None:
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, id, target="TransactionId")
    return row


def _ownership(context: CallContext) -> dict[str, Any]:
    return {"session_id": context.session_id, "user_id": context.user.id if context.user is not None else None}


class TransactionDataset(Dataset):
    """The dataset of an open Domain transaction within one request."""

    def __init__(self, context: CallContext, row: DomainTransaction) -> None:
        super().__init__(context, model=cast(ModelName, row.model))
        self.row = row
        self.source = _PendingRows(row)
        self.pending_source = self.source
        self.ended = False

    def end(self, *, commit: bool) -> None:
        """EndTransaction. A commit that fails leaves the transaction open with what was pending."""
        if commit:
            self.source.load_all(self)
            writes_load(self, self.row)
            self.commit()
        self.discard()
        self.ended = True

    def commit_and_go_on(self) -> None:
        """Transaction.commit() of a script inside this transaction (spec 03, 3.3): write, then start clean."""
        self.source.load_all(self)
        writes_load(self, self.row)
        self.commit()
        self._forget_pending()

    def rollback_and_go_on(self) -> None:
        """Transaction.rollback() of a script inside this transaction: forget what is pending."""
        self.discard()
        self._forget_pending()

    def _forget_pending(self) -> None:
        self.row.changes.all().delete()
        self.row.writes.all().delete()
        self.source.forget()

    def keep(self) -> None:
        """Write the changed pending rows back."""
        self.source.store(self)
        writes_store(self, self.row)


class _PendingRows(PendingSource):
    """Pending rows of one transaction, loaded as they are needed."""

    def __init__(self, row: DomainTransaction) -> None:
        self.row = row
        #: identity → (row as it was loaded, the record's mutations then)
        self.known: dict[tuple[str, str], tuple[PendingChange, int]] = {}
        self.all_loaded = False
        self.repositories_loaded: set[str] = set()

    def forget(self) -> None:
        """Everything pending is gone."""
        self.known.clear()
        self.all_loaded = True

    def has(self, record: Record) -> bool:
        """Whether the record is pending since an earlier request."""
        return record.key in self.known

    def _rows(self) -> Any:
        return PendingChange.objects.filter(transaction_id=self.row.id).exclude(state=_GONE)

    def load(self, dataset: UnitOfWork, identity: str, ids: Sequence[str]) -> list[Record]:
        """Pending records among the guids."""
        if self.all_loaded:
            return []
        rows = list(self._rows().filter(identity=identity, entity_id__in=list(ids)))
        return self.adopt(dataset, rows)

    def load_new(self, dataset: UnitOfWork, ids: Collection[str]) -> None:
        """Pending new records among the guids, whatever they are."""
        if self.all_loaded:
            return
        for part in chunks(ids):
            self.adopt(dataset, list(self._rows().filter(state="Added", entity_id__in=part)))

    def load_children(
        self, dataset: UnitOfWork, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]
    ) -> None:
        """Pending records that point at one of the parents."""
        if self.all_loaded:
            return
        if not back_reference.owner:
            # Rows are found by their owner only.
            self.load_repositories(dataset, [repository.name])
            return
        for part in chunks(parents):
            rows = self._rows().filter(owner_id__in=part, repository=repository.name).order_by("sequence")
            self.adopt(dataset, list(rows))

    def load_repositories(self, dataset: UnitOfWork, names: Sequence[str]) -> None:
        """Every pending record of the repositories."""
        wanted = set(names) - self.repositories_loaded
        if self.all_loaded or not wanted:
            return
        self.repositories_loaded |= wanted
        # By identity, which the index begins with.
        identities = {repositories[name].identity_name for name in wanted}
        rows = self._rows().filter(identity__in=sorted(identities), repository__in=sorted(wanted))
        self.adopt(dataset, list(rows.order_by("sequence")))

    def load_all(self, dataset: UnitOfWork) -> None:
        """Adopt every pending record."""
        if self.all_loaded:
            return
        found = self.adopt(dataset, list(self._rows().order_by("sequence")))
        self.all_loaded = True
        if dataset.model == "frontend":
            return
        # As above: what came and went in earlier requests still has to trigger what is calculated from parts.
        for record in found:
            if record.is_deleted or record.former_parent is not None:
                dataset.child_collections.mark_parents(record)

    def adopt(self, dataset: UnitOfWork, rows: Sequence[PendingChange]) -> list[Record]:
        """Bring pending rows into the dataset; their records."""
        # A row that is known and no longer in the dataset is that of a new entity which this request has deleted.
        present = dataset.records
        fresh = [row for row in rows if (key := (row.identity, row.entity_id)) not in present and key not in self.known]
        self._load_bases(dataset, fresh)
        found: list[Record] = []
        for row in rows:
            key = (row.identity, row.entity_id)
            record = dataset.records.get(key)
            if record is None:
                continue
            if key not in self.known:
                self._apply(record, row)
                self.known[key] = (row, record.mutations)
            found.append(record)
        return found

    def _load_bases(self, dataset: UnitOfWork, rows: Sequence[PendingChange]) -> None:
        """What modified and deleted entities look like in the database, one query per repository."""
        stored: dict[str, list[PendingChange]] = {}
        for row in rows:
            repository = repositories[row.repository]
            if row.state == "Added":
                values = {
                    name: thaw(repository.attributes[name], value)
                    for name, value in row.current.items()
                    if name in repository.attributes
                }
                dataset.adopt(Record(dataset, repository, row.entity_id, "Added", values))
            else:
                stored.setdefault(row.repository, []).append(row)
        for name, group in stored.items():
            repository = repositories[name]
            loaded = storage_of(repository).load([row.entity_id for row in group])
            for row in group:
                base = loaded.get(row.entity_id)
                values = (
                    base.values
                    if base is not None
                    else {"Id": row.entity_id, **{a: None for a in repository.attributes if a != "Id"}}
                )
                record = Record(dataset, repository, row.entity_id, "Unchanged", values)
                record.custom = base.custom if base is not None else {}
                dataset.adopt(record)

    def _apply(self, record: Record, row: PendingChange) -> None:
        attributes = record.repository.attributes
        if (stated := row.current.get(_STATED)) is not None:
            record.dataset.stated_measures[record.key] = stated
        if (lookup := row.current.get(_LOOKUP)) is not None:
            record.dataset.pending_lookups[record.key] = LookupKey.thaw(lookup)
        if (known := row.current.get(_AUTHORITIES)) is not None:
            record.dataset.authorities.setdefault(record.key, set()).update(known)
        record.version = row.version
        record.by_client, record.client_caused = row.by_client, row.client_caused
        record.state = cast(State, row.state)
        if row.custom is not None:
            record.custom, record.custom_changed = row.custom, True
        if row.state == "Modified":
            record.original_values = {n: thaw(attributes[n], v) for n, v in row.original.items() if n in attributes}
            record.values.update({n: thaw(attributes[n], v) for n, v in row.current.items() if n in attributes})
        if (given := row.current.get(_GIVEN)) is not None:
            record.dataset.given[record.key] = {name: getattr(record, name, None) for name in given}
        # Dependents are calculated at commit; what changed in earlier requests still has to trigger them. In the
        # frontend model they have followed at once, and would now replace what somebody has typed over them.
        if record.state != "Deleted" and record.dataset.model != "frontend":
            record.dirty.update(row.current)

    def store(self, dataset: UnitOfWork) -> None:
        """Insert and update the pending rows of records that changed in this request.

        Raises Refused: PENDING_LIMIT, or for a value that its column does not hold. Later requests, which may be
        reads, could not flush it.
        """
        created: list[PendingChange] = []
        updated: list[PendingChange] = []
        for record in dataset.changed():
            known = self.known.get(record.key)
            if known is not None and known[1] == record.mutations:
                continue
            if not record.is_deleted:
                check_limits(record)
            pending = self._pending(record, known[0] if known is not None else None)
            if known is None:
                created.append(pending)
            else:
                pending.pk = known[0].pk
                updated.append(pending)
        gone = [row for key, (row, _) in self.known.items() if key not in dataset.records]
        self._remove(gone)
        if created:
            if self.row.track_changes:
                # The keys of entities that have gone may be given again.
                ids = [pending.entity_id for pending in created]
                for part in chunks(ids):
                    self.row.changes.filter(state=_GONE, entity_id__in=part).delete()
            if self._rows().count() + len(created) > MAX_PENDING:
                raise errors.Refused(errors.PENDING_LIMIT, MAX_PENDING)
            PendingChange.objects.bulk_create(created, batch_size=500)
        if updated:
            fields = ["state", "version", "by_client", "client_caused", "owner_id"]
            fields += ["current", "original", "custom", "reported"]
            PendingChange.objects.bulk_update(updated, fields, batch_size=200)
        if created or updated or gone:
            DomainTransaction.objects.filter(pk=self.row.pk).update(sequence=self.row.sequence)

    def _remove(self, gone: Sequence[PendingChange]) -> None:
        """Delete the rows of new entities that are no more, or keep what is to be told of that."""
        deleted = []
        for row in gone:
            told = report_gone(row) if self.row.track_changes else None
            if told is None:
                deleted.append(row.pk)
            else:
                self.row.sequence += 1
                self.row.changes.filter(pk=row.pk).update(state=_GONE, reported=told, sequence=self.row.sequence)
        for part in chunks(deleted):
            self.row.changes.filter(pk__in=part).delete()

    def _pending(self, record: Record, before: PendingChange | None) -> PendingChange:
        attributes = record.repository.attributes
        names = record.values if record.state == "Added" else record.original_values
        owner = record.repository.owner
        self.row.sequence += 1
        # The fields hold JSON; the stubs know only of the text below it.
        values: dict[str, Any] = {
            "transaction_id": self.row.id,
            "identity": record.key[0],
            "entity_id": record.id,
            "repository": record.repository.name,
            "state": record.state,
            "version": record.version,
            "by_client": record.by_client,
            "client_caused": record.client_caused,
            "sequence": self.row.sequence,
            "owner_id": record.values.get(owner.name) if owner is not None else None,
            "current": {name: freeze(attributes[name], record.values[name]) for name in names if name in attributes}
            | ({_STATED: stated} if (stated := record.dataset.stated_measures.get(record.key)) else {})
            | ({_LOOKUP: lookup.freeze()} if (lookup := record.dataset.pending_lookups.get(record.key)) else {})
            | ({_GIVEN: given} if (given := _still_given(record)) else {})
            | ({_AUTHORITIES: sorted(known)} if (known := record.dataset.authorities.get(record.key)) else {}),
            "original": {name: freeze(attributes[name], value) for name, value in record.original_values.items()},
            "custom": record.custom if record.custom_changed else None,
            "reported": report(record, before) if self.row.track_changes else None,
        }
        return PendingChange(**values)


def _still_given(record: Record) -> list[str]:
    """Python names of what behaviours gave the record and nobody has changed since."""
    if record.dataset.model != "frontend":
        return []
    given = record.dataset.given.get(record.key, {})
    return [name for name, value in given.items() if getattr(record, name) == value]


#: (record, attribute) → the attribute's value as the API shows it
Show = Callable[[Record, Attribute], Any]


def changes_take(dataset: TransactionDataset, asked: str, show: Show) -> dict[str, dict[str, dict[str, Any]]]:
    """{"insert"|"update"|"delete": {set: {id: {attribute: value}}}} since the last call; clears what it returns.

    Raises Refused(CHANGES_NOT_TRACKED) in the name of the operation asked.
    """
    if not dataset.row.track_changes:
        raise errors.Refused(errors.CHANGES_NOT_TRACKED, asked)
    dataset.keep()
    found: dict[str, dict[str, dict[str, Any]]] = {}
    rows = _unreported_rows(dataset.row.id).order_by("sequence")
    dataset.source.adopt(dataset, [row for row in rows if row.state != _GONE])
    for row in rows:
        record = dataset.records.get((row.identity, row.entity_id))
        if row.state == _GONE:
            # Only of what was told before.
            found.setdefault("delete", {}).setdefault(repositories[row.repository].set_name, {})[row.entity_id] = {}
            continue
        if record is None or not _may_be_told(record):
            continue
        values = {} if row.reported["operation"] == "delete" else _as_seen(record, row.reported["values"], show)
        by_set = found.setdefault(row.reported["operation"], {}).setdefault(repositories[row.repository].set_name, {})
        by_set[row.entity_id] = values
    rows.update(reported=None)
    dataset.row.changes.filter(state=_GONE).delete()
    return found


def _may_be_told(record: Record) -> bool:
    """Whether the change is one that its caller may know of: rules and defaults also change what they do not see."""
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
    """The values as queries show them: a reference to what the caller may not see is null (spec 01, 1.7)."""
    attributes, references = record.repository.attributes, record.repository.references
    hidden = {name for name in references if name in values and access.leads_to_hidden(record, name)}
    return {
        # What is told of last is what there is now. Custom properties are kept as they are shown.
        name: None if name in hidden else show(record, attributes[name]) if name in attributes else value
        for name, value in values.items()
    }


def changes_take_later(context: CallContext, id: str, show: Show) -> tuple[dict[str, dict[str, dict[str, Any]]], int]:
    """As `changes_take`, with a request of its own; also the transaction's sequence up to which that tells.

    Raises BadRequest(INVALID_TRANSACTION_ID) for one that is over.
    """
    # Many may wait for one transaction, and one of them gets the change: the others need no lock to see that.
    row = DomainTransaction.objects.filter(id=id).first()
    if row is not None and not _unreported_rows(id).exists():
        return {}, row.sequence
    with opened(context, id) as dataset:
        return changes_take(dataset, "WaitForChanges", show), dataset.row.sequence


def _unreported_rows(id: str) -> QuerySet[PendingChange]:
    return PendingChange.objects.filter(Q(transaction_id=id) & ~Q(reported=None))
