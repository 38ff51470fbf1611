"""Nobody alone takes the places of those who wait for changes.

Who: a user of the API, with Domain transactions and many connections. What: to wait in all places of a process, so
that others are refused. What prevents it: the last places are for callers with few
(domain.dataset.transactions.change_waits).
"""

from __future__ import annotations

import pytest

from domain.dataset.transactions.change_waits import change_waits
from tests.domain.conftest import api, world
from tests.domain.security.conftest import Library, caller, library, person
from tests.support.api import Answer, Api
from tests.support.response_writers import ReadResponseWriter

__all__ = ["api", "library", "world"]

PLACES, RESERVED = 7, 3


def waiting(api: Api) -> Answer:
    answer = api.begin(trackChanges=True).get("WaitForChanges()")
    if answer.status_code == 200:
        answer.push.start(ReadResponseWriter())
    return answer


def test_a_caller_with_many_waits_leaves_places_to_others(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_waits, "max_listeners", PLACES)
    monkeypatch.setattr(change_waits, "reserved", RESERVED)
    monkeypatch.setattr(change_waits, "_is_polling", True)  # no thread: nobody is answered
    mallory, alice = (caller(person(login, is_admin=True)) for login in ("mallory", "alice"))
    open_ones = [answer for _ in range(PLACES) if (answer := waiting(mallory)).status_code == 200]
    assert len(open_ones) == PLACES - RESERVED
    open_ones += [answer for _ in range(PLACES) if (answer := waiting(alice)).status_code == 200]
    assert len(open_ones) == PLACES
    for answer in open_ones:
        answer.push.close()
    last = waiting(mallory)
    assert last.status_code == 200
    last.push.close()
