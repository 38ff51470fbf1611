"""The change tracker: an identity map of records, the changes made to them, and the events these raise."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.utils.translation import gettext

from domain.dataset.checks import access, unique_violations
from domain.dataset.checks.authority import Acting, Authority, check_authority
from domain.dataset.checks.edit_guards import check_edit
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.lookups.names import custom_event_values
from domain.dataset.records import dispatch
from domain.dataset.records.record import CommitResult, ModelName, PendingSource, Record, State
from domain.dataset.tables import number_sequences
from domain.dataset.tables.storage import storage_of
from domain.dataset.templates.display_text import display_text
from domain.dataset.unit import autoflush, find
from domain.dataset.unit.calculations import calculate
from domain.dataset.unit.child_collections import ChildCollections
from domain.dataset.unit.deferred_work import DeferredWork
from domain.model.attributes import Attribute
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.model.values import round_to_scale
from foundation import errors
from foundation.fields import utc_now
from foundation.guids import is_guid, new_guid
from foundation.kinds import Kind
from identity.context import CallContext

#: identity → a changed record and its state, values, original values, custom properties, custom_changed
Snapshot = dict[tuple[str, str], tuple[Record, State, dict[str, Any], dict[str, Any], dict[str, Any], bool]]
_ATTRIBUTE_EVENTS = ("ATTRIBUTECHANGING", "ATTRIBUTECHANGED")


class ChangeTracker(ABC):
    """An identity map with changes. Not thread-safe; lives within one request, script or command.

    context          on whose behalf it acts
    model            "frontend": dependents follow each change at once, with attribute events of their own; "common": at
                     commit. A caller's change raises attribute events in both
    warnings         messages collected by WARNING actions
    lineage          of the dataset of a COMMITTED event: what acted in the datasets whose commits led to it
    locks           of a dataset that is made and committed in one database transaction
    """

    def __init__(
        self,
        context: CallContext,
        *,
        model: ModelName = "common",
        lineage: tuple[str, ...] = (),
        locks: AdvisoryLocks | None = None,
    ) -> None:
        self.context = context
        self.model: ModelName = model
        self.warnings: list[str] = []
        #: What subscribers tell of what they did, where the caller asked for it (spec 05, 5.5).
        self.traces: list[Mapping[str, Any]] = []
        #: What acted on events since the last commit, newest last: the chain shown when a loop is stopped.
        self.trail: deque[str] = deque(maxlen=12)
        #: The rules acting on an event, and the managed scripts running, at this moment, outermost first.
        self.acting: list[Acting] = []
        #: identity → authorities behind the changes, in repositories that decide access or are authored
        self.authorities: dict[tuple[str, str], set[Authority]] = {}
        #: Whose display text is being written, outermost first: formats may refer to each other in a circle.
        self.describing: list[tuple[str, str]] = []
        self.lineage = lineage
        self.locks = locks
        #: identity of what was made because it was not found → what it was looked for by, to be asked again at commit
        self.pending_lookups: dict[tuple[str, str], LookupKey] = {}
        #: identity → record, in order of entry
        self.records: dict[tuple[str, str], Record] = {}
        self.child_collections = ChildCollections(self)
        self._missing: set[tuple[str, str]] = set()
        self.deferred = DeferredWork()
        self._calculating = False
        #: An operation that a caller called is running: the caller causes its changes.
        self._operating = False
        #: (repository, event; "" for both attribute events) → parameters with a subscriber, cached until the commit
        self._watched: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
        self._now: datetime.datetime | None = None
        #: Finds pending rows of a Domain transaction by identity; None outside of one.
        self.pending_source: PendingSource | None = None
        self._shown = False
        #: (repository, code) → guid of the currencies and units that callers have named
        self.measures: dict[tuple[str, str], str] = {}
        #: identity → amounts and quantities that a caller gave before it was known what they are in: API name → the
        #: code that came with the value, which must be the one that applies in the end
        self.stated_measures: dict[tuple[str, str], dict[str, str]] = {}
        #: identity → what behaviours have given it: Python name → value, while nobody has decided otherwise
        self.given: dict[tuple[str, str], dict[str, Any]] = {}

    # --- time and numbers -----------------------------------------------------------------------------------------

    def now(self) -> datetime.datetime:
        """The dataset's present, the same throughout one commit."""
        return self._now or utc_now()

    def today(self) -> datetime.date:
        """The date of `now` (UTC)."""
        return self.now().date()

    def next_number(self, sequence: str, *, width: int = 6, start: int = 1) -> str:
        """The next number of a gap-free sequence, zero-padded; the sequence stays locked until the commit ends."""
        return number_sequences.next_number(sequence, width=width, start=start)

    # --- identity -------------------------------------------------------------------------------------------------

    def load(self, repository: str | Repository[Any], id: str) -> Record | None:
        """The entity, from the dataset or the database; None where there is none (deleted here counts as none).

        Server-side: no permission is asked. `open` is for callers.
        """
        wanted = repositories[repository] if isinstance(repository, str) else repository
        found = self.records.get((wanted.identity_name, id))
        if found is None:
            found = self.load_many(wanted, [id]).get(id)
        return None if found is None or found.state == "Deleted" else found

    def load_many(self, repository: str | Repository[Any], ids: Sequence[str]) -> dict[str, Record]:
        """Guid → record for those that exist, with one query for all that are not in the dataset yet."""
        wanted = repositories[repository] if isinstance(repository, str) else repository
        identity = wanted.identity_name
        found: dict[str, Record] = {}
        absent: list[str] = []
        for id in ids:
            key = (identity, id)
            record = self.records.get(key)
            if record is not None:
                found[id] = record
            elif key not in self._missing:
                # What is no guid names nothing; PostgreSQL would refuse the query.
                if is_guid(id):
                    absent.append(id)
                else:
                    self._missing.add(key)
        if absent and self.pending_source is not None:
            for record in self.pending_source.load(self, identity, absent):
                found[record.id] = record
            absent = [id for id in absent if id not in found]
        if absent:
            self._load_stored(wanted, identity, absent, found)
        return found

    def _is_known(self, repository: Repository[Any], id: str) -> bool:
        """Whether an entity with this key is loaded or pending; what is only stored, the database refuses itself."""
        if (repository.identity_name, id) in self.records:
            return True
        return bool(self.pending_source and list(self.pending_source.load(self, repository.identity_name, [id])))

    def _load_stored(
        self, repository: Repository[Any], identity: str, ids: Sequence[str], found: dict[str, Record]
    ) -> None:
        by_concrete: dict[str, list[str]] = {}
        if repository.is_polymorphic and repository.subtypes:
            for id, name in storage_of(repository).concrete_names(ids).items():
                by_concrete.setdefault(name, []).append(id)
        else:
            by_concrete[repository.name] = list(ids)
        for name, group in by_concrete.items():
            concrete = repositories[name]
            for id, row in storage_of(concrete).load(group).items():
                record = Record(self, concrete, id, "Unchanged", row.values)
                record.version = row.version
                record.custom = row.custom
                self.records[(identity, id)] = record
                found[id] = record
        self._missing.update((identity, id) for id in ids if id not in found)

    def open(self, repository: Repository[Any], id: str, operation: access.Operation = "read") -> Record:
        """As `load`, for a caller. Raises NotFound (not there, or not visible) or Forbidden (may not be done)."""
        access.require(self.context, repository, "read")
        # The empty key is that of what lies behind a reference that is null.
        record = self.load(repository, id) if id else None
        if record is None or not issubclass(record.repository.model, repository.model):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)
        if not access.record_visible(record):
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)
        if operation != "read":
            access.require(self.context, record.repository, operation)
            if record.state != "Added":
                access.require_row(self.context, record, operation)
        return record

    def adopt(self, record: Record) -> None:
        """Put a record made elsewhere (a pending row) into the identity map."""
        self.records[record.key] = record

    # --- finding --------------------------------------------------------------------------------------------------

    def find_all(
        self,
        repository: str | Repository[Any],
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        **conditions: Any,
    ) -> list[Record]:
        """Entities by Python names: `product_id=…`, `from_date__lte=…`, `code__in=[…]`, `thru_date__isnull=True`.

        Server-side: no permission is asked. Sees pending changes of this dataset.
        """
        wanted = repositories[repository] if isinstance(repository, str) else repository
        members = None if order_by else find.value_members(wanted, conditions)
        if members is not None:
            return find.find_by_value(self, wanted, members, limit)
        with self.flushed():
            ids = find.look_up(wanted, conditions, order_by, limit)
        loaded = self.load_many(wanted, ids)
        return [loaded[id] for id in ids if id in loaded and not loaded[id].is_deleted]

    def find_one(self, repository: str | Repository[Any], **conditions: Any) -> Record | None:
        """The first match by key order, or None."""
        found = self.find_all(repository, limit=1, **conditions)
        return found[0] if found else None

    def children(self, parent: Record, collection: str) -> list[Record]:
        """The entities of an owned collection, in order of creation; deleted ones left out."""
        return self.child_collections.of(parent, collection)

    def load_children(self, parents: Sequence[Record], collection: str) -> None:
        """Load an owned collection of many parents, so that `children` asks the database for none of them."""
        self.child_collections.load(parents, collection)

    def lock_lookup(self, lookup: LookupKey) -> None:
        """Before a caller looks for something in order to make it where it is missing: nobody else makes it meanwhile.

        Where the database transaction ends before the commit, `remember_lookup` remembers to look again.
        """
        owner = lookup.repository.owner
        # Who adds parts to an entity moves its version, which two at once cannot.
        owned = lookup.parent is not None and owner is not None and owner.name == lookup.parent[0]
        if self.locks is not None and not owned:
            self.locks.take(lookup.repository, lookup.locks())

    def lock_value(self, repository: Repository[Any], value: str) -> None:
        """Before a validation, at commit, looks whether a value is taken that no index keeps unique."""
        (self.locks or AdvisoryLocks()).take(repository, [value])

    def remember_lookup(self, record: Record, lookup: LookupKey) -> None:
        """The record was made because nothing was found. What a key is taken by, the database refuses itself."""
        if self.locks is None and "Id" not in lookup.values:
            self.pending_lookups[record.key] = lookup

    # --- changing -------------------------------------------------------------------------------------------------

    def create(
        self,
        repository: str | Repository[Any],
        values: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        parent: Record | None = None,
        collection: str = "",
        by_client: bool = False,
    ) -> Record:
        """A new entity with its defaults, then `values` (API or Python names → canonical values) in their order.

        It belongs to `parent` by the reference back of the parent's `collection`, or of the first that fits.
        With `by_client` permission is asked and read-only attributes are refused, as for everything a caller does.
        """
        wanted = repositories[repository] if isinstance(repository, str) else repository
        if wanted.abstract:
            raise errors.BadRequest(
                errors.INVALID_BODY,
                gettext("{0} is abstract; name a derived type in @odata.type.").replace("{0}", wanted.entity_type),
            )
        if by_client:
            access.require(self.context, wanted, "create")
        if id is not None and self._is_known(wanted, id):
            raise unique_violations.key_taken(wanted, id)
        new_id = id or new_guid()
        constant, made = _initial_values(wanted)
        defaults = {**constant, **{name: initial() for name, initial in made}, "Id": new_id, "ObjectVersion": 1}
        record = Record(self, wanted, new_id, "Added", defaults)
        record.dirty.update([name for name, value in defaults.items() if value is not None])
        record.by_client = by_client and self._by_caller
        check_authority(record, "create")
        if parent is not None:
            record.values[_back_reference(parent, wanted, collection)] = parent.id
            if by_client and self.context.client_initiated:
                check_edit(record)
        self.records[record.key] = record
        self._missing.discard(record.key)
        self.child_collections.attach(record)
        self._note_change(record)
        try:
            self._raise(record, "CREATENEW")
            for name, value in (values or {}).items():
                attribute = wanted.attribute(name) or wanted.by_python_name.get(name)
                if attribute is None:
                    raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, wanted.entity_type, target=name)
                if by_client:
                    self.set(record, attribute, value)
                else:
                    self.assign(record, attribute, value)
        except errors.PlatformError:
            # A script may catch the error and continue: remove the refused entity.
            self._delete(record)
            raise
        self.child_collections.mark_parents(record)
        self._fill_at_once(record)
        return record

    def set(self, record: Record, attribute: str | Attribute, value: Any) -> None:
        """A caller sets an attribute to a canonical value. Raises BadRequest for read-only and unknown ones."""
        member = self._member(record, attribute)
        if member.read_only or member.name == "Id":
            # Who writes back what was read, or what is so anyway, changes nothing.
            if value == (record.id if member.name == "Id" else record.values.get(member.name)):
                return
            raise errors.BadRequest(
                errors.READ_ONLY_PROPERTY, member.name, record.repository.entity_type, target=member.name
            )
        self._edit(record, member.name)
        if member.is_reference and value is not None:
            access.require_target(record, member, value.id if isinstance(value, Record) else value)
        self._change(record, member, value, raises=self._by_caller or self.model == "frontend")
        if member.owner and self.context.client_initiated:
            # What it is a part of now has a say, too.
            check_edit(record, member.name)
        self._fill_at_once(record)

    def _edit(self, record: Record, attribute: str) -> None:
        """A caller is about to change the record."""
        if self.context.client_initiated:
            check_edit(record, attribute)
            record.by_client = record.by_client or self._by_caller

    @property
    def _by_caller(self) -> bool:
        """Whether a caller makes the current change, not a job or a rule in the caller's dataset."""
        return self.context.client_initiated and not self._by_rule

    @property
    def _by_rule(self) -> bool:
        """Whether a rule makes the current change."""
        return any(step.is_rule for step in self.acting) if self.acting else False

    @contextmanager
    def operating(self) -> Iterator[None]:
        """Context of an operation that a caller called: the caller causes its changes (spec 05, 5.1)."""
        before, self._operating = self._operating, self._by_caller
        try:
            yield
        finally:
            self._operating = before

    def _note_change(self, record: Record) -> None:
        """Count a change of the record, and note whether a caller caused it."""
        record.mutations += 1
        if (record.by_client or self._operating) and not self._by_rule:
            record.client_caused = True

    def assign(self, record: Record, attribute: str | Attribute, value: Any) -> None:
        """Set an attribute on the server's behalf. Attribute events and dependents follow in the frontend model."""
        self._change(record, self._member(record, attribute), value, raises=self.model == "frontend")

    def _change(self, record: Record, member: Attribute, value: Any, *, raises: bool) -> None:
        """Set the attribute and raise its events (`raises`): an error prevents or undoes the change."""
        if isinstance(value, Record):
            value = value.id
        if value is not None and member.scale is not None and member.kind in (Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY):
            value = round_to_scale(member, value)
        old = record.values.get(member.name)
        if old == value and type(old) is type(value):
            return
        self._check_change(record, member.name)
        if raises and self._watches(record, _ATTRIBUTE_EVENTS, member.name):
            told = {"$OldValue": old, "$NewValue": value}
            self._apply_with_events(record, member.name, told, partial(self._apply, record, member), old, value)
        else:
            self._apply(record, member, value)

    def _check_change(self, record: Record, parameter: str) -> None:
        if record.is_deleted:
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, record.repository.entity_type, record.id)
        check_authority(record, "update", parameter)

    def _apply_with_events(
        self,
        record: Record,
        parameter: str,
        told: Mapping[str, Any],
        apply: Callable[[Any], None],
        old: Any,
        value: Any,
    ) -> None:
        """Apply the value between the attribute's events: an error of the first prevents, of the second undoes it."""
        self._raise(record, "ATTRIBUTECHANGING", parameter, told)
        custom, before = record.custom, (record.state, record.custom_changed)
        apply(value)
        try:
            self._raise(record, "ATTRIBUTECHANGED", parameter, told)
        except errors.PlatformError:
            # A script may catch the error and continue. What a rule changed besides stays.
            apply(old)
            if not (record.is_deleted or record.original_values) and record.custom == custom:
                record.state, record.custom_changed = before
            raise

    def _apply(self, record: Record, member: Attribute, value: Any) -> None:
        old = record.values.get(member.name)
        if record.state == "Unchanged":
            record.state = "Modified"
        if record.state == "Modified":
            if member.name not in record.original_values:
                record.original_values[member.name] = old
            elif record.original_values[member.name] == value:
                del record.original_values[member.name]
        record.values[member.name] = value
        record.dirty.add(member.name)
        self._note_change(record)
        if member.is_reference:
            self.child_collections.attach_by(record, member)
            if member.owner:
                self.child_collections.mark_parent(record, old)
                self.child_collections.mark_parent(record, value)
        self._follow(record)

    def set_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        """A caller sets a custom property (by code) to {"Value", "Description"?, "ValueId"?}; None removes it."""
        self._edit(record, "")
        self._change_custom(record, code, value, raises=self._by_caller or self.model == "frontend")

    def assign_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        """As `set_custom`, on the server's behalf."""
        self._change_custom(record, code, value, raises=self.model == "frontend")

    def _change_custom(self, record: Record, code: str, value: Mapping[str, Any] | None, *, raises: bool) -> None:
        """As `_change`; the parameter of the events is `@code`."""
        old = record.custom.get(code)
        if old == value:
            return
        parameter = f"@{code}"
        self._check_change(record, parameter)
        if raises and self._watches(record, _ATTRIBUTE_EVENTS, parameter):
            told = custom_event_values(record.repository, code, old, value)
            self._apply_with_events(record, parameter, told, partial(self._apply_custom, record, code), old, value)
        else:
            self._apply_custom(record, code, value)

    def _apply_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        record.custom = {**record.custom}
        if value is None:
            record.custom.pop(code, None)
        else:
            record.custom[code] = dict(value)
        record.custom_changed = True
        if record.state == "Unchanged":
            record.state = "Modified"
        self._note_change(record)

    def delete(self, record: Record, *, by_client: bool = False) -> None:
        """Mark an entity and everything it owns for deletion; a new one simply goes."""
        if record.is_deleted:
            return
        self._delete(record, by_client=by_client)
        self._follow(record)

    def _delete(self, record: Record, *, by_client: bool = False) -> None:
        if by_client:
            access.require(self.context, record.repository, "delete")
            if record.state != "Added":
                access.require_row(self.context, record, "delete")
            self._edit(record, "")
        check_authority(record, "delete")
        for child in record.repository.collections.values():
            owner = repositories[child.repository].owner
            # Entities of their own (a product's lots) do not go with it; where there are any it is in use.
            if owner is not None and owner.name == child.back_reference:
                for owned in self.children(record, child.name):
                    owned.client_caused = owned.client_caused or record.by_client or record.client_caused
                    self._delete(owned)
        was_new = record.state == "Added"
        record.state = "Deleted"
        self._note_change(record)
        self.child_collections.mark_parents(record)
        if was_new:
            del self.records[record.key]
            self.child_collections.forget(record.key)

    def _member(self, record: Record, attribute: str | Attribute) -> Attribute:
        if isinstance(attribute, Attribute):
            return attribute
        found = record.repository.attribute(attribute)
        if found is None:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, attribute, record.repository.entity_type, target=attribute)
        return found

    # --- behaviours -----------------------------------------------------------------------------------------------

    def _raise(
        self, record: Record, event: str, parameter: str = "", attributes: Mapping[str, Any] | None = None
    ) -> None:
        if self._watches(record, (event,), parameter):
            dispatch.dispatch(dispatch.Occurrence(event, record, self, parameter, attributes or {}))

    def _watches(self, record: Record, names: tuple[str, ...], parameter: str) -> bool:
        """Whether a subscriber watches one of the events; cached by repository and events."""
        key = (record.repository.name, names)
        watched = self._watched.get(key)
        if watched is None:
            found = (dispatch.watched(key[0], event) for event in names)
            watched = self._watched[key] = frozenset[str]().union(*found)
        return parameter in watched

    def raise_event(self, record: Record, event: str, parameter: str = "", **attributes: Any) -> None:
        """Raise an event of the catalogue on behalf of an operation (STATECHANGING, VOIDING …)."""
        self._raise(record, event, parameter, {f"${name}": value for name, value in attributes.items()})

    def _follow(self, record: Record) -> None:
        """In the frontend model dependents follow each change at once."""
        if self.model == "frontend":
            self.calculate([record])

    def _fill_at_once(self, record: Record) -> None:
        """In the frontend model late defaults fill in at once, save those that must wait for the commit (numbers)."""
        if self.model != "frontend" or record.state != "Added":
            return
        for late_default in record.repository.behaviours("late_defaults"):
            if not getattr(late_default, "at_commit", False):
                late_default(record)

    def calculate(self, records: Sequence[Record]) -> None:
        """Run the calculations whose triggers are dirty until nothing is; dependents of dependents included.

        Bounded: raises Refused(RULE_LOOP) naming the entity when values keep changing.
        """
        if self._calculating:
            return
        self._calculating = True
        try:
            calculate(self, records)
        finally:
            self._calculating = False

    def display_text(self, record: Record) -> str:
        """The record's display text in the caller's language, pending values included."""
        return display_text(record)

    # --- writing --------------------------------------------------------------------------------------------------

    def changed(self) -> list[Record]:
        """Every record that a commit would write, in order of entry."""
        return [record for record in self.records.values() if record.state != "Unchanged"]

    def defer_write(self, key: object, write: Callable[[], None]) -> None:
        """Run `write` in the commit's database transaction, after the entities (DeferredWork.defer)."""
        self.deferred.defer(key, write)

    def on_commit(self, action: Callable[[], None]) -> None:
        """Run `action` after this dataset's database transaction has really committed."""
        self.deferred.actions.append(action)

    @abstractmethod
    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Write everything, all or nothing; see Dataset.commit."""

    def begin_commit(self) -> None:
        """Freeze `now` for the commit."""
        self._now = utc_now()

    def end_commit(self) -> None:
        """Forget what holds for one commit only."""
        self._now = None
        self.trail.clear()
        self._watched.clear()

    def snapshot(self) -> Snapshot:
        """The changed records as they are, for `restore`."""
        return {
            key: (
                record,
                record.state,
                dict(record.values),
                dict(record.original_values),
                record.custom,
                record.custom_changed,
            )
            for key, record in self.records.items()
            if record.state != "Unchanged"
        }

    def restore(self, before: Snapshot) -> None:
        """Undo what a failed commit changed in the records: a Domain transaction keeps exactly its pending changes."""
        for key, record in list(self.records.items()):
            if key in before:
                continue
            if record.state == "Added":
                del self.records[key]
                self.child_collections.forget(key)
            elif record.state != "Unchanged":
                record.values.update(record.original_values)
                record.original_values = {}
                record.state = "Unchanged"
        for record, state, values, originals, custom, custom_changed in before.values():
            record.state, record.values, record.original_values = state, values, originals
            record.custom, record.custom_changed = custom, custom_changed
            if self.model != "frontend":
                record.dirty.update(originals if state == "Modified" else values)

    def accept_changes(self, result: CommitResult, stamp: datetime.datetime) -> None:
        """After a commit: every record is as loaded, unchanged and at its new version."""
        for record in (*result.updated, *result.touched):
            record.values["ObjectVersion"] = record.version + 1
            if record.repository.is_root:
                record.values["AggregateLastUpdateTimeUtc"] = stamp
        for record in result.deleted:
            self.records.pop(record.key, None)
            self._missing.add(record.key)
        self.pending_lookups.clear()
        self.authorities.clear()
        for record in self.records.values():
            record.state = "Unchanged"
            record.original_values = {}
            record.custom_changed = False
            record.by_client = record.client_caused = False
            record.dirty = set()
            record.version = record.values.get("ObjectVersion") or 1

    def discard(self) -> None:
        """Forget everything."""
        self.records.clear()
        self.child_collections.clear()
        self._missing.clear()
        self.deferred.clear()
        self.stated_measures.clear()
        self.pending_lookups.clear()
        self.given.clear()
        self.authorities.clear()
        self.trail.clear()
        self._watched.clear()

    @contextmanager
    def flushed(self, *, around: str | None = None) -> Iterator[None]:
        """Within, queries on this connection see the pending changes; afterwards they are gone again (autoflush).

        around: guid of the entity that a read starts from; it, its parts and what these refer to are seen although
        they lack required values (spec 03, 3.2).
        """
        if self._shown or (self.pending_source is None and not self.changed()):
            yield
            return
        self._shown = True
        try:
            with autoflush.flushed(self, around=around):
                yield
        finally:
            self._shown = False

    def new_records(self, ids: Collection[str]) -> list[Record]:
        """Those of the guids that are new entities of this dataset."""
        return [record for record in self.records.values() if record.state == "Added" and record.id in ids]

    def load_pending(self, repository: str | Repository[Any]) -> None:
        """Adopt the pending entities of the repository, so that `changed` knows them all."""
        if self.pending_source is not None:
            wanted = repositories[repository] if isinstance(repository, str) else repository
            names = [other.name for other in repositories if issubclass(other.model, wanted.model)]
            self.pending_source.load_repositories(self, names)


def _back_reference(parent: Record, child: Repository[Any], collection: str) -> str:
    """API name of the reference by which a new child belongs to the parent."""
    for known in parent.repository.collections.values():
        if collection in ("", known.name) and issubclass(child.model, repositories[known.repository].model):
            return known.back_reference
    return child.owner_attribute.name


#: (API name → value, (API name, what gives the value) …)
_Initials = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]


@derived
def _initial_values(repository: Repository[Any]) -> _Initials:
    """The values of a new entity, for what is stored: those that are always the same, and those to be made."""
    members = [attribute for attribute in repository.attributes.values() if attribute.field is not None]
    return (
        {attribute.name: None if callable(attribute.default) else attribute.default for attribute in members},
        [(attribute.name, attribute.default) for attribute in members if callable(attribute.default)],
    )
