"""One of a web process's threads serves as long as it can (platform_site.serving.standby)."""

from __future__ import annotations

import random
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from foundation.turns import Turn
from platform_site.serving.standby import Standby
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually


class Server:
    """Threads as granian has them: one more whenever a request waits, gone after a time with nothing to do."""

    def __init__(self, standby: Standby, most: int = 8, idle_seconds: float = 30) -> None:
        self._serve = standby.serving(lambda protocol, work: self._answer(protocol, work["work"]))
        self._most = most
        self._idle_seconds = idle_seconds
        self._requests: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self.threads = 0
        self.free = 0

    def ask(self, work: Callable[[], Any]) -> Future[Any]:
        """Who worked, and what it gave."""
        answer: Future[Any] = Future()
        self._requests.put((answer, work))
        with self._lock:
            if self.threads < self._most and not self._requests.empty():
                self.threads += 1
                threading.Thread(target=self._run, daemon=True).start()
        return answer

    def warm(self) -> None:
        """All threads have served once; one of them is free now."""
        together = threading.Barrier(self._most)
        for answer in [self.ask(together.wait) for _ in range(self._most)]:
            answer.result(20)
        assert eventually(lambda: self.free == 1)

    def _run(self) -> None:
        while True:
            with self._lock:
                self.free += 1
            try:
                answer, work = self._requests.get(timeout=self._idle_seconds)
            except Empty:
                with self._lock:
                    self.threads -= 1
                return
            finally:
                with self._lock:
                    self.free -= 1
            try:
                self._serve(answer, {"work": work})
            except Exception as exc:
                # A server answers for the application when that has ended.
                answer.set_exception(exc)

    @staticmethod
    def _answer(answer: Future[Any], work: Callable[[], Any]) -> None:
        answer.set_result((threading.get_ident(), work()))


@pytest.fixture
def standby() -> Standby:
    """Nobody comes back by itself while a test goes on."""
    return Standby(rest_seconds=60)


@pytest.fixture
def turn(standby: Standby) -> Turn:
    """The turn of the process whose threads these are."""
    turn = Turn()
    turn.reserve = standby
    return turn


def test_one_thread_serves_whoever_asks(standby: Standby, turn: Turn) -> None:
    server = Server(standby)

    def work() -> None:
        with turn:
            time.sleep(0.001)

    server.warm()
    at_rest = [server.ask(work).result(5)[0] for _ in range(20)]
    assert len(set(at_rest)) == 1
    busy = [server.ask(work) for _ in range(50)]
    assert {answer.result(5)[0] for answer in busy[10:]} == set(at_rest)


def test_who_waits_outside_is_stood_in_for(standby: Standby, turn: Turn) -> None:
    server = Server(standby)
    outside, enough = threading.Event(), threading.Event()

    def wait() -> str:
        with turn:
            turn.lend()
            outside.set()
            enough.wait(5)
            turn.lock_again(None)
        return "waited"

    def work() -> None:
        with turn:
            pass

    server.warm()
    waiting = [server.ask(wait) for _ in range(5)]
    outside.wait(5)
    for _ in range(20):
        server.ask(work).result(5)
    enough.set()
    assert [answer.result(5)[1] for answer in waiting] == ["waited"] * 5
    server.ask(work).result(5)


def test_a_failing_request_is_answered_at_once_and_leaves_the_others_served(standby: Standby, turn: Turn) -> None:
    """The server answers for it when it has ended, so its thread must not stand by before."""
    server = Server(standby, most=3)
    enough = threading.Event()

    def fail() -> None:
        with turn:
            turn.lend()
            enough.wait(5)
            turn.lock_again(None)
            raise ValueError("broken")

    server.warm()
    for _ in range(5):
        enough.clear()
        failing = server.ask(fail)
        server.ask(lambda: None).result(5)  # by who stands in, and is free again
        assert eventually(lambda: server.free == 1)
        enough.set()
        with pytest.raises(ValueError, match="broken"):
            failing.result(5)
    server.ask(lambda: None).result(5)


def test_threads_that_ended_are_not_counted_on(standby: Standby, turn: Turn) -> None:
    """A server lets threads end that have nothing to do; who comes then must not stand by for one of those."""
    server = Server(standby, most=2, idle_seconds=0.1)
    for _ in range(3):
        for answer in [server.ask(lambda: None) for _ in range(10)]:
            answer.result(5)
        assert eventually(lambda: server.free == 0)


@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_left_waiting(standby: Standby, turn: Turn, seed: int) -> None:
    """Requests that work, wait outside, wait before their turn or share it, at random: all are answered."""
    server = Server(standby, most=6)
    chance = random.Random(seed)

    def request(kind: int, seconds: float) -> Callable[[], int]:
        def work() -> int:
            if kind == 1:
                time.sleep(seconds * 5)
            with turn:
                if kind == 2:
                    turn.lend()
                    time.sleep(seconds)
                    turn.lock_again(seconds)
                if kind == 3:
                    standby.step_aside()
            return kind

        return work

    kinds = [chance.randrange(4) for _ in range(300)]
    answers = []
    for kind in kinds:
        answers.append(server.ask(request(kind, chance.random() / 500)))
        if chance.random() < 0.1:
            answers[-1].result(5)
    assert [answer.result(5)[1] for answer in answers] == kinds


@pytest.mark.parametrize("long_ones", [2, 5])
def test_requests_that_wait_by_turns_do_not_seem_to_be_there(standby: Standby, turn: Turn, long_ones: int) -> None:
    """Each is about to work again nearly all the time; none of them will take a request before it is done."""
    server = Server(standby, most=8)
    done = threading.Event()

    def long_one() -> None:
        with turn:
            while not done.is_set():
                time.sleep(0.002)
                turn.lend()
                time.sleep(0.0005)
                turn.lock_again(None)

    def short_one() -> None:
        with turn:
            pass

    server.warm()
    running = [server.ask(long_one) for _ in range(long_ones)]
    try:
        for _ in range(30):
            server.ask(short_one).result(5)
    finally:
        done.set()
    for answer in running:
        answer.result(5)


def test_who_was_not_called_looks_for_itself() -> None:
    standby = Standby(rest_seconds=0.05)
    standby._ready += 1  # somebody who seems to be there, and is not
    server = Server(standby, most=1)
    for _ in range(3):
        server.ask(lambda: None).result(2)


def test_who_stands_by_goes_when_the_process_is_to_end(standby: Standby, turn: Turn) -> None:
    """The server waits for its threads."""
    server = Server(standby, most=4)
    server.warm()
    standby.stop()
    assert eventually(lambda: server.free == 4)


@pytest.mark.process
@pytest.mark.once
def test_an_instance_answers_many_who_ask_at_once(live_platform: LivePlatform) -> None:
    def ask(number: int) -> set[int]:
        return {urllib.request.urlopen(f"{live_platform.base_url}/healthz", timeout=20).status for _ in range(10)}

    with ThreadPoolExecutor(32) as clients:
        assert set().union(*clients.map(ask, range(32))) == {200}
