"""Texts that are kept for their owner in a bounded place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foundation import temporary_texts
from foundation.temporary_texts import FileTexts, RedisTexts, TemporaryTexts
from tests.support.redis_server import redis_of_its_own

Open = Callable[[], TemporaryTexts]


@pytest.fixture(params=["file", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same place, as each process does."""
    if request.param == "file":
        yield lambda: FileTexts(tmp_path / "texts.bin", ring_bytes=2_000)
    else:
        with redis_of_its_own() as url:
            yield lambda: RedisTexts(url)


def test_every_process_finds_a_text_of_its_owner(opened: Open) -> None:
    id = opened().store("anna", b"one")
    assert opened().get("anna", id) == b"one"
    assert opened().get("bob", id) is None


@pytest.mark.parametrize("id", ["", "-", "x", "8-", "-1-0", "ffffffffffff-0", "8-\u00e9", "8" * 100, "8-" + "0" * 32])
def test_other_ids_are_unknown(opened: Open, id: str) -> None:
    opened().store("anna", b"one")
    assert opened().get("anna", id) is None


def test_the_newest_stay(opened: Open) -> None:
    texts = opened()
    ids = [texts.store("anna", b"%d" % number * 100) for number in range(100)]
    found = [texts.get("anna", id) for id in ids]
    kept = [number for number, text in enumerate(found) if text is not None]
    assert 1 < len(kept) <= 20
    assert kept == list(range(100 - len(kept), 100))
    assert all(found[number] == b"%d" % number * 100 for number in kept)


def test_a_text_is_gone_after_its_time(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    if "FileTexts" not in repr(opened()):
        pytest.skip("Redis forgets by itself")
    monkeypatch.setattr(temporary_texts, "LIFETIME_SECONDS", -1)
    id = opened().store("anna", b"one")
    assert opened().get("anna", id) is None


def test_a_text_longer_than_its_ring_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="longer"):
        FileTexts(tmp_path / "texts.bin", ring_bytes=2_000).store("anna", b"x" * 2_000)
