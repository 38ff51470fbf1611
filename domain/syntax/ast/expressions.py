"""Nodes of expressions (Part 2, section 5.1.1)."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Literal as OneOf

PrimitiveValue = None | bool | int | Decimal | str | bytes | date | datetime | time | timedelta | tuple[str | int, ...]
"""Python value of a literal; the tuple holds the members of an enumeration literal."""


LogicalOperator = OneOf["and", "or"]
ComparisonOperator = OneOf["eq", "ne", "gt", "ge", "lt", "le"]
ArithmeticOperator = OneOf["add", "sub", "mul", "div", "divby", "mod"]


class LiteralKind(Enum):
    """Kind of a primitive literal (rule primitiveLiteral), with the Python type of its value."""

    NULL = "null"  # None
    BOOLEAN = "boolean"  # bool
    INTEGER = "integer"  # int, any size
    DECIMAL = "decimal"  # Decimal, exact; also INF, -INF and NaN
    STRING = "string"  # str; may be an enumeration member, a duration or a quoted guid
    GUID = "guid"  # str, lower case with dashes
    DATE = "date"  # date
    DATE_TIME_OFFSET = "dateTimeOffset"  # datetime with the zone that was written
    TIME_OF_DAY = "timeOfDay"  # time
    DURATION = "duration"  # timedelta; only when written with the prefix: duration'P1D'
    BINARY = "binary"  # bytes
    ENUM = "enum"  # tuple of member names (str) and numbers (int); type_name says which type
    GEOGRAPHY = "geography"  # str, as written; the parser reports it as not supported
    GEOMETRY = "geometry"  # str, as written; the parser reports it as not supported


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    position: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """Rule commonExpr, section 5.1.1."""


@dataclass(frozen=True, slots=True)
class Step(Node):
    """One part of a path inside an expression, $select or $expand."""


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """Rule optionallyQualifiedTypeName: ``Edm.String``, ``Erp.X``, ``X`` or ``Collection(Erp.X)``."""

    name: str
    is_collection: bool = False


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A primitive literal with its typed value.

    text is the literal as written (without unescaping) and takes no part in equality: ``1.0`` equals ``1.00``, with
    different texts. is_exact is False if the value was truncated, because Python times end at microseconds and the
    grammar allows picoseconds. type_name is set for ENUM only.
    """

    kind: LiteralKind
    value: PrimitiveValue
    text: str = field(default="", compare=False, repr=False)
    type_name: str = ""
    is_exact: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slot(Expression):
    """Placeholder of a literal that ``parameterize_literals`` removed: values[index] is its value."""

    index: int
    kind: LiteralKind
    type_name: str = ""


Constant = Literal | Slot
"""What stands where the grammar wants a literal; a Slot only after ``parameterize_literals``."""


@dataclass(frozen=True, slots=True)
class ParameterAlias(Expression):
    """``@name`` (5.1.1.15); name has no ``@``. An alias with steps after it is the VariableStep of a Path instead."""

    name: str


@dataclass(frozen=True, slots=True)
class Path(Expression):
    """``a/b/c``: steps from the current instance, or from the variable in the first step.

    The first NameStep may be a lambda variable, which looks like a property; binding distinguishes them by scope.
    """

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CollectionExpression(Expression):
    """``(1,2)`` after ``in``, or a JSON array ``[1,"x",{...}]``, with the same meaning."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectMember(Node):
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class ObjectExpression(Expression):
    """A JSON object; members in the order written, repeated names included."""

    members: tuple[ObjectMember, ...]


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """``a and b and c`` is one node with three operands, so that long chains do not nest."""

    operator: LogicalOperator
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Negate(Expression):
    """Unary minus. A minus directly before a number is part of the literal."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Membership(Expression):
    """``operand in collection``; the collection is a CollectionExpression, a Path or a ParameterAlias."""

    operand: Expression
    collection: Expression


@dataclass(frozen=True, slots=True)
class Has(Expression):
    """``operand has Ns.Color'Red,Blue'``; flags is an ENUM or STRING literal or a ParameterAlias."""

    operand: Expression
    flags: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A built-in or platform function with positional arguments; name is the canonical spelling.

    Names and numbers of arguments are checked against ``functions.FUNCTIONS``. ``cast``, ``isof`` and ``case`` have
    their own nodes; functions of the model are a NameStep with Arguments.
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class CaseBranch(Node):
    condition: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """``case(c1:v1,c2:v2)``: the value of the first branch whose condition is true, else null (5.1.1.13)."""

    branches: tuple[CaseBranch, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``cast(operand,type)``; operand None casts the current instance."""

    operand: Expression | None
    type: TypeName


@dataclass(frozen=True, slots=True)
class IsOf(Expression):
    """``isof(operand,type)``; operand None tests the current instance."""

    operand: Expression | None
    type: TypeName
