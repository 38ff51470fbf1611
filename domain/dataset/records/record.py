"""Record: one entity inside a dataset; and the interface of the dataset for records."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from domain.dataset.records.deferred_work import DeferredWork
from domain.dataset.tables.row_storage import Row
from domain.model.attributes import Attribute
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from identity.context import CallContext

State = Literal["Unchanged", "Added", "Modified", "Deleted"]
ModelName = Literal["common", "frontend"]


class UnitOfWork(Protocol):
    """The dataset's interface for records, behaviours and checks (domain.dataset.dataset.Dataset).

    context       the caller of the dataset
    model         "frontend": dependents follow each change at once; "common": at commit
    records       identity → record, in order of entry
    warnings      messages of WARNING actions for the caller
    traces        traces of subscribers, if the caller asked for them (spec 05, 5.5)
    recent_steps  names of rules and scripts since the last commit, newest last; shown in the message of a loop
    running_steps rules and managed scripts that run at this moment, outermost first
    authorities   identity → authorities behind the changes, in repositories that decide access or are authored
    describing    records whose display text is being rendered, outermost first: formats may refer to each other
    measure_ids   (repository, code) → guid of currencies and units that callers have named
    stated_measures  identity → API name → the currency or unit that a caller gave before the effective one was known;
                  the two must be equal at commit
    behaviour_values  identity → Python name → value of a behaviour, while nothing else has changed it
    deferred      work that events defer to the commit
    keeps_edits   a caller makes the current change, in a Domain transaction: a commit decides on it later
    memory        cache of behaviours for the lifetime of the dataset
    """

    context: CallContext
    model: ModelName
    records: dict[tuple[str, str], Record]
    warnings: list[str]
    traces: list[Mapping[str, Any]]
    recent_steps: deque[str]
    running_steps: list[Any]
    authorities: dict[tuple[str, str], set[str]]
    describing: list[tuple[str, str]]
    measure_ids: dict[tuple[str, str], str]
    stated_measures: dict[tuple[str, str], dict[str, str]]
    behaviour_values: dict[tuple[str, str], dict[str, Any]]
    deferred: DeferredWork
    memory: dict[Any, Any]

    @property
    def keeps_edits(self) -> bool: ...
    def now(self) -> datetime.datetime: ...
    def today(self) -> datetime.date: ...
    def next_number(self, sequence: str, *, width: int = 6, start: int = 1) -> str: ...
    def load(self, repository: str | Repository[Any], id: str) -> Record | None: ...
    def load_many(self, repository: str | Repository[Any], ids: Sequence[str]) -> dict[str, Record]: ...
    def load_rows(self, repository: Repository[Any], rows: Mapping[str, Row]) -> dict[str, Record]: ...
    def load_found(
        self, repository: Repository[Any], values: Mapping[str, Any], limit: int | None
    ) -> dict[str, Record]: ...
    def find_all(
        self,
        repository: str | Repository[Any],
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        **conditions: Any,
    ) -> list[Record]: ...
    def find_one(self, repository: str | Repository[Any], **conditions: Any) -> Record | None: ...
    def children(self, parent: Record, collection: str) -> list[Record]: ...
    def create(
        self,
        repository: str | Repository[Any],
        values: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        parent: Record | None = None,
        collection: str = "",
        by_client: bool = False,
    ) -> Record: ...
    def set(self, record: Record, attribute: str | Attribute, value: Any) -> None: ...
    def assign(self, record: Record, attribute: str | Attribute, value: Any) -> None: ...
    def set_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None: ...
    def assign_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None: ...
    def delete(self, record: Record, *, by_client: bool = False) -> None: ...
    def raise_event(self, record: Record, event: str, parameter: str = "", **attributes: Any) -> None: ...
    def calculate(self, records: Sequence[Record]) -> None: ...
    def calculate_only(self, records: Sequence[Record]) -> None: ...
    def add_existing(self, record: Record) -> None: ...
    def about_to_change(self, record: Record) -> None: ...
    def changed(self) -> list[Record]: ...
    @property
    def is_pending(self) -> bool: ...
    @property
    def is_committing(self) -> bool: ...
    def load_children(self, parents: Sequence[Record], collection: str) -> None: ...
    def new_records(self, ids: Collection[str]) -> list[Record]: ...
    def load_pending(self, repository: str | Repository[Any]) -> None: ...
    def lock_value(self, repository: Repository[Any], value: str) -> None: ...
    def flushed(self, *, around: str | None = None) -> AbstractContextManager[None]: ...
    def display_text(self, record: Record) -> str: ...
    def defer_write(self, key: object, write: Callable[[], None]) -> None: ...
    def commit(self, *, savepoint: bool = True) -> object: ...


class Record:
    """An entity in its dataset; the same object for the same entity.

    Built-in behaviours (late defaults, calculations, validations) use Python names: `order.customer` is a Record or
    None, `order.customer_id` its guid, `order.document_no = "…"` assigns as the server. Code that acts for a caller
    uses Dataset methods and API names instead.

    values          API name → canonical value
    original_values changed attributes' values as loaded: API name → canonical; empty for Added
    custom          custom property code → {"Value", "Description"?, "ValueId"?}
    original_custom the custom properties as loaded, if custom_changed
    version         ObjectVersion at load; 0 for Added
    key             identity within a dataset: the name of the base-most repository and the guid
    dirty           API names changed since the calculations last ran
    mutations       counts changes, so that the pipeline detects when nothing changes any more
    by_client       a caller edited it: edit guards and row policies apply
    client_caused   a caller caused its change, by an edit, a deletion or an operation: CLIENT* events fire
    committed_as    in the dataset of a COMMITTED event: what the commit did with the entity; "" elsewhere
    """

    __slots__ = (
        "by_client",
        "client_caused",
        "committed_as",
        "custom",
        "custom_changed",
        "dataset",
        "dirty",
        "id",
        "key",
        "mutations",
        "original_custom",
        "original_values",
        "repository",
        "state",
        "values",
        "version",
    )

    dataset: UnitOfWork
    repository: Repository[Any]
    id: str
    key: tuple[str, str]
    state: State
    values: dict[str, Any]
    original_values: dict[str, Any]
    custom: dict[str, Any]
    custom_changed: bool
    original_custom: dict[str, Any]
    version: int
    dirty: set[str]
    mutations: int
    by_client: bool
    client_caused: bool
    committed_as: State | Literal[""]

    def __new__(cls, dataset: UnitOfWork, repository: Repository[Any], *rest: Any) -> Record:
        """An object of the repository's record class, which has a property for each member."""
        return object.__new__(_record_class(repository))

    def __init__(
        self, dataset: UnitOfWork, repository: Repository[Any], id: str, state: State, values: dict[str, Any]
    ) -> None:
        self.dataset = dataset
        self.repository = repository
        self.id = id
        self.key = (repository.identity_name, id)
        self.state = state
        self.values = values
        self.original_values = {}
        self.custom = {}
        self.custom_changed = False
        self.original_custom = {}
        self.version = 0
        self.dirty = set()
        self.mutations = 0
        self.by_client = False
        self.client_caused = False
        self.committed_as = ""

    def __repr__(self) -> str:
        return f"<{self.repository.entity_type} {self.id} {self.state}>"

    def __getattr__(self, python_name: str) -> Any:
        raise AttributeError(f"{self.repository.name} has no {python_name}")

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def is_new(self) -> bool:
        return self.state == "Added"

    @property
    def is_deleted(self) -> bool:
        return self.state == "Deleted"

    @property
    def object_state(self) -> State:
        """ObjectState for rules and scripts (spec 14, 14.5): the pending change, after a commit the committed one."""
        return self.committed_as or self.state

    def is_changed(self, python_name: str) -> bool:
        """Whether the attribute differs from the database; for a new entity whether it has a value."""
        name = self.repository.by_python_name[python_name].name
        return name in self.original_values if self.state != "Added" else self.values.get(name) is not None

    def original(self, python_name: str) -> Any:
        """The value as loaded; None for a new entity. For references the guid."""
        name = self.repository.by_python_name[python_name].name
        if self.state == "Added":
            return None
        return self.original_values.get(name, self.values.get(name))

    def children(self, collection: str) -> list[Record]:
        """The entities of an owned collection, with pending and without deleted ones."""
        return self.dataset.children(self, collection)

    @property
    def parent(self) -> Record | None:
        """The aggregate parent; None for a root."""
        owner = self.repository.owner
        if owner is None:
            return None
        target = self.values.get(owner.name)
        if target is None:
            return None
        known = self.dataset.records.get((self.repository.owner_identity, target))
        return known if known is not None and known.state != "Deleted" else self.dataset.load(owner.target, target)

    @property
    def former_parent(self) -> Record | None:
        """The aggregate parent that the entity moves away from."""
        owner = self.repository.owner
        target = self.original_values.get(owner.name) if owner is not None else None
        return None if owner is None or target is None else self.dataset.load(owner.target, target)

    @property
    def root(self) -> Record:
        """The aggregate root; the record itself for a root."""
        current = self
        while (parent := current.parent) is not None:
            current = parent
        return current

    @property
    def roots(self) -> tuple[Record, ...]:
        """The roots of all aggregates that the record's change affects: two, if it moves between them."""
        former = self.former_parent
        return (self.root,) if former is None else (self.root, former.root)

    def describe(self) -> str:
        """The display text, for messages; the kind of entity if the text is empty."""
        return self.dataset.display_text(self) or in_words(self.repository.model.__name__)


def with_roots(records: Iterable[Record]) -> Iterator[tuple[Record, tuple[Record, ...]]]:
    """Each record with its `roots`; those of siblings are looked up once."""
    known: dict[tuple[str, Any, Any], tuple[Record, ...]] = {}
    for record in records:
        owner = record.repository.owner
        parent = None if owner is None else record.values.get(owner.name)
        if owner is None or parent is None:
            yield record, record.roots
            continue
        key = owner.target, parent, record.original_values.get(owner.name)
        if key not in known:
            known[key] = record.roots
        yield record, known[key]


#: repository → the class of its records
_classes: dict[Repository[Any], type[Record]] = {}


def _record_class(repository: Repository[Any]) -> type[Record]:
    """A record class with properties for members of the repository: `customer`, `customer_id` for the guid.

    Properties are built once per repository: a look-up at each access took a tenth of the time of creating an order.
    """
    result = _classes.get(repository)
    if result is None:
        members: dict[str, Any] = {"__slots__": ()}
        for python_name, attribute in repository.by_python_name.items():
            if attribute.is_reference:
                members[python_name] = property(_reader_of_target(attribute), _writer(attribute))
                members.setdefault(f"{python_name}_id", property(_reader(attribute), _writer(attribute)))
            else:
                members[python_name] = property(_reader(attribute), _writer(attribute))
        for name in members.keys() & set(dir(Record)) - {"__slots__"}:
            # Attributes of Record take precedence: `parent` is the aggregate's root and never a document's parent,
            # which only `parent_id` gives. Assignment still uses the name `parent`.
            own = getattr(Record, name)
            if name not in Record.__slots__ and isinstance(own, property):
                members[name] = property(own.fget, members[name].fset)
            else:
                del members[name]
        result = _classes[repository] = type(repository.entity_type, (Record,), members)
    return result


def _reader(attribute: Attribute) -> Callable[[Record], Any]:
    name = attribute.name
    if attribute.key_alias:
        return lambda record: record.id
    return lambda record: record.values.get(name)


def _reader_of_target(attribute: Attribute) -> Callable[[Record], Record | None]:
    name, target = attribute.name, repositories[attribute.target]
    identity = target.identity_name

    def read(record: Record) -> Record | None:
        value = record.values.get(name)
        if value is None:
            return None
        dataset = record.dataset
        known = dataset.records.get((identity, value))
        return known if known is not None and known.state != "Deleted" else dataset.load(target, value)

    return read


def _writer(attribute: Attribute) -> Callable[[Record, Any], None]:
    def write(record: Record, value: Any) -> None:
        record.dataset.assign(record, attribute, value)

    return write
