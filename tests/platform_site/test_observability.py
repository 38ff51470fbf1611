"""Spec 09, 9.3: one request followed through log lines, its trace and the metrics; secrets get into no line of it."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from audit.actors import OPERATOR
from identity.models import User
from platform_site.logging import JsonFormatter, RequestIdFilter, TextFormatter
from rules import statistics
from tests.domain.conftest import api, fresh_process, world
from tests.identity.flows import WEB, Browser, parameters_of, token_request
from tests.rules.cast import World, write_rule
from tests.scripts.cast import execute
from tests.support.api import Api
from tests.support.receiver import LoopbackReceiver
from tests.webhooks.cast import CURRENCIES, deliver_due, new_web_hook
from webhooks import templates
from webhooks.services import signing_secret_rotate

__all__ = ["api", "fresh_process", "world"]

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
SET = "General_Currencies_Currencies"

Metrics = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Lines(logging.Handler):
    """Every line at any level, as both formats of the log write it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.addFilter(RequestIdFilter())
        self.json: list[dict[str, Any]] = []
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        line = JsonFormatter().format(record)
        self.json.append(json.loads(line))
        self.texts += [line, TextFormatter().format(record)]


@pytest.fixture
def lines(settings: Settings) -> Iterator[Lines]:
    """The log from now on at its most talkative. Loopback may be reached, and every rule is a slow one."""
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    settings.SLOW_RULE_SECONDS = 0.0
    templates.forget()
    handler = Lines()
    talkative = [logging.getLogger(), logging.getLogger("django")]
    levels = [logger.level for logger in talkative]
    talkative[0].addHandler(handler)
    for logger in talkative:
        logger.setLevel(logging.DEBUG)
    yield handler
    talkative[0].removeHandler(handler)
    for logger, level in zip(talkative, levels, strict=True):
        logger.setLevel(level)
    templates.forget()


def scraped(client: Client) -> Metrics:
    """What a scrape tells: (sample, labels) → value."""
    response = client.get("/metrics")
    assert response.status_code == 200, response.content
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


def tell_of_currencies(world: World, receiver: LoopbackReceiver, **template: Any) -> None:
    """A webhook and a rule that calls it for each currency that is saved."""
    new_web_hook(f"{receiver.url}/told", **template)
    write_rule(world, CURRENCIES, ["COMMIT"], code="TELL", actions=[("WEBHOOK", ("Constant", "HOOK"))])


def test_one_request_is_followed_through_log_trace_and_metrics(
    api: Api, world: World, client: Client, lines: Lines, loopback_receiver: LoopbackReceiver
) -> None:
    tell_of_currencies(world, loopback_receiver)
    before = scraped(client)
    response = api.post(SET, {"CurrencySign": "XTS", "Name": "For tests"}, traceparent=TRACEPARENT)
    assert response.status_code == 201, response.content
    assert response["X-Request-Id"] == TRACE_ID

    # Every line of its work carries its id: the rule's, and the request's own with who called and what it cost.
    of_it = [line for line in lines.json if line.get("request_id") == TRACE_ID]
    (rule,) = [line for line in of_it if line["message"] == "slow rule"]
    assert (rule["level"], rule["rule"], rule["event"], rule["repository"]) == ("WARNING", "TELL", "COMMIT", CURRENCIES)
    (request,) = [line for line in of_it if line["logger"] == "platform.request"]
    assert request["message"] == f"POST /api/domain/odata/{SET} 201"
    assert (request["client"], request["user"], request["traceparent"]) == ("ServiceDemoClient", "service", TRACEPARENT)
    assert request["duration_ms"] >= rule["duration_ms"] > 0
    assert request["queries"] > 0
    assert [row["id"] for row in json.loads(command("list_sessions", "--json"))] == [request["session"]]

    # What it set off belongs to the same trace, though a worker sends it later.
    deliver_due()
    assert loopback_receiver.wait_for(1)[0].headers["traceparent"] == TRACEPARENT

    statistics.pending.flush()
    after = scraped(client)
    for name, labels, by in (
        ("platform_requests_total", {"site": "api", "method": "POST", "status": "2xx"}, 1),
        ("platform_request_seconds_count", {"site": "api"}, 1),
        ("platform_rule_firings_total", {"outcome": "succeeded"}, 1),
        ("platform_rule_firings_total", {"outcome": "failed"}, 0),
        ("platform_webhook_deliveries", {"state": "delivered"}, 1),
        ("platform_sessions", {}, 1),
    ):
        key = (name, frozenset(labels.items()))
        assert after[key] - before.get(key, 0) == by, name
    assert after["platform_rule_seconds_total", frozenset()] > before["platform_rule_seconds_total", frozenset()]


def test_a_script_passes_the_trace_on_and_is_counted(
    api: Api, client: Client, lines: Lines, loopback_receiver: LoopbackReceiver
) -> None:
    before = scraped(client)
    source = f"""
        Action.http.get('{loopback_receiver.url}/');
        Action.http.get('{loopback_receiver.url}/', {{TraceParent: 'of my own'}});
    """
    assert execute(api, source, traceparent=TRACEPARENT).status_code == 200
    assert execute(api, f"Action.http.get('{loopback_receiver.url}/')").status_code == 200
    assert execute(api, "throw new Error('no')").status_code != 200
    sent = [request.headers.get_all("traceparent") for request in loopback_receiver.requests]
    assert sent == [[TRACEPARENT], ["of my own"], None]
    after = scraped(client)
    for outcome, by in (("Succeeded", 2), ("ScriptThrew", 1)):
        key = ("platform_script_runs_total", frozenset({("kind", "ExecuteScript"), ("outcome", outcome)}))
        assert after[key] - before.get(key, 0) == by
    key = ("platform_script_seconds_count", frozenset({("kind", "ExecuteScript")}))
    assert after[key] - before.get(key, 0) == 3


def test_open_transactions_are_told(api: Api, client: Client) -> None:
    key = ("platform_transactions", frozenset[tuple[str, str]]())
    assert scraped(client)[key] == 0
    opened = api.begin()
    assert scraped(client)[key] == 1
    opened.end(commit=False)
    assert scraped(client)[key] == 0


def test_a_template_may_name_a_trace_of_its_own(
    api: Api, world: World, lines: Lines, loopback_receiver: LoopbackReceiver
) -> None:
    tell_of_currencies(world, loopback_receiver, Headers="Traceparent: {CurrencySign}")
    api.create(SET, {"CurrencySign": "XTS", "Name": "For tests"}, traceparent=TRACEPARENT)
    deliver_due()
    assert loopback_receiver.wait_for(1)[0].headers.get_all("traceparent") == ["XTS"]


# --- secrets ------------------------------------------------------------------------------------------------------


def command(name: str, *arguments: str) -> str:
    """What a command prints."""
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


def test_secrets_tokens_and_bodies_get_into_no_line_of_the_log(
    api: Api, world: World, client: Client, lines: Lines, loopback_receiver: LoopbackReceiver
) -> None:
    """Planted wherever one goes in, on the way of those that are right and of those that are wrong."""
    secrets = {"the first token": api.token}
    registered = command(
        "register_app", "Planted", "--service", "--system-user", "service", "--scope", "read", "--json"
    )
    secrets["client secret"] = json.loads(registered)["client_secret"]
    secrets["wrong client secret"] = "planted-wrong-client"
    secrets["reference token"] = command("issue_token", "PublicDemoClient", "--user", "demo").strip()
    secrets["password"] = "planted-Passw0rd!"
    secrets["wrong password"] = "planted-wr0ng-Passw0rd!"
    user = User.objects.get(login="demo")
    user.set_password(secrets["password"])
    user.save()

    for secret in (secrets["client secret"], secrets["wrong client secret"]):
        token_request(client, grant_type="client_credentials", client_id="Planted", client_secret=secret)
        basic = base64.b64encode(f"Planted:{secret}".encode()).decode()
        secrets[f"Basic {secret}"] = basic
        client.post(
            "/id/connect/token",
            "grant_type=client_credentials",
            content_type="application/x-www-form-urlencoded",
            headers={"Authorization": f"Basic {basic}"},
        )

    browser = Browser(client)
    browser.log_in("demo", secrets["wrong password"])
    signed_in = browser.sign_in("demo", secrets["password"], scope="openid read offline_access")
    code = parameters_of(signed_in.headers["Location"])["code"]
    answer = browser.redeem(code)
    assert answer.status_code == 200, answer.content
    tokens = answer.json()
    secrets |= {"code": code} | {name: tokens[name] for name in ("access_token", "refresh_token", "id_token")}
    secrets |= {f"cookie {name}": morsel.value for name, morsel in client.cookies.items() if "session" in name}
    browser.redeem(code)  # again, which ends what came of it
    for token in ("refresh_token", "access_token"):
        token_request(
            client, grant_type="refresh_token", client_id=WEB, client_secret="DEMO", refresh_token=tokens[token]
        )

    for token in (
        secrets["reference token"],
        tokens["access_token"],
        tokens["access_token"][:-4] + "abcd",
        "planted-token",
    ):
        Api(client, token).get(f"{SET}?$top=1&access_token=planted-in-query")
    secrets |= {"a token that is none": "planted-token", "query": "planted-in-query"}

    headers = "Authorization: Bearer planted-hook\nX-Api-Key: planted-key"
    tell_of_currencies(world, loopback_receiver, Headers=headers, Body="{Name}", RetryLogic="NoRetry")
    secrets |= {
        "signing secret": signing_secret_rotate("HOOK", by=OPERATOR),
        "header": "planted-hook",
        "API key": "planted-key",
    }
    secrets |= {"value": "planted-value", "broken body": "planted-broken", "source": "planted-source"}
    loopback_receiver.answer(200, 500)
    for sign in ("XTS", "XXX"):
        api.create(SET, {"CurrencySign": sign, "Name": "planted-value"})
    deliver_due()
    assert len(loopback_receiver.requests) == 2
    api.post(SET, '{"CurrencySign": "planted-broken', Content_Type="application/json")
    api.post(SET, {"CurrencySign": "XTS", "NoSuchAttribute": "planted-broken"})
    url = loopback_receiver.url
    execute(
        api, f"console.log('planted-source', Action.http.post('{url}', 'planted-value', {{'X-Key': 'planted-key'}}))"
    )
    execute(api, "throw new Error('planted-source')")

    assert {"slow rule", "webhook not delivered"} <= {line["message"].partition(":")[0] for line in lines.json}
    assert sum(line["logger"] == "platform.request" for line in lines.json) > 15
    for what, secret in secrets.items():
        assert len(secret) > 8, what
        assert [text for text in lines.texts if secret in text] == [], what
    lines.handle(logging.makeLogRecord({"msg": f"called with {api.token}"}))  # past the suite's own watch
    assert len([text for text in lines.texts if api.token in text]) == 2, "a line with one would not be found"
