"""Converts literals to canonical values of the other operand's type.

`ACCEPTED` lists the literal kinds that a type accepts. It is checked when an expression is bound, so that the error has
a position. The value itself (a member of the enum, a reference to the right set) is checked when the plan runs: the
converters raise ValueError or OverflowError, which `checked` turns into BadRequest.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from domain.model.registry import repositories
from domain.query.base.bound import Sort, ValueType, unchanged
from domain.syntax.ast import LiteralKind
from domain.syntax.tokens import DURATION
from foundation import errors
from foundation.enums import EnumType
from foundation.guids import is_guid, parse_guid
from foundation.messages import written
from foundation.texts import decode_base64

K = LiteralKind
_NUMBERS = frozenset({K.INTEGER, K.DECIMAL})

#: sort of the target → accepted kinds of literals
ACCEPTED: dict[Sort, frozenset[LiteralKind]] = {
    Sort.GUID: frozenset({K.GUID, K.STRING}),
    Sort.STRING: frozenset({K.STRING, K.GUID}),
    Sort.NUMBER: _NUMBERS,
    Sort.BOOL: frozenset({K.BOOLEAN}),
    Sort.DATE: frozenset({K.DATE, K.STRING}),
    Sort.DATETIME: frozenset({K.DATE_TIME_OFFSET, K.DATE, K.STRING}),
    Sort.TIME: frozenset({K.TIME_OF_DAY, K.STRING}),
    Sort.DURATION: frozenset({K.DURATION, K.STRING}),
    Sort.BINARY: frozenset({K.BINARY}),
    Sort.ENUM: frozenset({K.ENUM, K.STRING, K.INTEGER}),
    Sort.STATE: frozenset({K.ENUM, K.STRING, K.INTEGER}),
    Sort.TEXTS: frozenset({K.STRING}),
    Sort.REFERENCE: frozenset({K.STRING, K.GUID}),
    Sort.CUSTOM: frozenset({K.STRING, K.INTEGER, K.DECIMAL, K.DATE}),
    Sort.SECRET: frozenset(),
}

#: The type of a literal without another operand.
NATURAL: dict[LiteralKind, Sort] = {
    K.NULL: Sort.NULL,
    K.BOOLEAN: Sort.BOOL,
    K.INTEGER: Sort.NUMBER,
    K.DECIMAL: Sort.NUMBER,
    K.STRING: Sort.STRING,
    K.GUID: Sort.GUID,
    K.DATE: Sort.DATE,
    K.DATE_TIME_OFFSET: Sort.DATETIME,
    K.TIME_OF_DAY: Sort.TIME,
    K.DURATION: Sort.DURATION,
    K.BINARY: Sort.BINARY,
}

#: The range that every database can compare.
_NUMBER_LIMIT = Decimal(10) ** 100

#: Databases compute with durations as microseconds in 64 bits.
_DURATION_LIMIT = datetime.timedelta(microseconds=2**63 - 1)

_REFERENCE = re.compile(r"(?:.*/)?([A-Za-z_][\w.]*)\((?:[Ii]d=)?'?([0-9a-fA-F-]{36})'?\)")


def converter(target: ValueType) -> Callable[[Any], Any]:
    """The function that converts a literal's value to the type; it raises ValueError or OverflowError."""
    sort = target.sort
    if sort in (Sort.ENUM, Sort.STATE):
        assert target.enum is not None
        return _enum_converter(target.enum, as_number=sort is Sort.STATE)
    if sort is Sort.REFERENCE:
        return _reference_converter(target.target)
    return _CONVERTERS.get(sort, unchanged)


def checked(convert: Callable[[Any], Any], target: ValueType, what: str) -> Callable[[Any], Any]:
    """The converter with its errors as BadRequest; null stays null. `what`: the other operand, for the message."""

    def convert_checked(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except (ValueError, OverflowError) as exc:  # OverflowError: a date-time whose time in UTC has no year
            raise errors.BadRequest(errors.INVALID_LITERAL, _text(value), str(target), what, info=str(exc)) from exc

    return convert_checked


def _text(value: Any) -> str:
    return ",".join(map(written, value)) if isinstance(value, tuple) else written(value)


def _to_guid(value: Any) -> str:
    return parse_guid(str(value).strip())


def _to_string(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _to_number(value: Any) -> int | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("not a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("INF and NaN have no meaning for the decimals of this model")
    size = abs(Decimal(value))
    if size >= _NUMBER_LIMIT or 0 < size < 1 / _NUMBER_LIMIT:
        raise ValueError("a number that no attribute comes near")
    return value


def _to_date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        raise ValueError("a date-time where a date is wanted")
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))


def _to_datetime(value: Any) -> datetime.datetime:
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        # A date-time without a zone is UTC, as stored ones are.
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC)
    return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)


def to_wall_clock(value: Any) -> datetime.datetime:
    """The local time of the literal's zone, from which functions take the parts of a date-time (Part 2, 5.1.1.8)."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC)
    return _to_datetime(value)


def to_offset(value: Any) -> int:
    """The minutes by which the zone of a date-time literal is ahead of UTC."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    offset = value.utcoffset() if isinstance(value, datetime.datetime) else None
    return 0 if offset is None else offset // datetime.timedelta(minutes=1)


def _to_time(value: Any) -> datetime.time:
    return value if isinstance(value, datetime.time) else datetime.time.fromisoformat(str(value))


def _to_duration(value: Any) -> datetime.timedelta:
    span = value if isinstance(value, datetime.timedelta) else _duration_in(str(value))
    if abs(span) > _DURATION_LIMIT:
        raise ValueError("a duration of more than 106,751,991 days")
    return span


def _duration_in(text: str) -> datetime.timedelta:
    match = DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration such as P1DT2H30M")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    microseconds = int((fraction or "")[:6].ljust(6, "0"))
    try:
        span = datetime.timedelta(
            int(days or 0), int(seconds or 0), microseconds, 0, int(minutes or 0), int(hours or 0)
        )
    except OverflowError as exc:
        raise ValueError("a duration of more than 999,999,999 days") from exc
    return -span if sign else span


def text_to_bool(value: Any) -> bool:
    """The boolean in a text (cast)."""
    if str(value).lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return str(value).lower() == "true"


def text_to_binary(value: Any) -> bytes:
    """The bytes of a text in base64url or base64 (cast)."""
    return decode_base64(str(value))


def _to_custom_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


_CONVERTERS: dict[Sort, Callable[[Any], Any]] = {
    Sort.GUID: _to_guid,
    Sort.STRING: _to_string,
    Sort.TEXTS: _to_string,
    Sort.NUMBER: _to_number,
    Sort.DATE: _to_date,
    Sort.DATETIME: _to_datetime,
    Sort.TIME: _to_time,
    Sort.DURATION: _to_duration,
    Sort.CUSTOM: _to_custom_text,
}


def _enum_converter(enum: EnumType, *, as_number: bool) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            if len(value) != 1:
                raise ValueError(f"{enum.name} is not a flags type")
            (value,) = value
        member = enum.member(str(value))
        return enum.members[member] if as_number else member

    return convert


def _reference_converter(target: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        text = str(value).strip()
        if is_guid(text):
            return parse_guid(text)
        match = _REFERENCE.fullmatch(text)
        named = repositories.for_set(match[1]) if match else None
        if match is None or named is None:
            raise ValueError("not a guid and not a reference such as Set(guid)")
        wanted = repositories[target]
        other = named[0]
        # A reference by the base set may identify a row of the derived type.
        if not (issubclass(other.model, wanted.model) or issubclass(wanted.model, other.model)):
            raise ValueError(f"{other.set_name} is not {wanted.set_name} or derived from it")
        return parse_guid(match[2])

    return convert
