"""The queue in Redis: a task is there until it is done (foundation.task_stream)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from django_q.conf import Conf

from foundation import task_stream
from foundation.task_stream import TaskStream
from tests.support.redis_server import redis_of_its_own

pytestmark = pytest.mark.process

_names = itertools.count()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """REDIS_URL."""
    with redis_of_its_own() as url:
        yield url


@pytest.fixture
def stream(url: str, monkeypatch: pytest.MonkeyPatch) -> TaskStream:
    """An empty queue."""
    monkeypatch.setattr(Conf, "REDIS", url)
    monkeypatch.setattr(task_stream, "_BLOCK_MILLISECONDS", 50)
    monkeypatch.setattr(task_stream, "_LOOK_SECONDS", 0.0)
    return TaskStream(f"test-{next(_names)}")


def handed_out(stream: TaskStream) -> list[bytes]:
    """The tasks that are handed out until there is nothing more."""
    return [task for each in iter(stream.dequeue, []) for _, task in each]


def test_tasks_are_handed_out_once_and_in_order(stream: TaskStream) -> None:
    for number in range(3):
        stream.enqueue(f"task {number}")
    assert (stream.queue_size(), stream.lock_size()) == (3, 0)
    assert handed_out(stream) == [b"task 0", b"task 1", b"task 2"]
    assert handed_out(stream) == []
    assert (stream.queue_size(), stream.lock_size()) == (0, 3)


def test_a_task_that_is_not_done_is_handed_out_again_and_a_done_one_is_not(
    stream: TaskStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was killed, or it failed: the cluster acknowledges what was done, and what failed too often."""
    for number in range(2):
        stream.enqueue(f"task {number}")
    ((done, _),) = stream.dequeue()
    assert len(handed_out(stream)) == 1
    stream.acknowledge(done)
    monkeypatch.setattr(Conf, "RETRY", 0)
    ((again, task),) = stream.dequeue()
    assert task == b"task 1"
    stream.acknowledge(again)
    assert handed_out(stream) == []
    assert (stream.queue_size(), stream.lock_size()) == (0, 0)


def test_of_two_clusters_one_gets_an_overdue_task(stream: TaskStream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.enqueue("task")
    assert handed_out(stream) == [b"task"]
    ((entry, _),) = stream.connection.xrange(stream.list_key)
    stream.connection.xclaim(stream.list_key, "clusters", "clusters", 0, [entry], idle=Conf.RETRY * 1000 + 1)
    other = TaskStream(stream.list_key.split(":")[1])
    assert handed_out(other) == [b"task"]
    assert handed_out(stream) == []


def test_a_purged_queue_goes_on(stream: TaskStream) -> None:
    stream.enqueue("old")
    assert handed_out(stream) == [b"old"]
    stream.enqueue("older")
    stream.purge_queue()
    assert (stream.queue_size(), stream.lock_size()) == (0, 0)
    stream.enqueue("new")
    assert handed_out(stream) == [b"new"]
