"""Idempotency keys on the real instance: two web processes, and processes killed between write and answer."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.memory import web_processes
from tests.support.platform import LivePlatform, start_platform
from tests.support.waiting import eventually

GROUPS = "General_Products_ProductGroups"
KILLS = int(os.environ.get("KILLS", "1"))

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def platform() -> Iterator[LivePlatform]:
    """An instance of its own, whose processes are killed."""
    with start_platform() as started:
        yield started


class Caller:
    """Sends requests, each on a connection of its own, so that both processes get some."""

    def __init__(self, platform: LivePlatform) -> None:
        self.root = platform.odata_url
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        answer = requests.post(f"{platform.base_url}/id/connect/token", form, timeout=60)
        self.headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}

    def create(self, code: str, key: str) -> requests.Response:
        """Create a product group; the same key with the same code is the same request."""
        body = {"Code": code, "Name": {"EN": code}}
        headers = {**self.headers, "Idempotency-Key": key}
        return requests.post(self.root + GROUPS, json=body, headers=headers, timeout=60)

    def count(self, code: str) -> int:
        """How many product groups have the code."""
        url = f"{self.root}{GROUPS}/$count?$filter=Code eq '{code}'"
        return int(requests.get(url, headers=self.headers, timeout=60).text)


def test_repetitions_in_two_processes_create_one_entity(platform: LivePlatform) -> None:
    caller = Caller(platform)
    for turn in range(3):
        code, key = f"twice-{turn}", str(uuid.uuid4())
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: caller.create(code, key), range(8)))  # noqa: B023  (ends before the turn)
        assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
        assert len({answer.text for answer in answers}) == 1
        assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
        assert caller.count(code) == 1


def test_a_process_killed_between_write_and_answer_loses_neither(platform: LivePlatform) -> None:
    """Wherever the kill -9 hits, the repeated request is carried out once in all, and has one answer."""
    caller = Caller(platform)
    for turn in range(KILLS):
        assert eventually(lambda: len(web_processes(platform)) == 2, 60)
        code, key = f"killed-{turn}", str(uuid.uuid4())
        with ThreadPoolExecutor(2) as pool:
            lost = pool.submit(caller.create, code, key)
            # Committed: seen by another request, whether or not the first one has been answered.
            assert eventually(lambda: caller.count(code) == 1, 60)  # noqa: B023  (called at once)
            for process in web_processes(platform):
                os.kill(process, signal.SIGKILL)
        answers = [lost.result()] if lost.exception() is None else []

        def repeated() -> bool:
            try:
                answers.append(caller.create(code, key))  # noqa: B023  (called at once)
            except requests.RequestException:
                return False
            return True

        assert eventually(repeated, 120)
        assert answers[-1].headers["Idempotent-Replayed"] == "true"
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        assert caller.count(code) == 1


def test_a_process_killed_anywhere_in_a_write_leaves_both_or_none(platform: LivePlatform) -> None:
    """Requests run while the processes are killed; afterwards each is repeated."""
    caller = Caller(platform)
    assert eventually(lambda: len(web_processes(platform)) == 2, 60)
    requested = {f"any-{number}": str(uuid.uuid4()) for number in range(12)}
    with ThreadPoolExecutor(4) as pool:
        sent = {code: pool.submit(caller.create, code, key) for code, key in requested.items()}
        assert eventually(lambda: sum(each.done() for each in sent.values()) >= 2, 60)
        for process in web_processes(platform):
            os.kill(process, signal.SIGKILL)
    for code, key in requested.items():
        answer = sent[code].result().text if sent[code].exception() is None else ""

        def repeated(code: str = code, key: str = key, answer: str = answer) -> bool:
            try:
                again = caller.create(code, key)
            except requests.RequestException:
                return False
            assert again.status_code == 201
            return not answer or again.text == answer

        assert eventually(repeated, 120), code
        assert caller.count(code) == 1
