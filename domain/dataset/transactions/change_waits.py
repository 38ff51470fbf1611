"""Waits for changes in Domain transactions (WaitForChanges; spec 03, 3.2).

    wait = ChangeWait(transaction_id, sequence, take)

A transaction's row counts its changes, by all processes. One thread of a process polls the rows that its clients wait
for, all with one query, and ends without clients. A change by this process wakes its clients at once.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import orjson
from django.db import DatabaseError, connection

from domain.dataset.tables.models import DomainTransaction
from foundation import errors
from foundation.fair_queue import has_free_place

logger = logging.getLogger("platform.transactions")

#: Maximum wait of a client in seconds (spec 03, 3.2).
WAIT_SECONDS = 120.0
#: Interval of polling for other processes' changes.
LOOK_SECONDS = 0.5
#: Interval of keep-alive bytes to a client: less than the timeout of proxies (60 seconds, mostly).
STILL_HERE_SECONDS = 15.0
#: Maximum clients of one process that wait at once; each has a thread of the web server. All clients of an instance may
#: be connected to the same process.
SLOTS = 256
#: The last slots are for callers with fewer clients than this, so that no caller alone takes all.
RESERVED = 48
_RETRY_SECONDS = 5

#: The answer of GetChanges, and the transaction's sequence at that time.
Take = Callable[[], tuple[dict[str, Any], int]]


class ChangeWait:
    """One waiting client; a foundation.long_polls.LongPoll.

    transaction_id   the awaited transaction
    sequence         of the transaction, up to which the client has all changes
    take             takes the changes; raises PlatformError when the transaction is over
    caller           guid of the user, "" for none

    Raises Unavailable if SLOTS clients wait, or too many of the caller's.
    """

    def __init__(self, transaction_id: str, sequence: int, take: Take, caller: str = "") -> None:
        self.transaction_id = transaction_id
        self.sequence = sequence
        self.caller = caller
        self.woken = threading.Event()
        self._take = take
        self._deadline = time.monotonic() + WAIT_SECONDS
        watch.add(self)

    def wait(self) -> bool:
        """Wait for a possible change, the end of the wait, or the next keep-alive."""
        left = self._deadline - time.monotonic()
        return left <= 0 or self.woken.wait(min(left, STILL_HERE_SECONDS)) or time.monotonic() >= self._deadline

    def answer(self) -> bytes | None:
        """The answer of GetChanges; None while there are no changes and time is left."""
        self.woken.clear()
        try:
            found, self.sequence = self._take()
        except (errors.PlatformError, DatabaseError) as error:
            # The status has been sent. "No changes" is correct for a transaction that is over, and costs nothing after
            # a failed query: the changes wait for the next call, which reports the failure.
            logger.info("nothing to tell of transaction %s: %s", self.transaction_id, error)
            return b"{}"
        over = watch.stopping or time.monotonic() >= self._deadline
        return orjson.dumps(found) if found or over else None

    def close(self) -> None:
        """Free the slot."""
        watch.remove(self)


class _Watch:
    """The waits of this process, and the thread that polls for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: the slot of a response that is never iterated (a failed request) is freed automatically.
        self._waits: weakref.WeakSet[ChangeWait] = weakref.WeakSet()
        self._looking = False
        self.stopping = False

    def add(self, wait: ChangeWait) -> None:
        """Add a client. Raises Unavailable."""
        with self._lock:
            taken_by = (other.caller for other in self._waits)
            if not has_free_place(taken_by, wait.caller, places=SLOTS, reserved=RESERVED):
                raise errors.Unavailable(errors.TOO_MANY_WAITING, SLOTS, retry_after_seconds=_RETRY_SECONDS)
            self._waits.add(wait)
            if self.stopping:
                wait.woken.set()
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="change-waits", daemon=True).start()

    def remove(self, wait: ChangeWait) -> None:
        """Remove a client, if present."""
        with self._lock:
            self._waits.discard(wait)

    def waits_for(self, transaction_id: str) -> bool:
        """Whether a client of this process waits for the transaction."""
        with self._lock:
            return any(wait.transaction_id == transaction_id for wait in self._waits)

    def wake(self, transaction_id: str) -> None:
        """Wake the clients of a transaction that this process changed."""
        with self._lock:
            for wait in self._waits:
                if wait.transaction_id == transaction_id:
                    wait.woken.set()

    def stop(self) -> None:
        """Answer all clients now, because the process stops."""
        with self._lock:
            self.stopping = True
            for wait in self._waits:
                wait.woken.set()

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                ids = {wait.transaction_id for wait in self._waits}
                self._looking = bool(ids)
            if not ids:
                break
            try:
                self._wake_changed(ids)
            except Exception:
                # Requests report the same failure; here it is retried.
                logger.warning("could not look for changes of transactions", exc_info=True)
                connection.close()
        connection.close()

    def _wake_changed(self, ids: set[str]) -> None:
        result = dict(DomainTransaction.objects.filter(id__in=ids).values_list("id", "sequence"))
        with self._lock:
            for wait in self._waits:
                # A transaction that is over has no row.
                if wait.transaction_id in ids and result.get(wait.transaction_id) != wait.sequence:
                    wait.woken.set()


watch = _Watch()

__all__ = ["SLOTS", "ChangeWait", "watch"]
