"""The broker of the task cluster: tasks every few seconds, and the end of a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from django_q.brokers import get_broker
from django_q.signing import SignedPackage

from foundation import cluster
from foundation.cluster import ClusterBroker, cluster_is_stopping
from tests.support.tasks import Worker

pytestmark = pytest.mark.django_db


def taken(broker: Any) -> list[str]:
    """Functions of the tasks that the broker hands out."""
    found = []
    for task_id, packed in broker.dequeue() or ():
        found.append(SignedPackage.loads(packed)["func"])
        broker.acknowledge(task_id)
    return found


def test_an_empty_queue_gets_the_task_that_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    Worker()  # nothing in the queue
    clock = [1000.0]
    monkeypatch.setattr("foundation.cluster.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(cluster, "_repeated", [cluster._Repeated("webhooks.tasks.deliver", lambda: 2.0, 150)])
    broker = get_broker()
    assert isinstance(broker, ClusterBroker)
    assert [taken(broker), taken(broker)] == [[], ["webhooks.tasks.deliver"]], "at the start"
    clock[0] += 1.9
    assert [taken(broker), taken(broker)] == [[], []]
    clock[0] += 0.2
    assert [taken(broker), taken(broker), taken(broker)] == [[], ["webhooks.tasks.deliver"], []]


def test_a_cluster_stops_when_its_pusher_ends_and_runs_when_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[tuple[Any, ...]] = []
    monkeypatch.setattr("foundation.cluster.util.Finalize", lambda *arguments, **options: ends.append(arguments))
    Worker()
    monkeypatch.setattr(cluster, "_repeated", [])
    taken(get_broker())
    assert not cluster_is_stopping()
    _, function, arguments = ends[0]
    function(*arguments)
    assert cluster_is_stopping()
    taken(get_broker())
    assert not cluster_is_stopping()
