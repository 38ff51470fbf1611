"""Parses primitive literals (section 7 of the ABNF; Part 2, section 5.1.1.11)."""

import json
import re
from base64 import urlsafe_b64decode
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final, NoReturn

from domain.syntax.ast import Literal, LiteralKind
from domain.syntax.cursor import Cursor
from domain.syntax.geo import skip_geo_literal
from domain.syntax.tokens import (
    BASE64,
    BASE64_TAIL,
    CLOCK,
    DATE,
    DATE_BEGINNING,
    DURATION,
    ENUM_MEMBERS,
    GUID,
    JSON_STRING,
    MINUS_INFINITY,
    NUMBER,
    SHORT_CLOCK,
    SPACE,
    STRING,
)
from foundation.messages import TranslatableMessage as Message

MAX_NUMBER_LENGTH: Final = 400
"""Characters of a number: more than any Edm type holds, and few enough that conversion costs nothing."""
MAX_EXPONENT: Final = 999
"""Decimal takes far larger exponents, but writing such a number in digits needs gigabytes."""

NAN: Final = Decimal("NaN")
INFINITY: Final = Decimal("Infinity")
MINUS_INFINITE: Final = Decimal("-Infinity")
"""One object each: NaN equals nothing but, inside a tree, the same object."""

_BASE64_DIGITS: Final = Message("base64url digits")
_MICROSECOND_DIGITS: Final = 6
_GEO_KINDS: Final = {"geography": LiteralKind.GEOGRAPHY, "geometry": LiteralKind.GEOMETRY}
_PREFIXES: Final = ("duration", "binary", *_GEO_KINDS)
_FORMER_PREFIXES: Final = ("datetime", "datetimeoffset", "guid", "time", "x")
"""Prefixes of literals up to OData 3."""


class LiteralParser(Cursor):
    """Reads one literal at the position; the caller selects the method by the first character.

    colon_follows is set while the condition of a case() is read, which a colon follows.
    """

    __slots__ = ("colon_follows",)

    def __init__(self, text: str, position: int = 0) -> None:
        super().__init__(text, position)
        self.colon_follows = False

    def string(self) -> Literal:
        """``'it''s'``"""
        at = self.position
        match = STRING.match(self.text, at)
        if match is None:
            self.refuse(Message("The string has no closing single quote."), at, ("a single quote",))
        self.position = match.end()
        value = match[1]
        if "''" in value:
            value = value.replace("''", "'")
        self.height = 0
        return Literal(LiteralKind.STRING, value, match[0], position=at)

    def json_string(self) -> Literal:
        """``"it's"``, inside JSON arrays and objects only."""
        at = self.position
        match = JSON_STRING.match(self.text, at)
        if match is None:
            self.refuse(Message("The string has no closing double quote."), at, ("a double quote",))
        self.position = match.end()
        value = match[1] if "\\" not in match[1] else self._unescaped(match[0], at)
        self.height = 0
        return Literal(LiteralKind.STRING, value, match[0], position=at)

    def _unescaped(self, quoted: str, at: int) -> str:
        try:
            value = json.loads(quoted, strict=False)
            value.encode()
        except ValueError:  # JSONDecodeError, or UnicodeEncodeError for a lone surrogate
            self.refuse(Message("The string has an escape that JSON does not know."), at, ("a JSON string",))
        assert isinstance(value, str)
        if "\x00" in value:
            self.refuse(Message("The character NUL is not allowed."), at)
        return value

    def number_like(self) -> Literal:
        """A literal that begins with a digit, or with a sign and a digit: guid, date, time or number."""
        text, at = self.text, self.position
        if match := GUID.match(text, at):
            return self.guid(match[0])
        if DATE.match(text, at):
            return self._date()
        if DATE_BEGINNING.match(text, at):
            self.refuse(
                Message("This is not a date. Behind a date may stand T, a time of day, and Z or a distance from UTC."),
                at,
                ("a date such as 2025-01-31", "a date-time such as 2025-01-31T23:59:59Z"),
            )
        if clock := CLOCK.match(text, at):
            return self._time_before_colon(clock[0]) if self.colon_follows else self._time_of_day(CLOCK)
        return self.number()

    def _time_before_colon(self, text: str) -> Literal:
        """Parse the number 10 or a time of day in ``case(X eq 10:30,...)``, where a colon precedes the branch's value.

        If the branch ends after the text, its last colon is the branch's: ``10:30`` has the number 10, ``10:30:1`` the
        time 10:30.
        """
        behind = SPACE.match(self.text, self.position + len(text))
        if behind is None or self.text[behind.end() : behind.end() + 1] not in (",", ")"):
            return self._time_of_day(CLOCK)
        return self._time_of_day(SHORT_CLOCK) if text.count(":") > 1 else self.number()

    def guid(self, text: str) -> Literal:
        """The guid that GUID matched at the position."""
        at = self.position
        self.position = at + len(text)
        self.height = 0
        return Literal(LiteralKind.GUID, text.lower(), text, position=at)

    def minus_infinity(self) -> Literal | None:
        at = self.position
        if not self.take_match(MINUS_INFINITY):
            return None
        return Literal(LiteralKind.DECIMAL, MINUS_INFINITE, "-INF", position=at)

    def number(self) -> Literal:
        at = self.position
        match = self.take_match(NUMBER)
        if match is None:
            self.fail(Message("a number"))
        text = match[0]
        if len(text) > MAX_NUMBER_LENGTH:
            self.refuse(Message("A number has at most {0} characters.", MAX_NUMBER_LENGTH), at)
        self.height = 0
        if match[1] is None and match[2] is None:
            return Literal(LiteralKind.INTEGER, int(text), text, position=at)
        if match[3] is not None and abs(int(match[3])) > MAX_EXPONENT:
            self.refuse(Message("The exponent of a number is at most {0}.", MAX_EXPONENT), at)
        return Literal(LiteralKind.DECIMAL, Decimal(text), text, position=at)

    # --- dates and times

    def _date(self) -> Literal:
        at = self.position
        match = self.take_match(DATE)
        assert match is not None
        day = self._day(match[1], at)
        self.height = 0
        if match[2] is None:
            return Literal(LiteralKind.DATE, day, match[0], position=at)
        clock, is_exact = self._clock(match[2], at)
        zone = self._zone(match[3], at)
        value = datetime.combine(day, clock, zone)
        try:
            value.astimezone(UTC)
        except OverflowError:  # at the edge of year 1 or 9999 only the local time has a date
            self.note_not_supported(Message("Dates outside the years 1 to 9999 ('{0}')", match[0]), at)
        return Literal(LiteralKind.DATE_TIME_OFFSET, value, match[0], is_exact=is_exact, position=at)

    def _day(self, text: str, at: int) -> date:
        year_text, month_text, day_text = text.rsplit("-", 2)
        digits = year_text.lstrip("-")
        if len(digits) > 4 and digits.startswith("0"):
            self.refuse(Message("'{0}' is not a date: the year has needless zeros.", text[:80]), at, ("a date",))
        if len(digits) > 4 or year_text.startswith("-") or digits == "0000":
            return self._day_outside(text, at)
        try:
            return date(int(year_text), int(month_text), int(day_text))
        except ValueError:
            self._no_day(text, at)

    def _no_day(self, text: str, at: int) -> NoReturn:
        self.refuse(Message("'{0}' is not a date of the calendar, such as 2026-01-31.", text[:40]), at, ("a date",))

    def _day_outside(self, text: str, at: int) -> date:
        """Note that a valid date is outside the years 1 to 9999, and so not supported; returns any date instead."""
        _, month_text, day_text = text.rsplit("-", 2)
        if not (1 <= int(month_text) <= 12 and 1 <= int(day_text) <= 31):
            self._no_day(text, at)
        self.note_not_supported(Message("Dates outside the years 1 to 9999 ('{0}')", text[:40]), at)
        return date.max

    def _time_of_day(self, pattern: re.Pattern[str]) -> Literal:
        at = self.position
        match = self.take_match(pattern)
        assert match is not None
        value, is_exact = self._clock(match[0], at)
        self.height = 0
        return Literal(LiteralKind.TIME_OF_DAY, value, match[0], is_exact=is_exact, position=at)

    def _clock(self, text: str, at: int) -> tuple[time, bool]:
        """The time of day, and whether it is exact."""
        fraction = text[9:]
        hour, minute, second = int(text[:2]), int(text[3:5]), int(text[6:8] or 0)
        if hour > 23 or minute > 59 or second > 60 or len(fraction) > 12:
            self.refuse(
                Message("'{0}' is not a time of day with at most 12 digits of a second.", text[:40]),
                at,
                ("a time such as 23:59:59.5",),
            )
        if second == 60:
            self.note_not_supported(Message("Leap seconds"), at)
            second = 59
        microseconds = int(fraction[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0"))
        return time(hour, minute, second, microseconds), not fraction[_MICROSECOND_DIGITS:].strip("0")

    def _zone(self, text: str | None, at: int) -> timezone:
        if text is None or text in "Zz":
            return UTC
        hours, minutes = int(text[1:3]), int(text[4:6])
        if hours > 23 or minutes > 59:
            self.refuse(Message("'{0}' is not a distance from UTC.", text), at, ("Z or a distance such as +02:00",))
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if text[0] == "-" else offset)

    # --- literals with a prefix: name'...'

    def prefixed(self, name: str, at: int) -> Literal:
        """The literal with this prefix; at is the prefix's position, the current one is at the quote."""
        prefix = name.lower()
        if prefix not in _PREFIXES:
            return self._enumeration(name, at)
        if prefix in _GEO_KINDS:
            return self._geo(_GEO_KINDS[prefix], at)
        self.position += 1
        return self._duration(at) if prefix == "duration" else self._binary(at)

    def _enumeration(self, name: str, at: int) -> Literal:
        if name.lower() in _FORMER_PREFIXES:
            self.refuse(
                Message(
                    "A literal cannot begin with {0}'. Guids, numbers, dates and times have neither prefix nor quotes.",
                    name[:40],
                ),
                at,
                ("duration'...'", "binary'...'", "Namespace.Type'Member'"),
            )
        self.position += 1
        members_at = self.position
        match = self.take_match(ENUM_MEMBERS)
        if match is None:
            self.fail(Message("the name or number of an enumeration member"))
        members = tuple(self._member(member, members_at) for member in match[0].split(","))
        self.expect("'", "','")
        self.height = 0
        return Literal(LiteralKind.ENUM, members, self.text[at : self.position], name, position=at)

    def _member(self, text: str, at: int) -> str | int:
        if text[0] not in "+-0123456789":
            return self.checked_identifier(text, at)
        if len(text) > MAX_NUMBER_LENGTH:
            self.refuse(Message("A number has at most {0} characters.", MAX_NUMBER_LENGTH), at)
        return int(text)

    def _geo(self, kind: LiteralKind, at: int) -> Literal:
        self.position += 1
        skip_geo_literal(self)
        self.expect("'")
        self.note_not_supported(Message("Spatial values"), at)
        self.height = 0
        text = self.text[at : self.position]
        return Literal(kind, text, text, position=at)

    def _duration(self, at: int) -> Literal:
        match = self.take_match(DURATION)
        if match is None:
            self.fail(Message("a duration such as P1DT2H30M"))
        self.expect("'")
        self.height = 0
        value, is_exact = self._span(match.groups(), at)
        text = self.text[at : self.position]
        return Literal(LiteralKind.DURATION, value, text, is_exact=is_exact, position=at)

    def _span(self, parts: tuple[str | None, ...], at: int) -> tuple[timedelta, bool]:
        """The timedelta of sign, days, hours, minutes, seconds and fraction, and whether it is exact."""
        sign, *counts, fraction = parts
        if any(len(count or "") > MAX_NUMBER_LENGTH for count in counts):
            self.refuse(Message("A number has at most {0} characters.", MAX_NUMBER_LENGTH), at)
        days, hours, minutes, seconds = (int(count or 0) for count in counts)
        fraction = fraction or ""
        microseconds = int(fraction[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0"))
        is_exact = not fraction[_MICROSECOND_DIGITS:].strip("0")
        try:
            span = timedelta(days, seconds, microseconds, minutes=minutes, hours=hours)
            return (-span if sign else span), is_exact
        except OverflowError:
            self.note_not_supported(Message("Durations of more than 999,999,999 days"), at)
            return timedelta.max, is_exact

    def _binary(self, at: int) -> Literal:
        start = self.position
        self.take_match(BASE64)
        self.take_match(BASE64_TAIL)
        digits = self.text[start : self.position].rstrip("=")
        self.expect("'", _BASE64_DIGITS)
        self.height = 0
        value = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
        return Literal(LiteralKind.BINARY, value, self.text[at : self.position], position=at)
