"""WaitForChanges: the same as GetChanges, later (spec 03, 3.2). With 200 clients: test_live_transactions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from domain.dataset.transactions import change_waits as module
from domain.dataset.transactions.change_waits import ChangeWait, ChangeWaits, change_waits
from foundation import errors, listeners
from tests.domain.odata.test_writing import CURRENCIES
from tests.rules.cast import World
from tests.support.api import Api, error_of
from tests.support.response_writers import ReadResponseWriter
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> ChangeWaits:
    """The waiting clients, without their thread: the test looks."""
    monkeypatch.setattr(change_waits, "_is_polling", True)
    return change_waits


def waiting(id: str, take: Callable[[], tuple[dict[str, Any], int]]) -> ReadResponseWriter:
    """A client that waits for the transaction, which it knows up to sequence 1."""
    writer = ReadResponseWriter()
    ChangeWait(id, 1, take, "").start(writer)
    return writer


def test_what_there_is_is_answered_at_once_and_once(api: Api, world: World, waits: ChangeWaits) -> None:
    inside, writer = api.begin(trackChanges=True), ReadResponseWriter()
    inside.patch(f"{CURRENCIES}({world.currency})", {"Name": "Renamed"})
    assert inside.read("WaitForChanges()")["update"] == {CURRENCIES: {world.currency: {"Name": "Renamed"}}}
    later = inside.get("WaitForChanges")
    assert later.streaming
    assert (later["Content-Type"], later["Cache-Control"]) == ("application/json", "no-store")
    later.push.start(writer)
    waits.serve(waits.all())
    assert writer.parts == [b" "], "the status comes at once, and white space may be before JSON"
    inside.patch(f"{CURRENCIES}({world.currency})", {"Name": "Again"})
    waits.serve(waits.all())
    changes = {"insert": {}, "update": {CURRENCIES: {world.currency: {"Name": "Again"}}}, "delete": {}}
    assert json.loads(b"".join(writer.parts)) == changes
    assert writer.is_ended
    assert inside.read("GetChanges()") == {}


def test_it_is_refused_as_get_changes_is(api: Api) -> None:
    assert error_of(api.get("WaitForChanges()"))["type"] == "TransactionRequired"
    refused = error_of(api.begin().get("WaitForChanges()"))
    assert (refused["type"], "WaitForChanges" in refused["message"]) == ("ChangesNotTracked", True)


def test_head_and_batch_do_not_wait(api: Api) -> None:
    inside = api.begin(trackChanges=True)
    assert inside.request("HEAD", "WaitForChanges()").content == b""
    part = {"id": "1", "method": "GET", "url": "WaitForChanges()"}
    answered = inside.post("$batch", {"requests": [part]}).json()["responses"][0]
    assert (answered["status"], answered["body"]) == (200, {})


def test_more_than_can_wait_are_told_so(api: Api, waits: ChangeWaits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "max_listeners", 1)
    inside = api.begin(trackChanges=True)
    first = inside.get("WaitForChanges()")
    first.push.start(ReadResponseWriter())
    refused = inside.get("WaitForChanges()")
    assert (refused.status_code, error_of(refused)["type"], refused["Retry-After"]) == (503, "TooManyWaiting", "5")
    assert error_of(refused)["parameters"] == ["1"]
    first.push.close()
    assert inside.get("WaitForChanges()").status_code == 200


@pytest.mark.django_db
def test_a_change_wakes_who_waits_and_the_end_of_the_transaction_too(waits: ChangeWaits) -> None:
    told: list[tuple[dict[str, object], int]] = [({}, 2), ({"insert": {}}, 3)]
    writer = waiting("a" * 32, lambda: told.pop(0))
    waits.serve(waits.all())
    # The first time another client was faster, and there is nothing to tell; it waits on.
    assert (writer.parts, writer.is_ended) == ([b" "], False)
    waits.serve(waits.all())
    assert (writer.parts, writer.is_ended) == ([b" ", b'{"insert":{}}'], True)
    assert not waits.waits_for("a" * 32)

    def over() -> tuple[dict[str, object], int]:
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, "b" * 32)

    ended = waiting("b" * 32, over)
    waits.serve(waits.all())
    assert (ended.parts, ended.is_ended) == ([b" ", b"{}"], True)


def test_who_waits_long_is_told_so_in_white_space(waits: ChangeWaits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "KEEP_ALIVE_SECONDS", 0.0)
    writer = waiting("c" * 32, lambda: ({}, 2))
    (wait,) = waits.all()
    wait.keep_alive_or_end(is_stopping=False)
    assert writer.parts == [b" ", b" "]
    wait.close()


def test_who_has_waited_for_the_whole_time_is_told_that_nothing_has_changed(
    waits: ChangeWaits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    writer = waiting("d" * 32, lambda: ({}, 2))
    waits.all()[0].keep_alive_or_end(is_stopping=False)
    assert (writer.parts, writer.is_ended, waits.all()) == ([b" ", b"{}"], True, [])


def test_a_process_that_ends_answers_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = ChangeWaits()
    monkeypatch.setattr(module, "change_waits", waits)
    monkeypatch.setattr(waits, "serve", lambda listeners: False)
    writer = waiting("e" * 32, lambda: ({}, 2))
    waits.stop()
    assert (writer.parts, writer.is_ended) == ([b" ", b"{}"], True)
    late = waiting("f" * 32, lambda: ({}, 2))
    assert eventually(lambda: late.is_ended, 60)
    assert late.parts == [b" ", b"{}"]


def test_one_thread_serves_all_and_looks_when_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = ChangeWaits()
    monkeypatch.setattr(module, "change_waits", waits)
    monkeypatch.setattr(ChangeWaits, "poll_seconds", 3600.0)
    looks: list[int] = []
    news = threading.Event()

    def serve(listeners: list[ChangeWait]) -> bool:
        looks.append(threading.get_ident())
        for each in listeners if news.is_set() else ():
            each.answer()
        if len(looks) == 1:
            raise RuntimeError("the database is away")
        return False

    monkeypatch.setattr(waits, "serve", serve)
    writers = [waiting("a" * 32, lambda: ({"delete": {}}, 2)) for _ in range(20)]
    assert eventually(lambda: len(looks) >= 1, 60)
    news.set()
    waits.wake()
    assert eventually(lambda: all(each.is_ended for each in writers), 60)
    assert {b"".join(each.parts) for each in writers} == {b' {"delete":{}}'}
    assert len(set(looks)) == 1
