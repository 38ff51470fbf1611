"""The composer of webhooks: a rule in the same save, previews of drafts, programs for receivers, replay (spec 06)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from audit.actors import OPERATOR
from domain.entities.systems_bpm import UserBusinessRule, UserBusinessRuleCondition
from domain.entities.systems_config import WebHook
from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import User
from tests.domain.security.conftest import give_role
from tests.support.c_sharp import syntax_errors
from tests.support.programs import requires_program
from tests.support.receiver import LoopbackReceiver, ReceivedRequest
from tests.webhooks.cast import CURRENCIES, deliver_due, new_currency, new_delivery, new_web_hook
from webhooks import admin
from webhooks.models import WebHookDelivery
from webhooks.services import signing_secret_rotate
from webhooks.snippets import verification_snippets

pytestmark = pytest.mark.django_db

ADD = "/admin/domain/webhook/add/"
COMPOSED: Mapping[str, str] = {
    "code": "COMPOSED-OF-LONG-NAME",
    "name_en": "Composed",
    "repository_name": CURRENCIES,
    "url": "https://example.com/{CurrencySign}",
    "is_active": "on",
    "retry_logic": "NoRetry",
    "timeout_seconds": "10",
    "rule-event_type": "CLIENTCOMMIT",
}


@pytest.fixture
def boss(client: Client) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def text_of(response: Any) -> str:
    assert response.status_code == 200, response
    return str(response.content.decode())


# --- the rule -----------------------------------------------------------------------------------------------------


def test_the_rule_that_sends_it_is_made_in_the_same_save_shown_and_linked(boss: Client) -> None:
    condition = {"rule-attribute_name": "CurrencySign", "rule-comparison_type": "Like", "rule-value": "E*"}
    answer = boss.post(ADD, {**COMPOSED, **condition, "_continue": "1"}, follow=True)
    page = text_of(answer)
    rule = UserBusinessRule.objects.get()
    assert (rule.code, rule.is_active, rule.repository_name) == ("COMPOSED-OF-LONG", True, CURRENCIES)
    assert page.count(reverse("admin:domain_userbusinessrule_change", args=[rule.pk])) == 2  # the message, the list
    assert "These rules send it" in page
    cache_versions.expire()
    for sign in ("USD", "EUR"):
        new_currency(sign)
    assert [each.request_url for each in WebHookDelivery.objects.all()] == ["https://example.com/EUR"]


def test_without_an_event_no_rule_is_made_and_a_stored_webhook_gets_more(boss: Client) -> None:
    boss.post(ADD, {**COMPOSED, "rule-event_type": ""})
    hook = WebHook._default_manager.get()
    assert not UserBusinessRule.objects.exists()
    url = reverse("admin:domain_webhook_change", args=[hook.pk])
    for _ in range(2):
        assert boss.post(url, {**COMPOSED, "rule-comparison_type": "Equals"}).status_code == 302
    codes = UserBusinessRule.objects.order_by("pk").values_list("code", flat=True)
    assert list(codes) == ["COMPOSED-OF-LONG", "COMPOSED-OF--2"]
    assert not UserBusinessRuleCondition.objects.exists()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"rule-event_type": "STATECHANGED", "rule-event_parameter": "Released"}, "has no event STATECHANGED"),
        ({"rule-event_type": "ATTRIBUTECHANGED"}, "needs a parameter"),
        ({"rule-attribute_name": "Nmae", "rule-comparison_type": "IsNull"}, "no attribute &#x27;Nmae&#x27;"),
        ({"url": "https://example.com/{Nonsense}"}, "Nonsense"),
    ],
)
def test_a_rule_or_webhook_that_is_refused_leaves_neither(boss: Client, given: dict[str, str], message: str) -> None:
    page = text_of(boss.post(ADD, {**COMPOSED, **given}))
    assert message in page
    assert not UserBusinessRule.objects.exists()
    assert not WebHook._default_manager.exists()
    # Nor does a template remain in the cache of those that rules may name.
    assert boss.post(ADD, {**COMPOSED, "_save": "1"}).status_code == 302


def test_who_may_not_write_rules_makes_none(client: Client) -> None:
    user = User.objects.create_user("hooks", "hooks")
    give_role(user, {"Systems.Config.WebHooks": "crud", CURRENCIES: "r"})
    client.force_login(user)
    assert "rule-event_type" not in text_of(client.get(ADD))
    text_of(client.post(ADD, COMPOSED))
    assert not UserBusinessRule.objects.exists()
    assert not WebHook._default_manager.exists()
    assert client.post(ADD, {**COMPOSED, "rule-event_type": ""}).status_code == 302


# --- the preview --------------------------------------------------------------------------------------------------


def test_a_draft_shows_what_it_would_send_and_saves_nothing(boss: Client) -> None:
    new_currency("EUR", "Euro")
    draft = {**COMPOSED, "_draft": "show", "entity": "EUR", "body": '{"name": "{Name}"}'}
    page = text_of(boss.post(ADD, {**draft, "headers": "Authorization: Bearer s3cret"}))
    assert "POST https://example.com/EUR" in page
    assert "{&quot;name&quot;: &quot;Euro&quot;}" in page
    assert "s3cret" not in page
    assert "is about to be saved by a caller" in page
    assert "no attribute" in text_of(boss.post(ADD, {**draft, "body": "{Nmae}"}))
    assert not WebHook._default_manager.exists()
    assert not WebHookDelivery.objects.exists()


def test_a_preview_reads_with_the_rights_of_the_user(client: Client) -> None:
    new_currency("EUR", "Euro")
    hidden = new_currency("USD", "Dollar")
    user = User.objects.create_user("hooks", "hooks")
    give_role(user, {"Systems.Config.WebHooks": "crud", CURRENCIES: "r"}, {CURRENCIES: "CurrencySign eq 'EUR'"})
    client.force_login(user)
    draft = {**COMPOSED, "rule-event_type": "", "_draft": "show", "body": "{Name}"}
    assert "Euro" in text_of(client.post(ADD, {**draft, "entity": "EUR"}))
    for entity in ("USD", hidden.id):
        assert "Dollar" not in text_of(client.post(ADD, {**draft, "entity": entity}))


# --- programs for receivers ---------------------------------------------------------------------------------------


@pytest.fixture
def signed(loopback_receiver: LoopbackReceiver) -> tuple[ReceivedRequest, str]:
    """A delivery as it came over the wire, and the secret that signed it beside an older one."""
    hook = new_web_hook(f"{loopback_receiver.url}/", Body='{"name": "{Name}"}')
    signing_secret_rotate(hook.id, by=OPERATOR)
    secret = signing_secret_rotate(hook.id, by=OPERATOR)
    cache_versions.expire()
    new_delivery("HOOK", new_currency("EUR", "Ευρώ"))
    deliver_due()
    return loopback_receiver.requests[0], secret


def program(tmp_path: Path, name: str) -> Path:
    (code,) = (each.code for each in verification_snippets() if each.key == name)
    path = tmp_path / name
    path.write_text(f"{code}\n", encoding="utf-8")
    return path


def run(command: list[str], body: bytes, headers: Mapping[str, str], secret: str) -> str:
    """What the program says of a request."""
    environment = {
        **os.environ,
        "WEBHOOK_SECRET": secret,
        "ID": headers["webhook-id"],
        "TIMESTAMP": headers["webhook-timestamp"],
        "SIGNATURE": headers["webhook-signature"],
    }
    done = subprocess.run(command, input=body, env=environment, capture_output=True, check=False, timeout=60)
    assert not done.stderr, done.stderr.decode()
    return done.stdout.decode().strip().lower()


_PYTHON = """
import os, sys
from verify import verify
names = {"webhook-id": "ID", "webhook-timestamp": "TIMESTAMP", "webhook-signature": "SIGNATURE"}
headers = {name: os.environ[variable] for name, variable in names.items()}
print("valid" if verify(os.environ["WEBHOOK_SECRET"], headers, sys.stdin.buffer.read()) else "invalid")
"""
_NODE = """
import { readFileSync } from 'node:fs';
import { verify } from './verify.mjs';
const { ID, TIMESTAMP, SIGNATURE, WEBHOOK_SECRET } = process.env;
const headers = { 'webhook-id': ID, 'webhook-timestamp': TIMESTAMP, 'webhook-signature': SIGNATURE };
console.log(verify(WEBHOOK_SECRET, headers, readFileSync(0)) ? 'valid' : 'invalid');
"""


def command_of(tmp_path: Path, name: str) -> list[str]:
    path = program(tmp_path, name)
    if name == "verify.py":
        (tmp_path / "main.py").write_text(_PYTHON, encoding="utf-8")
        return [sys.executable, str(tmp_path / "main.py")]
    if name == "verify.mjs":
        (tmp_path / "main.mjs").write_text(_NODE, encoding="utf-8")
        return [requires_program("node"), str(tmp_path / "main.mjs")]
    requires_program("openssl")
    return ["sh", str(path)]


@pytest.mark.parametrize("name", ["verify.py", "verify.mjs", "verify.sh"])
def test_a_receiver_s_program_accepts_a_delivery_and_nothing_else(
    signed: tuple[ReceivedRequest, str], tmp_path: Path, name: str
) -> None:
    request, secret = signed
    headers = {key.lower(): value for key, value in request.headers.items()}
    assert headers["webhook-signature"].count("v1,") == 2
    command = command_of(tmp_path, name)
    assert run(command, request.body, headers, secret) == "valid"
    assert run(command, request.body + b" ", headers, secret) == "invalid"
    assert run(command, request.body, {**headers, "webhook-id": "another"}, secret) == "invalid"
    assert run(command, request.body, headers, "whsec_" + "QUJD" * 8) == "invalid"
    if name != "verify.sh":  # which leaves the clock to its caller
        old = str(int(headers["webhook-timestamp"]) - 301)
        assert run(command, request.body, {**headers, "webhook-timestamp": old}, secret) == "invalid"


def test_the_program_with_curl_sends_a_signed_request(loopback_receiver: LoopbackReceiver, tmp_path: Path) -> None:
    requires_program("curl")
    secret = "whsec_" + "QUJD" * 8
    sender = program(tmp_path, "send.sh")
    command = ["sh", str(sender), f"{loopback_receiver.url}/hook", '{"test": true}']
    subprocess.run(command, env={**os.environ, "WEBHOOK_SECRET": secret}, capture_output=True, check=True, timeout=60)
    (request,) = loopback_receiver.requests
    headers = {key.lower(): value for key, value in request.headers.items()}
    assert run(command_of(tmp_path, "verify.py"), request.body, headers, secret) == "valid"


def test_the_program_in_c_sharp_can_be_parsed() -> None:
    (program,) = (each.code for each in verification_snippets() if each.key == "verify.cs")
    assert syntax_errors(program) == []
    assert syntax_errors(program.replace(";", "", 1)) != []


def test_every_program_is_on_the_page(boss: Client) -> None:
    hook = new_web_hook("https://example.com/")
    page = text_of(boss.get(reverse("admin:domain_webhook_change", args=[hook.id])))
    keys = {each.key for each in verification_snippets()}
    assert keys == {"verify.py", "verify.mjs", "verify.cs", "verify.sh", "send.sh"}
    assert all(f'id="{key}"' in page for key in keys)


# --- replay -------------------------------------------------------------------------------------------------------


def test_a_time_range_is_replayed_after_its_number_was_shown(
    boss: Client, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.TIME_ZONE = "UTC"
    hook = new_web_hook("https://example.com/")
    other = new_web_hook("https://example.com/", code="OTHER")
    now = utc_now()
    ages = {"old": 5, "in": 3, "in2": 2, "new": 0, "open": 3, "test": 3, "othr": 3}
    made = {name: new_delivery("OTHER" if name == "othr" else "HOOK", new_currency(name)) for name in ages}
    for name, hours in ages.items():
        row = WebHookDelivery.objects.filter(pk=made[name].pk)
        row.update(
            state="Pending" if name == "open" else "Delivered",
            is_test=name == "test",
            creation_time_utc=now - timedelta(hours=hours),
            finish_time_utc=now,
        )
    url = reverse("admin:domain_webhook_replay", args=[hook.id])
    times = {"since": now - timedelta(hours=4), "until": now - timedelta(hours=1)}
    given = {name: moment.strftime("%Y-%m-%dT%H:%M") for name, moment in times.items()}
    assert boss.get(url).status_code == 405
    page = text_of(boss.post(url, given))
    assert "2 requests are sent again" in page
    assert not WebHookDelivery.objects.filter(state="Pending").exclude(pk=made["open"].pk).exists()
    confirmed = {**dict(re.findall(r'type="hidden" name="(since|until)" value="([^"]*)"', page)), "confirmed": "1"}
    monkeypatch.setattr(admin, "MAX_REPLAYED", 1)
    assert "There are more than 1" in text_of(boss.post(url, confirmed))
    monkeypatch.undo()
    answer = boss.post(url, confirmed, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["2 deliveries are sent again."]
    again = WebHookDelivery.objects.filter(state="Pending").exclude(pk=made["open"].pk)
    assert {each.pk for each in again} == {made["in"].pk, made["in2"].pk}
    assert "There are none" in text_of(boss.post(reverse("admin:domain_webhook_replay", args=[other.id]), {
        "since": given["until"], "until": now.strftime("%Y-%m-%dT%H:%M")}))  # fmt: skip
    for wrong in ({"since": given["until"], "until": given["since"]}, {"since": "soon", "until": ""}):
        answer = boss.post(url, wrong, follow=True)
        assert "error" in {message.level_tag for message in answer.context["messages"]}


def test_who_may_not_change_webhooks_replays_nothing(client: Client) -> None:
    hook = new_web_hook("https://example.com/")
    user = User.objects.create_user("reader", "reader")
    give_role(user, {"Systems.Config.WebHooks": "r", CURRENCIES: "r"})
    client.force_login(user)
    assert "/replay/" not in text_of(client.get(reverse("admin:domain_webhook_change", args=[hook.id])))
    given = {"since": "2026-01-01T00:00", "until": "2027-01-01T00:00", "confirmed": "1"}
    assert client.post(reverse("admin:domain_webhook_replay", args=[hook.id]), given).status_code == 403
