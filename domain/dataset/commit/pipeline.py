"""The commit pipeline (spec 03, 3.1), stage by stage. `STAGES` is the order; each stage is one function.

Write order in four sentences: deletes go first, children before parents. Inserts follow, an entity after those that it
refers to. Updates come next, changed columns only. Then roots move their version and stamp, and the change feed and
everything deferred (outbox rows) is written.

The pipeline runs inside one database transaction from late defaults on, because numbers are taken from locked
sequences there; whatever fails leaves nothing behind and the dataset as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction

from domain.database.cursor import execute_many
from domain.dataset.checks import access
from domain.dataset.checks.authority import check_authorities
from domain.dataset.checks.edit_guards import follow_edits
from domain.dataset.checks.unique_violations import duplicate_error, operational_error
from domain.dataset.commit.deferred_writes import write_deferred
from domain.dataset.commit.retries import ConcurrentUpdate
from domain.dataset.commit.validation import check_targets, validate
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records import dispatch
from domain.dataset.records.record import CommitResult, Record
from domain.dataset.records.row_writer import grouped, insert_records
from domain.dataset.tables.models import ChangeFeedEntry
from domain.dataset.tables.storage import Referrer, quote, references_in_use, storage_of
from domain.dataset.tables.write_transaction import write_transaction
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors, stamps
from foundation.phrases import Phrase
from identity.context import Operation

#: Rounds of rules changing what other rules watch before the commit is refused (spec 05, 5.3).
MAX_ROUNDS = 10

Stage = Callable[[ChangeTracker, CommitResult], None]


def commit(dataset: ChangeTracker, *, savepoint: bool = True) -> CommitResult:
    """Run every stage, all or nothing. savepoint: see Dataset.commit.

    Raises Refused (validation, duplicates, rules), VersionConflict, Forbidden (row policies), Unavailable (database
    busy). After a failure the dataset holds its changes as before, so that the caller may mend and try again.
    """
    if not dataset.changed() and not dataset.deferred:
        return CommitResult()
    result = CommitResult()
    before, deferred = dataset.snapshot(), dataset.deferred.copy()
    dataset.begin_commit()
    try:
        with transaction.atomic(savepoint=savepoint) if connection.in_atomic_block else write_transaction():
            for stage in STAGES:
                stage(dataset, result)
    except BaseException as exc:
        # Told before the records are put back: what a late default filled in may be what is there twice.
        known = _told(exc, result)
        dataset.restore(before)
        dataset.deferred.restore(deferred)
        if known is exc:
            raise
        raise known from exc
    finally:
        stamp = dataset.now()
        dataset.end_commit()
    dataset.accept_changes(result, stamp)
    return result


# --- stages -------------------------------------------------------------------------------------------------------


def repeat_lookups(dataset: ChangeTracker, result: CommitResult) -> None:
    """Repeat the lookups whose empty results made the Domain transaction create entities; they must be empty still.

    The first stage: a plain request takes its advisory locks before any row lock, and lock order must be the same.
    """
    made = [
        (dataset.records[key], lookup)
        for key, lookup in dataset.pending_lookups.items()
        if key in dataset.records and lookup.fits(dataset.records[key])
    ]
    if not made:
        return
    values: dict[Repository[Any], list[str]] = {}
    for _, lookup in made:
        values.setdefault(lookup.repository, []).extend(lookup.locks())
    locks = AdvisoryLocks()
    for repository in sorted(values, key=lambda repository: repository.identity_name):
        locks.take(repository, values[repository])
    known = sum(record.state in ("Modified", "Deleted") for record in dataset.changed())
    for record, lookup in made:
        for id in lookup.stored(dataset.context, limit=1 + known):
            other = dataset.records.get((record.repository.identity_name, id))
            # What this commit deletes, or gives other values, is not there any more; what it gives these was known.
            if other is None or other.state == "Unchanged":
                raise errors.VersionConflict(errors.MADE_MEANWHILE, record.repository.entity_type, lookup.told())


def check_versions(dataset: ChangeTracker, result: CommitResult) -> None:
    """What a Domain transaction changed, and whatever is to be deleted, is stored as it was loaded (spec 03, 3.1).

    Before anything is validated: what somebody else has changed or deleted meanwhile would be complained of as if the
    caller had done it. Updates of a plain request are checked by the statement that writes them.

    On PostgreSQL roots are locked here, too, each before its parts and all in one order: two requests that write some
    of the same would otherwise wait for each other.
    """
    changed = dataset.changed()
    stored_before = {
        record.key: record
        for record in changed
        if record.is_deleted or (record.state == "Modified" and dataset.pending_source is not None)
    }
    if connection.features.has_select_for_update:
        stored_before.update(_roots_to_lock(changed))
    by_identity: dict[tuple[int, str], list[Record]] = {}
    for record in stored_before.values():
        by_identity.setdefault((_depth(record), record.repository.identity_name), []).append(record)
    for (_, identity), records in sorted(by_identity.items(), key=lambda group: group[0]):
        versions = storage_of(repositories[identity]).lock_versions([record.id for record in records])
        for record in records:
            if versions.get(record.id) != record.version:
                raise conflict(record, versions.get(record.id))


def _roots_to_lock(changed: Sequence[Record]) -> dict[tuple[str, str], Record]:
    """Stored roots of what is to be written, unless it is one row alone, which its own statement locks."""
    roots = {root.key: root for record in changed for root in record.roots if root.state != "Added"}
    alone = len(roots) <= 1 and all(record.state == "Added" or record.key in roots for record in changed)
    return {} if alone else roots


def run_until_stable(dataset: ChangeTracker, result: CommitResult) -> None:
    """Effects of edits, late defaults, dependents, validations, then commit rules; again while rules move something."""
    told: dict[tuple[str, str], int] = {}
    for _ in range(MAX_ROUNDS):
        follow_edits(dataset)
        run_late_defaults(dataset)
        dataset.calculate(dataset.changed())
        validate(dataset)
        # Roots whose parts changed are told too, though nothing of their own did.
        audience = _audience(dataset)
        restless = [record for record in audience if told.get(record.key) != record.mutations]
        if not restless:
            return
        touched = _client_touched(dataset)
        moved = _mutations(dataset)
        for record in restless:
            told[record.key] = record.mutations
            raise_commit_events(dataset, record, ("COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT"), touched)
        if _mutations(dataset) == moved:
            return
    names = sorted(
        {record.repository.name for record in _audience(dataset) if told.get(record.key) != record.mutations}
    )
    raise errors.Refused(errors.RULE_LOOP, " → ".join(dataset.trail) or ", ".join(names))


def plan_writes(dataset: ChangeTracker, result: CommitResult) -> None:
    """Sort the changed records by fate."""
    for record in dataset.changed():
        if record.state == "Added":
            result.inserted.append(record)
        elif record.state == "Deleted":
            result.deleted.append(record)
        elif record.original_values or record.custom_changed:
            result.updated.append(record)


def check_references(dataset: ChangeTracker, result: CommitResult) -> None:
    """Every reference of what will be written leads to something that exists."""
    check_targets(dataset, (*result.inserted, *result.updated))


def write_deletes(dataset: ChangeTracker, result: CommitResult) -> None:
    """Delete, children before parents; refused while something else refers to one of them."""
    deleted = {record.id for record in result.deleted}
    for repository, records in grouped(sorted(result.deleted, key=_depth, reverse=True)):
        ids = [record.id for record in records]
        for referrer, key in references_in_use(repository, ids):
            if key in deleted:
                continue
            known = dataset.records.get((referrer.repository.identity_name, key))
            # What this commit lets refer to something else is no reason to keep it.
            if known is None or known.values.get(referrer.attribute.name) in deleted:
                raise errors.Refused(
                    errors.REFERENCE_IN_USE,
                    f"{repository.entity_type}({ids[0]})" if len(ids) == 1 else repository.entity_type,
                    _user_of(dataset, referrer, key),
                )
        storage_of(repository).delete(ids)


def _user_of(dataset: ChangeTracker, referrer: Referrer, key: str) -> str:
    """What still refers to a deleted entity, as far as the caller may know of it."""
    record = dataset.load(referrer.repository, key)
    if record is None or not access.record_visible(record):
        return Phrase("an entity")
    return f"{referrer.repository.entity_type}({key}).{referrer.attribute.name}"


def write_inserts(dataset: ChangeTracker, result: CommitResult) -> None:
    """Insert in dependency order, rows of one repository that follow one another in one statement."""
    insert_records(result.inserted, dataset.now())


def write_updates(dataset: ChangeTracker, result: CommitResult) -> None:
    """Write changed columns. Raises VersionConflict when somebody else was first."""
    stamp = dataset.now()
    for record in result.updated:
        changes = _changes(record)
        if record.repository.is_root:
            changes["AggregateLastUpdateTimeUtc"] = stamp
        storage = storage_of(record.repository)
        if not storage.update(record.id, changes, _custom(record), record.version):
            raise conflict(record, storage.version(record.id))


def touch_roots(dataset: ChangeTracker, result: CommitResult) -> None:
    """Roots whose parts changed move their version and stamp, once each."""
    written = {record.key for record in (*result.inserted, *result.updated, *result.deleted)}
    touched: dict[tuple[str, str], Record] = {}
    for record in (*result.inserted, *result.updated, *result.deleted):
        if record.repository.owner is None:
            continue
        for root in record.roots:
            if root.key not in written and root.repository.is_root:
                touched[root.key] = root
    stamp = dataset.now()
    for root in touched.values():
        if not storage_of(root.repository).touch(root.id, root.version, stamp):
            raise conflict(root, storage_of(root.repository).version(root.id))
        result.touched.append(root)


def write_change_feed(dataset: ChangeTracker, result: CommitResult) -> None:
    """One row for each written entity."""
    stamp = connection.ops.adapt_datetimefield_value(dataset.now())
    rows = [
        (record.repository.name, record.id, operation, stamp)
        for operation, records in (("I", result.inserted), ("U", result.updated), ("D", result.deleted))
        for record in records
    ]
    if rows:
        # By hand: building model instances and their statement took longer than writing the entities themselves.
        execute_many(
            f"INSERT INTO {quote(ChangeFeedEntry._meta.db_table)} "
            "(repository, entity_id, operation, changed_at) VALUES (%s, %s, %s, %s)",
            rows,
        )


def bump_stamps(dataset: ChangeTracker, result: CommitResult) -> None:
    """Caches built from what was written learn of it: rules, custom properties (Repository.stamp)."""
    written = {record.repository for record in (*result.inserted, *result.updated, *result.deleted)}
    names = {_stamp(repository) for repository in written}
    for name in sorted(names - {""}):
        stamps.bump(name)


def check_row_policies(dataset: ChangeTracker, result: CommitResult) -> None:
    """What the caller wrote still lies within their row policies: nothing is created outside or moved out of them.

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
    """Write what events left for the same database transaction."""
    write_deferred(dataset.deferred.take_writes())


def announce(dataset: ChangeTracker, result: CommitResult) -> None:
    """Schedule the actions after the database commit, and collect the COMMITTED events that subscribers watch."""
    for action in dataset.deferred.take_actions():
        transaction.on_commit(action)
    result.committed_events = _committed_events(dataset, result)
    result.lineage = (*dataset.lineage, ", ".join(dict.fromkeys(dataset.trail)) or "commit")


STAGES: tuple[Stage, ...] = (
    repeat_lookups,
    check_versions,
    run_until_stable,
    plan_writes,
    check_references,
    write_deletes,
    write_inserts,
    write_updates,
    touch_roots,
    write_change_feed,
    bump_stamps,
    check_row_policies,
    check_authorities,
    run_deferred,
    announce,
)


# --- parts --------------------------------------------------------------------------------------------------------


def run_late_defaults(dataset: ChangeTracker) -> None:
    """Fill what callers left out, parents before children. A late default may create further entities."""
    done: set[tuple[str, str]] = set()
    while True:
        waiting = [record for record in dataset.changed() if record.key not in done and not record.is_deleted]
        if not waiting:
            return
        for record in sorted(waiting, key=_depth):
            done.add(record.key)
            for late_default in record.repository.behaviours("late_defaults"):
                late_default(record)


def raise_commit_events(
    dataset: ChangeTracker, record: Record, names: tuple[str, str, str], client_touched: set[tuple[str, str]]
) -> None:
    """The plain, the client and the aggregate event, as far as they apply to the record."""
    plain, client, aggregate = names
    changes_itself = record.state != "Unchanged"
    if changes_itself:
        dataset.raise_event(record, plain)
        if record.client_caused:
            dataset.raise_event(record, client)
    if record.repository.is_root and record.key in client_touched:
        dataset.raise_event(record, aggregate)


def conflict(record: Record, stored: int | None) -> errors.VersionConflict:
    """The error for a version that moved on, or a row that is gone."""
    path = f"{record.repository.set_name}({record.id})"
    code, values = errors.DELETED_MEANWHILE, [path]
    if stored is not None:
        code, values = errors.VERSION_CONFLICT, [path, str(record.version), str(stored)]
    pending = record.dataset.pending_source
    if pending is not None and pending.has(record):
        return errors.VersionConflict(code, *values)
    return ConcurrentUpdate(code, *values, record=record)


def _audience(dataset: ChangeTracker) -> list[Record]:
    """Changed records, and the roots of changed parts."""
    found: dict[tuple[str, str], Record] = {}
    for record in dataset.changed():
        found[record.key] = record
        if record.repository.owner is not None:
            found.update((root.key, root) for root in record.roots)
    return list(found.values())


def _client_touched(dataset: ChangeTracker) -> set[tuple[str, str]]:
    """Identities of what callers caused to change, and of the roots of it."""
    found: set[tuple[str, str]] = set()
    for record in dataset.changed():
        if record.client_caused:
            found.add(record.key)
            if record.repository.owner is not None:
                found.update(root.key for root in record.roots)
    return found


def _mutations(dataset: ChangeTracker) -> dict[tuple[str, str], int]:
    """How often each of the changed records has changed."""
    return {record.key: record.mutations for record in dataset.changed()}


def _committed_events(dataset: ChangeTracker, result: CommitResult) -> list[tuple[str, str, str]]:
    """(repository, guid, event) of the COMMITTED events that somebody wants; deleted entities raise none."""
    told: list[tuple[str, str, str]] = []
    written = {record.key for record in (*result.inserted, *result.updated)}
    touched = _client_touched(dataset)
    for record in _audience(dataset):
        if record.is_deleted:
            continue
        name = record.repository.name
        if record.key in written:
            told.append((name, record.id, "COMMITTED"))
            if record.client_caused:
                told.append((name, record.id, "CLIENTCOMMITTED"))
        if record.repository.is_root and record.key in touched:
            told.append((name, record.id, "AGGREGATECLIENTCOMMITTED"))
    return [entry for entry in told if dispatch.watched(entry[0], entry[2])]


def _stamp(repository: Repository[Any]) -> str:
    current = repository
    while not current.stamp and current.owner is not None:
        current = repositories[current.owner.target]
    return current.stamp


def _changes(record: Record) -> dict[str, Any]:
    return {name: record.values[name] for name in record.original_values}


def _custom(record: Record) -> dict[str, Any] | None:
    return record.custom if record.custom_changed else None


def _depth(record: Record) -> int:
    """0 for roots, 1 for their children …"""
    depth = 0
    repository = record.repository
    while repository.owner is not None:
        depth += 1
        repository = repositories[repository.owner.target]
    return depth


def _told(exc: BaseException, result: CommitResult) -> BaseException:
    """What callers are told of the failure; the exception itself where that says it."""
    match exc:
        case IntegrityError():
            return duplicate_error(exc, result)
        case OperationalError():
            return operational_error(exc)
    return exc


__all__ = ["MAX_ROUNDS", "STAGES", "commit", "operational_error"]
