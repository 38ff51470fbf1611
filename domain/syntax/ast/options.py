"""Nodes of query options (Part 2, section 5)."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Constant, Expression, Node, Step
from domain.syntax.ast.search import SearchExpression

if TYPE_CHECKING:
    from domain.syntax.ast.apply import Transformation

LEVELS_MAX: Final = "max"


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class ComputeItem(Node):
    """``expression as alias``."""

    expression: Expression
    alias: str


@dataclass(frozen=True, slots=True)
class AliasValue(Node):
    """``@name=value``: what a ParameterAlias stands for; name has no ``@``."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class QueryOptions(Node):
    """Query options of a request, or nested ones in $expand and $select.

    An empty tuple or None means that the option was not given; the grammar has no empty $select and the like.
    levels occurs only nested in $expand; the fields from format on only at the top. custom keeps every option that
    is neither a system option nor an alias, decoded, in order, duplicates included.
    """

    filter: Expression | None = None
    search: SearchExpression | None = None
    select: "tuple[SelectItem, ...]" = ()
    expand: "tuple[ExpandItem, ...]" = ()
    orderby: tuple[OrderItem, ...] = ()
    compute: tuple[ComputeItem, ...] = ()
    apply: "tuple[Transformation, ...]" = ()
    top: Constant | None = None
    skip: Constant | None = None
    count: bool | None = None
    levels: int | OneOf["max"] | None = None
    aliases: tuple[AliasValue, ...] = ()
    format: str | None = None
    skiptoken: str | None = None
    deltatoken: str | None = None
    schemaversion: str | None = None
    index: int | None = None
    id: str | None = None
    custom: tuple[tuple[str, str], ...] = ()


NO_OPTIONS: Final = QueryOptions()


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """Rule selectItem, section 5.1.4.

    path holds NameStep (properties, casts, operations, the member ``default``), AnnotationStep, or ends in StarStep
    or AllOperationsStep. parameters are the names that pick a function overload, None where there were none.
    """

    path: tuple[Step, ...]
    options: QueryOptions = NO_OPTIONS
    parameters: tuple[str, ...] | None = None


class ExpandKind(Enum):
    """What of the path is expanded."""

    ENTITIES = ""
    REF = "$ref"
    COUNT = "$count"
    VALUE = "$value"  # the media stream; the parser reports it as not supported


@dataclass(frozen=True, slots=True)
class ExpandItem(Node):
    """Rule expandItem, section 5.1.3. path holds NameStep (properties and casts), AnnotationStep, a last StarStep."""

    path: tuple[Step, ...]
    kind: ExpandKind = ExpandKind.ENTITIES
    options: QueryOptions = NO_OPTIONS
