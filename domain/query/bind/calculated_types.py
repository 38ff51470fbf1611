"""Types of calculated attributes, and the check of a definition before it is saved (spec 10.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.model.calculated_attributes import Definition, definitions
from domain.model.custom_properties import CACHE_VERSION
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import ValueType, new_root, python_operator
from domain.query.bind.binder import Binder
from domain.query.bind.calculations import Calculation
from foundation import errors
from foundation.versioned_cache import VersionedCache

#: repository name → API name → type; filled on demand, and made anew when a definition changes.
_known: VersionedCache[dict[str, Mapping[str, ValueType]]] = VersionedCache(
    dict, CACHE_VERSION, state=lambda: repositories.generation
)


def value_types(repository: Repository[Any]) -> Mapping[str, ValueType]:
    """API name → type of the repository's calculated attributes, in order; without those that cannot be evaluated."""
    by_repository = _known.get()
    result = by_repository.get(repository.name)
    if result is None:
        result = by_repository[repository.name] = {
            name: value_type
            for name in definitions(repository)
            if (value_type := _type_of(repository, name)) is not None
        }
    return result


def _type_of(repository: Repository[Any], name: str) -> ValueType | None:
    try:
        value = Binder(Access(None)).calculated(new_root(repository), name)
    except errors.BadRequest:
        return None
    return None if value is None else value.bound.type


def operator_without_sql(
    repository: Repository[Any], name: str, together_with: Sequence[Definition] = ()
) -> str | None:
    """The first operator of the attribute that has no SQL (INCNUM, JavaScript); None if the database can compute it.

    Raises BadRequest for an attribute that cannot be evaluated.
    """
    value = Binder(Access(None), pending=together_with).calculated(new_root(repository), name)
    return None if value is None else python_operator((value.bound, value.failed_row))


def check_definition(
    repository: Repository[Any], definition: Definition, together_with: Sequence[Definition] = ()
) -> ValueType:
    """The type of a definition that is about to be saved. Raises BadRequest with the row and the reason.

    together_with: other definitions that the same commit saves.
    """
    binder = Binder(Access(None), pending=(definition, *together_with))
    Calculation(binder, definition).check_every_row()
    value = binder.calculated(new_root(repository), definition.api_name)
    assert value is not None
    return value.bound.type
