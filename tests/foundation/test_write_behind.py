"""Rows that are written after the request: which stay when the database refuses them (foundation.write_behind)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db import DataError, InterfaceError, OperationalError

from foundation.write_behind import WriteBehind

pytestmark = pytest.mark.django_db


class Store:
    """Keeps what is written; `failures` are raised first, one for each call."""

    def __init__(self, *failures: Exception) -> None:
        self.written: list[int] = []
        self._failures = list(failures)
        self.meanwhile: Sequence[int] = ()
        self.buffer: WriteBehind[int] = WriteBehind("numbers", self.write, limit=3)

    def write(self, rows: Sequence[int]) -> None:
        if self._failures:
            self.buffer.add(self.meanwhile)
            raise self._failures.pop(0)
        self.written += rows


@pytest.mark.parametrize("failure", [OperationalError("gone"), InterfaceError("the connection is closed")])
def test_rows_wait_for_a_database_that_is_away_and_the_newest_stay(failure: Exception) -> None:
    store = Store(failure)
    store.buffer.add([1, 2, 3])
    store.meanwhile = [4, 5]
    store.buffer.flush()
    store.buffer.flush()
    assert store.written == [3, 4, 5]


def test_a_row_that_no_database_takes_keeps_later_rows_from_nothing() -> None:
    store = Store(DataError("cannot contain NUL"))
    store.buffer.add([1])
    store.buffer.flush()
    store.buffer.add([2])
    store.buffer.flush()
    assert store.written == [2]
