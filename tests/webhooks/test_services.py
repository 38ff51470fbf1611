"""What people do with deliveries, by services and commands (spec 06, 6.3)."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from pytest_django import Settings
from standardwebhooks import Webhook

from audit.actors import OPERATOR
from domain.entities.systems_config import WebHook
from domain.model.registry import repositories
from foundation import errors
from foundation.fields import utc_now
from tests.support.receiver import LoopbackReceiver
from tests.support.tasks import Worker
from tests.webhooks.cast import CALLER, deliver_due, new_currency, new_delivery, new_web_hook, reloaded
from webhooks import tasks
from webhooks.breaker import breakers_prune, circuit_failed
from webhooks.conf import webhook_settings
from webhooks.heartbeat import heartbeat_write
from webhooks.lease import deliveries_lease, signing_secrets
from webhooks.models import CircuitBreaker, Queue, WebHookAttempt, WebHookDelivery
from webhooks.selectors import delivery_statistics, workers_problem
from webhooks.services import (
    deliveries_prune,
    deliveries_redeliver,
    delivery_cancel,
    delivery_redeliver,
    send_test,
    signing_secret_remove,
    signing_secret_rotate,
)

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def failed_delivery(loopback_receiver: LoopbackReceiver) -> WebHookDelivery:
    loopback_receiver.answer(500)
    new_web_hook(f"{loopback_receiver.url}/")
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    assert reloaded(delivery).state == "Failed"
    return delivery


def test_a_dead_letter_is_redelivered_with_its_id_and_all_its_retries(loopback_receiver: LoopbackReceiver) -> None:
    delivery = failed_delivery(loopback_receiver)
    assert delivery_redeliver([str(delivery.pk)]) == 1
    assert delivery_redeliver([str(delivery.pk)]) == 0, "it is open now"
    assert deliveries_redeliver(WebHookDelivery.objects.all()) == 0, "whatever the query has found"
    deliver_due()
    assert reloaded(delivery).state == "Delivered"
    first, second = loopback_receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert WebHookAttempt.objects.count() == 2


def test_cancelled_is_not_sent_and_a_running_attempt_is_the_last() -> None:
    new_web_hook("http://127.0.0.1:9/")
    waiting, running = new_delivery("HOOK", new_currency("A")), new_delivery("HOOK", new_currency("B"))
    assert delivery_cancel([str(waiting.pk)]) == 1
    assert len(deliveries_lease(5)) == 1
    assert delivery_cancel([str(running.pk)]) == 1
    assert {reloaded(waiting).state, reloaded(running).state} == {"Cancelled"}


def test_a_test_event_goes_to_the_receiver_once(loopback_receiver: LoopbackReceiver) -> None:
    new_web_hook(f"{loopback_receiver.url}/{{CurrencySign}}", Body='{"new": "{$NewValue}"}', RetryLogic="Retry")
    record = new_currency("EUR")
    new_currency("USD")
    delivery = send_test(context=CALLER, web_hook="hook", entity=record.id)
    newest = send_test(context=CALLER, web_hook="hook")
    deliver_due()
    assert sorted(request.path for request in loopback_receiver.requests) == ["/EUR", "/USD"]
    assert loopback_receiver.requests[0].json() == {"new": "NewValue"}
    assert (reloaded(delivery).is_test, reloaded(newest).max_retries) == (True, 0)


def test_a_test_of_nothing_says_so() -> None:
    with pytest.raises(errors.NotFound):
        send_test(context=CALLER, web_hook="NOTHING")
    new_web_hook("http://127.0.0.1:9/")
    with pytest.raises(errors.Refused, match="no entity"):
        send_test(context=CALLER, web_hook="HOOK")


def test_a_secret_is_rotated_with_an_overlap(loopback_receiver: LoopbackReceiver) -> None:
    new_web_hook(f"{loopback_receiver.url}/", Body='{"a": 1}')
    old = signing_secret_rotate("HOOK", by=OPERATOR)
    new = signing_secret_rotate("HOOK", by=OPERATOR)
    new_delivery("HOOK", new_currency())
    deliver_due()
    (request,) = loopback_receiver.requests
    for secret in (old, new):
        Webhook(secret).verify(request.body, dict(request.headers.items()))
    row = WebHook._default_manager.get()
    assert signing_secrets(row, utc_now()) == (new, old)
    assert signing_secrets(row, utc_now() + timedelta(hours=25)) == (new,)
    signing_secret_remove("HOOK", by=OPERATOR)
    assert signing_secrets(WebHook._default_manager.get(), utc_now()) == ()


def test_finished_deliveries_are_pruned_with_their_attempts(loopback_receiver: LoopbackReceiver) -> None:
    delivery = failed_delivery(loopback_receiver)
    waiting = new_delivery("HOOK", new_currency("USD"))
    assert deliveries_prune() == 0
    assert "removed" in tasks.prune()
    assert run("prune_webhooks", "--days", "0", "--state", "Delivered") == "0 deliveries removed.\n"
    assert json.loads(run("prune_webhooks", "--days", "0", "--json")) == {"removed": 1}
    assert [row.pk for row in WebHookDelivery.objects.all()] == [waiting.pk]
    assert not WebHookAttempt.objects.exists()
    assert delivery.pk != waiting.pk


def test_what_finished_before_the_retention_is_pruned_in_batches_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr("webhooks.services._BATCH", 2)
    settings.WEBHOOKS = {"retention_days": 7}
    new_web_hook("http://127.0.0.1:9/")
    rows = [new_delivery("HOOK", new_currency(f"C{number}")) for number in range(7)]
    for row, days, state in zip(
        rows, (8, 8, 8, 8, 6, 8, 8), (*["Delivered", "Failed", "Cancelled"] * 2, ""), strict=True
    ):
        finished = {"state": state, "finish_time_utc": utc_now() - timedelta(days=days)} if state else {}
        WebHookDelivery.objects.filter(pk=row.pk).update(
            creation_time_utc=utc_now() - timedelta(days=days + 1), **finished
        )
    assert tasks.prune() == "5 webhook deliveries, 0 webhook circuits removed"
    assert list(WebHookDelivery.objects.order_by("pk").values_list("pk", flat=True)) == [rows[4].pk, rows[6].pk]
    with pytest.raises(CommandError, match="negative"):
        run("prune_webhooks", "--days", "-1")


def test_the_command_lists_and_redelivers(loopback_receiver: LoopbackReceiver) -> None:
    delivery = failed_delivery(loopback_receiver)
    assert json.loads(run("redeliver_webhooks", "--dry-run", "--json")) == [
        {"id": str(delivery.pk), "web_hook": "HOOK", "state": "Failed", "error": "500 Internal Server Error"}
    ]
    assert json.loads(run("redeliver_webhooks", "--web-hook", "OTHER", "--json")) == []
    assert json.loads(run("redeliver_webhooks", "--since", "2100-01-01", "--json")) == []
    assert reloaded(delivery).state == "Failed"
    assert "1 deliveries would be sent again" in run("redeliver_webhooks", "--since", "2020-01-31", "--dry-run")
    (sent,) = json.loads(run("redeliver_webhooks", "--since", "2020-01-31", "--json"))
    assert (sent["id"], sent["state"]) == (str(delivery.pk), "Pending")
    assert reloaded(delivery).state == "Pending"
    with pytest.raises(CommandError, match="is not a time"):
        run("redeliver_webhooks", "--since", "yesterday")


def test_the_command_rotates_a_secret() -> None:
    new_web_hook("http://127.0.0.1:9/")
    secret = run("rotate_webhook_secret", "hook").strip()
    assert WebHook._default_manager.get().signing_secret == secret
    run("rotate_webhook_secret", "hook", "--remove")
    assert WebHook._default_manager.get().signing_secret is None
    with pytest.raises(CommandError):
        run("rotate_webhook_secret", "nothing")


def test_statistics_tell_states_and_lag(loopback_receiver: LoopbackReceiver) -> None:
    failed_delivery(loopback_receiver)
    due = new_delivery("HOOK", new_currency("USD")).next_attempt_time_utc
    assert due is not None
    found = delivery_statistics(due + timedelta(seconds=60))
    assert found.by_state["Failed"] == found.by_state["Pending"] == 1
    assert found.lag_seconds == 60


def test_what_waits_for_an_earlier_event_is_not_late() -> None:
    new_web_hook("http://127.0.0.1:9/")
    entity = new_currency()
    earlier, later = new_delivery("HOOK", entity), new_delivery("HOOK", entity)
    now = utc_now()
    due = {earlier: now + timedelta(hours=1), later: now - timedelta(minutes=10)}
    for delivery, moment in due.items():
        WebHookDelivery.objects.filter(pk=delivery.pk).update(next_attempt_time_utc=moment)
    assert delivery_statistics(now).lag_seconds == 0
    delivery_cancel([str(earlier.pk)])
    assert delivery_statistics(now).lag_seconds == 600


def test_a_circuit_is_told_while_it_is_open_or_something_waits_for_it() -> None:
    new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    now = utc_now()
    circuit_failed(Queue(delivery.web_hook_id, delivery.destination), now=now)
    CircuitBreaker.objects.update(open_until=now + timedelta(seconds=30), times_opened=1)
    assert delivery_statistics(now).open_circuits == ("HOOK (127.0.0.1:9)",)
    later = now + timedelta(hours=1)
    assert delivery_statistics(later).open_circuits == ("HOOK (127.0.0.1:9)",)
    delivery_cancel([str(delivery.pk)])
    assert delivery_statistics(now).open_circuits == ("HOOK (127.0.0.1:9)",)
    assert delivery_statistics(later).open_circuits == ()
    assert breakers_prune() == 0
    CircuitBreaker.objects.update(open_until=now)
    assert breakers_prune() == 1


def test_workers_that_live_and_are_late_are_a_problem() -> None:
    new_web_hook("http://127.0.0.1:9/")
    due = new_delivery("HOOK", new_currency()).next_attempt_time_utc
    assert due is not None
    for seconds, problem in ((120, None), (121, "Webhooks are 121 seconds late.")):
        now = due + timedelta(seconds=seconds)
        heartbeat_write("here:1", now=now)
        assert workers_problem(now) == problem


def test_deliveries_are_read_only_repositories_without_secrets() -> None:
    deliveries, attempts = (
        repositories["Systems.Config.WebHookDeliveries"],
        repositories["Systems.Config.WebHookAttempts"],
    )
    assert deliveries.access == attempts.access == "ReadOnly"
    assert "Attempts" in deliveries.collections
    assert "Headers" not in deliveries.attributes
    assert {"State", "RequestURL", "RequestHeaders", "RequestBody", "NextAttemptTimeUtc"} <= set(deliveries.attributes)


def test_schedules_exist_once_however_often_it_migrates() -> None:
    from django.apps import apps
    from django_q.models import Schedule

    from foundation.schedules import ensure_schedules

    broker = "broker" if "broker" in django_settings.DATABASES else "default"
    for _ in range(2):
        ensure_schedules(apps.get_app_config("django_q"), using=broker)
    found = Schedule.objects.filter(name__startswith="webhooks: ").values_list("name", "func")
    assert sorted(found) == [
        ("webhooks: prune", "webhooks.tasks.prune"),
        ("webhooks: sweep", "webhooks.tasks.sweep_due"),
    ]


def test_the_task_delivers_and_the_schedule_enqueues_it(loopback_receiver: LoopbackReceiver) -> None:
    worker = Worker()
    new_web_hook(f"{loopback_receiver.url}/")
    delivery = new_delivery("HOOK", new_currency())
    tasks.deliver(str(delivery.pk))
    tasks.deliver(str(delivery.pk))
    tasks.sweep_due()
    assert worker.take() == [("webhooks.tasks.deliver",)]
    assert len(loopback_receiver.requests) == 1


def test_unknown_settings_are_refused(settings: Settings) -> None:
    settings.WEBHOOKS = {"retries": 3}
    with pytest.raises(ImproperlyConfigured, match="retries"):
        webhook_settings()
