"""Converts a caller's values of custom properties to the stored form (spec 08, 8.2; spec 10, 10.2)."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from domain.model.custom_properties import AllowedValue, Definition, definition
from domain.model.values import check_characters, merged_texts
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.texts import decode_base64, utc_text

#: Digits of a Number before and after the decimal point.
MAX_DIGITS = 30
#: Maximum size of a Picture, which is stored and read with the entity's other properties.
MAX_PICTURE_BYTES = 1_000_000
_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_MEMBERS = {"Value", "Description", "ValueId"}

#: (property, value, ValueId or None) → the entity as an allowed value; None if there is none
FindAllowed = Callable[[Definition, str, Any], AllowedValue | None]


def parse_value(
    repository: str, api_name: str, value: Any, language: str, find: FindAllowed
) -> tuple[str, dict[str, Any] | None]:
    """(code, stored form) of an input: a CustomPropertyValue object, a plain string, number or boolean, or null.

    `find` looks for entities that are allowed values, if the definition names a repository of them. Raises BadRequest
    for an unknown property or a value that does not fit its type, Refused for one not allowed.
    """
    known = definition(repository, api_name)
    return known.code, stored_form(known, value, language, find)


def stored_form(known: Definition, value: Any, language: str, find: FindAllowed) -> dict[str, Any] | None:
    """As `parse_value`, for a definition; None for no value."""
    if value is None:
        return None
    given: Mapping[str, Any] = value if isinstance(value, dict) else {"Value": value}
    unknown = set(given) - _MEMBERS - {name for name in given if "@" in name}
    if unknown:
        raise errors.BadRequest(
            errors.UNKNOWN_PROPERTY, sorted(unknown)[0], "CustomPropertyValue", target=known.api_name
        )
    id = given.get("ValueId")
    if given.get("Value") is None and (id is None or not known.allowed_from):
        return None
    # The id alone may identify the entity.
    text = "" if given.get("Value") is None else canonical_text(known, given["Value"])
    check_characters(text, known.api_name)
    _check_length(known, text)
    # Every member, since a complex value in a response has all of them.
    stored: dict[str, Any] = {"Value": text, "Description": None, "ValueId": None}
    listed = find(known, text, id) if known.allowed_from else known.allowed.get(text)
    if listed is not None:
        stored["Value"] = listed.value
        stored["ValueId"] = listed.id
        stored["Description"] = dict(listed.description)
    elif known.limited:
        raise not_allowed(known, text or str(id))
    elif given.get("Description") is not None:
        stored["Description"] = _as_description(given["Description"], known.api_name, language)
    return stored


def merged_value(stored: Mapping[str, Any] | None, given: Any, language: str) -> Any:
    """The input, completed by the stored value and other languages of its description if it names no value.

    An input that names a value is unchanged: the stored description belongs to another value.
    """
    if stored is None or not isinstance(given, dict) or given.keys() & {"Value", "ValueId"}:
        return given
    merged = {**stored, **given}
    if given.get("Description") is not None:
        described = given["Description"]
        texts = described if isinstance(described, dict) else {language: described}
        parsed = {code.upper(): text for code, text in texts.items() if text is not None}
        merged["Description"] = merged_texts(stored["Description"], texts, parsed)
    return merged


def not_allowed(known: Definition, text: str) -> errors.Refused:
    """The error about a value that is not allowed; it says where to find the allowed ones."""
    if not known.allowed_from:
        listed = ", ".join(list(known.allowed)[:20])
        message = Message("{0}: '{1}' is not one of {2}", known.api_name, text, listed)
    elif known.filter or known.filter_xml:
        message = Message(
            "{0}: {1} has no '{2}' that the filter of the property allows", known.api_name, known.allowed_from, text
        )
    else:
        message = Message("{0}: '{1}' is not one of {2}", known.api_name, text, known.allowed_from)
    return errors.Refused(errors.VALIDATION_FAILED, message, target=known.api_name)


def _check_length(known: Definition, text: str) -> None:
    if known.max_length is not None and known.property_type == "Text" and len(text) > known.max_length:
        message = Message("{0}: at most {1} characters, not {2}", known.api_name, known.max_length, len(text))
        raise errors.Refused(errors.VALIDATION_FAILED, message, target=known.api_name)


def canonical_text(known: Definition, value: Any) -> str:
    """The canonical text of a value: equal values have equal texts; dates and times sort as texts.

    Raises BadRequest for a value that does not fit the type of the property.
    """
    try:
        if known.kind is Kind.BOOL:
            return _as_boolean(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            raise ValueError
        match known.kind:
            case Kind.DECIMAL:
                return _as_number(value)
            case Kind.DATE:
                # A date-time is its date in the sender's time zone.
                return datetime.datetime.fromisoformat(str(value)).date().isoformat()
            case Kind.DATETIME:
                return _as_utc(str(value))
            case Kind.BINARY:
                return _as_base64(str(value))
            case _:
                return str(value)
    except (ValueError, ArithmeticError) as exc:
        raise errors.BadRequest(
            errors.INVALID_LITERAL, _shortened(value), known.property_type, known.api_name, target=known.api_name
        ) from exc


def _shortened(value: Any) -> Any:
    """The value for an error message; a picture is truncated."""
    return value[:60] + "…" if isinstance(value, str) and len(value) > 60 else value


def _as_boolean(value: Any) -> str:
    text = str(value).lower()
    if not isinstance(value, bool | str) or text not in ("true", "false"):
        raise ValueError
    return text


def _as_number(value: str | float | Decimal) -> str:
    """A number as text, without exponent and superfluous zeros. Raises ValueError for no number or too many digits."""
    number = Decimal(str(value))
    if not number.is_finite() or number.adjusted() >= MAX_DIGITS or -int(number.as_tuple().exponent) > MAX_DIGITS:
        raise ValueError
    return format(number.normalize(), "f")


def _as_utc(text: str) -> str:
    """`2024-02-29T10:20:30Z`, with six decimals where there is a fraction; without a zone it is UTC."""
    moment = datetime.datetime.fromisoformat(text)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return utc_text(aware)


def _as_base64(text: str) -> str:
    """Standard base64 with padding; accepts base64url and missing padding. Raises ValueError for no picture."""
    raw = decode_base64(text)
    if len(raw) > MAX_PICTURE_BYTES or picture_type(raw) is None:
        raise ValueError
    return base64.b64encode(raw).decode()


def picture_type(raw: bytes) -> str | None:
    """The media type by the first bytes, such as `image/png`; None for data that browsers do not show as a picture."""
    known = (kind for start, kind in _PICTURES.items() if raw.startswith(start))
    return "image/webp" if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" else next(known, None)


def _as_description(value: Any, name: str, language: str) -> dict[str, str]:
    texts = value if isinstance(value, dict) else {language: value}
    for text in texts.values():
        if not isinstance(text, str):
            raise errors.BadRequest(errors.INVALID_LITERAL, text, "Erp.MultilanguageString", name, target=name)
        check_characters(text, name)
    return {code.upper(): text for code, text in texts.items()}


def canonical(kind: Kind, text: Any) -> Any:
    """The canonical value of a stored text."""
    if text is None:
        return None
    match kind:
        case Kind.DECIMAL:
            return Decimal(str(text))
        case Kind.DATE:
            return datetime.date.fromisoformat(str(text)[:10])
        case Kind.DATETIME:
            return datetime.datetime.fromisoformat(str(text))
        case Kind.BOOL:
            return text == "true"
        case _:
            return str(text)
