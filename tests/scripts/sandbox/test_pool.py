"""The pool: who runs when, what is left behind, what happens when workers die."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from scripts.sandbox import protocol
from scripts.sandbox.errors import (
    SandboxBusy,
    SandboxFault,
    SandboxUnavailable,
    ScriptCrashed,
    ScriptFailed,
    ScriptLimitExceeded,
    ScriptThrew,
)
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool
from scripts.sandbox.run import Run
from tests.support.measuring import slowness

from .conftest import BRIDGE, PATIENT, SHORT, answer

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel through procfs")
SLOW = Limits(wall_seconds=10, cpu_seconds=10)


def children() -> list[int]:
    """Processes of this one, zombies among them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == os.getpid():
                found.append(int(entry.name))
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def at_rest(pool: SandboxPool) -> None:
    """The pool of other tests starts no worker meanwhile; it may bury some."""
    pool.run("1")
    wait_until(lambda: len(pool._workers) == 3)


@linux
@pytest.mark.usefixtures("at_rest")
def test_a_thousand_runs_leave_nothing_behind() -> None:
    gc.collect()
    processes_before, descriptors_before = children(), descriptors()
    with SandboxPool(2, PATIENT) as pool:
        for number in range(1000):
            source = f"globalThis.x{number} = new Array(100).fill(1); console.log(call('add', {number}, 1))"
            assert pool.run(source, prelude=BRIDGE, host_calls=answer).console == str(number + 1)
            if number == 200:
                resident = [worker.resident_bytes() for worker in pool._workers]
                at_work = descriptors()
        assert len(pool._workers) == 3
        grown = max(worker.resident_bytes() for worker in pool._workers) - max(resident)
        assert grown < 4_000_000
        assert descriptors() <= at_work
    assert set(children()) <= set(processes_before)
    assert descriptors() <= descriptors_before


@linux
@pytest.mark.usefixtures("at_rest")
def test_killed_workers_are_replaced_and_buried() -> None:
    processes_before, descriptors_before = children(), descriptors()
    with SandboxPool(2, PATIENT) as pool:
        first = set(pool_pids(pool))
        for _ in range(4):
            with pytest.raises(ScriptLimitExceeded):
                pool.run("for (;;);", limits=Limits(wall_seconds=0.05))
        assert pool.run("return 1", mode="function_body").value_json == b"1"
        wait_until(lambda: len(set(children()) - set(processes_before)) == 3)
        assert len(first & set(pool_pids(pool))) <= 1
    assert set(children()) <= set(processes_before)
    assert descriptors() <= descriptors_before


def test_a_replacement_is_ready_before_it_is_asked_for() -> None:
    with SandboxPool(1, PATIENT) as pool:
        pool.run("1")
        wait_until(lambda: len(pool._workers) == 2)
        spare = next(worker for worker in pool._workers if worker.runs == 0)
        with pytest.raises(ScriptLimitExceeded):
            pool.run("for (;;);", limits=Limits(wall_seconds=0.05))
        pool.run("1")
        assert spare.runs == 1


def test_runs_are_served_in_the_order_of_their_coming() -> None:
    order: list[int] = []
    with SandboxPool(1, SLOW) as pool:
        pool.run("1")
        threads = []
        for number in range(8):
            thread = threading.Thread(
                target=lambda number=number: pool.run(
                    "call('echo', 1)", prelude=BRIDGE, host_calls=lambda m, a: order.append(number)
                )
            )
            threads.append(thread)
        blocker = threading.Thread(target=pool.run, args=("const end = Date.now() + 1500; while (Date.now() < end);",))
        blocker.start()
        wait_until(lambda: pool._at_work == 1)
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda number=number: len(pool._waiting) == number + 1)
        for thread in (blocker, *threads):
            thread.join()
    assert order == list(range(8))


@pytest.mark.alone
def test_a_busy_pool_gives_up_after_the_wait_and_says_when_to_come_again() -> None:
    with SandboxPool(1, SLOW, wait_seconds=0.2) as pool:
        pool.run("1")
        blocker = threading.Thread(target=pool.run, args=("const end = Date.now() + 1500; while (Date.now() < end);",))
        blocker.start()
        wait_until(lambda: pool._at_work == 1)
        begun = time.monotonic()
        with pytest.raises(SandboxBusy) as busy:
            pool.run("1")
        assert 0.15 < time.monotonic() - begun < 2 * slowness()
        assert busy.value.retry_after_seconds >= 1
        blocker.join()
        pool.run("1")


@pytest.mark.alone
def test_too_many_waiting_are_refused_at_once() -> None:
    with SandboxPool(1, SLOW, wait_seconds=5, max_waiting=1) as pool:
        pool.run("1")
        slow = "const end = Date.now() + 1000; while (Date.now() < end);"
        threads = [threading.Thread(target=pool.run, args=(slow,)) for _ in range(2)]
        threads[0].start()
        wait_until(lambda: pool._at_work == 1)
        threads[1].start()
        wait_until(lambda: len(pool._waiting) == 1)
        begun = time.monotonic()
        with pytest.raises(SandboxBusy):
            pool.run("1")
        assert time.monotonic() - begun < 2.5 * slowness()
        for thread in threads:
            thread.join()


def test_many_threads_share_the_pool() -> None:
    with SandboxPool(2, SLOW) as pool, ThreadPoolExecutor(12) as threads:

        def one(number: int) -> bytes:
            return pool.run(
                "return call('add', n, n)",
                mode="function_body",
                parameters={"n": number},
                prelude=BRIDGE,
                host_calls=answer,
            ).value_json

        assert list(threads.map(one, range(200))) == [str(2 * number).encode() for number in range(200)]


def test_one_hostile_client_does_not_stall_another() -> None:
    with SandboxPool(2, PATIENT) as pool:
        pool.run("1")
        stop = threading.Event()

        def attack() -> None:
            while not stop.is_set():
                with pytest.raises(ScriptLimitExceeded):
                    pool.run("for (;;) /(a+)+$/.test('a'.repeat(30) + 'b')", limits=Limits(wall_seconds=0.2))

        attacker = threading.Thread(target=attack)
        attacker.start()
        try:
            longest = 0.0
            for _ in range(60):
                begun = time.monotonic()
                pool.run("1")
                longest = max(longest, time.monotonic() - begun)
                time.sleep(0.01)
        finally:
            stop.set()
            attacker.join()
        assert longest < slowness()  # an attack lasts for ever; this is what a laden machine may add


def test_a_worker_that_died_idle_is_not_noticed_by_the_next_caller() -> None:
    with SandboxPool(1, PATIENT) as pool:
        for _ in range(3):
            pool.run("1")
            for worker in list(pool._workers):
                worker.kill()
                worker.exit_code(5)
            assert pool.run("return 2", mode="function_body").value_json == b"2"


def test_a_worker_that_dies_under_a_script_is_reported_with_its_console() -> None:
    with SandboxPool(1, PATIENT) as pool:

        def shoot(method: str, arguments: list[Any]) -> None:
            for pid in pool_pids(pool):
                os.kill(pid, signal.SIGSEGV)
            time.sleep(0.05)

        with pytest.raises(ScriptCrashed) as crash:
            pool.run("console.log('so far'); call('x')", prelude=BRIDGE, host_calls=shoot)
        assert crash.value.console == "so far"
        assert crash.value.exit_code == -signal.SIGSEGV
        pool.run("1")


def test_workers_shot_at_random_moments_cost_only_their_own_runs() -> None:
    generator = random.Random(7)
    with SandboxPool(2, SLOW) as pool:
        pool.run("1")
        stop = threading.Event()

        def shoot() -> None:
            while not stop.is_set():
                time.sleep(generator.uniform(0, 0.03))
                for pid in pool_pids(pool)[:2]:
                    with suppress(ProcessLookupError):  # it was shot already, and is gone by now
                        os.kill(pid, signal.SIGKILL)

        shooter = threading.Thread(target=shoot)
        shooter.start()
        done = crashed = 0
        try:
            for number in range(60):
                try:
                    result = pool.run(
                        f"return call('add', {number}, 1)", mode="function_body", prelude=BRIDGE, host_calls=answer
                    )
                    assert result.value_json == str(number + 1).encode()
                    done += 1
                except ScriptCrashed:
                    crashed += 1
        finally:
            stop.set()
            shooter.join()
        assert done > 0
        assert done + crashed == 60
        assert pool.run("return 1", mode="function_body").value_json == b"1"


@pytest.mark.parametrize(
    "frames",
    [
        b"garbage that is no frame at all",
        protocol.frame(b"?", b""),
        protocol.frame(protocol.DONE, b"{"),
        protocol.frame(protocol.DONE, b"[]"),
        protocol.frame(protocol.FAILED, b"[1]"),
        protocol.frame(
            protocol.FAILED, b'{"kind": "limit", "limit": "__class__", "message": "", "name": "", "stack": ""}'
        ),
        protocol.frame(protocol.CALL, b"\xff\xff"),
        protocol.frame(protocol.CALL, b"\x00\x01a", b"{}"),
        protocol.FRAME_HEADER.pack(0xFFFFFFFF, protocol.DONE),
        b"",
    ],
    ids=range(10),
)
def test_a_worker_taken_over_by_a_script_cannot_confuse_the_host(frames: bytes) -> None:
    """An engine bug may give a script the whole process: then the host sees frames like these."""
    with SandboxPool(1, PATIENT) as pool:
        pool.run("1")
        worker = pool._acquire()
        ours, theirs = socket.socketpair()
        ours.settimeout(0.02)
        real, worker._socket = worker._socket, ours
        theirs.sendall(frames)
        theirs.shutdown(socket.SHUT_WR)
        run = Run(worker, SHORT, answer)
        with pytest.raises(ScriptFailed):
            run.perform("", b"{}")
        assert not run.reusable
        pool._release(worker, reusable=run.reusable)
        pool._end_call()
        theirs.close()
        real.close()
        assert pool.run("return 1", mode="function_body").value_json == b"1"


def test_an_exception_of_the_host_ends_the_run_and_comes_out() -> None:
    with SandboxPool(1, PATIENT) as pool:

        def fail(method: str, arguments: list[Any]) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            pool.run("try { call('x') } catch (e) { for (;;); }", prelude=BRIDGE, host_calls=fail)
        pool.run("1")


def test_a_prelude_that_throws_is_our_fault() -> None:
    with SandboxPool(1, PATIENT) as pool:
        for prelude in ("throw new Error('ours')", "let let", "return () => { throw new Error('ours') }"):
            with pytest.raises((SandboxFault, ScriptThrew)):
                pool.run("1", prelude=prelude)
        pool.run("1")


def test_time_in_host_calls_counts() -> None:
    with SandboxPool(1, PATIENT) as pool, pytest.raises(ScriptLimitExceeded) as over:
        pool.run(
            "call('x'); call('x'); call('x')",
            prelude=BRIDGE,
            host_calls=lambda method, arguments: time.sleep(0.2),
            limits=Limits(wall_seconds=0.3),
        )
    assert over.value.limit == "wall"


def test_processor_time_is_limited_by_itself() -> None:
    with SandboxPool(1, SLOW) as pool, pytest.raises(ScriptLimitExceeded) as over:
        pool.run("for (;;);", limits=Limits(cpu_seconds=0.1))
    assert over.value.limit == "cpu"


def test_host_calls_are_counted_and_limited() -> None:
    limits = Limits(host_calls=10)
    with SandboxPool(1, PATIENT) as pool:
        source = "for (let i = 0; i < n; i++) call('echo', 1)"
        run = {"mode": "function_body", "prelude": BRIDGE, "host_calls": answer, "limits": limits}
        assert pool.run(source, parameters={"n": 10}, **run).host_call_count == 10  # type: ignore[arg-type]
        with pytest.raises(ScriptLimitExceeded) as over:
            pool.run(source, parameters={"n": 11}, **run)  # type: ignore[arg-type]
    assert over.value.limit == "host_calls"
    assert over.value.allowed == 10


def test_a_run_cannot_have_more_than_the_pool() -> None:
    with SandboxPool(1, SHORT) as pool, pytest.raises(ScriptLimitExceeded) as over:
        pool.run("for (;;);", limits=Limits(wall_seconds=1000, cpu_seconds=1000))
    assert over.value.allowed == SHORT.wall_seconds


@linux
def test_after_a_fork_the_child_has_workers_of_its_own() -> None:
    with SandboxPool(1, PATIENT) as pool:
        pool.run("1")
        wait_until(lambda: len(pool._workers) == 2)
        pids = set(pool_pids(pool))
        child = os.fork()
        if child == 0:
            try:
                works = pool.run("return 1", mode="function_body").value_json == b"1"
                pool.close()
                os._exit(0 if works and not pids & set(pool_pids(pool)) else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool.run("return 2", mode="function_body").value_json == b"2"
        assert set(pool_pids(pool)) == pids


@linux
def test_workers_end_with_their_process_without_being_closed() -> None:
    root = Path(__file__).resolve().parents[3]
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from scripts.sandbox.pool import SandboxPool\n"
        "pool = SandboxPool(2)\n"
        "pool.run('1')\n"
        "print(*[worker.pid for worker in pool._workers])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    for pid in done.stdout.split():
        assert not Path(f"/proc/{pid}").exists()


def test_a_broken_installation_is_told_from_a_busy_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.sandbox.process._engine_path", lambda: "/nonexistent.so")
    with SandboxPool(1, PATIENT, wait_seconds=3) as pool, pytest.raises(SandboxUnavailable, match=r"nonexistent\.so"):
        pool.run("1")


def test_a_host_call_may_run_a_script_itself() -> None:
    """As a rule's script does that runs while another script commits: it must not wait for its own caller."""
    with SandboxPool(1, SLOW, wait_seconds=5) as pool:

        def nest(method: str, arguments: list[Any]) -> Any:
            if arguments[0] == 0:
                return "bottom"
            result = pool.run(
                "return call('nest', n - 1)",
                mode="function_body",
                parameters={"n": arguments[0]},
                prelude=BRIDGE,
                host_calls=nest,
            )
            return orjson.loads(result.value_json)

        with ThreadPoolExecutor(4) as threads:
            outcomes = list(threads.map(lambda _: nest("nest", [3]), range(12)))
        assert outcomes == ["bottom"] * 12
        wait_until(lambda: len(pool._workers) == 2)
        assert (pool._at_work, pool._extra, pool._callers) == (0, 0, {})


def test_a_closed_pool_refuses() -> None:
    pool = SandboxPool(1, PATIENT)
    pool.run("1")
    pool.close()
    pool.close()
    with pytest.raises(SandboxUnavailable):
        pool.run("1")


def test_closing_ends_runs_under_way() -> None:
    pool = SandboxPool(1, SLOW)
    pool.run("1")
    failures: list[ScriptFailed] = []

    def run() -> None:
        try:
            pool.run("for (;;);")
        except ScriptFailed as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    pool.close()
    thread.join(60)
    assert len(failures) == 1


def pool_pids(pool: SandboxPool) -> list[int]:
    return [worker.pid for worker in list(pool._workers)]


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
