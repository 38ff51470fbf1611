"""Bodies of answers: short ones are made within the request, long ones while their client reads them (spec 11, 11.1).

A long body holds a snapshot of the database, a connection and a thread, so a process makes TABLE_STREAMS of them at
once. The next one waits for a moment; then, or if others wait, it is refused with 503.
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

#: A body up to this size is made within its request.
HELD_BYTES: Final = 1024 * 1024
#: Time for which a long body waits for its place, and when a refused one may come again.
WAIT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 10


class Places:
    """The long bodies of a process that are being made."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.taken = 0
        self._waiting = 0

    def take(self) -> Callable[[], None]:
        """Take a place; the function that is returned gives it back, once. Raises Unavailable."""
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
                # The wait has no thread of its own: other requests take the slot.
                release_slot()
                if self._changed.wait_for(lambda: self.taken < most, WAIT_SECONDS):
                    return
            finally:
                self._waiting -= 1
        raise errors.Unavailable(errors.TABLE_STREAMS_BUSY, most, _RETRY_SECONDS, retry_after_seconds=_RETRY_SECONDS)


places = Places()


class Body:
    """The body of an answer.

    form       makes the parts; errors of the database in the first HELD_BYTES are raised here
    coding     compresses the body, if it is long; "" for none
    on_close   called when the body is sent, or given up

    A body that ends too early is invalid in its format (OData Protocol 4.01, 9.5).
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
        """End the statement, and give the place back."""
        while self._on_close:
            self._on_close.pop()()
