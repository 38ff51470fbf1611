"""Stores the pending changes of a Domain transaction between requests, as rows of PendingChange (spec 03, 3.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

from django.conf import settings

from domain.dataset.checks.limits import check_limits
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.pending_source import PendingSource
from domain.dataset.records.record import Record, State
from domain.dataset.tables.models import DomainTransaction, PendingChange
from domain.dataset.tables.row_storage import CHUNK, row_storage_of
from domain.dataset.transactions.change_report import report, report_gone
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import deserialize, serialize
from foundation import errors
from foundation.batches import batched

#: Key beside the attributes in `current`: the record's entry of Dataset.stated_measures.
_STATED = "@stated"
#: Key of the Python names of behaviour values, which follow their sources.
_GIVEN = "@given"
#: Key of the lookup after which the record was created.
_LOOKUP = "@lookup"
#: Key of the authorities behind its changes (Dataset.authorities).
_AUTHORITIES = "@authorities"
#: Key of the names that have changed since the calculations last ran, besides those in `current`.
_DIRTY = "@dirty"
#: Key of the names of the rules that made changes of it (Dataset.rules_behind).
_RULES = "@rules"
#: State of the row of a new entity that was deleted again, kept until GetChanges has reported it.
GONE = "Gone"
MAX_PENDING = getattr(settings, "MAX_PENDING_ENTITIES", 50_000)


class PendingRows(PendingSource):
    """Pending rows of one transaction, loaded on demand."""

    def __init__(self, dataset: ChangeTracker, row: DomainTransaction) -> None:
        self.dataset = dataset
        self.row = row
        #: identity → (row as loaded, the record's mutations then)
        self.known: dict[tuple[str, str], tuple[PendingChange, int]] = {}
        self.all_loaded = False
        self.repositories_loaded: set[str] = set()
        #: Guids for which `load_new` has run.
        self._looked_for: set[str] = set()

    def forget(self) -> None:
        """Drop all pending changes."""
        self.known.clear()
        self.all_loaded = True

    def has(self, record: Record) -> bool:
        """Whether the record is pending since an earlier request."""
        return record.key in self.known

    def is_changed(self, record: Record) -> bool:
        """Whether this request has changed the record."""
        known = self.known.get(record.key)
        return known is None or known[1] != record.mutations

    def _rows(self) -> Any:
        return PendingChange.objects.filter(transaction_id=self.row.id).exclude(state=GONE)

    def load(self, identity: str, ids: Sequence[str]) -> list[Record]:
        """Pending records among the guids."""
        if self.all_loaded:
            return []
        rows = list(self._rows().filter(identity=identity, entity_id__in=list(ids)))
        return self.add_rows(rows)

    def load_new(self, ids: Collection[str]) -> None:
        """Pending new records among the guids, of any repository; queries each guid once per request."""
        if self.all_loaded:
            return
        wanted = [id for id in ids if id not in self._looked_for]
        self._looked_for.update(wanted)
        for part in batched(wanted, CHUNK):
            self.add_rows(list(self._rows().filter(state="Added", entity_id__in=part)))

    def load_children(self, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]) -> None:
        """Pending records that point at one of the parents."""
        if self.all_loaded or repository.name in self.repositories_loaded:
            return
        if not back_reference.owner:
            # Rows are found only by their owner.
            self.load_repositories([repository.name])
            return
        for part in batched(parents, CHUNK):
            rows = self._rows().filter(owner_id__in=part, repository=repository.name).order_by("sequence")
            self.add_rows(list(rows))

    def load_repositories(self, names: Sequence[str]) -> None:
        """Every pending record of the repositories."""
        wanted = set(names) - self.repositories_loaded
        if self.all_loaded or not wanted:
            return
        self.repositories_loaded |= wanted
        # By identity, which the index begins with.
        identities = {repositories[name].identity_name for name in wanted}
        rows = self._rows().filter(identity__in=sorted(identities), repository__in=sorted(wanted))
        self.add_rows(list(rows.order_by("sequence")))

    def load_aggregate(self, root: Record, names: Sequence[str]) -> None:
        """Every pending record that is or was within the root's aggregate; `names`: the repositories of its parts."""
        if self.all_loaded or self.repositories_loaded.issuperset(names):
            return
        seen, owners = {root.id}, [root.id]
        while owners:
            parts: list[Record] = []
            for part in batched(owners, CHUNK):
                parts += self.add_rows(list(self._rows().filter(owner_id__in=part).order_by("sequence")))
            parts += self._moved_away(owners, names)
            owners = [part.id for part in parts if part.id not in seen]
            seen.update(owners)

    def _moved_away(self, owners: Sequence[str], names: Sequence[str]) -> list[Record]:
        """Pending records that are stored with one of the owners, and have another one now."""
        rows = self._rows().exclude(state="Added").filter(owner_id__isnull=False, repository__in=names)
        elsewhere = {
            name for name, owner in rows.values_list("repository", "owner_id").distinct() if owner not in owners
        }
        result: list[Record] = []
        for repository in map(repositories.__getitem__, sorted(elsewhere)):
            if repository.owner is not None:
                stored = row_storage_of(repository).children(repository.owner, owners)
                # Those that still belong here are in the dataset already, if they are pending.
                result += self.load(repository.identity_name, list(stored))
        return result

    def load_all(self) -> None:
        """Adopt every pending record."""
        if self.all_loaded:
            return
        result = self.add_rows(list(self._rows().order_by("sequence")))
        self.all_loaded = True
        # A commit numbers lines in the order of the records: this request's last.
        records = self.dataset.records
        for key in [key for key, record in records.items() if record.state == "Added" and key not in self.known]:
            records[key] = records.pop(key)
        if self.dataset.model == "frontend":
            return
        # As above: entities that were created and deleted in earlier requests still trigger calculations from parts.
        for record in result:
            if record.is_deleted or record.former_parent is not None:
                self.dataset.child_collections.mark_parents(record)

    def add_rows(self, rows: Sequence[PendingChange]) -> list[Record]:
        """Add pending rows to the dataset; returns their records."""
        # A known row without a record belongs to a new entity that this request has deleted.
        present = self.dataset.records
        fresh = [row for row in rows if (key := (row.identity, row.entity_id)) not in present and key not in self.known]
        self._load_bases(fresh)
        result: list[Record] = []
        for row in rows:
            key = (row.identity, row.entity_id)
            record = self.dataset.records.get(key)
            if record is None:
                continue
            if key not in self.known:
                self._apply(record, row)
                self.known[key] = (row, record.mutations)
            result.append(record)
        return result

    def _load_bases(self, rows: Sequence[PendingChange]) -> None:
        """The stored state of modified and deleted entities, one query per repository."""
        stored: dict[str, list[PendingChange]] = {}
        for row in rows:
            repository = repositories[row.repository]
            if row.state == "Added":
                values = {
                    name: deserialize(repository.attributes[name], value)
                    for name, value in row.current.items()
                    if name in repository.attributes
                }
                self.dataset.add_existing(Record(self.dataset, repository, row.entity_id, "Added", values))
            else:
                stored.setdefault(row.repository, []).append(row)
        for name, group in stored.items():
            repository = repositories[name]
            loaded = row_storage_of(repository).load([row.entity_id for row in group])
            for row in group:
                base = loaded.get(row.entity_id)
                values = (
                    base.values
                    if base is not None
                    else {"Id": row.entity_id, **{a: None for a in repository.attributes if a != "Id"}}
                )
                record = Record(self.dataset, repository, row.entity_id, "Unchanged", values)
                record.custom = base.custom if base is not None else {}
                self.dataset.add_existing(record)

    def _apply(self, record: Record, row: PendingChange) -> None:
        attributes = record.repository.attributes
        if (stated := row.current.get(_STATED)) is not None:
            self.dataset.stated_measures[record.key] = stated
        if (lookup := row.current.get(_LOOKUP)) is not None:
            self.dataset.lookups.pending[record.key] = LookupKey.deserialize(lookup)
        if (known := row.current.get(_AUTHORITIES)) is not None:
            self.dataset.authorities.setdefault(record.key, set()).update(known)
        if (rules := row.current.get(_RULES)) is not None:
            self.dataset.rules_behind.setdefault(record.key, {}).update(dict.fromkeys(rules))
        record.version = row.version
        record.by_client, record.client_caused = row.by_client, row.client_caused
        record.state = cast(State, row.state)
        if row.custom is not None:
            record.original_custom = record.custom
            record.custom, record.custom_changed = row.custom, True
        if row.state == "Modified":
            record.original_values = {
                n: deserialize(attributes[n], v) for n, v in row.original.items() if n in attributes
            }
            record.values.update({n: deserialize(attributes[n], v) for n, v in row.current.items() if n in attributes})
        if (given := row.current.get(_GIVEN)) is not None:
            self.dataset.behaviour_values[record.key] = {name: getattr(record, name, None) for name in given}
        # Dependents are calculated at commit; changes of earlier requests still have to trigger them. In the frontend
        # model they were calculated at once, and would now replace values that a caller has set since.
        if record.state != "Deleted" and self.dataset.model != "frontend":
            record.dirty.update(row.current, row.current.get(_DIRTY, ()))

    def store(self) -> None:
        """Insert and update the pending rows of records that changed in this request.

        Raises Refused: PENDING_LIMIT, or for a value beyond its column. Later requests, which may be reads, could not
        flush it.
        """
        created: list[PendingChange] = []
        updated: list[PendingChange] = []
        for record in self.dataset.changed():
            if not self.is_changed(record):
                continue
            known = self.known.get(record.key)
            if not record.is_deleted:
                check_limits(record)
            pending = self._pending(record, known[0] if known is not None else None)
            if known is None:
                created.append(pending)
            else:
                pending.pk = known[0].pk
                updated.append(pending)
        gone = [row for key, (row, _) in self.known.items() if key not in self.dataset.records]
        self._remove(gone)
        if created:
            if self.row.track_changes:
                # The keys of deleted entities may be used again.
                ids = [pending.entity_id for pending in created]
                for part in batched(ids, CHUNK):
                    self.row.changes.filter(state=GONE, entity_id__in=part).delete()
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
        """Delete the rows of new entities that were deleted again; keep those whose deletion GetChanges must report."""
        deleted = []
        for row in gone:
            reported = report_gone(row) if self.row.track_changes else None
            if reported is None:
                deleted.append(row.pk)
            else:
                self.row.sequence += 1
                self.row.changes.filter(pk=row.pk).update(state=GONE, reported=reported, sequence=self.row.sequence)
        for part in batched(deleted, CHUNK):
            self.row.changes.filter(pk__in=part).delete()

    def _pending(self, record: Record, before: PendingChange | None) -> PendingChange:
        attributes = record.repository.attributes
        names = record.values if record.state == "Added" else record.original_values
        owner = record.repository.owner
        self.row.sequence += 1
        # The fields hold JSON; the type stubs know only the stored text.
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
            "current": {name: serialize(attributes[name], record.values[name]) for name in names if name in attributes}
            | ({_STATED: stated} if (stated := self.dataset.stated_measures.get(record.key)) else {})
            | ({_LOOKUP: lookup.serialize()} if (lookup := self.dataset.lookups.pending.get(record.key)) else {})
            | ({_GIVEN: given} if (given := _still_given(record)) else {})
            | ({_DIRTY: dirty} if (dirty := sorted(record.dirty.difference(names))) else {})
            | ({_AUTHORITIES: sorted(known)} if (known := self.dataset.authorities.get(record.key)) else {})
            | ({_RULES: list(rules)} if (rules := self.dataset.rules_behind.get(record.key)) else {}),
            "original": {name: serialize(attributes[name], value) for name, value in record.original_values.items()},
            # Including the default values of a new entity, which do not count as changed.
            "custom": record.custom if record.custom_changed or (record.is_new and record.custom) else None,
            "reported": report(record, before) if self.row.track_changes else None,
        }
        return PendingChange(**values)


def _still_given(record: Record) -> list[str]:
    """Python names of behaviour values that no caller has changed since."""
    given = record.dataset.behaviour_values.get(record.key, {})
    return [name for name, value in given.items() if getattr(record, name) == value]
