"""Nodes of query options (Part 2, section 5), of the paths in them, and of $apply (Data Aggregation 4.0).

One module, because the nodes contain one another: $expand may hold $apply, and $apply may hold $expand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Constant, Expression, Node, Path, Step
from domain.syntax.ast.search import SearchExpression


@dataclass(frozen=True, slots=True)
class NamedArgument(Node):
    """``name=value``. In resource paths the value is a Literal or a ParameterAlias; in expressions any Expression."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Key(Node):
    """``(value)``: a key without name. A quoted guid is a STRING literal; binding converts it to the key's type."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Arguments(Node):
    """``()`` or ``(a=1,b=@x)``: arguments of a function, or a key by (alternate) names. Binding decides."""

    items: tuple[NamedArgument, ...]


@dataclass(frozen=True, slots=True)
class NameStep(Step):
    """A property, navigation property, lambda variable, type cast, function, action or entity set.

    name has dots if it was qualified. suffixes are the parentheses after it: none, one, or two if a key follows a
    function that returns a collection: ``F(a=1)(42)``.
    """

    name: str
    suffixes: tuple[Key | Arguments, ...] = ()


@dataclass(frozen=True, slots=True)
class VariableStep(Step):
    """Only first: ``$it``, ``$this``, ``$root``, ``$these``, or a parameter alias (with ``@``) with steps."""

    name: str


@dataclass(frozen=True, slots=True)
class AnnotationStep(Step):
    """``@Ns.Term#qualifier`` (5.1.1.14); the names without ``@`` and ``#``."""

    term: str
    qualifier: str = ""


@dataclass(frozen=True, slots=True)
class CountStep(Step):
    """``$count``, in expressions also ``$count($filter=...;$search=...)``."""

    filter: Expression | None = None
    search: SearchExpression | None = None


@dataclass(frozen=True, slots=True)
class FilterStep(Step):
    """``$filter(predicate)`` inside an expression path; key selects one of the matches."""

    predicate: Expression
    key: Key | Arguments | None = None


@dataclass(frozen=True, slots=True)
class LambdaStep(Step):
    """``any(v:predicate)``, ``all(v:predicate)``; ``any()`` has neither variable nor predicate."""

    operator: OneOf["any", "all"]
    variable: str
    predicate: Expression | None


@dataclass(frozen=True, slots=True)
class AggregateStep(Step):
    """``aggregate(...)`` at the end of a collection path (aggregation, rule collectionPathExpr)."""

    item: AggregateItem


@dataclass(frozen=True, slots=True)
class StarStep(Step):
    """``*``, last in a $select or $expand path."""


@dataclass(frozen=True, slots=True)
class AllOperationsStep(Step):
    """``Ns.*`` in $select."""

    namespace: str


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
    """``@name=value``: the value of a ParameterAlias; name has no ``@``."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class QueryOptions(Node):
    """Query options of a request, or nested ones in $expand and $select.

    An empty tuple or None means that the option was not given; the grammar has no empty $select and the like. levels
    occurs only nested in $expand; the fields from format on only at the top. at, from_time and to_time are $at, $from
    and $to (OData Extension for Temporal Data). custom has every option that is neither a system option nor an alias,
    decoded, in order, duplicates included.
    """

    filter: Expression | None = None
    search: SearchExpression | None = None
    select: tuple[SelectItem, ...] = ()
    expand: tuple[ExpandItem, ...] = ()
    orderby: tuple[OrderItem, ...] = ()
    compute: tuple[ComputeItem, ...] = ()
    apply: tuple[Transformation, ...] = ()
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
    at: str | None = None
    from_time: str | None = None
    to_time: str | None = None
    custom: tuple[tuple[str, str], ...] = ()

    def first_given(self, names: Iterable[str]) -> str | None:
        """The first of the options that was given; None if none was."""
        return next((name for name in names if getattr(self, name) not in (None, ())), None)


NO_OPTIONS: Final = QueryOptions()


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """Rule selectItem, section 5.1.4.

    path holds NameStep (properties, casts, operations, the member ``default``), AnnotationStep, or ends in StarStep or
    AllOperationsStep. parameters are the names that select a function overload, None without them.
    """

    path: tuple[Step, ...]
    options: QueryOptions = NO_OPTIONS
    parameters: tuple[str, ...] | None = None


class ExpandKind(Enum):
    """The expanded part of the path."""

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


@dataclass(frozen=True, slots=True)
class Transformation(Node):
    """Rule applyTrafo. A sequence of transformations, ``a/b/c``, is a tuple."""


@dataclass(frozen=True, slots=True)
class AggregateFrom(Node):
    """``from p1,p2 with method``; method is empty if a custom aggregate has none."""

    properties: tuple[Path, ...]
    method: str = ""


@dataclass(frozen=True, slots=True)
class AggregateItem(Node):
    """Rule aggregateExpr.

    - ``expression with method as alias``: method is sum, min, max, average, countdistinct or a qualified name;
    - ``$count as alias``, ``path/$count as alias``: operand is a Path that ends in CountStep, method is empty;
    - ``path [as alias]``: a custom aggregate, method is empty. Only here may alias be empty.
    """

    operand: Expression
    method: str = ""
    origins: tuple[AggregateFrom, ...] = ()
    alias: str = ""


@dataclass(frozen=True, slots=True)
class AggregateTransformation(Transformation):
    items: tuple[AggregateItem, ...]


@dataclass(frozen=True, slots=True)
class ComputeTransformation(Transformation):
    items: tuple[ComputeItem, ...]


@dataclass(frozen=True, slots=True)
class ConcatTransformation(Transformation):
    sequences: tuple[tuple[Transformation, ...], ...]


@dataclass(frozen=True, slots=True)
class FilterTransformation(Transformation):
    predicate: Expression


@dataclass(frozen=True, slots=True)
class SearchTransformation(Transformation):
    search: SearchExpression


@dataclass(frozen=True, slots=True)
class OrderByTransformation(Transformation):
    items: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class TopTransformation(Transformation):
    count: Constant


@dataclass(frozen=True, slots=True)
class SkipTransformation(Transformation):
    count: Constant


@dataclass(frozen=True, slots=True)
class IdentityTransformation(Transformation):
    pass


@dataclass(frozen=True, slots=True)
class RankTransformation(Transformation):
    """topcount, topsum, toppercent, bottomcount, bottomsum, bottompercent: ``name(amount,value)``."""

    name: OneOf["topcount", "topsum", "toppercent", "bottomcount", "bottomsum", "bottompercent"]
    amount: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class HierarchyReference(Node):
    """Rule recHierReference: nodes (a ``$root/...`` path), qualifier of the hierarchy, path to the node identifier."""

    nodes: Path
    qualifier: str
    property: Path


@dataclass(frozen=True, slots=True)
class GroupingElement(Node):
    """A grouping element of groupby."""


@dataclass(frozen=True, slots=True)
class GroupingProperty(GroupingElement):
    """A path, or (platform extension) a function call such as ``yearmonth(Date)``, then with an optional alias."""

    expression: Expression
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Rollup(GroupingElement):
    """``rollup(p1,p2,...)``, or ``rollup(qualifier)`` with the name of a levelled hierarchy; one of them is empty."""

    properties: tuple[Path, ...]
    hierarchy: str = ""


@dataclass(frozen=True, slots=True)
class RollupRecursive(GroupingElement):
    reference: HierarchyReference
    start: tuple[Transformation, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupByTransformation(Transformation):
    """``groupby((elements),apply)``; apply is empty if not given."""

    elements: tuple[GroupingElement, ...]
    apply: tuple[Transformation, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinTransformation(Transformation):
    """``join(path as alias,apply)`` and ``outerjoin``."""

    path: Path
    alias: str
    apply: tuple[Transformation, ...] = ()
    is_outer: bool = False


@dataclass(frozen=True, slots=True)
class NestItem(Node):
    apply: tuple[Transformation, ...]
    alias: str


@dataclass(frozen=True, slots=True)
class NestTransformation(Transformation):
    """``nest(a as X)``, or ``addnested(path,a as X)`` if path is set."""

    items: tuple[NestItem, ...]
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class HierarchyTransformation(Transformation):
    """``ancestors`` and ``descendants``; distance is None if not given."""

    name: OneOf["ancestors", "descendants"]
    reference: HierarchyReference
    start: tuple[Transformation, ...]
    distance: int | None = None
    keep_start: bool = False


@dataclass(frozen=True, slots=True)
class TraverseTransformation(Transformation):
    order: OneOf["preorder", "postorder"]
    reference: HierarchyReference
    start: tuple[Transformation, ...] = ()
    orderby: tuple[OrderItem, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomTransformation(Transformation):
    """``Ns.Function(a=1)`` as a transformation."""

    name: str
    arguments: tuple[NamedArgument, ...]


@dataclass(frozen=True, slots=True)
class ExpandGroupTransformation(Transformation):
    """Platform extension ``expandgroup=Path($select=...;$expand=...)``, also written ``expandgroup(Path(...),...)``."""

    items: tuple[ExpandItem, ...]
