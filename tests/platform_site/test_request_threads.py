"""Callers take turns in a web process, and nobody keeps the turn (foundation.turns, serving.request_threads)."""

from __future__ import annotations

import random
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from foundation.turns import MAX_BEGUN, Turn
from platform_site.serving.request_threads import PATIENCE_SECONDS, RequestThreads
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually


class Client:
    """A client that is there until it goes; the future that tells is the server's."""

    def __init__(self) -> None:
        self.watchers: list[Callable[[Any], None]] = []

    def client_disconnect(self) -> Any:
        return self

    def add_done_callback(self, callback: Callable[[Any], None], context: Any) -> None:
        self.watchers.append(callback)

    def go(self) -> None:
        for callback in self.watchers:
            callback(self)


class Process:
    """A web process: its turn and request threads, without a server."""

    def __init__(self, server_threads: int = 2) -> None:
        self.turn = Turn()
        self.threads = RequestThreads(self.turn, server_threads=server_threads, rest_seconds=5)
        #: In the order in which they began.
        self.begun: list[str] = []
        self._server = ThreadPoolExecutor(server_threads)

    def ask(self, caller: str, work: Callable[[], Any] = lambda: None, client: Client | None = None) -> Future[Any]:
        """A request of the caller, taken by a thread of the server. The answer is that of `work`."""
        answer: Future[Any] = Future()

        def whole() -> None:
            self.begun.append(caller)
            try:
                answer.set_result(work())
            except Exception as error:
                answer.set_exception(error)
                raise

        self._server.submit(self.threads.submit, caller, whole, client or Client())
        return answer

    def is_asked(self, waiting: int) -> bool:
        """Wait until so many requests wait for the turn."""
        return eventually(lambda: self._waiting() == waiting)

    def _waiting(self) -> int:
        return sum(len(line.fresh) + len(line.going_on) for line in list(self.turn._lines.values()))

    def warm(self) -> None:
        """All threads of the server have taken a request."""
        together = threading.Barrier(2)
        for _ in range(2):
            self._server.submit(lambda: (self.threads._may_work(), together.wait(5)))


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process()
    made.warm()
    yield made
    made.threads.stop()
    # Nothing is left behind.
    assert eventually(lambda: made.turn._holder is None)
    assert (made.turn._begun, made.turn._lines, made.turn._threads, made.turn._beside) == ({}, {}, 0, 0)


@pytest.fixture
def watched(process: Process) -> Process:
    """Nobody keeps the turn."""
    threading.Thread(target=process.threads.watch, daemon=True).start()
    return process


class Blocked:
    """A request that keeps the turn until it is told to end."""

    def __init__(self, process: Process, caller: str = "somebody") -> None:
        self._begun, self._end = threading.Event(), threading.Event()
        self.answer = process.ask(caller, self._work)
        assert self._begun.wait(5)

    def _work(self) -> str:
        self._begun.set()
        assert self._end.wait(20)
        return "ended"

    def end(self) -> None:
        self._end.set()
        assert self.answer.result(5) == "ended"


def test_the_thread_that_takes_a_request_works_and_goes_on_with_those_that_have_come(process: Process) -> None:
    blocked = Blocked(process)
    answers = [process.ask(f"caller {number}", threading.get_ident) for number in range(5)]
    assert process.is_asked(5)
    blocked.end()
    assert len({answer.result(5) for answer in answers}) == 1
    assert process.threads._resting == []


def test_the_only_thread_of_the_server_stays_free() -> None:
    """It makes another one only when two requests wait for the first."""
    process = Process(server_threads=2)
    process._server = ThreadPoolExecutor(1)
    threading.Thread(target=process.threads.watch, daemon=True).start()
    blocked = [Blocked(process, caller) for caller in ("attacker", "anna", "boris")]
    for each in blocked:
        each.end()


def test_callers_take_turns(process: Process) -> None:
    blocked = Blocked(process)
    answers = []
    for count, caller in enumerate(["attacker"] * 4 + ["anna", "attacker", "boris", "anna"], 1):
        answers.append(process.ask(caller))
        assert process.is_asked(count)
    blocked.end()
    for answer in answers:
        answer.result(5)
    rest = ["attacker", "anna", "boris", "attacker", "anna", "attacker", "attacker", "attacker"]
    assert process.begun == ["somebody", *rest]


def test_who_works_long_loses_the_turn_to_others(watched: Process) -> None:
    blocked = [Blocked(watched, "attacker") for _ in range(MAX_BEGUN)]
    assert watched.ask("anna", lambda: 7).result(5) == 7
    more = watched.ask("attacker")
    assert not eventually(more.done, 0.2), "one of the caller's requests has to end before"
    assert watched.ask("anna", lambda: 8).result(5) == 8
    blocked[0].end()
    more.result(5)
    for each in blocked[1:]:
        each.end()


def test_who_has_lost_the_turn_waits_for_it_at_the_next_checkpoint(watched: Process) -> None:
    lost, held = threading.Event(), threading.Event()

    def long_one() -> bool:
        assert lost.wait(5)
        assert watched.turn.is_lent
        watched.turn.checkpoint(holds_locks=True)
        assert watched.turn.is_lent, "who holds locks does not wait"
        held.set()
        watched.turn.checkpoint(holds_locks=False)
        return watched.turn.is_mine

    def other() -> None:
        lost.set()
        assert held.wait(5)

    answer = watched.ask("attacker", long_one)
    watched.ask("anna", other).result(5)
    assert answer.result(5) is True


def test_who_stands_aside_lets_one_request_of_each_caller_go_first(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foundation.turns.SHARE_SECONDS", 0.0)
    blocked, told = threading.Event(), threading.Event()

    def long_one() -> None:
        for part in range(3):
            process.begun.append(f"part {part}")
            told.set()
            assert blocked.wait(5)
            process.turn.pass_on()

    long_answer = process.ask("attacker", long_one)
    assert told.wait(5)
    answers = []
    for count, caller in enumerate(("anna", "attacker", "boris", "attacker"), 1):
        answers.append(process.ask(caller))
        assert process.is_asked(count)
    blocked.set()
    for answer in (long_answer, *answers):
        answer.result(5)
    # What has begun goes on before the caller's next request begins, and then by turns.
    order = ["attacker", "part 0", "anna", "part 1", "boris", "attacker", "part 2", "attacker"]
    assert process.begun == order


def test_others_work_while_a_request_waits_outside(process: Process) -> None:
    outside, enough = threading.Event(), threading.Event()

    def wait() -> str:
        process.turn.lend()
        outside.set()
        assert enough.wait(5)
        process.turn.take_again()
        return "waited"

    waiting = [process.ask("somebody", wait) for _ in range(5 * MAX_BEGUN)]
    assert outside.wait(5)
    for _ in range(20):
        process.ask("somebody").result(5)
    enough.set()
    assert [answer.result(5) for answer in waiting] == ["waited"] * len(waiting)


def test_a_request_that_fails_leaves_the_others_served(process: Process, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        process.turn.lend()
        process.turn.take_again()
        raise ValueError("broken")

    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            process.ask("somebody", fail).result(5)
        process.ask("somebody").result(5)
    assert eventually(lambda: caplog.text.count("ValueError: broken") == 3)


def test_a_request_whose_client_has_gone_is_not_begun(process: Process) -> None:
    blocked, clients = Blocked(process), [Client() for _ in range(3)]
    answers = [process.ask("anna", client=client) for client in clients]
    assert process.is_asked(3)
    process.threads.forget_gone(time.monotonic())
    assert [len(client.watchers) for client in clients] == [0, 0, 0], "they have just come"
    later = time.monotonic() + PATIENCE_SECONDS
    process.threads.forget_gone(later)
    process.threads.forget_gone(later)
    assert [len(client.watchers) for client in clients] == [1, 1, 1]
    clients[1].go()
    blocked.end()
    answers[0].result(5)
    answers[2].result(5)
    clients[0].go()
    assert not answers[1].done()
    assert process.begun == ["somebody", "anna", "anna"]


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_left_waiting(watched: Process, seed: int) -> None:
    """Requests that work, work long, wait outside or stand aside, at random: all are answered."""
    chance = random.Random(seed)
    turn = watched.turn

    def request(kind: int, seconds: float) -> Callable[[], int]:
        def work() -> int:
            if kind == 1:
                time.sleep(seconds * 20)
                turn.checkpoint(holds_locks=False)
            elif kind == 2:
                turn.lend()
                time.sleep(seconds)
                turn.take_again(seconds / 10)
            elif kind == 3:
                time.sleep(seconds)
                turn.pass_on(seconds / 10)
            return kind

        return work

    kinds = [chance.randrange(4) for _ in range(300)]
    answers = [watched.ask(f"caller {chance.randrange(5)}", request(kind, chance.random() / 200)) for kind in kinds]
    assert [answer.result(20) for answer in answers] == kinds


def test_threads_without_work_end_when_the_process_stops(process: Process) -> None:
    blocked = Blocked(process)
    outside = threading.Event()

    def wait() -> None:
        process.turn.lend()
        assert outside.wait(5)
        process.turn.take_again()

    answers = [process.ask("somebody", wait) for _ in range(3)]
    blocked.end()
    outside.set()
    for answer in answers:
        answer.result(5)
    assert eventually(lambda: bool(process.threads._resting))
    process.threads.stop()
    assert eventually(lambda: not any(thread.name == "request" for thread in threading.enumerate()))


@pytest.mark.process
@pytest.mark.once
def test_an_instance_answers_many_who_ask_at_once(live_platform: LivePlatform) -> None:
    def ask(number: int) -> set[int]:
        return {urllib.request.urlopen(f"{live_platform.base_url}/healthz", timeout=20).status for _ in range(10)}

    with ThreadPoolExecutor(32) as clients:
        assert set().union(*clients.map(ask, range(32))) == {200}
