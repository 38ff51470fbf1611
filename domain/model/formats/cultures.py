"""Cultures: separators, patterns and names for the numbers and dates of a language.

The data come from Unicode CLDR (Babel), which .NET uses, too. Patterns of dates are in .NET's syntax
(domain.model.formats.dates). A language without a country stands for the most likely one: en for en-US, de for de-DE,
bg for bg-BG.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from babel import Locale, UnknownLocaleError, localedata
from babel.core import get_global
from babel.numbers import get_currency_symbol, get_territory_currencies

#: Currencies of countries whose change is later than the installed data of Unicode CLDR.
_NEW_CURRENCIES = {"BG": "EUR"}  # since 2026-01-01
_TAG = re.compile(r"(?P<language>[A-Za-z]{2,3})([-_][A-Za-z]{2,4})?")
_NARROW_SPACES = str.maketrans("\u00a0\u202f", "  ")
_DATE_FIELD = re.compile(r"'[^']*'|([A-Za-z])\1*|.", re.S)
_SEPARATOR = re.compile(r"[dMyHhms]+(?P<separator>[^\sdMyHhms']+)[dMyHhms]")

#: Names by width and context: ("wide" | "abbreviated", "format" | "stand-alone") → number → name.
Names = Mapping[tuple[str, str], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Affixes:
    """Prefix and suffix of a currency amount or percentage, and its sizes of digit groups."""

    prefix: str
    suffix: str
    groups: tuple[int, ...]

    def around(self, digits: str, symbol: str) -> str:
        """The digits with the symbol at its place."""
        return f"{self.prefix.replace('¤', symbol)}{digits}{self.suffix.replace('¤', symbol)}"


@dataclass(frozen=True, slots=True)
class Culture:
    """The formats of numbers and dates in a language.

    groups  sizes of digit groups from the decimal point on, the last one repeated
    months, days  names; months count from 1, days from 0 for Monday
    """

    short_date: str
    long_date: str
    short_time: str
    long_time: str
    month_day: str
    year_month: str
    am: str
    pm: str
    months: Names
    days: Names
    era: str
    decimal: str
    group: str
    groups: tuple[int, ...]
    minus: str
    percent_sign: str
    per_mille: str
    currency_symbol: str
    currency: Affixes
    percent: Affixes

    @property
    def date_separator(self) -> str:
        """The date separator, for `/` in a pattern."""
        return _separator(self.short_date, "/")

    @property
    def time_separator(self) -> str:
        """The time separator, for `:` in a pattern."""
        return _separator(self.short_time, ":")


@lru_cache(maxsize=64)
def culture_of(language: str) -> Culture:
    """The culture of a language (de) or of a language in a country (de-AT), by default English."""
    try:
        return _culture(_locale(language))
    finally:
        # Babel caches each locale without limit: all of them, which callers choose, would take 130 MB.
        localedata._cache.clear()


def _locale(language: str) -> Locale:
    primary, *subtags = language.replace("_", "-").split("-")
    country = next((subtag.upper() for subtag in subtags if len(subtag) == 2), "")
    script = next((subtag.title() for subtag in subtags if len(subtag) == 4 and subtag.isalpha()), "")
    in_script = f"{primary.lower()}_{script}" if script else primary.lower()
    likely = get_global("likely_subtags")
    usual = likely.get(primary.lower(), primary.lower())
    if script and not country:
        country = likely.get(in_script, usual).rpartition("_")[2]
    for identifier in (f"{in_script}_{country}" if country else usual, usual):
        with suppress(ValueError, UnknownLocaleError):
            return Locale.parse(identifier)
    return Locale("en", "US")


def is_language(code: str) -> bool:
    """Whether the code names a language of Unicode CLDR: EN, de, pt-BR."""
    tag = _TAG.fullmatch(code)
    return tag is not None and tag["language"].lower() in _languages()


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    return frozenset(str(code) for code in Locale("en").languages)


def _culture(locale: Locale) -> Culture:
    symbols = locale.number_symbols.get("latn", locale.number_symbols)
    decimal = locale.decimal_formats[None]
    currency = get_territory_currencies(locale.territory, datetime.date.today()) if locale.territory else []
    code = _NEW_CURRENCIES.get(locale.territory or "", currency[0] if currency else "")
    periods = locale.day_periods["format"]["abbreviated"]
    return Culture(
        # The year has four digits, as in .NET.
        short_date=re.sub(r"(?<!y)yy(?!y)", "yyyy", _date_pattern(locale.date_formats["short"].pattern)),
        long_date=_date_pattern(locale.date_formats["full"].pattern),
        short_time=_date_pattern(locale.time_formats["short"].pattern),
        long_time=_date_pattern(locale.time_formats["medium"].pattern),
        month_day=_date_pattern(locale.datetime_skeletons["MMMMd"].pattern),
        year_month=_date_pattern(locale.datetime_skeletons["yMMMM"].pattern),
        am=periods["am"],
        pm=periods["pm"],
        months=_names(locale.months),
        days=_names(locale.days),
        era=locale.eras["abbreviated"][1],
        decimal=symbols["decimal"],
        group=symbols["group"],
        groups=_groups(decimal.pattern),
        minus=symbols["minusSign"],
        percent_sign=symbols["percentSign"],
        per_mille=symbols["perMille"],
        currency_symbol=get_currency_symbol(code, locale) if code else "¤",
        currency=_affixes(locale.currency_formats["standard"].pattern),
        percent=_affixes(locale.percent_formats[None].pattern),
    )


def _names(known: Mapping[str, Mapping[str, Mapping[int, str]]]) -> Names:
    return {
        (width, context): dict(known[context][width])
        for width in ("wide", "abbreviated")
        for context in ("format", "stand-alone")
    }


_FIELDS = {"y": "yyyy", "yy": "yy", "EEEE": "dddd", "cccc": "dddd", "a": "tt", "b": "tt", "B": "tt", "G": "g"}


def _date_pattern(cldr: str) -> str:
    """A pattern of CLDR (Unicode TR 35) in .NET's syntax; fields that .NET lacks are left out."""
    parts: list[str] = []
    for match in _DATE_FIELD.finditer(cldr):
        part = match[0]
        letter = part[0]
        if part in _FIELDS:
            parts.append(_FIELDS[part])
        elif letter in "dHhms" or (letter == "M" and len(part) <= 4):
            parts.append(part)
        elif letter == "L":
            parts.append("M" * min(len(part), 4))
        elif letter in "Ec":
            parts.append("ddd")
        elif letter == "y":
            parts.append("yyyy")
        elif letter == "'":
            parts.append(part)
        elif not (letter.isascii() and letter.isalpha()):
            parts.append(f"'{part}'" if letter.isalpha() or (letter in '%\\/"' and letter != "/") else part)
    return "".join(parts).translate(_NARROW_SPACES).strip()


def _separator(pattern: str, default: str) -> str:
    match = _SEPARATOR.search(pattern)
    return match["separator"] if match else default


def _groups(pattern: str) -> tuple[int, ...]:
    """Sizes of the digit groups in a pattern of CLDR: (3,) of #,##0.00, (3, 2) of #,##,##0.00."""
    whole = pattern.partition(";")[0].partition(".")[0]
    sizes = [sum(1 for c in group if c in "#0") for group in whole.split(",")[1:]]
    return tuple(reversed(sizes)) or (0,)


def _affixes(pattern: str) -> Affixes:
    match = re.search(r"[#0][#0.,]*", pattern.partition(";")[0])
    assert match is not None
    text = pattern.partition(";")[0].translate(_NARROW_SPACES)
    return Affixes(text[: match.start()], text[match.end() :], _groups(pattern))


@lru_cache(maxsize=1)
def machine_culture() -> Culture:
    """The culture of values for machines: .NET's invariant culture, but without group separators.

    Programs parse numbers in URLs and JSON bodies, where 1,234.50 is not a number.
    """
    return replace(
        culture_of("en"),
        short_date="MM/dd/yyyy",
        long_date="dddd, dd MMMM yyyy",
        short_time="HH:mm",
        long_time="HH:mm:ss",
        month_day="MMMM dd",
        year_month="yyyy MMMM",
        group="",
        currency_symbol="¤",
        percent=Affixes("", " %", (3,)),
    )
