"""While a script computes, its process works for others (spec 04, 4.1: it cannot stall other requests)."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from foundation.turns import turn
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of
from tests.support.platform import LivePlatform

LIMIT = 3104


@contextmanager
def somebody_who_wants_the_turn() -> Iterator[list[int]]:
    """Takes the turn of this process again and again, and counts how often; stops at a thousand."""
    taken = [0]
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set() and taken[0] < 1_000:
            with turn:
                taken[0] += 1

    thread = threading.Thread(target=work)
    with turn:
        thread.start()
        while not turn.is_wanted:
            pass
        try:
            yield taken
        finally:
            stop.set()
    thread.join(10)


@pytest.mark.parametrize(
    "source",
    ["for (;;);", "for (;;) Transaction.rollback()", "for (;;) Domain.Library.BooksRepository.query()"],
    ids=["computing", "host calls", "queries"],
)
def test_others_work_while_a_script_runs(api: Api, settings: Any, source: str) -> None:
    settings.SCRIPT_WALL_SECONDS = 0.5
    with somebody_who_wants_the_turn() as taken:
        response = execute(api, source)
        # A kept turn would be given to the other once at the most, at the end.
        assert taken[0] > 10
    assert error_of(response)["code"] == LIMIT


def test_others_work_while_a_script_waits_for_a_worker(api: Api, settings: Any) -> None:
    """A pool that is busy: the wait is long, and costs nobody else anything."""
    settings.SCRIPT_WALL_SECONDS = 5.0
    busy = "const end = Date.now() + 400; while (Date.now() < end);"
    blockers = [threading.Thread(target=_run_bare, args=(busy,)) for _ in range(settings.SANDBOX_WORKERS)]
    console(api, "console.log(1)")
    for blocker in blockers:
        blocker.start()
    with somebody_who_wants_the_turn() as taken:
        assert console(api, "console.log('done')") == "done"
        assert taken[0] > 10
    for blocker in blockers:
        blocker.join(10)


def _run_bare(source: str) -> None:
    from scripts import services

    services.pool().run(source)


@pytest.mark.process
@pytest.mark.once
def test_an_instance_answers_while_scripts_compute(live_platform: LivePlatform) -> None:
    """More scripts than web processes: all the other requests are answered before the first script ends."""
    form = {
        "grant_type": "client_credentials",
        "client_id": "ServiceDemoClient",
        "client_secret": "DEMO",
        "scope": "DomainApi read exec",
    }
    with urllib.request.urlopen(
        f"{live_platform.base_url}/id/connect/token", urllib.parse.urlencode(form).encode()
    ) as answer:
        headers = {"Authorization": f"Bearer {json.load(answer)['access_token']}"}
    ended: list[int] = []

    def ask(path: str, body: bytes | None = None) -> int:
        sent = headers if body is None else {**headers, "Content-Type": "text/plain"}
        request = urllib.request.Request(live_platform.odata_url + path, body, sent)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return int(answer.status)

    def run(milliseconds: int) -> None:
        source = f"const end = Date.now() + {milliseconds}; while (Date.now() < end);"
        ended.append(ask("ExecuteScript", source.encode()))

    for _ in range(6):  # workers start, connections open
        run(1)
    ended.clear()
    scripts = [threading.Thread(target=run, args=(4_000,)) for _ in range(4)]
    for script in scripts:
        script.start()
    answered = [ask("General_Products_Products?$top=5") for _ in range(20)]
    assert answered == [200] * 20
    assert ended == []
    for script in scripts:
        script.join(60)
    assert ended == [200] * 4
