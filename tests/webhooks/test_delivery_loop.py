"""The task that delivers, as worker processes run it: many at once, a dead host holds up nobody else (spec 06, 6.2)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connections, transaction
from pytest_django import Settings

from tests.support.measuring import slowness
from tests.support.receiver import Answer, LoopbackReceiver
from tests.support.tasks import Worker
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook, reloaded
from tests.webhooks.workers import wait_until
from webhooks import delivery_loop, lease
from webhooks.delivery_loop import DeliveryLoop
from webhooks.lease import Lease
from webhooks.models import WebHookAttempt, WebHookDelivery
from webhooks.send import Outcome, delivery_send

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def running(patience_seconds: float = 5) -> Iterator[threading.Event]:
    """A worker process of a cluster in a thread of this process, which is told often to deliver; set the event to stop
    the cluster.
    """
    stopping = threading.Event()

    def work() -> None:
        try:
            while not stopping.wait(0.02):
                with suppress(RuntimeError):
                    DeliveryLoop(is_stopping=stopping.is_set, patience_seconds=patience_seconds).run()
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield stopping
    finally:
        stopping.set()
        thread.join(patience_seconds + 5)
        assert not thread.is_alive()


@contextmanager
def silent_host() -> Iterator[str]:
    """Accepts connections and never says a word; it hangs up when the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def seconds_to_deliver(receiver: LoopbackReceiver, count: int) -> float:
    """Until so many requests have come; the loop runs."""
    began = time.monotonic()
    receiver.wait_for(count, 60)
    return time.monotonic() - began


def test_a_dead_destination_does_not_slow_the_healthy_ones(
    loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    settings.WEBHOOKS = {"destination_concurrency": 8}
    new_web_hook(f"{loopback_receiver.url}/", code="ALIVE")
    records = [new_currency(f"C{number}") for number in range(40)]
    for record in records:
        new_delivery("ALIVE", record)
    with running():
        alone = seconds_to_deliver(loopback_receiver, 40)
    with ExitStack() as stack, silent_host() as url:
        new_web_hook(url, code="DEAD", RetryLogic="Retry", TimeoutSeconds=120)
        for record in records:
            new_delivery("DEAD", record)
            new_delivery("ALIVE", record)
        stack.enter_context(running())
        beside = seconds_to_deliver(loopback_receiver, 80)
        # All of them, while the first attempts at the dead host still wait for an answer.
        assert not WebHookAttempt.objects.filter(delivery__web_hook_code="DEAD").exists()
        assert WebHookDelivery.objects.filter(web_hook_code="DEAD", state="Delivering").count() == 4
    print(f"40 deliveries in {alone * 1000:.0f} ms alone, {beside * 1000:.0f} ms beside a dead destination")


def test_a_template_that_fails_delays_no_other_template_of_its_host_and_entity(
    loopback_receiver: LoopbackReceiver,
) -> None:
    """Before, both waited in one queue: the second one came after the first one's last retry, 180 seconds later."""
    loopback_receiver.respond_with = lambda request: Answer(500 if request.path == "/down" else 200)
    new_web_hook(f"{loopback_receiver.url}/down", code="DOWN", RetryLogic="Retry")
    new_web_hook(f"{loopback_receiver.url}/up", code="UP")
    record = new_currency()
    for _ in range(2):
        new_delivery("DOWN", record)
        new_delivery("UP", record)
    with running():
        began = time.monotonic()
        wait_until(lambda: WebHookDelivery.objects.filter(web_hook_code="UP", state="Delivered").count() == 2)
        waited = time.monotonic() - began
        wait_until(lambda: WebHookAttempt.objects.filter(delivery__web_hook_code="DOWN").exists())
    print(f"2 deliveries in {waited * 1000:.0f} ms beside a template of the same host and entity that fails")
    # The order within the failing template holds: its second event waits for the first one's retry.
    assert sorted(WebHookDelivery.objects.filter(web_hook_code="DOWN").values_list("state", "attempt_count")) == [
        ("Pending", 0),
        ("Pending", 1),
    ]
    assert waited < 5 * slowness(), "before the first retry of the failing template"


def test_many_templates_of_a_dead_host_leave_workers_to_other_hosts(
    loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    settings.WEBHOOKS = {"concurrency": 8, "destination_concurrency": 4}
    new_web_hook(f"{loopback_receiver.url}/", code="ALIVE")
    records = [new_currency(f"C{number}") for number in range(10)]
    with silent_host() as url:
        for number in range(12):
            new_web_hook(f"{url}/{number}", code=f"DEAD{number}", RetryLogic="Retry", TimeoutSeconds=120)
            for record in records[:2]:
                new_delivery(f"DEAD{number}", record)
        with running():
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivering").count() == 4)
            for record in records:
                new_delivery("ALIVE", record)
            loopback_receiver.wait_for(10)
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivered").count() == 10)
            assert not WebHookAttempt.objects.exclude(delivery__web_hook_code="ALIVE").exists()


def test_it_survives_a_turn_that_fails(loopback_receiver: LoopbackReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    new_web_hook(f"{loopback_receiver.url}/")
    new_delivery("HOOK", new_currency())
    real, failures = lease.deliveries_lease, iter([True])

    def flaky(*arguments: Any) -> Any:
        if next(failures, False):
            raise RuntimeError("the database is restarting")
        return real(*arguments)

    monkeypatch.setattr(delivery_loop, "deliveries_lease", flaky)
    with running():
        loopback_receiver.wait_for(1)
    assert WebHookDelivery.objects.get().state == "Delivered"


def test_an_outcome_that_cannot_be_recorded_keeps_no_other_from_it(loopback_receiver: LoopbackReceiver) -> None:
    new_web_hook(f"{loopback_receiver.url}/")
    gone, other = new_delivery("HOOK", new_currency("AAA")), new_delivery("HOOK", new_currency("BBB"))

    def send(leased: Lease) -> Outcome:
        if leased.delivery_id == str(gone.pk):
            WebHookDelivery.objects.filter(pk=gone.pk).delete()
            connections.close_all()
        return delivery_send(leased)

    def is_delivered() -> bool:
        DeliveryLoop(send, is_stopping=lambda: False).run()  # does nothing soon after the run of another test
        return bool(reloaded(other).state == "Delivered")

    wait_until(is_delivered)
    assert not WebHookAttempt.objects.filter(delivery_id=gone.pk).exists()


def test_a_due_retry_needs_nobody_to_announce_it(loopback_receiver: LoopbackReceiver, settings: Settings) -> None:
    settings.WEBHOOKS = {"retry_seconds": [0.2], "retry_jitter": 0, "sweep_seconds": 0.1}
    loopback_receiver.answer(500)
    new_web_hook(f"{loopback_receiver.url}/", RetryLogic="Retry")
    new_delivery("HOOK", new_currency())
    with running():
        first, second = loopback_receiver.wait_for(2)
        wait_until(lambda: WebHookDelivery.objects.get().state == "Delivered")
    assert second.at - first.at >= 0.2


def test_stopping_takes_no_longer_than_its_patience_and_hands_back_what_was_not_sent(settings: Settings) -> None:
    settings.WEBHOOKS = {"concurrency": 4}
    with silent_host() as url:
        new_web_hook(url, TimeoutSeconds=60)
        for number in range(8):
            new_delivery("HOOK", new_currency(f"C{number}"))
        with running(patience_seconds=0.5) as stopping:
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivering").count() == 4)
            began = time.monotonic()
            stopping.set()
        assert time.monotonic() - began < 30, "it waited for an answer, which may take a minute"
    assert set(WebHookDelivery.objects.values_list("state", "lease_count", "attempt_count")) == {("Pending", 0, 0)}


def test_one_run_leaves_the_other_worker_processes_to_other_tasks(loopback_receiver: LoopbackReceiver) -> None:
    """While it waits for a slow host it sends what becomes due, and the task of another process has nothing to do."""
    others: list[Lease] = []

    def send(lease: Lease) -> Outcome:
        others.append(lease)
        return delivery_send(lease)

    new_web_hook(f"{loopback_receiver.url}/", code="ALIVE")
    with silent_host() as url:
        new_web_hook(url, code="SLOW", TimeoutSeconds=60)
        new_delivery("SLOW", new_currency("SLW"))
        with running(patience_seconds=0.2):
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivering").count() == 1)
            record = new_currency("NEW")
            for count in range(1, 4):
                new_delivery("ALIVE", record)
                DeliveryLoop(send).run()
                loopback_receiver.wait_for(count)
    assert others == []


def test_a_run_that_leases_no_more_calls_the_next(
    loopback_receiver: LoopbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_loop, "LEASE_SECONDS", 0.0)
    monkeypatch.setattr(delivery_loop, "MAX_WAIT_SECONDS", 0.0)
    worker = Worker()
    new_web_hook(f"{loopback_receiver.url}/")
    new_delivery("HOOK", new_currency())
    DeliveryLoop().run()
    assert loopback_receiver.requests == []
    wait_until(lambda: ("webhooks.tasks.deliver",) in worker.take())


@pytest.mark.skipif("broker" not in django_settings.DATABASES, reason="only SQLite's queue has a lock")
def test_a_locked_queue_delays_no_delivery(
    loopback_receiver: LoopbackReceiver, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Before, a run that called another one waited for the queue's lock: nothing was leased or recorded meanwhile."""
    settings.WEBHOOKS = {"destination_concurrency": 8}
    monkeypatch.setattr(delivery_loop, "MAX_WAIT_SECONDS", 0.0)
    new_web_hook(f"{loopback_receiver.url}/", code="ALIVE")
    with silent_host() as url, transaction.atomic(using="broker"):
        new_web_hook(url, code="DEAD", TimeoutSeconds=120)
        for number in range(8):
            new_delivery("DEAD", new_currency(f"D{number}"))
        with running(patience_seconds=0.2):
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivering").count() == 4)
            for number in range(10):
                new_delivery("ALIVE", new_currency(f"C{number}"))
            # Sooner than the busy_timeout, after which that run went on.
            wait_until(lambda: WebHookDelivery.objects.filter(state="Delivered").count() == 10, 15)


@pytest.mark.parametrize("bound", [7, 1000])
def test_workers_that_lease_at_once_never_have_the_same_and_keep_the_bound(settings: Settings, bound: int) -> None:
    """Each with a connection of its own, as processes have; nothing that was leased is recorded."""
    settings.WEBHOOKS = {"destination_concurrency": 2 * bound}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(20):
        record = new_currency(f"C{number}")
        for _ in range(2):
            new_delivery("HOOK", record)
    begin = threading.Barrier(4)
    leased: list[str] = []

    def work() -> None:
        try:
            begin.wait(60)
            while found := lease.deliveries_lease(3):
                leased.extend(each.delivery_id for each in found)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # The second event of each entity waits for the first.
    assert len(set(leased)) == len(leased) == min(bound, 20)
    assert WebHookDelivery.objects.filter(state="Delivering", sequence=1, lease_count=1).count() == len(leased)
    assert not WebHookDelivery.objects.filter(state="Delivering", sequence=2).exists()
