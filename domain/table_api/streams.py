"""Bodies of responses: short ones are built within the request, long ones are streamed (spec 11, 11.1).

A long body holds a snapshot of the database, a connection and a thread, so a process streams at most TABLE_STREAMS at
once, of which no caller takes all if there are several. A further one waits up to WAIT_SECONDS; then, or if too many
wait already, it is refused with 503. platform_site.serving.pipes bounds the time of a client that reads slowly.
"""

from __future__ import annotations

import threading
import time
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
from foundation.fair_queue import has_capacity

#: Maximum size of a body that is built within its request.
HELD_BYTES: Final = 1024 * 1024
#: Maximum wait of a long body for its place; _RETRY_SECONDS is the Retry-After of a refused one.
WAIT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 10
#: Time between two looks at the rights of a long body's caller.
RENEW_SECONDS: Final = 4.0


class RightsEnded(DatabaseError):
    """The caller of a long body may not read the rest; it breaks off as after a failure of the database."""


class Places:
    """A semaphore that limits the concurrent long bodies of a process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken_by: list[str] = []
        self._waiting: list[str] = []

    def take(self, caller: str) -> Callable[[], None]:
        """Take a place for the caller (guid of a user, "" for none); returns the function that releases it, once.

        Raises Unavailable.
        """
        most: int = settings.TABLE_STREAMS
        with self._changed:
            if not self._is_free(caller, most):
                self._wait(caller, most)
            self._taken_by.append(caller)
        returned = threading.Lock()

        def give_back() -> None:
            if returned.acquire(blocking=False):
                with self._changed:
                    self._taken_by.remove(caller)
                    self._changed.notify_all()

        return give_back

    def _is_free(self, caller: str, most: int) -> bool:
        return has_capacity(self._taken_by, caller, limit=most, reserved=1)

    def _wait(self, caller: str, most: int) -> None:
        if has_capacity(self._waiting, caller, limit=most, reserved=1):
            self._waiting.append(caller)
            try:
                # While it waits, another request may use the slot.
                release_slot()
                if self._changed.wait_for(lambda: self._is_free(caller, most), WAIT_SECONDS):
                    return
            finally:
                self._waiting.remove(caller)
        raise errors.Unavailable(errors.TABLE_STREAMS_BUSY, most, _RETRY_SECONDS, retry_after_seconds=_RETRY_SECONDS)


places = Places()


class Body:
    """The body of a response.

    form       encodes the parts; database errors in the first HELD_BYTES are raised here
    coding     content coding of a long body; "" for none
    caller     guid of the user, "" for none
    may_go_on  asked every RENEW_SECONDS whether the caller still has the rights with which the query was planned
    on_close   called when the body has been sent or is given up

    A body that breaks off is made invalid in its format (OData Protocol 4.01, 9.5).
    """

    def __init__(
        self,
        query: TableQuery,
        rows: TableRows,
        form: Format,
        *,
        coding: str,
        caller: str,
        may_go_on: Callable[[], bool],
        on_close: Callable[[], None],
    ) -> None:
        self._broken = form.broken
        self._caller, self._may_go_on = caller, may_go_on
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
        self._on_close.append(places.take(self._caller))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._all()) if self.is_whole or not self.coding else compressed(self._all(), self.coding)

    def _all(self) -> Iterator[bytes]:
        while self._held:
            yield self._held.pop(0)
        try:
            renewed_at = time.monotonic()
            for part in self._parts:
                yield part
                if time.monotonic() - renewed_at >= RENEW_SECONDS:
                    if not self._may_go_on():
                        raise RightsEnded("the rights of the caller have ended or changed")
                    renewed_at = time.monotonic()
        except GeneratorExit:
            raise
        except BaseException:
            yield self._broken
            raise

    def close(self) -> None:
        """End the statement, and release the place."""
        while self._on_close:
            self._on_close.pop()()
