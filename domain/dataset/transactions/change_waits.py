"""Waiting for changes in Domain transactions (WaitForChanges; spec 03, 3.2).

    wait = ChangeWait(transaction_id, sequence, take)

A transaction's row counts its changes, whichever process makes them. One thread of a process looks at the rows that its
clients wait for, all with one query, and ends when nobody waits. What this process itself changes is told at once.
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

logger = logging.getLogger("platform.transactions")

#: How long a client is kept waiting, in seconds (spec 03, 3.2).
WAIT_SECONDS = 120.0
#: How often other processes' changes are looked for.
LOOK_SECONDS = 0.5
#: How often a waiting client is told that it still waits: less than what proxies allow (60 seconds, mostly).
STILL_HERE_SECONDS = 15.0
#: Clients of one process that may wait at once; each has a thread of the web server. All of an instance's may have come
#: to the same process.
SLOTS = 256
_RETRY_SECONDS = 5

#: What GetChanges answers, and the transaction's sequence then.
Take = Callable[[], tuple[dict[str, Any], int]]


class ChangeWait:
    """One waiting client; a foundation.long_polls.LongPoll.

    transaction_id   what it waits for
    sequence         of the transaction, up to which the client knows all
    take             takes what there is to tell; raises PlatformError when the transaction is over

    Raises Unavailable when SLOTS clients wait.
    """

    def __init__(self, transaction_id: str, sequence: int, take: Take) -> None:
        self.transaction_id = transaction_id
        self.sequence = sequence
        self.woken = threading.Event()
        self._take = take
        self._deadline = time.monotonic() + WAIT_SECONDS
        watch.add(self)

    def wait(self) -> bool:
        """Until something may have changed, the time is over, or the client should be told that it still waits."""
        left = self._deadline - time.monotonic()
        return left <= 0 or self.woken.wait(min(left, STILL_HERE_SECONDS)) or time.monotonic() >= self._deadline

    def answer(self) -> bytes | None:
        """What GetChanges answers; None while there is nothing and time is left."""
        self.woken.clear()
        try:
            found, self.sequence = self._take()
        except (errors.PlatformError, DatabaseError) as error:
            # The status has been sent. "Nothing" is true of a transaction that is over, and costs nothing of one that
            # could not be asked: its changes wait for the next call, which says what is wrong.
            logger.info("nothing to tell of transaction %s: %s", self.transaction_id, error)
            return b"{}"
        over = watch.stopping or time.monotonic() >= self._deadline
        return orjson.dumps(found) if found or over else None

    def close(self) -> None:
        """Give the slot back."""
        watch.remove(self)


class _Watch:
    """The waits of this process, and the thread that looks for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: the slot of an answer that was never given (the request failed behind it) is free again by itself.
        self._waits: weakref.WeakSet[ChangeWait] = weakref.WeakSet()
        self._looking = False
        self.stopping = False

    def add(self, wait: ChangeWait) -> None:
        """Raises Unavailable."""
        with self._lock:
            if len(self._waits) >= SLOTS:
                raise errors.Unavailable(errors.TOO_MANY_WAITING, SLOTS, retry_after_seconds=_RETRY_SECONDS)
            self._waits.add(wait)
            if self.stopping:
                wait.woken.set()
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="change-waits", daemon=True).start()

    def remove(self, wait: ChangeWait) -> None:
        """Also where it is not there any more."""
        with self._lock:
            self._waits.discard(wait)

    def waits_for(self, transaction_id: str) -> bool:
        """Whether a client of this process waits for it."""
        with self._lock:
            return any(wait.transaction_id == transaction_id for wait in self._waits)

    def wake(self, transaction_id: str) -> None:
        """This process has changed the transaction."""
        with self._lock:
            for wait in self._waits:
                if wait.transaction_id == transaction_id:
                    wait.woken.set()

    def stop(self) -> None:
        """The process is to end: everybody is answered now."""
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
                # Whatever it is, requests meet it too and answer for it; here it is tried again.
                logger.warning("could not look for changes of transactions", exc_info=True)
                connection.close()
        connection.close()

    def _wake_changed(self, ids: set[str]) -> None:
        found = dict(DomainTransaction.objects.filter(id__in=ids).values_list("id", "sequence"))
        with self._lock:
            for wait in self._waits:
                # One that is over has no row.
                if wait.transaction_id in ids and found.get(wait.transaction_id) != wait.sequence:
                    wait.woken.set()


watch = _Watch()

__all__ = ["SLOTS", "ChangeWait", "watch"]
