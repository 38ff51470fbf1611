"""The bound tree: an expression with names resolved to attributes and a type for each node.

The binder (`bind`) creates it from the syntax tree, `sql` compiles it to SQL. Nodes are frozen and compare by value, so
that equal parts can be shared (joins by path, measures).

::

    Bound (type, nullable)
    ├── Column             a stored attribute of a Source
    ├── Input              a literal, a parameterized literal or a value of the call
    ├── Output             a column of a derived relation ($apply, $compute)
    ├── Call               a function by the engine's own name
    ├── Compare Member     eq ne gt ge lt le · in
    ├── Logic Negation     and or · not
    ├── Choice             case
    ├── AnyText TextItem   a predicate over the texts of a multilanguage value, and the tested text
    ├── Quantified Counted any/all · $count of a collection
    ├── ListValue          sum, count, first or list of a value of Rows
    ├── Computed           an operator without SQL, computed after the page is read
    ├── Scripted ScriptFailed   a JavaScript calculated attribute, and whether its script failed
    └── RootValue          a value of an entity with a given key, `$root/Set(key)/…`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

from domain.model.attributes import Attribute
from domain.model.repository import Repository
from domain.syntax.ast import LiteralKind
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message


class Sort(Enum):
    """Sort of an expression's values; the enum's value is its name in messages."""

    GUID = "Edm.Guid"
    STRING = "Edm.String"
    NUMBER = "Edm.Decimal"
    BOOL = "Edm.Boolean"
    DATE = "Edm.Date"
    DATETIME = "Edm.DateTimeOffset"
    TIME = "Edm.TimeOfDay"
    DURATION = "Edm.Duration"
    BINARY = "Edm.Binary"
    ENUM = "enumeration"
    STATE = "Erp.General_DocumentState"
    TEXTS = "Erp.MultilanguageString"
    REFERENCE = "reference"
    CUSTOM = "Erp.CustomPropertyValue"
    SECRET = "encrypted text"  # noqa: S105 (a name of a type)
    NULL = "null"


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of an expression.

    scale    of NUMBER: decimal places as stored; 0 for integers; None: not fixed (quotients, averages)
    integer  of NUMBER: an Edm.Int32 rather than a decimal
    enum     of ENUM and STATE
    target   of REFERENCE: dotted repository name
    """

    sort: Sort
    scale: int | None = None
    integer: bool = False
    enum: EnumType | None = None
    target: str = ""

    def __str__(self) -> str:
        if self.sort is Sort.NUMBER and self.integer:
            return "Edm.Int32"
        if self.sort is Sort.ENUM and self.enum is not None:
            return f"Erp.{self.enum.edm_name}"
        if self.sort is Sort.REFERENCE:
            return Message("reference to {0}", self.target)
        return str(self.sort.value)


GUID = ValueType(Sort.GUID)
STRING = ValueType(Sort.STRING)
INTEGER = ValueType(Sort.NUMBER, scale=0, integer=True)
REAL = ValueType(Sort.NUMBER, scale=None)
BOOL = ValueType(Sort.BOOL)
DATE = ValueType(Sort.DATE)
DATETIME = ValueType(Sort.DATETIME)
TIME = ValueType(Sort.TIME)
DURATION = ValueType(Sort.DURATION)
BINARY = ValueType(Sort.BINARY)
STATE = ValueType(Sort.STATE, enum=DOCUMENT_STATE)
TEXTS = ValueType(Sort.TEXTS)
CUSTOM = ValueType(Sort.CUSTOM)
SECRET = ValueType(Sort.SECRET)
NULL = ValueType(Sort.NULL)

_BY_KIND = {
    Kind.GUID: GUID,
    Kind.STRING: STRING,
    Kind.INT: INTEGER,
    Kind.BOOL: BOOL,
    Kind.DATE: DATE,
    Kind.DATETIME: DATETIME,
    Kind.BINARY: BINARY,
    Kind.STATE: STATE,
    Kind.MULTILANGUAGE: TEXTS,
}


def decimal_type(scale: int | None) -> ValueType:
    """The type of decimals with `scale` places."""
    return ValueType(Sort.NUMBER, scale=scale)


def type_of(attribute: Attribute) -> ValueType:
    """The type of an attribute's stored value; an amount or quantity is its number."""
    if attribute.kind in (Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY):
        return decimal_type(attribute.scale or 0)
    if attribute.kind is Kind.ENUM:
        return ValueType(Sort.ENUM, enum=attribute.enum)
    if attribute.kind is Kind.REFERENCE:
        return ValueType(Sort.REFERENCE, target=attribute.target)
    return SECRET if attribute.secret else _BY_KIND[attribute.kind]


@dataclass(frozen=True, slots=True)
class Source:
    """A row in scope: of a set, a lambda variable, or the target of a path of references.

    number     identifies the root of the path (new_root)
    reference  leads from `parent` to this row; None with a parent: the same row seen as a derived type
    nullable   the row may not exist
    guarded    the caller's rights restrict the repository, so a stored reference may have a hidden target
    """

    repository: Repository[Any]
    number: int = 0
    parent: Source | None = None
    reference: Attribute | None = None
    nullable: bool = False
    guarded: bool = False


_root_numbers = itertools.count(1)


def new_root(repository: Repository[Any], *, nullable: bool = False, guarded: bool = False) -> Source:
    """A new row variable: of a set, a lambda or a subquery."""
    return Source(repository, next(_root_numbers), nullable=nullable, guarded=guarded)


@dataclass(frozen=True, slots=True)
class Bound:
    """Any typed expression. `nullable`: it may be null."""

    type: ValueType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Column(Bound):
    """A stored attribute. Id of a source is the attribute Id."""

    source: Source
    attribute: Attribute


@dataclass(frozen=True, slots=True)
class ConcreteType(Bound):
    """The dotted name of a polymorphic row's own repository."""

    source: Source


@dataclass(frozen=True, slots=True)
class CustomText(Bound):
    """`Value` (or another member) of the custom property with this code, as text; the whole object without a member.

    kind    of the values that the definition permits
    target  the repository whose entities are values, if some may be hidden from the caller: such a value is null
    """

    source: Source
    code: str
    member: str = "Value"
    kind: Kind = Kind.STRING
    target: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value known when the plan is made."""

    value: Any


@dataclass(frozen=True, slots=True)
class FromSlot:
    """The value of a parameterized literal."""

    index: int


@dataclass(frozen=True, slots=True)
class FromCall:
    """A value of the call: `now`, `language`, `user.Id`, `user.Login`, …, `company.Id`; see access.CALL_VALUES."""

    name: str


Origin = Fixed | FromSlot | FromCall


@dataclass(frozen=True, slots=True)
class Input(Bound):
    """A literal or a value of the call. `convert` gives the canonical value of `type`, or raises BadRequest.

    literal is its written form, as long as the type of the other operand may still decide its meaning.
    """

    origin: Origin
    convert: Callable[[Any], Any]
    literal: LiteralKind | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class Output(Bound):
    """A column of a derived relation, by name."""

    name: str
    relation: int = 0


@dataclass(frozen=True, slots=True)
class Call(Bound):
    """A function by the engine's own name (see dialects); its arguments already have the required types."""

    name: str
    arguments: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Compare(Bound):
    """Comparison of values of one type. Never null (OData 4.01, 5.1.1.1): eq and ne compare null, others give false."""

    operator: Literal["eq", "ne", "gt", "ge", "lt", "le"]
    left: Bound
    right: Bound


@dataclass(frozen=True, slots=True)
class Member(Bound):
    """operand in (items); items are of the operand's type."""

    operand: Bound
    items: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Logic(Bound):
    """Three-valued and/or (5.1.1.1.7, 5.1.1.1.8)."""

    operator: Literal["and", "or"]
    operands: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Negation(Bound):
    """Three-valued not."""

    operand: Bound


@dataclass(frozen=True, slots=True)
class Choice(Bound):
    """case: the first branch whose condition is true, else null."""

    branches: tuple[tuple[Bound, Bound], ...]


@dataclass(frozen=True, slots=True)
class TextItem(Bound):
    """Inside AnyText: the tested text."""


@dataclass(frozen=True, slots=True)
class AnyText(Bound):
    """Whether the text of some language in `texts` satisfies `predicate`; null texts have none.

    needle is a string that the text must contain for the predicate to hold, if known: a cheap first test.
    """

    texts: Bound
    predicate: Bound
    needle: Bound | None = None


@dataclass(frozen=True, slots=True)
class Quantified(Bound):
    """any/all: some row of the collection satisfies the predicate (`some`), or every row does."""

    some: bool
    owner: Source
    back: Column
    variable: Source
    predicate: Bound | None


@dataclass(frozen=True, slots=True)
class Counted(Bound):
    """Number of rows of the collection that satisfy the predicate."""

    owner: Source
    back: Column
    variable: Source
    predicate: Bound | None


@dataclass(frozen=True, slots=True)
class Order:
    """One key of an order."""

    expression: Bound
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of a calculated attribute: the rows that `owner` owns, or those of a whole repository.

    back    the rows' reference to the owner; None for a repository
    limit   of the rows in this order; None for all of them
    """

    variable: Source
    owner: Source | None = None
    back: Column | None = None
    predicate: Bound | None = None
    orders: tuple[Order, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ListValue(Bound):
    """`function` of `value` over the rows: the sum (0 of none), their number, the first row's value, the texts joined.

    Null counts neither in sums nor in joined texts; joined texts of no rows are null.
    """

    function: Literal["sum", "count", "first", "list"]
    rows: Rows
    value: Bound
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Computed(Bound):
    """An operator of a calculated attribute that is implemented in Python only.

    attribute  API name, and operator: for the error if a query uses it
    compute    canonical values of the arguments, language → canonical value; None for null and for an error
    """

    attribute: str
    operator: str
    compute: Callable[..., Any]
    arguments: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Scripted(Bound):
    """A JavaScript calculated attribute (API name) of the repository's row with this key; null where it fails."""

    repository: str
    attribute: str
    key: Bound


@dataclass(frozen=True, slots=True)
class ScriptFailed(Bound):
    """Whether the script failed for the row."""

    script: Scripted


@dataclass(frozen=True, slots=True)
class RootValue(Bound):
    """`value` of the row `variable` with this key; null if it does not exist or is hidden from the caller."""

    variable: Source
    key: Bound
    value: Bound


TRUE = Input(BOOL, False, Fixed(True), bool)
FALSE = Input(BOOL, False, Fixed(False), bool)


def fixed(value: Any, value_type: ValueType) -> Input:
    """A canonical constant."""
    return Input(value_type, value is None, Fixed(value), unchanged)


def unchanged(value: Any) -> Any:
    """The conversion of canonical values."""
    return value


def call(name: str, value_type: ValueType, *arguments: Bound) -> Call:
    """A call of a function that is null exactly if an argument is."""
    return Call(value_type, any(argument.nullable for argument in arguments), name, arguments)


def all_of(*predicates: Bound | None) -> Bound | None:
    """The conjunction of the predicates that are not None; None without any."""
    present = tuple(predicate for predicate in predicates if predicate is not None)
    if len(present) < 2:
        return present[0] if present else None
    return Logic(BOOL, any(part.nullable for part in present), "and", present)


def any_of(*predicates: Bound) -> Bound:
    """The disjunction of one or more predicates."""
    if len(predicates) == 1:
        return predicates[0]
    return Logic(BOOL, any(part.nullable for part in predicates), "or", predicates)


@lru_cache(maxsize=4096)
def python_operator(node: Any) -> str | None:
    """The first operator in an expression that is implemented in Python only; None without one."""
    if isinstance(node, Computed):
        return node.operator
    if isinstance(node, Scripted):
        return "JavaScript"
    if isinstance(node, tuple):
        parts: Iterable[Any] = node
    elif isinstance(node, Bound | Rows | Order):
        parts = (getattr(node, each.name) for each in fields(node))
    else:
        return None
    return next((found for part in parts if (found := python_operator(part)) is not None), None)
