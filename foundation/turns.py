"""The turn of a process: who works has it, who waits for something outside gives it back.

Web processes serve with several threads but work with one at a time; see platform_site.serving.turns. Everywhere else
(commands, workers, tests) nobody holds the turn, and `waiting` and `share` do nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Protocol

#: How long `share` stands aside: long enough for another thread to be woken.
SHARE_SECONDS: Final = 0.0005

#: Key of a request's environment: its body came in chunks, so nobody can tell that it is whole by its length.
CAME_IN_CHUNKS: Final = "platform.came_in_chunks"


class Reserve(Protocol):
    """Who takes the next request when this thread cannot (platform_site.serving.standby)."""

    def step_aside(self) -> None:
        """This thread waits for something outside, or lets others go first: its request may take long."""


class Turn:
    """A lock that knows whether this thread holds it. Not reentrant: a request takes it once, at its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = threading.local()
        self._wanted_by: set[int] = set()  # threads
        #: Of a web process.
        self.reserve: Reserve | None = None

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the turn."""
        return getattr(self._held, "value", False)

    @property
    def is_lent(self) -> bool:
        """Whether this thread had the turn, gave it back and could not wait until it came again."""
        return getattr(self._held, "lent", False)

    @property
    def is_wanted(self) -> bool:
        """Whether a thread waits for it."""
        return bool(self._wanted_by)

    def __enter__(self) -> None:
        self._take(None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.lent = False
        if self.is_mine:
            self._give_back()

    def lend(self) -> None:
        """Others may have it."""
        if self.reserve is not None:
            self.reserve.step_aside()
        if self.is_mine:
            self._give_back()
        self._held.lent = True

    def lock_again(self, patience_seconds: float | None) -> None:
        """After `lend`. With the patience over this thread works on beside whoever has the turn."""
        self._held.lent = not self._take(patience_seconds)

    def _take(self, patience_seconds: float | None) -> bool:
        taken = self._lock.acquire(blocking=False)
        if not taken:
            thread = threading.get_ident()
            self._wanted_by.add(thread)
            try:
                taken = self._lock.acquire(timeout=-1 if patience_seconds is None else patience_seconds)
            finally:
                self._wanted_by.discard(thread)
        self._held.value = taken
        return taken

    def _give_back(self) -> None:
        self._held.value = False
        self._lock.release()


#: The turn of this process.
turn = Turn()


@contextmanager
def waiting(patience_seconds: float | None = None) -> Iterator[None]:
    """Give the turn to others while this thread waits for something outside; it is taken again at the end.

    Hold nothing that others need meanwhile: no database transaction, no lock. Who does hold something says how long it
    may wait for the turn (`patience_seconds`), and works on without it after that: whoever has the turn may be waiting
    for just what this thread holds.
    """
    if not (turn.is_mine or turn.is_lent):
        yield
        return
    turn.lend()
    try:
        yield
    finally:
        turn.lock_again(patience_seconds)


def share(patience_seconds: float | None = None) -> None:
    """Let those who wait for the turn go first, for who works long and can stand aside for a moment."""
    if not turn.is_mine:
        return
    if turn.reserve is not None:
        turn.reserve.step_aside()
    if turn.is_wanted:
        with waiting(patience_seconds):
            time.sleep(SHARE_SECONDS)
