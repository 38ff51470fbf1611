"""Checks the caller's data permissions where calls enter the dataset (spec 01, 1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.custom_properties import by_code
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import select_rows, within_policies
from domain.query.base.access import Access
from foundation import errors
from identity.context import AllPermissions, CallContext, Operation


def allowed(context: CallContext, repository: Repository[Any], operation: Operation) -> bool:
    """Whether the caller's roles allow the operation on the repository at all."""
    if repository.admin_only and not isinstance(context.permissions, AllPermissions):
        return False
    return context.permissions.allows(repository.name, operation)


def require(context: CallContext, repository: Repository[Any], operation: Operation) -> None:
    """Raise Forbidden(PERMISSION_DENIED) unless allowed, and for writes of read-only repositories."""
    if not allowed(context, repository, operation) or (operation != "read" and repository.access == "ReadOnly"):
        raise errors.Forbidden(errors.PERMISSION_DENIED, operation, repository.name)


def row_visible(context: CallContext, repository: Repository[Any], id: str) -> bool:
    """Whether the stored row is visible to the caller, as in a query."""
    return not _restricts(context, repository) or bool(select_rows(repository, ("Id",), ctx=context, ids=[id]))


def record_visible(record: Record) -> bool:
    """Whether the caller may see a reference's target; new entities are the caller's own."""
    context = record.dataset.context
    if isinstance(context.permissions, AllPermissions) or record.state == "Added":
        return True
    return allowed(context, record.repository, "read") and row_visible(context, record.repository, record.id)


def leads_to_hidden(record: Record, reference: str) -> bool:
    """Whether the target of the reference is hidden from the caller; the reference then reads as null."""
    target = record.values.get(reference)
    if target is None or isinstance(record.dataset.context.permissions, AllPermissions):
        return False
    result = record.dataset.load(record.repository.references[reference].target, target)
    return result is not None and not record_visible(result)


def names_hidden(record: Record, code: str, stored: Mapping[str, Any] | None) -> bool:
    """Whether a value of the custom property is an entity that is hidden from the caller; it then reads as null."""
    id = (stored or {}).get("ValueId")
    if id is None or isinstance(record.dataset.context.permissions, AllPermissions):
        return False
    known = by_code(record.repository, code)
    if known is None or not Access(record.dataset.context.permissions).restricts_values(known):
        return False
    result = record.dataset.load(known.allowed_from, id)
    return result is None or not record_visible(result)


def visible_custom(record: Record) -> Mapping[str, Any]:
    """The custom properties without those whose values are hidden from the caller."""
    hidden = [code for code, stored in record.custom.items() if names_hidden(record, code, stored)]
    return {code: value for code, value in record.custom.items() if code not in hidden} if hidden else record.custom


def require_target(record: Record, reference: Attribute, id: str) -> None:
    """Refuse a hidden reference target as if it did not exist (spec 01, 1.7).

    Checked at once and not at commit, where the caller's choice cannot be told from a default.
    """
    context = record.dataset.context
    if isinstance(context.permissions, AllPermissions):
        return
    target = repositories[reference.target]
    if not _restricts(context, target):
        return
    result = record.dataset.load(target, id)
    if result is None or not record_visible(result):
        name = f"{record.repository.entity_type}.{reference.name}"
        raise errors.Refused(errors.REFERENCE_NOT_FOUND, name, target.set_name, id, target=reference.name)


def require_row(context: CallContext, record: Record, operation: Operation) -> None:
    """Raise Forbidden unless the row policies for the operation allow the stored row."""
    if not row_covered(context, record.repository, record.id, operation):
        raise errors.Forbidden(errors.PERMISSION_DENIED, operation, f"{record.repository.set_name}({record.id})")


def has_policies(context: CallContext, repository: Repository[Any], operation: Operation) -> bool:
    """Whether rows must be checked one by one."""
    return bool(Access(context.permissions).alternatives(repository, operation))


def _restricts(context: CallContext, repository: Repository[Any]) -> bool:
    """Whether row policies may hide rows of the repository from the caller."""
    return Access(context.permissions).restricts(repository)


def row_covered(context: CallContext, repository: Repository[Any], id: str, operation: Operation) -> bool:
    """Whether the row policies for the operation allow the stored row."""
    return not has_policies(context, repository, operation) or within_policies(repository, operation, id, context)


__all__ = [
    "Operation",
    "allowed",
    "has_policies",
    "leads_to_hidden",
    "record_visible",
    "require",
    "require_row",
    "require_target",
    "row_covered",
    "row_visible",
]
