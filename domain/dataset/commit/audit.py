"""Records a commit's changes of access rights and configuration in the audit chain (spec 12.4).

The commit's transaction writes one entry for each of the two; for other commits only the names of their repositories
are compared. The entry for access rights has old and new values, except secrets; the entry for configuration has names
of attributes, since the versions of rules, scripts and webhooks have the values without secrets.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from audit.kinds import EntryKind
from audit.record import record as record_entry
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.values import serialize
from identity.audit_actors import actor_of_call
from identity.audit_kinds import AccessChanged, ConfigurationChanged
from identity.permissions import ACCESS_CONTROL, GRANTED_BY_NAME

#: Maximum entities that an entry describes; it counts the rest.
MOST_ENTITIES = 50
_MOST_CHARACTERS = 200


def write_audit(dataset: ChangeTracker, result: CommitResult) -> None:
    """Write the audit entries of the commit."""
    changes: dict[type[EntryKind], list[tuple[str, Record]]] = {}
    written = (("created", result.inserted), ("updated", result.updated), ("deleted", result.deleted))
    for operation, records in written:
        for record in records:
            kind = _kind_of(record.repository.name)
            if kind is not None:
                changes.setdefault(kind, []).append((operation, record))
    for kind, changed in changes.items():
        described = [_described(operation, record, kind) for operation, record in changed[:MOST_ENTITIES]]
        first = described[0]
        record_entry(
            kind,
            by=actor_of_call(dataset.context),
            subject=f"{first['repository']}({first['id']})",
            changes=described,
            entities=len(changed),
        )


@lru_cache(maxsize=4096)
def _kind_of(repository: str) -> type[EntryKind] | None:
    if repository.startswith(ACCESS_CONTROL):
        return AccessChanged
    return ConfigurationChanged if repository.startswith(GRANTED_BY_NAME) else None


def _described(operation: str, record: Record, kind: type[EntryKind]) -> dict[str, Any]:
    result: dict[str, Any] = {"repository": record.repository.name, "id": record.id, "operation": operation}
    names = list(record.values) if operation == "created" else list(record.original_values)
    if operation == "deleted":
        return result
    if kind is not AccessChanged:
        return {**result, "attributes": sorted(names)}
    values = {}
    for name in names:
        attribute = record.repository.attributes.get(name)
        if attribute is None or attribute.secret or (operation == "created" and record.values[name] is None):
            continue
        new = _shown(serialize(attribute, record.values[name]))
        values[name] = (
            [new] if operation == "created" else [_shown(serialize(attribute, record.original_values[name])), new]
        )
    return {**result, "values": values}


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)[:_MOST_CHARACTERS]
