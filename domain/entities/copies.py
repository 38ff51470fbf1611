"""Copies of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.dataset.checks import access
from domain.model.custom_properties import definitions
from domain.model.registry import repositories

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Attributes that a copy does not have.
_NOT_COPIED = frozenset(
    {"Id", "ObjectVersion", "ExternalId", "ExternalSystem", "AggregateLastUpdateTimeUtc", "AdditionalDataJson"}
)


def values_of_copy(source: Record, parent: Record | None) -> dict[str, Any]:
    """Values of a copy under `parent` that callers may set, by API name. References to hidden entities are null."""
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


def copy_custom(source: Record, copy: Record) -> None:
    """Give the copy the values of the source's custom properties that are defined and that the caller may see."""
    visible = access.visible_custom(source)
    for known in definitions(copy.repository.name).values():
        if known.code in visible:
            copy.dataset.set_custom(copy, known.code, visible[known.code])


def entity_copy(source: Record, parent: Record | None = None) -> Record:
    """A new entity with the values of the source, and copies of the parts that it owns and the caller may see."""
    dataset = source.dataset
    repository = source.repository
    values = values_of_copy(source, parent)
    if parent is None and repository.owner is not None:
        parent = source.parent
    copy = dataset.create(repository, values, parent=parent, by_client=True)
    copy_custom(source, copy)
    for collection, child in repository.collections.items():
        part = repositories[child.repository]
        is_owned = part.owner is not None and part.owner.name == child.back_reference
        if part.access == "ReadOnly" or not is_owned or not part.copied_with_owner:
            continue
        for owned in source.children(collection):
            # Hidden parts are omitted without an error.
            if access.record_visible(owned):
                entity_copy(owned, copy)
    return copy
