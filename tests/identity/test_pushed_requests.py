"""Pushed authorization requests (RFC 9126)."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from foundation.fields import utc_now
from identity.models import PushedRequest, TrustedApplication
from identity.oauth.pushed import REQUEST_URI_PREFIX, pushed_requests_prune
from tests.identity.flows import (
    DUAL,
    PUBLIC,
    REDIRECT,
    SECRET,
    SERVICE,
    WEB,
    Browser,
    Response,
    fields_of,
    parameters_of,
    pkce,
)
from tests.support.client_keys import ISSUER, ClientKey

pytestmark = pytest.mark.once

PAR = "/id/connect/par"
KEY = ClientKey()


def push(browser: Browser, **parameters: Any) -> Response:
    """Push the request of `Browser.ask`, by default with the secret."""
    form = browser.ask(**{"client_secret": SECRET, **parameters})
    return browser.client.post(PAR, urlencode(form), content_type="application/x-www-form-urlencoded")


def pushed(browser: Browser, **parameters: Any) -> str:
    """The request_uri of a pushed request."""
    response = push(browser, **parameters)
    assert response.status_code == 201, response.content
    return str(response.json()["request_uri"])


def open_(browser: Browser, request_uri: str, client_id: str = WEB, **more: str) -> Response:
    """The authorization endpoint's first answer to the request_uri."""
    return browser.client.get("/id/connect/authorize", {"client_id": client_id, "request_uri": request_uri, **more})


def go_on(browser: Browser, response: Response, login: str = "demo") -> Response:
    """Log in and follow this instance's redirects."""
    while (location := response.headers.get("Location", "")).startswith("/id/"):
        at_login = location.startswith("/id/account/login")
        response = browser.log_in(login, at=location) if at_login else browser.client.get(location)
    assert "Location" in response.headers or "_consent" in response.content.decode(), response.content
    return response


def error_on_page(response: Response) -> str:
    """The error code of an error page, which redirects nowhere."""
    assert response.status_code == 400
    assert "Location" not in response.headers
    found: str = response.context["error"]
    return found


class TestPush:
    def test_the_metadata_has_the_endpoint(self, http: Client) -> None:
        metadata = http.get("/id/.well-known/openid-configuration").json()
        assert metadata["pushed_authorization_request_endpoint"] == f"{ISSUER}/connect/par"
        assert metadata["require_pushed_authorization_requests"] is False
        assert "private_key_jwt" in metadata["token_endpoint_auth_methods_supported"]
        assert "none" not in metadata["token_endpoint_auth_signing_alg_values_supported"]

    def test_a_pushed_request_signs_in(self, browser: Browser) -> None:
        response = push(browser, state="pushed state", nonce="pushed nonce")
        assert response.status_code == 201
        assert response.headers["Cache-Control"] == "no-store"
        assert response.json()["expires_in"] <= 90
        first = open_(browser, response.json()["request_uri"])
        # Neither the parameters nor the request_uri travel through the pages of the login.
        assert "pushed" not in first.headers["Location"].replace("_pushed", "")
        assert "request_uri" not in first.headers["Location"]
        answer = parameters_of(go_on(browser, first).headers["Location"])
        assert answer["state"] == "pushed state"
        assert browser.redeem(answer["code"]).status_code == 200
        assert not PushedRequest.objects.exists()

    @pytest.mark.parametrize(
        "parameters, error",
        [
            ({"client_secret": "wrong"}, "invalid_client"),
            ({"client_secret": None}, "invalid_client"),
            ({"client_id": "Nobody"}, "invalid_client"),
            ({"client_id": None}, "invalid_client"),
            ({"client_id": f"{DUAL}-service"}, "invalid_request"),
            ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
            ({"response_type": None}, "invalid_request"),
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"response_mode": "smoke"}, "invalid_request"),
            ({"scope": "everything"}, "invalid_scope"),
            ({"prompt": "none login"}, "invalid_request"),
            ({"max_age": "-1"}, "invalid_request"),
            ({"nonce": "x" * 256}, "invalid_request"),
            ({"id_token_hint": "x"}, "invalid_request"),
            ({"code_challenge": "short", "code_challenge_method": "S256"}, "invalid_request"),
            ({"request": "eyJ"}, "request_not_supported"),
            ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "invalid_request"),
            ({"client_id": PUBLIC, "client_secret": None}, "invalid_request"),  # without PKCE
            ({"client_id": SERVICE, "redirect_uri": None}, "invalid_request"),
        ],
    )
    def test_wrong_parameters_are_refused_before_anybody_signs_in(
        self, browser: Browser, parameters: dict[str, str], error: str
    ) -> None:
        response = push(browser, **parameters)
        assert response.status_code in {400, 401}
        assert response.json()["error"] == error
        assert response.json()["error_description"]
        assert not PushedRequest.objects.exists()

    def test_malformed_forms_are_refused(self, browser: Browser) -> None:
        form = urlencode(browser.ask(client_secret=SECRET))
        kind = "application/x-www-form-urlencoded"
        assert browser.client.get(PAR).status_code == 405
        assert browser.client.post(PAR, json.dumps({}), content_type="application/json").status_code == 400
        assert browser.client.post(PAR, f"{form}&state=again", content_type=kind).status_code == 400
        assert browser.client.post(f"{PAR}?state=x", form, content_type=kind).status_code == 400
        assert browser.client.post(PAR, f"{form}&x={'x' * 20_000}", content_type=kind).status_code == 413
        assert not PushedRequest.objects.exists()

    def test_an_assertion_authenticates_and_is_not_stored(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(
            client_authentication="PrivateKeyJwt", json_web_key_set=KEY.jwks
        )
        fields = KEY.assertion(WEB, aud=f"{ISSUER}/connect/par")
        uri = pushed(browser, client_id=None, client_secret=None, **fields)
        assert "client_assertion" not in PushedRequest.objects.get().parameters
        assert "/id/account/login" in open_(browser, uri).headers["Location"]
        assert push(browser, client_secret=None, **fields).json()["error"] == "invalid_client"

    def test_public_applications_push_too(self, browser: Browser) -> None:
        verifier, challenge = pkce()
        uri = pushed(
            browser, client_id=PUBLIC, client_secret=None, code_challenge=challenge, code_challenge_method="S256"
        )
        answer = parameters_of(go_on(browser, open_(browser, uri, PUBLIC)).headers["Location"])
        assert browser.redeem(answer["code"], PUBLIC, code_verifier=verifier).status_code == 200


class TestUse:
    def test_a_request_uri_is_used_once(self, browser: Browser) -> None:
        uri = pushed(browser)
        assert open_(browser, uri).status_code == 302
        other = Browser(Client())
        assert error_on_page(open_(other, uri)) == "invalid_request_uri"
        assert error_on_page(open_(browser, uri)) == "invalid_request_uri"

    def test_it_is_bound_to_its_client(self, browser: Browser) -> None:
        uri = pushed(browser)
        for client_id in (DUAL, "Nobody", "", f"{WEB}-service"):
            assert error_on_page(open_(browser, uri, client_id)) == "invalid_request_uri"
        assert open_(browser, uri).status_code == 302  # and the attempts did not use it up

    def test_it_expires(self, browser: Browser) -> None:
        uri = pushed(browser)
        assert PushedRequest.objects.get().expires <= utc_now() + datetime.timedelta(seconds=90)
        PushedRequest.objects.update(expires=utc_now())
        assert error_on_page(open_(browser, uri)) == "invalid_request_uri"
        assert pushed_requests_prune() == 1

    @pytest.mark.parametrize("token", ["", "\0", "x", "x" * 2000, "\ud7ff"])
    def test_unknown_ones_open_nothing(self, browser: Browser, token: str) -> None:
        uri = REQUEST_URI_PREFIX + token
        assert error_on_page(open_(browser, uri)) == "invalid_request_uri"
        assert error_on_page(browser.authorize(request_uri=uri, _pushed="x")) == "invalid_request_uri"

    def test_a_request_uri_from_elsewhere_is_not_fetched(self, browser: Browser) -> None:
        answer = parameters_of(browser.authorize(request_uri="https://evil.example/r").headers["Location"])
        assert answer["error"] == "request_uri_not_supported"

    def test_parameters_beside_it_do_not_count(self, browser: Browser) -> None:
        """RFC 9101, 5: OpenID clients repeat response_type and scope; nothing of that is used."""
        uri = pushed(browser, state="pushed")
        first = open_(
            browser, uri, redirect_uri="https://evil.example/", state="other", scope="openid read update",
            prompt="none", response_mode="fragment", login_hint="admin",
        )  # fmt: skip
        assert "admin" not in first.headers["Location"]
        location = go_on(browser, first).headers["Location"]
        assert location.startswith(f"{REDIRECT}?")
        answer = parameters_of(location)
        assert answer["state"] == "pushed"
        assert browser.redeem(answer["code"]).json()["scope"] == "openid profile email read"

    def test_the_handle_cannot_be_pushed_nor_changed(self, browser: Browser) -> None:
        uri = pushed(browser, _consent="forged", _asked="forged", prompt="consent")
        assert not {"_consent", "_asked"} & PushedRequest.objects.get().parameters.keys()
        page = go_on(browser, open_(browser, uri))
        shown = page.content.decode()
        proof = re.search(r'name="_consent" value="([^"]+)"', shown)
        assert proof
        fields = {**fields_of(shown), "_consent": proof[1]}
        assert not {"scope", "state", "nonce", "prompt"} & fields.keys()
        assert error_on_page(browser.client.get("/id/connect/authorize", {**fields, "client_id": DUAL}))
        agreed = browser.client.get("/id/connect/authorize", {**fields, "scope": "openid exec"})
        answer = parameters_of(agreed.headers["Location"])
        assert browser.redeem(answer["code"]).json()["scope"] == "openid profile email read"

    def test_a_fresh_login_and_errors_go_to_the_client(self, browser: Browser) -> None:
        browser.sign_in()
        answer = go_on(browser, open_(browser, pushed(browser, prompt="login", max_age="0")))
        assert "code" in parameters_of(answer.headers["Location"])
        refused = open_(Browser(Client()), pushed(browser, prompt="none"))
        assert parameters_of(refused.headers["Location"])["error"] == "login_required"
        assert not PushedRequest.objects.exists()


def test_a_flood_of_a_public_application_is_refused(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may push for it, and each request stores a row."""
    _verifier, challenge = pkce()
    form = {"client_id": PUBLIC, "client_secret": None, "code_challenge": challenge, "code_challenge_method": "S256"}
    statuses = [push(browser, **form).status_code for _ in range(121)]
    assert statuses == [201] * 120 + [429]
    assert push(browser).status_code == 201


def test_an_application_may_have_to_push(browser: Browser) -> None:
    TrustedApplication.objects.filter(application_uri=WEB).update(pushed_requests_required=True)
    answer = parameters_of(browser.authorize().headers["Location"])
    assert (answer["error"], "push" in answer["error_description"]) == ("invalid_request", True)
    request_uri = pushed(browser, code_challenge=pkce()[1], code_challenge_method="S256")
    assert "code" in parameters_of(go_on(browser, open_(browser, request_uri)).headers["Location"])
