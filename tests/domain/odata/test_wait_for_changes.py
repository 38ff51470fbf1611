"""WaitForChanges: the same as GetChanges, later (spec 03, 3.2). With 200 clients: test_live_transactions."""

from __future__ import annotations

import json
import threading
import time

import pytest

from domain.dataset.transactions import change_waits
from domain.dataset.transactions.change_waits import ChangeWait, watch
from foundation import errors
from foundation.long_polls import chunks
from tests.domain.odata.test_writing import CURRENCIES
from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two minutes are over at once."""
    monkeypatch.setattr(change_waits, "WAIT_SECONDS", 0.0)


def content(response: Answer) -> bytes:
    """The body of an answer that came later."""
    assert response.streaming
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"
    # Which closes it, as the server does; closing it by hand would end the test's database connection.
    found: bytes = response.getvalue()
    return found


def test_what_there_is_is_answered_at_once_and_once(api: Api, world: World, impatient: None) -> None:
    inside = api.begin(trackChanges=True)
    inside.patch(f"{CURRENCIES}({world.currency})", {"Name": "Renamed"})
    assert inside.read("WaitForChanges()")["update"] == {CURRENCIES: {world.currency: {"Name": "Renamed"}}}
    assert content(inside.get("WaitForChanges")) == b"{}"
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


def test_more_than_can_wait_are_told_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_waits, "SLOTS", 1)
    inside = api.begin(trackChanges=True)
    first = inside.get("WaitForChanges()")
    refused = inside.get("WaitForChanges()")
    assert (refused.status_code, error_of(refused)["type"], refused["Retry-After"]) == (503, "TooManyWaiting", "5")
    first.long_poll.close()
    inside.get("WaitForChanges()").long_poll.close()


def test_a_change_wakes_who_waits_and_the_end_of_the_transaction_too() -> None:
    told: list[tuple[dict[str, object], int]] = [({}, 1), ({"insert": {}}, 2)]
    wait = ChangeWait("a" * 32, 1, lambda: told.pop(0))
    answers: list[bytes] = []
    waiting = threading.Thread(target=lambda: answers.append(b"".join(chunks(wait))))
    waiting.start()
    while told:
        # The first time somebody else was faster, and there is nothing to tell; it waits on.
        watch.wake("a" * 32)
        time.sleep(0)
    waiting.join(60)
    assert answers == [b'{"insert":{}}']
    assert not watch.waits_for("a" * 32)

    def over() -> tuple[dict[str, object], int]:
        raise errors.BadRequest(errors.INVALID_TRANSACTION_ID, "b" * 32)

    ended = ChangeWait("b" * 32, 1, over)
    ended.woken.set()
    assert b"".join(chunks(ended)) == b"{}"


def test_who_waits_long_is_told_so_in_white_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_waits, "STILL_HERE_SECONDS", 0.0)
    wait = ChangeWait("c" * 32, 1, lambda: ({"delete": {}}, 2))
    parts = chunks(wait)
    assert [next(parts), next(parts)] == [b" ", b" "]
    watch.wake("c" * 32)
    assert json.loads(b" " + b"".join(parts)) == {"delete": {}}


def test_a_process_that_ends_answers_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "stopping", False)
    wait = ChangeWait("d" * 32, 1, lambda: ({}, 1))
    watch.stop()
    assert b"".join(chunks(wait)) == b"{}"
    late = ChangeWait("e" * 32, 1, lambda: ({}, 1))
    assert b"".join(chunks(late)) == b"{}"
