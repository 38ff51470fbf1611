"""The client_credentials grant and dual-mode applications (spec 01, 1.4)."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest
from django.test import Client

from identity.models import TrustedApplication
from tests.identity.flows import DUAL, PUBLIC, SECRET, SERVICE, WEB, token_request


def ask(http: Client, client_id: str, secret: str = SECRET, **form: str) -> Any:
    return token_request(http, grant_type="client_credentials", client_id=client_id, client_secret=secret, **form)


def test_it_gives_a_service_an_access_token_and_nothing_else(http: Client) -> None:
    response = ask(http, SERVICE, scope="read update exec")
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, "read update exec")
    assert response.headers["Cache-Control"] == "no-store"
    header = jwt.get_unverified_header(body["access_token"])
    claims = jwt.decode(body["access_token"], options={"verify_signature": False})
    assert (header["typ"], header["alg"]) == ("at+jwt", "RS256")
    assert claims["iss"] == "http://testserver/id"
    assert claims["aud"] == ["DomainAPI", "TableAPI"]
    assert claims["scope"] == ["read", "update", "exec"]
    assert claims["client_system_user"] == "service"
    assert claims["client_system_user_type"] == "SystemUserNoLogin"
    assert {"jti", "sid", "nbf", "iat", "exp", "client_system_user_id"} <= set(claims)
    assert claims["client_id"] == SERVICE


def test_it_accepts_basic_authentication(http: Client) -> None:
    header = "Basic " + base64.b64encode(f"{SERVICE}:{SECRET}".encode()).decode()
    response = http.post(
        "/id/connect/token",
        "grant_type=client_credentials",
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": header},
    )
    assert response.status_code == 200


def test_no_scope_asked_gives_all_that_fit(http: Client) -> None:
    assert ask(http, SERVICE).json()["scope"] == "read update exec"
    assert ask(http, f"{DUAL}-service").json()["scope"] == "read update exec"


def test_the_legacy_scope_is_ignored(http: Client) -> None:
    assert ask(http, SERVICE, scope="DomainApi").json()["scope"] == "read update exec"
    assert ask(http, SERVICE, scope="DomainApi read").json()["scope"] == "read"
    # Beside scopes that are none of the API it means read and update, never exec.
    assert ask(http, SERVICE, scope="openid DomainApi").json()["scope"] == "read update"


@pytest.mark.parametrize("scope", ["sec", "read sec", "openid", "nonsense"])
def test_a_scope_beyond_the_application_is_refused(http: Client, scope: str) -> None:
    response = ask(http, SERVICE, scope=scope)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_scope")
    assert response.json()["error_description"]


@pytest.mark.parametrize("client_id, secret", [(SERVICE, "wrong"), (SERVICE, ""), ("nobody", SECRET), ("", SECRET)])
def test_a_wrong_client_is_refused_with_a_challenge(http: Client, client_id: str, secret: str) -> None:
    response = ask(http, client_id, secret)
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    assert response.headers["WWW-Authenticate"].startswith("Basic")
    assert response.headers["Cache-Control"] == "no-store"


def test_a_disabled_application_is_unauthorized(http: Client) -> None:
    TrustedApplication.objects.filter(application_uri=SERVICE).update(is_enabled=False)
    response = ask(http, SERVICE)
    assert (response.status_code, response.json()["error"]) == (400, "unauthorized_client")
    assert "disabled" in response.json()["error_description"]


def test_unknown_and_missing_grant_types(http: Client) -> None:
    unknown = token_request(http, grant_type="password", client_id=SERVICE, client_secret=SECRET)
    assert (unknown.status_code, unknown.json()["error"]) == (400, "unsupported_grant_type")
    missing = token_request(http, client_id=SERVICE, client_secret=SECRET)
    assert (missing.status_code, missing.json()["error"]) == (400, "invalid_request")


def test_an_empty_body_lacks_a_grant_type_and_no_content_type(http: Client) -> None:
    answer = http.generic("POST", "/id/connect/token")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert "grant_type" in answer.json()["error_description"]


def test_other_methods_and_bodies_are_refused(http: Client) -> None:
    assert http.get("/id/connect/token").status_code == 405
    assert (
        http.post("/id/connect/token", {"a": 1}, content_type="application/json").json()["error"] == "invalid_request"
    )


class TestDualMode:
    def test_the_suffix_is_the_service_half(self, http: Client) -> None:
        assert ask(http, f"{DUAL}-service").status_code == 200

    def test_the_plain_name_is_refused_and_the_suffix_named(self, http: Client) -> None:
        response = ask(http, DUAL)
        assert (response.status_code, response.json()["error"]) == (400, "unauthorized_client")
        assert f"{DUAL}-service" in response.json()["error_description"]

    def test_a_service_only_application_uses_its_plain_name(self, http: Client) -> None:
        assert ask(http, SERVICE).status_code == 200
        refused = ask(http, f"{SERVICE}-service")
        assert (refused.status_code, refused.json()["error"]) == (400, "unauthorized_client")

    @pytest.mark.parametrize("field", ["impersonate_logout_url", "impersonate_login_url"])
    def test_it_needs_login_and_logout_urls(self, http: Client, field: str) -> None:
        TrustedApplication.objects.filter(application_uri=DUAL).update(**{field: ""})
        assert ask(http, f"{DUAL}-service").json()["error"] == "unauthorized_client"

    def test_it_needs_a_system_user(self, http: Client) -> None:
        TrustedApplication.objects.filter(application_uri=DUAL).update(system_user_allowed=False)
        assert ask(http, f"{DUAL}-service").json()["error"] == "unauthorized_client"
        assert ask(http, f"{WEB}-service").json()["error"] == "unauthorized_client"

    def test_it_needs_nothing_else(self, http: Client) -> None:
        TrustedApplication.objects.filter(application_uri=DUAL).update(
            impersonate_as_internal_user_allowed=False, impersonate_as_community_user_allowed=False
        )
        assert ask(http, f"{DUAL}-service").status_code == 200

    def test_an_application_whose_name_ends_in_the_suffix_still_works(self, http: Client) -> None:
        plain = TrustedApplication.objects.get(application_uri=SERVICE)
        plain.pk, plain._state.adding, plain.application_uri = "01900000-0000-7000-8000-000000000001", True, "x-service"
        plain.save()
        assert ask(http, "x-service").status_code == 200

    def test_the_service_half_may_use_no_other_grant(self, http: Client) -> None:
        response = token_request(
            http, grant_type="refresh_token", client_id=f"{DUAL}-service", client_secret=SECRET, refresh_token="x"
        )
        assert response.json()["error"] == "unauthorized_client"

    def test_a_public_application_is_no_service(self, http: Client) -> None:
        response = token_request(http, grant_type="client_credentials", client_id=PUBLIC)
        assert response.json()["error"] == "unauthorized_client"
