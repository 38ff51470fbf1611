"""Computes password hashes, one at a time in each process (spec 01, 1.9).

A hash costs processor time and memory by design, and anybody may send passwords. So requests queue for it: addresses
take turns, so that many attempts from one address do not delay a login from another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

from foundation import errors
from foundation.execution_slot import release_slot
from foundation.fair_queue import FairQueue

#: Longest wait of an attempt. A full queue takes 3 s at 60 ms a hash, and more on a busy machine.
WAIT_SECONDS: Final = 10
#: The Retry-After of a refused attempt.
RETRY_SECONDS: Final = 1
# Waiting attempts in a process: in total, and of one address or known browser. Each holds a thread, of which the
# scheduler has 128; waiting scripts hold at most 64.
_WAITING: Final = 48
_WAITING_OF_ONE: Final = 12


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with the parameters of the OWASP Password Storage Cheat Sheet: 46 MiB, one pass, one lane.

    Django's own (100 MiB, eight lanes) let a few dozen logins at once occupy all processors: docs/decisions.md. The
    process serves other requests while the hash is computed.
    """

    time_cost = 1
    # Of the cheat sheet's choices the one above 32 MB, which malloc returns to the system instead of caching it for
    # each thread: with 19 MiB a process grew by 300 MB.
    memory_cost = 46 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """The hash of the password."""
        release_slot()
        return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Whether the hash is that of the password."""
        release_slot()
        return super().verify(password, encoded)


@dataclass(eq=False, slots=True)
class _Attempt:
    caller: str
    is_over: threading.Event = field(default_factory=threading.Event)  # the wait, by a turn or a refusal
    has_turn: bool = False


class HashQueue:
    """A fair lock: callers take turns."""

    def __init__(
        self, waiting: int = _WAITING, waiting_of_one: int = _WAITING_OF_ONE, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._limit, self._limit_of_one, self._wait_seconds = waiting, waiting_of_one, wait_seconds
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: FairQueue[_Attempt] = FairQueue()

    @contextmanager
    def turn(self, caller: str, *, is_known: bool = False) -> Iterator[None]:
        """Wait for the turn and hold it. Raises TooManyRequests if it takes too long, or if too many wait.

        In a full queue the last attempt of the caller with the most gives way to one of a caller with fewer. The limit
        for all callers together does not apply to a known one.
        """
        release_slot()
        self._take(caller, is_known)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, caller: str, is_known: bool) -> None:
        attempt = _Attempt(caller)
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            if self._waiting.count_of(caller) >= self._limit_of_one:
                raise _busy()
            if len(self._waiting) >= self._limit and not is_known:
                other = self._waiting.make_room(caller)
                if other is None:
                    raise _busy()
                other.is_over.set()
            self._waiting.put(attempt)
        attempt.is_over.wait(self._wait_seconds)
        with self._lock:
            # The turn may have begun since the timeout.
            if not attempt.has_turn:
                self._waiting.remove(attempt)
                raise _busy()

    def _pass_on(self) -> None:
        with self._lock:
            attempt = self._waiting.take()
            self._is_taken = attempt is not None
            if attempt is not None:
                attempt.has_turn = True
                attempt.is_over.set()


#: The queue of this process.
hash_queue = HashQueue()


def _busy() -> errors.TooManyRequests:
    return errors.TooManyRequests(RETRY_SECONDS, retry_after_seconds=RETRY_SECONDS, code=errors.TOO_MANY_LOGINS)
