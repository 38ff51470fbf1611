"""What reading from PostgreSQL past Django's cursor keeps of it."""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction
from django.db.utils import NotSupportedError

from domain.entities.general_currencies import Currency
from domain.query.run.execute import Statement
from domain.query.sql.dialects import current
from domain.query.sql.fragments import Run, Sql, run_key, run_limit, run_skip
from domain.query.sql.postgresql import COLLATION, orders_by_code_point
from identity.context import CallContext
from tests.domain.query.conftest import english

pytestmark = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no statements of a connection")
KEY = "00000000-0000-7000-8000-000000000077"


def fetch(text: str, *, by_key: bool = False) -> list[tuple[object, ...]]:
    params = (run_key,) if by_key else ()
    return Statement.of(Sql(text, params), current()).fetch(Run((), CallContext(user=None), key=KEY))


def sign() -> str:
    ((found,),) = fetch('SELECT "currency_sign" FROM "domain_currency" WHERE "id" = %s::uuid', by_key=True)
    return str(found)


def widen(characters: int) -> None:
    """As another node's migration does: on a connection of its own."""
    parameters = connection.get_connection_params()
    names = {name: parameters[name] for name in ("host", "port", "user", "password", "dbname") if name in parameters}
    with psycopg.connect(**names) as other:
        other.execute(f"ALTER TABLE domain_currency ALTER COLUMN currency_sign TYPE varchar({characters})")


@pytest.fixture
def currency(transactional_db: None) -> Iterator[None]:
    Currency.objects.create(id=KEY, currency_sign="EUR", name=english("Euro"))
    width = Currency._meta.get_field("currency_sign").max_length
    assert isinstance(width, int)
    yield
    widen(width)


def prepared() -> list[str]:
    return [str(row[0]) for row in fetch("SELECT statement FROM pg_prepared_statements")]


def test_what_is_asked_by_key_is_prepared_and_nothing_else(currency: None) -> None:
    assert sign() == sign() == "EUR"
    assert fetch("SELECT 1") == [(1,)]
    assert "SELECT 1" not in prepared()
    assert ['WHERE "id" = $1::uuid' in text for text in prepared() if '"domain_currency"' in text] == [True]


def test_a_page_has_its_size_in_the_text_and_is_prepared_when_it_comes_again(transactional_db: None) -> None:
    text = "SELECT n, '%%s' FROM (SELECT n FROM generate_series(1, 9) n LIMIT %s OFFSET %s) rows WHERE '%%' <> 's'"
    page = Statement.of(Sql(text, (run_limit, run_skip)), current())
    for _ in range(4):
        assert page.fetch(Run((), CallContext(user=None), limit=2, skip=1)) == [(2, "%s"), (3, "%s")]
    assert page.fetch(Run((), CallContext(user=None), limit=1, skip=0)) == [(1, "%s")]
    assert [each for each in prepared() if "generate_series" in each] == [
        "SELECT n, '%s' FROM (SELECT n FROM generate_series(1, 9) n LIMIT 2 OFFSET 1) rows WHERE '%' <> 's'"
    ]


def test_a_migration_under_a_prepared_statement_is_not_noticed(currency: None) -> None:
    assert sign() == "EUR"
    widen(99)
    assert sign() == "EUR"
    assert sign() == "EUR"


def test_within_a_transaction_it_is_forgotten_with_the_rollback(currency: None) -> None:
    assert sign() == "EUR"
    widen(99)
    with pytest.raises(NotSupportedError), transaction.atomic():
        sign()
    with transaction.atomic():
        assert sign() == "EUR"


def test_errors_are_djangos_and_a_broken_transaction_is_told(currency: None) -> None:
    with pytest.raises(ProgrammingError):
        fetch("SELECT nothing")
    with transaction.atomic():
        with pytest.raises(ProgrammingError), transaction.atomic():
            fetch("SELECT nothing")
        assert sign() == "EUR"
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            sign()


@pytest.mark.parametrize(
    "locale, expected",
    [
        ("LOCALE 'C.UTF-8'", True),
        ("LOCALE 'C'", True),
        # PostgreSQL 15 and later; the name for libc is that of the line above.
        ("LOCALE 'C.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", False),
    ],
)
def test_an_order_other_than_by_code_point_is_known(locale: str, expected: bool) -> None:
    name = f"order_{secrets.token_hex(4)}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        if "icu" in locale and server.info.server_version < 150000:
            pytest.skip("ICU orders no database before PostgreSQL 15")
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0 {locale}")
        try:
            url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
            with psycopg.connect(url) as database:
                found = database.execute(COLLATION).fetchone()
                assert found is not None
                assert orders_by_code_point(*found) is expected
                assert database.execute("SELECT 'B' < 'a'").fetchone() == (expected,)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "provider, collate, expected",
    [("c", "en_US.UTF-8", False), ("c", "POSIX", True), ("b", "en_US.UTF-8", True), (None, "C.utf8", True)],
)
def test_other_providers(provider: str | None, collate: str, expected: bool) -> None:
    assert orders_by_code_point(provider, collate) is expected


def test_moments_are_in_utc(currency: None) -> None:
    ((moment,),) = fetch("SELECT '2024-02-29 12:00:00.5+02'::timestamptz")
    assert moment == datetime.datetime(2024, 2, 29, 10, 0, 0, 500_000, tzinfo=datetime.UTC)
    assert isinstance(moment, datetime.datetime)
    assert moment.utcoffset() == datetime.timedelta()


@pytest.mark.django_db
def test_every_table_with_custom_properties_has_their_index() -> None:
    tables = {
        model._meta.db_table
        for model in apps.get_app_config("domain").get_models()
        if model._meta.managed and any(field.name == "custom_property_values" for field in model._meta.local_fields)
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_indexes WHERE indexdef LIKE '%USING gin%custom_property_values%'")
        assert {table for (table,) in cursor.fetchall()} == tables
