"""The queue between the processes of a task cluster: whoever is killed, the others go on."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from multiprocessing.process import BaseProcess

import pytest

from platform_site.management.commands.qcluster import SurvivingEvent, SurvivingQueue
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
    """A killed process may lose the tasks it had taken; what others send afterwards arrives whole."""
    questions, answers, stopping = SurvivingQueue(), SurvivingQueue(), SurvivingEvent()
    chance = random.Random(kills)

    def started() -> BaseProcess:
        process = fork.Process(target=_echo, args=(questions, answers, stopping), daemon=True)
        process.start()
        return process

    workers = [started() for _ in range(3)]
    came = set[int]()

    def collect() -> None:
        for number, _ in iter(answers.get, "STOP"):
            came.add(number)

    collector = threading.Thread(target=collect, daemon=True)
    collector.start()
    try:
        for number in range(kills * 20):
            questions.put((number, "x" * chance.choice([1, 900, 5_000])))
            if number % 20 == 19:
                victim = workers.pop(0)
                victim.kill()
                victim.join()
                workers.append(started())
        questions.put((-1, "the last"))
        assert eventually(lambda: -1 in came)
        assert len(came) > kills * 10
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        answers.put("STOP")
        collector.join(10)


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
