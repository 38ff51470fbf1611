"""Custom properties: attributes that administrators add to a repository (spec 08, 8.2; spec 10, 10.2).

Definitions are entities (Systems.Bpm.CustomProperties), cached in the process under the cache version
"custom_properties", which each commit of definitions bumps: usable by the next request (foundation.cache_versions).
Values are stored with the entity as JSON: {code: {"Value", "Description"?, "ValueId"?}}; domain.model.custom_values
makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F

from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.kinds import Kind
from foundation.versioned_cache import VersionedCache

CACHE_VERSION = "custom_properties"
PREFIX = "CustomProperty_"

_KINDS = {
    "Number": Kind.DECIMAL,
    "Date": Kind.DATE,
    "DateTime": Kind.DATETIME,
    "Boolean": Kind.BOOL,
    "Picture": Kind.BINARY,
}


@dataclass(frozen=True, slots=True)
class AllowedValue:
    """A value from the definition's list.

    parent_id   id of the value of the parent property that allows it (ParentAllowedValueId); "" for every value
    company_id  the enterprise company whose entities may have it; "" for all
    """

    id: str
    value: str
    description: Mapping[str, str]
    parent_id: str = ""
    company_id: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """One custom property of one repository.

    id              of the definition
    repository      the repository that it was defined for; those that inherit from it have the property too
    property_type   Text, Number, Date, DateTime, Boolean, Picture or Reference; `kind` is that of its values
    allowed         allowed values, by value
    allowed_from    the repository whose entities are the allowed values instead, or that a Reference refers to
    filter, filter_xml  the condition of the allowed entities (spec 10, 10.2); "" for none
    parent          code of the property on whose value the allowed values depend; "" for none
    required_from   the document state from which it is required; "" for every state
    default         the value of new entities, as text; "" for none
    measure         code of the unit or currency of its numbers; "" for none
    max_length      maximum characters of a Text
    searchable      $search finds entities by it
    indexed         the database has an index of its values
    """

    id: str
    repository: str
    code: str
    api_name: str
    property_type: str
    limited: bool
    name: Mapping[str, str]
    hint: Mapping[str, str] = field(default_factory=dict)
    allowed: Mapping[str, AllowedValue] = field(default_factory=dict)
    allowed_from: str = ""
    filter: str = ""
    filter_xml: str = ""
    parent: str = ""
    required: bool = False
    required_from: str = ""
    default: str = ""
    unit: str = ""
    currency: str = ""
    max_length: int | None = None
    searchable: bool = False
    indexed: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of its canonical values; of a Reference, the code of the entity."""
        return _KINDS.get(self.property_type, Kind.STRING)

    @property
    def measure(self) -> str:
        """Code of the unit or currency of its numbers; "" for none."""
        return self.unit or self.currency


def escape_code(code: str) -> str:
    """The code as part of an API name: keeps `_` and letters and digits of any script, replaces other characters by
    `_u` and their UTF-8 bytes in hex, at least four digits.
    """
    parts: list[str] = []
    for character in code:
        if character.isalpha() or character.isdecimal() or character == "_":
            parts.append(character)
        else:
            parts.append("_u" + character.encode().hex().upper().zfill(4))
    return "".join(parts)


def definitions(repository: str) -> Mapping[str, Definition]:
    """Active custom properties of the repository and of those it inherits from, by API name (`CustomProperty_x`).

    A cached call runs no query.
    """
    return _definitions.get().get(repository, {})


def definition(repository: str, api_name: str) -> Definition:
    """The definition of `CustomProperty_x`. Raises BadRequest(UNKNOWN_PROPERTY) with similar names."""
    result = named(repository, api_name)
    if result is None:
        hint = near(api_name, definitions(repository))
        raise errors.BadRequest(errors.UNKNOWN_PROPERTY, api_name, repository, hint, target=api_name)
    return result


def named(repository: str, api_name: str) -> Definition | None:
    """The active custom property of `CustomProperty_x`, in any case like all names (spec 02, 2.2); None if unknown."""
    known = definitions(repository)
    if (result := known.get(api_name)) is not None or not is_name(api_name):
        return result
    lowered = api_name.lower()
    return next((entry for name, entry in known.items() if name.lower() == lowered), None)


def is_name(api_name: str) -> bool:
    """Whether the name, in any case, has the form of a custom property's."""
    return api_name.lower().startswith(PREFIX.lower())


def by_code(repository: Repository[Any], code: str) -> Definition | None:
    """The active custom property with this code, of the repository or of one it inherits from."""
    return definitions(repository.name).get(PREFIX + escape_code(code))


def _load() -> dict[str, dict[str, Definition]]:
    own: dict[str, dict[str, Definition]] = {}
    lists = _allowed_values()
    properties = repositories["Systems.Bpm.CustomProperties"].model._default_manager
    # Only the codes of the related rows are needed, so the same query selects them.
    related = {
        "parent_code": F("allowed_values_parent_property__code"),
        "unit_code": F("unit__code"),
        "currency_code": F("currency__currency_sign"),
    }
    active = list(properties.filter(is_active=True).order_by("code").annotate(**related))
    by_id = {entry.id: entry for entry in active}
    for entry in active:
        # The property whose allowed values this one uses: by default itself.
        source = by_id.get(entry.allowed_values_property_id, entry)
        name, target = _repository_name(entry.entity_name), _repository_name(source.allowed_values_entity_name or "")
        api_name = PREFIX + escape_code(entry.code)
        own.setdefault(name, {})[api_name] = Definition(
            id=entry.id,
            repository=name,
            code=entry.code,
            api_name=api_name,
            property_type=str(entry.property_type),
            limited=entry.limit_to_allowed_values or str(entry.property_type) == "Reference",
            name=_texts(entry.name),
            hint=_texts(entry.hint),
            allowed=lists.get(source.id, {}),
            allowed_from=target if target in repositories else "",
            filter=source.allowed_values_filter or "",
            filter_xml=source.allowed_values_filter_xml or "",
            parent=entry.parent_code or "",
            required=entry.required,
            required_from=str(entry.required_from_state or ""),
            default=entry.default_value or "",
            unit=entry.unit_code or "",
            currency=entry.currency_code or "",
            max_length=entry.mask_length,
            searchable=entry.is_searchable,
            indexed=entry.is_indexed,
        )
    return {
        repository.name: found for repository in repositories if (found := _with_inherited(repository, own)) is not None
    }


def _allowed_values() -> dict[str, dict[str, AllowedValue]]:
    """Active allowed values by value, by the id of their property."""
    rows = (
        repositories["Systems.Bpm.CustomPropertyAllowedValues"]
        .model._default_manager.filter(active=True)
        .values_list(
            "property_id",
            "id",
            "property_allowed_value_field",
            "description",
            "parent_allowed_value_id",
            "enterprise_company_id",
        )
    )
    result: dict[str, dict[str, AllowedValue]] = {}
    for property_id, id, value, description, *narrowed in rows:
        result.setdefault(property_id, {})[value] = AllowedValue(
            id, value, _texts(description), *(each or "" for each in narrowed)
        )
    return result


def _with_inherited(
    repository: Repository[Any], own: Mapping[str, Mapping[str, Definition]]
) -> dict[str, Definition] | None:
    found: dict[str, Definition] = {}
    current: Repository[Any] | None = repository
    while current is not None:
        found = {**own.get(current.name, {}), **found}
        current = current.base
    return found or None


_definitions = VersionedCache(_load, CACHE_VERSION, state=lambda: repositories.generation)


def _repository_name(entity_name: str) -> str:
    """`General.Products.Products` of a stored entity name."""
    known = repositories.for_entity_name(entity_name)
    return known.name if known is not None else entity_name


def _texts(value: Any) -> Mapping[str, str]:
    """Texts by language. The type stubs take a multilanguage column for str."""
    return value or {}
