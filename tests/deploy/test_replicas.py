"""Reads go to replicas that have what their session has written and seen (spec 13, 13.2).

A primary and two replicas of this test's own, and an instance with two web processes.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, expect

from tests.support.chromium import administrators_page
from tests.support.instances import prepare_on_server
from tests.support.platform import ROOT, LivePlatform, start_platform
from tests.support.postgresql_servers import Server, replicated_servers, standby_of
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.once]

GROUPS = "General_Products_ProductGroups"
SESSIONS = 6


@dataclass(frozen=True)
class Replicated:
    """A running instance and its database servers."""

    platform: LivePlatform
    primary: Server
    replicas: list[Server]

    def caller(self) -> Caller:
        return Caller(self)

    def reads(self) -> Counter[str]:
        """Name of a server → reads that it has answered."""
        text = requests.get(f"{self.platform.base_url}/metrics", timeout=60).text
        found: Counter[str] = Counter()
        for line in text.splitlines():
            if line.startswith("platform_replicated_reads_total{"):
                name, _, number = line.partition("} ")
                found[name.split('"')[1]] = int(float(number))
        return found

    def in_use(self) -> set[str]:
        """Names of the replicas that the process that is asked uses."""
        text = requests.get(f"{self.platform.base_url}/metrics", timeout=60).text
        marked = [line for line in text.splitlines() if line.startswith("platform_replica_in_use{")]
        return {line.split('"')[1] for line in marked if line.endswith(" 1.0")}

    def left_out(self) -> dict[str, str]:
        """Name of a replica → why the process that is asked leaves it out."""
        text = requests.get(f"{self.platform.base_url}/metrics", timeout=60).text
        return {
            server: reason
            for reason, server in re.findall(r'platform_replica_left_out{reason="(.*)",server="(.*)"} 1', text)
        }

    def examined(self, replicas: list[Server]) -> dict[str, dict[str, Any]]:
        """Name of a replica → what `manage.py doctor` finds, on a node that has these."""
        urls = ",".join(each.url for each in replicas)
        done = subprocess.run(
            [sys.executable, "manage.py", "doctor", "--json"],
            cwd=ROOT, env={**self.platform.environment, "DATABASE_REPLICA_URLS": urls},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        findings = json.loads(done.stdout)["findings"]
        return {each["text"].split()[0].rstrip(":"): each for each in findings if each["topic"] == "replicas"}

    def use(self, replicas: list[Server]) -> bool:
        """Whether exactly these are used, whichever process is asked."""
        return all(self.in_use() == {each.name for each in replicas} for _ in range(8))


class Caller:
    """A session of its own."""

    def __init__(self, replicated: Replicated) -> None:
        platform = replicated.platform
        self._root = platform.odata_url
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        form["scope"] = "read update exec"
        answer = requests.post(f"{platform.base_url}/id/connect/token", form, timeout=60)
        # A connection each time, so that every process answers some.
        self._headers = {"Authorization": f"Bearer {answer.json()['access_token']}", "Connection": "close"}

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        return requests.request(
            method, self._root + path, json=body, headers={**self._headers, **headers}, timeout=60
        )  # fmt: skip

    def create(self, code: str) -> str:
        """The path of a new product group."""
        answer = self.send("POST", GROUPS, {"Code": code, "Name": {"EN": "0"}})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["@odata.id"])

    def write(self, path: str, number: int) -> None:
        answer = self.send("PATCH", path, {"Name": {"EN": str(number)}})
        assert answer.status_code in (200, 204), answer.text

    def poll(self, since: str, wait: int) -> dict[str, Any]:
        """The next events of product groups."""
        query = f"since={since}&wait={wait}&repository=General_Products_ProductGroups"
        answer = self.send("GET", f"../events?{query}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def read(self, path: str) -> int:
        answer = self.send("GET", f"{path}?$select=Name")
        assert answer.status_code == 200, answer.text
        return int(answer.json()["Name"]["EN"])


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    directory = tmp_path_factory.mktemp("replicated") / "data"
    with replicated_servers(2) as (primary, replicas):
        prepare_on_server(directory, primary.url)
        primary.query("UPDATE identity_licence SET sessions = 200")
        settings = {"DATABASE_URL": primary.url, "DATABASE_REPLICA_URLS": ",".join(each.url for each in replicas)}
        with start_platform(directory, settings=settings) as platform:
            found = Replicated(platform, primary, replicas)
            assert eventually(lambda: found.use(replicas), 120)
            yield found


def lag(replicated: Replicated, milliseconds: int) -> None:
    for each in replicated.replicas:
        each.set("recovery_min_apply_delay", f"{milliseconds}ms")


def test_replicas_answer_reads_and_the_primary_everything_else(replicated: Replicated) -> None:
    callers = [replicated.caller() for _ in range(8)]
    path = callers[0].create("REPLICATED")
    assert eventually(lambda: all(each.send("GET", path).status_code == 200 for each in callers))
    before = replicated.reads()
    for _ in range(5):
        for caller in callers:
            assert caller.read(path) == 0
    new = replicated.reads() - before
    assert sum(new.values()) == 40
    assert new["primary"] == 0, new
    assert all(new[each.name] > 0 for each in replicated.replicas), new
    # Within a Domain transaction the primary answers.
    transaction = callers[0].send("POST", "BeginTransaction").text
    assert callers[0].send("GET", path, TransactionId=transaction).status_code == 200
    assert callers[0].send("POST", "EndTransaction", {"commit": False}, TransactionId=transaction).status_code < 300
    assert replicated.reads() == before + new


def test_what_a_session_has_written_it_reads_while_replicas_are_behind(replicated: Replicated) -> None:
    caller, other = replicated.caller(), replicated.caller()
    path = caller.create("BEHIND")
    assert eventually(lambda: other.send("GET", path).status_code == 200)
    lag(replicated, 700)
    try:
        before = replicated.reads()
        for number in range(1, 6):
            caller.write(path, number)
            assert caller.read(path) == number
            assert caller.send("GET", f"{GROUPS}?$filter=Code eq 'BEHIND'&$select=Name").json()["value"][0]["Name"] == {
                "EN": str(number)
            }
        assert (replicated.reads() - before)["primary"] >= 5
        assert eventually(lambda: other.read(path) == 5)
    finally:
        lag(replicated, 0)


def test_a_replica_that_lags_dies_or_hangs_is_left_out_and_taken_back(replicated: Replicated) -> None:
    first, second = replicated.replicas
    callers = [replicated.caller() for _ in range(6)]
    path = callers[0].create("LEFT-OUT")
    number = 0

    def served() -> None:
        nonlocal number
        number += 1
        callers[0].write(path, number)
        for caller in callers[:1] * 3:
            assert caller.read(path) == number
        for caller in callers[1:]:
            assert caller.send("GET", f"{GROUPS}?$top=3").status_code == 200

    def is_left_out() -> bool:
        served()
        return replicated.use([second])

    def is_back() -> bool:
        served()
        return replicated.use([first, second])

    first.query("SELECT pg_wal_replay_pause()")  # lags, as long as something is written
    assert eventually(is_left_out)
    first.query("SELECT pg_wal_replay_resume()")
    assert eventually(is_back)
    first.stop()
    assert eventually(is_left_out)
    first.start()
    assert eventually(is_back)
    first.signal(signal.SIGSTOP)
    try:
        assert eventually(is_left_out)
    finally:
        first.signal(signal.SIGCONT)
    assert eventually(is_back)


def test_a_change_of_rights_holds_although_replicas_do_not_have_it_yet(replicated: Replicated) -> None:
    """What is cached meanwhile must not stay after the replica has it."""
    caller = replicated.caller()
    path = "Systems_Bpm_CustomProperties"
    lag(replicated, 700)
    try:
        made = caller.send(
            "POST", path, {"Code": "LATE", "Name": {"EN": "Late"}, "EntityName": "General_Products_ProductGroups",
                           "PropertyType": "Text"}
        )  # fmt: skip
        assert made.status_code == 201, made.text
        for _ in range(20):
            answer = replicated.caller().send("GET", f"{GROUPS}?$top=1&$select=CustomProperty_LATE")
            assert answer.status_code == 200, answer.text
    finally:
        lag(replicated, 0)
    time.sleep(1)
    for _ in range(10):
        assert caller.send("GET", f"{GROUPS}?$top=1&$select=CustomProperty_LATE").status_code == 200


def test_a_subscriber_reads_what_it_is_told(replicated: Replicated) -> None:
    writer, subscriber = replicated.caller(), replicated.caller()
    path = writer.create("TOLD")
    cursor = subscriber.poll("", 0)["cursor"]
    lag(replicated, 700)
    try:
        for number in range(1, 4):
            writer.write(path, number)
            told = subscriber.poll(cursor, 60)
            cursor = told["cursor"]
            assert [each["type"] for each in told["events"]] == ["General.Products.ProductGroups.Update"]
            assert subscriber.read(path) == number
    finally:
        lag(replicated, 0)


def test_the_table_api_prefers_a_replica(replicated: Replicated) -> None:
    caller = replicated.caller()
    path = caller.create("TABLE")

    def names() -> list[str]:
        answer = caller.send("GET", "../../../tableapi/odata/Gen_Product_Groups?$filter=Code eq 'TABLE'")
        assert answer.status_code == 200, answer.text
        return [str(row["Name"]) for row in answer.json()["value"]]

    before = replicated.reads()
    for number in range(1, 4):
        caller.write(path, number)
        (row,) = names()
        assert str(number) in row
    new = replicated.reads() - before
    assert sum(new[each.name] for each in replicated.replicas) > 0, new
    lag(replicated, 900)
    try:
        caller.write(path, 9)
        assert "9" in names()[0]
    finally:
        lag(replicated, 0)


def test_what_a_count_of_the_table_api_told_is_not_taken_back(replicated: Replicated) -> None:
    """The primary counts; the replicas are behind."""
    writer, reader = replicated.caller(), replicated.caller()
    assert reader.send("GET", f"{GROUPS}?$top=1").status_code == 200
    lag(replicated, 900)
    try:
        writer.create("COUNTED")
        asked = "$filter=Code eq 'COUNTED'"
        counted = reader.send("GET", f"../../../tableapi/odata/Gen_Product_Groups/$count?{asked}")
        assert counted.text == "1"
        assert len(reader.send("GET", f"{GROUPS}?{asked}").json()["value"]) == 1
    finally:
        lag(replicated, 0)


def test_doctor_and_the_home_page_tell_how_replicas_are(replicated: Replicated, chromium: Browser) -> None:
    first, second = replicated.replicas

    assert {each["level"] for each in replicated.examined(replicated.replicas).values()} == {"ok"}
    first.stop()
    try:
        assert eventually(lambda: replicated.use([second]))
        told = replicated.examined(replicated.replicas)
        assert (told[first.name]["level"], told[second.name]["level"]) == ("problem", "ok")
        assert "DATABASE_REPLICA_URLS" in told[first.name]["cure"]
        with administrators_page(chromium, replicated.platform.base_url) as page:
            page.reload()
            card = page.locator("#health-replicas")
            expect(card).to_contain_text("1 of 2")
            expect(card).to_contain_text(second.name)
            expect(card).to_contain_text("0 s behind")
    finally:
        first.start()
    assert eventually(lambda: replicated.use([first, second]))


def test_a_standby_of_another_server_than_the_primary_is_left_out(replicated: Replicated, tmp_path: Path) -> None:
    """A failover: `promoted` becomes the primary, `follower` follows it, and `diverged` goes on with the old one."""
    diverged = replicated.replicas[0]
    with ExitStack() as stack:
        promoted = stack.enter_context(standby_of(replicated.primary))
        follower = stack.enter_context(standby_of(replicated.primary))
        follower.follow(promoted, replicated.primary)
        other, (foreign,) = stack.enter_context(replicated_servers(1))
        promoted.query("SELECT pg_promote()")
        # Their positions are far ahead of those of the new primary.
        for server, count in ((replicated.primary, 2), (other, 24)):
            for _ in range(count):
                server.query("SELECT pg_logical_emit_message(true, '', ''), pg_switch_wal()")
        replicas = [follower, diverged, foreign]
        settings = {"DATABASE_URL": promoted.url, "DATABASE_REPLICA_URLS": ",".join(each.url for each in replicas)}
        shutil.copytree(
            replicated.platform.data_dir, tmp_path / "data", ignore=shutil.ignore_patterns("metrics", "cache")
        )
        platform = stack.enter_context(start_platform(tmp_path / "data", settings=settings))
        node = Replicated(platform, promoted, replicas)
        assert eventually(lambda: node.use([follower]), 120)
        callers = [node.caller() for _ in range(6)]
        for number, caller in enumerate(callers):
            path = caller.create(f"AFTER-{number}")
            assert [caller.read(path) for _ in range(4)] == [0] * 4
        assert {*node.reads()} <= {"primary", follower.name}
        assert node.left_out() == {diverged.name: "other_timeline", foreign.name: "other_cluster"}
        log = "".join(platform.output)
        assert f"The replica {diverged.name} is left out. It has not replayed the primary's timeline" in log
        assert f"The replica {foreign.name} is left out. It is of another cluster" in log
        found = node.examined(replicas)
        assert [found[each.name]["level"] for each in replicas] == ["ok", "problem", "problem"]
        # For the old primary the follower is a standby of another server.
        follower.stop("fast")
        follower.start()  # after which its control file has the timeline
        assert replicated.examined([follower])[follower.name]["level"] == "problem"
        assert not replicated.left_out()


def _violations(replicated: Replicated, operations: int, disturb: Callable[[threading.Event], None]) -> list[str]:
    """What sessions saw that they must not: their own writes missing, or time that goes back."""
    over = threading.Event()
    violations: list[str] = []
    owner = replicated.caller()
    marker = random.randrange(10**9)
    shared = owner.create(f"SHARED-{marker}")
    shared_lock = threading.Lock()
    written = [0]

    def act(number: int) -> None:
        caller = replicated.caller()
        own = caller.create(f"OWN-{marker}-{number}")
        chance = random.Random(marker + number)
        last = seen = 0
        for _ in range(operations // SESSIONS):
            kind = chance.random()
            if kind < 0.15:
                last += 1
                caller.write(own, last)
            elif kind < 0.2:
                with shared_lock:
                    written[0] += 1
                    caller.write(shared, written[0])
                    seen = max(seen, written[0])
            elif kind < 0.6:
                if (found := caller.read(own)) != last:
                    violations.append(f"{own}: {found} instead of {last}")
            else:
                found = caller.read(shared)
                if found < seen:
                    violations.append(f"{shared}: {found} after {seen}")
                seen = max(seen, found)

    disturbing = threading.Thread(target=disturb, args=(over,))
    disturbing.start()
    try:
        with ThreadPoolExecutor(SESSIONS) as pool:
            for done in [pool.submit(act, number) for number in range(SESSIONS)]:
                done.result()
    finally:
        over.set()
        disturbing.join()
    return violations


def _lags_and_ends(replicated: Replicated, *, seed: int) -> Callable[[threading.Event], None]:
    """Replicas are made to lag, pause, end and start again, one at a time."""

    def disturb(over: threading.Event) -> None:
        chance = random.Random(seed)
        while not over.wait(0.2):
            replica = chance.choice(replicated.replicas)
            match chance.randrange(4):
                case 0:
                    replica.set("recovery_min_apply_delay", f"{chance.choice((50, 300, 2000))}ms")
                    over.wait(1.5)
                    replica.set("recovery_min_apply_delay", "0")
                case 1:
                    replica.query("SELECT pg_wal_replay_pause()")
                    over.wait(chance.random())
                    replica.query("SELECT pg_wal_replay_resume()")
                case 2:
                    replica.stop()
                    replica.start()
                case 3:
                    over.wait(1)

    return disturb


def test_no_session_sees_time_go_back_or_its_writes_missing(replicated: Replicated) -> None:
    before = replicated.reads()
    assert _violations(replicated, 900, _lags_and_ends(replicated, seed=1)) == []
    new = replicated.reads() - before
    assert sum(new[each.name] for each in replicated.replicas) > 50, new


@pytest.mark.fuzz
def test_no_violation_in_a_hundred_thousand_operations(replicated: Replicated) -> None:
    before = replicated.reads()
    assert _violations(replicated, 100_000, _lags_and_ends(replicated, seed=random.randrange(10**9))) == []
    print(replicated.reads() - before)
