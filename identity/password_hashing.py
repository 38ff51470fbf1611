"""Computes password hashes, one at a time in each process (spec 01, 1.9).

A hash costs processor time and memory by design, and anonymous clients cause it. So requests wait in a round-robin
queue by address: many attempts from one address do not delay a login from another.
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
#: Retry-After of a refused attempt.
RETRY_SECONDS: Final = 1
# Maximum waiting attempts of a process: in total, and of one address or known browser. Each blocks a thread, of which
# the scheduler has 128; waiting scripts block at most 64.
_MAX_WAITING: Final = 48
_MAX_WAITING_PER_CALLER: Final = 12


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with the parameters of the OWASP Password Storage Cheat Sheet: 46 MiB, one pass, one lane.

    Django's own (100 MiB, eight lanes) let a few dozen logins at once occupy all processors: docs/decisions.md. The
    process serves other requests while the hash is computed.
    """

    time_cost = 1
    # The cheat sheet's option above 32 MB: malloc returns such blocks to the system instead of caching them per thread.
    # With 19 MiB a process grew by 300 MB.
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
class _QueuedAttempt:
    caller: str
    is_over: threading.Event = field(default_factory=threading.Event)  # set by the turn or a refusal
    has_turn: bool = False


class HashQueue:
    """A fair lock: callers take turns."""

    def __init__(
        self,
        max_waiting: int = _MAX_WAITING,
        max_waiting_per_caller: int = _MAX_WAITING_PER_CALLER,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._limit, self._limit_per_caller, self._wait_seconds = max_waiting, max_waiting_per_caller, wait_seconds
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: FairQueue[_QueuedAttempt] = FairQueue()

    @contextmanager
    def turn(self, caller: str, *, is_known: bool = False) -> Iterator[None]:
        """Wait for the lock and hold it. Raises TooManyRequests after wait_seconds, or if too many attempts wait.

        In a full queue an attempt of a caller with few replaces the last attempt of the caller with the most. The total
        limit does not apply to known browsers (`is_known`).
        """
        release_slot()
        self._take(caller, is_known)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, caller: str, is_known: bool) -> None:
        attempt = _QueuedAttempt(caller)
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            if self._waiting.count_of(caller) >= self._limit_per_caller:
                raise _busy()
            if len(self._waiting) >= self._limit and not is_known:
                other = self._waiting.evict_for(caller)
                if other is None:
                    raise _busy()
                other.is_over.set()
            self._waiting.put(attempt)
        attempt.is_over.wait(self._wait_seconds)
        with self._lock:
            # The turn may have begun after the timeout.
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
