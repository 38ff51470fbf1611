"""Change signals between processes: what a cache must be able to trust."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction

from foundation import cache_versions
from foundation.cache_version_signals import CacheVersionSignals
from foundation.shared_word import SharedWord
from tests.support.waiting import eventually

pytestmark = pytest.mark.cache_versions_by_the_clock

NAME = "test"


@pytest.fixture(autouse=True)
def known_afresh() -> Iterator[None]:
    cache_versions.expire()
    yield
    cache_versions.expire()


def bumped() -> int:
    cache_versions.bump(NAME)
    cache_versions.expire()
    return cache_versions.current(NAME)


def test_a_cache_version_that_was_never_bumped_is_0(db: None) -> None:
    assert cache_versions.current("never") == 0


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
    cache_versions.expire()
    assert cache_versions.current(NAME) == seen
    assert bumped() not in {seen, *rolled_back}
    assert len(set(rolled_back)) == 10


def test_what_another_process_s_clock_gives_at_the_same_moment_differs(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foundation.cache_versions.time.time_ns", lambda: 1_800_000_000_000_000_000)
    assert len({cache_versions._unused() for _ in range(40)}) > 20


redis_only = pytest.mark.skipif(not settings.REDIS_URL, reason="signals go through Redis")


@redis_only
def test_a_change_is_heard_of_by_other_processes_at_once(db: None) -> None:
    heard: list[str] = []
    channel = f"test:{uuid.uuid4()}"
    here = CacheVersionSignals(settings.REDIS_URL, channel, lambda: heard.append("a"))
    there = CacheVersionSignals(settings.REDIS_URL, channel, lambda: heard.append("b"))
    assert here.listening.wait(60)
    assert there.listening.wait(60)
    assert eventually(lambda: sorted(heard) == ["a", "b"])  # whatever changed before they listened
    here.announce()
    assert eventually(lambda: heard.count("b") == 2)
    there.announce()
    assert eventually(lambda: heard.count("a") == 2)
    assert heard.count("b") == 2  # nobody hears oneself


@redis_only
@pytest.mark.django_db(transaction=True)
def test_who_is_told_of_a_change_asks_again_long_before_the_next_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 3600.0)
    before = cache_versions.current(NAME)
    own = cache_versions.signals()
    assert own is not None
    assert own.listening.wait(60)
    cache_versions.current(NAME)
    # Another process: it changes the cache version and announces that, on the channel of this database.
    other = CacheVersionSignals(settings.REDIS_URL, own.channel, lambda: None)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO foundation_cacheversion (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [NAME, before + 1],
        )
    other.announce()
    assert eventually(lambda: cache_versions.current(NAME) == before + 1)


def test_a_redis_that_is_not_there_is_said_once_and_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    alone = CacheVersionSignals("redis://127.0.0.1:9/0", "test", lambda: None)
    assert eventually(lambda: "interrupted" in caplog.text)
    alone.announce()
    assert "a little later" in caplog.text
    assert not alone.listening.is_set()


class TestAnotherProcess:
    """What this process sees of what others commit and announce, without Redis."""

    @pytest.fixture(autouse=True)
    def far_from_the_next_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 3600.0)

    def commit(self, value: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO foundation_cacheversion (name, value) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [NAME, value],
            )

    def test_what_it_announces_is_seen_by_the_next_look(self, db: None) -> None:
        other = SharedWord(cache_versions.shared_word().path)
        for value in range(1, 20):
            cache_versions.current(NAME)
            self.commit(value)
            other.write(value)
            assert cache_versions.current(NAME) == value

    def test_what_it_does_not_announce_is_seen_by_the_next_write(self, db: None) -> None:
        self.commit(1)
        cache_versions.current(NAME)
        self.commit(2)
        cache_versions.check()
        assert cache_versions.current(NAME) == 2

    def test_what_it_does_not_announce_is_seen_within_a_second(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commit(1)
        cache_versions.check()
        self.commit(2)
        assert cache_versions.current(NAME) == 1
        monkeypatch.undo()
        later = time.monotonic() + cache_versions.CHECK_SECONDS + 0.1
        monkeypatch.setattr("foundation.cache_versions.time.monotonic", lambda: later)
        assert cache_versions.current(NAME) == 2
        assert cache_versions.CHECK_SECONDS < 1

    def test_a_reading_that_began_earlier_does_not_replace_a_later_one(self, db: None) -> None:
        def slow(text: str) -> list[tuple[str, int]]:
            self.commit(2)
            cache_versions.check()
            return [(NAME, 1)]

        cache_versions.check(slow)
        assert cache_versions.current(NAME) == 2

    def test_a_reading_that_ends_later_with_a_later_change_is_kept(self, db: None) -> None:
        def slow(text: str) -> list[tuple[str, int]]:
            cache_versions.check()
            self.commit(2)
            return [(NAME, 2)]

        self.commit(1)
        cache_versions.check(slow)
        assert cache_versions.current(NAME) == 2


class TestATransactionThatBumps:
    @pytest.fixture(autouse=True)
    def no_period(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 3600.0)

    def seen_by_another_thread(self) -> int:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._seen).result()

    def _seen(self) -> int:
        try:
            return cache_versions.current(NAME)
        finally:
            connection.close()

    @pytest.mark.django_db(transaction=True)
    def test_sees_its_own_cache_version_and_others_see_it_after_the_commit(self) -> None:
        before = cache_versions.current(NAME)
        with transaction.atomic():
            cache_versions.bump(NAME)
            mine = cache_versions.current(NAME)
            assert mine != before
            cache_versions.expire()
            assert cache_versions.current(NAME) == mine
            cache_versions.check()
            assert self.seen_by_another_thread() == before
        assert cache_versions.current(NAME) == self.seen_by_another_thread() == mine

    @pytest.mark.django_db(transaction=True)
    def test_forgets_what_it_takes_back(self) -> None:
        before = cache_versions.current(NAME)
        with transaction.atomic():
            with transaction.atomic():
                cache_versions.bump(NAME)
                transaction.set_rollback(True)
            assert cache_versions.current(NAME) == before
            cache_versions.bump(NAME)
            assert cache_versions.current(NAME) != before
            transaction.set_rollback(True)
        assert cache_versions.current(NAME) == before


class TestTheSharedWord:
    def test_a_word_reaches_whoever_maps_the_file(self, tmp_path: Path) -> None:
        here, there = SharedWord(tmp_path / "word"), SharedWord(tmp_path / "word")
        for word in (1, 2**64 - 1, 3):
            here.write(word)
            assert here.word[0] == there.word[0] == word
        assert (tmp_path / "word").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("replaced", [False, True])
    def test_a_file_that_was_removed_is_made_again_and_found(self, tmp_path: Path, replaced: bool) -> None:
        path = tmp_path / "word"
        here, there = SharedWord(path), SharedWord(path)
        path.unlink()
        if replaced:
            path.write_bytes(b"")
        here.write(7)
        there.remap()
        assert here.word[0] == there.word[0] == 7

    def test_an_empty_file_keeps_what_is_written_first(self, tmp_path: Path) -> None:
        (tmp_path / "word").touch()
        here = SharedWord(tmp_path / "word")
        here.write(7)
        assert SharedWord(tmp_path / "word").word[0] == here.word[0] == 7

    def test_a_file_that_cannot_be_used_is_said_once_and_tried_again(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        word = SharedWord(tmp_path / "missing" / "word")
        word.write(7)
        word.remap()
        assert word.word[0] == 0
        assert caplog.text.count("a little later") == 1
        (tmp_path / "missing").mkdir()
        word.write(8)
        assert word.word[0] == 8

    def test_a_forked_process_announces_to_its_parent(self, tmp_path: Path) -> None:
        word = SharedWord(tmp_path / "word")
        child = multiprocessing.get_context("fork").Process(target=word.write, args=(9,))
        child.start()
        child.join(60)
        assert word.word[0] == 9
