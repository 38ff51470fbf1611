"""Custom properties: attributes that administrators add to a repository (spec 08, 8.2).

Definitions are entities (Systems.Bpm.CustomProperties), cached in the process under the stamp "custom_properties",
which each commit of definitions bumps: usable by the next request (foundation.stamps). Values are stored with the
entity as JSON: {code: {"Value", "Description"?, "ValueId"?}}.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import check_characters
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.stamped_cache import StampedCache

STAMP = "custom_properties"
PREFIX = "CustomProperty_"
#: Digits of a Number before and after the decimal point.
MAX_DIGITS = 30

_KINDS = {"Text": Kind.STRING, "Number": Kind.DECIMAL, "Date": Kind.DATE, "Picture": Kind.BINARY}


@dataclass(frozen=True, slots=True)
class AllowedValue:
    """A value from the definition's list."""

    id: str
    value: str
    description: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Definition:
    """One custom property of one repository.

    property_type   Text, Number, Date or Picture; `kind` is that of its values
    allowed         allowed values, by value
    allowed_from    the repository whose entities are the allowed values instead; "" for none
    """

    code: str
    api_name: str
    property_type: str
    limited: bool
    name: Mapping[str, str]
    allowed: Mapping[str, AllowedValue] = field(default_factory=dict)
    allowed_from: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of its canonical values."""
        return _KINDS.get(self.property_type, Kind.STRING)


#: (property, value, ValueId or None) → the entity as an allowed value; None if there is none
FindAllowed = Callable[[Definition, str, Any], AllowedValue | None]


def escape_code(code: str) -> str:
    """Letters and digits of any script and `_` stay; another character becomes `_u` + its UTF-8 bytes in hex, at least
    four
    digits.
    """
    parts: list[str] = []
    for character in code:
        if character.isalpha() or character.isdecimal() or character == "_":
            parts.append(character)
        else:
            parts.append("_u" + character.encode().hex().upper().zfill(4))
    return "".join(parts)


def definitions(repository: str) -> Mapping[str, Definition]:
    """Active custom properties of the repository by API name (`CustomProperty_x`). A cached call runs no query."""
    return _definitions.get().get(repository, {})


def definition(repository: str, api_name: str) -> Definition:
    """The definition of `CustomProperty_x`. Raises BadRequest(UNKNOWN_PROPERTY) with similar names."""
    known = definitions(repository)
    result = known.get(api_name)
    if result is None:
        lowered = api_name.lower()
        result = next((entry for name, entry in known.items() if name.lower() == lowered), None)
    if result is None:
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, api_name, repository, near(api_name, known), target=api_name)
    return result


def by_code(repository: Repository[Any], code: str) -> Definition | None:
    """The active custom property with this code, of the repository or of one it inherits from."""
    current: Repository[Any] | None = repository
    while current is not None:
        for found in definitions(current.name).values():
            if found.code == code:
                return found
        current = current.base
    return None


def _load() -> dict[str, dict[str, Definition]]:
    properties = repositories["Systems.Bpm.CustomProperties"].model._default_manager
    allowed_values = repositories["Systems.Bpm.CustomPropertyAllowedValues"].model._default_manager
    allowed: dict[str, dict[str, AllowedValue]] = {}
    rows = allowed_values.filter(active=True).values_list(
        "property_id", "id", "property_allowed_value_field", "description"
    )
    for property_id, id, value, description in rows:
        allowed.setdefault(property_id, {})[value] = AllowedValue(id, value, _texts(description))
    result: dict[str, dict[str, Definition]] = {}
    for entry in properties.filter(is_active=True).order_by("code"):
        name = _repository_name(entry.entity_name)
        source = _repository_name(entry.allowed_values_entity_name or "")
        api_name = PREFIX + escape_code(entry.code)
        result.setdefault(name, {})[api_name] = Definition(
            entry.code,
            api_name,
            str(entry.property_type),
            entry.limit_to_allowed_values,
            entry.name or {},
            allowed.get(entry.id, {}),
            source if source in repositories else "",
        )
    return result


_definitions = StampedCache(_load, STAMP)


def _repository_name(entity_name: str) -> str:
    """`General.Products.Products` of a stored entity name."""
    known = repositories.for_entity_name(entity_name)
    return known.name if known is not None else entity_name


def _texts(value: Any) -> Mapping[str, str]:
    """Texts by language. The type stubs take a multilanguage column for str."""
    return value or {}


def parse_value(
    repository: str, api_name: str, value: Any, language: str, find: FindAllowed
) -> tuple[str, dict[str, Any] | None]:
    """(code, stored form) of an input: a CustomPropertyValue object, a plain string or number, or null.

    `find` looks for entities that are allowed values, if the definition names a repository of them. Raises BadRequest
    for an unknown property or a value that does not fit its type, Refused for one not allowed.
    """
    known = definition(repository, api_name)
    if value is None:
        return known.code, None
    given = value if isinstance(value, dict) else {"Value": value}
    unknown = set(given) - {"Value", "Description", "ValueId"} - {name for name in given if "@" in name}
    if unknown:
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, sorted(unknown)[0], "CustomPropertyValue", target=api_name)
    if given.get("Value") is None:
        return known.code, None
    text = _as_text(known, given["Value"])
    check_characters(text, api_name)
    # Every member, since a complex value in a response has all of them.
    stored: dict[str, Any] = {"Value": text, "Description": None, "ValueId": None}
    listed = find(known, text, given.get("ValueId")) if known.allowed_from else known.allowed.get(text)
    if listed is not None:
        stored["Value"] = listed.value
        stored["ValueId"] = listed.id
        stored["Description"] = dict(listed.description)
    elif known.limited:
        raise errors.Refused(
            errors.VALIDATION_FAILED,
            Message("{0}: '{1}' is not one of {2}", api_name, text, known.allowed_from or ", ".join(known.allowed)),
            target=api_name,
        )
    elif given.get("Description") is not None:
        description = given["Description"]
        stored["Description"] = _as_description(description, known.api_name, language)
    return known.code, stored


def _as_text(known: Definition, value: Any) -> str:
    try:
        match known.property_type:
            case _ if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
                raise ValueError
            case "Number":
                return _as_number(value)
            case "Date":
                # A date-time is its date in the sender's time zone.
                return datetime.datetime.fromisoformat(str(value)).date().isoformat()
            case _:
                return str(value)
    except (ValueError, ArithmeticError) as exc:
        raise errors.BadRequest(
            errors.INVALID_LITERAL, value, known.property_type, known.api_name, target=known.api_name
        ) from exc


def _as_number(value: str | float | Decimal) -> str:
    """Without exponent and superfluous zeros. Raises ValueError for text that is no number or has too many digits."""
    number = Decimal(str(value))
    if not number.is_finite() or number.adjusted() >= MAX_DIGITS or -int(number.as_tuple().exponent) > MAX_DIGITS:
        raise ValueError
    return format(number.normalize(), "f")


def _as_description(value: Any, name: str, language: str) -> dict[str, str]:
    texts = value if isinstance(value, dict) else {language: value}
    for text in texts.values():
        if not isinstance(text, str):
            raise errors.BadRequest(errors.INVALID_LITERAL, text, "Erp.MultilanguageString", name, target=name)
        check_characters(text, name)
    return {code.upper(): text for code, text in texts.items()}
