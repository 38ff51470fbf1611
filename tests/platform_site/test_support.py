"""The tests' own helpers, on which other tests rely."""

from __future__ import annotations

import logging
import threading

import pytest
import requests
from django.conf import settings
from django.core.cache import cache, caches
from django.db import connections
from django_q.models import OrmQ

from tests.support.log_watch import LogWatch
from tests.support.programs import requires_program
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest


def test_a_program_that_is_there_is_found() -> None:
    assert requires_program("no-such-program", "sh").endswith("/sh")


def test_without_its_program_a_test_skips_and_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs no-such-program"):
        requires_program("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI must have it"):
        requires_program("no-such-program")


def test_the_receiver_records_what_came_and_answers_as_told(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(500, Answer(429, b"later", {"Retry-After": "7"}))
    first = requests.post(f"{loopback_receiver.url}/a?b=c", data=b"\x00\xff", headers={"X-One": "1"}, timeout=5)
    second = requests.put(f"{loopback_receiver.url}/d", json={"e": 1}, timeout=5)
    third = requests.get(f"{loopback_receiver.url}/f", timeout=5)
    assert [first.status_code, second.status_code, third.status_code] == [500, 429, 200]
    assert (second.text, second.headers["Retry-After"]) == ("later", "7")
    posted, put, got = loopback_receiver.wait_for(3)
    assert (posted.method, posted.path, posted.body, posted.headers["x-one"]) == ("POST", "/a?b=c", b"\x00\xff", "1")
    assert put.json() == {"e": 1}
    assert posted.at <= put.at <= got.at


def test_the_receivers_answer_may_depend_on_the_request(loopback_receiver: LoopbackReceiver) -> None:
    def respond(request: ReceivedRequest) -> Answer:
        return Answer(200 if request.path == "/good" else 410)

    loopback_receiver.respond_with = respond
    assert requests.get(f"{loopback_receiver.url}/good", timeout=5).status_code == 200
    assert requests.get(f"{loopback_receiver.url}/bad", timeout=5).status_code == 410


def test_waiting_for_what_does_not_come_says_so(loopback_receiver: LoopbackReceiver) -> None:
    with pytest.raises(TimeoutError, match="0 of 1 requests"):
        loopback_receiver.wait_for(1, timeout_seconds=0.05)


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_begins_with_an_empty_cache(number: int) -> None:
    assert cache.get("left") is None
    cache.set("left", number)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(caches["default"].get("left")))
    thread.start()
    thread.join()
    assert seen == [number], "another thread of the same test sees what the test wrote"


@pytest.mark.django_db
def test_the_brokers_database_is_open_to_tests() -> None:
    OrmQ.objects.create(key="a test's own", payload="x")
    assert OrmQ.objects.filter(key="a test's own").count() == 1


@pytest.mark.skipif("broker" not in settings.DATABASES, reason="with Redis there is no broker database")
@pytest.mark.django_db
def test_the_brokers_database_holds_the_brokers_tables_only() -> None:
    assert {table for table in connections["broker"].introspection.table_names() if "django_q" not in table} <= {
        "django_migrations"
    }


def test_the_tests_database_is_a_file_with_write_ahead_log(db: None) -> None:
    if connections["default"].vendor != "sqlite":
        pytest.skip("on PostgreSQL there is no file")
    with connections["default"].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)


@pytest.mark.parametrize(
    "line, held",
    [
        ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln", True),
        ("signed with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", True),
        ("Authorization: Bearer 0123456789abcdef0123", True),
        ("Authorization: Bearer ***", False),
        ("sent planted-value", True),
        ("POST /id/connect/token 200 (duration_ms=1.0)", False),
    ],
)
def test_the_watch_knows_a_secret_when_it_sees_one(line: str, held: bool) -> None:
    watch = LogWatch()
    watch.handle(logging.makeLogRecord({"msg": line}))
    assert bool(watch.take()) is held
    assert watch.take() == []
