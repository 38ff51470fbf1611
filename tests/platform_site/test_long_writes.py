"""A long transaction of SQLite, whose lock is on the whole database, delays no reads."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import connection

from tests.domain.odata.test_live_transactions import Caller
from tests.domain.odata.test_writing import CURRENCIES
from tests.support.platform import LivePlatform

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL locks rows, not the whole database"),
]


@contextmanager
def long_write(platform: LivePlatform) -> Iterator[None]:
    """A transaction that holds the lock, begun when every session was used half a minute ago."""
    with closing(sqlite3.connect(platform.data_dir / "platform.sqlite3", isolation_level=None)) as database:
        database.execute("UPDATE identity_session SET last_activity = datetime(last_activity, '-40 seconds')")
        database.execute("UPDATE foundation_cacheversion SET value = value + 1 WHERE name = 'sessions'")
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            database.execute("ROLLBACK")


def test_reads_are_answered_while_the_database_is_locked(live_platform: LivePlatform) -> None:
    """They note the use of their session, and write rows about those that failed."""
    caller = Caller(live_platform)
    euro = caller.send("GET", f"{CURRENCIES}?$filter=CurrencySign eq 'EUR'").json()["value"][0]["@odata.id"]
    addresses = (euro, f"{CURRENCIES}(11111111-1111-1111-1111-111111111111)", f"{CURRENCIES}?$top=0", "NoSuchSet")
    with long_write(live_platform):
        began = time.monotonic()
        # The processes look at the cache versions again within half a second.
        while time.monotonic() - began < 1.5:
            for address in addresses:
                started = time.monotonic()
                answer = caller.http.get(live_platform.odata_url + address, headers={"Connection": "close"}, timeout=60)
                assert answer.status_code in (200, 400, 404), answer.text
                assert time.monotonic() - started < 10  # a wait for the lock would be of twenty
