"""The admin pages of webhooks: what they show, what they do, and what they never show (spec 06, 6.3)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from audit.actors import OPERATOR
from audit.models import AuditEntry
from domain.entities.systems_config import WebHook
from foundation.fields import utc_now
from identity.models import User
from tests.rules.cast import make_world, write_rule
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import deliver_due, new_currency, new_delivery, new_web_hook, reloaded
from webhooks.models import CircuitBreaker, TemplateHealth, WebHookDelivery
from webhooks.services import signing_secret_rotate

pytestmark = pytest.mark.django_db

LIST = "/admin/webhooks/webhookdelivery/"


@pytest.fixture
def boss(client: Client) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def page_of(delivery: WebHookDelivery) -> str:
    return reverse("admin:webhooks_webhookdelivery_change", args=[delivery.pk])


def hook_page(record: Any, verb: str = "change") -> str:
    return reverse(f"admin:domain_webhook_{verb}", args=[record.id])


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.content
    return str(response.content.decode())


@pytest.fixture
def failed(loopback_receiver: LoopbackReceiver) -> WebHookDelivery:
    """A delivery that a receiver refused, with secrets on both ways."""
    loopback_receiver.answer(Answer(404, b"<script>no such thing</script>", {"Set-Cookie": "sid=c00kie"}))
    new_web_hook(f"{loopback_receiver.url}/in", Headers="Authorization: Bearer s3cret\nX-Api-Key: k3y")
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    return reloaded(delivery)


def test_the_list_shows_state_webhook_entity_attempts_and_next_attempt(boss: Client, failed: WebHookDelivery) -> None:
    new_web_hook("http://127.0.0.1:9/", code="OTHER")
    waiting = new_delivery("OTHER", new_currency("USD"))
    page = text_of(boss.get(LIST))
    assert 'class="webhook-state failed"' in page
    assert 'class="webhook-state pending"' in page
    assert "404" in page
    assert f"…{failed.entity_id[-6:]}" in page
    assert "1 / 1" in page
    assert f"{waiting.next_attempt_time_utc:%Y}" in page


@pytest.mark.parametrize("query", ["state__exact=Failed", "web_hook_code=HOOK", "q=404", "is_test__exact=0&q=HOOK"])
def test_it_filters_and_searches(boss: Client, failed: WebHookDelivery, query: str) -> None:
    new_web_hook("http://127.0.0.1:9/", code="OTHER")
    other = new_delivery("OTHER", new_currency("USD"))
    page = text_of(boss.get(f"{LIST}?{query}"))
    assert page_of(failed) in page
    assert page_of(other) not in page


@pytest.mark.parametrize("attribute", ["pk", "entity_id"])
def test_it_finds_by_the_id_of_delivery_and_entity(boss: Client, failed: WebHookDelivery, attribute: str) -> None:
    other = new_delivery("HOOK", new_currency("USD"))
    page = text_of(boss.get(LIST, {"q": f" {str(getattr(failed, attribute)).upper()}"}))
    assert page_of(failed) in page
    assert page_of(other) not in page


def test_a_delivery_shows_what_was_sent_and_answered_without_secrets(boss: Client, failed: WebHookDelivery) -> None:
    response = boss.get(page_of(failed))
    page = text_of(response)
    assert "POST /in HTTP/1.1" in page
    assert "Authorization: Bearer ***" in page
    assert "HTTP/1.1 404 Not Found" in page
    assert "&lt;script&gt;no such thing" in page
    for secret in ("s3cret", "k3y", "c00kie"):
        assert secret not in page
    assert "script-src 'self'" in response["Content-Security-Policy"]


def test_pages_need_no_inline_script_or_style(boss: Client, failed: WebHookDelivery) -> None:
    hook = WebHook._default_manager.get()
    for path in (LIST, page_of(failed), reverse("admin:domain_webhook_change", args=[hook.pk])):
        page = text_of(boss.get(path))
        assert re.search(r"<script(?![^>]*\b(src=|type=\"application/json))", page) is None, path
        assert re.search(r"<style|\sstyle=|\son\w+=\"", page) is None, path


def test_redeliver_and_cancel(boss: Client, failed: WebHookDelivery) -> None:
    redeliver = reverse("admin:webhooks_webhookdelivery_redeliver", args=[failed.pk])
    assert boss.get(redeliver).status_code == 405
    assert "1 delivery is sent again." in text_of(boss.post(redeliver, follow=True))
    assert reloaded(failed).state == "Pending"
    assert 'id="request"' in text_of(boss.get(page_of(failed)))
    cancel = reverse("admin:webhooks_webhookdelivery_cancel", args=[failed.pk])
    assert "1 delivery is cancelled." in text_of(boss.post(cancel, follow=True))
    assert reloaded(failed).state == "Cancelled"
    assert "0 deliveries are cancelled." in text_of(boss.post(cancel, follow=True))


@pytest.mark.parametrize("action, state", [("redeliver_chosen", "Pending"), ("cancel_chosen", "Failed")])
def test_actions_of_the_list(boss: Client, failed: WebHookDelivery, action: str, state: str) -> None:
    text_of(boss.post(LIST, {"action": action, "_selected_action": [str(failed.pk)]}, follow=True))
    assert reloaded(failed).state == state


def test_strangers_and_people_without_rights_see_and_do_nothing(client: Client, failed: WebHookDelivery) -> None:
    redeliver = reverse("admin:webhooks_webhookdelivery_redeliver", args=[failed.pk])
    client.force_login(User.objects.create_user("demo", "secret"))
    assert client.get(page_of(failed)).status_code in {302, 403}
    assert client.post(redeliver).status_code in {302, 403}
    assert reloaded(failed).state == "Failed"


def test_what_does_not_exist(boss: Client) -> None:
    nobody = "00000000-0000-7000-8000-00000000dead"
    assert boss.post(reverse("admin:webhooks_webhookdelivery_cancel", args=[nobody])).status_code == 404
    assert boss.post(reverse("admin:webhooks_webhookdelivery_cancel", args=["x"])).status_code == 404
    assert boss.get(reverse("admin:webhooks_webhookdelivery_change", args=["x"])).status_code == 404


# --- templates ----------------------------------------------------------------------------------------------------


def test_a_template_shows_charts_and_counts(boss: Client, loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(200, 200, 404)
    hook = new_web_hook(f"{loopback_receiver.url}/")
    for number in range(3):
        new_delivery("HOOK", new_currency(f"C{number}"))
    deliver_due()
    page = text_of(boss.get(hook_page(hook)))
    assert f'<th scope="row">{utc_now():%-d %b}</th><td>2</td><td>1</td>' in page
    assert re.search(r"</th><td>\d+ ms</td>", page)
    assert page.count('class="chart-drawing" role="img"') == 2
    assert "state__exact=Failed" in page


def test_a_new_template_has_neither(boss: Client) -> None:
    page = text_of(boss.get("/admin/domain/webhook/add/"))
    assert "chart-drawing" not in page
    assert "signing_secret" not in page


def test_send_test_event(boss: Client, loopback_receiver: LoopbackReceiver) -> None:
    record = new_currency("ABC")
    hook = new_web_hook(f"{loopback_receiver.url}/{{CurrencySign}}")
    new_currency("NEW")
    boss.post(hook_page(hook, "test"))
    response = boss.post(hook_page(hook, "test"), {"entity": f" {record.id} "}, follow=True)
    assert "Test" in text_of(response)
    deliver_due()
    assert {request.path for request in loopback_receiver.requests} == {"/NEW", "/ABC"}
    assert set(WebHookDelivery.objects.values_list("is_test", flat=True)) == {True}


def test_an_entity_is_named_by_its_code_or_text(boss: Client, loopback_receiver: LoopbackReceiver) -> None:
    new_currency("ABC", "Old money")
    hook = new_web_hook(f"{loopback_receiver.url}/{{CurrencySign}}", Body='{"sign": "{CurrencySign}"}')
    new_currency("NEW", "New money")
    assert f"POST {loopback_receiver.url}/NEW" in text_of(boss.get(hook_page(hook)))
    page = text_of(boss.get(hook_page(hook), {"entity": "ABC"}))
    assert f"POST {loopback_receiver.url}/ABC" in page
    assert "&quot;sign&quot;: &quot;ABC&quot;" in page
    assert not WebHookDelivery.objects.exists()
    missing = text_of(boss.get(hook_page(hook), {"entity": "it's"}))
    assert "has no entity with the id, code or name it&#x27;s" in missing
    assert "cannot be saved" not in missing
    boss.post(hook_page(hook, "test"), {"entity": "ABC"})
    deliver_due()
    assert [request.path for request in loopback_receiver.requests] == ["/ABC"]
    # The chart counts what the page counts, tests among it.
    assert f'<th scope="row">{utc_now():%-d %b}</th><td>1</td><td>0</td>' in text_of(boss.get(hook_page(hook)))


def test_a_template_tells_which_rules_send_it(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    page = text_of(boss.get(hook_page(hook)))
    assert "No rule sends it yet" in page
    assert "/admin/domain/userbusinessrule/add/?repository_name=General.Currencies.Currencies" in page
    world = make_world()
    rule = write_rule(world, "General.Currencies.Currencies", ["COMMIT"], actions=[("WEBHOOK", ("Constant", "HOOK"))])
    page = text_of(boss.get(hook_page(hook)))
    assert "No rule sends it yet" not in page
    assert f"/admin/domain/userbusinessrule/{rule}/change/" in page


def test_attempts_are_numbered_across_redeliveries(boss: Client, failed: WebHookDelivery) -> None:
    boss.post(f"/admin/webhooks/webhookdelivery/{failed.pk}/redeliver/")
    deliver_due()
    page = text_of(boss.get(f"/admin/webhooks/webhookdelivery/{failed.pk}/change/"))
    assert re.findall(r"<strong>(\d)\.</strong>", page) == ["2", "1"]


def test_a_test_that_cannot_be_is_refused_in_words(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    for entity in ("nonsense", "00000000-0000-7000-8000-00000000dead", ""):
        response = boss.post(hook_page(hook, "test"), {"entity": entity}, follow=True)
        assert '<li class="error ' in text_of(response), entity
    assert not WebHookDelivery.objects.exists()


def test_resume(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    delivery = new_delivery("HOOK", new_currency())
    WebHookDelivery.objects.update(state="Suspended", next_attempt_time_utc=None)
    now = utc_now()
    TemplateHealth.objects.create(
        web_hook_id=hook.id, failures=50, failing_since=now - timedelta(hours=2), suspended_at=now
    )
    assert "Suspended since" in text_of(boss.get(hook_page(hook)))
    resumed = boss.post(hook_page(hook, "resume"), follow=True)
    assert [str(message) for message in resumed.context["messages"]] == ["Resumed: 1 delivery is sent now."]
    assert reloaded(delivery).state == "Pending"
    assert "Suspended since" not in text_of(boss.get(hook_page(hook)))


def test_an_open_circuit_is_shown(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    CircuitBreaker.objects.create(web_hook_id=hook.id, destination="127.0.0.1:9", open_until=utc_now())
    assert "127.0.0.1:9 does not answer" in text_of(boss.get(hook_page(hook)))


def test_an_address_that_is_not_allowed_is_told_at_its_field(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    initial = boss.get(hook_page(hook)).context["adminform"].form.initial
    values = {name: "" if value is None else value for name, value in initial.items() if not isinstance(value, dict)}
    response = boss.post(hook_page(hook), {**values, "name_en": "HOOK", "url": "http://10.0.0.1/"})
    (error,) = response.context["adminform"].form.errors["url"]
    assert error.startswith("Requests to 10.0.0.1:80 are refused: it is a private address.")
    assert "EGRESS_ALLOW" in error


def test_a_new_secret_is_shown_once_and_never_again(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    response = boss.post(hook_page(hook, "rotate"))
    first = WebHook._default_manager.get().signing_secret
    assert first
    assert first in text_of(response)
    assert response["Cache-Control"].count("no-store")
    assert first not in text_of(boss.get(hook_page(hook)))
    boss.post(hook_page(hook, "rotate"))
    page = text_of(boss.get(hook_page(hook)))
    row = WebHook._default_manager.get()
    assert row.previous_signing_secret == first
    assert "The former secret signs beside it until" in page
    assert first not in page
    assert str(row.signing_secret) not in page


def test_secrets_survive_the_saving_of_the_form(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/")
    secret = signing_secret_rotate("HOOK", by=OPERATOR)
    page = boss.get(hook_page(hook))
    values = {
        f"{name}": "" if value is None else value
        for name, value in page.context["adminform"].form.initial.items()
        if not isinstance(value, dict)
    }
    response = boss.post(hook_page(hook), {**values, "name_en": "HOOK", "notes": "changed"})
    assert response.status_code == 302, (response.context["errors"], values)
    row = WebHook._default_manager.get()
    assert (row.signing_secret, row.notes) == (secret, "changed")
    boss.post(hook_page(hook, "unsign"))
    assert WebHook._default_manager.get().signing_secret is None
    assert AuditEntry.objects.latest("id").actor == "boss"


def test_masked_headers_stay_with_the_host_that_they_were_entered_for(boss: Client) -> None:
    hook = new_web_hook("http://127.0.0.1:9/", Headers="Authorization: Bearer planted")
    page = boss.get(hook_page(hook))
    values = {
        f"{name}": "" if value is None else value
        for name, value in page.context["adminform"].form.initial.items()
        if not isinstance(value, dict)
    }
    assert "planted" not in text_of(page)
    values |= {"name_en": "HOOK", "url": "http://localhost:9/other"}
    refused = boss.post(hook_page(hook), values)
    assert "The URL has another host now" in text_of(refused)
    assert boss.post(hook_page(hook), {**values, "url": "http://127.0.0.1:9/other"}).status_code == 302
    assert WebHook._default_manager.get().headers == "Authorization: Bearer planted"
    assert boss.post(hook_page(hook), {**values, "headers": "Authorization: Bearer new"}).status_code == 302
    assert WebHook._default_manager.get().headers == "Authorization: Bearer new"


def test_the_form_shows_every_error_at_its_field(boss: Client) -> None:
    form = {
        "code": "F1", "name_en": "x", "repository_name": "General.Currencies.Currencies", "retry_logic": "NoRetry",
        "url": "http://x/{Nope}", "headers": "no colon", "body": "{Nope2}", "is_active": "on",
        "timeout_seconds": "500", "max_retries": "99",
    }  # fmt: skip
    page = boss.post("/admin/domain/webhook/add/", form).content.decode()
    for field in ("url", "headers", "body", "timeout_seconds", "max_retries"):
        assert f'id="id_{field}_error"' in page, field
