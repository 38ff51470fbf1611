"""kill -9 of the real web server around the commit, of everything at once, and at random (spec 06, 6.2).

The instance is what `make run` starts. Whatever dies: what the database has is told, and what it has not is not. Each
commit of an entity raises its version by one, and each change has a number of its own, so both sides can be compared
without knowing what callers heard: an entity at version n has told n changes, in order, the last being what it says.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
import requests

from tests.support.instances import instance_environment, prepared_instance
from tests.support.platform import ROOT, LivePlatform, start_platform
from tests.support.processes import descendants
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest
from tests.webhooks.workers import wait_until

pytestmark = pytest.mark.process

#: Without any progress, on two cores that are busy with other tests.
PATIENCE_SECONDS = 180
SIGNS = ("YA", "YB", "YC", "YD", "YE", "YF")
WRITERS = 3

#: The name that makes a commit wait, as a number like the others.
HELD = "1000000"
#: Short waits in place of half a minute; and as many deaths as the test likes are no reason to give up.
_SETTINGS = {
    "WEB_PROCESSES": "2",
    "WEBHOOK_LEASE_MARGIN_SECONDS": "1",
    "WEBHOOK_LOST_LEASES_MAX": "10000",
    "WEBHOOK_RETRY_SECONDS": "1",
    "WEBHOOK_BREAKER_OPEN_SECONDS": "1",
}

# The script asks the receiver in the middle of a commit: so a test can hold one there, and knows when it is there.
_CAST = """
from types import SimpleNamespace
from tests.rules.cast import write_rule
from tests.webhooks.cast import CURRENCIES, PLATFORM, new_web_hook
new_web_hook("URL/{CurrencySign}/{Name}", code="CRASH", MaxRetries=10, TimeoutSeconds=1)
world = SimpleNamespace(context=PLATFORM)
write_rule(world, CURRENCIES, ["COMMIT"], actions=[("WEBHOOK", ("Constant", "CRASH"))])
write_rule(world, CURRENCIES, ["COMMIT"], conditions=[("Name", "Equals", "HELD")],
    ScriptLanguage="JavaScript", ScriptText="Action.http.get('URL/held')")
"""


@dataclass
class Crashing:
    """An instance that is killed and started again on the same data, and its callers.

    ids     currency sign → guid
    heard   currency sign → changes that were answered with success
    told    currency sign → webhook-id → name, in the order in which each event was heard of first: see `listen`
    """

    directory: Path
    settings: dict[str, str]
    receiver: LoopbackReceiver
    ids: dict[str, str] = field(default_factory=dict)
    heard: Counter[str] = field(default_factory=Counter)
    told: dict[str, dict[str, int]] = field(default_factory=dict)
    listened: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    platform: LivePlatform | None = None

    @contextmanager
    def running(self) -> Iterator[LivePlatform]:
        """Started, with a caller that is known."""
        with start_platform(self.directory, settings=self.settings) as self.platform:
            answer = requests.post(
                f"{self.platform.base_url}/id/connect/token",
                {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"},
                timeout=60,
            )
            self.headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
            yield self.platform

    def request(self, method: str, path: str, body: dict[str, str] | None = None) -> requests.Response | None:
        """None where the connection broke."""
        assert self.platform is not None
        with suppress(requests.RequestException):
            address = f"{self.platform.odata_url}General_Currencies_Currencies{path}"
            return requests.request(method, address, json=body, headers=self.headers, timeout=60)
        return None

    def create(self) -> None:
        """The currencies that the test changes."""
        for sign in SIGNS:
            answer = self.request("POST", "?$select=Id", {"CurrencySign": sign, "Name": "0"})
            assert answer is not None
            self.ids[sign] = answer.json()["Id"]

    def change(self, sign: str, name: int) -> bool:
        """Whether the change was answered with success."""
        answer = self.request("PATCH", f"({self.ids[sign]})", {"Name": str(name)})
        self.heard[sign] += (done := answer is not None and answer.status_code < 300)
        return done

    def stored(self) -> dict[str, tuple[int, int]]:
        """Currency sign → (version, name) in the database; empty while nobody answers."""
        answer = self.request("GET", "?$filter=startswith(CurrencySign,'Y')&$select=CurrencySign,Name,ObjectVersion")
        if answer is None or answer.status_code != 200:
            return {}
        return {row["CurrencySign"]: (row["ObjectVersion"], int(row["Name"])) for row in answer.json()["value"]}

    def listen(self) -> int:
        """Take in what the receiver has been told since; how many events that makes in all.

        Only what is new: to go through thousands again and again would keep the receiver, in this process, from
        answering in time.
        """
        new = self.receiver.requests[self.listened :]
        self.listened += len(new)
        for request in new:
            _, sign, *name = request.path.split("/")
            if name:
                id = request.headers["webhook-id"]
                assert self.told.setdefault(sign, {}).setdefault(id, int(name[0])) == int(name[0])
        return sum(map(len, self.told.values()))

    def everybody(self) -> list[int]:
        """The supervisor and everything below it."""
        assert self.platform is not None
        return [self.platform.process.pid, *descendants(self.platform.process.pid)]


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def web_processes(platform: LivePlatform) -> list[int]:
    """The web server and its processes."""
    return [pid for pid in descendants(platform.process.pid) if "platform: web" in command_of(pid)]


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


@pytest.fixture
def crashing(tmp_path: Path, loopback_receiver: LoopbackReceiver) -> Iterator[Crashing]:
    """Not started yet; its templates and rules are there."""
    directory = tmp_path / "data"
    with prepared_instance(directory) as settings:
        settings = {**settings, **_SETTINGS}
        environment = instance_environment(directory, 0, DEMO="1", **settings)
        code = _CAST.replace("URL", loopback_receiver.url).replace("HELD", HELD)
        subprocess.run([sys.executable, "manage.py", "shell", "-v0", "-c", code], cwd=ROOT, env=environment, check=True)
        yield Crashing(directory, settings, loopback_receiver)


def check(crashing: Crashing) -> None:
    """Everything that was committed has been told, in order, under one id each; nothing else has."""
    wait_until(lambda: len(crashing.stored()) == len(SIGNS), PATIENCE_SECONDS)
    stored = crashing.stored()
    committed = sum(version for version, _ in stored.values())
    with suppress(TimeoutError):  # the comparison says more
        while (known := crashing.listen()) < committed:
            wait_until(lambda known=known: crashing.listen() > known, PATIENCE_SECONDS)  # type: ignore[misc]
    for sign, events in crashing.told.items():
        names = list(events.values())
        assert (len(names), names[-1]) == stored[sign]
        assert names == sorted(set(names)), "in the order of the commits"
        assert crashing.heard[sign] < len(names), "what was heard is there"
    requests = sum(request.path.count("/") == 2 for request in crashing.receiver.requests)
    print(f"{committed} committed events, {crashing.heard.total()} changes heard, {requests - committed} told again")


def test_kill_9_in_the_middle_of_a_commit_and_of_everything_after_one(crashing: Crashing) -> None:
    receiver, reached, gate = crashing.receiver, threading.Event(), threading.Event()

    def respond(request: ReceivedRequest) -> Answer:
        if request.path == "/held":
            reached.set()
            gate.wait(PATIENCE_SECONDS)
        return Answer()

    receiver.respond_with = respond
    with crashing.running() as platform:
        crashing.create()
        answers: list[bool] = []
        caller = threading.Thread(target=lambda: answers.append(crashing.change("YA", int(HELD))))
        caller.start()
        assert reached.wait(PATIENCE_SECONDS)
        kill(web_processes(platform))
        gate.set()
        caller.join(PATIENCE_SECONDS)
        assert answers == [False]
        wait_until(lambda: crashing.stored().get("YA") == (1, 0), PATIENCE_SECONDS)

        # Everything at once, before anybody can have told the queue; and the queue is lost too.
        assert crashing.change("YB", 1)
        kill(crashing.everybody())
        platform.process.wait(60)
    for file in crashing.directory.glob("broker.sqlite3*"):
        file.unlink()
    with crashing.running():
        check(crashing)
        assert crashing.stored()["YB"] == (2, 1)


def kill_at_random(crashing: Crashing, chance: random.Random, kills: int) -> None:
    """kill -9 of anything below the supervisor, now and then of all of it; between two kills some change is heard."""
    assert crashing.platform is not None
    for _ in range(kills):
        heard = crashing.heard.total()
        wait_until(lambda heard=heard: crashing.heard.total() > heard, PATIENCE_SECONDS)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.5))
        while not (victims := descendants(crashing.platform.process.pid)):
            time.sleep(0.05)  # the supervisor starts them again
        kill(victims if chance.random() < 0.05 else [chance.choice(victims)])


@pytest.mark.fuzz
@pytest.mark.parametrize("kills", [200])
def test_random_kills_under_load(crashing: Crashing, kills: int) -> None:
    chance, done = random.Random(kills), threading.Event()
    crashing.receiver.default = Answer(delay_seconds=0.02)  # long enough to be killed in

    def write(number: int) -> None:
        mine, names = random.Random(number), count(1)
        while not done.is_set():
            if not crashing.change(mine.choice(SIGNS[number::WRITERS]), next(names)):
                done.wait(0.1)

    with crashing.running():
        crashing.create()
        writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            kill_at_random(crashing, chance, kills)
        finally:
            done.set()
            for writer in writers:
                writer.join(PATIENCE_SECONDS)
        check(crashing)
