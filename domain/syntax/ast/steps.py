"""Nodes of the paths inside expressions, $select and $expand, and the parentheses behind names."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Expression, Node, Step

if TYPE_CHECKING:
    from domain.syntax.ast.apply import AggregateItem
    from domain.syntax.ast.search import SearchExpression


@dataclass(frozen=True, slots=True)
class NamedArgument(Node):
    """``name=value``. In resource paths the value is a Literal or a ParameterAlias; in expressions any Expression."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Key(Node):
    """``(value)``: a key without name. A quoted guid is a STRING literal here; binding knows the key's type."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Arguments(Node):
    """``()`` or ``(a=1,b=@x)``: arguments of a function, or a key by (alternate) names. Binding decides."""

    items: tuple[NamedArgument, ...]


@dataclass(frozen=True, slots=True)
class NameStep(Step):
    """A property, navigation property, lambda variable, type cast, function, action or entity set.

    name has dots when it was qualified. suffixes are the parentheses behind it: none, one, or two where a function
    that gives a collection is followed by a key: ``F(a=1)(42)``.
    """

    name: str
    suffixes: tuple[Key | Arguments, ...] = ()


@dataclass(frozen=True, slots=True)
class VariableStep(Step):
    """Only first: ``$it``, ``$this``, ``$root``, ``$these``, or a parameter alias (with ``@``) that steps follow."""

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
    search: "SearchExpression | None" = None


@dataclass(frozen=True, slots=True)
class FilterStep(Step):
    """``$filter(predicate)`` inside an expression path; key picks one of what is left."""

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

    item: "AggregateItem"


@dataclass(frozen=True, slots=True)
class StarStep(Step):
    """``*``, last in a $select or $expand path."""


@dataclass(frozen=True, slots=True)
class AllOperationsStep(Step):
    """``Ns.*`` in $select."""

    namespace: str
