"""Which entries of the change feed are settled while transactions are open, on PostgreSQL (spec 13, 13.5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from domain.dataset.tables.models import ChangeFeedEntry
from domain.event_stream import feed
from tests.support.api import Api
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time"),
]


@contextmanager
def open_transaction(database: str) -> Iterator[None]:
    """A transaction with a number, in a database of the server."""
    parameters = connection.get_connection_params()
    known = {name: parameters[name] for name in ("host", "port", "user", "password") if parameters.get(name)}
    with psycopg.connect(dbname=database, **known) as server:
        server.execute("SELECT pg_current_xact_id()")
        yield
        server.rollback()


def burn_an_id() -> None:
    """As a commit that was rolled back."""
    table = ChangeFeedEntry._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [table])


def entries_after(last: int) -> int:
    """How many entries a subscriber at this position gets now."""
    feed.poll()
    return len(feed.read(last, 100).entries)


def test_a_transaction_of_another_database_holds_up_no_event(api: Api) -> None:
    last, _ = feed.position_now()
    with open_transaction("postgres"):
        burn_an_id()
        api.create("General_Currencies_Currencies", {"CurrencySign": "AAA", "Name": "x"})
        assert eventually(lambda: entries_after(last) == 1, 10)


def test_events_wait_for_an_open_transaction_of_their_database(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_STALL_SECONDS", -1)
    last, _ = feed.position_now()
    with open_transaction(str(connection.settings_dict["NAME"])):
        burn_an_id()
        api.create("General_Currencies_Currencies", {"CurrencySign": "AAA", "Name": "x"})
        assert entries_after(last) == 0
    assert entries_after(last) == 1
