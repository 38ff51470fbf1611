"""Comparisons of conditions (spec 05, 5.2): a pure module that knows values and their kinds, no entity and no request.

One class is one comparison. ACCEPTS is the table of which comparison takes which kind:

    Equals, Not_Equals                 everything but binary
    Greater_Than, Less_Than, …         what has an order: numbers, dates, states and enums (by number), text
    Like                               text in one or several languages, enums by name
    IsNull, Not_IsNull                 everything

Null is less than, greater than, equal to and like nothing; it is unequal to every value.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from foundation import like_patterns
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.guids import parse_guid
from foundation.kinds import Kind


@dataclass(frozen=True, slots=True)
class Operand:
    """What is known of the left side: its kind, and the members of an enum or state."""

    kind: Kind
    enum: EnumType | None = None


NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY})
IDENTITIES = frozenset({Kind.GUID, Kind.REFERENCE})
TEXTS = frozenset({Kind.STRING, Kind.MULTILANGUAGE})
ORDERED = NUMBERS | {Kind.DATE, Kind.DATETIME, Kind.ENUM, Kind.STATE, Kind.STRING}
EQUATABLE = frozenset(Kind) - {Kind.BINARY}


# --- values -------------------------------------------------------------------------------------------------------

_KEY = re.compile(r"\w+\((?P<guid>[^()]*)\)")


def parse_value(operand: Operand, text: str) -> Any:
    """The comparison value that the text of a condition stands for. Raises ValueError.

    Numbers are taken exactly, not rounded to the attribute's scale: 0.999 is less than 1.00 however few places it has.
    """
    return _PARSERS[operand.kind](operand, text)


def _parse_guid(operand: Operand, text: str) -> str:
    # The form that OData shows references in is as good: Crm_Sales_Customers(0189…).
    found = _KEY.fullmatch(text.strip())
    return parse_guid(found["guid"] if found else text.strip())


def _parse_text(operand: Operand, text: str) -> str:
    return text


def _parse_int(operand: Operand, text: str) -> Decimal:
    number = _parse_decimal(operand, text)
    if number != number.to_integral_value():
        raise ValueError(f"'{text}' is not a whole number")
    return number


def _parse_decimal(operand: Operand, text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation as exc:
        raise ValueError(f"'{text}' is not a number") from exc
    if not number.is_finite():
        raise ValueError(f"'{text}' is not a number")
    return number


def _parse_bool(operand: Operand, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false", "1", "0"):
        raise ValueError(f"'{text}' is neither true nor false")
    return lowered in ("true", "1")


def _parse_date(operand: Operand, text: str) -> datetime.date:
    moment = datetime.datetime.fromisoformat(text.strip())
    return moment.date()


def _parse_datetime(operand: Operand, text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)


def _parse_enum(operand: Operand, text: str) -> str:
    assert operand.enum is not None
    return operand.enum.member(text)


def _parse_state(operand: Operand, text: str) -> str:
    return DOCUMENT_STATE.member(text.replace(" ", "").replace("_", ""))


def _parse_nothing(operand: Operand, text: str) -> Any:
    raise ValueError("binary values are not compared")


_PARSERS: Mapping[Kind, Callable[[Operand, str], Any]] = {
    Kind.GUID: _parse_guid,
    Kind.REFERENCE: _parse_guid,
    Kind.STRING: _parse_text,
    Kind.MULTILANGUAGE: _parse_text,
    Kind.INT: _parse_int,
    Kind.DECIMAL: _parse_decimal,
    Kind.AMOUNT: _parse_decimal,
    Kind.QUANTITY: _parse_decimal,
    Kind.BOOL: _parse_bool,
    Kind.DATE: _parse_date,
    Kind.DATETIME: _parse_datetime,
    Kind.ENUM: _parse_enum,
    Kind.STATE: _parse_state,
    Kind.BINARY: _parse_nothing,
}


def _texts(actual: Any) -> tuple[str, ...]:
    """The texts of a value in one language or several: any of them may satisfy a comparison."""
    return tuple(actual.values()) if isinstance(actual, Mapping) else (str(actual),)


def _ordinal(operand: Operand, value: Any) -> Any:
    """What decides the order of a value."""
    match operand.kind:
        case Kind.STATE:
            return DOCUMENT_STATE.members[value]
        case Kind.ENUM:
            assert operand.enum is not None
            return operand.enum.members[value]
        case _:
            return value


def is_null(actual: Any) -> bool:
    """No value: null, or a multilanguage value without any text."""
    return actual is None or (isinstance(actual, Mapping) and not actual)


# --- comparisons --------------------------------------------------------------------------------------------------


class Comparison:
    """Base of every comparison. `name` is public and stored: never renamed, never reused."""

    name: ClassVar[str] = ""
    needs_value: ClassVar[bool] = True
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    def parse(self, operand: Operand, text: str) -> Any:
        """The value to compare with, once, when the rule is compiled. Raises ValueError."""
        return parse_value(operand, text)

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether a canonical value satisfies it."""
        raise NotImplementedError


class Comparisons:
    """The catalogue, in declared order."""

    def __init__(self) -> None:
        self._by_name: dict[str, Comparison] = {}

    def register(self, declaration: type[Comparison]) -> type[Comparison]:
        """Class decorator."""
        if not declaration.name or declaration.name in self._by_name:
            raise ValueError(f"comparison {declaration.__name__} has no name, or one that is taken")
        self._by_name[declaration.name] = declaration()
        return declaration

    def get(self, name: str) -> Comparison | None:
        """The comparison with this name."""
        return self._by_name.get(name)

    def all(self) -> list[Comparison]:
        """Every comparison, in declared order."""
        return list(self._by_name.values())


comparisons = Comparisons()


@comparisons.register
class Equals(Comparison):
    """The same value; of a multilanguage text, in any language."""

    name = "Equals"
    kinds = EQUATABLE

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Text counts case; numbers do not count trailing zeros."""
        if is_null(actual):
            return False
        if operand.kind in TEXTS:
            return expected in _texts(actual)
        return bool(actual == expected)


@comparisons.register
class NotEquals(Equals):
    """The opposite of Equals, and so true of null."""

    name = "Not_Equals"

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether Equals does not hold."""
        return not super().holds(operand, actual, expected)


class _Ordered(Comparison):
    kinds = ORDERED
    compare: ClassVar[Callable[[Any, Any], bool]]

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        if actual is None:
            return False
        return type(self).compare(_ordinal(operand, actual), _ordinal(operand, expected))


@comparisons.register
class GreaterThan(_Ordered):
    """Strictly above: 0.25 is not above 0.25."""

    name = "Greater_Than"
    compare = operator.gt


@comparisons.register
class LessThan(_Ordered):
    """Strictly below."""

    name = "Less_Than"
    compare = operator.lt


@comparisons.register
class GreaterThanOrEqual(_Ordered):
    """Above or the same."""

    name = "Greater_Than_Or_Equal"
    compare = operator.ge


@comparisons.register
class LessThanOrEqual(_Ordered):
    """Below or the same."""

    name = "Less_Than_Or_Equal"
    compare = operator.le


@comparisons.register
class Like(Comparison):
    """The whole text matches the pattern, in any language and any case (foundation.like_patterns)."""

    name = "Like"
    kinds = TEXTS | {Kind.ENUM}

    def parse(self, operand: Operand, text: str) -> Any:
        """The pattern."""
        return like_patterns.Pattern(text)

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether some text matches."""
        return not is_null(actual) and any(expected.matches(text) for text in _texts(actual))


@comparisons.register
class IsNull(Comparison):
    """No value. An empty text is a value."""

    name = "IsNull"
    needs_value = False

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether there is none."""
        return is_null(actual)


@comparisons.register
class NotIsNull(Comparison):
    """Some value."""

    name = "Not_IsNull"
    needs_value = False

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether there is one."""
        return not is_null(actual)


#: comparison → the kinds that it takes
ACCEPTS: Mapping[str, frozenset[Kind]] = {comparison.name: comparison.kinds for comparison in comparisons.all()}
