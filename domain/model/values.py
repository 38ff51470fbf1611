"""Converts attribute values between four forms.

canonical   in datasets, rules and templates; see foundation.kinds
input       JSON of callers; lenient if unambiguous, else a BadRequest that names the attribute
storage     values of the database driver; see foundation.fields
serialized  canonical as JSON without loss, for pending changes of Domain transactions
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import orjson
from django.utils.dateparse import parse_date, parse_datetime

from domain.model.attributes import Attribute
from foundation import errors
from foundation.encryption import decrypt, encrypt
from foundation.enums import DOCUMENT_STATE
from foundation.guids import parse_guid
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.messages import written
from foundation.texts import decode_base64

UTC = datetime.UTC
_INT_RANGE = (-(2**31), 2**31 - 1)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]{2,4})?")

Convert = Callable[[Any], Any]


# --- input --------------------------------------------------------------------------------------------------------


def parse_input(attribute: Attribute, value: Any, *, language: str = "en") -> Any:
    """Convert a JSON value to the attribute's canonical form; the caller unpacks references and measured objects.

    Raises BadRequest(INVALID_LITERAL) naming the attribute. Null passes; the commit checks whether it is allowed.
    """
    if value is None:
        return None
    try:
        parsed = _PARSERS[attribute.kind](attribute, value, language)
    except (ValueError, TypeError, ArithmeticError, binascii.Error) as exc:
        shown = written(value)
        raise errors.BadRequest(
            errors.INVALID_LITERAL, shown[:100], _expected(attribute), attribute.name, target=attribute.name
        ) from exc
    if attribute.kind in _TEXTS:
        check_characters(parsed, attribute.name)
    return parsed


def check_characters(text: str | dict[str, str], name: str) -> None:
    """Raise BadRequest for U+0000, which PostgreSQL does not store; SQLite would truncate it in comparisons."""
    if isinstance(text, dict):
        text = "".join(text.values())
    if "\0" in text:
        raise errors.BadRequest(errors.NUL_CHARACTER, name, target=name)


def is_blank(text: str | dict[str, str]) -> bool:
    """Whether a text, in each of its languages, is empty or white space."""
    if isinstance(text, dict):
        return not any(each.strip() for each in text.values())
    return not text.strip()


def _expected(attribute: Attribute) -> str:
    if attribute.enum is not None:
        return " | ".join(attribute.enum.members)
    example = _EXAMPLES.get(attribute.kind)
    kind = attribute.kind.value
    return kind if example is None else Message("{0} (such as {1})", kind, example)


def _parse_string(attribute: Attribute, value: Any, language: str) -> str:
    if isinstance(value, bool | dict | list):
        raise TypeError
    return value if isinstance(value, str) else str(value)


def _parse_int(attribute: Attribute, value: Any, language: str) -> int:
    if isinstance(value, bool):
        raise TypeError
    number = Decimal(str(value))
    if number != number.to_integral_value() or not _INT_RANGE[0] <= number <= _INT_RANGE[1]:
        raise ValueError
    return int(number)


def _parse_bool(attribute: Attribute, value: Any, language: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError


def _parse_decimal(attribute: Attribute, value: Any, language: str) -> Decimal:
    if isinstance(value, bool | dict | list):
        raise TypeError
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation as exc:
        raise ValueError from exc
    if not number.is_finite():
        raise ValueError
    return round_to_scale(attribute, number)


def _parse_date(attribute: Attribute, value: Any, language: str) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    if not isinstance(value, str):
        raise TypeError
    # Clients of OData 4.0 send midnight date-times for dates; only the date part is used.
    parsed = parse_date(value[:10])
    if parsed is None or (len(value) > 10 and parse_datetime(value) is None):
        raise ValueError
    return parsed


def _parse_datetime(attribute: Attribute, value: Any, language: str) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        parsed: datetime.datetime | None = value
    elif isinstance(value, datetime.date):
        parsed = datetime.datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif isinstance(value, str):
        parsed = parse_datetime(value)
        if parsed is None and (day := parse_date(value)) is not None:
            parsed = datetime.datetime(day.year, day.month, day.day, tzinfo=UTC)
    else:
        raise TypeError
    if parsed is None:
        raise ValueError
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _parse_binary(attribute: Attribute, value: Any, language: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError
    return decode_base64(value)


def _parse_enum(attribute: Attribute, value: Any, language: str) -> str:
    assert attribute.enum is not None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError
    return attribute.enum.member(str(value))


def _parse_multilanguage(attribute: Attribute, value: Any, language: str) -> dict[str, str]:
    if isinstance(value, str):
        return {language.upper(): value}
    if not isinstance(value, dict):
        raise TypeError
    texts: dict[str, str] = {}
    for code, text in value.items():
        if isinstance(code, str) and "@" in code:
            continue  # some clients also send the value's type
        if not isinstance(code, str) or not _LANGUAGE.fullmatch(code):
            raise ValueError
        if text is None:
            continue
        if not isinstance(text, str):
            raise TypeError
        texts[code.upper()] = text
    return texts


def merged_texts(stored: dict[str, str] | None, given: Any, parsed: dict[str, str]) -> dict[str, str]:
    """Stored texts with those of an input, `parsed`; null in the input removes a language."""
    nulls = {code.upper() for code, text in given.items() if text is None} if isinstance(given, dict) else set()
    return {code: text for code, text in {**(stored or {}), **parsed}.items() if code not in nulls}


def _parse_guid(attribute: Attribute, value: Any, language: str) -> str:
    return parse_guid(value)


_TEXTS = frozenset({Kind.STRING, Kind.MULTILANGUAGE})
#: Valid values, for the messages about invalid ones.
_EXAMPLES = {
    Kind.DATE: "2026-01-31",
    Kind.DATETIME: "2026-01-31T10:00:00Z",
    Kind.AMOUNT: '{"Value": 12.5, "Currency": "EUR"}',
    Kind.QUANTITY: '{"Value": 3, "Unit": "pcs"}',
    Kind.MULTILANGUAGE: '{"EN": "Chair"}',
}
_PARSERS: dict[Kind, Callable[[Attribute, Any, str], Any]] = {
    Kind.GUID: _parse_guid,
    Kind.REFERENCE: _parse_guid,
    Kind.STRING: _parse_string,
    Kind.INT: _parse_int,
    Kind.BOOL: _parse_bool,
    Kind.DECIMAL: _parse_decimal,
    Kind.AMOUNT: _parse_decimal,
    Kind.QUANTITY: _parse_decimal,
    Kind.DATE: _parse_date,
    Kind.DATETIME: _parse_datetime,
    Kind.BINARY: _parse_binary,
    Kind.ENUM: _parse_enum,
    Kind.STATE: _parse_enum,
    Kind.MULTILANGUAGE: _parse_multilanguage,
}


def round_to_scale(attribute: Attribute, number: Decimal) -> Decimal:
    """The number at the attribute's scale, half up, so that the dataset has the value that the database will return."""
    return number if attribute.quantum is None else number.quantize(attribute.quantum, ROUND_HALF_UP)


# --- storage ------------------------------------------------------------------------------------------------------


def to_storage(attribute: Attribute, vendor: str) -> Convert | None:
    """Converter from canonical (never None) to the driver's form; None if both are the same."""
    kind = attribute.kind
    if attribute.secret:
        return encrypt
    if kind is Kind.MULTILANGUAGE:
        return lambda value: orjson.dumps(value).decode()
    if kind is Kind.STATE:
        return DOCUMENT_STATE.members.__getitem__
    if vendor == "sqlite":
        if kind in (Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY):
            scale = attribute.scale or 0
            return lambda value: int(value.scaleb(scale).to_integral_value(ROUND_HALF_UP))
        if kind is Kind.DATE:
            return lambda value: value.isoformat()
        if kind is Kind.DATETIME:
            return moment_to_storage(vendor)
    return None


def moment_to_storage(vendor: str) -> Callable[[datetime.datetime], Any]:
    """Converter from aware datetimes to the driver's form; Django's own reads its settings on each call."""
    if vendor == "sqlite":
        return lambda moment: moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return lambda moment: moment


def from_storage(attribute: Attribute, vendor: str) -> Convert | None:
    """Converter from the driver's form (never None) to canonical; None if both are the same."""
    kind = attribute.kind
    if attribute.secret:
        return decrypt
    if kind in (Kind.GUID, Kind.REFERENCE):
        return str if vendor != "sqlite" else None
    if kind is Kind.MULTILANGUAGE:
        return orjson.loads
    if kind is Kind.STATE:
        return DOCUMENT_STATE.by_number.__getitem__
    if kind is Kind.BINARY:
        return bytes
    if vendor == "sqlite":
        if kind in (Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY):
            scale = -(attribute.scale or 0)
            return lambda value: Decimal(value).scaleb(scale)
        if kind is Kind.BOOL:
            return bool
        if kind is Kind.DATE:
            return lambda value: datetime.date.fromisoformat(value) if isinstance(value, str) else value
        if kind is Kind.DATETIME:
            return _datetime_from_sqlite
    return None


def _datetime_from_sqlite(value: Any) -> datetime.datetime:
    parsed = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    assert isinstance(parsed, datetime.datetime)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed


# --- serialized ---------------------------------------------------------------------------------------------------


def serialize(attribute: Attribute, value: Any) -> Any:
    """Canonical to JSON without loss; secrets encrypted."""
    if value is None:
        return None
    if attribute.secret:
        return encrypt(value)
    match attribute.kind:
        case Kind.DECIMAL | Kind.AMOUNT | Kind.QUANTITY:
            return str(value)
        case Kind.DATE | Kind.DATETIME:
            return value.isoformat()
        case Kind.BINARY:
            return base64.b64encode(value).decode()
        case _:
            return value


def deserialize(attribute: Attribute, value: Any) -> Any:
    """The inverse of `serialize`."""
    if value is None:
        return None
    if attribute.secret:
        return decrypt(value)
    match attribute.kind:
        case Kind.DECIMAL | Kind.AMOUNT | Kind.QUANTITY:
            return Decimal(value)
        case Kind.DATE:
            return datetime.date.fromisoformat(value)
        case Kind.DATETIME:
            return datetime.datetime.fromisoformat(value)
        case Kind.BINARY:
            return base64.b64decode(value)
        case _:
            return value


# --- text ---------------------------------------------------------------------------------------------------------


def in_language(texts: dict[str, str] | None, language: str) -> str:
    """The text in the language, else in English, else in any; "" for none."""
    if not texts:
        return ""
    result = texts.get(language.upper())
    if result is None:
        result = texts.get("EN")
    return next(iter(texts.values())) if result is None else result
