"""While a script computes, its web process serves other requests (spec 04, 4.1: it cannot stall other requests)."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from typing import Any

import pytest

from foundation import execution_slot
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of
from tests.support.platform import LivePlatform

LIMIT = 3104


class Slot:
    """Counts what a request does with its slot."""

    def __init__(self) -> None:
        self.released = 0
        self.deferred = 0

    def release(self) -> None:
        self.released += 1

    def defer(self) -> None:
        self.deferred += 1


@pytest.fixture
def slot(monkeypatch: pytest.MonkeyPatch) -> Slot:
    made = Slot()
    monkeypatch.setattr(execution_slot, "_slot", made)
    return made


def test_a_long_script_releases_the_slot(api: Api, settings: Any, slot: Slot) -> None:
    settings.SCRIPT_WALL_SECONDS = 0.5
    response = execute(api, "for (;;);")
    assert error_of(response)["code"] == LIMIT
    assert slot.released


def test_queries_of_a_script_defer_to_other_requests(api: Api, slot: Slot) -> None:
    console(api, "for (let i = 0; i < 50; i++) Domain.Library.BooksRepository.query()")
    assert slot.deferred >= 50


def test_a_script_that_waits_for_a_worker_releases_the_slot(api: Api, settings: Any, slot: Slot) -> None:
    settings.SCRIPT_WALL_SECONDS = 5.0
    busy = "const end = Date.now() + 400; while (Date.now() < end);"
    blockers = [threading.Thread(target=_run_bare, args=(busy,)) for _ in range(settings.SANDBOX_WORKERS)]
    console(api, "console.log(1)")
    for blocker in blockers:
        blocker.start()
    assert console(api, "console.log('done')") == "done"
    assert slot.released
    for blocker in blockers:
        blocker.join(60)


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
    answered = [ask("General_Products_Products?$top=5") for _ in range(10)]
    assert answered == [200] * 10
    assert ended == []
    for script in scripts:
        script.join(60)
    assert ended == [200] * 4
