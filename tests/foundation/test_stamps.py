"""Change signals between processes: what a cache must be able to trust."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection, transaction

from foundation import stamps
from foundation.stamp_signals import StampSignals
from tests.support.waiting import eventually

NAME = "test"


@pytest.fixture(autouse=True)
def known_afresh() -> Iterator[None]:
    stamps.expire()
    yield
    stamps.expire()


def bumped() -> int:
    stamps.bump(NAME)
    stamps.expire()
    return stamps.current(NAME)


def test_a_stamp_that_was_never_bumped_is_0(db: None) -> None:
    assert stamps.current("never") == 0


def test_each_bump_gives_another_value(db: None) -> None:
    values = [bumped() for _ in range(50)]
    assert len(set(values)) == 50


def test_a_value_that_was_rolled_back_never_comes_again(db: None) -> None:
    seen = bumped()
    rolled_back: list[int] = []
    for _ in range(10):
        with transaction.atomic():
            rolled_back.append(bumped())
            transaction.set_rollback(True)
    stamps.expire()
    assert stamps.current(NAME) == seen
    assert bumped() not in {seen, *rolled_back}
    assert len(set(rolled_back)) == 10


def test_what_another_process_s_clock_gives_at_the_same_moment_differs(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foundation.stamps.time.time_ns", lambda: 1_800_000_000_000_000_000)
    assert len({stamps._unused() for _ in range(40)}) > 20


redis_only = pytest.mark.skipif(not settings.REDIS_URL, reason="signals go through Redis")


@redis_only
def test_a_change_is_heard_of_by_other_processes_at_once(db: None) -> None:
    heard: list[str] = []
    channel = f"test:{uuid.uuid4()}"
    here = StampSignals(settings.REDIS_URL, channel, lambda: heard.append("a"))
    there = StampSignals(settings.REDIS_URL, channel, lambda: heard.append("b"))
    assert here.listening.wait(10)
    assert there.listening.wait(10)
    assert eventually(lambda: sorted(heard) == ["a", "b"])  # whatever changed before they listened
    here.announce()
    assert eventually(lambda: heard.count("b") == 2)
    there.announce()
    assert eventually(lambda: heard.count("a") == 2)
    assert heard.count("b") == 2  # nobody hears oneself


@redis_only
@pytest.mark.django_db(transaction=True)
def test_who_is_told_of_a_change_asks_again_long_before_the_next_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "CHECK_SECONDS", 3600.0)
    before = stamps.current(NAME)
    own = stamps.signals()
    assert own is not None
    assert own.listening.wait(10)
    stamps.current(NAME)
    # Another process: it changes the stamp and announces that, on the channel of this database.
    other = StampSignals(settings.REDIS_URL, own.channel, lambda: None)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO foundation_versionstamp (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [NAME, before + 1],
        )
    other.announce()
    assert eventually(lambda: stamps.current(NAME) == before + 1)


def test_a_redis_that_is_not_there_is_said_once_and_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    alone = StampSignals("redis://127.0.0.1:9/0", "test", lambda: None)
    assert eventually(lambda: "interrupted" in caplog.text)
    alone.announce()
    assert "a little later" in caplog.text
    assert not alone.listening.is_set()
