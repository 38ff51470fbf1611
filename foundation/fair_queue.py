"""Fair sharing between callers: a round-robin queue, and a limit of which a part is reserved for callers with few.

The tickets of one caller keep their order. The queue is used for script runs that wait for a worker, requests that wait
for the execution slot, and passwords that wait to be hashed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, KeysView
from typing import Generic, Protocol, TypeVar


class Ticket(Protocol):
    """A waiting item of a caller. Tickets are compared by identity."""

    @property
    def caller(self) -> str:
        """The caller; it does not change while the ticket waits."""


T = TypeVar("T", bound=Ticket)


def has_capacity(holders: Iterable[str], caller: str, *, limit: int, reserved: int) -> bool:
    """Whether the caller may take one more of `limit`. The last `reserved` ones are for callers with fewer than that.

    holders   the caller of each one in use
    """
    taken = list(holders)
    return len(taken) < (limit if taken.count(caller) < reserved else limit - reserved)


def _any_caller(caller: str) -> bool:
    return True


class FairQueue(Generic[T]):
    """Not thread-safe: the owner holds a lock.

    Callers take turns: before a caller's first ticket there is at most one ticket of each other caller.
    """

    def __init__(self) -> None:
        self._first: deque[T] = deque()
        self._tickets: dict[str, deque[T]] = {}  # caller → tickets; the first caller has the next turn

    def __len__(self) -> int:
        return len(self._first) + sum(map(len, self._tickets.values()))

    def __bool__(self) -> bool:
        return bool(self._tickets or self._first)

    @property
    def callers(self) -> KeysView[str]:
        """The callers with tickets other than those of `put_first`. The first caller has the next turn."""
        return self._tickets.keys()

    def tickets(self) -> list[T]:
        """All tickets."""
        return [*self._first, *(ticket for own in self._tickets.values() for ticket in own)]

    def count_of(self, caller: str) -> int:
        """Number of the caller's tickets, including those of `put_first`."""
        count = len(self._tickets.get(caller, ()))
        return count + sum(ticket.caller == caller for ticket in self._first) if self._first else count

    def put(self, ticket: T) -> None:
        """Add a ticket behind the caller's other tickets."""
        self._tickets.setdefault(ticket.caller, deque()).append(ticket)

    def put_first(self, ticket: T) -> None:
        """Add a ticket before all others, but behind earlier tickets of `put_first`."""
        self._first.append(ticket)

    def remove(self, ticket: T) -> None:
        """Remove a ticket, if it is still in the queue."""
        if ticket in self._first:
            self._first.remove(ticket)
            return
        own = self._tickets.get(ticket.caller)
        if own is not None and ticket in own:
            own.remove(ticket)
            self._forget_if_empty(ticket.caller)

    def take(self, may_run: Callable[[str], bool] = _any_caller) -> T | None:
        """Remove and return the next ticket whose caller may run now. The caller's next turn is after the others'."""
        if self._first:
            return self._first.popleft()
        for caller in self._tickets:
            if may_run(caller):
                break
        else:
            return None
        tickets = self._tickets.pop(caller)
        ticket = tickets.popleft()
        if tickets:
            self._tickets[caller] = tickets
        return ticket

    def evict_for(self, caller: str) -> T | None:
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
