"""`/tools/resource-monitor`: the machine, the processes and the figures, for administrators."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from identity.models import User
from identity.rate_limits import limits
from tests.identity.conftest import browser, demo, fresh_process  # noqa: F401
from tests.identity.flows import SERVICE, Browser, service_token

PATH = "/tools/resource-monitor"
#: An address that may not read the metrics without a token.
AWAY: dict[str, Any] = {"REMOTE_ADDR": "203.0.113.9"}


def of(login: str) -> APIClient:
    """A client with the cookie of a user's sign-in."""
    client = APIClient()
    client.force_login(User.objects.get(login=login))
    return client


def test_it_shows_processes_queue_database_and_sessions(demo: None) -> None:  # noqa: F811
    body = of("admin").get(PATH, **AWAY).json()
    own = next(each for each in body["processes"] if each["id"] == os.getpid())
    assert own["memoryBytes"] > 1_000_000
    assert own["threads"] >= 1
    assert body["totalMemoryMiB"] > body["usedMemoryMiB"] > 0
    figures = body["figures"]
    assert figures["platform_database_connections"] >= 0
    assert figures["platform_queue_tasks"] >= 0
    assert figures["platform_session_slots"] >= 1
    assert figures["platform_sessions"] >= 0
    assert 'platform_webhook_deliveries{state="pending"}' in figures


def test_browsers_get_a_page(demo: None) -> None:  # noqa: F811
    response = of("admin").get(PATH, headers={"Accept": "text/html,*/*;q=0.8"}, **AWAY)
    assert response.headers["Content-Type"].startswith("text/html")
    assert "platform_session_slots" in response.content.decode()


def test_browsers_without_a_sign_in_get_the_login_page(demo: None) -> None:  # noqa: F811
    response = APIClient().get(PATH, headers={"Accept": "text/html"}, **AWAY)
    assert (response.status_code, response.headers["Location"]) == (302, f"/id/account/login?next={PATH}")


def test_others_are_refused(demo: None, browser: Browser) -> None:  # noqa: F811
    assert APIClient().get(PATH, **AWAY).status_code == 401
    for headers in ({}, {"Accept": "text/html"}):
        refused = of("demo").get(PATH, headers=headers, **AWAY)
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "PermissionDenied")
    token = browser.tokens()["access_token"]
    assert APIClient().get(PATH, headers={"Authorization": f"Bearer {token}"}, **AWAY).status_code == 403
    assert APIClient().post(PATH, {}, **AWAY).status_code == 405


def test_tokens_of_administrators_and_of_the_metrics(demo: None, settings: Settings) -> None:  # noqa: F811
    client = APIClient()
    # The demo's service is an administrator.
    service: dict[str, Any] = {"headers": {"Authorization": f"Bearer {service_token(client, SERVICE)}"}, **AWAY}
    assert client.get(PATH, **service).status_code == 200
    settings.METRICS_TOKEN = "let-me-see"
    assert client.get(PATH, headers={"Authorization": "Bearer let-me-see"}, **AWAY).status_code == 200
    assert client.get(PATH, **service).status_code == 200
    assert client.get(PATH, headers={"Authorization": "Bearer guess"}, **AWAY).status_code == 401


def test_guesses_of_the_metrics_token_are_limited(demo: None, settings: Settings) -> None:  # noqa: F811
    settings.METRICS_TOKEN = "let-me-see"
    guess: dict[str, Any] = {"headers": {"Authorization": "Bearer guess"}, **AWAY}
    answered = [APIClient().get(PATH, **guess).status_code for _ in range(limits().token_failures_per_minute + 2)]
    assert answered[-1] == 429


pytestmark = [pytest.mark.django_db, pytest.mark.once]
