"""Dynamic client registration (RFC 7591): off by default, by initial access token, and within the policy."""

from __future__ import annotations

import datetime
import json
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from foundation.fields import utc_now
from identity.models import RegistrationPolicy, RegistrationToken, TrustedApplication
from identity.oauth.registration import application_register, metadata_parse, registration_token_issue
from tests.identity.flows import Browser, Response, fields_of, parameters_of, pkce, token_request

REGISTER, DISCOVERY = "/id/connect/register", "/id/.well-known/openid-configuration"
CALLBACK = "https://app.example/callback"
METADATA: dict[str, Any] = {"client_name": "Notes", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}


@pytest.fixture
def policy(demo: None) -> RegistrationPolicy:
    """Registration is allowed, and new applications are enabled at once."""
    return RegistrationPolicy.objects.create(is_allowed=True, needs_approval=False)


@pytest.fixture
def token(policy: RegistrationPolicy) -> str:
    return registration_token_issue(name="Team", uses=20, lifetime=datetime.timedelta(days=1))[0]


def register(token: str | None, body: Any = None, **metadata: Any) -> Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    text = body if isinstance(body, (str, bytes)) else json.dumps({**METADATA, **metadata})
    return Client().post(REGISTER, text, content_type="application/json", headers=headers)


def refused(response: Response, error: str, status: int = 400) -> None:
    assert (response.status_code, response.json()["error"]) == (status, error), response.content
    assert response.json()["error_description"]
    assert not TrustedApplication.objects.filter(registration_source="dcr").exists()


def test_it_is_off_by_default(demo: None) -> None:
    token = registration_token_issue(name="Team", uses=1, lifetime=datetime.timedelta(days=1))[0]
    refused(register(token), "not_found", 404)
    assert "registration_endpoint" not in Client().get(DISCOVERY).json()


def test_discovery_names_the_endpoint(policy: RegistrationPolicy) -> None:
    assert Client().get(DISCOVERY).json()["registration_endpoint"] == "http://testserver/id/connect/register"


def test_a_public_application_registers_and_signs_somebody_in(browser: Browser, token: str) -> None:
    response = register(token)
    assert (response.status_code, response.headers["Cache-Control"]) == (201, "no-store")
    found = response.json()
    assert "client_secret" not in found
    assert {name: found[name] for name in METADATA} == METADATA
    assert (found["scope"], found["grant_types"]) == ("openid profile email", ["authorization_code"])
    verifier, challenge = pkce()
    asked = {
        "client_id": found["client_id"], "redirect_uri": CALLBACK, "scope": "openid",
        "code_challenge": challenge, "code_challenge_method": "S256",
    }  # fmt: skip
    page = browser.sign_in(**asked)
    # Nobody has approved it, so the person is asked each time, and sees where the code goes.
    text = page.content.decode()
    assert "registered itself" in text
    assert "app.example" in text
    allowed = text.split('name="_consent" value="')[1].split('"')[0]
    answer = browser.client.get("/id/connect/authorize", {**fields_of(text), "_consent": allowed})
    code = parameters_of(answer.headers["Location"])["code"]
    form = {"client_id": found["client_id"], "redirect_uri": CALLBACK, "code_verifier": verifier, "code": code}
    tokens = token_request(browser.client, grant_type="authorization_code", **form)
    assert tokens.status_code == 200, tokens.content
    assert "registered itself" in browser.sign_in(**asked).content.decode()
    silent = browser.authorize(**asked, prompt="none")
    assert parameters_of(silent.headers["Location"])["error"] == "consent_required"


def test_a_confidential_application_needs_pkce_too(browser: Browser, token: str) -> None:
    found = register(token, token_endpoint_auth_method="client_secret_post", grant_types=["authorization_code"]).json()
    assert found["client_secret"]
    assert found["client_secret_expires_at"] == 0
    assert found["client_secret"] not in str(
        TrustedApplication.objects.get(application_uri=found["client_id"]).__dict__
    )
    answer = browser.authorize(client_id=found["client_id"], redirect_uri=CALLBACK, scope="openid")
    assert parameters_of(answer.headers["Location"])["error"] == "invalid_request"
    form = {"client_id": found["client_id"], "client_secret": found["client_secret"]}
    service = token_request(Client(), grant_type="client_credentials", **form)
    assert service.json()["error"] == "unauthorized_client"


def test_it_waits_for_an_administrator(browser: Browser, policy: RegistrationPolicy, token: str) -> None:
    RegistrationPolicy.objects.update(needs_approval=True)
    found = register(token).json()
    application = TrustedApplication.objects.get(application_uri=found["client_id"])
    assert not application.is_enabled
    assert "Team" in str(application.notes)
    answer = browser.authorize(client_id=found["client_id"], redirect_uri=CALLBACK)
    # A page: nobody has approved the address that an error would be redirected to.
    assert answer.status_code == 400
    assert "ask an administrator" in answer.content.decode()
    application.is_enabled = True
    application.save()
    assert browser.authorize(client_id=found["client_id"], redirect_uri=CALLBACK).status_code == 302


@pytest.mark.parametrize("given", [None, "wrong", "ü", "x" * 5000])
def test_an_unknown_token_is_refused(policy: RegistrationPolicy, given: str | None) -> None:
    response = register(given)
    refused(response, "invalid_token", 401)
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_spent_token_is_refused(policy: RegistrationPolicy) -> None:
    token, row = registration_token_issue(name="Once", uses=1, lifetime=datetime.timedelta(days=1))
    assert token not in str(row.__dict__)
    assert register(token, client_name="").status_code == 400  # costs nothing
    assert register(token).status_code == 201
    assert register(token).status_code == 401
    assert TrustedApplication.objects.filter(registration_source="dcr").count() == 1


def test_two_requests_at_once_use_a_token_once(policy: RegistrationPolicy) -> None:
    """Both have found it usable before either used it."""
    token, row = registration_token_issue(name="Once", uses=1, lifetime=datetime.timedelta(days=1))
    metadata = metadata_parse(json.dumps(METADATA).encode(), policy)

    def other_first(*given: Any) -> Any:
        application_register(metadata, row, policy)
        return application_register(*given)

    with patch("identity.oauth.registration.application_register", other_first):
        assert register(token).status_code == 401
    assert TrustedApplication.objects.filter(registration_source="dcr").count() == 1


def test_an_expired_or_deleted_token_is_refused(token: str) -> None:
    RegistrationToken.objects.update(expires=utc_now() - datetime.timedelta(seconds=1))
    refused(register(token), "invalid_token", 401)
    RegistrationToken.objects.all().delete()
    refused(register(token), "invalid_token", 401)


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "data:text/html;base64,eA==", "file:///etc/passwd",
        "vbscript:x", "http://app.example/", "https://app.example/#x", "https://*.example/", "/relative", "https:///x",
        "https://good.example/,javascript:alert(1)", "https://good.example@evil.example/", "ms-settings:x",
        "https://evil.example\\.good.example/", "https://app.example/ x", "https://[::1", "https://app.example/\u0000",
        "https://äpp.example/", "https://app.example/" + "x" * 500, "",
    ],
)  # fmt: skip
def test_a_redirect_to_scripts_or_by_tricks_is_refused(token: str, uri: str) -> None:
    refused(register(token, redirect_uris=[CALLBACK, uri]), "invalid_redirect_uri")


@pytest.mark.parametrize("uri", ["http://127.0.0.1:8/cb", "http://[::1]/cb", "com.example.app:/cb", f"{CALLBACK}?a=b"])
def test_redirects_of_native_applications(token: str, uri: str) -> None:
    assert register(token, redirect_uris=[uri]).json()["redirect_uris"] == [uri]


@pytest.mark.parametrize(
    "metadata",
    [
        {"scope": "openid read"}, {"scope": "scim"}, {"scope": "sec"}, {"scope": ["openid"]}, {"scope": "everything"},
        {"grant_types": ["client_credentials"]}, {"grant_types": ["authorization_code", "password"]},
        {"grant_types": []}, {"grant_types": "authorization_code"}, {"grant_types": [1]},
        {"response_types": ["token"]}, {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": ["none"]}, {"client_name": ""}, {"client_name": "x" * 101}, {"client_name": 5},
        {"client_name": "a\u202eb"}, {"client_name": "\u0000"}, {"client_name": "\ud800"}, {"redirect_uris": CALLBACK},
    ],
    ids=str,
)  # fmt: skip
def test_metadata_beyond_the_policy_is_refused(token: str, metadata: dict[str, Any]) -> None:
    refused(register(token, **metadata), "invalid_client_metadata")


@pytest.mark.parametrize("body", ["", "[]", "null", "{", b"\xff", "[" * 9000, '{"redirect_uris": null}'])
def test_a_body_that_is_no_metadata_is_refused(token: str, body: str | bytes) -> None:
    refused(register(token, body=body), "invalid_client_metadata")


def test_a_long_body_is_refused(token: str) -> None:
    refused(register(token, software_statement="x" * 20_000), "invalid_client_metadata", 413)


def test_urls_that_this_instance_would_fetch_are_ignored(token: str) -> None:
    inside = "http://169.254.169.254/latest/meta-data"
    names = ("jwks_uri", "backchannel_logout_uri", "frontchannel_logout_uri", "sector_identifier_uri", "logo_uri")
    found = register(token, **dict.fromkeys(names, inside)).json()
    assert inside not in str(found)
    application = TrustedApplication.objects.get(application_uri=found["client_id"])
    assert inside not in str(application.__dict__)
    assert not application.system_user_allowed
    assert not application.device_flow_allowed
    assert application.access_tokens == "None"


def test_the_policy_widens_the_scopes(policy: RegistrationPolicy, token: str) -> None:
    RegistrationPolicy.objects.update(scopes="openid read")
    assert register(token).json()["scope"] == "openid read"
    assert register(token, scope="read offline_access").json()["scope"] == "read offline_access"
    refused_scope = register(token, scope="read update")
    assert refused_scope.json()["error"] == "invalid_client_metadata"


def test_a_flood_is_slowed_down(token: str) -> None:
    statuses = [register(token).status_code for _ in range(11)]
    assert statuses == [201] * 10 + [429]


def test_administrators_make_tokens_and_the_policy(demo: None, admin_client: Client) -> None:
    add = "/admin/identity/registrationtoken/add/"
    answer = admin_client.post(add, {"name": "Team", "uses": "2", "days": "3"})
    token = answer.content.decode().split('<code class="secret">')[1].split("</code>")[0]
    # Django's messages would store it in a cookie, signed and readable.
    assert "messages" not in admin_client.cookies
    assert all(token not in cookie.value for cookie in admin_client.cookies.values())
    row = RegistrationToken.objects.get()
    assert (row.name, row.uses_left) == ("Team", 2)
    assert token not in admin_client.get("/admin/identity/registrationtoken/").content.decode()
    policy = "/admin/identity/registrationpolicy/"
    wrong = admin_client.post(f"{policy}add/", {"is_allowed": "on", "scopes": "openid scim"})
    assert "Unknown scopes: scim" in wrong.content.decode()
    admin_client.post(f"{policy}add/", {"is_allowed": "on", "scopes": "openid", "needs_approval": "on"})
    assert register(token).json()["scope"] == "openid"
    assert admin_client.get(f"{policy}add/").status_code == 403
