"""Deliveries by real `manage.py qcluster` processes to a real receiver on loopback (spec 06, 6.2)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from foundation.fields import utc_now
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook, reloaded
from tests.webhooks.workers import FAST, kill, wait_until, worker
from webhooks.lease import deliveries_lease
from webhooks.models import WebHookAttempt, WebHookDelivery
from webhooks.selectors import workers_alive

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

# A cluster needs seconds to come up, more on a busy machine.
START_SECONDS = 120


def test_a_committed_event_reaches_the_receiver_at_once(loopback_receiver: LoopbackReceiver) -> None:
    """Nobody sweeps here: each commit wakes the worker by itself. How soon is measured by bench/webhooks.py."""
    new_web_hook(f"{loopback_receiver.url}/{{CurrencySign}}")
    with worker({**FAST, "sweep_seconds": 3600}):
        for count, sign in enumerate(("ONE", "TWO", "TRI"), 1):
            with transaction.atomic():
                new_delivery("HOOK", new_currency(sign))
            loopback_receiver.wait_for(count, START_SECONDS)
            wait_until(lambda: not WebHookDelivery.objects.exclude(state="Delivered").exists())
    assert [request.path for request in loopback_receiver.requests] == ["/ONE", "/TWO", "/TRI"]


def test_a_500_is_followed_by_retries_with_the_same_webhook_id(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(500, 500, 200)
    new_web_hook(f"{loopback_receiver.url}/x", RetryLogic="Retry")
    delivery = new_delivery("HOOK", new_currency())
    with worker():
        first, second, third = loopback_receiver.wait_for(3, START_SECONDS)
        wait_until(lambda: reloaded(delivery).state == "Delivered")
    assert {request.headers["webhook-id"] for request in (first, second, third)} == {str(delivery.pk)}
    assert second.at - first.at >= 0.4
    assert third.at - second.at >= 0.8
    attempts = WebHookAttempt.objects.filter(delivery=delivery).order_by("attempt_no")
    assert [(a.attempt_no, a.outcome, a.status_code) for a in attempts] == [
        (1, "Failed", 500),
        (2, "Failed", 500),
        (3, "Delivered", 200),
    ]


def test_what_a_killed_worker_had_leased_is_delivered_when_its_lease_ends(loopback_receiver: LoopbackReceiver) -> None:
    """Also the loss of the queue: nobody tells the second cluster of the delivery, its sweep finds it."""
    loopback_receiver.answer(Answer(200, delay_seconds=5))
    new_web_hook(f"{loopback_receiver.url}/x", TimeoutSeconds=1)
    delivery = new_delivery("HOOK", new_currency())
    with worker() as cluster:
        loopback_receiver.wait_for(1, START_SECONDS)  # leased and sent, not recorded
        kill(cluster)
    assert reloaded(delivery).state == "Delivering"
    with worker():
        first, second = loopback_receiver.wait_for(2, START_SECONDS)
        wait_until(lambda: reloaded(delivery).state == "Delivered")
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_what_was_leased_by_a_worker_that_died_before_sending_is_sent_by_another(
    loopback_receiver: LoopbackReceiver,
) -> None:
    new_web_hook(f"{loopback_receiver.url}/x", TimeoutSeconds=1)
    first, second = (new_delivery("HOOK", record) for record in [new_currency()] * 2)
    assert [lease.delivery_id for lease in deliveries_lease(10)] == [str(first.pk)]
    WebHookDelivery.objects.update(lease_until_utc=utc_now() + timedelta(seconds=1))
    with worker():
        requests = loopback_receiver.wait_for(2, START_SECONDS)
        wait_until(lambda: reloaded(second).state == "Delivered")
    assert [request.headers["webhook-id"] for request in requests] == [str(first.pk), str(second.pk)]
    assert reloaded(first).lease_count == 2


def test_a_stopping_cluster_lets_attempts_under_way_finish(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(200, delay_seconds=0.7))
    new_web_hook(f"{loopback_receiver.url}/x")
    delivery = new_delivery("HOOK", new_currency())
    with worker() as cluster:
        loopback_receiver.wait_for(1, START_SECONDS)
        assert workers_alive()
        cluster.terminate()
        cluster.wait(60)
    assert reloaded(delivery).state == "Delivered"
    assert workers_alive() == []
