"""The production shape as deploy/run_cluster.sh starts it: two web nodes and two workers behind nginx (spec 09, 9.2).

Runs once, with the suite on PostgreSQL. One cluster serves all tests, in the order of this file.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
import requests

from tests.story.narrator import Narrator
from tests.story.steps import tell
from tests.support.instances import instance_environment, prepared_instance
from tests.support.platform import ROOT, free_port
from tests.support.programs import requires_program
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="the cluster needs PostgreSQL"
    ),
]

PRODUCTS = "api/domain/odata/General_Products_Products?$top=5&$select=PartNumber"
GROUPS = "api/domain/odata/General_Products_ProductGroups"
CLIENTS = 6


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    base_url: str
    web_ports: tuple[int, int]
    data_dir: Path
    database_url: str

    def token(self) -> str:
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        answer = requests.post(f"{self.base_url}/id/connect/token", {**form, "scope": "read update exec"}, timeout=60)
        token: str = answer.json()["access_token"]
        return token

    def pid(self, port: int) -> int:
        return int((self.data_dir / "run" / f"web-{port}.pid").read_text() or 0)

    def serves(self, port: int) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).ok
        except requests.RequestException:
            return False

    def is_back(self, port: int, old_pid: int) -> bool:
        return self.pid(port) != old_pid and self.serves(port)

    def kill(self, port: int) -> None:
        """The node as if the machine had lost its power: supervisor, web server and its processes at once."""
        supervisor = self.pid(port)
        found = subprocess.run(["pgrep", "-P", str(supervisor)], capture_output=True, text=True, check=True)
        os.kill(supervisor, signal.SIGKILL)
        for child in found.stdout.split():
            os.killpg(int(child), signal.SIGKILL)

    def answered(self) -> Counter[str]:
        """Address of the node whose answer was passed on → requests, from nginx's log."""
        counted: Counter[str] = Counter()
        for line in (self.data_dir / "logs" / "access.log").read_text().splitlines():
            found = re.match(r"\S+ \d+ \S+ (.+?) \S+(?:, \S+)* \"", line)
            assert found, line
            counted[found[1].split(", ")[-1]] += 1
        return counted


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    requires_program("nginx", "/usr/sbin/nginx")
    requires_program("redis-server", "valkey-server")
    data_dir = tmp_path_factory.mktemp("cluster") / "data"
    port, redis_port, *web_ports = (free_port() for _ in range(4))
    with prepared_instance(data_dir) as database:
        with psycopg.connect(database["DATABASE_URL"]) as connection:
            # Few slots make the story's last step quick.
            connection.execute("UPDATE identity_licence SET sessions = 8")
        environment = instance_environment(
            data_dir,
            port,
            **database,
            DEMO="1",
            WORKER_PROCESSES="1",
            WEBHOOK_RETRY_SECONDS="1",
        )
        environment |= {"WEB_PORTS": f"{web_ports[0]} {web_ports[1]}", "REDIS_PORT": str(redis_port)}
        script = subprocess.Popen(
            ["deploy/run_cluster.sh"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )  # fmt: skip
        assert script.stdout is not None
        try:
            said = ""
            while "ready\n" not in said:
                line = script.stdout.readline()
                assert line, said
                said += line
            yield Cluster(f"http://127.0.0.1:{port}", (web_ports[0], web_ports[1]), data_dir, database["DATABASE_URL"])
        finally:
            script.terminate()
            said, _ = script.communicate(timeout=120)
    assert script.returncode == 0, said
    assert said.endswith("Stopped.\n"), said


@dataclass
class Load:
    """Clients that read and write without a pause, and what they were answered."""

    cluster: Cluster
    name: str  # begins the codes of what it creates
    clients: int = CLIENTS
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        token = self.cluster.token()
        clients = [threading.Thread(target=self._client, args=(number, token)) for number in range(self.clients)]
        for client in clients:
            client.start()
        try:
            yield
        finally:
            self._over.set()
            for client in clients:
                client.join()

    def _client(self, number: int, token: str) -> None:
        with requests.Session() as http:
            http.headers["Authorization"] = f"Bearer {token}"
            turn = 0
            while not self._over.is_set():
                turn += 1
                self._send(http, f"{self.name}{number}-{turn}" if turn % 2 else "")

    def _send(self, http: requests.Session, code: str) -> None:
        method = "POST" if code else "GET"
        try:
            if code:
                body = {"Code": code, "Name": {"EN": "under load"}}
                answer = http.post(f"{self.cluster.base_url}/{GROUPS}", json=body, timeout=60)
            else:
                answer = http.get(f"{self.cluster.base_url}/{PRODUCTS}", timeout=60)
            self.answers[method, answer.status_code] += 1
        except requests.RequestException as error:
            self.lost.append(f"{method}: {error}")


def story(cluster: Cluster) -> None:
    tell(cluster.base_url, Narrator(io.StringIO()))


def test_requests_are_spread_and_the_story_is_true(cluster: Cluster) -> None:
    story(cluster)
    answered = cluster.answered()
    for port in cluster.web_ports:
        assert answered[f"127.0.0.1:{port}"] > 10, answered


@pytest.mark.parametrize("connections", [8, 16, 64])
def test_the_proxy_gives_each_web_process_half_of_the_requests(cluster: Cluster, connections: int) -> None:
    """Each is an upstream of its own, and callers keep their connections to the proxy open."""
    before = cluster.answered()
    load = Load(cluster, f"B{connections}-", clients=connections)
    with load.running():
        assert eventually(lambda: load.answers.total() >= 5 * connections, 120)
    assert (load.lost, set(load.answers)) == ([], {("GET", 200), ("POST", 201)})
    new = cluster.answered() - before
    answered = [new[f"127.0.0.1:{port}"] for port in cluster.web_ports]
    assert min(answered) >= 0.4 * sum(answered), answered


@contextmanager
def caddy(cluster: Cluster, directory: Path) -> Iterator[str]:
    """The address of deploy/Caddyfile before both nodes, without TLS; each response has the node's address."""
    program, port = requires_program("caddy"), free_port()
    text = (ROOT / "deploy" / "Caddyfile").read_text().replace("{\n\tservers {", "{\n\tadmin off\n\tservers {", 1)
    nodes = " ".join(f"127.0.0.1:{node}" for node in cluster.web_ports)
    # In place of the name `web` of compose.yaml, which a server of names would have to know.
    text, replaced = re.subn(
        r"dynamic a \{.*?\}", f"to {nodes}\n\t\theader_down X-Node {{rp.upstream.hostport}}", text, flags=re.DOTALL
    )
    assert replaced == 1
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (2, 7):  # Debian's, where the directive has its former name
        text = text.replace("request_buffers 4MB", "buffer_requests\n\t\tmax_buffer_size 4MB")
    (directory / "Caddyfile").write_text(text)
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "BASE_URL": address, "HOME": str(directory), "XDG_DATA_HOME": str(directory)}
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [program, "run", "--adapter", "caddyfile", "--config", "Caddyfile"],
            cwd=directory, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            assert eventually(lambda: cluster.serves(port), 30), (directory / "log").read_text()
            yield address
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize("connections", [8, 64])
def test_caddy_gives_each_web_process_half_of_the_requests(cluster: Cluster, tmp_path: Path, connections: int) -> None:
    headers = {"Authorization": f"Bearer {cluster.token()}"}

    def nodes(_: int) -> list[str]:
        with requests.Session() as http:  # a kept connection
            responses = [http.get(f"{address}/{PRODUCTS}", headers=headers, timeout=60) for _ in range(5)]
        assert {response.status_code for response in responses} == {200}
        return [response.headers["X-Node"] for response in responses]

    with caddy(cluster, tmp_path) as address, ThreadPoolExecutor(connections) as executor:
        answered = Counter(node for each in executor.map(nodes, range(connections)) for node in each)
    assert len(answered) == 2, answered
    assert min(answered.values()) >= 0.4 * answered.total(), answered


def test_the_callers_address_is_the_proxys_word_and_metrics_stay_inside(cluster: Cluster) -> None:
    """Asked of a node as a proxy asks; through nginx what a stranger writes there is replaced."""
    headers = {"Authorization": f"Bearer {cluster.token()}", "X-Forwarded-For": "203.0.113.9"}
    requests.get(f"http://127.0.0.1:{cluster.web_ports[0]}/{PRODUCTS}", headers=headers, timeout=60)
    headers = {"Authorization": f"Bearer {cluster.token()}", "X-Forwarded-For": "203.0.113.66"}
    requests.get(f"{cluster.base_url}/{PRODUCTS}", headers=headers, timeout=60)
    with psycopg.connect(cluster.database_url) as connection:
        addresses = {row[0] for row in connection.execute("SELECT client_address FROM identity_session")}
        connection.execute("DELETE FROM identity_session")
    assert addresses == {"203.0.113.9", "127.0.0.1"}
    assert requests.get(f"{cluster.base_url}/metrics", timeout=60).status_code == 404


def test_the_story_is_true_while_a_node_is_killed_and_comes_back(cluster: Cluster) -> None:
    port = cluster.web_ports[0]
    old = cluster.pid(port)
    load = Load(cluster, "K")
    with load.running():
        assert eventually(lambda: load.answers["GET", 200] > CLIENTS, 60)
        cluster.kill(port)
        before = load.answers["GET", 200]
        assert eventually(lambda: load.answers["GET", 200] > before + CLIENTS, 60)
    # A change that was under way on the node that died is not sent again, for it may have been carried out.
    assert set(load.answers) <= {("GET", 200), ("POST", 201), ("POST", 502)}
    assert load.answers["POST", 502] <= CLIENTS
    assert load.lost == []
    story(cluster)
    assert eventually(lambda: cluster.is_back(port, old), 60)


def test_a_graceful_restart_under_load_fails_no_request(cluster: Cluster) -> None:
    load = Load(cluster, "R")
    with load.running():
        # One right after the other, as `systemctl restart` of one node and then the next.
        for port in cluster.web_ports:
            assert eventually(lambda: load.answers["GET", 200] > CLIENTS, 60)
            old = cluster.pid(port)
            os.kill(old, signal.SIGTERM)
            assert eventually(lambda: cluster.is_back(port, old), 120)  # noqa: B023  (called at once)
    assert load.lost == []
    assert set(load.answers) == {("GET", 200), ("POST", 201)}
