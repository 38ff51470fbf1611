"""Parses aggregate expressions and the plain paths of $apply (rules aggregateExpr, groupingProperty)."""

import re
from typing import Final

from domain.syntax.ast import AggregateFrom, AggregateItem, CountStep, Expression, NameStep, Path, Step
from domain.syntax.expressions import ExpressionParser
from domain.syntax.tokens import IDENTIFIER, NAME
from foundation.messages import TranslatableMessage as Message

AS: Final = re.compile(r"[ \t]++as[ \t]++")
ALIAS: Final = Message("an alias")
_WITH: Final = re.compile(r"[ \t]++with[ \t]++")
_FROM: Final = re.compile(r"[ \t]++from[ \t]++")
_COUNT_OF_ALL: Final = re.compile(r"\$count(?![(/])")
_METHODS: Final = frozenset({"sum", "min", "max", "average", "countdistinct"})


class AggregateParser(ExpressionParser):
    """Reads aggregate expressions; their keywords are case-sensitive, as in the ABNF."""

    __slots__ = ()

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
        if is_custom and (has_parentheses or not is_plain_path(operand)):
            self.fail(Message("'with' and an aggregation method such as sum"))
        origins = []
        while from_match := self.take_match(_FROM):
            origins.append(self._origin(from_match.end(), needs_method=not is_custom))
        alias = ""
        if with_alias and self.take_match(AS):
            alias = self.identifier(IDENTIFIER, ALIAS)
        elif with_alias and (origins or not is_custom):
            self.fail("'with'" if not method else "'from'", Message("'as' and an alias"))
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
            self.fail("sum", "min", "max", "average", "countdistinct", Message("a method with namespace"), at=at)
        return self.checked_name(match[0], at)

    def _origin(self, at: int, *, needs_method: bool) -> AggregateFrom:
        properties = self.comma_list(self.plain_path)
        method = ""
        if self.take_match(_WITH):
            method = self._method()
        elif needs_method:
            self.fail(Message("'with' and an aggregation method such as sum"))
        return AggregateFrom(properties, method, position=at)

    def plain_path(self) -> Path:
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
            self.fail(Message("a property"))
        return NameStep(self.checked_name(match[0], at), position=at)


_COUNT_PATH: Final = Path((CountStep(),))


def _is_count(operand: Expression) -> bool:
    """Whether operand is ``$count`` or names followed by ``/$count``."""
    return isinstance(operand, Path) and operand.steps[-1] == CountStep() and _are_names(operand.steps[:-1])


def is_plain_path(operand: Expression) -> bool:
    """Whether operand is a path of names without parentheses."""
    return isinstance(operand, Path) and _are_names(operand.steps)


def _are_names(steps: tuple[Step, ...]) -> bool:
    """Whether steps are names without parentheses."""
    return all(isinstance(step, NameStep) and not step.suffixes for step in steps)
