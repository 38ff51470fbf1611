"""The change tracker: an identity map of records, their changes, and the events of these."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.utils.translation import gettext

from domain.dataset.checks import access, database_errors
from domain.dataset.checks.authority import Authority, RunningStep, check_authority
from domain.dataset.checks.edit_rules import check_edit
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.lookups.custom_defaults import fill_custom_defaults
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.deferred_work import DeferredWork
from domain.dataset.records.pending_source import PendingSource
from domain.dataset.records.record import ModelName, Record
from domain.dataset.tables import number_sequences
from domain.dataset.tables.row_storage import Row
from domain.dataset.templates.display_text import display_text
from domain.dataset.unit import autoflush, find
from domain.dataset.unit.attribute_changes import AttributeChanges
from domain.dataset.unit.calculations import calculate
from domain.dataset.unit.child_collections import ChildCollections
from domain.dataset.unit.events import Events
from domain.dataset.unit.initial_values import back_reference, initial_values
from domain.dataset.unit.loading import Loader
from domain.dataset.unit.lookups import Lookups
from domain.dataset.unit.undo import Undo
from domain.model.attributes import AtCommit, Attribute
from domain.model.behaviours import late_defaults_of
from domain.model.model_version import follow_if_first
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.context import CallContext


class ChangeTracker(ABC):
    """An identity map with changes. Not thread-safe; lives within one request, script or command.

    UnitOfWork describes the attributes that records and behaviours use.

    model            "frontend": dependents follow each change at once, with attribute events of their own; "common": at
                     commit. A caller's change raises attribute events in both
    lineage          of the dataset of a COMMITTED event: rules and scripts of the commits that led to it
    locks            of a dataset that is created and committed in one database transaction
    pending_source   pending changes of a Domain transaction; None outside of one
    undo             what an open block of `undoing` has changed
    """

    def __init__(
        self,
        context: CallContext,
        *,
        model: ModelName = "common",
        lineage: tuple[str, ...] = (),
        locks: AdvisoryLocks | None = None,
    ) -> None:
        follow_if_first()
        self.context = context
        self.model: ModelName = model
        self.warnings: list[str] = []
        self.traces: list[Mapping[str, Any]] = []
        self.recent_steps: deque[str] = deque(maxlen=12)
        self.running_steps: list[RunningStep] = []
        self.authorities: dict[tuple[str, str], set[Authority]] = {}
        #: identity → codes of the rules that made changes of the entity, in order
        self.rules_behind: dict[tuple[str, str], dict[str, None]] = {}
        self.describing: list[tuple[str, str]] = []
        self.lineage = lineage
        self.records: dict[tuple[str, str], Record] = {}
        self.deferred = DeferredWork()
        self.measure_ids: dict[tuple[str, str], str] = {}
        self.stated_measures: dict[tuple[str, str], dict[str, str]] = {}
        self.behaviour_values: dict[tuple[str, str], dict[str, Any]] = {}
        self.memory: dict[Any, Any] = {}
        self.lookups = Lookups(locks)
        self.pending_source: PendingSource | None = None
        self.child_collections = ChildCollections(self)
        self.undo = Undo(self)
        self._loader = Loader(self)
        self._events = Events(self)
        self._changes = AttributeChanges(self, self._events)
        self._calculating = False
        #: Whether an operation called by the caller is running: the caller causes its changes.
        self._operating = False
        #: Whether pending changes are flushed for a query (`flushed`).
        self._shown = False
        #: Whether a commit has written the pending changes: queries see them as they are.
        self.rows_written = False
        #: Counts the changes of all entities.
        self.changes = 0
        self._now: datetime.datetime | None = None

    # --- time and numbers -----------------------------------------------------------------------------------------

    def now(self) -> datetime.datetime:
        """The time of the dataset, constant during a commit."""
        return self._now or utc_now()

    def today(self) -> datetime.date:
        """The date of `now` (UTC)."""
        return self.now().date()

    def next_number(self, sequence: str, *, width: int = 6, start: int = 1) -> str:
        """The next number of a gap-free sequence, zero-padded; the sequence stays locked until the commit ends."""
        return number_sequences.next_number(sequence, width=width, start=start)

    # --- identity -------------------------------------------------------------------------------------------------

    def load(self, repository: str | Repository[Any], id: str) -> Record | None:
        """The entity, from the dataset or the database; None if there is none (one deleted here counts as none).

        Server-side: checks no permission. `open` is for callers.
        """
        return self._loader.load(_named(repository), id)

    def load_many(self, repository: str | Repository[Any], ids: Sequence[str]) -> dict[str, Record]:
        """Guid → record of existing entities, with one query for those that are not in the dataset yet."""
        return self._loader.load_many(_named(repository), ids)

    def load_found(
        self, repository: Repository[Any], values: Mapping[str, Any], limit: int | None
    ) -> dict[str, Record]:
        """Guid → record of the entities that are stored with these values, in order of creation."""
        return self._loader.load_found(repository, values, limit)

    def load_rows(self, repository: Repository[Any], rows: Mapping[str, Row]) -> dict[str, Record]:
        """As `load_many`, for rows that have been read already."""
        return self._loader.load_rows(repository, rows)

    def open(self, repository: Repository[Any], id: str, operation: access.Operation = "read") -> Record:
        """As `load`, for a caller. Raises NotFound (missing or not visible) or Forbidden (operation not permitted)."""
        access.require(self.context, repository, "read")
        # An empty key comes from a null reference.
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

    def add_existing(self, record: Record) -> None:
        """Add an existing record (a pending row) to the identity map."""
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

        Server-side: checks no permission. Sees pending changes of this dataset.
        """
        wanted = _named(repository)
        members = None if order_by else find.value_members(wanted, conditions)
        if members is not None:
            return find.find_by_value(self, wanted, members, limit)
        with self.flushed():
            ids = find.look_up(wanted, conditions, order_by, limit)
        loaded = self.load_many(wanted, ids)
        return [loaded[id] for id in ids if id in loaded and not loaded[id].is_deleted]

    def find_one(self, repository: str | Repository[Any], **conditions: Any) -> Record | None:
        """The first match by key order, or None."""
        result = self.find_all(repository, limit=1, **conditions)
        return result[0] if result else None

    def children(self, parent: Record, collection: str) -> list[Record]:
        """The entities of an owned collection, in order of creation; deleted ones left out."""
        return self.child_collections.of(parent, collection)

    def load_children(self, parents: Sequence[Record], collection: str) -> None:
        """Load an owned collection of many parents, so that `children` runs no query for them."""
        self.child_collections.load(parents, collection)

    def lock_value(self, repository: Repository[Any], value: str) -> None:
        """Lock a value without a unique index, before a validation checks at commit whether it is taken."""
        self.lookups.lock_value(repository, value)

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
        """Create an entity with its defaults, then `values` (API or Python names → canonical values) in order.

        It belongs to `parent` by the reference back of the parent's `collection`, or of the first that fits. With
        `by_client` permissions are checked and read-only attributes are refused, as for every edit of a caller.
        """
        wanted = _named(repository)
        if wanted.abstract:
            raise errors.BadRequest(
                errors.INVALID_BODY,
                gettext("{0} is abstract; name a derived type in @odata.type.").replace("{0}", wanted.entity_type),
            )
        if by_client:
            access.require(self.context, wanted, "create")
        if id is not None and self._loader.is_known(wanted, id):
            raise database_errors.key_taken(wanted, id)
        new_id = id or new_guid()
        defaults = initial_values(wanted, new_id)
        record = Record(self, wanted, new_id, "Added", defaults)
        record.dirty.update([name for name, value in defaults.items() if value is not None])
        record.by_client = by_client and self._by_caller
        self.undo.note_new(record.key)
        check_authority(record, "create")
        if parent is not None:
            record.values[back_reference(parent, wanted, collection)] = parent.id
            if by_client and self.context.client_initiated:
                check_edit(record)
        self.records[record.key] = record
        self._loader.missing.discard(record.key)
        self.child_collections.attach(record)
        self.note_change(record)
        try:
            fill_custom_defaults(record)
            self._events.raise_event(record, "CREATENEW")
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
        """Set an attribute to a canonical value for the caller. Raises BadRequest for read-only and unknown ones."""
        member = self._member(record, attribute)
        if member.read_only or member.name == "Id":
            if value == (record.id if member.name == "Id" else record.values.get(member.name)):
                return
            raise errors.BadRequest(
                errors.READ_ONLY_PROPERTY, member.name, record.repository.entity_type, target=member.name
            )
        # Writing the current value back is no edit: a document that cannot be edited may be imported as it is.
        is_edit = not self._changes.is_current(record, member, value)
        self._edit(record, member.name, is_edit=is_edit)
        if member.is_reference and value is not None:
            access.require_target(record, member, value.id if isinstance(value, Record) else value)
        self._changes.change(record, member, value, raises=self._by_caller or self.model == "frontend")
        if is_edit and member.owner and self.context.client_initiated:
            # The new owner has to permit the change, too.
            check_edit(record, member.name)
        self._fill_at_once(record)

    def _edit(self, record: Record, attribute: str, *, is_edit: bool = True) -> None:
        """Check that the caller may change the record."""
        self.about_to_change(record)
        if self.context.client_initiated:
            if is_edit:
                check_edit(record, attribute)
            record.by_client = record.by_client or self._by_caller

    @property
    def _by_caller(self) -> bool:
        """Whether a caller makes the current change, not a job or a rule in the caller's dataset."""
        return self.context.client_initiated and not self.by_rule

    @property
    def keeps_edits(self) -> bool:
        """Whether a caller makes the current change in a Domain transaction, so that a commit decides on it later."""
        return self.pending_source is not None and self._by_caller

    @property
    def by_rule(self) -> bool:
        """Whether a rule makes the current change."""
        return bool(self.running_steps) and any(step.is_rule for step in self.running_steps)

    @contextmanager
    def operating(self) -> Iterator[None]:
        """Context of an operation called by the caller, who causes its changes (spec 05, 5.1)."""
        before, self._operating = self._operating, self._by_caller
        try:
            yield
        finally:
            self._operating = before

    def undoing(self) -> AbstractContextManager[None]:
        """If the block fails, undo its changes of entities and its deferred work, but for those that it has committed.

        For calls of a script, which may catch the error and go on.
        """
        return self.undo.block()

    def about_to_change(self, record: Record) -> None:
        """Record the entity for `undoing`, before each change of it."""
        if self.undo.blocks:
            self.undo.note(record)

    def note_change(self, record: Record) -> None:
        """Count a change of the record, and record whether a caller caused it."""
        record.mutations += 1
        self.changes += 1
        if self.by_rule:
            rule = next(step.code or step.name for step in reversed(self.running_steps) if step.is_rule)
            self.rules_behind.setdefault(record.key, {})[rule] = None
        elif record.by_client or self._operating:
            record.client_caused = True

    def assign(self, record: Record, attribute: str | Attribute, value: Any) -> None:
        """Set an attribute as the server. Attribute events and dependents follow in the frontend model."""
        member = attribute if isinstance(attribute, Attribute) else self._member(record, attribute)
        self._changes.change(record, member, value, raises=self.model == "frontend")

    def set_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        """Set a custom property (by code) to {"Value", "Description"?, "ValueId"?} for the caller; None removes it."""
        self._edit(record, "")
        self._changes.change_custom(record, code, value, raises=self._by_caller or self.model == "frontend")

    def assign_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        """As `set_custom`, as the server."""
        self._changes.change_custom(record, code, value, raises=self.model == "frontend")

    def withdraw(self, record: Record, *, kept: Collection[str] = ()) -> None:
        """Take back the pending changes of a stored entity's attributes, except the `kept` ones, as if never made."""
        withdrawn = {name: value for name, value in record.original_values.items() if name not in kept}
        if not withdrawn:
            return
        self.about_to_change(record)
        record.values.update(withdrawn)
        for name in withdrawn:
            del record.original_values[name]
        record.dirty -= withdrawn.keys()
        self.stated_measures.pop(record.key, None)
        self.behaviour_values.pop(record.key, None)
        self.note_change(record)
        if not record.original_values and not record.custom_changed:
            record.by_client = record.client_caused = False

    def delete(self, record: Record, *, by_client: bool = False) -> None:
        """Mark an entity with its owned entities for deletion; a new one is removed at once."""
        if record.is_deleted:
            return
        self._delete(record, by_client=by_client)
        self.recalculate_dependents(record)

    def _delete(self, record: Record, *, by_client: bool = False) -> None:
        if by_client:
            access.require(self.context, record.repository, "delete")
            if record.state != "Added":
                access.require_row(self.context, record, "delete")
            self._edit(record, "")
        self.about_to_change(record)
        check_authority(record, "delete")
        for child in record.repository.collections.values():
            owner = repositories[child.repository].owner
            # Independent entities (a product's lots) are not deleted with it; if there are any it is in use.
            if owner is not None and owner.name == child.back_reference:
                for owned in self.children(record, child.name):
                    self.about_to_change(owned)
                    owned.client_caused = owned.client_caused or record.by_client or record.client_caused
                    self._delete(owned)
        was_new = record.state == "Added"
        record.state = "Deleted"
        self.note_change(record)
        self.child_collections.mark_parents(record)
        if was_new:
            del self.records[record.key]
            self.child_collections.forget(record.key)

    def _member(self, record: Record, attribute: str | Attribute) -> Attribute:
        if isinstance(attribute, Attribute):
            return attribute
        result = record.repository.attribute(attribute)
        if result is None:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, attribute, record.repository.entity_type, target=attribute)
        return result

    # --- behaviours -----------------------------------------------------------------------------------------------

    def raise_event(self, record: Record, event: str, parameter: str = "", **attributes: Any) -> None:
        """Raise an event of the catalogue for an operation (STATECHANGING, VOIDING …)."""
        self._events.raise_event(record, event, parameter, {f"${name}": value for name, value in attributes.items()})

    def recalculate_dependents(self, record: Record) -> None:
        """In the frontend model, recalculate dependents at once."""
        if self.model == "frontend":
            self.calculate([record])

    def _fill_at_once(self, record: Record) -> None:
        """In the frontend model, run late defaults at once, except those that must wait for the commit (numbers)."""
        if self.model != "frontend" or record.state != "Added":
            return
        for late_default in late_defaults_of(record.repository):
            if not isinstance(late_default, AtCommit):
                late_default(record)

    def calculate(self, records: Sequence[Record]) -> None:
        """Run the calculations whose triggers are dirty until none is; dependents of dependents included.

        Bounded: raises Refused(RULE_LOOP) naming the entity if values keep changing.
        """
        if self._calculating:
            return
        self._calculating = True
        try:
            calculate(self, records)
        finally:
            self._calculating = False

    def calculate_only(self, records: Sequence[Record]) -> None:
        """As `calculate`; a Dataset leaves other pending changes to the commit."""
        self.calculate(records)

    def display_text(self, record: Record) -> str:
        """The record's display text in the caller's language, including pending values."""
        return display_text(record)

    # --- writing --------------------------------------------------------------------------------------------------

    def changed(self) -> list[Record]:
        """Every record that a commit would write, in order of entry."""
        return [record for record in self.records.values() if record.state != "Unchanged"]

    @property
    def is_pending(self) -> bool:
        """Whether entities may differ from what the database has stored."""
        return self.pending_source is not None or bool(self.changed())

    def defer_write(self, key: object, write: Callable[[], None]) -> None:
        """Run `write` in the commit's database transaction, after the entities (DeferredWork.defer)."""
        self.undo.note_deferred()
        self.deferred.defer(key, write)

    def on_commit(self, action: Callable[[], None]) -> None:
        """Run `action` after this dataset's database transaction has committed."""
        self.undo.note_deferred()
        self.deferred.actions.append(action)

    @abstractmethod
    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Write all changes or none; see Dataset.commit."""

    def set_commit_time(self) -> None:
        """Set `now`, the time of the commit, until the commit ends."""
        self._now = utc_now()

    def end_commit(self) -> None:
        """Clear the state of one commit."""
        self._now = None
        self.rows_written = False
        self.recent_steps.clear()
        self._events.forget_subscribers()

    def forget(self, key: tuple[str, str]) -> None:
        """Remove an entity that a commit has deleted."""
        self.records.pop(key, None)
        self._loader.missing.add(key)

    def discard(self) -> None:
        """Discard all changes."""
        self.undo.end()
        self.records.clear()
        self.child_collections.clear()
        self._loader.missing.clear()
        self.deferred.clear()
        self.stated_measures.clear()
        self.lookups.pending.clear()
        self.behaviour_values.clear()
        self.authorities.clear()
        self.rules_behind.clear()
        self.recent_steps.clear()
        self._events.forget_subscribers()

    @contextmanager
    def flushed(self, *, around: str | None = None) -> Iterator[None]:
        """Within the block, queries on this connection see the pending changes (autoflush).

        around: guid of the entity that a read starts from; it, its parts and their targets are visible although they
        lack required values (spec 03, 3.2).
        """
        with self._flushing(around, None):
            yield

    @contextmanager
    def _flushing(self, around: str | None, preview: autoflush.PendingPreview | None) -> Iterator[None]:
        if self._shown or self.rows_written or not self.is_pending:
            yield
            return
        self._shown = True
        try:
            with autoflush.flushed(self, around=around, preview=preview):
                yield
        finally:
            self._shown = False

    @property
    def is_committing(self) -> bool:
        """Whether a commit is running."""
        return self._now is not None

    def new_records(self, ids: Collection[str]) -> list[Record]:
        """The new entities of this dataset among the guids."""
        return [record for record in self.records.values() if record.state == "Added" and record.id in ids]

    def load_pending(self, repository: str | Repository[Any]) -> None:
        """Load the pending entities of the repository, so that `changed` includes them."""
        if self.pending_source is not None:
            wanted = _named(repository)
            names = [other.name for other in repositories if issubclass(other.model, wanted.model)]
            self.pending_source.load_repositories(names)


def _named(repository: str | Repository[Any]) -> Repository[Any]:
    return repositories[repository] if isinstance(repository, str) else repository
