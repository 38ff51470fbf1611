"""A query that takes too long is stopped and said to be its caller's fault; nothing else is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from pytest_django import Settings

from domain.database import time_limit
from domain.query.run.execute import Statement
from domain.query.sql.dialects import current
from domain.query.sql.fragments import Run, Sql
from foundation import errors
from identity.context import CallContext
from tests.domain.conftest import api, fresh_process, world
from tests.support.api import Api

__all__ = ["api", "fresh_process", "world"]

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n"


def fetch(text: str) -> list[tuple[object, ...]]:
    return Statement.of(Sql(text), current()).fetch(Run((), CallContext(user=None)))


@pytest.fixture
def limit(db: None, settings: Settings) -> Iterator[float]:
    """A fifth of a second, on PostgreSQL as the web processes set it."""
    settings.QUERY_SECONDS = 0.2
    time_limit.limit_connection(connection)
    yield 0.2
    settings.QUERY_SECONDS = 0.0  # PostgreSQL's word for no limit
    time_limit.limit_connection(connection)


def test_a_query_without_end_ends(limit: float) -> None:
    begun = time.monotonic()
    with pytest.raises(errors.BadRequest, match=r"takes longer than 0\.2 seconds") as raised, transaction.atomic():
        fetch(ENDLESS)
    assert raised.value.code is errors.QUERY_TOO_LONG
    assert time.monotonic() - begun < 20  # of the hours that it would take
    # The connection is as good as before, and the time of the one is not counted for the other.
    assert fetch("SELECT 1") == [(1,)]


@pytest.fixture
def often_looked_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SQLite looks at the clock after a few steps. A statement makes the connection ready anew, here and after."""
    wrapper: Any = connections["default"]
    monkeypatch.setattr(time_limit, "_STEPS", 20)
    wrapper._query_functions_on = None
    yield
    wrapper._query_functions_on = None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="how often SQLite looks at the clock")
def test_it_is_the_callers_fault_over_http(api: Api, settings: Settings, often_looked_at: None) -> None:
    settings.QUERY_SECONDS = 0.0
    answer = api.get("General_Currencies_Currencies?$filter=contains(Name,'u')")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "QueryTooLong"
    settings.QUERY_SECONDS = 30.0
    assert api.get("General_Currencies_Currencies?$filter=contains(Name,'u')").status_code == 200


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a limit for what holds SQLite's write lock")
def test_queries_of_a_block_end_at_the_time_of_the_block(db: None, often_looked_at: None) -> None:
    with (
        pytest.raises(errors.BadRequest, match=r"takes longer than 0\.1 seconds"),
        time_limit.until(time.monotonic() + 0.1),
    ):
        fetch(ENDLESS)
    assert fetch("SELECT 1") == [(1,)]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL matches patterns itself")
def test_matching_patterns_takes_no_longer_either(api: Api, settings: Settings) -> None:
    settings.QUERY_SECONDS = 0.0
    answer = api.get("General_Currencies_Currencies?$filter=matchesPattern(Name,'u')")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "QueryTooLong"


def test_a_failure_of_the_database_that_is_nobodys_fault_is_not_its_own_cause(db: None) -> None:
    """Who follows the causes of an exception must come to an end."""

    def failing(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        raise OperationalError("the database is on fire")

    with connection.execute_wrapper(failing), pytest.raises(OperationalError, match="on fire") as raised:
        fetch("SELECT 1")
    assert raised.value.__cause__ is not raised.value
