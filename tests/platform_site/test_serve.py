"""`manage.py serve` as a process: what `make run` starts."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from tests.support.instances import instance_environment
from tests.support.platform import ROOT, LivePlatform, free_port, start_platform
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.once]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that the tests of this module share: only the first start prepares it."""
    return tmp_path_factory.mktemp("instance")


@pytest.fixture(scope="module")
def platform(data_dir: Path) -> Iterator[LivePlatform]:
    """An instance that the tests share; each leaves it running."""
    with start_platform(data_dir, first_start=True) as running:
        yield running


def members(platform: LivePlatform, program: str) -> list[int]:
    """Process ids of the children of the supervisor that run that program."""
    found = subprocess.run(
        ["pgrep", "-P", str(platform.process.pid), "-f", program], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def answers(platform: LivePlatform) -> bool:
    """Whether the web server is there."""
    try:
        return requests.get(f"{platform.base_url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False


def runs(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended but was not waited for does not."""
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


def test_it_says_where_everything_is(platform: LivePlatform) -> None:
    text = "".join(platform.output)
    for address in ("/", "/admin/", "/api/domain/odata/", "/id/.well-known/openid-configuration"):
        assert f" {platform.base_url}{address}\n" in text
    assert "admin/admin" in text
    assert "curl -s -H" in text
    assert requests.get(f"{platform.base_url}/healthz", timeout=60).status_code == 200


def test_secrets_are_readable_by_their_owner_only(platform: LivePlatform) -> None:
    secrets = [path for path in platform.data_dir.rglob("*key*") if path.is_file() and "static" not in path.parts]
    assert secrets
    assert not [path for path in secrets if path.stat().st_mode & 0o077]


def test_what_an_instance_writes_is_its_users_alone(platform: LivePlatform) -> None:
    # Below these directories names and modes do not matter: nobody else comes in.
    closed = [platform.data_dir, *(path for path in platform.data_dir.rglob("*") if path.parent.name == "metrics")]
    assert len(closed) > 1
    assert not [path for path in closed if path.stat().st_mode & 0o077]
    databases = list(platform.data_dir.glob("*.sqlite3*"))
    assert databases or os.environ.get("REDIS_URL")
    assert not [path.name for path in databases if path.stat().st_mode & 0o077]


@pytest.mark.alone
def test_a_later_start_prepares_nothing(platform: LivePlatform, data_dir: Path) -> None:
    # On PostgreSQL the second start of the same instance finds the same database.
    database = {name: platform.environment[name] for name in ("DATABASE_URL",) if name in platform.environment}
    begun = time.monotonic()
    with start_platform(data_dir, settings=database) as again:
        seconds = time.monotonic() - begun
        text = "".join(again.output)
        assert again.stop() == 0
    assert again.output[-1] == "Stopped.\n"
    assert "Preparing" not in text
    assert "Loading" not in text
    # The promise is five seconds on a machine at rest; other tests run beside this one.
    assert seconds < 30, text


def test_a_dead_web_server_is_started_again(platform: LivePlatform) -> None:
    (web,) = members(platform, "platform: web")
    os.kill(web, signal.SIGKILL)
    said = "The web process was killed by SIGKILL; it is started again"
    # Its workers answer until the supervisor has buried the whole group: wait for the word, then for the new server.
    assert eventually(lambda: any(said in line for line in platform.output))
    assert eventually(lambda: members(platform, "platform: web") not in ([], [web]) and answers(platform), 60)


def test_nothing_goes_on_when_all_that_supervise_are_killed(data_dir: Path) -> None:
    with start_platform(data_dir) as platform:
        supervisor = psutil.Process(platform.process.pid)
        # Web server and cluster, and what they start: two web processes; the cluster's guard, pusher, monitor, workers.
        assert eventually(lambda: len(supervisor.children(recursive=True)) >= 8)
        children, all_of_it = supervisor.children(), supervisor.children(recursive=True)
        for process in (supervisor, *children):
            process.kill()
        grandchildren = set(all_of_it) - set(children)
        assert eventually(lambda: not any(map(runs, grandchildren)), 20), list(filter(runs, grandchildren))


def test_lines_of_the_children_carry_their_names_and_json_is_json(data_dir: Path) -> None:
    with start_platform(data_dir, settings={"LOG_FORMAT": "json"}) as platform:
        requests.get(f"{platform.base_url}/api/nothing", headers={"X-Request-Id": "find-me"}, timeout=60)
        eventually(lambda: any("find-me" in line for line in platform.output))
    (line,) = [line for line in platform.output if "find-me" in line]
    name, _, entry = line.partition("|")
    assert name.strip() == "web"
    assert json.loads(entry)["message"] == "GET /api/nothing 404"


def test_a_port_in_use_is_a_sentence_and_nothing_is_prepared(platform: LivePlatform, tmp_path: Path) -> None:
    port = int(platform.base_url.rpartition(":")[2])
    done = subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=ROOT,
        env=instance_environment(tmp_path / "data", port, DEMO="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"Port {port} on 127.0.0.1 is in use by another program" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_in_a_terminal_stops_everything_started_by_make(data_dir: Path) -> None:
    """In a terminal the signal goes to make, the shell and the supervisor at once; it must count as one."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        # The recipe, without the installing before it.
        os.execvpe(
            "make",
            ["make", "--no-print-directory", "-o", "setup", "run"],
            instance_environment(data_dir, free_port(), DEMO="1", TERM="dumb"),
        )
    seen = b""
    deadline = time.monotonic() + 120
    while b"ready\r\n" not in seen:
        assert time.monotonic() < deadline, seen.decode()
        seen += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    try:
        while chunk := os.read(terminal, 65536):
            seen += chunk
    except OSError:
        pass  # the terminal is closed when its last process has gone
    os.waitpid(pid, 0)
    assert b"Stopped." in seen
    assert b"killed" not in seen


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"HOST": "192.0.2.1"}, "HOST=192.0.2.1, which other machines reach"),
        ({"HOST": "192.0.2.1", "DEMO": "0"}, "HOST 192.0.2.1 is not an address of this machine"),
        ({"HOST": "no such host", "DEMO": "0"}, "'no such host' is not an address of this machine"),
        ({"BASE_URL": "https://erp.example.com"}, "BASE_URL=erp.example.com, which other machines reach"),
        ({"PORT": "70000"}, "PORT must be between 1 and 65535"),
        ({"ENCRYPTION_KEYS": "short"}, "ENCRYPTION_KEYS must be keys of 32 bytes"),
        ({"LICENSE_SESSIONS": "many"}, "LICENSE_SESSIONS must be a whole number"),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT"),
    ],
)
def test_a_start_that_is_refused_leaves_no_files(tmp_path: Path, wrong: dict[str, str], text: str) -> None:
    environment = instance_environment(tmp_path / "new", free_port(), **{"DEMO": "1", **wrong})
    refused = subprocess.run(
        [sys.executable, "manage.py", "serve"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 1
    assert text in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "new").exists()
