"""The runs that wait for a worker: callers take turns, and one caller's runs keep their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from scripts.sandbox.process import WorkerProcess


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue. `given` is set when it gets a worker, or loses its place to a run of another caller."""

    caller: str
    given: threading.Event = field(default_factory=threading.Event)
    worker: WorkerProcess | None = None


class FairQueue:
    """Tickets of runs. Not thread-safe: its owner holds a lock.

    Callers take turns: before a caller's first ticket comes at most one ticket of each other caller.
    """

    def __init__(self) -> None:
        self._first: deque[Ticket] = deque()
        self._tickets: dict[str, deque[Ticket]] = {}  # caller → tickets; the first caller has the next turn

    def __len__(self) -> int:
        return len(self._first) + sum(map(len, self._tickets.values()))

    def count_of(self, caller: str) -> int:
        """How many of the caller's tickets wait, those that were put first included."""
        return len(self._tickets.get(caller, ())) + sum(ticket.caller == caller for ticket in self._first)

    def put(self, ticket: Ticket) -> None:
        """Add a ticket behind the caller's other tickets."""
        self._tickets.setdefault(ticket.caller, deque()).append(ticket)

    def put_first(self, ticket: Ticket) -> None:
        """Add a ticket before all that were put; tickets that are put first keep their order among themselves."""
        self._first.append(ticket)

    def remove(self, ticket: Ticket) -> None:
        """Remove a ticket, if it is still in the queue."""
        if ticket in self._first:
            self._first.remove(ticket)
            return
        own = self._tickets.get(ticket.caller)
        if own is not None and ticket in own:
            own.remove(ticket)
            self._forget_if_empty(ticket.caller)

    def take(self, may_run: Callable[[str], bool]) -> Ticket | None:
        """Remove and return the next ticket whose caller may run now. The caller's next turn is after the others'."""
        if self._first:
            return self._first.popleft()
        caller = next(filter(may_run, self._tickets), None)
        if caller is None:
            return None
        tickets = self._tickets.pop(caller)
        ticket = tickets.popleft()
        if tickets:
            self._tickets[caller] = tickets
        return ticket

    def make_room(self, caller: str) -> Ticket | None:
        """Remove and return the last ticket of the caller with the most; it must have two more than `caller`."""
        most = max(self._tickets, key=self.count_of, default=caller)
        if self.count_of(most) < self.count_of(caller) + 2:
            return None
        ticket = self._tickets[most].pop()
        self._forget_if_empty(most)
        return ticket

    def _forget_if_empty(self, caller: str) -> None:
        if not self._tickets[caller]:
            del self._tickets[caller]
