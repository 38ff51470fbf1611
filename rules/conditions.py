"""Comparisons of conditions (spec 05, 5.2): pure functions of values and kinds, without entities or requests.

One class is one comparison; `kinds` lists the kinds of values it accepts:

Equals, Not_Equals                 everything but binary
Greater_Than, Less_Than, …         ordered kinds: numbers, dates, states and enums (by number), text
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

from django.utils.translation import gettext_noop as _

from domain.model.rule_enums import USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE
from foundation import like_patterns
from foundation.enums import DOCUMENT_STATE, EnumCatalogue, EnumType
from foundation.guids import parse_guid
from foundation.kinds import Kind


@dataclass(frozen=True, slots=True)
class Operand:
    """Type of the left side: its kind, and the members of an enum or state."""

    kind: Kind
    enum: EnumType | None = None


NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY})
TEXTS = frozenset({Kind.STRING, Kind.MULTILANGUAGE})
ORDERED = NUMBERS | {Kind.DATE, Kind.DATETIME, Kind.ENUM, Kind.STATE, Kind.STRING}
EQUATABLE = frozenset(Kind) - {Kind.BINARY}


# --- values -------------------------------------------------------------------------------------------------------

_KEY = re.compile(r"\w+\((?P<guid>[^()]*)\)")


def parse_value(operand: Operand, text: str) -> Any:
    """Parse the comparison value of a condition. Raises ValueError.

    Numbers are exact, not rounded to the attribute's scale: 0.999 is less than 1.00 whatever its scale.
    """
    return _PARSERS[operand.kind](operand, text)


def _parse_guid(operand: Operand, text: str) -> str:
    # Also accepts OData's form of references: Crm_Sales_Customers(0189…).
    match = _KEY.fullmatch(text.strip())
    return parse_guid(match["guid"] if match else text.strip())


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
    """The texts of a value in one or several languages: any of them may satisfy a comparison."""
    return tuple(actual.values()) if isinstance(actual, Mapping) else (str(actual),)


def _ordinal(operand: Operand, value: Any) -> Any:
    """The sort key of a value."""
    match operand.kind:
        case Kind.STATE:
            return DOCUMENT_STATE.members[value]
        case Kind.ENUM:
            assert operand.enum is not None
            return operand.enum.members[value]
        case _:
            return value


def is_null(actual: Any) -> bool:
    """Whether the value is null, or a multilanguage value without any text."""
    return actual is None or (isinstance(actual, Mapping) and not actual)


# --- comparisons --------------------------------------------------------------------------------------------------


class Comparison:
    """Base of every comparison. `name` and `number` are public: never changed, never reused. `name` is stored."""

    name: ClassVar[str] = ""
    number: ClassVar[int]
    #: The comparison in a sentence; `phrase_of_time` for dates and times, if it differs.
    phrase: ClassVar[str] = ""
    phrase_of_time: ClassVar[str] = ""
    needs_value: ClassVar[bool] = True
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    def parse(self, operand: Operand, text: str) -> Any:
        """Parse the comparison value when the rule is compiled. Raises ValueError."""
        return parse_value(operand, text)

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Whether a canonical value satisfies the comparison."""
        raise NotImplementedError


comparisons: EnumCatalogue[Comparison] = EnumCatalogue("comparison", USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE)


@comparisons.register
class Equals(Comparison):
    """Equal values; of a multilanguage text, in any language."""

    name = "Equals"
    number = 0
    phrase = _("is")
    kinds = EQUATABLE

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Text is case-sensitive; trailing zeros of numbers do not matter."""
        if is_null(actual):
            return False
        if operand.kind in TEXTS:
            return expected in _texts(actual)
        return bool(actual == expected)


@comparisons.register
class NotEquals(Equals):
    """The opposite of Equals, and so true of null."""

    name = "Not_Equals"
    number = 5
    phrase = _("is not")

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
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
    """Strictly greater: 0.25 is not greater than 0.25."""

    name = "Greater_Than"
    number = 1
    phrase = _("is more than")
    phrase_of_time = _("is after")
    compare = operator.gt


@comparisons.register
class LessThan(_Ordered):
    """Strictly less."""

    name = "Less_Than"
    number = 2
    phrase = _("is less than")
    phrase_of_time = _("is before")
    compare = operator.lt


@comparisons.register
class GreaterThanOrEqual(_Ordered):
    """Greater or equal."""

    name = "Greater_Than_Or_Equal"
    number = 6
    phrase = _("is at least")
    phrase_of_time = _("is not before")
    compare = operator.ge


@comparisons.register
class LessThanOrEqual(_Ordered):
    """Less or equal."""

    name = "Less_Than_Or_Equal"
    number = 7
    phrase = _("is at most")
    phrase_of_time = _("is not after")
    compare = operator.le


@comparisons.register
class Like(Comparison):
    """The whole text matches the pattern, in any language and any case (foundation.like_patterns)."""

    name = "Like"
    number = 3
    phrase = _("is like")
    kinds = TEXTS | {Kind.ENUM}

    def parse(self, operand: Operand, text: str) -> Any:
        return like_patterns.Pattern(text)

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        return not is_null(actual) and any(expected.matches(text) for text in _texts(actual))


@comparisons.register
class IsNull(Comparison):
    """The value is null. An empty text is a value."""

    name = "IsNull"
    number = 4
    phrase = _("is empty")
    needs_value = False

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        return is_null(actual)


@comparisons.register
class NotIsNull(Comparison):
    """The value is not null."""

    name = "Not_IsNull"
    number = 8
    phrase = _("is not empty")
    needs_value = False

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        return not is_null(actual)
