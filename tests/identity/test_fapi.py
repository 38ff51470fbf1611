"""FAPI 2.0 Security Profile, 5.3.2: an application that an administrator holds to the profile cannot leave it.

Three switches of the application do it: ClientAuthentication PrivateKeyJwt, PushedRequestsRequired, DpopRequired. The
single rules of the three are shown in test_client_assertions.py, test_pushed_requests.py and test_dpop.py; the whole
way by two client libraries in tests/compatibility/test_clients_authlib.py and test_clients_openid_client_keys.py.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from identity.dpop import nonce_now
from identity.models import Grant, TrustedApplication
from tests.identity.flows import REDIRECT, SECRET, WEB, Browser, Response, parameters_of, pkce, token_request
from tests.support.client_keys import ISSUER, TOKEN_ENDPOINT, ClientKey

pytestmark = pytest.mark.once

PAR = "/id/connect/par"
KEY, BINDING = ClientKey(), ClientKey()
VERIFIER, CHALLENGE = pkce()


@pytest.fixture
def held(browser: Browser) -> Browser:
    """The demo's web application is held to the profile."""
    TrustedApplication.objects.filter(application_uri=WEB).update(
        client_authentication="PrivateKeyJwt", json_web_key_set=KEY.jwks, pushed_requests_required=True,
        dpop_required=True,
    )  # fmt: skip
    return browser


def push(browser: Browser, *, authentication: dict[str, str] | None = None, **changes: Any) -> Response:
    authentication = KEY.assertion(WEB) if authentication is None else authentication
    pkce_parameters = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    form = browser.ask(**{**pkce_parameters, **authentication, **changes})
    return browser.client.post(PAR, urlencode(form), content_type="application/x-www-form-urlencoded")


def answer(browser: Browser) -> Response:
    """The answer that goes to the application, after the pushed request and the login."""
    request_uri = push(browser).json()["request_uri"]
    return browser.sign_in(**{**dict.fromkeys(browser.ask()), "client_id": WEB, "request_uri": request_uri})


def redeem(code: str, *, proof: ClientKey | None = BINDING, authentication: dict[str, str] | None = None) -> Response:
    headers = {"DPoP": proof.proof("POST", TOKEN_ENDPOINT, nonce=nonce_now())} if proof else {}
    return token_request(
        Client(headers=headers), grant_type="authorization_code", code=code, redirect_uri=REDIRECT,
        code_verifier=VERIFIER, **(KEY.assertion(WEB) if authentication is None else authentication),
    )  # fmt: skip


def test_the_whole_way(held: Browser) -> None:
    response = answer(held)
    assert response.status_code in {302, 303}  # 307 would send the login form on
    found = parameters_of(response.headers["Location"])
    assert (found["iss"], found["state"]) == (ISSUER, "xyz")
    lifetime = Grant.objects.get().expires.timestamp() - time.time()
    assert 0 < lifetime <= 60
    tokens = redeem(found["code"])
    assert tokens.status_code == 200, tokens.content
    assert (tokens.json()["token_type"], "refresh_token" in tokens.json()) == ("DPoP", False)
    # A code gives tokens once.
    assert redeem(found["code"]).json()["error"] == "invalid_grant"


def test_a_pushed_request_lives_for_less_than_ten_minutes(held: Browser) -> None:
    assert 5 <= push(held).json()["expires_in"] < 600


def test_a_request_that_was_not_pushed_is_refused(held: Browser) -> None:
    found = parameters_of(held.authorize(code_challenge=CHALLENGE, code_challenge_method="S256").headers["Location"])
    assert found["error"] == "invalid_request"
    assert "code" not in found


@pytest.mark.parametrize("authentication", [{"client_secret": SECRET}, {}])
def test_the_key_alone_authenticates(held: Browser, authentication: dict[str, str]) -> None:
    assert push(held, authentication=authentication).json()["error"] == "invalid_client"
    code = parameters_of(answer(held).headers["Location"])["code"]
    assert redeem(code, authentication={"client_id": WEB, **authentication}).json()["error"] == "invalid_client"


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"redirect_uri": f"{REDIRECT}/more"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "id_token token"}, "unsupported_response_type"),
    ],
)
def test_what_the_profile_forbids_is_refused_when_it_is_pushed(
    held: Browser, changes: dict[str, Any], error: str
) -> None:
    response = push(held, **changes)
    assert (response.status_code, response.json()["error"]) == (400, error), response.content


def test_tokens_are_bound_or_there_are_none(held: Browser) -> None:
    code = parameters_of(answer(held).headers["Location"])["code"]
    assert redeem(code, proof=None).json()["error"] == "invalid_dpop_proof"


def test_there_is_no_password_grant(held: Browser) -> None:
    form = {"grant_type": "password", "username": "demo", "password": "demo"}
    assert token_request(held.client, **form, **KEY.assertion(WEB)).json()["error"] in {
        "unsupported_grant_type", "unauthorized_client",
    }  # fmt: skip
