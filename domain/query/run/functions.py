"""The engine's functions in Python, by the name that the dialects use, too (see sqlite and postgresql).

Each takes the call, the values of its arguments and the call's context. Null gives null, unless documented otherwise.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from domain.model.template_syntax import format_date, format_number, pick_text, plain_number
from domain.query.base import regex
from domain.query.base.bound import Call, Sort, ValueType
from domain.query.base.replacing import MAX_REPLACED, replaced
from domain.query.sql.dialect import GUID_PATTERN, MAX_DAYS, NUMBER_PATTERN
from domain.query.sql.reals import LIMIT, real_text
from foundation import errors
from foundation.enums import DOCUMENT_STATE
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.context import CallContext

Function = Callable[[Call, list[Any], CallContext], Any]
_NUMBER = re.compile(NUMBER_PATTERN)
_GUID = re.compile(GUID_PATTERN)
_DATE_ROUND = {"round": ROUND_HALF_UP, "floor": ROUND_FLOOR, "ceiling": ROUND_CEILING, "truncate": ROUND_DOWN}


def _strict(function: Callable[..., Any]) -> Function:
    """A function of the values alone that is null if one of them is."""

    def call(node: Call, values: list[Any], ctx: CallContext) -> Any:
        return None if any(value is None for value in values) else function(*values)

    return call


def _exact(value: Any, value_type: ValueType) -> Any:
    """A number without a fixed scale, rounded as the databases do before further rounding."""
    if value_type.scale is not None:
        return Decimal(value)
    text = real_text(value)
    return None if text is None else Decimal(text)


def _replaced(node: Call, values: list[Any], ctx: CallContext) -> str | None:
    try:
        return replaced(*values)
    except OverflowError as exc:
        long = Message("it makes a text of more than {0} characters", MAX_REPLACED)
        raise errors.BadRequest(errors.QUERY_TOO_LARGE, long) from exc


def _rounding(node: Call, values: list[Any], ctx: CallContext) -> Any:
    number = None if values[0] is None else _exact(values[0], node.arguments[0].type)
    return None if number is None else int(number.to_integral_value(_DATE_ROUND[node.name]))


def _round_to(node: Call, values: list[Any], ctx: CallContext) -> Any:
    number = None if values[0] is None else _exact(values[0], node.arguments[0].type)
    if number is None or number.adjusted() > 28:
        return None
    return number.quantize(Decimal(1).scaleb(-(node.type.scale or 0)), ROUND_HALF_UP)


def _quotient(node: Call, values: list[Any], ctx: CallContext) -> Any:
    left, right = values
    if left is None or right is None or not right:
        return None
    if node.type.integer:
        whole = abs(left) // abs(right)
        return whole if (left < 0) == (right < 0) else -whole
    return Decimal(left) / Decimal(right)


def _substring(text: str, start: int, length: int | None = None) -> str:
    start = max(start, 0)
    return text[start:] if length is None else text[start : start + max(length, 0)]


def _like(text: str, mask: str) -> bool:
    """Whether the text matches the mask: % stands for any text, _ for one character. Backtracks to the last % only."""
    text = text.lower()
    at = mark = 0
    restart = -1
    position = 0
    while position < len(text):
        if at < len(mask) and mask[at] == "%":
            restart, mark = at, position
            at += 1
        elif at < len(mask) and mask[at] in ("_", text[position]):
            at += 1
            position += 1
        elif restart >= 0:
            mark += 1
            at, position = restart + 1, mark
        else:
            return False
    return not mask[at:].strip("%")


def _text_of(node: Call, values: list[Any], ctx: CallContext) -> str | None:
    (value,), value_type = values, node.arguments[0].type
    if value is None:
        return None
    match value_type.sort:
        case Sort.NUMBER if value_type.scale is None:
            return real_text(value)
        case Sort.NUMBER:
            return plain_number(Decimal(value))
        case Sort.BOOL:
            return "true" if value else "false"
        case Sort.STATE:
            return DOCUMENT_STATE.by_number.get(value)
        case Sort.DATE:
            return str(value.isoformat())
        case Sort.DATETIME:
            return utc_text(value)
    return str(value)


def _to_number(text: str) -> Decimal | None:
    number = Decimal(text) if _NUMBER.match(text) else None
    return None if number is None or abs(number) >= LIMIT else number


def _to_date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text[:10]) if len(text) >= 10 else None
    except ValueError:
        return None


def _to_datetime(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _moved(moment: datetime.datetime, by: datetime.timedelta) -> datetime.datetime | None:
    try:
        return moment + by
    except OverflowError:
        return None


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)


def _whole_days(elapsed: datetime.timedelta) -> int:
    days = abs(elapsed) // datetime.timedelta(days=1)
    return days if elapsed >= datetime.timedelta(0) else -days


def _text_in_language(node: Call, values: list[Any], ctx: CallContext) -> str | None:
    texts, language = values
    return None if texts is None else pick_text(texts, str(language))


def _joined(node: Call, values: list[Any], ctx: CallContext) -> str | None:
    return None if any(value is None for value in values) else "".join(values)


def _enum_number(node: Call, values: list[Any], ctx: CallContext) -> int | None:
    enum = node.arguments[0].type.enum
    assert enum is not None
    return enum.members.get(values[0])


FUNCTIONS: Mapping[str, Function] = {
    "add": _strict(lambda left, right: left + right),
    "sub": _strict(lambda left, right: left - right),
    "mul": _strict(lambda left, right: left * right),
    "div": _quotient,
    "divby": _quotient,
    "round": _rounding,
    "floor": _rounding,
    "ceiling": _rounding,
    "truncate": _rounding,
    "round_to": _round_to,
    "concat": _strict(lambda left, right: left + right),
    "substring": _strict(_substring),
    "length": _strict(len),
    "indexof": _strict(lambda text, term: text.find(term)),
    "replace": _replaced,
    "tolower": _strict(str.lower),
    "toupper": _strict(str.upper),
    "like": _strict(_like),
    "matchesPattern": _strict(lambda text, pattern: bool(regex.matches(text, pattern))),
    "to_text": _text_of,
    "text": _text_in_language,
    "text_in": _strict(lambda texts, language: texts.get(language)),
    "or_empty": lambda node, values, ctx: "" if values[0] is None else values[0],
    "join_texts": _joined,
    "format_date": _strict(format_date),
    "format_number": _strict(lambda value, digits: format_number(value, f"N{digits}")),
    "text_to_number": _strict(_to_number),
    "text_to_date": _strict(_to_date),
    "custom_number": _strict(_to_number),
    "custom_date": _strict(_to_date),
    "custom_datetime": _strict(_to_datetime),
    "custom_bool": _strict(lambda text: text == "true"),
    "text_to_guid": _strict(lambda text: text.lower() if _GUID.match(text.lower()) else None),
    "enum_number": _enum_number,
    "state_number": _strict(lambda number: number),
    "year": _strict(lambda moment: moment.year),
    "month": _strict(lambda moment: moment.month),
    "day": _strict(lambda moment: moment.day),
    "date": _strict(lambda moment: moment.date()),
    "time": _strict(lambda moment: moment.time()),
    "date_to_datetime": _strict(_midnight),
    "datetime_add": _strict(_moved),
    "datetime_difference": _strict(lambda left, right: left - right),
    "days_duration": _strict(lambda days: datetime.timedelta(days=days) if abs(days) < MAX_DAYS else None),
    "duration_days": _strict(_whole_days),
    "is_true": lambda node, values, ctx: values[0] is True,
}
