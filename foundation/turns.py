"""The turn of a process: a web process works on one request at a time, and callers take turns.

Work that needs the processor collapses under threads that share an interpreter lock (docs/decisions.md), so one request
of a process has the turn. The others wait for it, are away (they wait for something outside and have given it back), or
work beside it: who has had the turn for SLICE_SECONDS while others wait loses it (`Turn.look`), since nothing can
interrupt a thread, and waits for it again where that is possible (`Turn.checkpoint`). Of a caller, MAX_BEGUN requests
may be between their beginning and their end and the next ones wait: one caller neither takes all threads nor fills the
memory.

Everywhere else (commands, workers, tests) nobody has a turn, and `waiting`, `share` and checkpoints do nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from types import TracebackType
from typing import Final

#: Who has had the turn for so long gives it to those who wait.
SLICE_SECONDS: Final = 0.03
#: Who can stand aside does so after a shorter time.
SHARE_SECONDS: Final = 0.005
#: Requests of one caller that have begun and not ended, without those that wait for something outside.
MAX_BEGUN: Final = 3
#: Requests of a process that have begun and not ended; each holds a thread.
MAX_THREADS: Final = 128

#: Key of a request's environment: its body came in chunks, so nobody can tell that it is whole by its length.
CAME_IN_CHUNKS: Final = "platform.came_in_chunks"


class _State(Enum):
    WAITS = auto()
    WORKS = auto()  # has the turn
    BESIDE = auto()  # works without the turn
    AWAY = auto()  # waits for something outside
    ENDED = auto()


class Ticket:
    """A request, or something else that needs the turn. Callers take turns."""

    __slots__ = ("_given", "_since", "_state", "caller")

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self._state = _State.WAITS
        #: When it began to wait, or was given the turn.
        self._since = 0.0
        #: A thread of its own waits for it, or has.
        self._given: threading.Lock | None = None

    def begin(self) -> None:
        """The turn is the ticket's, which has no thread yet: let one adopt it. Called once, by any thread."""
        raise NotImplementedError


class _Line:
    """What waits of one caller: requests that have not begun, and work that goes on."""

    __slots__ = ("_fresh_next", "fresh", "going_on")

    def __init__(self) -> None:
        self.fresh: deque[Ticket] = deque()
        self.going_on: deque[Ticket] = deque()
        self._fresh_next = False

    def __bool__(self) -> bool:
        return bool(self.fresh or self.going_on)

    def take(self, *, may_begin: bool) -> Ticket | None:
        """Remove and return the next one. Requests that begin and work that goes on alternate."""
        if self.fresh and may_begin and (self._fresh_next or not self.going_on):
            self._fresh_next = False
            return self.fresh.popleft()
        if self.going_on:
            self._fresh_next = True
            return self.going_on.popleft()
        return None


class Turn:
    """The turn of one process. Not reentrant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Ticket | None = None
        self._lines: dict[str, _Line] = {}  # caller → what waits; the first caller is next
        self._begun: dict[str, int] = {}  # caller → requests that have begun and are not away
        self._threads = 0
        self._beside = 0
        self._mine = threading.local()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the turn."""
        ticket = self._ticket
        return ticket is not None and ticket._state is _State.WORKS

    @property
    def is_lent(self) -> bool:
        """Whether this thread has had the turn and will want it again: it works without it, or is away."""
        ticket = self._ticket
        return ticket is not None and ticket._state is not _State.WORKS

    @property
    def is_known_here(self) -> bool:
        """Whether this thread works for somebody, with the turn or without."""
        return self._ticket is not None

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        return bool(self._lines)

    @property
    def caller(self) -> str:
        """Whom this thread works for; "" for nobody."""
        ticket = self._ticket
        return "" if ticket is None else ticket.caller

    @property
    def _ticket(self) -> Ticket | None:
        return getattr(self._mine, "ticket", None)

    # --- requests -------------------------------------------------------------------------------------------------

    def offer(self, ticket: Ticket) -> bool:
        """Whether this thread shall work for the request now; if not, `ticket.begin` is called when its turn comes."""
        with self._lock:
            if self._holder is not None or not self._may_begin(ticket.caller):
                self._put(ticket)
                return False
            self._begin(ticket)
        self._mine.ticket = ticket
        return True

    def queue(self, ticket: Ticket) -> None:
        """As `offer`, from a thread that shall not work: `ticket.begin` is called in any case, perhaps at once."""
        with self._lock:
            self._put(ticket)
            following = self._next() if self._holder is None else None
        _call(following)

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a request that has not begun."""
        with self._lock:
            line = self._lines.get(ticket.caller)
            if line is not None and ticket in line.fresh:
                line.fresh.remove(ticket)
                if not line:
                    del self._lines[ticket.caller]
                ticket._state = _State.ENDED

    def waiting_since(self, moment: float) -> list[Ticket]:
        """Requests that have waited, and have not begun, since this moment of the monotonic clock or longer."""
        with self._lock:
            return [ticket for line in self._lines.values() for ticket in line.fresh if ticket._since <= moment]

    def adopt(self, ticket: Ticket) -> None:
        """This thread works for a ticket that has been given the turn: what `begin` arranges for."""
        self._mine.ticket = ticket

    def end(self) -> Ticket | None:
        """This thread's request has ended; the request that it shall work for now, if there is one."""
        following = self._ended()
        if following is not None and following._given is None:
            self._mine.ticket = following
            return following
        _call(following)
        return None

    # --- threads --------------------------------------------------------------------------------------------------

    def __enter__(self) -> None:
        self.enter("")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()

    def enter(self, caller: str) -> None:
        """Wait for the turn."""
        ticket = self._mine.ticket = Ticket(caller)
        with self._lock:
            self._threads += 1
        self._take(ticket, None)

    def leave(self) -> None:
        """Give it to the next one."""
        _call(self._ended())

    def lend(self) -> None:
        """Others may have it while this thread is away."""
        ticket = self._ticket
        assert ticket is not None
        with self._lock:
            following = self._put_down(ticket, _State.AWAY)
        _call(following)

    def take_again(self, patience_seconds: float | None = None) -> None:
        """Wait for the turn after `lend`. With the patience over this thread works on without it."""
        ticket = self._ticket
        assert ticket is not None
        self._take(ticket, patience_seconds)

    def pass_on(self, patience_seconds: float | None = None) -> None:
        """Let those who wait go first, where this thread has had the turn for a moment or has lost it."""
        ticket = self._ticket
        if ticket is None or ticket._state is _State.AWAY:
            return
        if ticket._state is _State.BESIDE or (
            self._lines and time.monotonic() - ticket._since >= SHARE_SECONDS  # a change of threads costs some time
        ):
            self._take(ticket, patience_seconds)

    def checkpoint(self, *, holds_locks: bool) -> None:
        """Called often while a request works: it waits for the turn if it has lost it.

        holds_locks: who has the turn may wait for them, so this thread works on beside.
        """
        if not self._beside or holds_locks:
            return
        ticket = self._ticket
        if ticket is not None and ticket._state is _State.BESIDE:
            self._take(ticket, None)

    def look(self) -> None:
        """Take the turn from who has had it for too long while others wait. To be called every now and then."""
        holder = self._holder
        if holder is None or not self._lines or time.monotonic() - holder._since < SLICE_SECONDS:
            return
        with self._lock:
            if self._holder is not holder:
                return
            self._holder = None
            following = self._next()
            if following is None:
                self._holder = holder
                return
            holder._state = _State.BESIDE
            self._beside += 1
        _call(following)

    def _take(self, ticket: Ticket, patience_seconds: float | None) -> None:
        following = None
        with self._lock:
            before, ticket._state = ticket._state, _State.WAITS
            if before in (_State.WAITS, _State.AWAY):
                self._begun[ticket.caller] = self._begun.get(ticket.caller, 0) + 1
            elif before is _State.BESIDE:
                self._beside -= 1
            else:
                self._holder = None
            if self._holder is None and before is not _State.WORKS:
                self._give(ticket)
                return
            if ticket._given is None:
                ticket._given = threading.Lock()
                ticket._given.acquire()
            self._line(ticket.caller).going_on.append(ticket)
            if before is _State.WORKS:
                following = self._next()
        if following is ticket:
            return
        _call(following)
        if ticket._given.acquire(timeout=-1 if patience_seconds is None else patience_seconds):
            return
        with self._lock:
            if ticket._state is _State.WAITS:
                line = self._lines[ticket.caller]
                line.going_on.remove(ticket)
                if not line:
                    del self._lines[ticket.caller]
                ticket._state = _State.BESIDE
                self._beside += 1
                return
        ticket._given.acquire()  # it is being given at this moment

    # --- under the lock -------------------------------------------------------------------------------------------

    def _line(self, caller: str) -> _Line:
        line = self._lines.get(caller)
        if line is None:
            line = self._lines[caller] = _Line()
        return line

    def _put(self, ticket: Ticket) -> None:
        ticket._since = time.monotonic()
        self._line(ticket.caller).fresh.append(ticket)

    def _may_begin(self, caller: str) -> bool:
        return self._threads < MAX_THREADS and self._begun.get(caller, 0) < MAX_BEGUN

    def _begin(self, ticket: Ticket) -> None:
        self._threads += 1
        self._begun[ticket.caller] = self._begun.get(ticket.caller, 0) + 1
        self._give(ticket)

    def _give(self, ticket: Ticket) -> None:
        ticket._state = _State.WORKS
        ticket._since = time.monotonic()
        self._holder = ticket

    def _next(self) -> Ticket | None:
        """Give the turn, which nobody has, to the next ticket that may have it."""
        for caller, line in self._lines.items():
            ticket = line.take(may_begin=self._may_begin(caller))
            if ticket is not None:
                del self._lines[caller]
                if line:
                    self._lines[caller] = line
                if ticket._given is None:
                    self._begin(ticket)
                else:
                    self._give(ticket)
                return ticket
        return None

    def _put_down(self, ticket: Ticket, state: _State) -> Ticket | None:
        """The ticket is away or has ended; the ticket that has the turn instead."""
        before, ticket._state = ticket._state, state
        if before is not _State.AWAY:
            self._uncount(ticket.caller)
        if before is _State.BESIDE:
            self._beside -= 1
        elif before is _State.WORKS:
            self._holder = None
        return self._next() if self._holder is None else None

    def _uncount(self, caller: str) -> None:
        left = self._begun[caller] - 1
        if left:
            self._begun[caller] = left
        else:
            del self._begun[caller]

    def _ended(self) -> Ticket | None:
        ticket = self._ticket
        assert ticket is not None
        self._mine.ticket = None
        with self._lock:
            self._threads -= 1
            return self._put_down(ticket, _State.ENDED)


def _call(ticket: Ticket | None) -> None:
    """Tell who has been given the turn."""
    if ticket is None:
        return
    if ticket._given is not None:
        ticket._given.release()
    else:
        ticket.begin()


#: The turn of this process.
turn = Turn()


@contextmanager
def waiting(patience_seconds: float | None = None) -> Iterator[None]:
    """Give the turn to others while this thread waits for something outside; it is taken again at the end.

    Hold nothing that others need meanwhile: no database transaction, no lock. Who does hold something says how long it
    may wait for the turn (`patience_seconds`), and works on without it after that: whoever has the turn may be waiting
    for just what this thread holds.
    """
    if not turn.is_known_here:
        yield
        return
    turn.lend()
    try:
        yield
    finally:
        turn.take_again(patience_seconds)


def share(patience_seconds: float | None = None) -> None:
    """Let those who wait for the turn go first, for who works long and can stand aside for a moment."""
    turn.pass_on(patience_seconds)
