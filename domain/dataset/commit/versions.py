"""Versions of an aggregate, read from the change history: list them, show their contents, restore one.

A version is the state of a root and its parts after a commit; its number is the root's ObjectVersion. Its contents are
computed from the current ones by undoing the later changes (`documents_at`).

A document maps API names to serialized values, `@custom` to custom properties, and collections to lists of such
documents with `Id`. The history has no secrets, so a document has none; restoring does not change secrets.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from django.utils.translation import gettext

from domain.dataset.checks import access
from domain.dataset.commit.history import CUSTOM, is_kept, mask_of, serialized_values
from domain.dataset.records.record import Record
from domain.dataset.tables.history import ATTRIBUTES, ObjectChange
from domain.model.attributes import Attribute
from domain.model.custom_properties import definitions
from domain.model.former_attributes import former_names, in_present_form
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import deserialize
from domain.query.base.access import Access
from foundation import errors
from foundation.kinds import Kind
from identity.context import CallContext

Document = dict[str, Any]
#: (repository, attribute or collection)
Members = Collection[tuple[str, str]]
#: Maximum changes undone to show a version.
MOST_CHANGES = 5_000
#: Repository and guid → the serialized values of an entity.
_State = dict[tuple[str, str], Document]


@dataclass(frozen=True, slots=True)
class Version:
    """A version: when, by whom (user_login is "" for the platform), and which attributes and collections it changed."""

    number: int
    saved_at: datetime.datetime
    user_login: str
    application: str
    reason: str
    rules: str
    changeset_id: str
    operation: str
    changes: tuple[str, ...]


def versions_of(repository: Repository[Any], id: str, limit: int) -> list[Version]:
    """The newest versions of a root, newest first."""
    found = ObjectChange.objects.filter(repository_name=repository.name, entity_item_id=id)
    # The type stubs lack attributes behind a reference.
    rows: list[Any] = list(
        found.select_related("changeset").defer("old_values").order_by("-change_time_utc", "-item_version")[:limit]
    )
    parts = _changed_parts(id, [row.changeset_id for row in rows])
    collections = _collections_of_parts(repository)
    result: list[Version] = []
    for row in rows:
        changed = orjson.loads(row.changes) if row.changes and row.operation == "Update" else {}
        names = [
            each.name
            for each in shown_attributes(repository)
            if not changed.keys().isdisjoint((each.name, *former_names(repository.former_attributes, each.name)))
        ]
        names += [name for name in changed if name.startswith("@")]
        if row.operation == "Update":
            touched = {collections.get(part, part) for part in parts.get(str(row.changeset_id), ())}
            names += sorted(touched)
        done = row.changeset
        result.append(
            Version(
                row.item_version,
                row.change_time_utc,
                done.user_login,
                done.application,
                done.reason,
                row.rules,
                str(done.pk),
                row.operation,
                tuple(names),
            )
        )
    return result


def _changed_parts(root: str, changesets: Collection[str]) -> dict[str, set[str]]:
    """Change set → repositories of the parts of the root that it changed."""
    result: dict[str, set[str]] = {}
    found = ObjectChange.objects.filter(changeset__in=changesets, root_item_id=root).exclude(entity_item_id=root)
    for changeset, name in found.values_list("changeset_id", "repository_name").distinct():
        result.setdefault(str(changeset), set()).add(name)
    return result


def _collections_of_parts(repository: Repository[Any]) -> Mapping[str, str]:
    """Repository of a part, at any depth → the root's collection with it."""
    result: dict[str, str] = {}
    for name, part in parts_of_versions(repository):
        for below in (part.name, *_collections_of_parts(part)):
            result.setdefault(below, name)
    return result


# --- contents ---------------------------------------------------------------------------------------------------------


def documents_at(record: Record, numbers: Collection[int]) -> dict[int, Document]:
    """Number → what the aggregate contained in that version, {} before it was created.

    Raises Refused if more than MOST_CHANGES changes have been made since.
    """
    state = dict(_current(record))
    later = ObjectChange.objects.filter(
        repository_name=record.repository.name, entity_item_id=record.id, item_version__gt=min(numbers)
    )
    steps = list(later.order_by("-change_time_utc", "-item_version").values_list("item_version", "changeset_id"))
    if len(steps) > MOST_CHANGES:
        raise errors.Refused(
            errors.VALIDATION_FAILED, gettext("Too much has been changed since that version to show it.")
        )
    result: dict[int, Document] = {}
    undone = _changes_of(record.id, [changeset for _, changeset in steps])
    for number, changeset in steps:
        for wanted in numbers:
            if number <= wanted and wanted not in result:
                result[wanted] = _tree(record.repository, record.id, state)
        for name, entity, operation, old in undone.get(str(changeset), ()):
            if operation == "Create":
                state.pop((name, entity), None)
            elif old is not None:
                known = repositories[name]
                values = orjson.loads(old)
                state[name, entity] = in_present_form(known.former_attributes, known.attributes, values)
    for wanted in numbers:
        result.setdefault(wanted, _tree(record.repository, record.id, state))
    return result


def _changes_of(root: str, changesets: list[Any]) -> dict[str, list[tuple[str, str, str, str | None]]]:
    result: dict[str, list[tuple[str, str, str, str | None]]] = {}
    read = 0
    for start in range(0, len(changesets), 500):
        found = ObjectChange.objects.filter(changeset__in=changesets[start : start + 500], root_item_id=root)
        columns = ("changeset_id", "repository_name", "entity_item_id", "operation", "old_values")
        for changeset, name, entity, operation, old in found.values_list(*columns)[: MOST_CHANGES + 1]:
            result.setdefault(str(changeset), []).append((name, str(entity), operation, old))
            read += 1
        if read > MOST_CHANGES:
            raise errors.Refused(
                errors.VALIDATION_FAILED, gettext("Too much has been changed since that version to show it.")
            )
    return result


def _current(record: Record) -> Iterator[tuple[tuple[str, str], Document]]:
    yield (record.repository.name, record.id), serialized_values(record)
    for name, _part in parts_of_versions(record.repository):
        for item in record.children(name):
            yield from _current(item)


def _tree(repository: Repository[Any], id: str, state: _State) -> Document:
    values = state.get((repository.name, id))
    if values is None:
        return {}
    document: Document = {
        each.name: values[each.name] for each in shown_attributes(repository) if values.get(each.name) is not None
    }
    if values.get(CUSTOM):
        document[CUSTOM] = values[CUSTOM]
    for name, part in parts_of_versions(repository):
        back = repository.collections[name].back_reference
        ids = [key for (owner, key), item in state.items() if owner == part.name and item.get(back) == id]
        items = [{"Id": key, **_tree(part, key, state)} for key in ids]
        document[name] = sorted(items, key=lambda item, part=part: _place(part, item))  # type: ignore[misc]
    return document


def shown_attributes(repository: Repository[Any]) -> Iterator[Attribute]:
    """The attributes that versions show: no system attributes, secrets and pictures."""
    for each in repository.attributes.values():
        if is_kept(each, ATTRIBUTES) and not (each.system or each.owner):
            yield each


def _restored_attributes(repository: Repository[Any]) -> Iterator[Attribute]:
    """The attributes that callers may set."""
    return (each for each in shown_attributes(repository) if not (each.read_only or each.calculated))


def computed_members(repository: Repository[Any]) -> frozenset[tuple[str, str]]:
    """The attributes of the aggregate that versions show and restoring does not set, such as the state."""
    settable = {each.name for each in _restored_attributes(repository)}
    own = {(repository.name, each.name) for each in shown_attributes(repository) if each.name not in settable}
    return frozenset(own).union(*(computed_members(part) for _, part in parts_of_versions(repository)))


def parts_of_versions(repository: Repository[Any]) -> Iterator[tuple[str, Repository[Any]]]:
    """(collection, repository) of the parts that belong to a version."""
    for name, child in repository.collections.items():
        part = repositories[child.repository]
        is_owned = part.owner is not None and part.owner.name == child.back_reference
        if is_owned and part.access != "ReadOnly" and not part.view_of:
            yield name, part


def _place(repository: Repository[Any], item: Document) -> tuple[Any, ...]:
    """Sort key of a part: its number; for parts without numbers its key."""
    numbers = [item.get(each.name) or 0 for each in shown_attributes(repository) if each.kind is Kind.INT]
    return (*numbers, item["Id"])


# --- rights -----------------------------------------------------------------------------------------------------------


def hidden_members(context: CallContext, repository: Repository[Any]) -> frozenset[tuple[str, str]]:
    """The members of the aggregate that the caller may not read, or not completely.

    Row policies cannot be applied to rows of the past, so a collection with policies is hidden, and a reference to a
    repository with policies; so is a custom property (`@code`) whose values are entities of one.
    """
    rights = Access(context.permissions)
    hidden = {
        (repository.name, name)
        for name, reference in repository.references.items()
        if _is_partly_hidden(rights, repositories[reference.target])
    }
    hidden |= {
        (repository.name, f"@{known.code}")
        for known in definitions(repository.name).values()
        if rights.restricts_values(known)
    }
    for name, part in parts_of_versions(repository):
        # A policy on the root applies to its parts, and the root is visible.
        if not rights.readable(part) or context.permissions.policies(part.name, "read"):
            hidden.add((repository.name, name))
        else:
            hidden |= hidden_members(context, part)
    return frozenset(hidden)


def _is_partly_hidden(rights: Access, target: Repository[Any]) -> bool:
    return not rights.readable(target) or rights.restricts(target)


def without_members(repository: Repository[Any], document: Document, hidden: Members) -> Document:
    """The document as a caller may see it."""
    shown = {name: value for name, value in document.items() if (repository.name, name) not in hidden}
    if CUSTOM in shown:
        custom = {code: each for code, each in shown[CUSTOM].items() if (repository.name, f"@{code}") not in hidden}
        shown[CUSTOM] = custom
    for name, part in parts_of_versions(repository):
        if name in shown:
            shown[name] = [without_members(part, item, hidden) for item in shown[name]]
    return shown


# --- restoring --------------------------------------------------------------------------------------------------------


def restore_version(record: Record, document: Document, *, hidden: Members = frozenset()) -> None:
    """Set the caller's pending changes so that the aggregate is as in the document; the commit checks them as others.

    hidden   members that the caller may not see, which stay as they are. Raises PlatformError.
    """
    _restore_values(record, document, hidden)
    dataset = record.dataset
    for name, part in parts_of_versions(record.repository):
        if (record.repository.name, name) in hidden:
            continue
        current = {item.id: item for item in record.children(name)}
        for item in document.get(name, ()):
            child = current.pop(item["Id"], None)
            if child is None:
                child = dataset.create(part, parent=record, collection=name, by_client=True)
            elif child.state != "Added" and _differs(child, item):
                access.require(dataset.context, part, "update")
                access.require_row(dataset.context, child, "update")
            restore_version(child, item, hidden=hidden)
        for left in current.values():
            dataset.delete(left, by_client=True)


def _differs(record: Record, document: Document) -> bool:
    current = serialized_values(record)
    return any(current.get(each.name) != document.get(each.name) for each in _restored_attributes(record.repository))


def _restore_values(record: Record, document: Document, hidden: Members) -> None:
    for attribute in _restored_attributes(record.repository):
        if (record.repository.name, attribute.name) in hidden:
            continue
        value = deserialize(attribute, document.get(attribute.name))
        current = record.values.get(attribute.name)
        mask = mask_of(record.repository, attribute.name)
        if mask is not None and value is not None:
            value = mask.reveal(value, current)
            if value is None:
                text = gettext("{0} of this version had a secret, which versions do not keep. Enter it by hand.")
                text = text.replace("{0}", attribute.name)
                raise errors.Refused(errors.VALIDATION_FAILED, text, target=attribute.name)
        if value != current:
            record.dataset.set(record, attribute, value)
    _restore_custom(record, document.get(CUSTOM) or {}, hidden)


def _restore_custom(record: Record, wanted: Mapping[str, Any], hidden: Members) -> None:
    codes: Iterable[str] = {**record.custom, **wanted}
    for code in codes:
        if (record.repository.name, f"@{code}") not in hidden and record.custom.get(code) != wanted.get(code):
            record.dataset.set_custom(record, code, wanted.get(code))
