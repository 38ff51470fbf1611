"""Sites that a signed-in person visits do nothing in their name.

Who: the author of a page on another host, which a person opens beside the instance; who listens to the network. What:
to send forms or requests with the person's cookies, to read answers of the API, to frame a page, to run a script in
one, to read a cookie that was sent without TLS. What prevents it: the API takes tokens and no cookies; forms carry a
CSRF proof; the Content-Security-Policy; CORS for the origins of trusted applications alone; TLS settings that follow
from BASE_URL.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from identity.models import User
from platform_site.environment import BASE_DIR
from tests.attacks.access import digest
from tests.attacks.test_every_secret import address, routes

pytestmark = pytest.mark.once

#: Addresses that take a POST without a CSRF proof, because they look at no cookie, or change nothing by it.
WITHOUT_COOKIES = {
    "id/connect/authorize",  # answers a redirect to itself as a GET
    "id/connect/deviceauthorization",
    "id/connect/token", "id/connect/revocation", "id/connect/introspect", "id/connect/userinfo",
    "id/connect/par",
    "id/connect/endsession",  # asks, with a form of its own
    "sys/sha256", "sys/tools/sha256", "tools/sha256",
    "scim/v2/Users", "scim/v2/Groups", "scim/v2/^.*$",  # 401 without a token
}  # fmt: skip
ORIGIN = "https://evil.example"


@pytest.fixture
def victim(demo: None) -> Client:
    """The browser of an administrator who is signed in."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(User.objects.get(login="admin"))
    return client


def addresses() -> dict[str, str]:
    """Route → an address of it, with made-up values."""
    return {
        route: re.sub(r"<[^>]*>", "0" * 32, address(route))
        for route in routes(get_resolver())
        if "?P<" not in route or route.startswith("api/")
    }


def test_no_form_of_another_site_is_accepted(victim: Client) -> None:
    before = digest()
    accepted = {}
    for route, path in addresses().items():
        answer = victim.post(path, {"post": "yes"}, headers={"Origin": ORIGIN, "Referer": f"{ORIGIN}/"})
        if answer.status_code not in (403, 404, 405) and not route.startswith("api/"):
            accepted[route] = answer.status_code
    assert accepted.keys() - {"admin/login/", "admin/logout/", "admin/password_change/"} == WITHOUT_COOKIES
    assert digest() == before
    assert victim.get("/profile/").status_code == 200  # not signed out either


def test_the_api_looks_at_no_cookie(victim: Client) -> None:
    for path in ("", "General_Currencies", "Systems_Security_Users", "$batch", "ExecuteScript", "Reset"):
        assert victim.get(f"/api/domain/odata/{path}").status_code == 401, path
        assert victim.post(f"/api/domain/odata/{path}", {}, content_type="application/json").status_code == 401, path
    assert victim.get("/api/domain/currentmodel").status_code == 401


def test_other_origins_read_no_answer_and_every_page_has_a_policy_that_runs_no_foreign_code(victim: Client) -> None:
    """Only what tells nothing of the person may be read by every origin."""
    public = {
        "/sys/auto-discovery",
        "/tools/auto-discovery",
        "/sys/ver",
        "/sys/server-info",
        "/sys/sha256",
        "/sys/tools/sha256",
    }
    public |= {"/sys/audit/head", "/tools/ver", "/tools/server-info", "/tools/sha256"}
    readable = set()
    looked_at = 0
    for path in addresses().values():
        answer = victim.get(path, headers={"Origin": ORIGIN})
        assert "Access-Control-Allow-Credentials" not in answer.headers, path
        if "Access-Control-Allow-Origin" in answer.headers:
            readable.add(path)
        if not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        looked_at += 1
        policy = dict(part.strip().partition(" ")[::2] for part in answer["Content-Security-Policy"].split(";"))
        assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'self'",) * 3, path
        assert policy["frame-ancestors"] == policy["object-src"] == "'none'", path
        text = answer.content.decode()
        assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", text)), path
        assert not re.search(r"<[^>]+\son\w+=", text), path
        assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', text), path
    assert looked_at > 300
    assert {path for path in readable if "/.well-known/" not in path} == public


def settings_of(**environment: str) -> dict[str, Any]:
    """The product's settings in an environment."""
    names = [
        "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS",
        "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME",
        "COOKIE_PREFIX",
    ]  # fmt: skip
    source = (
        f"import json; from platform_site import settings; print(json.dumps([getattr(settings, n) for n in {names}]))"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("BASE_URL", "SECURE")}
    run = subprocess.run(
        [sys.executable, "-c", source], cwd=BASE_DIR, env={**kept, **environment}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return dict(zip(names, json.loads(run.stdout), strict=True))


def test_with_https_nothing_goes_out_without_tls() -> None:
    secure = settings_of(BASE_URL="https://erp.example.com")
    assert [secure[name] for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT")] == [
        True
    ] * 3
    assert secure["SECURE_HSTS_SECONDS"] >= 31_536_000
    assert (secure["SESSION_COOKIE_HTTPONLY"], secure["SESSION_COOKIE_SAMESITE"]) == (True, "Lax")
    plain = settings_of(BASE_URL="http://127.0.0.1:8000")
    assert not plain["SESSION_COOKIE_SECURE"]
    assert not plain["COOKIE_PREFIX"]


def test_no_sibling_host_sets_a_cookie_of_the_instance() -> None:
    """Browsers refuse a cookie of this prefix that names a domain, or comes without TLS (RFC 6265bis, 4.1.3.2)."""
    secure = settings_of(BASE_URL="https://erp.example.com")
    for name in ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "COOKIE_PREFIX"):
        assert secure[name].startswith("__Host-"), name
