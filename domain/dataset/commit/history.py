"""Writes the change history of a commit (spec 12, 12.2): one change set, and a row for each entity that it changed.

The statements are part of the commit's transaction: one for the change set, one for each chunk of changes, and one if
the commit changes aggregates of level 1. The history contains no secrets: it omits encrypted and unpublished
attributes, and masks those for which an app called `mask_in_history`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from domain.dataset.commit.tracking import tracking
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record
from domain.dataset.tables.history import (
    ATTRIBUTES,
    BLOBS,
    CHANGE_SETS,
    LAST_CHANGE,
    LastChange,
    ObjectChange,
    ObjectChangeset,
)
from domain.dataset.tables.row_storage import CHUNK, insert_raw, quote
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.attributes import Attribute
from domain.model.former_attributes import DECIMALS, DEFINITION
from domain.model.registry import derived
from domain.model.repository import Repository
from domain.model.values import round_to_scale
from foundation.batches import batched
from foundation.guids import new_guid
from foundation.kinds import Kind

#: Key of the custom properties in the values before a change.
CUSTOM = "@custom"
#: Maximum characters of a text in `changes`; `old_values` has whole texts.
LONGEST_TEXT = 2_000
_RULES_LENGTH = 254
_LONG_KINDS = frozenset({Kind.STRING, Kind.MULTILANGUAGE, Kind.BINARY})


@dataclass(frozen=True, slots=True)
class Mask:
    """How the history masks secrets in the values of one attribute.

    hide     value → the value with masks
    reveal   masked value, current value → the value with the secrets of the current one, or None if a mask is left
    """

    hide: Callable[[str | None], str | None]
    reveal: Callable[[str, str | None], str | None]


#: (repository, attribute) → mask
_masks: dict[tuple[str, str], Mask] = {}


def mask_in_history(repository: str, attribute: str, mask: Mask) -> None:
    """Mask an attribute in the history; for apps above the domain, at start-up."""
    _masks[repository, attribute] = mask


def mask_of(repository: Repository[Any], attribute: str) -> Mask | None:
    """The mask of an attribute."""
    return _masks.get((repository.name, attribute))


def without_secrets(repository: Repository[Any], attribute: Attribute, value: Any) -> Any:
    """The value as reports of changes may show it: a secret is masked."""
    if attribute.secret:
        return "***"
    mask = mask_of(repository, attribute.name)
    return value if mask is None else mask.hide(value)


def is_kept(attribute: Attribute, level: int) -> bool:
    """Whether the history of this level keeps the values of the attribute."""
    is_stored = attribute.field is not None and not (attribute.key_alias or attribute.secret)
    return is_stored and (attribute.kind is not Kind.BINARY or level >= BLOBS)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The attributes of a repository whose values the history keeps.

    names      API names
    decimals   decimal attributes, with functions that write a number at the scale of the attribute
    masked     masked attributes, with their masks
    blobs      binary attributes
    long       attributes that may have more than LONGEST_TEXT characters
    """

    names: tuple[str, ...]
    name_set: frozenset[str]
    decimals: tuple[tuple[str, Callable[[Decimal], str]], ...]
    masked: tuple[tuple[str, Mask], ...]
    blobs: tuple[str, ...]
    long: tuple[str, ...]


def _kept(repository: Repository[Any], level: int) -> _Kept:
    return (_kept_with_blobs if level >= BLOBS else _kept_without_blobs)(repository)


@derived
def _kept_without_blobs(repository: Repository[Any]) -> _Kept:
    return _build(repository, ATTRIBUTES)


@derived
def _kept_with_blobs(repository: Repository[Any]) -> _Kept:
    return _build(repository, BLOBS)


def _build(repository: Repository[Any], level: int) -> _Kept:
    kept = [each for each in repository.attributes.values() if is_kept(each, level)]
    masked = tuple((each.name, mask) for each in kept if (mask := mask_of(repository, each.name)) is not None)
    decimals = tuple((each.name, _at_scale(each)) for each in kept if each.kind in DECIMALS and each.scale is not None)
    long = tuple(each.name for each in kept if each.kind in _LONG_KINDS and (each.max_length or 10**9) > LONGEST_TEXT)
    names = tuple(each.name for each in kept)
    blobs = tuple(each.name for each in kept if each.kind is Kind.BINARY)
    return _Kept(names, frozenset(names), decimals, masked, blobs, long)


def _at_scale(attribute: Attribute) -> Callable[[Decimal], str]:
    return lambda number: format(round_to_scale(attribute, number), "f")


# --- the stage --------------------------------------------------------------------------------------------------------


def write_history(dataset: ChangeTracker, result: CommitResult) -> None:
    """Write the change set of the commit, for the repositories with a tracking level."""
    levels = tracking()
    rows: list[Sequence[Any]] = []
    roots: dict[tuple[str, str], Record] = {}
    changeset, commit_time = "", dataset.now()
    for operation, records in (
        ("Create", result.inserted),
        ("Update", result.updated),
        ("Delete", result.deleted),
        ("Update", result.touched),
    ):
        for record in records:
            level = levels[record.repository.name].level
            if level >= CHANGE_SETS:
                changeset = changeset or new_guid()
                rows.append(_row(dataset, record, operation, level, changeset, commit_time))
            elif level == LAST_CHANGE:
                root = _root(record)
                roots[root.key] = root
    if rows:
        _write_changeset(dataset, changeset, commit_time)
        insert_raw(ObjectChange._meta.db_table, _OBJECT_COLUMNS, rows)
    if roots:
        _write_last_changes(dataset, list(roots.values()), commit_time)


_CHANGESET_COLUMNS = (
    "id", "object_version", "aggregate_last_update_time_utc", "change_time_utc", "application", "reason", "request_id",
    "session_id", "user_id", "user_login",
)  # fmt: skip
_OBJECT_COLUMNS = (
    "id", "object_version", "changeset_id", "change_time_utc", "item_version", "operation", "repository_name",
    "entity_item_id", "root_item_id", "rules", "changes", "old_values",
)  # fmt: skip
_LAST_COLUMNS = ("root_id", "repository", "changed_at", "user_id", "user_login", "application")


def _write_changeset(dataset: ChangeTracker, changeset: str, commit_time: Any) -> None:
    context = dataset.context
    user = context.user
    row = (
        changeset, 1, commit_time, commit_time, context.application, context.reason, context.request_id[:64],
        context.session_id, None if user is None else user.id, "" if user is None else user.login,
    )  # fmt: skip
    insert_raw(ObjectChangeset._meta.db_table, _CHANGESET_COLUMNS, [row])


def _write_last_changes(dataset: ChangeTracker, roots: Sequence[Record], commit_time: Any) -> None:
    """Store user and time of the last change of each aggregate of level 1."""
    for gone in batched((root.id for root in roots if root.is_deleted), CHUNK):
        LastChange.objects.filter(root_id__in=gone).delete()
    user, application = dataset.context.user, dataset.context.application
    who = (None if user is None else user.id, "" if user is None else user.login, application)
    rows = [(root.id, root.repository.name, commit_time, *who) for root in roots if not root.is_deleted]
    changed = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in _LAST_COLUMNS[1:])
    insert_raw(LastChange._meta.db_table, _LAST_COLUMNS, rows, f" ON CONFLICT (root_id) DO UPDATE SET {changed}")


def _row(
    dataset: ChangeTracker, record: Record, operation: str, level: int, changeset: str, commit_time: Any
) -> Sequence[Any]:
    changes = before = None
    if level >= ATTRIBUTES:
        kept = _kept(record.repository, level)
        if operation != "Create":
            before = _before(record, kept)
        if operation != "Delete":
            changes = _changes(record, kept)
    version = 1 if operation == "Create" else record.version + (operation == "Update")
    rules = ", ".join(dataset.rules_behind.get(record.key, ()))[:_RULES_LENGTH]
    return (
        new_guid(), 1, changeset, commit_time, version, operation, record.repository.name, record.id, _root(record).id,
        rules, changes, before,
    )  # fmt: skip


def _root(record: Record) -> Record:
    """The root of the record's aggregate, also if it is deleted by the same commit."""
    records, current = record.dataset.records, record
    for _ in range(16):
        owner = current.repository.owner
        target = None if owner is None else current.values.get(owner.name)
        if owner is None or target is None:
            return current
        parent = records.get((current.repository.owner_identity, target))
        if parent is None:
            parent = record.dataset.load(owner.target, target)
        if parent is None:
            return current
        current = parent
    return current


def _before(record: Record, kept: _Kept) -> str:
    """The entity as it was before the change, as JSON."""
    values = {**record.values, **record.original_values} if record.original_values else record.values
    result = {name: value for name in kept.names if (value := values.get(name)) is not None}
    for name in kept.blobs:
        # A missing one differs from one that a lower level did not keep.
        result.setdefault(name, None)
    custom = record.original_custom if record.custom_changed else record.custom
    if custom:
        result[CUSTOM] = custom
    if version := record.repository.definition_version:
        result[DEFINITION] = version
    return _json(result, kept)


def _changes(record: Record, kept: _Kept) -> str:
    """The changed attributes as JSON: attribute → [old, new]."""
    values, originals, is_new = record.values, record.original_values, record.state == "Added"
    result: dict[str, Any]
    if is_new:
        result = {name: (None, value) for name in kept.names if (value := values.get(name)) is not None}
    else:
        names = kept.name_set
        result = {name: (before, values[name]) for name, before in originals.items() if name in names}
    for name, scale_of in kept.decimals:
        if (pair := result.get(name)) is not None:
            old, new = pair
            result[name] = None if old is None else scale_of(old), None if new is None else scale_of(new)
    for name, mask in kept.masked:
        if (pair := result.get(name)) is not None:
            result[name] = tuple(None if each is None else mask.hide(each) for each in pair)
    for name in kept.long:
        if (pair := result.get(name)) is not None:
            result[name] = tuple(_shortened(each) for each in pair)
    if record.custom_changed or (is_new and record.custom):
        former: Mapping[str, Any] = {} if is_new else record.original_custom
        for code in {**former, **record.custom}:
            if former.get(code) != record.custom.get(code):
                result[f"@{code}"] = (_shortened(former.get(code)), _shortened(record.custom.get(code)))
    return orjson.dumps(result, default=_plain, option=orjson.OPT_UTC_Z).decode()


def serialized_values(record: Record) -> dict[str, Any]:
    """The kept values of an entity as they are now, in the form of `old_values`."""
    kept = _kept_without_blobs(record.repository)
    values = {name: value for name in kept.names if (value := record.values.get(name)) is not None}
    if record.custom:
        values[CUSTOM] = record.custom
    result: dict[str, Any] = orjson.loads(_json(values, kept))
    return result


def _json(values: dict[str, Any], kept: _Kept) -> str:
    _normalize(values, kept)
    return orjson.dumps(values, default=_plain, option=orjson.OPT_UTC_Z).decode()


def _normalize(values: dict[str, Any], kept: _Kept) -> None:
    """Decimals as text at their scale, secrets masked, for JSON that the read engine turns back into columns."""
    for name, scale_of in kept.decimals:
        if (number := values.get(name)) is not None:
            values[name] = scale_of(number)
    for name, mask in kept.masked:
        if values.get(name) is not None:
            values[name] = mask.hide(values[name])


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[:LONGEST_TEXT] + "…"
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    return f"{len(value)} bytes" if isinstance(value, bytes) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value).__name__)
