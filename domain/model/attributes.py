"""Metadata of repository members: attributes, child collections, calculations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as field_of_class
from decimal import Decimal
from typing import Any

from django.db import models

from foundation.enums import EnumType
from foundation.kinds import Kind


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A value or a single reference of an entity. Identity is by object: one per repository and name.

    name, python_name   `PartNumber`, `part_number`
    kind                see foundation.kinds
    field               the model field; None only for DisplayText
    table, column       where it is stored (a base table's for inherited members); "" for DisplayText
    nullable            null is a legal stored value
    unique              no two entities have the same value (other than null)
    required            must have a value at commit (not nullable; late defaults may still fill it)
    read_only           callers may not set it
    system              Id, ObjectVersion, External*, AggregateLastUpdateTimeUtc, DisplayText
    calculated          computed by the platform; not part of the default representation
    key_alias           another name of the base's key (DocumentId); equal to Id, without a column
    max_length          characters; None: unbounded
    precision, scale    of decimals, amounts and quantities
    enum                of ENUM and STATE
    measure             path of API names to the currency or unit reference of an AMOUNT or QUANTITY; () for none
    default             constant or callable without arguments, applied when an entity is created; None: no default
    target              of a REFERENCE: the repository's dotted name
    owner               of a REFERENCE: refers to the aggregate parent
    secret              of a STRING: encrypted in the database (foundation.encryption); queries cannot compare it

    Derived, for code that runs at each change of a value:

    is_reference        the kind is REFERENCE
    is_measured         the value has a currency or unit
    quantum             of decimals, amounts and quantities with a scale: its last decimal place
    """

    name: str
    python_name: str
    kind: Kind
    field: models.Field[Any, Any] | None
    table: str
    column: str
    nullable: bool
    required: bool
    unique: bool = False
    read_only: bool = False
    system: bool = False
    calculated: bool = False
    key_alias: bool = False
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    enum: EnumType | None = None
    measure: tuple[str, ...] = ()
    default: Any = None
    target: str = ""
    owner: bool = False
    secret: bool = False
    is_reference: bool = field_of_class(init=False)
    is_measured: bool = field_of_class(init=False)
    quantum: Decimal | None = field_of_class(init=False)

    def __post_init__(self) -> None:
        is_measured = self.kind in (Kind.AMOUNT, Kind.QUANTITY)
        has_quantum = self.scale is not None and (is_measured or self.kind is Kind.DECIMAL)
        object.__setattr__(self, "is_reference", self.kind is Kind.REFERENCE)
        object.__setattr__(self, "is_measured", is_measured)
        object.__setattr__(self, "quantum", Decimal(1).scaleb(-(self.scale or 0)) if has_quantum else None)

    def __repr__(self) -> str:
        return f"Attribute({self.name}: {self.kind.name})"

    def initial(self) -> Any:
        """The default in canonical form, or None."""
        return self.default() if callable(self.default) else self.default


@dataclass(frozen=True, slots=True)
class Child:
    """A collection of owned entities: its API name, the children's repository, their reference back (API name).

    An empty back_reference means the child's owner reference.
    """

    name: str
    repository: str
    back_reference: str = ""


#: A function of a domain.dataset Record that fills in missing attributes.
LateDefault = Callable[[Any], None]
#: A function of a Record that raises foundation.errors.Refused if the record must not be saved.
Validation = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class AtCommit:
    """A late default that runs at commit even in the frontend model."""

    late_default: LateDefault

    def __call__(self, record: Any) -> None:
        self.late_default(record)


@dataclass(frozen=True, slots=True)
class FromSequence(AtCommit):
    """A late default that takes the next number of a sequence, which stays locked until the commit ends.

    So it runs after all other late defaults and calculations. It numbers new entities only: a stored entity that has
    lost its number must not get a different one.
    """


@dataclass(frozen=True, slots=True)
class Calculation:
    """A dependent value: `compute(record)` runs when one of `triggers` (API names) changes.

    In the frontend model it runs at once, in the order of the request body; in the common model at commit, as a late
    default, and then only if `compute` itself detects a missing value or `always` is set (totals, which callers cannot
    set).
    """

    compute: Callable[[Any], None]
    triggers: tuple[str, ...]
    always: bool = False


@dataclass(frozen=True, slots=True)
class DescribedEntity:
    """The attributes, by API name, in which a row and its parts describe an entity of another repository.

    repository  the dotted name of the entity's repository; with `by_table` the name of its table (entity_name)
    entity      its guid
    values      JSON texts with the names of attributes as keys: without references that may refer to hidden entities
    behind      a text with the names of repositories, each between spaces, whose data is in the row, too: a caller
                sees the row only if these have no rows hidden from the caller
    """

    repository: str
    entity: str
    values: tuple[str, ...] = ()
    by_table: bool = False
    behind: str = ""

    def name_of(self, repository: Any) -> str:
        """The name that rows store for a repository."""
        name: str = repository.entity_name if self.by_table else repository.name
        return name


__all__ = [
    "AtCommit",
    "Attribute",
    "Calculation",
    "Child",
    "FromSequence",
    "LateDefault",
    "DescribedEntity",
    "Validation",
]
