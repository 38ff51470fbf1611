"""What the worker process can no longer do: asked of the kernel from outside, and tried from inside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scripts.sandbox import confinement
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool
from scripts.sandbox.process import WorkerProcess

from .conftest import SHORT

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel through procfs")
filtered = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in confinement.AUDIT_ARCH, reason="no filter for this machine"
)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("confined_probe.py")),
                str(ROOT),
                str(theirs.fileno()),
                str(os.getpid()),
            ],
            env={},
            cwd="/",
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        with ours.makefile() as lines:
            text = lines.readline()
        assert process.wait(60) == 0
    return dict(json.loads(text))


@filtered
def test_every_measure_takes_effect_here(report: dict[str, Any]) -> None:
    flags = dict(report["flags"])
    if os.geteuid() != 0:
        flags.pop("unprivileged")
    assert all(flags.values()), flags


@filtered
def test_python_is_refused_everything_from_inside(report: dict[str, Any]) -> None:
    assert "allowed" not in report["python"].values(), report["python"]
    assert report["python"]["fork"] == "EPERM"
    assert report["python"]["open"] == "EPERM"
    assert report["python"]["socket"] == "EPERM"


@filtered
def test_system_calls_are_refused_from_inside(report: dict[str, Any]) -> None:
    assert set(report["system_calls"].values()) == {"EPERM"}, report["system_calls"]


def test_the_environment_is_empty_inside(report: dict[str, Any]) -> None:
    assert set(report["environment"]) <= {"LC_CTYPE"}  # which Python sets for itself


@linux
def test_a_worker_is_seen_confined_from_outside() -> None:
    worker = WorkerProcess(SHORT)
    try:
        assert worker.wait_ready(time.monotonic() + 60)
        proc = Path(f"/proc/{worker.pid}")
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        limits = (proc / "limits").read_text()
        assert status["NoNewPrivs"] == "1"
        assert status["Threads"] == "1"
        assert status["Seccomp"] == "2"
        if os.geteuid() == 0:
            assert status["Uid"].split() == [str(confinement.NOBODY)] * 4
            assert int(status["CapEff"], 16) == 0
            descriptors = [os.readlink(proc / "fd" / name) for name in os.listdir(proc / "fd")]
            assert len(descriptors) == 1
            assert descriptors[0].startswith("socket:")
            assert (proc / "environ").read_bytes() == b""
            assert os.readlink(proc / "cwd") == "/"
        assert os.getpgid(worker.pid) == worker.pid
        mine = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(mine + confinement.NICENESS, 19)
        for name in ("Max open files", "Max processes", "Max file size", "Max core file size"):
            line = next(line for line in limits.splitlines() if line.startswith(name))
            assert line[len(name) :].split()[:2] == ["0", "0"], line
    finally:
        worker.reap()


@linux
def test_a_worker_dies_with_its_host_even_while_it_computes(tmp_path: Path) -> None:
    program = (
        "import sys, threading, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from scripts.sandbox.pool import SandboxPool\n"
        "from scripts.sandbox.limits import Limits\n"
        "pool = SandboxPool(1, Limits(wall_seconds=60, cpu_seconds=60))\n"
        "pool.run('1')\n"
        "print(next(iter(pool._workers)).pid, flush=True)\n"
        "pool.run('for (;;);')\n"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    time.sleep(0.2)
    host.kill()
    host.wait()
    host.stdout.close()
    assert gone(pid, within_seconds=60)


@linux
def test_a_worker_outlives_the_thread_that_first_asked_for_it() -> None:
    with SandboxPool(1, SHORT) as pool:
        thread = threading.Thread(target=pool.run, args=("1",))
        thread.start()
        thread.join()
        time.sleep(0.2)
        workers = set(pool._workers)
        pool.run("1")
        assert workers == pool._workers
        assert all(worker.exit_code(0) is None for worker in workers)


def test_the_address_space_holds_what_the_engine_does_not_count() -> None:
    limits = Limits(memory_bytes=50_000_000)
    with SandboxPool(1, limits) as pool:
        assert pool.run("return 'x'.repeat(2e7).length", mode="function_body").value_json == b"20000000"


@filtered
def test_the_filter_is_written_for_both_architectures() -> None:
    for machine in confinement.AUDIT_ARCH:
        program = confinement.filter_program(machine, 7)
        assert len(program) % 8 == 0
        names = [set(confinement.ALLOWED_SYSCALLS[m]) for m in ("x86_64", "aarch64")]
        assert names[0] - names[1] == {"time"}  # which aarch64 does not have
        assert names[1] <= names[0]


def gone(pid: int, *, within_seconds: float) -> bool:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":  # dead; whoever inherited it has yet to bury it
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False
