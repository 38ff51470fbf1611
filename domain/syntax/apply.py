"""Parses $apply (rule applyExpr of the aggregation ABNF; OData Extension for Data Aggregation 4.0)."""

import re
from collections.abc import Callable
from typing import Final, cast
from typing import Literal as OneOf

from domain.syntax import ast
from domain.syntax.aggregate import ALIAS, AS, AggregateParser, is_plain_path
from domain.syntax.errors import LOGICAL_OPERATOR
from domain.syntax.literals import MAX_NUMBER_LENGTH
from domain.syntax.tokens import AT_NAME, DIGITS, DIRECTION, IDENTIFIER, NAME
from foundation.messages import TranslatableMessage as Message

#: Limit: each branch of concat, and each transformation, costs a query or part of one.
MAX_TRANSFORMATIONS: Final = 200
_COMPUTE_AS: Final = re.compile(r"[ \t]++as[ \t]++", re.IGNORECASE)
_COMPUTED_NAME: Final = Message("the name of a computed property")
_QUALIFIER: Final = Message("the qualifier of a hierarchy")
_CALL: Final = re.compile(r"(?:rollup|rolluprecursive)\(")

SEQUENCE_LEVELS: Final = 3
"""Levels that a nested sequence counts for in the bound on nesting, which allows 33 of them."""

_NOT_PRESERVING: Final = (
    ast.AggregateTransformation,
    ast.ComputeTransformation,
    ast.ConcatTransformation,
    ast.GroupByTransformation,
    ast.JoinTransformation,
    ast.NestTransformation,
    ast.ExpandGroupTransformation,
)
"""Transformations that are not in rule preservingTrafo."""

RankName = OneOf["topcount", "topsum", "toppercent", "bottomcount", "bottomsum", "bottompercent"]


class ApplyParser(AggregateParser):
    """Reads sequences of transformations. Their names are case-sensitive, as in the ABNF."""

    __slots__ = ("transformation_count",)

    def __init__(self, text: str, position: int = 0) -> None:
        super().__init__(text, position)
        self.transformation_count = 0

    def expand_item(self) -> ast.ExpandItem:
        raise NotImplementedError

    # --- sequences

    def transformations(self) -> tuple[ast.Transformation, ...]:
        """Rule applyExpr."""
        self.enter(SEQUENCE_LEVELS)
        sequence = [self._transformation()]
        self._count_transformation()
        while self.take("/"):
            sequence.append(self._transformation())
            self._count_transformation()
        self.leave(SEQUENCE_LEVELS)
        return tuple(sequence)

    def _count_transformation(self) -> None:
        self.transformation_count += 1
        if self.transformation_count > MAX_TRANSFORMATIONS:
            self.refuse(Message("More than {0} transformations in one $apply.", MAX_TRANSFORMATIONS), self.position)

    def _preserving(self) -> tuple[ast.Transformation, ...]:
        """Rule preservingTrafos."""
        sequence = self.transformations()
        for transformation in sequence:
            if isinstance(transformation, _NOT_PRESERVING):
                self.refuse(
                    Message(
                        "Only transformations that leave the instances as they are can stand here, such as filter."
                    ),
                    transformation.position,
                    ("filter", "search", "orderby", "top", "skip", "identity"),
                )
        return sequence

    def _transformation(self) -> ast.Transformation:
        self.count_part()
        at = self.position
        match = self.take_match(NAME)
        name = match[0] if match else ""
        if name == "identity":
            return ast.IdentityTransformation(position=at)
        if name == "expandgroup":
            return self._expand_group(at)
        if "." in name:
            return self._custom(name, at)
        reader = _TRANSFORMATIONS.get(name)
        if reader is None:
            self.fail(Message("a transformation such as filter, groupby, aggregate or compute"), at=at)
        self.open()
        transformation = reader(self, at)
        self.close("','", LOGICAL_OPERATOR)
        return transformation

    def _custom(self, name: str, at: int) -> ast.CustomTransformation:
        """Rule customFunction."""
        self.checked_name(name, at)
        arguments_at = self.position
        if self.peek() != "(":
            self.fail("'('")
        arguments = self.suffix()
        if not isinstance(arguments, ast.Arguments):
            self.fail(Message("named arguments"), at=arguments_at)
        return ast.CustomTransformation(name, arguments.items, position=at)

    def _expand_group(self, at: int) -> ast.ExpandGroupTransformation:
        """Platform extension; with "=" it takes a list only if no comma of an outer list can follow."""
        if self.take("="):
            items = self.comma_list(self.expand_item) if self.depth == SEQUENCE_LEVELS else (self.expand_item(),)
            return ast.ExpandGroupTransformation(items, position=at)
        self.open()
        items = self.comma_list(self.expand_item)
        self.close("','")
        return ast.ExpandGroupTransformation(items, position=at)

    # --- aggregate and groupby

    def _aggregate(self, at: int) -> ast.Transformation:
        items = self.comma_list(lambda: self.aggregate_item(with_alias=True))
        return ast.AggregateTransformation(items, position=at)

    def _groupby(self, at: int) -> ast.Transformation:
        self.open()
        elements = self.comma_list(self._grouping_element)
        self.close("','", "'/'")
        apply = self.transformations() if self.comma() else ()
        return ast.GroupByTransformation(elements, apply, position=at)

    def _grouping_element(self) -> ast.GroupingElement:
        at = self.position
        call = self.take_match(_CALL)
        if call is None:
            return self._grouping_property(at)
        self.skip_space()
        element = self._rollup(at) if call[0] == "rollup(" else self._rollup_recursive(at)
        self.close("','")
        return element

    def _grouping_property(self, at: int) -> ast.GroupingElement:
        """A path, or a platform function of one, such as yearmonth(Date)."""
        node = self.expression()
        if isinstance(node, ast.FunctionCall) and self.text[at] != "(":
            alias = self.identifier(IDENTIFIER, ALIAS) if self.take_match(AS) else ""
            return ast.GroupingProperty(node, alias, position=at)
        if self.text[at] == "(" or not is_plain_path(node):
            self.fail(Message("a property"), Message("a path"), "rollup(", at=at)
        return ast.GroupingProperty(node, position=at)

    def _rollup(self, at: int) -> ast.GroupingElement:
        paths = self.comma_list(self.plain_path)
        if len(paths) > 1:
            return ast.Rollup(paths, position=at)
        only = paths[0].steps[0]
        assert isinstance(only, ast.NameStep)
        if len(paths[0].steps) > 1 or "." in only.name:
            self.fail("','")
        return ast.Rollup((), only.name, position=at)

    def _rollup_recursive(self, at: int) -> ast.GroupingElement:
        reference = self._hierarchy_reference()
        start = self._preserving() if self.comma() else ()
        return ast.RollupRecursive(reference, start, position=at)

    # --- one method for each transformation; the position is after its opening parenthesis

    def _compute(self, at: int) -> ast.Transformation:
        return ast.ComputeTransformation(self.comma_list(self._computed), position=at)

    def _computed(self) -> ast.ComputeItem:
        at = self.position
        expression = self.expression()
        return ast.ComputeItem(expression, self._alias(), position=at)

    def compute_item(self) -> ast.ComputeItem:
        """Rule computeItem of $compute, where "as" may have either case."""
        at = self.position
        expression = self.expression()
        if not self.take_match(_COMPUTE_AS):
            self.fail(Message("an operator such as add"), Message("'as' and a name"))
        return ast.ComputeItem(expression, self.identifier(IDENTIFIER, _COMPUTED_NAME), position=at)

    def _alias(self) -> str:
        if not self.take_match(AS):
            self.fail(Message("'as' and an alias"))
        return self.identifier(IDENTIFIER, ALIAS)

    def _concat(self, at: int) -> ast.Transformation:
        sequences = self.comma_list(self.transformations)
        if len(sequences) < 2:
            self.skip_space()
            self.fail("','", "'/'")
        return ast.ConcatTransformation(sequences, position=at)

    def _filter(self, at: int) -> ast.Transformation:
        return ast.FilterTransformation(self.expression(), position=at)

    def _search(self, at: int) -> ast.Transformation:
        return ast.SearchTransformation(self.search(), position=at)

    def _orderby(self, at: int) -> ast.Transformation:
        return ast.OrderByTransformation(self.comma_list(self.order_item), position=at)

    def order_item(self) -> ast.OrderItem:
        """Rule orderbyItem."""
        at = self.position
        expression = self.expression()
        direction = self.take_match(DIRECTION)
        return ast.OrderItem(expression, direction is not None and direction[1].lower() == "desc", position=at)

    def count_literal(self) -> ast.Literal:
        """An unsigned integer."""
        at = self.position
        match = self.take_match(DIGITS)
        if match is None:
            self.fail(Message("a number that is not negative"))
        if len(match[0]) > MAX_NUMBER_LENGTH:
            self.refuse(Message("A number has at most {0} characters.", MAX_NUMBER_LENGTH), at)
        return ast.Literal(ast.LiteralKind.INTEGER, int(match[0]), match[0], position=at)

    def _top(self, at: int) -> ast.Transformation:
        return ast.TopTransformation(self.count_literal(), position=at)

    def _skip(self, at: int) -> ast.Transformation:
        return ast.SkipTransformation(self.count_literal(), position=at)

    def _rank(self, at: int) -> ast.Transformation:
        name = cast(RankName, self.text[at : self.text.index("(", at)])
        amount = self.expression()
        self.expect_comma()
        return ast.RankTransformation(name, amount, self.expression(), position=at)

    def _join(self, at: int) -> ast.Transformation:
        path = self._join_path()
        alias = self._alias()
        apply = self.transformations() if self.comma() else ()
        return ast.JoinTransformation(path, alias, apply, self.text.startswith("outer", at), position=at)

    def _join_path(self) -> ast.Path:
        """Rule joinProperty: a property or annotation, optionally with a type cast."""
        at = self.position
        annotation = self.take_match(AT_NAME)
        if annotation is None:
            path = self.plain_path()
            names = [step.name for step in path.steps if isinstance(step, ast.NameStep)]
            if "." in names[0] or len(names) > 2:
                self.fail(Message("a property, perhaps with a type cast"), at=at)
            return path
        qualifier = self.checked_identifier(annotation[2], at) if annotation[2] else ""
        step = ast.AnnotationStep(self.checked_name(annotation[1], at), qualifier, position=at)
        return ast.Path((step,), position=at)

    def _nest(self, at: int) -> ast.Transformation:
        return ast.NestTransformation(self.comma_list(self._nest_item), position=at)

    def _add_nested(self, at: int) -> ast.Transformation:
        path = self.plain_path()
        self.expect_comma()
        return ast.NestTransformation(self.comma_list(self._nest_item), path, position=at)

    def _nest_item(self) -> ast.NestItem:
        at = self.position
        apply = self.transformations()
        return ast.NestItem(apply, self._alias(), position=at)

    # --- hierarchies

    def _hierarchy_reference(self) -> ast.HierarchyReference:
        """Rule recHierReference."""
        at = self.position
        nodes = self.expression()
        if not (isinstance(nodes, ast.Path) and nodes.steps[0] == ast.VariableStep("$root") and self.text[at] == "$"):
            self.fail(Message("a path that begins with $root/"), at=at)
        self.expect_comma()
        qualifier = self.identifier(IDENTIFIER, _QUALIFIER)
        self.expect_comma()
        return ast.HierarchyReference(nodes, qualifier, self.plain_path(), position=at)

    def _hierarchy(self, at: int) -> ast.Transformation:
        reference = self._hierarchy_reference()
        self.expect_comma()
        start = self._preserving()
        distance = None
        is_more = self.comma()
        if is_more and self.peek().isdecimal():
            distance = int(str(self.count_literal().value))
            is_more = self.comma()
        if is_more and not self.take("keep start"):
            self.fail(Message("a number"), "'keep start'") if distance is None else self.fail("'keep start'")
        name: OneOf["ancestors", "descendants"] = (
            "ancestors" if self.text.startswith("ancestors", at) else "descendants"
        )
        return ast.HierarchyTransformation(name, reference, start, distance, is_more, position=at)

    def _traverse(self, at: int) -> ast.Transformation:
        reference = self._hierarchy_reference()
        self.expect_comma()
        order_at = self.position
        match = self.take_match(NAME)
        if match is None or match[0] not in ("preorder", "postorder"):
            self.fail("preorder", "postorder", at=order_at)
        start: tuple[ast.Transformation, ...] = ()
        orderby: tuple[ast.OrderItem, ...] = ()
        is_more = self.comma()
        if is_more and self._transformation_follows():
            start = self._preserving()
            is_more = self.comma()
        if is_more:
            orderby = self.comma_list(self.order_item)
        order: OneOf["preorder", "postorder"] = "preorder" if match[0] == "preorder" else "postorder"
        return ast.TraverseTransformation(order, reference, start, orderby, position=at)

    def _transformation_follows(self) -> bool:
        """Whether a transformation follows, not an expression to order by."""
        match = NAME.match(self.text, self.position)
        if match is None:
            return False
        following = self.text[match.end() : match.end() + 1]
        if following == "(":
            return match[0] in _TRANSFORMATIONS or "." in match[0]
        return match[0] == "identity"


_TRANSFORMATIONS: Final[dict[str, Callable[[ApplyParser, int], ast.Transformation]]] = {
    "addnested": ApplyParser._add_nested,
    "aggregate": ApplyParser._aggregate,
    "ancestors": ApplyParser._hierarchy,
    "compute": ApplyParser._compute,
    "concat": ApplyParser._concat,
    "descendants": ApplyParser._hierarchy,
    "filter": ApplyParser._filter,
    "groupby": ApplyParser._groupby,
    "join": ApplyParser._join,
    "nest": ApplyParser._nest,
    "orderby": ApplyParser._orderby,
    "outerjoin": ApplyParser._join,
    "search": ApplyParser._search,
    "skip": ApplyParser._skip,
    "top": ApplyParser._top,
    "traverse": ApplyParser._traverse,
    **dict.fromkeys(
        ("topcount", "topsum", "toppercent", "bottomcount", "bottomsum", "bottompercent"), ApplyParser._rank
    ),
}
