"""Bodies of responses: short ones are built within the request, long ones are streamed (spec 11, 11.1).

A long body holds a snapshot of the database, a connection and a thread, so a process streams at most TABLE_STREAMS at
once. A further one waits up to WAIT_SECONDS; then, or if too many wait already, it is refused with 503.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from django.conf import settings
from django.db import DatabaseError

from domain.query.run.execute import known_error
from domain.table_api.compression import compressed
from domain.table_api.formats import Format
from domain.table_api.rows import TableRows
from domain.table_api.table_query import TableQuery
from foundation import errors
from foundation.execution_slot import release_slot

#: Maximum size of a body that is built within its request.
HELD_BYTES: Final = 1024 * 1024
#: Maximum wait of a long body for its place; _RETRY_SECONDS is the Retry-After of a refused one.
WAIT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 10


class Places:
    """A semaphore that limits the concurrent long bodies of a process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.taken = 0
        self._waiting = 0

    def take(self) -> Callable[[], None]:
        """Take a place; returns the function that releases it, once. Raises Unavailable."""
        most: int = settings.TABLE_STREAMS
        with self._changed:
            if self.taken >= most:
                self._wait(most)
            self.taken += 1
        returned = threading.Lock()

        def give_back() -> None:
            if returned.acquire(blocking=False):
                with self._changed:
                    self.taken -= 1
                    self._changed.notify()

        return give_back

    def _wait(self, most: int) -> None:
        if self._waiting < most:
            self._waiting += 1
            try:
                # While it waits, another request may use the slot.
                release_slot()
                if self._changed.wait_for(lambda: self.taken < most, WAIT_SECONDS):
                    return
            finally:
                self._waiting -= 1
        raise errors.Unavailable(errors.TABLE_STREAMS_BUSY, most, _RETRY_SECONDS, retry_after_seconds=_RETRY_SECONDS)


places = Places()


class Body:
    """The body of a response.

    form       encodes the parts; database errors in the first HELD_BYTES are raised here
    coding     content coding of a long body; "" for none
    on_close   called when the body has been sent or is given up

    A body that breaks off is made invalid in its format (OData Protocol 4.01, 9.5).
    """

    def __init__(
        self, query: TableQuery, rows: TableRows, form: Format, *, coding: str, on_close: Callable[[], None]
    ) -> None:
        self._broken = form.broken
        self.coding = coding
        self._on_close = [rows.close, on_close]
        self._held: list[bytes] = []
        self.is_whole = False
        try:
            self._parts = form.encode(replace(query, count=rows.count()), rows)
            self._hold()
        except DatabaseError as exc:
            self.close()
            raise known_error(exc) from exc
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        size = 0
        while size <= HELD_BYTES:
            part = next(self._parts, None)
            if part is None:
                self.is_whole = True
                self.close()
                return
            self._held.append(part)
            size += len(part)
        self._on_close.append(places.take())

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._all()) if self.is_whole or not self.coding else compressed(self._all(), self.coding)

    def _all(self) -> Iterator[bytes]:
        while self._held:
            yield self._held.pop(0)
        try:
            yield from self._parts
        except GeneratorExit:
            raise
        except BaseException:
            yield self._broken
            raise

    def close(self) -> None:
        """End the statement, and release the place."""
        while self._on_close:
            self._on_close.pop()()
