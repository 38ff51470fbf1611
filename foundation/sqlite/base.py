"""Django's backend for SQLite, with another way to wait for the lock of the only writer.

SQLite waits 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then 100 ms between two looks. A transaction of the platform
takes a millisecond or a few, so under load the lock was free most of the time that somebody waited for it: eight
callers who wrote used half of two cores.
"""

from __future__ import annotations

import time
from typing import Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

#: Time between two looks, while the lock may soon be free; later, a share of the time that was waited.
_SHORT_SECONDS: Final = 0.00025
_SHARE: Final = 0.05
_LONGEST_SECONDS: Final = 0.02


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite."""

    def _start_transaction_under_autocommit(self) -> None:
        """BEGIN, as soon as no other connection writes. Raises OperationalError after SQLite's busy_timeout."""
        raw = self.connection
        (most,) = raw.execute("PRAGMA busy_timeout").fetchone()
        began = time.monotonic()
        raw.execute("PRAGMA busy_timeout = 0")
        try:
            while not self._begin(last=time.monotonic() - began >= most / 1000):
                waited = time.monotonic() - began
                time.sleep(min(max(_SHORT_SECONDS, waited * _SHARE), _LONGEST_SECONDS))
        finally:
            raw.execute(f"PRAGMA busy_timeout = {most}")

    def _begin(self, *, last: bool) -> bool:
        """Whether the transaction has begun. last: raise where the lock is not free."""
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # unknown to Django's type stubs
        except OperationalError as error:
            if last or "locked" not in str(error):
                raise
            return False
        return True
