"""The request scheduler of a web process (platform_site.serving.scheduler)."""

from __future__ import annotations

import random
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from platform_site.serving import scheduler as module
from platform_site.serving.scheduler import MAX_RUNNING, SERVER_THREADS, Request, Scheduler
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually


class Process:
    """A scheduler and the threads of its server. `begun` has the callers in the order in which their requests began."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.server = ThreadPoolExecutor(SERVER_THREADS)
        self.begun: list[str] = []

    def ask(
        self,
        caller: str,
        work: Callable[[], Any] = lambda: None,
        *,
        disconnects: list[Callable[[], None]] | None = None,
        resolve: Callable[[], str] | None = None,
    ) -> Future[Any]:
        """Submit a request; the future has the result of `work`. `disconnects` is filled with who asks about it."""
        answer: Future[Any] = Future()
        is_taken = threading.Event()

        def whole() -> None:
            self.begun.append(caller)
            is_taken.set()
            try:
                answer.set_result(work())
            except Exception as error:
                answer.set_exception(error)
                raise

        watchers = [] if disconnects is None else disconnects
        request = Request(caller, whole, watchers.append, resolve)

        def submit() -> None:
            if not self.scheduler.submit(request):
                answer.set_exception(BlockingIOError("the queue is full"))
            is_taken.set()

        self.server.submit(submit)
        assert is_taken.wait(60)
        return answer


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process()
    yield made
    made.scheduler.finish(5)
    made.server.shutdown()
    state = made.scheduler
    assert (state._holder, state._queue.tickets(), dict(state._running), state._threads) == (None, [], {}, 0)


@pytest.fixture
def watched(process: Process) -> Process:
    """With the thread that preempts."""
    threading.Thread(target=process.scheduler.watch, daemon=True).start()
    return process


class Blocked:
    """A request that executes until `end`."""

    def __init__(self, process: Process, caller: str = "somebody") -> None:
        self._begun, self._end = threading.Event(), threading.Event()
        self.answer = process.ask(caller, self._work)
        assert self._begun.wait(60)

    def _work(self) -> str:
        self._begun.set()
        assert self._end.wait(60)
        return "ended"

    def end(self) -> None:
        self._end.set()
        assert self.answer.result(60) == "ended"


def blocked_requests(process: Process) -> list[Blocked]:
    """As many requests of the attacker as may run; each was preempted by a request of another caller."""
    blocked = []
    for _ in range(MAX_RUNNING):
        blocked.append(Blocked(process, "attacker"))
        assert process.ask("anna", lambda: 7).result(60) == 7
    return blocked


def test_a_caller_s_own_requests_wait_for_one_another(watched: Process) -> None:
    blocked = Blocked(watched)
    more = watched.ask("somebody")
    time.sleep(module.SLICE_SECONDS * 2)
    assert not more.done()
    blocked.end()
    more.result(60)


def test_one_thread_executes_all_requests_that_wait(process: Process) -> None:
    blocked = Blocked(process)
    answers = [process.ask(f"caller {number}", threading.get_ident) for number in range(5)]
    blocked.end()
    assert len({answer.result(60) for answer in answers}) == 1
    assert eventually(lambda: process.scheduler._threads == 0, 60)


def test_callers_take_turns(process: Process) -> None:
    blocked = Blocked(process)
    answers = [process.ask(each) for each in ["attacker"] * 4 + ["anna", "attacker", "boris", "anna"]]
    blocked.end()
    for answer in answers:
        answer.result(60)
    rest = ["attacker", "anna", "boris", "attacker", "anna", "attacker", "attacker", "attacker"]
    assert process.begun == ["somebody", *rest]


def test_a_long_request_loses_the_slot_and_a_caller_has_few_running(watched: Process) -> None:
    blocked = blocked_requests(watched)
    more = watched.ask("attacker")
    assert watched.ask("anna", lambda: 8).result(60) == 8
    assert not more.done(), "one of the caller's requests has to end before"
    blocked[0].end()
    more.result(60)
    for each in blocked[1:]:
        each.end()


def test_a_request_keeps_the_slot_while_no_other_waits(process: Process) -> None:
    blocked = Blocked(process)
    time.sleep(module.SLICE_SECONDS * 1.5)
    process.scheduler.preempt()
    assert process.scheduler._holder is not None
    blocked.end()


def test_a_request_without_the_slot_defers_to_one_that_has_it(watched: Process, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "DEFER_SECONDS", 5.0)
    order: list[str] = []
    lost, deferring = threading.Event(), threading.Event()

    def long_one() -> None:
        assert lost.wait(60)
        deferring.set()
        watched.scheduler.defer()
        order.append("long")

    def short_one() -> None:
        lost.set()
        assert deferring.wait(60)
        order.append("short")

    answers = [watched.ask("attacker", long_one), watched.ask("anna", short_one)]
    for answer in answers:
        answer.result(60)
    assert order == ["short", "long"]


def test_a_request_that_others_defer_to_keeps_the_slot_for_a_slice_only(watched: Process, monkeypatch: Any) -> None:
    """It may wait for a lock that one of them has."""
    monkeypatch.setattr(module, "DEFER_SECONDS", 60.0)
    has_the_slot, lock = threading.Event(), threading.Event()

    def with_the_lock() -> None:
        assert has_the_slot.wait(60)
        watched.scheduler.defer()
        lock.set()

    def without_it() -> bool:
        has_the_slot.set()
        return lock.wait(60)

    first = watched.ask("attacker", with_the_lock)
    assert watched.ask("anna", without_it).result(60)
    first.result(60)


def test_others_execute_while_requests_wait_outside(process: Process) -> None:
    enough = threading.Event()

    def wait() -> str:
        process.scheduler.release()
        assert enough.wait(60)
        process.scheduler.release()  # a second time does nothing
        return "waited"

    waiting = [process.ask("somebody", wait) for _ in range(5 * MAX_RUNNING)]
    for _ in range(20):
        process.ask("somebody").result(60)
    enough.set()
    assert [answer.result(60) for answer in waiting] == ["waited"] * len(waiting)


def test_a_request_that_fails_leaves_the_others_served(process: Process, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("broken")

    for _ in range(MAX_RUNNING + 1):
        with pytest.raises(ValueError, match="broken"):
            process.ask("somebody", fail).result(60)
    process.ask("somebody").result(60)
    assert eventually(lambda: caplog.text.count("ValueError: broken") == MAX_RUNNING + 1)


def test_a_request_whose_client_has_gone_is_dropped(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Blocked(process)
    disconnects: list[list[Callable[[], None]]] = [[], [], []]
    answers = [process.ask("anna", disconnects=watchers) for watchers in disconnects]
    process.scheduler.watch_clients()
    assert disconnects == [[], [], []], "the requests have just come"
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.0)
    process.scheduler._next_watch = 0.0
    process.scheduler.watch_clients()
    process.scheduler.watch_clients()
    assert [len(watchers) for watchers in disconnects] == [1, 1, 1]
    disconnects[1][0]()
    blocked.end()
    answers[0].result(60)
    answers[2].result(60)
    assert not answers[1].done()
    assert process.begun == ["somebody", "anna", "anna"]


def test_a_caller_has_a_bounded_queue(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED", 2)
    blocked = Blocked(process)
    answers = [process.ask("attacker") for _ in range(3)]
    with pytest.raises(BlockingIOError):
        answers[2].result(60)
    anna = process.ask("anna")
    blocked.end()
    for answer in (*answers[:2], anna):
        answer.result(60)


def test_a_caller_who_becomes_known_has_the_limits_of_the_caller(watched: Process) -> None:
    blocked = blocked_requests(watched)
    more = watched.ask("address", resolve=lambda: "attacker")
    assert watched.ask("address", lambda: 7, resolve=lambda: "anna").result(60) == 7
    assert not more.done()
    blocked[0].end()
    more.result(60)
    for each in blocked[1:]:
        each.end()


@pytest.mark.parametrize("seed", range(6))
def test_every_request_is_answered(watched: Process, seed: int) -> None:
    """Requests that are short, long, wait outside or defer, at random."""
    chance = random.Random(seed)

    def request(kind: int, seconds: float) -> Callable[[], int]:
        def work() -> int:
            if kind == 1:
                time.sleep(seconds * 20)
                watched.scheduler.defer()
            elif kind == 2:
                watched.scheduler.release()
                time.sleep(seconds)
                watched.scheduler.defer()
            elif kind == 3:
                time.sleep(seconds)
            return kind

        return work

    kinds = [chance.randrange(4) for _ in range(300)]
    answers = [watched.ask(f"caller {chance.randrange(5)}", request(kind, chance.random() / 200)) for kind in kinds]
    assert [answer.result(60) for answer in answers] == kinds


@pytest.mark.process
@pytest.mark.once
def test_an_instance_answers_many_clients_at_once(live_platform: LivePlatform) -> None:
    def ask(number: int) -> set[int]:
        return {urllib.request.urlopen(f"{live_platform.base_url}/healthz", timeout=60).status for _ in range(10)}

    with ThreadPoolExecutor(32) as clients:
        assert set().union(*clients.map(ask, range(32))) == {200}
