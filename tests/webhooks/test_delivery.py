"""Leases, attempts and what becomes of them; time is given, nothing waits (spec 06, 6.2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from foundation.fields import utc_now
from identity.models import User
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import deliver_due, new_currency, new_delivery, new_web_hook, reloaded
from webhooks.lease import Lease, deliveries_lease, leases_expire, leases_release
from webhooks.models import CircuitBreaker, TemplateHealth, WebHookAttempt, WebHookDelivery
from webhooks.record import deliveries_record
from webhooks.selectors import delivery_statistics
from webhooks.send import Outcome
from webhooks.suspension import deliveries_suspend, web_hook_resume

pytestmark = pytest.mark.django_db

# Later than anything that a test creates is due.
NOW = utc_now() + timedelta(hours=1)


def outcome(**values: Any) -> Outcome:
    """How an attempt ended; without values, well."""
    given: dict[str, Any] = {"started_at": NOW, "duration_ms": 1, "delivered": not values}
    if not values:
        given["status"] = 200
    given.update(values)
    return Outcome(**given)


def leases(now: Any = NOW, limit: int = 100) -> list[Lease]:
    return deliveries_lease(limit, now=now)


def finish(lease: Lease, now: Any = NOW, **values: Any) -> None:
    deliveries_record([(lease, outcome(**values))], now=now)


# --- leasing -----------------------------------------------------------------------------------------------------


def test_a_delivery_is_leased_once() -> None:
    new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    (lease,) = leases()
    assert lease.delivery_id == str(delivery.pk)
    assert leases() == []


def test_later_events_of_an_entity_wait_for_the_earlier_and_other_entities_do_not() -> None:
    new_web_hook("http://127.0.0.1:9/")
    first, other = new_currency("EUR"), new_currency("USD")
    one, two, three = (new_delivery("HOOK", record) for record in (first, first, other))
    found = leases()
    assert {lease.delivery_id for lease in found} == {str(one.pk), str(three.pk)}
    finish(next(lease for lease in found if lease.delivery_id == str(one.pk)), status=500, error="500")
    assert [lease.delivery_id for lease in leases()] == [str(two.pk)]
    assert reloaded(one).state == "Failed"
    assert reloaded(two).state == "Delivering"


def test_while_the_earlier_waits_for_its_retry_the_later_waits_too() -> None:
    new_web_hook("http://127.0.0.1:9/", RetryLogic="Retry")
    record = new_currency()
    one, two = new_delivery("HOOK", record), new_delivery("HOOK", record)
    finish(leases()[0], status=500, error="500")
    assert leases() == []
    later = NOW + timedelta(seconds=10)
    (retry,) = leases(later)
    assert (retry.delivery_id, retry.attempt_no) == (str(one.pk), 2)
    finish(retry, later)
    assert [lease.delivery_id for lease in leases(later)] == [str(two.pk)]


def test_order_holds_per_template_only() -> None:
    new_web_hook("http://127.0.0.1:9/", code="A")
    new_web_hook("http://127.0.0.1:9/other", code="B")
    record = new_currency()
    new_delivery("A", record)
    new_delivery("B", record)
    assert len(leases()) == 2


def test_attempts_to_one_destination_are_bounded(settings: Settings) -> None:
    settings.WEBHOOKS = {"destination_concurrency": 4}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(5):
        new_delivery("HOOK", new_currency(f"C{number}"))
    found = leases()
    assert len(found) == 2
    assert leases() == []
    finish(found[0])
    assert len(leases()) == 1


def test_a_template_leaves_room_for_others_of_its_destination(settings: Settings) -> None:
    """Each takes half of what the others leave; together never more than the destination's limit."""
    settings.WEBHOOKS = {"destination_concurrency": 8}
    records = [new_currency(f"C{number}") for number in range(6)]
    taken = []
    for code in ("A", "B", "C", "D", "E", "F"):
        new_web_hook(f"http://127.0.0.1:9/{code}", code=code)
        for record in records:
            new_delivery(code, record)
        taken.append([lease.web_hook_code for lease in leases()])
    assert taken == [["A"] * 4, ["B"] * 2, ["C"], ["D"], [], []]


def test_a_long_queue_starves_no_other_destination(settings: Settings) -> None:
    settings.WEBHOOKS = {"destination_concurrency": 6}
    new_web_hook("http://127.0.0.1:9/", code="LONG")
    new_web_hook("http://127.0.0.1:10/", code="SHORT")
    for number in range(20):
        new_delivery("LONG", new_currency(f"C{number}"))
    new_delivery("SHORT", new_currency("S"))
    assert sorted(lease.web_hook_code for lease in leases(limit=4)) == ["LONG", "LONG", "LONG", "SHORT"]


def test_a_lease_that_ends_makes_it_due_again_and_the_late_record_changes_nothing() -> None:
    new_web_hook("http://127.0.0.1:9/", TimeoutSeconds=3)
    delivery = new_delivery("HOOK", new_currency())
    (lost,) = leases()
    assert leases_expire(NOW + timedelta(seconds=22)) == 0
    later = NOW + timedelta(seconds=24)
    assert leases_expire(later) == 1
    (again,) = leases(later)
    assert again.attempt_no == 1, "an attempt without an outcome uses up no retry"
    finish(lost, status=500, error="late")
    assert reloaded(delivery).state == "Delivering"
    finish(again)
    assert reloaded(delivery).state == "Delivered"
    assert WebHookAttempt.objects.filter(delivery=delivery).count() == 2


def test_what_keeps_killing_its_worker_ends_as_failed() -> None:
    new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    now = NOW
    for _ in range(6):
        assert len(leases(now)) == 1
        now += timedelta(seconds=60)
        leases_expire(now)
    assert reloaded(delivery).state == "Failed"


def test_a_stopping_worker_hands_its_leases_back() -> None:
    new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    leases_release(leases())
    assert (reloaded(delivery).state, reloaded(delivery).lease_count) == ("Pending", 0)


def test_deliveries_of_a_deleted_template_are_cancelled() -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    hook.dataset.delete(hook)
    hook.dataset.commit()
    assert reloaded(delivery).state == "Cancelled"
    # What another commit inserted at the same moment is left to the worker.
    WebHookDelivery.objects.update(state="Pending", next_attempt_time_utc=NOW)
    assert leases() == []
    assert reloaded(delivery).state == "Cancelled"


def test_nothing_stays_held_back_for_a_template_that_is_gone() -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    TemplateHealth.objects.create(web_hook_id=hook.id, failures=50, failing_since=NOW, suspended_at=NOW)
    assert deliveries_suspend(hook.id) == 1
    hook.dataset.delete(hook)
    hook.dataset.commit()
    found = reloaded(delivery)
    assert (found.state, found.last_error) == ("Cancelled", "The webhook has been deleted.")
    assert found.finish_time_utc is not None
    assert delivery_statistics().suspended_templates == 0


# --- outcomes -----------------------------------------------------------------------------------------------------


def test_no_retry_ends_as_failed_after_one_attempt() -> None:
    new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    finish(leases()[0], status=500, error="500 Oops")
    found = reloaded(delivery)
    assert (found.state, found.last_status_code, found.last_error) == ("Failed", 500, "500 Oops")
    assert found.next_attempt_time_utc is None


def test_retry_makes_four_attempts_on_its_schedule_and_then_a_dead_letter() -> None:
    new_web_hook("http://127.0.0.1:9/", RetryLogic="Retry")
    delivery = new_delivery("HOOK", new_currency())
    now, waits = NOW, []
    while (found := reloaded(delivery)).state == "Pending":
        assert found.next_attempt_time_utc is not None
        now = max(now, found.next_attempt_time_utc)
        finish(leases(now)[0], now, status=500, error="500")
        if (due := reloaded(delivery).next_attempt_time_utc) is not None:
            waits.append((due - now).total_seconds())
    assert found.state == "Failed"
    assert found.attempt_count == 4
    assert [round(wait / scheduled) for wait, scheduled in zip(waits, (5, 30, 120), strict=True)] == [1, 1, 1]


@pytest.mark.parametrize(
    "values, state",
    [
        ({"status": 410, "permanent": True, "error": "410"}, "Failed"),
        ({"permanent": True, "error": "refused"}, "Failed"),
        ({"status": 503, "is_receiver_down": True, "retry_after": timedelta(seconds=90)}, "Pending"),
        ({"error": "timeout", "is_receiver_down": True}, "Pending"),
    ],
)
def test_what_stops_and_what_is_tried_again(values: dict[str, Any], state: str) -> None:
    new_web_hook("http://127.0.0.1:9/", RetryLogic="Retry")
    delivery = new_delivery("HOOK", new_currency())
    finish(leases()[0], **values)
    found = reloaded(delivery)
    assert found.state == state
    if "retry_after" in values:
        assert found.next_attempt_time_utc == NOW + values["retry_after"]


# --- circuit breaker ----------------------------------------------------------------------------------------------


def fail(count: int, now: Any) -> None:
    """So many failures of the host, each of another entity."""
    for _ in range(count):
        (lease,) = leases(now, 1)
        finish(lease, now, error="connect", is_receiver_down=True)


def test_a_dead_destination_is_left_alone_and_probed_and_others_go_on(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 3, "breaker_open_seconds": [30, 60]}
    new_web_hook("http://127.0.0.1:9/", code="DEAD")
    for number in range(20):
        new_delivery("DEAD", new_currency(f"C{number}"))
    fail(3, NOW)
    assert leases() == []
    new_web_hook("http://127.0.0.1:10/", code="ALIVE")
    new_delivery("ALIVE", new_currency("A"))
    (alive,) = leases(utc_now())
    assert alive.web_hook_code == "ALIVE"

    half_open = NOW + timedelta(seconds=31)
    (probe,) = leases(half_open)
    assert leases(half_open) == [], "one probe at a time"
    finish(probe, half_open, error="connect", is_receiver_down=True)
    assert leases(half_open + timedelta(seconds=31)) == [], "open for longer after a failed probe"

    again = half_open + timedelta(seconds=61)
    (probe,) = leases(again)
    finish(probe, again)
    assert len(leases(again)) == 15
    assert not CircuitBreaker.objects.exists()


def test_the_circuit_of_one_template_does_not_open_for_another_of_its_host(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 2, "breaker_open_seconds": [30]}
    new_web_hook("http://127.0.0.1:9/down", code="DOWN")
    for number in range(3):
        new_delivery("DOWN", new_currency(f"C{number}"))
    fail(2, NOW)
    assert leases() == []
    new_web_hook("http://127.0.0.1:9/up", code="UP")
    for number in range(3):
        new_delivery("UP", new_currency(f"U{number}"))
    up = leases()
    assert [lease.web_hook_code for lease in up] == ["UP"] * 3
    finish(up[0])
    assert leases() == [], "a success of another template closes no circuit"
    assert [lease.web_hook_code for lease in leases(NOW + timedelta(seconds=31))] == ["DOWN"]


def test_probes_of_one_host_are_bounded_over_its_templates(settings: Settings) -> None:
    """Each may take a whole connect timeout; hosts with other templates need the workers meanwhile."""
    settings.WEBHOOKS = {"breaker_failures": 1, "breaker_open_seconds": [30]}
    record = new_currency()
    for number in range(5):
        new_web_hook(f"http://127.0.0.1:9/{number}", code=f"T{number}", RetryLogic="Retry")
        new_delivery(f"T{number}", record)
        new_delivery(f"T{number}", new_currency(f"C{number}"))
    for lease in leases():
        finish(lease, error="connect", is_receiver_down=True)
    assert leases() == []
    half_open = NOW + timedelta(seconds=31)
    probes = leases(half_open)
    assert len(probes) == 2
    assert leases(half_open) == []
    finish(probes[0], half_open)
    assert {lease.web_hook_code for lease in leases(half_open)} - {probes[0].web_hook_code}, "the next one probes"


def test_a_500_comes_from_a_host_that_works(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 1}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(3):
        new_delivery("HOOK", new_currency(f"C{number}"))
    for lease in leases(limit=2):
        finish(lease, status=500, error="500")
    assert len(leases()) == 1


def test_a_probe_whose_worker_died_is_free_again_when_its_lease_ends(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 1, "breaker_open_seconds": [1]}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(3):
        new_delivery("HOOK", new_currency(f"C{number}"))
    fail(1, NOW)
    half_open = NOW + timedelta(seconds=2)
    assert len(leases(half_open)) == 1
    assert leases(half_open + timedelta(seconds=29)) == []
    assert len(leases(half_open + timedelta(seconds=31))) == 1


def test_a_probe_that_is_handed_back_is_free_at_once(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 1, "breaker_open_seconds": [1]}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(3):
        new_delivery("HOOK", new_currency(f"C{number}"))
    fail(1, NOW)
    half_open = NOW + timedelta(seconds=2)
    leases_release(leases(half_open))
    (probe,) = leases(half_open)
    leases_release([replace(probe, token="another", probe_until=half_open)])
    assert leases(half_open) == [], "the lease of an earlier probe frees no other"


def test_a_probe_that_was_never_sent_is_free_at_once(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 1, "breaker_open_seconds": [1]}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(3):
        new_delivery("HOOK", new_currency(f"C{number}"))
    fail(1, NOW)
    half_open = NOW + timedelta(seconds=2)
    finish(leases(half_open)[0], half_open, error="refused", permanent=True)
    assert len(leases(half_open)) == 1


def test_attempts_that_began_before_the_circuit_opened_are_not_its_probe(settings: Settings) -> None:
    settings.WEBHOOKS = {"breaker_failures": 1, "breaker_open_seconds": [30, 600]}
    new_web_hook("http://127.0.0.1:9/")
    for number in range(6):
        new_delivery("HOOK", new_currency(f"C{number}"))
    first, while_open, half_open, while_probed = leases(limit=4)
    finish(first, error="connect", is_receiver_down=True)
    finish(while_open, NOW + timedelta(seconds=1), error="connect", is_receiver_down=True)
    later = NOW + timedelta(seconds=31)
    finish(half_open, later, error="connect", is_receiver_down=True)
    (probe,) = leases(later)
    finish(while_probed, later, error="connect", is_receiver_down=True)
    assert leases(later) == [], "the probe is still under way"
    finish(probe, later, error="connect", is_receiver_down=True)
    assert leases(later + timedelta(seconds=599)) == [], "the probe's own failure opens the circuit for longer"
    assert len(leases(later + timedelta(seconds=601))) == 1


# --- suspension ---------------------------------------------------------------------------------------------------


def test_a_template_with_a_long_run_of_failures_is_suspended_and_administrators_are_told(settings: Settings) -> None:
    settings.WEBHOOKS = {"suspend_failures": 3, "suspend_after_seconds": 60}
    User.objects.create_superuser("boss", "vast-Harbour-42")
    new_web_hook("http://127.0.0.1:9/", code="BAD")
    new_web_hook("http://127.0.0.1:9/", code="GOOD")
    for number in range(5):
        new_delivery("BAD", new_currency(f"C{number}"))
    for _ in range(3):
        finish(leases(NOW, 1)[0], NOW, status=500, error="500")
    assert WebHookDelivery.objects.filter(state="Suspended").count() == 0, "a short outage suspends nothing"
    later = NOW + timedelta(seconds=61)
    finish(leases(later, 1)[0], later, status=500, error="500")
    assert WebHookDelivery.objects.filter(state="Suspended").count() == 1

    from domain.entities.systems_core import Notification

    assert "BAD" in (Notification._default_manager.get(notification_class="WebHookSuspended").subject or "")
    late = new_delivery("BAD", new_currency("LATE"))
    good = new_delivery("GOOD", new_currency("G"))
    (lease,) = leases(later)
    assert lease.delivery_id == str(good.pk)
    assert reloaded(late).state == "Suspended"

    assert web_hook_resume(late.web_hook_id) == 2
    assert not TemplateHealth.objects.exists()
    assert len(leases(utc_now())) == 2


def test_a_success_ends_the_run() -> None:
    new_web_hook("http://127.0.0.1:9/")
    new_delivery("HOOK", new_currency("A"))
    new_delivery("HOOK", new_currency("B"))
    one, two = leases()
    finish(one, status=500, error="500")
    assert TemplateHealth.objects.get().failures == 1
    finish(two)
    assert not TemplateHealth.objects.exists()


# --- with a receiver ----------------------------------------------------------------------------------------------


def test_the_request_is_exactly_the_templates(loopback_receiver: LoopbackReceiver) -> None:
    new_web_hook(
        f"{loopback_receiver.url}/in/{{CurrencySign}}?n={{Name}}",
        Headers="X-Two: {Name}\nAuthorization: Bearer s3cret\nX-One: 1",
        Body='{"name": "{Name}"}',
    )
    delivery = new_delivery("HOOK", new_currency("EUR", 'Eu"ro ä'))
    deliver_due()
    (request,) = loopback_receiver.requests
    assert (request.method, request.path) == ("POST", "/in/EUR?n=Eu%22ro%20%C3%A4")
    assert request.json() == {"name": 'Eu"ro ä'}
    names = [name for name, _ in request.headers.items()]
    assert names == [
        "Host", "X-Two", "Authorization", "X-One", "Content-Type", "User-Agent", "webhook-id", "webhook-timestamp",
        "Content-Length",
    ]  # fmt: skip
    assert request.headers["webhook-id"] == str(delivery.pk)
    assert request.headers["Authorization"] == "Bearer s3cret"
    attempt = WebHookAttempt.objects.get(delivery=delivery)
    assert "s3cret" not in attempt.request_head + reloaded(delivery).request_headers
    assert attempt.request_head.startswith("POST /in/EUR?n=Eu%22ro%20%C3%A4 HTTP/1.1\nHost: 127.0.0.1")
    assert attempt.response_head is not None
    assert attempt.response_head.startswith("HTTP/1.1 200")
    assert (attempt.outcome, attempt.status_code, attempt.address) == ("Delivered", 200, "127.0.0.1")


def test_retry_after_and_the_answers_body_are_kept(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(503, b"\xffno\x00" + b"x" * 100_000, {"Retry-After": "77", "Set-Cookie": "s=1"}))
    new_web_hook(f"{loopback_receiver.url}/", RetryLogic="Retry")
    delivery = new_delivery("HOOK", new_currency())
    before = utc_now()
    deliver_due()
    due = reloaded(delivery).next_attempt_time_utc
    assert due is not None
    assert timedelta(seconds=77) <= due - before <= timedelta(seconds=77) + (utc_now() - before)
    attempt = WebHookAttempt.objects.get()
    assert attempt.response_body is not None
    assert len(attempt.response_body) == 4096
    assert "s=1" not in (attempt.response_head or "")


@pytest.mark.parametrize(
    "status, state", [(200, "Delivered"), (299, "Delivered"), (302, "Failed"), (404, "Failed"), (410, "Failed")]
)
def test_only_2xx_is_delivered(loopback_receiver: LoopbackReceiver, status: int, state: str) -> None:
    loopback_receiver.answer(Answer(status, headers={"Location": "/elsewhere"}))
    new_web_hook(f"{loopback_receiver.url}/")
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    assert reloaded(delivery).state == state
    assert len(loopback_receiver.requests) == 1


def test_an_address_that_is_not_allowed_is_never_called(
    loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    new_web_hook(f"{loopback_receiver.url}/", RetryLogic="Retry")
    settings.EGRESS_ALLOW = []
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    found = reloaded(delivery)
    assert found.state == "Failed"
    assert "loopback" in (found.last_error or "")
    assert WebHookAttempt.objects.get().outcome == "Refused"
    assert loopback_receiver.requests == []


def test_a_host_from_data_is_sent_to_where_it_is_listed_and_nowhere_else(
    loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.1", "*.shops.example"]
    port = loopback_receiver.url.rpartition(":")[2]
    new_web_hook(f"http://{{Name}}:{port}/x?host={{Name}}", RetryLogic="Retry")
    names = [
        "evil.example", "127.0.0.2", "127.0.0.1/", "127.0.0.1?", "127.0.0.1#", "127.0.0.1\\@evil.example",
        "user@127.0.0.1", "user:pw@127.0.0.1", "127.0.0.1:81", "127.0.0.1%2f", "a b.shops.example", "-.shops.example",
        ".shops.example", "x\r\nHost: y", "[::1]", "evil.example\uff0f.shops.example",
    ]  # fmt: skip
    refused = [new_delivery("HOOK", new_currency(f"C{number}", name)) for number, name in enumerate(names)]
    allowed = new_delivery("HOOK", new_currency("OK", "127.0.0.1"))
    deliver_due()
    (request,) = loopback_receiver.requests
    assert (request.path, request.headers["Host"]) == ("/x?host=127.0.0.1", f"127.0.0.1:{port}")
    assert reloaded(allowed).state == "Delivered"
    found = [reloaded(delivery) for delivery in refused]
    assert {(each.state, each.attempt_count) for each in found} == {("Failed", 1)}
    assert set(WebHookAttempt.objects.exclude(delivery=allowed).values_list("outcome", flat=True)) == {"Refused"}
    assert "must be listed in the setting EGRESS_ALLOW" in (found[0].last_error or "")
    assert all("its host is not a valid name" in (each.last_error or "") for each in found[2:]), found


def test_a_port_from_data_must_be_one(loopback_receiver: LoopbackReceiver, settings: Settings) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    new_web_hook("http://127.0.0.1:{Name}/")
    port = loopback_receiver.url.rpartition(":")[2]
    wrong = ["0", "65536", "-1", "x", "80@evil.example", "80/", "8 0"]
    refused = [new_delivery("HOOK", new_currency(f"C{number}", name)) for number, name in enumerate(wrong)]
    new_delivery("HOOK", new_currency("OK", port))
    deliver_due()
    assert len(loopback_receiver.requests) == 1
    errors_ = {reloaded(delivery).last_error or "" for delivery in refused}
    assert all("its port must be a number from 1 to 65535" in text for text in errors_), errors_


def test_each_host_from_data_has_a_queue_of_its_own_and_idna(settings: Settings) -> None:
    settings.EGRESS_ALLOW = ["*.example"]
    new_web_hook("http://{Name}.example/")
    one, other = (new_delivery("HOOK", new_currency(sign, name)) for sign, name in (("A", "Bücher"), ("B", "shop")))
    assert (one.destination, other.destination) == ("xn--bcher-kva.example:80", "shop.example:80")
    fail(1, NOW)
    assert len(leases()) == 1


def test_a_receiver_that_does_not_answer_in_time_is_tried_again(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(200, delay_seconds=2))
    new_web_hook(f"{loopback_receiver.url}/", RetryLogic="Retry", TimeoutSeconds=1)
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    found = reloaded(delivery)
    assert (found.state, found.attempt_count) == ("Pending", 1)
    assert (found.last_error or "").startswith("timeout")


@pytest.mark.parametrize(
    "allowed, url, destination",
    [("::1", "http://[::{Name}]:9/", "[::1]:9"), ("::1", "http://[::1]:{Name}/", "[::1]:1")],
)
def test_a_placeholder_may_be_part_of_an_ipv6_address(
    allowed: str, url: str, destination: str, settings: Settings
) -> None:
    settings.EGRESS_ALLOW = [allowed]
    new_web_hook(url)
    delivery = new_delivery("HOOK", new_currency("ONE", "1"))
    deliver_due()
    assert reloaded(delivery).destination == destination
    assert WebHookAttempt.objects.get().outcome == "Failed", "nobody listens there; it was not refused"
