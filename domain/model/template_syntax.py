"""Text templates with placeholders: display formats, rule texts, webhook URLs and bodies (spec 05, 5.4).

    {Attribute}  {Ref.Path.Attribute}  {@code}  {$date}  {$user.Name}  {Name:EN}  {DocumentDate:dd-MM-yyyy}
    {General_Products_Products(0189…).Name}
    {{ and }}, \\{ and \\} are literal braces; \\r, \\n and \\r\\n a new line; any other \\x is x

`parse` splits a template; domain.dataset.templates resolves the names and reads the values. domain.model.formats has
the format specifiers of rules and webhooks. `format_value` is for display texts and for values without a format; its
formats are those that the read engine has in SQL:

T          of a multilanguage text: the caller's language, else EN, else the first one; the default for such texts
EN, BG …   of a multilanguage text: exactly this language
N<digits>  of numbers: that many decimal places, rounded half up
Q, CV      of measured numbers: value and unit or currency, separated by a space
dd MM yyyy of dates and date-times, with HH mm ss and literal characters between; also d M yy H m s
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Literal

from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text

FALLBACK_LANGUAGE = "EN"

_NAME = re.compile(
    # Codes of custom properties may contain spaces.
    r"(?P<at>@)(?P<code>[^{}:]+)|(?P<dollar>\$?)(?P<path>[^\s{}:@$][^\s{}:]*)"
)
#: The rest of a placeholder; a backslash in a format escapes the next character.
_REST = re.compile(r"(?:[^\\}]|\\.)*(?=\})", re.S)
_ESCAPE = re.compile(r"\\(?:r\\n|.)", re.S)
_NEW_LINES = (r"\r\n", r"\r", r"\n")
_DATE_PART = re.compile(r"yyyy|yy|MM|M|dd|d|HH|H|mm|m|ss|s")


class TemplateError(ValueError):
    """An invalid template. `position` is the offset of the brace."""

    def __init__(self, message: Message, position: int) -> None:
        super().__init__(Message("{0} (position {1})", message, position))
        self.position = position


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One `{…}`.

    sigil   "" an attribute path · "@" a custom property by code · "$" a value of the call or the event
    path    names between dots: ("Customer", "Party", "PartyName")
    format  the text after the colon; "" for none
    """

    path: tuple[str, ...]
    format: str = ""
    sigil: Literal["", "@", "$"] = ""
    position: int = 0

    @property
    def name(self) -> str:
        """The placeholder's name as written, with its sigil."""
        return self.sigil + ".".join(self.path)


Part = str | Placeholder


@lru_cache(maxsize=2048)
def parse(template: str, *, in_json: bool = False) -> tuple[Part, ...]:
    """The template as literal texts and placeholders, in order; adjacent texts are one. Raises TemplateError.

    in_json: JSON handles backslashes with the same meaning; the template handles only those before braces.
    """
    parts: list[Part] = []
    text: list[str] = []
    index = 0
    while index < len(template):
        character = template[index]
        if character in "{}" and template[index : index + 2] == character * 2:
            text.append(character)
            index += 2
        elif character == "\\" and (escape := _ESCAPE.match(template, index)) is not None:
            if not in_json or escape[0][1] in "{}":
                text.append("\n" if escape[0] in _NEW_LINES else escape[0][1])
                index = escape.end()
            else:
                text.append(template[index : index + 2])
                index += 2
        elif character == "{":
            rest = _REST.match(template, index + 1)
            if rest is None:
                raise TemplateError(Message("The brace is never closed"), index)
            end = rest.end()
            if text:
                parts.append("".join(text))
                text = []
            parts.append(_placeholder(template[index + 1 : end], index))
            index = end + 1
        elif character == "}":
            raise TemplateError(Message("A closing brace without an opening one; write }} for the character"), index)
        else:
            text.append(character)
            index += 1
    if text:
        parts.append("".join(text))
    return tuple(parts)


def _placeholder(body: str, position: int) -> Placeholder:
    name, _, format = body.partition(":")
    match = _NAME.fullmatch(name.strip())
    if match is None or "{" in format.replace("\\{", ""):
        raise TemplateError(Message("{{0}} is not a placeholder", body), position)
    if match["at"]:
        return Placeholder((match["code"].strip(),), format, "@", position)
    path = tuple(match["path"].split("."))
    if not all(path):
        raise TemplateError(Message("{{0}} has an empty name in its path", body), position)
    return Placeholder(path, format, "$" if match["dollar"] else "", position)


def pick_text(texts: Mapping[str, str], language: str) -> str | None:
    """The text in the language, else in English, else the first one; None if there is none."""
    result = texts.get(language.upper())
    if result is None:
        result = texts.get(FALLBACK_LANGUAGE)
    return next(iter(texts.values()), None) if result is None else result


def format_value(value: Any, format: str = "", *, language: str = FALLBACK_LANGUAGE, measure: str = "") -> str:
    """One canonical value as text; null is the empty string. `measure` is the unit or currency of a measured number."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return format_texts(value, format, language)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return format_date(value, format)
    if isinstance(value, int | Decimal):
        return format_number(value, format, measure)
    return str(value)


def format_texts(texts: Mapping[str, str], format: str, language: str) -> str:
    """A multilanguage text in the format's language, by default as `pick_text`; "" for none."""
    if format in ("", "T", "t"):
        return pick_text(texts, language) or ""
    return str(texts.get(format.upper(), ""))


def format_number(value: int | Decimal, format: str, measure: str = "") -> str:
    """A number without trailing zeros, or with the decimal places of N<digits>; Q and CV add the measure."""
    number = Decimal(value)
    if format[:1] in ("N", "n") and format[1:].isdigit():
        number = number.quantize(Decimal(1).scaleb(-int(format[1:])), ROUND_HALF_UP)
        return f"{number:f}"
    text = plain_number(number)
    return f"{text} {measure}" if measure and format.upper() in ("Q", "CV") else text


def plain_number(number: Decimal) -> str:
    """Decimal notation without exponent and without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_date(value: datetime.date, format: str) -> str:
    """A date or date-time by a pattern; without one ISO 8601, date-times in UTC with Z."""
    if not format:
        if isinstance(value, datetime.datetime):
            return utc_text(value)
        return value.isoformat()
    moment = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    return _DATE_PART.sub(lambda match: _DATE_FORMATS[match[0]](moment), format)


#: Language → local date pattern; others have ISO 8601.
_CULTURE_DATES = {"bg": "dd.MM.yyyy", "de": "dd.MM.yyyy", "en": "M/d/yyyy"}


def culture_date_pattern(language: str, *, with_time: bool = False) -> str:
    """The pattern of dates without a format in display texts (spec 05, 5.4)."""
    pattern = _CULTURE_DATES.get(language.lower(), "yyyy-MM-dd")
    return f"{pattern} HH:mm" if with_time else pattern


_DATE_FORMATS: Mapping[str, Any] = {
    "yyyy": lambda moment: f"{moment.year:04d}",
    "yy": lambda moment: f"{moment.year % 100:02d}",
    "MM": lambda moment: f"{moment.month:02d}",
    "M": lambda moment: str(moment.month),
    "dd": lambda moment: f"{moment.day:02d}",
    "d": lambda moment: str(moment.day),
    "HH": lambda moment: f"{moment.hour:02d}",
    "H": lambda moment: str(moment.hour),
    "mm": lambda moment: f"{moment.minute:02d}",
    "m": lambda moment: str(moment.minute),
    "ss": lambda moment: f"{moment.second:02d}",
    "s": lambda moment: str(moment.second),
}

_TO_CHAR = {
    "yyyy": "YYYY", "yy": "YY", "MM": "MM", "M": "FMMM", "dd": "DD", "d": "FMDD",
    "HH": "HH24", "H": "FMHH24", "mm": "MI", "m": "FMMI", "ss": "SS", "s": "FMSS",
}  # fmt: skip


def postgresql_pattern(format: str) -> str:
    """A date pattern in the syntax of PostgreSQL's to_char; literal characters are quoted."""
    result: list[str] = []
    end = 0
    for found in _DATE_PART.finditer(format):
        result += [_quoted(format[end : found.start()]), _TO_CHAR[found[0]]]
        end = found.end()
    return "".join((*result, _quoted(format[end:])))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if text else ""
