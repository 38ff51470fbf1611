"""The unit of work of one Domain transaction: entities loaded, created, changed and deleted, and one commit.

    ds = Dataset(ctx)
    order = ds.create(repositories["Crm.Sales.SalesOrders"], {"Customer": customer_id})
    ds.commit()

Discarding is the default, committing a call. Only the outermost caller ends a dataset.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction

from domain.dataset.commit.pipeline import MAX_ROUNDS, commit
from domain.dataset.commit.retries import Attempt, repeated
from domain.dataset.records.record import CommitResult
from domain.dataset.unit.change_tracker import ChangeTracker
from foundation import errors
from foundation.failures import record_failure
from identity.context import CallContext


class Dataset(ChangeTracker):
    """A unit of work: a change tracker with a commit. Not thread-safe; lives within one request, script or command."""

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Write everything, all or nothing; afterwards the dataset is clean and usable.

        savepoint: inside a database transaction, a failure leaves what was done there before. False for who ends that
        transaction with the failure.
        """
        result = commit(self, savepoint=savepoint)
        if result.committed_events:
            transaction.on_commit(partial(_raise_committed_events, self.context, result))
        return result


def _raise_committed_events(context: CallContext, result: CommitResult) -> None:
    """Raise each event in a dataset of its own; a failure is recorded and undoes nothing that is committed.

    Rules here may change and commit again what raises the event again: the lineage bounds that (spec 05, 5.3).
    """
    if len(result.lineage) > MAX_ROUNDS:
        record_failure("COMMITTED rules", errors.Refused(errors.RULE_LOOP, " → ".join(result.lineage)))
        return
    for name, id, event in result.committed_events:
        try:
            repeated(partial(_raise_one, context, result.lineage, name, id, event))
        except Exception as exc:
            record_failure(f"{event} of {name}({id})", exc)


def _raise_one(
    context: CallContext, lineage: tuple[str, ...], name: str, id: str, event: str, attempt: Attempt
) -> None:
    with attempt.locking():
        dataset = Dataset(context.with_(client_initiated=False), lineage=lineage)
        record = dataset.load(name, id)
        if record is not None:
            dataset.raise_event(record, event)
            dataset.commit()
