"""The commands of spec 09, 9.4 that belong to identity."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from identity.models import Session, TrustedApplication
from tests.identity.flows import SERVICE, service_token

pytestmark = pytest.mark.urls("tests.identity.api")


def run(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


def run_json(name: str, *arguments: str) -> Any:
    return json.loads(run(name, *arguments, "--json"))


def call(http: Client, token: str) -> int:
    return http.get("/api/whoami", headers={"Authorization": f"Bearer {token}"}).status_code


def test_register_app_makes_an_application_that_works(http: Client) -> None:
    made = run_json("register_app", "Billing", "--service", "--system-user", "service", "--scope", "read")
    token = service_token(http, "Billing", client_secret=made["client_secret"])
    assert call(http, token) == 200
    assert len(made["client_secret"]) >= 43  # 256 bits
    stored = TrustedApplication.objects.get(application_uri="Billing").application_secret_hash
    assert made["client_secret"] not in str(stored)


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["X", "--service"], "system user"),
        (["X", "--service", "--system-user", "customer"], "internal or a system user"),
        (["X", "--login-url", "http://example.com/cb"], "https"),
        (["X", "--login-url", "https://example.com/cb#x"], "fragment"),
        (["X", "--login-url", "javascript:alert(1)"], "scheme"),
        (["X", "--scope", "fly"], "fly"),
        (["X", "--service", "--system-user", "service", "--public"], "public"),
        ([SERVICE], "already exists"),
    ],
)
def test_register_app_says_what_is_wrong(demo: None, arguments: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        run("register_app", *arguments)


def test_issue_and_revoke_tokens(http: Client) -> None:
    personal = run_json("issue_token", "PublicDemoClient", "--user", "demo", "--scope", "read")["token"]
    plain = run("issue_token", "PublicDemoClient", "--user", "DEMO", "--lifetime", "12h").strip()
    assert [call(http, personal), call(http, plain)] == [200, 200]
    result = run_json("revoke_tokens", "--user", "demo")
    assert result["reference_tokens"] == 2
    assert [call(http, personal), call(http, plain)] == [401, 401]
    with pytest.raises(CommandError, match="scopes"):
        run("issue_token", "PublicDemoClient", "--user", "demo", "--scope", "sec")


def test_revoking_an_application_ends_its_tokens_and_sessions(http: Client) -> None:
    token = service_token(http)
    assert call(http, token) == 200
    assert run_json("revoke_tokens", "--application", SERVICE)["token_families"] == 1
    assert call(http, token) == 401
    assert not Session.objects.filter(closed=None).exists()


def test_sessions_are_listed_and_closed(http: Client) -> None:
    call(http, service_token(http))
    call(http, service_token(http))
    listed = run_json("list_sessions")
    assert [row["user"] for row in listed] == ["service", "service"]
    assert "2 of 25 slots are taken." in run("list_sessions")
    assert run_json("close_session", listed[0]["id"]) == {"closed": 1}
    assert run_json("close_session", "--user", "service") == {"closed": 1}
    assert run_json("list_sessions") == []
    assert len(run_json("list_sessions", "--all")) == 2
    assert run_json("expire_sessions")["sessions_closed"] == 0


def test_rotate_keys_lists_them(demo: None) -> None:
    run("rotate_keys")
    assert len(run_json("rotate_keys")) == 2
    assert len(run_json("rotate_keys", "--list")) == 2
