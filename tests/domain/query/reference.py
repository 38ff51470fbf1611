"""A reference evaluator of OData expressions, written from the text of OData 4.01 Part 2, 5.1.1; no code of the engine.

Expressions are small trees with two readings: `text()`, what a client would send, and `of(scope)`, what it means for
rows that are plain Python. None is null; a Boolean may be null, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any


class Row(dict[str, Any]):
    """An entity: values by API name, references as rows, collections as lists of rows."""

    def __repr__(self) -> str:
        # Rows refer to each other; a failing example should show its own.
        return f"Row({self['Id']})"


Scope = dict[str, Row]


class Node:
    """Any expression."""

    def text(self) -> str:
        """As written in $filter."""
        raise NotImplementedError

    def of(self, scope: Scope) -> Any:
        """Its value; the current row is scope[""]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Path(Node):
    """A property, over references, of the current row or of a variable's."""

    steps: tuple[str, ...]
    variable: str = ""

    def text(self) -> str:
        return "/".join((self.variable, *self.steps) if self.variable else self.steps)

    def of(self, scope: Scope) -> Any:
        value: Any = scope[self.variable]
        for step in self.steps:
            value = None if value is None else value[step]
        return value


@dataclass(frozen=True)
class Literal(Node):
    """A literal of any type."""

    value: Any

    def text(self) -> str:
        value = self.value
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, datetime.datetime):
            return value.isoformat().replace("+00:00", "Z")
        return f"{value:f}" if isinstance(value, Decimal) else str(value)

    def of(self, scope: Scope) -> Any:
        return self.value


@dataclass(frozen=True)
class Compare(Node):
    """5.1.1.1: eq and ne know null; the others are false where one side is null, and null ge null is true."""

    operator: str
    left: Node
    right: Node

    def text(self) -> str:
        return f"({self.left.text()} {self.operator} {self.right.text()})"

    def of(self, scope: Scope) -> bool:
        return compare(self.operator, self.left.of(scope), self.right.of(scope))


def compare(operator: str, left: Any, right: Any) -> bool:
    """A comparison of two values."""
    if operator == "eq":
        return bool(left == right)
    if operator == "ne":
        return bool(left != right)
    if left is None or right is None:
        return left is None and right is None and operator in ("ge", "le")
    return bool({"gt": left > right, "ge": left >= right, "lt": left < right, "le": left <= right}[operator])


@dataclass(frozen=True)
class Member(Node):
    """5.1.1.1.12: in."""

    operand: Node
    items: tuple[Literal, ...]

    def text(self) -> str:
        return f"({self.operand.text()} in ({','.join(item.text() for item in self.items)}))"

    def of(self, scope: Scope) -> bool:
        return any(compare("eq", self.operand.of(scope), item.value) for item in self.items)


@dataclass(frozen=True)
class Logic(Node):
    """5.1.1.1.7 and .8: the tables for and, or with null."""

    operator: str
    left: Node
    right: Node

    def text(self) -> str:
        return f"({self.left.text()} {self.operator} {self.right.text()})"

    def of(self, scope: Scope) -> bool | None:
        values = (self.left.of(scope), self.right.of(scope))
        decisive = self.operator == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive


@dataclass(frozen=True)
class Not(Node):
    """5.1.1.1.9: not null is null."""

    operand: Node

    def text(self) -> str:
        return f"not ({self.operand.text()})"

    def of(self, scope: Scope) -> bool | None:
        value = self.operand.of(scope)
        return None if value is None else not value


@dataclass(frozen=True)
class Call(Node):
    """A function or arithmetic operator: null where an argument is null (5.1.1.2, 5.1.1.4)."""

    name: str
    arguments: tuple[Node, ...]

    def text(self) -> str:
        texts = [argument.text() for argument in self.arguments]
        if self.name in OPERATORS:
            return f"({texts[0]} {self.name} {texts[1]})"
        return f"-({texts[0]})" if self.name == "negate" else f"{self.name}({','.join(texts)})"

    def of(self, scope: Scope) -> Any:
        values = [argument.of(scope) for argument in self.arguments]
        return None if None in values else FUNCTIONS[self.name](*values)


def truncated_quotient(left: int, right: int) -> int | None:
    """Integer division goes towards zero (5.1.1.2.4); by zero the engine gives null, as its documentation says."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int | None:
    """The sign is the dividend's (5.1.1.2.6)."""
    quotient = truncated_quotient(left, right)
    return None if quotient is None else left - quotient * right


def substring(text: str, start: int, length: int | None = None) -> str:
    """Zero-based."""
    return text[start:] if length is None else text[start : start + length]


def rounding(mode: str) -> Callable[[Decimal], Decimal]:
    """round, floor, ceiling."""
    return lambda value: Decimal(value).quantize(Decimal(1), mode)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": truncated_quotient,
    "mod": remainder,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    "negate": lambda value: -value,
    "contains": lambda text, part: part in text,
    "startswith": lambda text, part: text.startswith(part),
    "endswith": lambda text, part: text.endswith(part),
    "length": len,
    "indexof": lambda text, part: text.find(part),
    "substring": substring,
    "tolower": str.lower,
    "toupper": str.upper,
    "trim": str.strip,
    "concat": lambda left, right: left + right,
    "year": lambda value: value.year,
    "month": lambda value: value.month,
    "day": lambda value: value.day,
    "hour": lambda value: value.hour,
    "minute": lambda value: value.minute,
    "second": lambda value: value.second,
    "fractionalseconds": lambda value: Decimal(value.microsecond).scaleb(-6),
    "date": lambda value: value.date(),
    "round": rounding(ROUND_HALF_UP),
    "floor": rounding(ROUND_FLOOR),
    "ceiling": rounding(ROUND_CEILING),
}


@dataclass(frozen=True)
class AnyText(Node):
    """A condition on a multilanguage value: some language's text satisfies it (spec 02, 2.2)."""

    path: Path
    name: str
    wanted: str

    def text(self) -> str:
        wanted = Literal(self.wanted).text()
        if self.name in ("eq", "ne"):
            return f"({self.path.text()} {self.name} {wanted})"
        return f"{self.name}({self.path.text()},{wanted})"

    def of(self, scope: Scope) -> bool | None:
        texts = self.path.of(scope)
        if self.name in ("eq", "ne"):
            found = texts is not None and self.wanted in texts.values()
            return found if self.name == "eq" else not found
        if texts is None:
            return None
        return any(FUNCTIONS[self.name](text, self.wanted) for text in texts.values())


@dataclass(frozen=True)
class Quantified(Node):
    """5.1.1.13: any and all; a row for which the condition is null does not satisfy it."""

    operator: str
    collection: str
    variable: str
    predicate: Node | None

    def text(self) -> str:
        inner = f"{self.variable}:{self.predicate.text()}" if self.predicate is not None else ""
        return f"{self.collection}/{self.operator}({inner})"

    def of(self, scope: Scope) -> bool:
        rows = scope[""][self.collection]
        if self.predicate is None:
            return bool(rows)
        held = [self.predicate.of({**scope, self.variable: row}) is True for row in rows]
        return any(held) if self.operator == "any" else all(held)


@dataclass(frozen=True)
class Counted(Node):
    """$count of a collection, filtered or not; inside the filter the collection's row is the current one."""

    collection: str
    predicate: Node | None

    def text(self) -> str:
        filtered = f"($filter={self.predicate.text()})" if self.predicate is not None else ""
        return f"{self.collection}/$count{filtered}"

    def of(self, scope: Scope) -> int:
        rows = scope[""][self.collection]
        if self.predicate is None:
            return len(rows)
        return sum(self.predicate.of({**scope, "": row}) is True for row in rows)


def matching(rows: Sequence[Row], predicate: Node) -> list[Row]:
    """The rows for which the predicate is true."""
    return [row for row in rows if predicate.of({"": row}) is True]


def ordered(rows: Sequence[Row], keys: Sequence[tuple[Node, bool]]) -> list[Row]:
    """By the keys, each with whether it descends; null is the least value (Part 1, 11.2.6.2), ties go by Id."""
    made = sorted(rows, key=lambda row: row["Id"])
    for node, is_descending in reversed(keys):

        def key(row: Row, node: Node = node) -> tuple[bool, Any]:
            value = node.of({"": row})
            return (value is not None, value if value is not None else 0)

        made.sort(key=key, reverse=is_descending)
    return made
