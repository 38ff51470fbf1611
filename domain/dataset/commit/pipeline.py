"""The commit pipeline (spec 03, 3.1), stage by stage. `STAGES` is the order; each stage is one function.

Write order: deletes go first, children before parents. Inserts follow, an entity after those that it refers to. Updates
come next, changed columns only. Then roots get a new version and change time. The change feed, the change history,
audit entries, deferred writes (outbox rows) and cache versions end the order.

The whole pipeline runs inside one database transaction, whose BEGIN SQLite may defer until `begin_to_write`
(domain.dataset.tables.write_transaction). A failure leaves the database and the dataset unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction

from domain.dataset.checks import access
from domain.dataset.checks.authority import check_authorities
from domain.dataset.checks.database_errors import duplicate_error, operational_error
from domain.dataset.checks.edit_rules import follow_edits
from domain.dataset.commit.audit import write_audit
from domain.dataset.commit.completion import run_late_defaults
from domain.dataset.commit.conflicts import (
    check_stored_versions,
    check_versions,
    conflict,
    depth,
    repeat_lookups,
    stored_roots,
)
from domain.dataset.commit.deferred_writes import write_deferred
from domain.dataset.commit.entity_changes import note_before, note_changes
from domain.dataset.commit.history import write_history
from domain.dataset.commit.snapshots import accept_changes, restore, take_snapshot
from domain.dataset.commit.validation import call_each, check_targets, validate
from domain.dataset.records import dispatch
from domain.dataset.records.commit_result import CommitResult, CommittedEvent
from domain.dataset.records.record import Record, State, with_roots
from domain.dataset.records.row_writer import grouped, in_order_of_dependency, insert_records
from domain.dataset.tables.models import ChangeFeedEntry
from domain.dataset.tables.row_storage import Referrer, insert_raw, references_in_use, row_storage_of
from domain.dataset.tables.write_transaction import begin_writing, write_transaction
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.registry import cache_version_of
from foundation import cache_versions, errors
from foundation.messages import TranslatableMessage as Message
from identity.context import Operation

#: Maximum rounds of rules that trigger each other before the commit is refused (spec 05, 5.3).
MAX_ROUNDS = 10

Stage = Callable[[ChangeTracker, CommitResult], None]


def commit(dataset: ChangeTracker, *, savepoint: bool = True) -> CommitResult:
    """Run every stage, all or nothing. savepoint: see Dataset.commit.

    Raises Refused (validation, duplicates, rules), VersionConflict, Forbidden (row policies), Unavailable (database
    busy). After a failure the dataset has its changes as before, so that the caller may correct them and try again.
    """
    if not dataset.changed() and not dataset.deferred:
        return CommitResult()
    result = CommitResult()
    before, deferred = take_snapshot(dataset), dataset.deferred.copy()
    dataset.set_commit_time()
    try:
        with transaction.atomic(savepoint=savepoint) if connection.in_atomic_block else write_transaction():
            for stage in STAGES:
                stage(dataset, result)
    except BaseException as exc:
        # Translated before the records are restored: a value of a late default may be the duplicate.
        known = _public_error(exc, result)
        restore(dataset, before)
        dataset.deferred.restore(deferred)
        if known is exc:
            raise
        raise known from exc
    finally:
        commit_time = dataset.now()
        dataset.end_commit()
    accept_changes(dataset, result, commit_time)
    return result


# --- stages -------------------------------------------------------------------------------------------------------


def run_until_stable(dataset: ChangeTracker, result: CommitResult) -> None:
    """Run the model's logic and the rules. A refusal that compares a stale entity with newer rows is a conflict."""
    try:
        _run_rounds(dataset)
    except errors.Refused:
        if dataset.pending_source is None:
            check_stored_versions(dataset, stored_roots(dataset.changed()).values())
        raise


def _run_rounds(dataset: ChangeTracker) -> None:
    """Run effects of edits, late defaults, dependents, validations, then commit rules, until nothing changes.

    An entity's events are raised again when it has changed since, that of its aggregate also when a part has.
    """
    notified: dict[tuple[str, str], tuple[int, int]] = {}
    for _ in range(MAX_ROUNDS):
        follow_edits(dataset.changed())
        run_late_defaults(dataset, dataset.changed, call_each)
        validate(dataset)
        # Roots of changed parts get events, too.
        affected, parts = _affected(dataset)
        changed_since = [record for record in affected if notified.get(record.key) != _changes_in(record, parts)]
        if not changed_since:
            return
        touched = _client_touched(dataset)
        moved = _mutations(dataset)
        for record in changed_since:
            before = notified.get(record.key)
            notified[record.key] = now = _changes_in(record, parts)
            try:
                if before is None or before[0] != now[0]:
                    _raise_commit_events(dataset, record)
                if record.repository.is_root and record.key in touched:
                    dataset.raise_event(record, "AGGREGATECLIENTCOMMIT")
            except errors.PlatformError as error:
                error.about = error.about or record.key
                raise
        if _mutations(dataset) == moved:
            return
    affected, parts = _affected(dataset)
    names = {record.repository.name for record in affected if notified.get(record.key) != _changes_in(record, parts)}
    raise errors.Refused(errors.RULE_LOOP, " → ".join(dataset.recent_steps) or ", ".join(sorted(names)))


def begin_to_write(dataset: ChangeTracker, result: CommitResult) -> None:
    """On SQLite, take the writer's lock: other requests may have written until now, and cannot from now on. The time of
    the commit is read again, so that a client that reads changes since its newest timestamp misses none.
    """
    if begin_writing():
        dataset.set_commit_time()


def plan_writes(dataset: ChangeTracker, result: CommitResult) -> None:
    """Sort the changed records into inserts, updates and deletes."""
    for record in dataset.changed():
        if record.state == "Added":
            result.inserted.append(record)
        elif record.state == "Deleted":
            result.deleted.append(record)
        elif record.original_values or record.custom_changed:
            result.updated.append(record)


def check_references(dataset: ChangeTracker, result: CommitResult) -> None:
    """Check that the target of every written reference exists."""
    check_targets(dataset, (*result.inserted, *result.updated))


def write_deletes(dataset: ChangeTracker, result: CommitResult) -> None:
    """Delete, children before parents; refused while another entity refers to one of them."""
    deleted = {record.id for record in result.deleted}
    for repository, records in grouped(sorted(result.deleted, key=depth, reverse=True)):
        ids = [record.id for record in records]
        for referrer, key in references_in_use(repository, ids):
            if key in deleted:
                continue
            known = dataset.records.get((referrer.repository.identity_name, key))
            # References that this commit changes or deletes do not count.
            if known is None or known.values.get(referrer.attribute.name) in deleted:
                raise errors.Refused(
                    errors.REFERENCE_IN_USE,
                    f"{repository.entity_type}({ids[0]})" if len(ids) == 1 else repository.entity_type,
                    _user_of(dataset, referrer, key),
                )
        row_storage_of(repository).delete(ids)


def _user_of(dataset: ChangeTracker, referrer: Referrer, key: str) -> str:
    """Describe an entity that still refers to a deleted one, as far as the caller may see it."""
    record = dataset.load(referrer.repository, key)
    if record is None or not access.record_visible(record):
        return Message("an entity")
    return f"{referrer.repository.entity_type}({key}).{referrer.attribute.name}"


def write_inserts(dataset: ChangeTracker, result: CommitResult) -> None:
    """Insert in dependency order, adjacent rows of one repository in one statement."""
    try:
        insert_records(result.inserted, dataset.now())
    except IntegrityError:
        result.refused = _first_unwritten(result.inserted)
        raise


def _first_unwritten(inserted: Sequence[Record]) -> Record | None:
    """The record whose insert failed, on SQLite, where the statement's earlier rows remain. PostgreSQL names the value
    in its error, and runs no further query in the failed transaction.
    """
    if connection.vendor != "sqlite":
        return None
    for repository, records in grouped(in_order_of_dependency(inserted)):
        written = row_storage_of(repository).existing([record.id for record in records])
        for record in records:
            if record.id not in written:
                return record
    return None


def write_updates(dataset: ChangeTracker, result: CommitResult) -> None:
    """Write changed columns. Raises VersionConflict if another commit changed the row."""
    commit_time = dataset.now()
    for record in result.updated:
        changes = _changes(record)
        if record.repository.is_root:
            changes["AggregateLastUpdateTimeUtc"] = commit_time
        storage = row_storage_of(record.repository)
        try:
            is_written = storage.update(record.id, changes, _custom(record), record.version)
        except IntegrityError:
            result.refused = record
            raise
        if not is_written:
            raise conflict(dataset, record, storage.version(record.id))
    dataset.rows_written = True


def touch_roots(dataset: ChangeTracker, result: CommitResult) -> None:
    """Give roots of changed parts a new version and change time, once each."""
    written = {record.key for record in (*result.inserted, *result.updated, *result.deleted)}
    touched: dict[tuple[str, str], Record] = {}
    for _, roots in with_roots((*result.inserted, *result.updated, *result.deleted)):
        for root in roots:
            if root.key not in written and root.repository.is_root:
                touched[root.key] = root
    changes = {"AggregateLastUpdateTimeUtc": dataset.now()}
    for root in touched.values():
        storage = row_storage_of(root.repository)
        if not storage.update(root.id, changes, None, root.version):
            raise conflict(dataset, root, storage.version(root.id))
        result.touched.append(root)


def write_change_feed(dataset: ChangeTracker, result: CommitResult) -> None:
    """One row for each written entity."""
    commit_time = dataset.now()
    rows = [
        (record.repository.name, record.id, operation, commit_time)
        for operation, records in (("I", result.inserted), ("U", result.updated), ("D", result.deleted))
        for record in records
    ]
    # Raw rows: building model instances and their statement took longer than writing the entities.
    insert_raw(ChangeFeedEntry._meta.db_table, ("repository", "entity_id", "operation", "changed_at"), rows)


def bump_cache_versions(dataset: ChangeTracker, result: CommitResult) -> None:
    """Bump the cache versions (Repository.cache_version) of the written entities, and of touched roots, whose rows have
    a new version: those of parts of a supertype, such as bank accounts, do not have their root's cache version.
    """
    all_written = (*result.inserted, *result.updated, *result.deleted, *result.touched)
    written = {record.repository for record in all_written}
    names = {cache_version_of(repository) for repository in written}
    for name in sorted(names - {""}):
        cache_versions.bump(name)


def check_row_policies(dataset: ChangeTracker, result: CommitResult) -> None:
    """Check that the caller's writes are within their row policies: nothing is created outside or moved out of them.

    In a Domain transaction the permissions are checked again, too: they may have been revoked since the change.
    """
    written: tuple[tuple[list[Record], Operation], ...] = (
        (result.inserted, "create"), (result.updated, "update"), (result.deleted, "delete"),
    )  # fmt: skip
    for records, operation in written:
        for record in records:
            if not record.by_client:
                continue
            if dataset.pending_source is not None:
                access.require(dataset.context, record.repository, operation)
            if operation != "delete" and access.has_policies(dataset.context, record.repository, operation):
                access.require_row(dataset.context, record, operation)


def run_deferred(dataset: ChangeTracker, result: CommitResult) -> None:
    """Execute deferred writes in the same database transaction."""
    write_deferred(dataset.deferred.take_writes())


def announce(dataset: ChangeTracker, result: CommitResult) -> None:
    """Schedule the actions after the database commit, and collect the COMMITTED events that subscribers watch."""
    for action in dataset.deferred.take_actions():
        transaction.on_commit(action)
    result.committed_events = _committed_events(dataset, result)
    result.lineage = (*dataset.lineage, ", ".join(dict.fromkeys(dataset.recent_steps)) or "commit")


STAGES: tuple[Stage, ...] = (
    repeat_lookups,
    check_versions,
    run_until_stable,
    begin_to_write,
    plan_writes,
    note_before,
    check_references,
    write_deletes,
    write_inserts,
    write_updates,
    touch_roots,
    write_change_feed,
    write_history,
    write_audit,
    bump_cache_versions,
    check_row_policies,
    check_authorities,
    run_deferred,
    announce,
    note_changes,
)


# --- parts --------------------------------------------------------------------------------------------------------


def _raise_commit_events(dataset: ChangeTracker, record: Record) -> None:
    """Raise the events of the entity itself. A root of which only a part changed has none."""
    if record.state != "Unchanged":
        dataset.raise_event(record, "COMMIT")
        if record.client_caused:
            dataset.raise_event(record, "CLIENTCOMMIT")


def _affected(dataset: ChangeTracker) -> tuple[list[Record], dict[tuple[str, str], list[Record]]]:
    """Changed records with the roots of changed parts, and the changed parts of each root."""
    affected: dict[tuple[str, str], Record] = {}
    parts: dict[tuple[str, str], list[Record]] = {}
    for record, roots in with_roots(dataset.changed()):
        affected[record.key] = record
        if record.repository.owner is not None:
            for root in roots:
                affected[root.key] = root
                parts.setdefault(root.key, []).append(record)
    return list(affected.values()), parts


def _changes_in(record: Record, parts: Mapping[tuple[str, str], Sequence[Record]]) -> tuple[int, int]:
    """(number of changes of the record, number of those of its changed parts)"""
    changed = parts.get(record.key, ())
    return record.mutations, len(changed) + sum(part.mutations for part in changed)


def _client_touched(dataset: ChangeTracker) -> set[tuple[str, str]]:
    """Identities of entities that the caller caused to change, and of their roots."""
    result: set[tuple[str, str]] = set()
    for record, roots in with_roots([record for record in dataset.changed() if record.client_caused]):
        result.add(record.key)
        result.update(root.key for root in roots)
    return result


def _mutations(dataset: ChangeTracker) -> dict[tuple[str, str], int]:
    """Number of changes of each changed record."""
    return {record.key: record.mutations for record in dataset.changed()}


def _committed_events(dataset: ChangeTracker, result: CommitResult) -> list[CommittedEvent]:
    """The COMMITTED events that a subscriber watches, with the entities' states; deleted entities as they were."""
    raised: list[CommittedEvent] = []
    written = {record.key for record in (*result.inserted, *result.updated, *result.deleted)}
    touched = _client_touched(dataset)
    watched = cache(dispatch.watched)
    for record in _affected(dataset)[0]:
        events = []
        if record.key in written:
            events += ["COMMITTED", "CLIENTCOMMITTED"] if record.client_caused else ["COMMITTED"]
        if record.repository.is_root and record.key in touched:
            events.append("AGGREGATECLIENTCOMMITTED")
        # A root of which only a part changed is itself unchanged.
        state: State = "Modified" if record.state == "Unchanged" else record.state
        for event in events:
            if watched(record.repository.name, event):
                kept = (dict(record.values), dict(record.custom)) if record.is_deleted else (None, None)
                raised.append(CommittedEvent(record.repository.name, record.id, event, state, *kept))
    return raised


def _changes(record: Record) -> dict[str, Any]:
    return {name: record.values[name] for name in record.original_values}


def _custom(record: Record) -> dict[str, Any] | None:
    return record.custom if record.custom_changed else None


def _public_error(exc: BaseException, result: CommitResult) -> BaseException:
    """The public error for the exception; the exception itself if it is public."""
    match exc:
        case IntegrityError():
            return duplicate_error(exc, result)
        case OperationalError():
            return operational_error(exc)
    return exc
