"""Nodes of $apply (OData Extension for Data Aggregation 4.0)."""

from dataclasses import dataclass
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Constant, Expression, Node, Path
from domain.syntax.ast.options import ComputeItem, ExpandItem, OrderItem
from domain.syntax.ast.search import SearchExpression
from domain.syntax.ast.steps import NamedArgument


@dataclass(frozen=True, slots=True)
class Transformation(Node):
    """Rule applyTrafo. A sequence of them, ``a/b/c``, is a tuple."""


@dataclass(frozen=True, slots=True)
class AggregateFrom(Node):
    """``from p1,p2 with method``; method is empty where a custom aggregate has none."""

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
    """Something to group by."""


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
    """``groupby((elements),apply)``; apply is empty where it was not given."""

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
    """``nest(a as X)``, or ``addnested(path,a as X)`` where path is set."""

    items: tuple[NestItem, ...]
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class HierarchyTransformation(Transformation):
    """``ancestors`` and ``descendants``; distance is None where it was not given."""

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
