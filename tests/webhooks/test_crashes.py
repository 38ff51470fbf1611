"""Whatever is killed, every committed event arrives in its order, and none of a rolled back change (spec 06, 6.2)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from contextlib import suppress

import pytest
from django.db import transaction

from domain.dataset.records.record import Record
from tests.support.processes import processes_below
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from tests.webhooks.workers import FAST, wait_until, worker
from webhooks.models import WebHookDelivery

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

ENTITIES = 10


class _Undone(Exception):
    pass


def kill_at_random(cluster: subprocess.Popen[bytes], chance: random.Random, kills: int, done: threading.Event) -> None:
    """kill -9 of workers, pushers and monitors, until there were so many."""
    while kills and not done.wait(chance.uniform(0.05, 0.3)):
        victims = processes_below(cluster.pid)
        if victims:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
                kills -= 1


def change(record: Record, chance: random.Random, committed: dict[str, list[str]]) -> None:
    """An event of the entity in a database transaction of its own, a third of which are rolled back."""
    with suppress(_Undone), transaction.atomic():
        delivery = new_delivery("HOOK", record)
        if chance.random() < 1 / 3:
            raise _Undone
        committed[record.id].append(str(delivery.pk))


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.fuzz)])
def test_random_kills_under_load(loopback_receiver: LoopbackReceiver, kills: int) -> None:
    chance = random.Random(kills)
    loopback_receiver.default = Answer(delay_seconds=0.03)  # long enough to be killed in
    new_web_hook(f"{loopback_receiver.url}/{{Id}}", TimeoutSeconds=1)
    records = [new_currency(f"C{number}") for number in range(ENTITIES)]
    committed: dict[str, list[str]] = {record.id: [] for record in records}
    done = threading.Event()
    with worker({**FAST, "lost_leases_max": 10_000}) as cluster:
        wait_until(lambda: bool(processes_below(cluster.pid)))
        killer = threading.Thread(target=kill_at_random, args=(cluster, chance, kills, done))
        killer.start()
        while killer.is_alive():
            change(chance.choice(records), chance, committed)
            killer.join(0.005)
        for record in records:
            change(record, chance, committed)
        wait_until(lambda: not WebHookDelivery.objects.exclude(state="Delivered").exists(), 60)
        done.set()
    firsts: dict[str, list[str]] = {}
    for request in loopback_receiver.requests:
        arrived = firsts.setdefault(request.path[1:], [])
        if request.headers["webhook-id"] not in arrived:
            arrived.append(request.headers["webhook-id"])
    assert firsts == {entity: ids for entity, ids in committed.items() if ids}
    repeated = len(loopback_receiver.requests) - sum(map(len, committed.values()))
    print(f"{kills} kills, {sum(map(len, committed.values()))} committed events, {repeated} repeated deliveries")
