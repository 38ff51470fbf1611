"""The values that a copy of an entity has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.dataset.checks import access

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Attributes that a copy does not have.
_NOT_COPIED = frozenset(
    {"Id", "ObjectVersion", "ExternalId", "ExternalSystem", "AggregateLastUpdateTimeUtc", "AdditionalDataJson"}
)


def values_of_copy(source: Record, parent: Record | None) -> dict[str, Any]:
    """API name → value of a copy under `parent`: what callers may set. References to hidden entities are null."""
    repository = source.repository
    values: dict[str, Any] = {}
    for attribute in repository.attributes.values():
        if attribute.read_only or attribute.name in _NOT_COPIED or attribute.field is None:
            continue
        # The code of a part is unique among its siblings, so a copied part keeps it.
        value = source.values.get(attribute.name)
        if attribute is repository.code and (parent is None or not attribute.required):
            continue
        if attribute.owner and parent is not None:
            continue
        if attribute.is_reference and value == source.id:
            continue
        is_hidden = attribute.is_reference and access.leads_to_hidden(source, attribute.name)
        values[attribute.name] = None if is_hidden else value
    return values
