"""One entity inside a dataset, and what it asks of the dataset."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from identity.context import CallContext

State = Literal["Unchanged", "Added", "Modified", "Deleted"]
ModelName = Literal["common", "frontend"]


class UnitOfWork(Protocol):
    """What records, their behaviours and checks may ask of their dataset (domain.dataset.dataset.Dataset).

    context       on whose behalf the dataset acts
    model         "frontend": dependents follow each change at once; "common": at commit
    records       identity → record, in order of entry
    warnings      messages for the caller
    traces, trail what subscribers did: entries for the caller, and names for the message of a loop
    acting        rules that act at this moment, outermost first
    authorities   identity → authorities behind the changes of access data
    describing    records whose display text is being written, outermost first
    measures      (repository, code) → guid of currencies and units that callers have named
    stated_measures  identity → API name → the currency or unit that a caller gave with the value
    given         identity → Python name → value that a behaviour filled in
    """

    context: CallContext
    model: ModelName
    records: dict[tuple[str, str], Record]
    warnings: list[str]
    traces: list[Mapping[str, Any]]
    trail: deque[str]
    acting: list[Any]
    authorities: dict[tuple[str, str], set[str]]
    describing: list[tuple[str, str]]
    measures: dict[tuple[str, str], str]
    stated_measures: dict[tuple[str, str], dict[str, str]]
    given: dict[tuple[str, str], dict[str, Any]]
    pending_source: PendingSource | None
    pending_lookups: dict[tuple[str, str], Any]

    def now(self) -> datetime.datetime: ...
    def today(self) -> datetime.date: ...
    def next_number(self, sequence: str, *, width: int = 6, start: int = 1) -> str: ...
    def load(self, repository: str | Repository[Any], id: str) -> Record | None: ...
    def load_many(self, repository: str | Repository[Any], ids: Sequence[str]) -> dict[str, Record]: ...
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
    def assign_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None: ...
    def delete(self, record: Record, *, by_client: bool = False) -> None: ...
    def raise_event(self, record: Record, event: str, parameter: str = "", **attributes: Any) -> None: ...
    def calculate(self, records: Sequence[Record]) -> None: ...
    def adopt(self, record: Record) -> None: ...
    def changed(self) -> list[Record]: ...
    def new_records(self, ids: Collection[str]) -> list[Record]: ...
    def load_pending(self, repository: str | Repository[Any]) -> None: ...
    def lock_value(self, repository: Repository[Any], value: str) -> None: ...
    def flushed(self, *, around: str | None = None) -> AbstractContextManager[None]: ...
    def display_text(self, record: Record) -> str: ...
    def defer_write(self, key: object, write: Callable[[], None]) -> None: ...
    def commit(self, *, savepoint: bool = True) -> CommitResult: ...
    @property
    def deferred(self) -> Any: ...
    @property
    def child_collections(self) -> Any: ...


class Record:
    """An entity in its dataset; the same object for the same entity.

    Shipped behaviours (late defaults, calculations, validations) use Python names: `order.customer` is a Record or
    None, `order.customer_id` its guid, `order.document_no = "…"` sets on the server's behalf. Everything that acts for
    a caller goes through Dataset methods and API names instead.

    values          API name → canonical value
    original_values the values that changed, as they were loaded: API name → canonical; empty for Added
    custom          custom property code → {"Value", "Description"?, "ValueId"?}
    version         ObjectVersion at load; 0 for Added
    key             identity within a dataset: the name of the base-most repository and the guid
    dirty           API names changed since the calculations last ran
    mutations       counts changes, so that the pipeline can tell whether anything moved
    by_client       a caller edited it: edit guards and row policies apply
    client_caused   a caller caused its change, by an edit, a deletion or an operation: CLIENT* events fire
    """

    __slots__ = (
        "by_client",
        "client_caused",
        "custom",
        "custom_changed",
        "dataset",
        "dirty",
        "id",
        "key",
        "mutations",
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
    version: int
    dirty: set[str]
    mutations: int
    by_client: bool
    client_caused: bool

    def __new__(cls, dataset: UnitOfWork, repository: Repository[Any], *rest: Any) -> Record:
        """An object of the repository's own class, which has a property for each member."""
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
        self.version = 0
        self.dirty = set()
        self.mutations = 0
        self.by_client = False
        self.client_caused = False

    def __repr__(self) -> str:
        return f"<{self.repository.entity_type} {self.id} {self.state}>"

    def __getattr__(self, python_name: str) -> Any:
        raise AttributeError(f"{self.repository.name} has no {python_name}")

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def is_new(self) -> bool:
        """Not in the database yet."""
        return self.state == "Added"

    @property
    def is_deleted(self) -> bool:
        """To be deleted at commit."""
        return self.state == "Deleted"

    def is_changed(self, python_name: str) -> bool:
        """Whether the attribute differs from what the database holds; always so for a new entity's set values."""
        name = self.repository.by_python_name[python_name].name
        return name in self.original_values if self.state != "Added" else self.values.get(name) is not None

    def original(self, python_name: str) -> Any:
        """The value as loaded; None for a new entity. References give the guid."""
        name = self.repository.by_python_name[python_name].name
        if self.state == "Added":
            return None
        return self.original_values.get(name, self.values.get(name))

    def children(self, collection: str) -> list[Record]:
        """The entities of an owned collection, pending ones included, deleted ones left out."""
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
        known = self.dataset.records.get((repositories[owner.target].identity_name, target))
        return known if known is not None and known.state != "Deleted" else self.dataset.load(owner.target, target)

    @property
    def former_parent(self) -> Record | None:
        """The aggregate parent that the entity is about to leave for another one."""
        owner = self.repository.owner
        target = self.original_values.get(owner.name) if owner is not None else None
        return None if owner is None or target is None else self.dataset.load(owner.target, target)

    @property
    def root(self) -> Record:
        """The head of the aggregate; the record itself for a root."""
        current = self
        while (parent := current.parent) is not None:
            current = parent
        return current

    @property
    def roots(self) -> tuple[Record, ...]:
        """The heads of every aggregate that the record's change is a change of: two, where it moves between them."""
        former = self.former_parent
        return (self.root,) if former is None else (self.root, former.root)

    def describe(self) -> str:
        """The display text, for messages."""
        return self.dataset.display_text(self)


class PendingSource(Protocol):
    """The pending changes of a Domain transaction (domain.dataset.transactions). All methods adopt what they find."""

    def has(self, record: Record) -> bool:
        """Whether the record was adopted, and not loaded from the database by this request."""
        ...

    def load(self, dataset: UnitOfWork, identity: str, ids: Sequence[str]) -> list[Record]:
        """Pending records among the guids."""
        ...

    def load_new(self, dataset: UnitOfWork, ids: Collection[str]) -> None:
        """Pending new records among the guids, whatever they are."""
        ...

    def load_children(
        self, dataset: UnitOfWork, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]
    ) -> None:
        """Pending records that point at one of the parents."""
        ...

    def load_repositories(self, dataset: UnitOfWork, names: Sequence[str]) -> None:
        """Every pending record of the repositories."""
        ...

    def load_all(self, dataset: UnitOfWork) -> None:
        """Every pending record."""
        ...


@dataclass(slots=True)
class CommitResult:
    """What a commit did: records as they were written, by fate; `touched` are roots of which only parts changed."""

    inserted: list[Record] = field(default_factory=list)
    updated: list[Record] = field(default_factory=list)
    deleted: list[Record] = field(default_factory=list)
    touched: list[Record] = field(default_factory=list)
    #: (repository, guid, event) of the COMMITTED events that subscribers watch
    committed_events: list[tuple[str, str, str]] = field(default_factory=list)
    #: of these events: what acted in the commits that led to them, oldest first
    lineage: tuple[str, ...] = ()


#: repository → the class of its records
_classes: dict[Repository[Any], type[Record]] = {}


def _record_class(repository: Repository[Any]) -> type[Record]:
    """A class with what behaviours may ask of the repository's records: `customer`, `customer_id` for the guid alone.

    Properties are made once for a repository; to look a member up at each access took a tenth of an order's time.
    """
    found = _classes.get(repository)
    if found is None:
        members: dict[str, Any] = {"__slots__": ()}
        for python_name, attribute in repository.by_python_name.items():
            if attribute.is_reference:
                members[python_name] = property(_reader_of_target(attribute), _writer(attribute))
                members.setdefault(f"{python_name}_id", property(_reader(attribute), _writer(attribute)))
            else:
                members[python_name] = property(_reader(attribute), _writer(attribute))
        for name in members.keys() & set(dir(Record)) - {"__slots__"}:
            # What every record has goes first: `parent` is the aggregate's head and never a document's parent, which
            # only `parent_id` tells of. It is assigned to by the same name all the same.
            own = getattr(Record, name)
            if name not in Record.__slots__ and isinstance(own, property):
                members[name] = property(own.fget, members[name].fset)
            else:
                del members[name]
        found = _classes[repository] = type(repository.entity_type, (Record,), members)
    return found


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
