"""Finds entities by conditions on their attributes, including pending ones; see Dataset.find_all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.dataset.records.record import Record, UnitOfWork
from domain.model.repository import Repository
from foundation.kinds import Kind


def find_by_value(
    dataset: UnitOfWork, repository: Repository[Any], members: Mapping[str, Any], limit: int | None
) -> list[Record]:
    """Entities with equal values of own attributes: changed ones are compared here, the database finds the others.

    Behaviours run while many changes are pending; flushing those for each query of, say, currencies would cost more
    than the commit itself.
    """
    dataset.load_pending(repository)
    pending = [
        record
        for record in dataset.records.values()
        if record.state != "Unchanged" and issubclass(record.repository.model, repository.model)
    ]
    # Pending changes may exclude some stored matches.
    result = dataset.load_found(repository, members, None if limit is None else limit + len(pending))
    result.update((record.id, record) for record in pending)
    matching = [
        record
        for record in result.values()
        if record.state == "Unchanged"
        or (not record.is_deleted and all(record.values.get(n) == value for n, value in members.items()))
    ]
    return matching if limit is None else matching[:limit]


def value_members(repository: Repository[Any], conditions: Mapping[str, Any]) -> dict[str, Any] | None:
    """API name → value, if all conditions are equalities on own attributes; else None."""
    result: dict[str, Any] = {}
    for key, value in conditions.items():
        member = repository.by_python_name.get(key)
        if member is None and key.endswith("_id"):
            member = repository.by_python_name.get(key[:-3])
        # Multilanguage texts and bytes need more than equality, secrets cannot be compared.
        by_value = member is not None and not member.secret and member.kind not in _NOT_BY_VALUE
        if member is None or member.field is None or member.key_alias or not by_value:
            return None
        result[member.name] = value.id if isinstance(value, Record) else value
    return result


_NOT_BY_VALUE = frozenset({Kind.MULTILANGUAGE, Kind.BINARY})


def look_up(
    repository: Repository[Any], conditions: Mapping[str, Any], order_by: Sequence[str], limit: int | None
) -> list[str]:
    """Guids by Django-style conditions on Python names."""
    prepared = {}
    for key, value in conditions.items():
        prepared[key] = value.id if isinstance(value, Record) else value
    query = repository.model._default_manager.filter(**prepared).order_by(*order_by, "pk").values_list("pk", flat=True)
    return [str(id) for id in (query[:limit] if limit is not None else query)]
