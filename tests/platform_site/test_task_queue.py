"""The queue between the processes of a task cluster: whoever is killed, the others go on."""

from __future__ import annotations

import multiprocessing
import random
import re
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from platform_site.management.commands.qcluster import ProcessLock, SurvivingEvent, SurvivingQueue
from tests.support.waiting import eventually

pytestmark = pytest.mark.process

fork = multiprocessing.get_context("fork")


def _echo(questions: SurvivingQueue, answers: SurvivingQueue, stopping: SurvivingEvent) -> None:
    while not stopping.is_set():
        answers.put(questions.get())


@pytest.mark.parametrize("size", [10, 3_000, 300_000])
def test_a_task_of_any_length_comes_as_it_was_sent(size: int) -> None:
    questions, answers = SurvivingQueue(), SurvivingQueue()
    echo = fork.Process(target=_echo, args=(questions, answers, SurvivingEvent()), daemon=True)
    echo.start()
    try:
        for letter in "ab":
            questions.put(letter * size)
        assert [answers.get(), answers.get()] == ["a" * size, "b" * size]
    finally:
        echo.kill()
        echo.join()


@pytest.mark.parametrize("kills", [60, pytest.param(2_000, marks=pytest.mark.fuzz)])
def test_who_is_killed_while_it_reads_and_writes_stops_nobody_else(kills: int) -> None:
    """A killed process may lose the tasks it had taken; others take theirs whole, and all that comes afterwards."""
    questions, answers, stopping = SurvivingQueue(), SurvivingQueue(), SurvivingEvent()
    chance = random.Random(kills)

    def started() -> BaseProcess:
        process = fork.Process(target=_echo, args=(questions, answers, stopping), daemon=True)
        process.start()
        return process

    workers = [started() for _ in range(3)]
    sent: dict[int, int] = {}
    came: dict[int, str] = {}

    def send(number: int) -> None:
        sent[number] = chance.choice([1, 900, 5_000])
        questions.put((number, "x" * sent[number]))

    def collect() -> None:
        for number, text in iter(answers.get, "STOP"):
            came[number] = text

    collector = threading.Thread(target=collect, daemon=True)
    collector.start()
    try:
        for number in range(kills * 20):
            send(number)
            if number % 20 == 19:
                victim = workers.pop(0)
                victim.kill()
                victim.join()
                workers.append(started())
        afterwards = range(kills * 20, kills * 20 + 40)
        for number in afterwards:
            send(number)
        assert eventually(lambda: came.keys() >= set(afterwards))
        assert len(came) > kills * 10
        assert all(text == "x" * sent[number] for number, text in came.items())
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        answers.put("STOP")
        collector.join(10)


def _hold_and_wait(held: ProcessLock, waited_for: ProcessLock, holds: SurvivingEvent) -> None:
    """One thread holds a lock, another waits for the other lock, as a worker's do when it reads and answers."""
    with held:
        holds.set()
        waiting = threading.Thread(target=waited_for.acquire)
        waiting.start()
        waiting.join()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="asks the kernel through procfs who waits")
def test_two_processes_whose_threads_wait_for_each_other_are_no_deadlock() -> None:
    """The kernel takes them for one, and refuses the second to wait."""
    first, second, holds = ProcessLock(), ProcessLock(), SurvivingEvent()
    with first:
        other = fork.Process(target=_hold_and_wait, args=(second, first, holds), daemon=True)
        other.start()
        waits = re.compile(rf"-> POSIX .* {other.pid} ")
        assert eventually(lambda: holds.is_set() and waits.search(Path("/proc/locks").read_text()) is not None)
        got = threading.Thread(target=second.acquire)
        got.start()
    got.join(60)
    assert not got.is_alive()
    other.join(60)
    assert other.exitcode == 0


def _watch(event: SurvivingEvent) -> None:
    while not event.is_set():
        pass


def test_who_is_killed_while_it_looks_at_an_event_keeps_it_from_nobody() -> None:
    event = SurvivingEvent()
    assert not event.wait(0.01)
    for _ in range(20):
        watcher = fork.Process(target=_watch, args=(event,), daemon=True)
        watcher.start()
        time.sleep(0.02)
        watcher.kill()
        watcher.join()
    watcher = fork.Process(target=_watch, args=(event,), daemon=True)
    watcher.start()
    event.set()
    watcher.join(60)
    assert watcher.exitcode == 0
    assert event.wait(0)
