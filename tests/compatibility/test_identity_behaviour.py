"""Identity: scopes, claims, redirect URIs, revocation, old logins, languages, tools

What clients of the reference platform rely on beside OAuth and OpenID Connect (spec 14, 14.4).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import jwt
import pytest
from django.test import Client

from identity.models import TrustedApplication
from tests.identity.conftest import fresh_process as fresh_identity  # noqa: F401  (unused counters for each test)
from tests.identity.flows import PUBLIC, SECRET, SERVICE, WEB, Browser, parameters_of, pkce, token_request
from tests.support.api import error_of

# The same on every database.
pytestmark = pytest.mark.once

CURRENCIES = "/api/domain/odata/General_Currencies_Currencies"
FORM = "application/x-www-form-urlencoded"


def _claims(token: str) -> dict[str, Any]:
    read: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return read


def _service(client: Client, **form: str) -> Any:
    return token_request(
        client, **{"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": SECRET, **form}
    )


def _with_scope(uri: str, scope: str | None) -> None:
    TrustedApplication.objects.filter(application_uri=uri).update(scope=scope)


# --- scopes and claims --------------------------------------------------------------------------------------------


def test_scopes_of_the_protocol_need_no_entry(browser: Browser) -> None:
    """`openid`, `profile`, `offline_access` are granted without an entry in Scope; others are still refused."""
    _with_scope(WEB, "read")
    tokens = browser.tokens(scope="openid profile offline_access read")
    assert set(tokens) >= {"access_token", "id_token", "refresh_token"}
    assert tokens["scope"].split() == ["openid", "profile", "offline_access", "read"]
    for beyond in ("email", "update", "nonsense"):
        refused = parameters_of(browser.authorize(scope=f"openid {beyond}").headers["Location"])
        assert refused["error"] == "invalid_scope"
        assert beyond in refused["error_description"]


def test_protocol_scopes_are_not_granted_unasked(browser: Browser) -> None:
    """A request without scope gets what Scope lists, and no scope of the protocol beyond it."""
    _with_scope(WEB, "openid read")
    assert browser.tokens(scope=None)["scope"].split() == ["openid", "read"]


@pytest.mark.parametrize("scope", [None, "", "  "])
def test_a_service_without_scope_reads_and_updates(demo: None, client: Client, scope: str | None) -> None:
    """A service application without Scope gets `read update`, and may ask for less but not for more."""
    _with_scope(SERVICE, scope)
    assert _service(client).json()["scope"] == "read update"
    assert _service(client, scope="read").json()["scope"] == "read"
    refused = _service(client, scope="exec")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope")


def test_a_service_gets_no_protocol_scope(demo: None, client: Client) -> None:
    """A service asking for `openid` alone is refused; beside API scopes it is left out."""
    alone = _service(client, scope="openid")
    assert (alone.status_code, alone.json()["error"]) == (400, "invalid_scope")
    assert _service(client, scope="openid read").json()["scope"] == "read"


def test_claims_name_the_database(browser: Browser) -> None:
    """Access tokens carry `db` and `email_verified` for users, `client_db` for services."""
    user = _claims(browser.tokens()["access_token"])
    assert user["email_verified"] is False
    service = _claims(_service(browser.client).json()["access_token"])
    assert user["db"] == service["client_db"] != ""
    assert "/" not in user["db"]


# --- redirect URIs ------------------------------------------------------------------------------------------------

REGISTERED = "http://127.0.0.1/callback?app=1,http://[::1]:7000/callback,https://app.example/callback,com.app:/done"


@pytest.mark.parametrize(
    "uri, allowed",
    [
        ("http://127.0.0.1/callback?app=1", True),
        ("http://127.0.0.1:49152/callback?app=1", True),
        ("http://[::1]:1234/callback", True),
        ("http://[::1]/callback", True),
        ("https://app.example/callback", True),
        ("com.app:/done", True),
        ("http://127.0.0.1:49152/callback", False),
        ("http://127.0.0.1:49152/callback?app=2", False),
        ("http://127.0.0.1:49152/Callback?app=1", False),
        ("http://127.0.0.1:99999/callback?app=1", False),
        ("http://127.0.0.1:/callback?app=1", False),
        ("http://127.0.0.1:1@evil.example/callback?app=1", False),
        ("http://127.0.0.1.evil.example:1/callback?app=1", False),
        ("http://localhost:1234/callback?app=1", False),
        ("https://127.0.0.1:1234/callback?app=1", False),
        ("https://app.example:8443/callback", False),
        ("http://127.0.0.1:1/callback?app=1#f", False),
        ("http://127.0.0.1:1/callback?app=1\n", False),
        ("http://127.0.0.2:1/callback?app=1", False),
    ],
)
def test_loopback_redirect_uris_match_on_any_port(browser: Browser, uri: str, allowed: bool) -> None:
    """Loopback redirect URIs of public applications match on any port; host, path and query must be equal."""
    TrustedApplication.objects.filter(application_uri=PUBLIC).update(impersonate_login_url=REGISTERED)
    verifier, challenge = pkce()
    asked = {"client_id": PUBLIC, "redirect_uri": uri, "code_challenge": challenge, "code_challenge_method": "S256"}
    if not allowed:
        refused = browser.authorize(**asked)
        assert refused.status_code == 400
        assert "Location" not in refused.headers
        return
    location = browser.sign_in(**asked).headers["Location"]
    assert location.startswith(uri)
    code = location.partition("code=")[2].partition("&")[0]
    other = browser.redeem(code, PUBLIC, redirect_uri=f"{uri}x", code_verifier=verifier)
    assert other.json()["error"] == "invalid_grant"


def test_the_port_of_the_request_counts_at_the_token_endpoint(browser: Browser) -> None:
    """The token request must name the port of the authorization request."""
    TrustedApplication.objects.filter(application_uri=PUBLIC).update(impersonate_login_url=REGISTERED)
    uri = "http://127.0.0.1:5111/callback?app=1"
    for port, status in ((5112, 400), (5111, 200)):
        verifier, challenge = pkce()
        code = browser.code(client_id=PUBLIC, redirect_uri=uri, code_challenge=challenge, code_challenge_method="S256")
        redirect = uri.replace("5111", str(port))
        answered = browser.redeem(code, PUBLIC, redirect_uri=redirect, code_verifier=verifier)
        assert answered.status_code == status


def test_confidential_applications_match_ports_exactly(browser: Browser) -> None:
    """Confidential applications: another port of the loopback address is refused."""
    assert browser.authorize(redirect_uri="http://localhost:5081/signin-callback").status_code == 400


# --- revocation ---------------------------------------------------------------------------------------------------


def test_revocation_answers_an_empty_object(demo: None, client: Client) -> None:
    """Revocation answers 200 with `{}` as application/json, for known and unknown tokens of every kind."""
    token = _service(client).json()["access_token"]
    for value in (token, token, "unknown", "enrt_" + "0" * 64):
        body = f"token={value}&client_id={SERVICE}&client_secret={SECRET}"
        answered: Any = client.post("/id/connect/revocation", body, content_type=FORM)
        assert (answered.status_code, answered.content) == (200, b"{}")
        assert answered["Content-Type"] == "application/json"
    gone: Any = client.get(CURRENCIES, headers={"Authorization": f"Bearer {token}"})
    assert gone.status_code == 401


def test_revocation_refusals(demo: None, client: Client) -> None:
    """Revocation: a wrong secret 401, no token 400, GET 405, another body type 400."""

    def post(body: str, content_type: str = FORM) -> Any:
        return client.post("/id/connect/revocation", body, content_type=content_type)

    assert post(f"token=x&client_id={SERVICE}&client_secret=wrong").status_code == 401
    assert post(f"client_id={SERVICE}&client_secret={SECRET}").status_code == 400
    assert post("{}", "application/json").status_code == 400
    assert client.get("/id/connect/revocation").status_code == 405


# --- old ways to sign in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic ZGVtbzpkZW1v"},
        {"Authorization": "ErpSession abc"},
        {"ErpSession": "abc"},
        {"Cookie": "ErpSession=abc"},
    ],
    ids=["Basic", "scheme", "header", "cookie"],
)
def test_old_credentials_are_refused_with_the_way(demo: None, client: Client, headers: dict[str, str]) -> None:
    """Basic and ErpSession (scheme, header, cookie) on the Domain API: 401 that names token endpoint and X-Api-Key."""
    refused: Any = client.get(CURRENCIES, headers=headers)
    error = error_of(refused)
    assert (refused.status_code, error["type"]) == (401, "LegacyCredentials")
    assert refused["WWW-Authenticate"].startswith("Bearer")
    assert "/id/connect/token" in error["message"]
    assert "X-Api-Key" in error["message"]


@pytest.mark.parametrize("path", ["/api/domain/login", "/api/domain/logout"])
@pytest.mark.parametrize("body", ['{"user": "demo", "pass": "demo"}', "{", ""])
def test_the_old_login_is_refused_with_the_way(demo: None, client: Client, path: str, body: str) -> None:
    """`POST /api/domain/login` and `logout`: 401 that names the way, whatever the body; other methods 405."""
    refused: Any = client.post(path, body, content_type="application/json")
    assert (refused.status_code, error_of(refused)["type"]) == (401, "LegacyCredentials")
    assert "/id/connect/token" in error_of(refused)["message"]
    assert not refused.cookies
    assert client.put(path).status_code == 405


def test_a_bearer_token_beside_an_old_cookie_counts(demo: None, client: Client) -> None:
    """A bearer token is taken even where a browser still sends an ErpSession cookie."""
    token = _service(client).json()["access_token"]
    answered: Any = client.get(CURRENCIES, headers={"Authorization": f"Bearer {token}", "Cookie": "ErpSession=abc"})
    assert answered.status_code == 200


# --- languages ----------------------------------------------------------------------------------------------------

GERMAN = [
    ("", {"Accept-Language": "de"}),
    ("?culture=de-DE", {}),
    ("?lang=de", {}),
    ("?lang=de", {"Accept-Language": "bg"}),
    ("?culture=de&lang=bg", {}),
    ("", {"Cookie": ".AspNetCore.Culture=c%3Dde-DE%7Cuic%3Dde-DE"}),
    ("", {"Cookie": ".AspNetCore.Culture=c=en-US|uic=de-DE", "Accept-Language": "bg"}),
    ("?culture=zz9", {"Accept-Language": "de"}),
    ("", {"Cookie": ".AspNetCore.Culture=nonsense", "Accept-Language": "de"}),
]


@pytest.mark.parametrize("query, headers", GERMAN)
@pytest.mark.parametrize("path", ["/id/account/login", CURRENCIES, "/api/domain/standardmodel/General_Currencies"])
def test_the_language_of_a_request(
    demo: None,
    client: Client,
    path: str,
    query: str,
    headers: dict[str, str],
) -> None:
    """`culture=`, `lang=`, `.AspNetCore.Culture` choose the language of pages and answers; nonsense is passed over."""
    answered: Any = client.get(f"{path}{query}", headers=headers)
    assert answered["Content-Language"] == "de"
    assert "Cookie" in answered["Vary"]


def test_lang_is_no_option_of_odata(demo: None, client: Client) -> None:
    """`culture=` and `lang=` beside OData's options are taken, and choose the language of refusals."""
    token = _service(client).json()["access_token"]
    for name in ("culture", "lang"):
        headers = {"Authorization": f"Bearer {token}"}
        answered: Any = client.get(f"{CURRENCIES}?$top=1&{name}=de", headers=headers)
        assert (answered.status_code, answered["Content-Language"]) == (200, "de")
        refused: Any = client.get(f"{CURRENCIES}?$filter=Nothing eq 1&{name}=de", headers=headers)
        english: Any = client.get(f"{CURRENCIES}?$filter=Nothing eq 1", headers=headers)
        assert error_of(refused)["message"] != error_of(english)["message"]


# --- tools and pages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["auto-discovery", "server-info", "resource-monitor"])
def test_tools_have_aliases(demo: None, client: Client, tool: str) -> None:
    """`/tools/auto-discovery`, `server-info` and `resource-monitor` answer what `/sys/…` answers."""
    found, alias = client.get(f"/sys/{tool}"), client.get(f"/tools/{tool}")
    assert found.status_code == alias.status_code == 200
    assert found.json().keys() == alias.json().keys()
    assert client.post(f"/tools/{tool}").status_code == 405


def test_the_resource_monitor_is_not_for_everybody(demo: None, client: Client) -> None:
    """`/tools/resource-monitor`: load, memory and processor time, for administrators and where /metrics answers."""
    content = client.get("/tools/resource-monitor").json()
    assert content["processorCount"] >= 1
    assert content["process"]["maxMemoryBytes"] > 1_000_000
    assert client.get("/tools/resource-monitor", REMOTE_ADDR="203.0.113.9").status_code == 401


def test_the_version_is_text(demo: None, client: Client) -> None:
    """`/tools/ver` is text/plain."""
    answered = client.get("/tools/ver")
    assert answered["Content-Type"].startswith("text/plain")
    assert answered.content.decode() == client.get("/sys/ver").json()["version"]


def test_the_secret_tool(demo: None, client: Client) -> None:
    """`/tools/sha256` gives what ApplicationSecretHash holds, by GET and POST; without a secret 400."""
    expected = {"sha256": base64.b64encode(hashlib.sha256(b"DEMO").digest()).decode()}
    for answered in (client.get("/tools/sha256?secret=DEMO"), client.post("/tools/sha256", {"secret": "DEMO"})):
        assert answered.status_code == 200
        assert answered.json() == expected == client.get("/sys/sha256?secret=DEMO").json()
    assert client.get("/tools/sha256").status_code == 400


@pytest.mark.parametrize(
    "old, new",
    [
        ("/api/domain/query", "/api/query"),
        ("/api/domain/querybuilder", "/api/builder"),
        ("/api/domain/docs", "/api/explorer"),
    ],
)
def test_pages_moved(demo: None, client: Client, old: str, new: str) -> None:
    """`/api/domain/query`, `querybuilder`, `docs` lead to today's pages and keep `?GET+…`; `import` is one itself."""
    query = "?GET+~/Crm_Sales_Customers?$top=10&$filter=contains(Number,'1')"
    answered = client.get(old + query)
    assert answered.status_code == 302
    location = answered["Location"]
    assert location.startswith(f"{new}?GET+~/Crm_Sales_Customers?$top=10&$filter=contains(Number,'1')")
    assert client.get(location).status_code == 200
    assert client.post(old).status_code == 405
    assert client.get("/api/domain/import").status_code == 200
