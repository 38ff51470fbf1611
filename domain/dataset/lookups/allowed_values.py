"""Entities as the allowed values of custom properties (spec 08, 8.2, AllowedValuesEntityName)."""

from __future__ import annotations

from typing import Any

from domain.dataset.checks import access
from domain.dataset.lookups.name_binding import member_value
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.custom_properties import AllowedValue, Definition
from domain.model.registry import repositories
from domain.query import select_ids
from foundation.kinds import Kind

#: Maximum entities that are read for a page of allowed values.
MAX_FOUND = 1000


def find_allowed(
    dataset: UnitOfWork, known: Definition, text: str, id: Any, *, by_client: bool = True
) -> AllowedValue | None:
    """The entity with this ValueId, else with this code; None if there is none, or none visible to a client."""
    repository = repositories[known.allowed_from]
    record: Record | None = None
    if isinstance(id, str):
        record = dataset.load(repository, id)
    elif repository.code is not None and repository.code.kind is Kind.STRING and repository.code.field is not None:
        record = dataset.find_one(repository, **{repository.code.python_name: text})
    if record is None or (by_client and not access.record_visible(record)):
        return None
    return as_allowed(record)


def allowed_entities(dataset: UnitOfWork, known: Definition, search: str) -> list[AllowedValue]:
    """At most MAX_FOUND entities that may be the value and contain each piece of the search (`%` between them)."""
    repository = repositories[known.allowed_from]
    members = [
        member.name for member in (repository.code, repository.label) if member is not None and member.field is not None
    ]
    quoted = [piece.replace("'", "''") for piece in search.split("%") if piece]
    conditions = [
        "(" + " or ".join(f"contains(tolower({name}),'{piece}')" for name in members) + ")"
        for piece in quoted
        if members
    ]
    with dataset.flushed():
        ids = select_ids(
            repository, ctx=dataset.context, filter=" and ".join(conditions) or None, orderby="Id", limit=MAX_FOUND
        )
    loaded = dataset.load_many(repository, ids)
    return [as_allowed(loaded[id]) for id in ids if id in loaded]


def as_allowed(record: Record) -> AllowedValue:
    """Its code with its name as description; an entity without a code has its display text as value."""
    code, label = record.repository.code, record.repository.label
    described = record.describe()
    value = member_value(record, code) if code is not None else None
    name = member_value(record, label) if label is not None else None
    texts = name if isinstance(name, dict) else {record.dataset.context.language.upper(): str(name or described)}
    return AllowedValue(record.id, str(value or described), texts)
