"""The format specifiers of each kind of value, and the text of a value in one (spec 14, 14.5)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from domain.model.formats import dates, numbers, texts
from domain.model.formats.cultures import Culture, culture_of, machine_culture
from foundation.kinds import Kind

#: Maximum length of a format.
MAX_LENGTH = 100
NUMBERS = "C D N P with a number of digits (N2), a pattern (#,##0.00)"
_REAL_NUMBERS = "C N P with a number of digits (N2), a pattern (#,##0.00)"
DATES = "d D f F g G M O R s t T u U y, a pattern (dd.MM.yyyy HH:mm)"
_TEXTS = "C A T D, a language (EN)"
_PROPERTIES = "V D VD VDI, with a language (VD_EN)"
#: Kind → its specifiers, for messages in every language; other kinds have no formats.
ALLOWED: Mapping[Kind, str] = {
    Kind.MULTILANGUAGE: _TEXTS,
    Kind.INT: NUMBERS,
    Kind.DECIMAL: _REAL_NUMBERS,
    Kind.AMOUNT: f"A CV VC V, {_REAL_NUMBERS}",
    Kind.QUANTITY: f"Q UV VU V, {_REAL_NUMBERS}",
    Kind.DATE: DATES,
    Kind.DATETIME: DATES,
}
#: Format of a measured number → the number's own format, the order of unit (U) or currency (C) and value (V).
_MEASURED: Mapping[Kind, Mapping[str, tuple[str, str]]] = {
    Kind.QUANTITY: {
        "Q": ("#,##0.000", "VM"),
        "VU": ("#,##0.000", "VM"),
        "UV": ("#,##0.000", "MV"),
        "V": ("#,##0.000", "V"),
    },
    Kind.AMOUNT: {
        "A": ("#,##0.00", "MV"),
        "CV": ("N2", "MV"),
        "VC": ("N2", "VM"),
        "V": ("N2", "V"),
    },
}
#: Formats of measured numbers that show the unit or currency.
SHOW_MEASURE = frozenset(name for known in _MEASURED.values() for name, (_, order) in known.items() if "M" in order)


def shows_measure(kind: Kind, format: str) -> bool:
    """Whether the format shows the unit or currency of the value."""
    return "M" in _MEASURED.get(kind, {}).get(format.upper(), ("", ""))[1]


def allowed(kind: Kind, *, is_property: bool = False) -> str:
    """The specifiers of a kind, for a message; "" for none."""
    return ", ".join(filter(None, [_PROPERTIES if is_property else "", ALLOWED.get(kind, "")]))


def accepts(kind: Kind, format: str, *, is_property: bool = False) -> bool:
    """Whether the format is valid for values of the kind. is_property: of a custom property."""
    if len(format) > MAX_LENGTH:
        return False
    if is_property and is_property_format(kind, format):
        return True
    if format.upper() in _MEASURED.get(kind, {}):
        return True
    match kind:
        case Kind.MULTILANGUAGE:
            return texts.is_text_format(format)
        case Kind.INT | Kind.DECIMAL | Kind.AMOUNT | Kind.QUANTITY:
            return numbers.parse(format, whole=kind is Kind.INT) is not None
        case Kind.DATE | Kind.DATETIME:
            return dates.is_date_format(format)
    return False


def is_property_format(kind: Kind, format: str) -> bool:
    """Whether the format is one of custom properties. For dates `d` is the short date, `D` the description."""
    return texts.is_property_format(format) and (kind is Kind.STRING or format == format.upper())


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader of a text: a person with a language and its culture, or a machine.

    country_tag  the language with a country (en-GB), if known; ignored if it has another language
    """

    language: str
    is_machine: bool = False
    country_tag: str = ""

    @property
    def culture(self) -> Culture:
        """The culture of numbers and dates."""
        if self.is_machine:
            return machine_culture()
        tag = self.country_tag
        return culture_of(tag if tag.partition("-")[0].lower() == self.language.lower() else self.language)


def formatted(value: Any, kind: Kind, format: str, reader: Reader, *, measure: str = "") -> str:
    """A canonical value in a format that its kind accepts; null is the empty text.

    measure: the code of the unit or currency.
    """
    match value:
        case None:
            return ""
        case Mapping():
            return texts.format_texts(value, format, reader.language)
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return _number(value, kind, format, reader, measure)
        case datetime.date():
            return dates.format_date(value, format, reader.culture, machine_culture())
    return str(value)


def _number(value: int | Decimal, kind: Kind, format: str, reader: Reader, measure: str) -> str:
    number_format, order = _MEASURED.get(kind, {}).get(format.upper(), (format, "V"))
    parsed = numbers.parse(number_format, whole=isinstance(value, int))
    assert parsed is not None, format
    text = numbers.format_number(value, parsed, reader.culture)
    parts = {"V": text, "M": measure}
    return " ".join(filter(None, (parts[part] for part in order)))
