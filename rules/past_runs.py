"""Runs a rule against past changes: repeats each change of the history in a dataset that is never committed (spec 12,
12.1).

The entity has its values of before and after the change; other entities, also referenced ones, have current values.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import transaction

from domain.dataset.dataset import Dataset
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import Record
from domain.model.former_attributes import in_present_form
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import deserialize
from domain.query import select_rows
from foundation import dry_runs, errors
from identity.context import CallContext
from rules.compiling import CompiledRule, compile_rule
from rules.engine import evaluate
from rules.specs import RuleSpec

MAX_CHANGES = 1_000
#: Maximum duration; further changes are skipped: on SQLite a dry run holds the lock of all writers.
MAX_SECONDS = 10.0
MAX_REFUSALS = 200
_CHANGES = "Systems.Core.ObjectChanges"
_COLUMNS = (
    "EntityItemId",
    "Operation",
    "ChangeTimeUtc",
    "Changeset.UserLogin",
    "Changes",
    "OldValues",
    "RepositoryName",
)
_CUSTOM = "@custom"
_STATES = {"Create": "Added", "Update": "Modified", "Delete": "Deleted"}
_ON_COMMIT = frozenset({"COMMIT", "CLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED"})
_OF_ROOTS = frozenset({"AGGREGATECLIENTCOMMIT", "AGGREGATECLIENTCOMMITTED"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that the rule would have refused, or on which it failed."""

    entity_id: str
    entity: str
    operation: str
    at: datetime.datetime
    user: str
    event: str
    message: str


@dataclass(slots=True)
class PastRun:
    """The result.

    changes    number of evaluated changes, newest first
    matched    number of those that raise an event of the rule
    acted      number of those for which its conditions hold
    refused    number of those that it refuses or fails at; the first MAX_REFUSALS are in `refusals`
    since      time of the oldest evaluated change
    is_cut     whether the time was too short for all changes
    unknown    events for which the history has too little data
    """

    changes: int = 0
    matched: int = 0
    acted: int = 0
    refused: int = 0
    since: datetime.datetime | None = None
    is_cut: bool = False
    unknown: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def past_run(*, rule: RuleSpec, context: CallContext, last: int) -> PastRun:
    """Run a rule, which need not be stored or active, against the last changes of its repository.

    Only changes that the caller may see, and whose attributes the history has. Nothing is saved or sent. Evaluates at
    most MAX_CHANGES, for at most MAX_SECONDS.
    """
    result = PastRun()
    if rule.repository not in repositories:
        return result
    compiled = list(compile_rule(rule))
    result.unknown = sorted({each.event for each in compiled if not _is_known(each.event)})
    names = [rule.repository, *(each.name for each in repositories[rule.repository].subtypes)]
    listed = ",".join(f"'{name}'" for name in names)
    rows = select_rows(
        repositories[_CHANGES],
        _COLUMNS,
        ctx=context,
        filter=f"RepositoryName in ({listed}) and (Changes ne null or OldValues ne null)",
        orderby="Id desc",
        limit=min(max(last, 1), MAX_CHANGES),
    )
    until = time.monotonic() + MAX_SECONDS
    with dry_runs.dry_run():
        for row in rows:
            if time.monotonic() > until:
                result.is_cut = True
                break
            result.changes += 1
            result.since = row[2]
            _evaluate_change(compiled, context, row, result)
    return result


def _evaluate_change(compiled: list[CompiledRule], context: CallContext, row: tuple[Any, ...], result: PastRun) -> None:
    entity, operation, at, user, changes, old, name = row
    changed: dict[str, Any] = orjson.loads(changes) if changes else {}
    matched = acted = refused = False
    for rule in compiled:
        attributes = _event_attributes(rule, operation, changed, repositories[name])
        if attributes is None:
            continue
        matched = True
        # Rolls back the writes of scripts and number sequences before the next change.
        with transaction.atomic():
            record = _record(Dataset(context), repositories[name], str(entity), operation, changed, old)
            fired, message = _evaluated(rule, record, attributes)
            text = record.describe() if message is not None and len(result.refusals) < MAX_REFUSALS else ""
            transaction.set_rollback(True)
        acted = acted or fired
        if message is not None and not refused:
            refused = True
            if len(result.refusals) < MAX_REFUSALS:
                result.refusals.append(Refusal(str(entity), text, operation, at, user or "", rule.event, message))
    result.matched += matched
    result.acted += acted
    result.refused += refused


def _evaluated(rule: CompiledRule, record: Record, attributes: Mapping[str, Any]) -> tuple[bool, str | None]:
    try:
        fired = evaluate(rule, Occurrence(rule.event, record, record.dataset, rule.parameter, attributes), None)
    except errors.PlatformError as exc:
        return True, exc.message
    return fired, None


def _is_known(event: str) -> bool:
    is_of_attribute = event.startswith(("ATTRIBUTE", "STATE"))
    return event in _ON_COMMIT or event in _OF_ROOTS or event == "CREATENEW" or is_of_attribute


def _event_attributes(
    rule: CompiledRule, operation: str, changed: Mapping[str, Any], repository: Repository[Any]
) -> dict[str, Any] | None:
    """The attributes of the event that the change raises; None if it raises none of the rule."""
    event, parameter = rule.event, rule.parameter
    if event in _ON_COMMIT:
        # A root is unchanged if only its parts changed.
        return {} if operation != "Update" or changed else None
    if event in _OF_ROOTS:
        return {} if repository.is_root else None
    if event == "CREATENEW":
        return {} if operation == "Create" else None
    if operation != "Update":
        return None
    if event.startswith("ATTRIBUTE") and parameter in changed:
        attribute = repository.attributes.get(parameter)
        old, new = changed[parameter]
        if attribute is not None:
            return {"$OldValue": deserialize(attribute, old), "$NewValue": deserialize(attribute, new)}
        return None
    if event.startswith("STATE") and "State" in changed and changed["State"][1] == parameter:
        status = changed.get("UserStatus", (None, None))
        return {
            "$FromState": changed["State"][0],
            "$ToState": parameter,
            "$FromUserStatusId": status[0],
            "$ToUserStatusId": status[1],
        }
    return None


def _record(
    dataset: Dataset,
    repository: Repository[Any],
    id: str,
    operation: str,
    changed: Mapping[str, Any],
    old: str | None,
) -> Record:
    """The entity with the change pending, in the dataset."""
    stored: dict[str, Any] = orjson.loads(old) if old else {}
    before = in_present_form(repository.former_attributes, repository.attributes, stored)
    values: dict[str, Any] = {name: None for name, each in repository.attributes.items() if each.field is not None}
    values |= dict(_deserialized(repository, before))
    record = Record(dataset, repository, id, _STATES[operation], values)  # type: ignore[arg-type]
    values["Id"] = id
    record.version = values.get("ObjectVersion") or 0
    record.custom = before.get(_CUSTOM) or {}
    if operation != "Delete":
        after = dict(_deserialized(repository, {name: pair[1] for name, pair in changed.items()}))
        if operation == "Update":
            record.original_values = {name: values.get(name) for name in after}
        values |= after
        _change_custom(record, changed)
    record.by_client = record.client_caused = True
    dataset.add_existing(record)
    return record


def _change_custom(record: Record, changed: Mapping[str, Any]) -> None:
    codes = {name[1:]: pair[1] for name, pair in changed.items() if name.startswith("@")}
    if codes:
        record.original_custom, record.custom_changed = record.custom, True
        merged = {**record.custom, **codes}
        record.custom = {code: value for code, value in merged.items() if value is not None}


def _deserialized(repository: Repository[Any], serialized: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in serialized.items():
        attribute = repository.attributes.get(name)
        if attribute is not None and attribute.field is not None:
            yield name, deserialize(attribute, value)
