"""The supervisor against real child processes."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from platform_site.serving import children
from platform_site.serving.children import Child, StartFailed, Supervisor
from platform_site.serving.console import Console
from tests.support.platform import ROOT
from tests.support.waiting import eventually

POLITE = "import time\nprint('up', flush=True)\ntime.sleep(60)"
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"


def running(program: str) -> Callable[[], None]:
    """The main function of a child that runs a program."""
    return lambda: exec(program, {"__name__": "__main__"})


@pytest.fixture
def screen() -> io.StringIO:
    """What the terminal shows."""
    return io.StringIO()


@pytest.fixture
def supervise(screen: io.StringIO) -> Iterator[Callable[..., Supervisor]]:
    """Makes supervisors of Python programs given as text; stops them, and restores the signal handlers."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    made: list[Supervisor] = []

    def make(*programs: str) -> Supervisor:
        supervised = [Child(f"c{number}", running(program)) for number, program in enumerate(programs)]
        made.append(Supervisor(Console(screen), supervised))
        return made[-1]

    yield make
    for supervisor in made:
        supervisor._impatient = True
        supervisor.stop()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_relays_lines_under_the_name_of_the_child(supervise: Callable[..., Supervisor], screen: io.StringIO) -> None:
    supervisor = supervise("print('hello'); print('world'); import time; time.sleep(60)")
    supervisor.start()
    assert supervisor.wait_until(lambda: "world" in screen.getvalue(), timeout_seconds=10)
    assert screen.getvalue() == "c0     | hello\nc0     | world\n"


def test_stopping_ends_every_child(supervise: Callable[..., Supervisor], screen: io.StringIO) -> None:
    supervisor = supervise(POLITE, POLITE)
    supervisor.start()
    supervisor.wait_until(lambda: screen.getvalue().count("up") == 2, timeout_seconds=10)
    supervisor.stop()
    assert [child.process and child.process.exitcode for child in supervisor.children] == [-signal.SIGTERM] * 2


def test_a_child_that_will_not_stop_is_killed_with_all_that_it_started(
    supervise: Callable[..., Supervisor], screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "STOP_TIMEOUT_SECONDS", 0.3)
    spawn = f"import subprocess, sys\ng = subprocess.Popen([sys.executable, '-c', {STUBBORN!r}])\n"
    supervisor = supervise(spawn + "print(g.pid, flush=True)\n" + STUBBORN)
    supervisor.start()
    supervisor.wait_until(lambda: screen.getvalue().count("up") == 2, timeout_seconds=10)
    pid = next(int(word) for word in screen.getvalue().split() if word.isdigit())
    supervisor.stop()
    assert "did not stop in time" in screen.getvalue()
    assert eventually(lambda: not alive(pid))


def test_a_child_that_dies_is_started_again_and_it_says_so(
    supervise: Callable[..., Supervisor], screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "RESTART_DELAY_SECONDS", (0.05,))
    supervisor = supervise(POLITE)
    supervisor.start()
    supervisor.wait_until(lambda: "up" in screen.getvalue(), timeout_seconds=10)
    process = supervisor.children[0].process
    assert process is not None
    process.kill()
    assert supervisor.wait_until(lambda: screen.getvalue().count("up") == 2, timeout_seconds=10)
    assert "The c0 process was killed by SIGKILL; it is started again in 0.05 s." in screen.getvalue()


def test_it_gives_up_when_a_child_cannot_start(
    supervise: Callable[..., Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "RESTART_DELAY_SECONDS", (0.01,))
    supervisor = supervise("raise SystemExit(3)")
    supervisor.start()
    with pytest.raises(StartFailed, match="The c0 process ended with exit status 3, 3 times while starting"):
        supervisor.wait_until(lambda: False, timeout_seconds=20)


def test_it_gives_up_when_nothing_answers(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(POLITE)
    supervisor.start()
    with pytest.raises(StartFailed, match="did not answer"):
        supervisor.wait_until(lambda: False, timeout_seconds=0.2)


def test_restarts_wait_longer_each_time_and_forget_after_a_steady_run(
    supervise: Callable[..., Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = supervise("pass")
    supervisor.start()
    supervisor._ready = True
    child = supervisor.children[0]
    delays = []
    for _ in range(8):
        assert child.process is not None
        child.process.join()
        supervisor._schedule_restart(child, 0.0)
        delays.append(child.restart_at)
    assert delays == [0.5, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    monkeypatch.setattr(children, "STEADY_SECONDS", -1.0)
    child.main = running(POLITE)
    supervisor._spawn(child)
    supervisor._watch()
    assert child.deaths == 0


SUPERVISOR_PROGRAM = textwrap.dedent(
    """
    import sys
    from platform_site.serving.children import Child, Supervisor
    from platform_site.serving.console import Console
    program = sys.argv[1]
    supervisor = Supervisor(Console(), [Child("c", lambda: exec(program, {}))])
    supervisor.start()
    supervisor.run()
    supervisor.stop()
    print("stopped", flush=True)
    """
)
SAY_PID = "import os\nprint(os.getpid(), flush=True)\n"


@pytest.fixture
def running_supervisor() -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int]]]:
    """Starts a supervisor as a process; gives it and the pid of its child."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR_PROGRAM, SAY_PID + program],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[-1])
        assert process.stdout.readline().strip().endswith("up")
        return process, pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_stops_in_order(
    running_supervisor: Callable[[str], tuple[subprocess.Popen[str], int]], number: signal.Signals
) -> None:
    process, child = running_supervisor(POLITE)
    process.send_signal(number)
    output, _ = process.communicate(timeout=10)
    assert output.endswith("stopped\n")
    assert process.returncode == 0
    assert not alive(child)


def test_a_second_interrupt_does_not_wait(
    running_supervisor: Callable[[str], tuple[subprocess.Popen[str], int]],
) -> None:
    process, child = running_supervisor(STUBBORN)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert alive(child)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert not alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells children of a dead parent on Linux only")
def test_a_killed_supervisor_leaves_no_orphan(
    running_supervisor: Callable[[str], tuple[subprocess.Popen[str], int]],
) -> None:
    process, child = running_supervisor(POLITE)
    process.kill()
    assert eventually(lambda: not alive(child))


def test_a_screen_that_is_gone_does_not_matter() -> None:
    stream = io.StringIO()
    console = Console(stream)
    stream.close()
    console.say("nobody hears this")


def test_colours_are_for_screens_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[" in Console(Screen()).paint("web", "web")
    assert Console(io.StringIO()).paint("web", "web") == "web"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Console(Screen()).paint("web", "web") == "web"
