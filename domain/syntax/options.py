"""Parses query options, at the top and nested (section 2 of the ABNF; Part 2, section 5)."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar
from typing import Literal as OneOf

from domain.syntax import ast
from domain.syntax.apply import ApplyParser
from domain.syntax.tokens import ALIAS_NAME, AT_NAME, IDENTIFIER, NAME, OPTION_NAME, PLAIN_ITEM
from foundation.messages import TranslatableMessage as Message

Item = TypeVar("Item")

OPTIONS_LEVELS: Final = 3
"""Levels that nested options count for in the bound on nesting, which allows 33 of them."""

_COUNT_OPTIONS: Final = frozenset({"filter", "search"})
_REF_OPTIONS: Final = _COUNT_OPTIONS | {"orderby", "skip", "top", "count"}
_EXPAND_OPTIONS: Final = _REF_OPTIONS | {"select", "expand", "compute", "levels", "apply", "@"}
_SELECT_OPTIONS: Final = _REF_OPTIONS | {"select", "compute", "@"}
_STAR_OPTIONS: Final = frozenset({"levels"})

_MEDIA_TYPE: Final = Message("a media type")
_NUMBER: Final = Message("a number")
_PARAMETER_NAME: Final = Message("the name of a parameter")
_VERSION: Final = Message("a version")

_FORMAT: Final = re.compile(r"(?:atom|json|xml|csv|ndjson|arrow|parquet|[^/?#\[\]]++/[^/?#\[\]]++)", re.IGNORECASE)
_SCHEMA_VERSION: Final = re.compile(r"\*|[A-Za-z0-9._~-]++")
_INDEX: Final = re.compile(r"-?[0-9]{1,18}")
_BOOLEAN: Final = re.compile(r"(true|false)(?![A-Za-z0-9_])", re.IGNORECASE)
_LEVELS: Final = re.compile(r"([1-9][0-9]{0,8})|max(?![A-Za-z0-9_])", re.IGNORECASE)
_OPERATION_PARAMETERS: Final = re.compile(r"\([^=()$@]*+\)")


class OptionsParser(ApplyParser):
    """Reads the values of query options."""

    __slots__ = ()

    # --- lists; white space around commas is allowed everywhere

    def orderby(self) -> tuple[ast.OrderItem, ...]:
        return self._items(self.order_item)

    def compute(self) -> tuple[ast.ComputeItem, ...]:
        return self._items(self.compute_item)

    def select(self) -> tuple[ast.SelectItem, ...]:
        return self._items(self.select_item)

    def expand(self) -> tuple[ast.ExpandItem, ...]:
        return self._items(self.expand_item)

    def apply(self) -> tuple[ast.Transformation, ...]:
        self.skip_space()
        return self.transformations()

    def filter(self) -> ast.Expression:
        self.skip_space()
        return self.expression()

    def _items(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        self.skip_space()
        return self.comma_list(read)

    # --- scalars

    def top(self) -> ast.Constant:
        self.skip_space()
        return self.count_literal()

    def boolean(self) -> bool:
        self.skip_space()
        match = self.take_match(_BOOLEAN)
        if match is None:
            self.fail("true", "false")
        return match[1].lower() == "true"

    def levels(self) -> int | OneOf["max"]:
        self.skip_space()
        match = self.take_match(_LEVELS)
        if match is None:
            self.fail(Message("a number from 1"), "max")
        return int(match[1]) if match[1] else "max"

    def format(self) -> str:
        return self._whole(_FORMAT, "atom", "json", "xml", _MEDIA_TYPE)

    def schema_version(self) -> str:
        return self._whole(_SCHEMA_VERSION, "'*'", _VERSION)

    def index(self) -> int:
        return int(self._whole(_INDEX, _NUMBER))

    def opaque(self) -> str:
        """An opaque token of the service, or an id."""
        if not self.text:
            self.fail(Message("a value"))
        self.position = len(self.text)
        return self.text

    def _whole(self, pattern: re.Pattern[str], *expected: str) -> str:
        match = pattern.fullmatch(self.text)
        if match is None:
            self.fail(*expected)
        self.position = len(self.text)
        return match[0]

    def parameter_value(self) -> ast.Expression:
        """Rule parameterValue: the value of a parameter alias."""
        self.skip_space()
        return self.expression()

    # --- $select

    def select_item(self) -> ast.SelectItem:
        """Rule selectItem."""
        at = self.position
        if match := PLAIN_ITEM.match(self.text, at):  # the usual item, a single name
            self.position = match.end()
            return ast.SelectItem((ast.NameStep(self.checked_name(match[0], at), position=at),), position=at)
        if self.take("*"):
            return ast.SelectItem((ast.StarStep(position=at),), position=at)
        steps: list[ast.Step] = []
        while True:
            step = self._select_step()
            steps.append(step)
            if isinstance(step, ast.AllOperationsStep):
                if len(steps) > 1:
                    self.fail(Message("a property"), at=step.position)
                break
            if not self.take("/"):
                break
        self._check_casts(steps)
        if self.peek() != "(":
            return ast.SelectItem(tuple(steps), position=at)
        return self._select_parentheses(steps, at)

    def _select_step(self) -> ast.Step:
        self.count_part()
        at = self.position
        if self.peek() == "@":
            return self._annotation_step(at)
        match = self.take_match(NAME)
        if match is None:
            self.fail(Message("a property"), "'*'")
        name = self.checked_name(match[0], at)
        if self.take(".*"):
            return ast.AllOperationsStep(name, position=at)
        return ast.NameStep(name, position=at)

    def _select_parentheses(self, steps: list[ast.Step], at: int) -> ast.SelectItem:
        """Nested options, or the parameter names of a function overload; those have no "=" after them."""
        if (
            len(steps) <= 2
            and isinstance(steps[0], ast.NameStep)
            and _OPERATION_PARAMETERS.match(self.text, self.position)
        ):
            self.open()
            names = [self.identifier(IDENTIFIER, _PARAMETER_NAME)]
            while self.comma():
                names.append(self.identifier(IDENTIFIER, _PARAMETER_NAME))
            self.close("','")
            return ast.SelectItem(tuple(steps), parameters=tuple(names), position=at)
        last = steps[-1]
        if isinstance(last, ast.NameStep) and "." in last.name and len(steps) == 1:
            self.fail("','", _PARAMETER_NAME)
        return ast.SelectItem(tuple(steps), self.nested_options(_SELECT_OPTIONS), position=at)

    def _check_casts(self, steps: list[ast.Step]) -> None:
        """A type cast cannot follow another; the second name of two is an operation of the type."""
        if len(steps) <= 2:
            return
        is_cast = [isinstance(step, ast.NameStep) and "." in step.name for step in steps]
        for index in range(1, len(steps)):
            if is_cast[index] and is_cast[index - 1]:
                self.fail(Message("a property"), at=steps[index].position)

    def _annotation_step(self, at: int) -> ast.AnnotationStep:
        match = self.take_match(AT_NAME)
        if match is None:
            self.fail(Message("the name of an annotation after '@'"), at=at + 1)
        qualifier = self.checked_identifier(match[2], at) if match[2] else ""
        return ast.AnnotationStep(self.checked_name(match[1], at), qualifier, position=at)

    # --- $expand

    def expand_item(self) -> ast.ExpandItem:
        """Rule expandItem."""
        at = self.position
        if self.take("$value"):
            self.note_not_supported(Message("Media streams"), at)
            return ast.ExpandItem((), ast.ExpandKind.VALUE, position=at)
        steps: list[ast.Step] = []
        kind = ast.ExpandKind.ENTITIES
        while True:
            steps.append(self._expand_step())
            if self.take("/$ref"):
                kind = ast.ExpandKind.REF
                break
            if not isinstance(steps[-1], ast.StarStep) and self.take("/$count"):
                kind = ast.ExpandKind.COUNT
                break
            if isinstance(steps[-1], ast.StarStep) or not self.take("/"):
                break
        return self._expand_tail(steps, kind, at)

    def _expand_step(self) -> ast.Step:
        self.count_part()
        at = self.position
        if self.take("*"):
            return ast.StarStep(position=at)
        if self.peek() == "@":
            return self._annotation_step(at)
        match = self.take_match(NAME)
        if match is None:
            self.fail(Message("a navigation property"), "'*'", "$ref", "$count")
        return ast.NameStep(self.checked_name(match[0], at), position=at)

    def _expand_tail(self, steps: list[ast.Step], kind: ast.ExpandKind, at: int) -> ast.ExpandItem:
        is_star = isinstance(steps[-1], ast.StarStep)
        if not is_star:
            self._check_expand_end(steps)
        options = ast.NO_OPTIONS
        if self.peek() == "(" and not (is_star and kind is ast.ExpandKind.REF):
            options = self.nested_options(_STAR_OPTIONS if is_star else _OPTIONS_OF[kind])
        return ast.ExpandItem(tuple(steps), kind, options, position=at)

    def _check_expand_end(self, steps: list[ast.Step]) -> None:
        """The path ends with a navigation property or annotation, optionally with one type cast after it."""
        last, before = steps[-1], steps[-2] if len(steps) > 1 else None
        if not (isinstance(last, ast.NameStep) and "." in last.name):
            return
        if before is None or (isinstance(before, ast.NameStep) and "." in before.name):
            self.fail(Message("'/' and a navigation property"))

    # --- nested options

    def nested_options(self, allowed: frozenset[str]) -> ast.QueryOptions:
        """``($filter=...;$top=1)``; the position is at the parenthesis."""
        at = self.position
        self.enter(OPTIONS_LEVELS)
        self.open()
        result: dict[str, Any] = {}
        aliases: dict[str, ast.AliasValue] = {}
        while True:
            self._nested_option(allowed, result, aliases)
            self.skip_space()
            if not self.take(";"):
                break
            self.skip_space()
        self.expect(")", "';'", "','")
        self.leave(OPTIONS_LEVELS)
        return ast.QueryOptions(**result, aliases=tuple(aliases.values()), position=at)

    def _nested_option(
        self, allowed: frozenset[str], found: dict[str, Any], aliases: dict[str, ast.AliasValue]
    ) -> None:
        at = self.position
        if self.peek() == "@" and "@" in allowed:
            match = self.take_match(ALIAS_NAME)
            if match is None:
                self.fail(Message("the name of a parameter alias and '='"), at=at + 1)
            self.add_alias(aliases, match[1], at)
            return
        match = self.take_match(OPTION_NAME)
        name = match[1].lower().lstrip("$") if match else ""
        if name not in allowed:
            self.fail(*(f"${option}=" for option in sorted(allowed - {"@"})), at=at)
        if name in found:
            self.refuse(Message("The option ${0} is given twice.", name), at)
        found[name] = NESTED_READERS[name](self)

    def add_alias(self, aliases: dict[str, ast.AliasValue], name: str, at: int) -> None:
        """Read the value of a parameter alias; each name has one value."""
        self.checked_identifier(name, at)
        if name in aliases:
            self.refuse(Message("The parameter alias @{0} is given twice.", name), at)
        aliases[name] = ast.AliasValue(name, self.parameter_value(), position=at)


_OPTIONS_OF: Final = {
    ast.ExpandKind.ENTITIES: _EXPAND_OPTIONS,
    ast.ExpandKind.REF: _REF_OPTIONS,
    ast.ExpandKind.COUNT: _COUNT_OPTIONS,
}

NESTED_READERS: Final[dict[str, Callable[[OptionsParser], object]]] = {
    "apply": OptionsParser.apply,
    "compute": OptionsParser.compute,
    "count": OptionsParser.boolean,
    "expand": OptionsParser.expand,
    "filter": OptionsParser.filter,
    "levels": OptionsParser.levels,
    "orderby": OptionsParser.orderby,
    "search": OptionsParser.search,
    "select": OptionsParser.select,
    "skip": OptionsParser.top,
    "top": OptionsParser.top,
}
"""Name of an option without "$" → how its value is read; the names are the fields of QueryOptions."""
