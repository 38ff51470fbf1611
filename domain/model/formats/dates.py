"""Formats of dates and times, as .NET's standard and custom date and time format strings.

One letter is a standard format: d D f F g G M m O o R r s t T u U y Y. Anything else is a pattern:

d dd ddd dddd   day, name of the weekday        M MM MMM MMMM   month, name of the month
y yy yyyy       year                            H HH h hh       hour of 24 and of 12
m mm   s ss     minute, second                  f … fffffff     fraction of a second; F without trailing zeros
t tt            AM or PM                        z zz zzz K      offset from UTC
g               era                             %d              a single letter as a pattern
/ and :         the culture's separators        'text' "text" \\c   literal

A date is formatted as its midnight. Times are UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from domain.model.formats.cultures import Culture

_TOKEN = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|\\(?P<escaped>.)|%?(?P<field>(?P<letter>[dMyHhmsfFtzKg])(?P=letter)*)"
    r"|(?P<separator>[/:])|(?P<text>.)",
    re.S,
)
_LONGEST = {"f": 7, "F": 7, "K": 1}
_WIDEST_YEAR = 9
#: Literal letters, as in yyyy-MM-ddTHH:mm:ssZ; other letters, as in YYYY, are refused as mistakes.
_LITERAL_LETTERS = "TZ"

#: ("field" | "separator" | "text", text)
Token = tuple[str, str]
Tokens = tuple[Token, ...]

_STANDARD: Mapping[str, Callable[[Culture], str]] = {
    "d": lambda culture: culture.short_date,
    "D": lambda culture: culture.long_date,
    "f": lambda culture: f"{culture.long_date} {culture.short_time}",
    "F": lambda culture: f"{culture.long_date} {culture.long_time}",
    "g": lambda culture: f"{culture.short_date} {culture.short_time}",
    "G": lambda culture: f"{culture.short_date} {culture.long_time}",
    "M": lambda culture: culture.month_day,
    "O": lambda culture: r"yyyy\-MM\-dd\THH\:mm\:ss.fffffffK",
    "R": lambda culture: "ddd, dd MMM yyyy HH':'mm':'ss 'GMT'",
    "s": lambda culture: r"yyyy\-MM\-dd\THH\:mm\:ss",
    "t": lambda culture: culture.short_time,
    "T": lambda culture: culture.long_time,
    "u": lambda culture: r"yyyy\-MM\-dd HH\:mm\:ss'Z'",
    "U": lambda culture: f"{culture.long_date} {culture.long_time}",
    "y": lambda culture: culture.year_month,
}
_SAME = {"m": "M", "o": "O", "r": "R", "Y": "y"}


def is_date_format(format: str) -> bool:
    """Whether the text is a standard format or a pattern with some part of a date."""
    return _SAME.get(format, format) in _STANDARD or (len(format) > 1 and parse(format) is not None)


@lru_cache(maxsize=1024)
def parse(pattern: str) -> Tokens | None:
    """The tokens of a pattern; None if it is invalid or contains no part of a date."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(pattern):
        if field := match["field"]:
            if len(field) > _LONGEST.get(field[0], _WIDEST_YEAR):
                return None
            tokens.append(("field", field))
        elif match["separator"]:
            tokens.append(("separator", match["separator"]))
        elif text := match["text"]:
            if text in "'\"\\%" or (text.isascii() and text.isalpha() and text not in _LITERAL_LETTERS):
                return None
            tokens.append(("text", text))
        else:
            tokens.append(("text", match["single"] or match["double"] or match["escaped"] or ""))
    return tuple(tokens) if any(kind == "field" for kind, _ in tokens) else None


def format_date(value: datetime.date, format: str, culture: Culture, english: Culture) -> str:
    """A date or date-time in a valid format (`is_date_format`). `english`: culture of culture-independent formats."""
    letter = _SAME.get(format, format)
    if letter in ("O", "R", "s", "u"):
        culture = english
    standard = _STANDARD.get(letter)
    tokens = parse(format if standard is None else standard(culture))
    assert tokens is not None, format
    moment = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC)
    # .NET uses the genitive of a month next to a day.
    context = "format" if ("field", "d") in tokens or ("field", "dd") in tokens else "stand-alone"
    return "".join(_token_text(token, moment, culture, context) for token in tokens)


def _token_text(token: Token, moment: datetime.datetime, culture: Culture, context: str) -> str:
    kind, text = token
    if kind == "text":
        return text
    if kind == "separator":
        return culture.date_separator if text == "/" else culture.time_separator
    return _FIELDS[text[0]](len(text), moment, culture, context)


def _day(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    if width > 2:
        return culture.days["wide" if width > 3 else "abbreviated", "stand-alone"][moment.weekday()]
    return str(moment.day).zfill(width)


def _month(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    if width > 2:
        return culture.months["wide" if width > 3 else "abbreviated", context][moment.month]
    return str(moment.month).zfill(width)


def _year(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    return str(moment.year % 100 if width <= 2 else moment.year).zfill(width)


def _fraction(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    return f"{moment.microsecond:06d}0"[:width]


def _designator(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    text = culture.am if moment.hour < 12 else culture.pm
    return text[:1] if width == 1 else text


def _offset(width: int, moment: datetime.datetime, culture: Culture, context: str) -> str:
    return "+0" if width == 1 else "+00" if width == 2 else "+00:00"


_FIELDS: Mapping[str, Callable[[int, datetime.datetime, Culture, str], str]] = {
    "d": _day,
    "M": _month,
    "y": _year,
    "H": lambda width, moment, culture, context: str(moment.hour).zfill(min(width, 2)),
    "h": lambda width, moment, culture, context: str(moment.hour % 12 or 12).zfill(min(width, 2)),
    "m": lambda width, moment, culture, context: str(moment.minute).zfill(min(width, 2)),
    "s": lambda width, moment, culture, context: str(moment.second).zfill(min(width, 2)),
    "f": _fraction,
    "F": lambda width, moment, culture, context: _fraction(width, moment, culture, context).rstrip("0"),
    "t": _designator,
    "z": _offset,
    "K": lambda width, moment, culture, context: "" if moment.tzinfo is None else "Z",
    "g": lambda width, moment, culture, context: culture.era,
}
