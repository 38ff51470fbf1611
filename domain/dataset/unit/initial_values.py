"""Initial values of a new entity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.dataset.records.record import Record
from domain.model.registry import derived, repositories
from domain.model.repository import Repository


def initial_values(repository: Repository[Any], id: str) -> dict[str, Any]:
    """API name → initial value of a new entity with this key, for stored attributes."""
    constant, made = _defaults(repository)
    return {**constant, **{name: make() for name, make in made}, "Id": id, "ObjectVersion": 1}


def back_reference(parent: Record, child: Repository[Any], collection: str) -> str:
    """API name of the owner reference of a new child."""
    for known in parent.repository.collections.values():
        if collection in ("", known.name) and issubclass(child.model, repositories[known.repository].model):
            return known.back_reference
    return child.owner_attribute.name


#: (API name → value, [(API name, callable default)])
_Defaults = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]


@derived
def _defaults(repository: Repository[Any]) -> _Defaults:
    members = [attribute for attribute in repository.attributes.values() if attribute.field is not None]
    return (
        {attribute.name: None if callable(attribute.default) else attribute.default for attribute in members},
        [(attribute.name, attribute.default) for attribute in members if callable(attribute.default)],
    )
