"""The queue between the processes of a task cluster: whoever is killed, the others go on."""

from __future__ import annotations

import multiprocessing
import random
import threading
from multiprocessing.process import BaseProcess

import pytest

from platform_site.management.commands.qcluster import SurvivingQueue
from tests.support.waiting import eventually

pytestmark = pytest.mark.process

fork = multiprocessing.get_context("fork")


def _echo(questions: SurvivingQueue, answers: SurvivingQueue) -> None:
    while True:
        answers.put(questions.get())


@pytest.mark.parametrize("size", [10, 3_000, 300_000])
def test_a_task_of_any_length_comes_as_it_was_sent(size: int) -> None:
    questions, answers = SurvivingQueue(), SurvivingQueue()
    echo = fork.Process(target=_echo, args=(questions, answers), daemon=True)
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
    questions, answers = SurvivingQueue(), SurvivingQueue()
    chance = random.Random(kills)

    def started() -> BaseProcess:
        process = fork.Process(target=_echo, args=(questions, answers), daemon=True)
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
