"""$apply (rule applyExpr of the aggregation ABNF; OData Extension for Data Aggregation 4.0)."""

import re
from collections.abc import Callable
from typing import Final, cast
from typing import Literal as OneOf

from domain.syntax.ast import (
    AggregateFrom,
    AggregateItem,
    AggregateTransformation,
    AnnotationStep,
    Arguments,
    ComputeItem,
    ComputeTransformation,
    ConcatTransformation,
    CountStep,
    CustomTransformation,
    ExpandGroupTransformation,
    ExpandItem,
    Expression,
    FilterTransformation,
    FunctionCall,
    GroupByTransformation,
    GroupingElement,
    GroupingProperty,
    HierarchyReference,
    HierarchyTransformation,
    IdentityTransformation,
    JoinTransformation,
    Literal,
    LiteralKind,
    NameStep,
    NestItem,
    NestTransformation,
    OrderByTransformation,
    OrderItem,
    Path,
    RankTransformation,
    Rollup,
    RollupRecursive,
    SearchTransformation,
    SkipTransformation,
    Step,
    TopTransformation,
    Transformation,
    TraverseTransformation,
    VariableStep,
)
from domain.syntax.errors import LOGICAL_OPERATOR
from domain.syntax.expressions import ExpressionParser
from domain.syntax.literals import MAX_NUMBER_LENGTH
from domain.syntax.tokens import AT_NAME, DIGITS, DIRECTION, IDENTIFIER, NAME
from foundation.phrases import Phrase

_AS: Final = re.compile(r"[ \t]++as[ \t]++")
_WITH: Final = re.compile(r"[ \t]++with[ \t]++")
_FROM: Final = re.compile(r"[ \t]++from[ \t]++")
_COMPUTE_AS: Final = re.compile(r"[ \t]++as[ \t]++", re.IGNORECASE)
_COUNT_OF_ALL: Final = re.compile(r"\$count(?![(/])")
_ALIAS: Final = Phrase("an alias")
_COMPUTED_NAME: Final = Phrase("the name of a computed property")
_QUALIFIER: Final = Phrase("the qualifier of a hierarchy")
_CALL: Final = re.compile(r"(?:rollup|rolluprecursive)\(")

SEQUENCE_LEVELS: Final = 3
"""What one sequence inside another counts for in the bound on nesting; 33 of them are plenty."""

_METHODS: Final = frozenset({"sum", "min", "max", "average", "countdistinct"})

_NOT_PRESERVING: Final = (
    AggregateTransformation,
    ComputeTransformation,
    ConcatTransformation,
    GroupByTransformation,
    JoinTransformation,
    NestTransformation,
    ExpandGroupTransformation,
)
"""What rule preservingTrafo leaves out."""

RankName = OneOf["topcount", "topsum", "toppercent", "bottomcount", "bottomsum", "bottompercent"]


class ApplyParser(ExpressionParser):
    """Reads sequences of transformations. Their names are case-sensitive, as in the ABNF."""

    __slots__ = ()

    def expand_item(self) -> ExpandItem:
        raise NotImplementedError

    # --- sequences

    def transformations(self) -> tuple[Transformation, ...]:
        """Rule applyExpr."""
        self.enter(SEQUENCE_LEVELS)
        sequence = [self._transformation()]
        while self.take("/"):
            sequence.append(self._transformation())
        self.leave(SEQUENCE_LEVELS)
        return tuple(sequence)

    def _preserving(self) -> tuple[Transformation, ...]:
        """Rule preservingTrafos."""
        sequence = self.transformations()
        for transformation in sequence:
            if isinstance(transformation, _NOT_PRESERVING):
                self.refuse(
                    Phrase("Only transformations that leave the instances as they are can stand here, such as filter."),
                    transformation.position,
                    ("filter", "search", "orderby", "top", "skip", "identity"),
                )
        return sequence

    def _transformation(self) -> Transformation:
        self.count_part()
        at = self.position
        match = self.take_match(NAME)
        name = match[0] if match else ""
        if name == "identity":
            return IdentityTransformation(position=at)
        if name == "expandgroup":
            return self._expand_group(at)
        if "." in name:
            return self._custom(name, at)
        reader = _TRANSFORMATIONS.get(name)
        if reader is None:
            self.fail(Phrase("a transformation such as filter, groupby, aggregate or compute"), at=at)
        self.open()
        transformation = reader(self, at)
        self.close("','", LOGICAL_OPERATOR)
        return transformation

    def _custom(self, name: str, at: int) -> CustomTransformation:
        """Rule customFunction."""
        self.checked_name(name, at)
        arguments_at = self.position
        if self.peek() != "(":
            self.fail("'('")
        arguments = self.suffix()
        if not isinstance(arguments, Arguments):
            self.fail(Phrase("named arguments"), at=arguments_at)
        return CustomTransformation(name, arguments.items, position=at)

    def _expand_group(self, at: int) -> ExpandGroupTransformation:
        """Platform extension; with "=" it takes a list only where no comma of an outer list can follow."""
        if self.take("="):
            items = self.comma_list(self.expand_item) if self.depth == SEQUENCE_LEVELS else (self.expand_item(),)
            return ExpandGroupTransformation(items, position=at)
        self.open()
        items = self.comma_list(self.expand_item)
        self.close("','")
        return ExpandGroupTransformation(items, position=at)

    # --- aggregate

    def _aggregate(self, at: int) -> Transformation:
        items = self.comma_list(lambda: self.aggregate_item(with_alias=True))
        return AggregateTransformation(items, position=at)

    def aggregate_item(self, *, with_alias: bool) -> AggregateItem:
        """Rules aggregateExpr, and without alias aggregateFunctionExpr."""
        at = self.position
        operand = self._aggregate_operand()
        height = self.height
        method = self._method() if self.take_match(_WITH) else ""
        has_parentheses = self.text[at] == "("
        is_count = _is_count(operand) and not has_parentheses
        is_custom = not method and not is_count
        if method and operand == _COUNT_PATH:
            self.fail("'as'", at=at)
        if is_custom and (has_parentheses or not _is_plain_path(operand)):
            self.fail(Phrase("'with' and an aggregation method such as sum"))
        origins = []
        while from_match := self.take_match(_FROM):
            origins.append(self._origin(from_match.end(), needs_method=not is_custom))
        alias = ""
        if with_alias and self.take_match(_AS):
            alias = self.identifier(IDENTIFIER, _ALIAS)
        elif with_alias and (origins or not is_custom):
            self.fail("'with'" if not method else "'from'", Phrase("'as' and an alias"))
        self.height = height + 1
        return AggregateItem(operand, method, tuple(origins), alias, position=at)

    def _aggregate_operand(self) -> Expression:
        at = self.position
        if self.take_match(_COUNT_OF_ALL):
            self.height = 1
            return Path((CountStep(position=at),), position=at)
        return self.expression()

    def _method(self) -> str:
        at = self.position
        match = self.take_match(NAME)
        if match is None or not (match[0] in _METHODS or "." in match[0]):
            self.fail("sum", "min", "max", "average", "countdistinct", Phrase("a method with namespace"), at=at)
        return self.checked_name(match[0], at)

    def _origin(self, at: int, *, needs_method: bool) -> AggregateFrom:
        properties = self.comma_list(self._plain_path)
        method = ""
        if self.take_match(_WITH):
            method = self._method()
        elif needs_method:
            self.fail(Phrase("'with' and an aggregation method such as sum"))
        return AggregateFrom(properties, method, position=at)

    # --- paths of names only

    def _plain_path(self) -> Path:
        """Names joined by "/", without calls, keys or annotations (rule groupingProperty and others)."""
        at = self.position
        steps: list[Step] = [self._plain_step()]
        while self.take("/"):
            steps.append(self._plain_step())
        self.height = 2
        return Path(tuple(steps), position=at)

    def _plain_step(self) -> Step:
        self.count_part()
        at = self.position
        match = self.take_match(NAME)
        if match is None:
            self.fail(Phrase("a property"))
        return NameStep(self.checked_name(match[0], at), position=at)

    # --- groupby

    def _groupby(self, at: int) -> Transformation:
        self.open()
        elements = self.comma_list(self._grouping_element)
        self.close("','", "'/'")
        apply = self.transformations() if self.comma() else ()
        return GroupByTransformation(elements, apply, position=at)

    def _grouping_element(self) -> GroupingElement:
        at = self.position
        call = self.take_match(_CALL)
        if call is None:
            return self._grouping_property(at)
        self.skip_space()
        element = self._rollup(at) if call[0] == "rollup(" else self._rollup_recursive(at)
        self.close("','")
        return element

    def _grouping_property(self, at: int) -> GroupingElement:
        """A path; or a platform function of one, so that one can group by yearmonth(Date)."""
        node = self.expression()
        if isinstance(node, FunctionCall) and self.text[at] != "(":
            alias = self.identifier(IDENTIFIER, _ALIAS) if self.take_match(_AS) else ""
            return GroupingProperty(node, alias, position=at)
        if self.text[at] == "(" or not _is_plain_path(node):
            self.fail(Phrase("a property"), Phrase("a path"), "rollup(", at=at)
        return GroupingProperty(node, position=at)

    def _rollup(self, at: int) -> GroupingElement:
        paths = self.comma_list(self._plain_path)
        if len(paths) > 1:
            return Rollup(paths, position=at)
        only = paths[0].steps[0]
        assert isinstance(only, NameStep)
        if len(paths[0].steps) > 1 or "." in only.name:
            self.fail("','")
        return Rollup((), only.name, position=at)

    def _rollup_recursive(self, at: int) -> GroupingElement:
        reference = self._hierarchy_reference()
        start = self._preserving() if self.comma() else ()
        return RollupRecursive(reference, start, position=at)

    # --- one method for each transformation; the position is behind its opening parenthesis

    def _compute(self, at: int) -> Transformation:
        return ComputeTransformation(self.comma_list(self._computed), position=at)

    def _computed(self) -> ComputeItem:
        at = self.position
        expression = self.expression()
        return ComputeItem(expression, self._alias(), position=at)

    def compute_item(self) -> ComputeItem:
        """Rule computeItem of $compute, where "as" may have either case."""
        at = self.position
        expression = self.expression()
        if not self.take_match(_COMPUTE_AS):
            self.fail(Phrase("an operator such as add"), Phrase("'as' and a name"))
        return ComputeItem(expression, self.identifier(IDENTIFIER, _COMPUTED_NAME), position=at)

    def _alias(self) -> str:
        if not self.take_match(_AS):
            self.fail(Phrase("'as' and an alias"))
        return self.identifier(IDENTIFIER, _ALIAS)

    def _concat(self, at: int) -> Transformation:
        sequences = self.comma_list(self.transformations)
        if len(sequences) < 2:
            self.skip_space()
            self.fail("','", "'/'")
        return ConcatTransformation(sequences, position=at)

    def _filter(self, at: int) -> Transformation:
        return FilterTransformation(self.expression(), position=at)

    def _search(self, at: int) -> Transformation:
        return SearchTransformation(self.search(), position=at)

    def _orderby(self, at: int) -> Transformation:
        return OrderByTransformation(self.comma_list(self.order_item), position=at)

    def order_item(self) -> OrderItem:
        """Rule orderbyItem."""
        at = self.position
        expression = self.expression()
        direction = self.take_match(DIRECTION)
        return OrderItem(expression, direction is not None and direction[1].lower() == "desc", position=at)

    def count_literal(self) -> Literal:
        """A number without sign."""
        at = self.position
        match = self.take_match(DIGITS)
        if match is None:
            self.fail(Phrase("a number that is not negative"))
        if len(match[0]) > MAX_NUMBER_LENGTH:
            self.refuse(Phrase("A number has at most {0} characters.", MAX_NUMBER_LENGTH), at)
        return Literal(LiteralKind.INTEGER, int(match[0]), match[0], position=at)

    def _top(self, at: int) -> Transformation:
        return TopTransformation(self.count_literal(), position=at)

    def _skip(self, at: int) -> Transformation:
        return SkipTransformation(self.count_literal(), position=at)

    def _rank(self, at: int) -> Transformation:
        name = cast(RankName, self.text[at : self.text.index("(", at)])
        amount = self.expression()
        self.expect_comma()
        return RankTransformation(name, amount, self.expression(), position=at)

    def _join(self, at: int) -> Transformation:
        path = self._join_path()
        alias = self._alias()
        apply = self.transformations() if self.comma() else ()
        return JoinTransformation(path, alias, apply, self.text.startswith("outer", at), position=at)

    def _join_path(self) -> Path:
        """Rule joinProperty: a property or annotation, perhaps with a type cast."""
        at = self.position
        annotation = self.take_match(AT_NAME)
        if annotation is None:
            path = self._plain_path()
            names = [step.name for step in path.steps if isinstance(step, NameStep)]
            if "." in names[0] or len(names) > 2:
                self.fail(Phrase("a property, perhaps with a type cast"), at=at)
            return path
        qualifier = self.checked_identifier(annotation[2], at) if annotation[2] else ""
        step = AnnotationStep(self.checked_name(annotation[1], at), qualifier, position=at)
        return Path((step,), position=at)

    def _nest(self, at: int) -> Transformation:
        return NestTransformation(self.comma_list(self._nest_item), position=at)

    def _add_nested(self, at: int) -> Transformation:
        path = self._plain_path()
        self.expect_comma()
        return NestTransformation(self.comma_list(self._nest_item), path, position=at)

    def _nest_item(self) -> NestItem:
        at = self.position
        apply = self.transformations()
        return NestItem(apply, self._alias(), position=at)

    # --- hierarchies

    def _hierarchy_reference(self) -> HierarchyReference:
        """Rule recHierReference."""
        at = self.position
        nodes = self.expression()
        if not (isinstance(nodes, Path) and nodes.steps[0] == VariableStep("$root") and self.text[at] == "$"):
            self.fail(Phrase("a path that begins with $root/"), at=at)
        self.expect_comma()
        qualifier = self.identifier(IDENTIFIER, _QUALIFIER)
        self.expect_comma()
        return HierarchyReference(nodes, qualifier, self._plain_path(), position=at)

    def _hierarchy(self, at: int) -> Transformation:
        reference = self._hierarchy_reference()
        self.expect_comma()
        start = self._preserving()
        distance = None
        is_more = self.comma()
        if is_more and self.peek().isdecimal():
            distance = int(str(self.count_literal().value))
            is_more = self.comma()
        if is_more and not self.take("keep start"):
            self.fail(Phrase("a number"), "'keep start'") if distance is None else self.fail("'keep start'")
        name: OneOf["ancestors", "descendants"] = (
            "ancestors" if self.text.startswith("ancestors", at) else "descendants"
        )
        return HierarchyTransformation(name, reference, start, distance, is_more, position=at)

    def _traverse(self, at: int) -> Transformation:
        reference = self._hierarchy_reference()
        self.expect_comma()
        order_at = self.position
        match = self.take_match(NAME)
        if match is None or match[0] not in ("preorder", "postorder"):
            self.fail("preorder", "postorder", at=order_at)
        start: tuple[Transformation, ...] = ()
        orderby: tuple[OrderItem, ...] = ()
        is_more = self.comma()
        if is_more and self._transformation_follows():
            start = self._preserving()
            is_more = self.comma()
        if is_more:
            orderby = self.comma_list(self.order_item)
        order: OneOf["preorder", "postorder"] = "preorder" if match[0] == "preorder" else "postorder"
        return TraverseTransformation(order, reference, start, orderby, position=at)

    def _transformation_follows(self) -> bool:
        """Whether a transformation comes next and not an expression to order by."""
        match = NAME.match(self.text, self.position)
        if match is None:
            return False
        following = self.text[match.end() : match.end() + 1]
        if following == "(":
            return match[0] in _TRANSFORMATIONS or "." in match[0]
        return match[0] == "identity"


_TRANSFORMATIONS: Final[dict[str, Callable[[ApplyParser, int], Transformation]]] = {
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


_COUNT_PATH: Final = Path((CountStep(),))


def _is_count(operand: Expression) -> bool:
    """Whether operand is ``$count`` or names with ``/$count`` behind them."""
    return isinstance(operand, Path) and operand.steps[-1] == CountStep() and _are_names(operand.steps[:-1])


def _is_plain_path(operand: Expression) -> bool:
    return isinstance(operand, Path) and _are_names(operand.steps)


def _are_names(steps: tuple[Step, ...]) -> bool:
    """Whether steps are names without parentheses."""
    return all(isinstance(step, NameStep) and not step.suffixes for step in steps)
