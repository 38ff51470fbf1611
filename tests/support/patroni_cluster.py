"""Two servers of PostgreSQL that Patroni keeps, and one of etcd, on this machine, as the samples have them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import requests
import yaml

from tests.deploy.dockerfile import DEPLOY
from tests.support.certificates import certificate_for
from tests.support.platform import free_port
from tests.support.programs import missing, requires_program
from tests.support.waiting import eventually

_SAMPLE = DEPLOY / "patroni"
_PASSWORD = "none"


@dataclass
class Node:
    """One server of PostgreSQL with its Patroni."""

    name: str
    directory: Path
    port: int
    api_port: int

    @property
    def url(self) -> str:
        return f"postgres://platform:{_PASSWORD}@127.0.0.1:{self.port}/platform"

    def state(self) -> dict[str, Any]:
        """What Patroni says of it."""
        try:
            answer: dict[str, Any] = requests.get(f"http://127.0.0.1:{self.api_port}/patroni", timeout=10).json()
        except (requests.RequestException, ValueError):
            return {}
        return answer

    def kill(self) -> None:
        """kill -9 of the server's processes; Patroni goes on."""
        main = int((self.directory / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        found = subprocess.run(["pgrep", "-P", str(main)], capture_output=True, text=True, check=False)
        for process in (main, *map(int, found.stdout.split())):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@dataclass
class PatroniCluster:
    """Two servers, one of which is the primary."""

    nodes: list[Node] = field(default_factory=list)
    made_anew: int = 0

    @property
    def url(self) -> str:
        """DATABASE_URL: whichever is the primary."""
        return self._url("platform")

    @property
    def superuser_url(self) -> str:
        """The same as a superuser, who sees the sessions of others."""
        return self._url("postgres")

    def _url(self, name: str) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgres://{name}:{_PASSWORD}@{hosts}/{name}?target_session_attrs=read-write"

    def primary(self) -> Node | None:
        """The primary; None while there is none, or no standby has everything that it commits."""
        states = [node.state() for node in self.nodes]
        roles = [(state.get("role"), state.get("state"), state.get("sync_standby")) for state in states]
        if sum(role in ("master", "primary") for role, state, _ in roles if state == "running") != 1:
            return None
        if not any(state == "running" and is_synchronous for _, state, is_synchronous in roles):
            return None
        return next(node for node, (role, _, _) in zip(self.nodes, roles, strict=True) if role in ("master", "primary"))

    def make_whole(self) -> None:
        """Wait until the primary may be killed without a loss.

        A standby that has more than the new primary is sometimes started again and again by Patroni 3.0; an operator
        would have it made anew, and so does this.
        """
        for _ in range(4):
            if eventually(self.is_whole, 45):
                return
            for node in self.nodes:
                if node.state().get("role") not in ("master", "primary"):
                    self.made_anew += 1
                    requests.post(f"http://127.0.0.1:{node.api_port}/reinitialize", json={"force": True}, timeout=60)
        raise AssertionError(self.logs())

    def logs(self) -> str:
        """The ends of the logs of Patroni and PostgreSQL."""
        paths = [path for node in self.nodes for path in (node.directory.with_suffix(".log"),)]
        return "\n".join(f"{path.name}: {path.read_text()[-6000:]}" for path in paths)

    def is_whole(self) -> bool:
        """Whether the primary may be killed without a loss."""
        return self.primary() is not None


@contextmanager
def patroni_cluster() -> Iterator[PatroniCluster]:
    """A running cluster, whole; its servers and their data are gone after the block."""
    etcd = requires_program("etcd")
    patroni = requires_program("patroni")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        missing("needs the server programs of PostgreSQL, which this machine lacks")
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="patroni-", ignore_cleanup_errors=True))
        )
        certificate = certificate_for("127.0.0.1", directory)
        certificate.chmod(0o600)
        as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(directory, "postgres")
            shutil.chown(certificate, "postgres")
            as_user = ["runuser", "-u", "postgres", "--"]
        client_port = free_port()
        _run(stack, [*as_user, etcd], directory / "etcd.log", _etcd_environment(directory, client_port))
        cluster = PatroniCluster()
        for number in (1, 2):
            node = Node(f"db-{number}", directory / f"db-{number}", free_port(), free_port())
            cluster.nodes.append(node)
            path = directory / f"db-{number}.yml"
            path.write_text(yaml.safe_dump(_settings(node, client_port, programs[-1].parent, certificate)))
            path.chmod(0o644)
            _run(stack, [*as_user, patroni, str(path)], directory / f"{node.name}.log", {"PATH": os.environ["PATH"]})
        if not eventually(cluster.is_whole, 120):
            raise RuntimeError(f"the cluster did not become whole:\n{cluster.logs()}")
        yield cluster


def _etcd_environment(directory: Path, client_port: int) -> dict[str, str]:
    """The sample's settings with this machine's addresses, for one server."""
    found = dict(re.findall(r"^(ETCD_\w+)=(.*)$", (_SAMPLE / "etcd.env").read_text(), re.M))
    peer, client = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{client_port}"
    for name, value in found.items():
        if "PEER" in name:
            found[name] = peer
        elif value.startswith("http"):
            found[name] = client
    return {
        **found,
        "ETCD_DATA_DIR": str(directory / "etcd"),
        "ETCD_INITIAL_CLUSTER": f"etcd-1={peer}",
        "ETCD_UNSAFE_NO_FSYNC": "true",
        "PATH": os.environ["PATH"],
    }


def _settings(node: Node, client_port: int, programs: Path, certificate: Path) -> dict[str, Any]:
    """The sample with this machine's addresses, quick looks, and a server that waits for no disk."""
    settings: dict[str, Any] = yaml.safe_load((_SAMPLE / "patroni.yml").read_text())
    settings["name"] = node.name
    settings["restapi"] = {"listen": f"127.0.0.1:{node.api_port}", "connect_address": f"127.0.0.1:{node.api_port}"}
    settings["etcd3"] = {"host": f"127.0.0.1:{client_port}"}
    settings["watchdog"] = {"mode": "off"}
    dcs = settings["bootstrap"]["dcs"]
    script = node.directory.parent / "platform.sql"
    script.write_text((_SAMPLE / script.name).read_text().replace("'...'", f"'{_PASSWORD}'"))
    bootstrap = settings["bootstrap"]
    assert "/etc/patroni/platform.sql" in bootstrap["post_bootstrap"]
    bootstrap["post_bootstrap"] = bootstrap["post_bootstrap"].replace("/etc/patroni/platform.sql", str(script))
    dcs |= {"loop_wait": 1, "retry_timeout": 3}
    dcs["postgresql"]["parameters"] |= {"fsync": "off", "full_page_writes": "off", "wal_keep_size": "64MB"}
    dcs["postgresql"]["parameters"] |= {"ssl_cert_file": str(certificate), "ssl_key_file": str(certificate)}
    postgresql = settings["postgresql"]
    postgresql["pg_hba"] = [line.replace("10.0.0.0/24", "127.0.0.1/32") for line in postgresql["pg_hba"]]
    postgresql |= {
        "listen": f"127.0.0.1:{node.port}",
        "connect_address": f"127.0.0.1:{node.port}",
        "data_dir": str(node.directory / "data"),
        "bin_dir": str(programs),
        "pgpass": str(node.directory.with_suffix(".pgpass")),
        "parameters": {"unix_socket_directories": str(node.directory.parent)},
    }
    for role in postgresql["authentication"].values():
        role["password"] = _PASSWORD
    return settings


def _run(stack: ExitStack, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=dict(environment), cwd="/",
            start_new_session=True,
        )  # fmt: skip

    def stop() -> None:
        # Patroni stops its server with itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    stack.callback(stop)


def seconds_until(condition: Any, within: float = 60.0) -> float:
    """How long it took until the condition held."""
    begun = time.monotonic()
    assert eventually(condition, within)
    return time.monotonic() - begun


def answers_writes(url: str) -> bool:
    """Whether the primary can be reached."""
    with suppress(psycopg.Error), psycopg.connect(url, connect_timeout=2) as connection:
        connection.execute("SELECT 1")
        return True
    return False
