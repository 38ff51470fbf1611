"""The primary of PostgreSQL is killed under load; a synchronous standby takes its place (spec 13, 13.3).

Two servers that Patroni keeps, with the settings of deploy/patroni, and an instance with two web processes and a
worker. Each commit of a currency raises its version by one and is told by a webhook (tests.webhooks.test_web_crashes),
so what was heard, what is stored and what was told can be compared.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest
import requests

from tests.support.instances import prepare_on_server
from tests.support.patroni_cluster import Node, PatroniCluster, patroni_cluster
from tests.support.platform import ROOT
from tests.support.receiver import LoopbackReceiver
from tests.support.waiting import eventually
from tests.webhooks.test_web_crashes import _CAST, _SETTINGS, HELD, PATIENCE_SECONDS, SIGNS, WRITERS, Crashing, check

pytestmark = [pytest.mark.process, pytest.mark.once]

GROUPS = "General_Products_ProductGroups"


@dataclass
class FailingOver(Crashing):
    """An instance on a cluster, what its callers were answered, and when."""

    answers: Counter[int] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)
    done_at: float = 0.0

    def request(self, method: str, path: str, body: dict[str, str] | None = None) -> requests.Response | None:
        answer = super().request(method, path, body)
        self.note(answer)
        return answer

    def note(self, answer: requests.Response | None) -> None:
        """Each request is answered: with success, or with 503 and when to come again."""
        if answer is None:
            self.odd.append("no answer")
            return
        self.answers[answer.status_code] += 1
        if answer.status_code < 300:
            self.done_at = time.monotonic()
        elif answer.status_code != 503 or not answer.headers.get("Retry-After"):
            self.odd.append(f"{answer.status_code} {answer.text[:500]}")


@dataclass
class Repeating:
    """A caller that repeats each request with its key until it is answered with success."""

    instance: FailingOver
    created: list[str] = field(default_factory=list)

    def create(self, over: threading.Event) -> None:
        """One product group after the other."""
        assert self.instance.platform is not None
        while not over.is_set():
            code = uuid.uuid4().hex[:16]
            body = {"Code": code, "Name": {"EN": code}}
            headers = {**self.instance.headers, "Idempotency-Key": code}
            while not over.wait(0.05):
                answer = requests.post(
                    self.instance.platform.odata_url + GROUPS, json=body, headers=headers, timeout=60
                )
                self.instance.note(answer)
                if answer.status_code == 201:
                    self.created.append(code)
                    break

    def stored(self) -> list[str]:
        """The codes of all product groups that the database has."""
        assert self.instance.platform is not None
        url: str | None = f"{self.instance.platform.odata_url}{GROUPS}?$select=Code"
        found: list[str] = []
        while url:
            page = requests.get(url, headers=self.instance.headers, timeout=60).json()
            found += [row["Code"] for row in page["value"]]
            url = page.get("@odata.nextLink")
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[PatroniCluster]:
    with patroni_cluster() as made:
        yield made


@contextmanager
def writing(instance: FailingOver, repeating: Repeating, seed: int) -> Iterator[None]:
    """Callers that change currencies and create groups, as long as the block lasts."""
    over = threading.Event()

    def write(number: int) -> None:
        mine, names = random.Random(seed + number), count(1)
        while not over.is_set():
            instance.change(mine.choice(SIGNS[number::WRITERS]), next(names))
            over.wait(0.1)  # so many changes of six entities that their webhooks, one after the other, keep up

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    threads.append(threading.Thread(target=repeating.create, args=(over,)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)


def primary_of(cluster: PatroniCluster) -> Node:
    """The primary, once a standby has all that it commits."""
    cluster.make_whole()
    found = cluster.primary()
    assert found is not None
    return found


def kill_primaries(cluster: PatroniCluster, instance: FailingOver, kills: int, seed: int) -> list[float]:
    """Kill the primary so many times; returns the seconds until the next success of a caller, each time."""
    chance, waits = random.Random(seed), []
    for _ in range(kills):
        primary_of(cluster)
        begun = time.monotonic()
        assert eventually(lambda begun=begun: instance.done_at > begun, PATIENCE_SECONDS)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.5))
        primary_of(cluster).kill()
        killed = time.monotonic()
        assert eventually(lambda: instance.answers[503] > 0, PATIENCE_SECONDS)
        # What was under way may still be answered by the one that is killed.
        assert eventually(lambda killed=killed: instance.done_at > killed + 0.5, PATIENCE_SECONDS)  # type: ignore[misc]
        waits.append(instance.done_at - killed)
    return waits


def survive(cluster: PatroniCluster, directory: Path, receiver: LoopbackReceiver, kills: int, seed: int) -> None:
    servers = ",".join(node.url for node in cluster.nodes)  # the one that is a standby answers reads
    settings = {**_SETTINGS, "DATABASE_URL": cluster.url, "DATABASE_REPLICA_URLS": servers}
    prepare_on_server(directory, cluster.url)
    instance = FailingOver(directory, settings, receiver)
    with instance.running() as platform:
        code = _CAST.replace("URL", receiver.url).replace("HELD", HELD)
        subprocess.run(
            [sys.executable, "manage.py", "shell", "-v0", "-c", code],
            cwd=ROOT, env=dict(platform.environment), check=True,
        )  # fmt: skip
        instance.create()
        # A Domain transaction that is open all the time.
        begun = requests.post(f"{platform.odata_url}BeginTransaction", headers=instance.headers, timeout=60)
        inside = {**instance.headers, "TransactionId": begun.text}
        made = requests.post(
            platform.odata_url + GROUPS, json={"Code": "INSIDE", "Name": {"EN": "Inside"}}, headers=inside, timeout=60
        )
        assert made.status_code == 201, made.text
        repeating = Repeating(instance)
        with writing(instance, repeating, seed):
            waits = kill_primaries(cluster, instance, kills, seed)
        primary_of(cluster)
        if instance.odd:
            print("".join(platform.output))
        assert instance.odd == [], Counter(instance.odd).most_common(5)
        ended = requests.post(f"{platform.odata_url}EndTransaction", json={"commit": True}, headers=inside, timeout=60)
        assert ended.status_code < 300, ended.text
        check(instance)
        stored = repeating.stored()
        assert stored.count("INSIDE") == 1
        assert Counter(stored) >= Counter(repeating.created)
        assert max(Counter(stored).values()) == 1
        print(
            f"{kills} kills, {cluster.made_anew} standbys made anew: {dict(instance.answers)}, "
            f"{len(repeating.created)} created by key; "
            f"seconds to the next success: median {statistics.median(waits):.1f}, at most {max(waits):.1f}"
        )


def test_nodes_and_standbys_are_let_in_with_tls_only(cluster: PatroniCluster) -> None:
    encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = %s OR pid IN (SELECT pid FROM pg_stat_replication)"
    with psycopg.connect(cluster.superuser_url) as connection:
        found = connection.execute(encrypted, [connection.info.backend_pid]).fetchall()
    assert found == [(True,)] * 2
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        psycopg.connect(f"{cluster.url}&sslmode=disable")


def test_nothing_is_lost_when_the_primary_is_killed(
    cluster: PatroniCluster, tmp_path: Path, loopback_receiver: LoopbackReceiver
) -> None:
    survive(cluster, tmp_path / "data", loopback_receiver, kills=2, seed=2)


@pytest.mark.fuzz
def test_nothing_is_lost_in_fifty_kills(
    cluster: PatroniCluster, tmp_path: Path, loopback_receiver: LoopbackReceiver
) -> None:
    survive(cluster, tmp_path / "data", loopback_receiver, kills=50, seed=random.randrange(10**6))
