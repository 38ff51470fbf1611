"""The values that a custom property may take: a list, or entities of a filter (spec 08, 8.2; spec 10, 10.2).

Allowed values may depend on the value of a parent property of the same entity: those of a list by ParentAllowedValueId,
entities by `@parent` (its value) and `@parentId` (the id of its value) in the filter. A caller may write both in any
order, so the commit checks values that depend on the parent (`check_dependent`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from domain import query
from domain.dataset.checks import access
from domain.dataset.lookups.name_binding import member_value
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.custom_properties import AllowedValue, Definition, by_code, definitions
from domain.model.custom_values import not_allowed
from domain.model.filter_xml import filter_of_xml, quoted
from domain.model.registry import repositories
from foundation import errors
from foundation.guids import is_guid
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

#: Maximum entities that are read for a page of allowed values.
MAX_FOUND = 1000
_REFERENCE = re.compile(r"(\w+)\(([0-9A-Fa-f-]{36})\)")
#: Text literals, which stay unchanged, and the placeholders of the parent's value.
_PARENT = re.compile(r"'(?:[^']|'')*'|@parent(?:Id)?\b")
#: Stored form of a parent property without a value.
_NO_VALUE: dict[str, Any] = {}


def find_allowed(
    dataset: UnitOfWork,
    known: Definition,
    text: str,
    id: Any,
    *,
    visible: Callable[[Record], bool] = access.record_visible,
) -> AllowedValue | None:
    """The entity with this ValueId, else with this code or path; None if the filter allows none.

    None, too, for an entity that is not visible to the author of the value, by default the caller. `check_dependent`
    checks a filter that names the parent.
    """
    repository = repositories[known.allowed_from]
    record: Record | None = None
    match = _REFERENCE.fullmatch(text) if id is None else None
    if match is not None:
        # OData's form of references, as elsewhere: Set(guid).
        named = repositories.for_set(match[1])
        id = match[2].lower() if named is not None and issubclass(named[0].model, repository.model) else ""
    if isinstance(id, str):
        record = dataset.load(repository, id) if is_guid(id) else None
    elif repository.code is not None and repository.code.kind is Kind.STRING and repository.code.field is not None:
        record = dataset.find_one(repository, **{repository.code.python_name: text})
    if record is None or not visible(record):
        return None
    if (condition := filter_of(known)) and not names_parent(condition) and not _satisfies(record, condition):
        return None
    return as_allowed(record)


def _satisfies(record: Record, condition: str) -> bool:
    with record.dataset.flushed(around=record.id):
        return query.predicate_holds(record.repository, condition, record.id, record.dataset.context)


def filter_of(known: Definition) -> str:
    """The OData filter and the Filter XML of the allowed values, combined as a $filter; "" for none."""
    return _filter(known.allowed_from, known.filter, known.filter_xml) if known.filter or known.filter_xml else ""


@lru_cache(maxsize=1000)
def _filter(repository: str, filter: str, xml: str) -> str:
    translated = filter_of_xml(repositories[repository], xml, "AllowedValuesFilterXML") if xml else ""
    return " and ".join(f"({each})" for each in (filter, translated) if each)


def names_parent(condition: str) -> bool:
    """Whether a filter depends on the value of the parent property."""
    return any(match[0].startswith("@") for match in _PARENT.finditer(condition))


def with_parent(condition: str, stored: dict[str, Any]) -> str:
    """The filter with the parent's stored value in place of @parent and @parentId; null for no value."""

    def literal(match: re.Match[str]) -> str:
        if not match[0].startswith("@"):
            return match[0]
        value = stored.get("ValueId" if match[0] == "@parentId" else "Value")
        if value is None:
            return "null"
        return str(value) if match[0] == "@parentId" else quoted(str(value))

    return _PARENT.sub(literal, condition)


def parent_value(record: Record, known: Definition) -> dict[str, Any]:
    """The stored value of the entity's parent property; empty for none."""
    return record.custom.get(known.parent) or _NO_VALUE if known.parent else _NO_VALUE


def allowed_values(record: Record, known: Definition, search: str = "") -> list[AllowedValue]:
    """The values that the property of this entity may take; at most MAX_FOUND entities that contain the search."""
    if not known.allowed_from:
        return [value for value in known.allowed.values() if _is_applicable(record, known, value)]
    condition = with_parent(filter_of(known), parent_value(record, known))
    return allowed_entities(record.dataset, known, search, condition)


def _is_applicable(record: Record, known: Definition, value: AllowedValue) -> bool:
    """Whether a value of the list is allowed under the parent's value and in the entity's company."""
    if known.parent and value.parent_id and value.parent_id != parent_value(record, known).get("ValueId"):
        return False
    company = record.values.get("EnterpriseCompany")
    return not value.company_id or company is None or company == value.company_id


def allowed_entities(
    dataset: UnitOfWork, known: Definition, search: str, condition: str, *, limit: int = MAX_FOUND
) -> list[AllowedValue]:
    """At most `limit` entities that may be the value and contain each piece of the search (`%` between them)."""
    repository = repositories[known.allowed_from]
    members = [
        member.name for member in (repository.code, repository.label) if member is not None and member.field is not None
    ]
    quoted_pieces = [piece.lower().replace("'", "''") for piece in search.split("%") if piece]
    conditions = [
        "(" + " or ".join(f"contains(tolower({name}),'{piece}')" for name in members) + ")"
        for piece in quoted_pieces
        if members
    ]
    if condition:
        conditions.append(f"({condition})")
    with dataset.flushed():
        ids = query.select_ids(
            repository, ctx=dataset.context, filter=" and ".join(conditions) or None, orderby="Id", limit=limit
        )
    loaded = dataset.load_many(repository, ids)
    return [as_allowed(loaded[id]) for id in ids if id in loaded]


def check_dependent(record: Record) -> None:
    """Check at commit that changed values fit their parent and the entity's company. Raises Refused(VALIDATION_FAILED).

    A new value of the parent may make the property's old value invalid: both must change together.
    """
    if not record.custom or not (record.custom_changed or record.is_new):
        return
    for known in definitions(record.repository.name).values():
        stored = record.custom.get(known.code)
        if stored is None or not known.limited:
            continue
        if not _is_allowed(record, known, stored):
            raise _not_under_parent(record, known, stored)


def _is_allowed(record: Record, known: Definition, stored: dict[str, Any]) -> bool:
    if not known.allowed_from:
        value = known.allowed.get(str(stored.get("Value")))
        # A stored value stays valid after its removal from the list.
        return value is None or _is_applicable(record, known, value)
    condition = filter_of(known)
    if not known.parent or not names_parent(condition):
        return True
    target = record.dataset.load(repositories[known.allowed_from], stored.get("ValueId") or "")
    return target is None or _satisfies(target, with_parent(condition, parent_value(record, known)))


def _not_under_parent(record: Record, known: Definition, stored: dict[str, Any]) -> errors.Refused:
    if not known.parent:
        return not_allowed(known, str(stored.get("Value")))
    parent = by_code(record.repository, known.parent)
    name = parent.api_name if parent is not None else known.parent
    error = errors.Refused(
        errors.VALIDATION_FAILED,
        Message("{0}: '{1}' is not allowed while {2} is '{3}': change one of them", known.api_name,
                stored.get("Value"), name, parent_value(record, known).get("Value") or ""),
        target=known.api_name,
    )  # fmt: skip
    error.about = record.key
    return error


def as_allowed(record: Record) -> AllowedValue:
    """An entity as allowed value: its code, with its name as description; without a code, its display text."""
    code, label = record.repository.code, record.repository.label
    described = record.dataset.display_text(record)
    value = member_value(record, code) if code is not None else None
    name = member_value(record, label) if label is not None else None
    texts = name if isinstance(name, dict) else {record.dataset.context.language.upper(): str(name or described)}
    return AllowedValue(record.id, str(value or described), texts)


__all__ = [
    "MAX_FOUND",
    "allowed_entities",
    "allowed_values",
    "as_allowed",
    "check_dependent",
    "filter_of",
    "find_allowed",
    "names_parent",
    "with_parent",
]
