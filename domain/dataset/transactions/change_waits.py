"""Waits for changes in Domain transactions (WaitForChanges; spec 03, 3.2).

A transaction's row counts the changes by all processes. In each process one thread polls the rows for all waiting
clients with one query; a change by this process wakes it at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import orjson
from django.db import DatabaseError

from domain.dataset.tables.models import DomainTransaction
from foundation import errors
from foundation.execution_slot import yield_to_requests
from foundation.listeners import RETRY_SECONDS, WHITE_SPACE, Listener, Listeners

logger = logging.getLogger("platform.transactions")

#: Maximum wait of a client in seconds (spec 03, 3.2).
WAIT_SECONDS = 120.0

#: The answer of GetChanges, and the transaction's sequence at that time.
Collect = Callable[[], tuple[dict[str, Any], int]]


class ChangeWait(Listener):
    """One waiting client. The status of its response is sent before the wait.

    transaction_id   the awaited transaction
    sequence         of the transaction, up to which the client has all changes
    collect          collects the changes; raises PlatformError when the transaction is over
    caller           guid of the user, "" for none
    """

    def __init__(self, transaction_id: str, sequence: int, collect: Collect, caller: str) -> None:
        super().__init__(change_waits, caller, WAIT_SECONDS)
        self.transaction_id = transaction_id
        self.sequence = sequence
        self._collect = collect

    def first_part(self) -> bytes:
        return WHITE_SPACE

    def last_part(self) -> bytes:
        return b"{}"

    def answer(self) -> None:
        """Send the answer of GetChanges, if there are changes: another client may have taken them."""
        try:
            found, self.sequence = self._collect()
        except (errors.PlatformError, DatabaseError) as error:
            # The status has been sent. "No changes" is correct for a transaction that is over, and costs nothing after
            # a failed query: the changes wait for the next call, which reports the failure.
            logger.info("nothing to tell of transaction %s: %s", self.transaction_id, error)
            self.end(self.last_part())
            return
        if found:
            self.end(orjson.dumps(found, option=orjson.OPT_UTC_Z))


class ChangeWaits(Listeners[ChangeWait]):
    """The waiting clients of this process."""

    poll_seconds = 0.5
    max_listeners = 256
    reserved = 48

    def capacity_error(self) -> errors.Unavailable:
        return errors.Unavailable(errors.TOO_MANY_WAITING, self.max_listeners, retry_after_seconds=RETRY_SECONDS)

    def waits_for(self, transaction_id: str) -> bool:
        """Whether a client of this process waits for the transaction."""
        return any(wait.transaction_id == transaction_id for wait in self.all())

    def serve(self, listeners: list[ChangeWait]) -> bool:
        """Answer the clients whose transaction has changed or is over, one after the other: other requests go first."""
        ids = {wait.transaction_id for wait in listeners}
        sequences = dict(DomainTransaction.objects.filter(id__in=ids).values_list("id", "sequence"))
        for wait in listeners:
            # A transaction that is over has no row.
            if wait.is_open and sequences.get(wait.transaction_id) != wait.sequence:
                wait.answer()
                yield_to_requests()
        return False


change_waits = ChangeWaits()

__all__ = ["ChangeWait", "change_waits"]
