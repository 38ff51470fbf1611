"""Tokens bound to a key (DPoP, RFC 9449)."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from django.test import Client
from pytest_django import Settings

from identity.dpop import nonce_now
from identity.models import TrustedApplication
from tests.identity.flows import PUBLIC, REDIRECT, SECRET, SERVICE, WEB, Browser, Response, pkce
from tests.support.client_keys import ISSUER, TOKEN_ENDPOINT, ClientKey, token_hash

pytestmark = pytest.mark.once

API = "/api/whoami"
API_URL = f"http://testserver{API}"
KEY, OTHER = ClientKey(), ClientKey()


@pytest.fixture(autouse=True)
def an_api(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.identity.api"


def token_request(http: Client, proof: str | None, **form: str) -> Response:
    """A token request with a proof."""
    headers = {} if proof is None else {"DPoP": proof}
    kind = "application/x-www-form-urlencoded"
    return http.post("/id/connect/token", urlencode(form), content_type=kind, headers=headers)


def proof(key: ClientKey = KEY, **claims: Any) -> str:
    """A proof for the token endpoint."""
    return key.proof("POST", TOKEN_ENDPOINT, **{"nonce": nonce_now(), **claims})


def ask(http: Client, sent: str | None) -> Response:
    return token_request(
        http, sent, grant_type="client_credentials", client_id=SERVICE, client_secret=SECRET, scope="read"
    )


def bound_token(http: Client, key: ClientKey = KEY) -> str:
    response = ask(http, proof(key))
    assert response.status_code == 200, response.content
    return str(response.json()["access_token"])


def call(http: Client, token: str, sent: str | None, scheme: str = "DPoP", url: str = API) -> Response:
    headers = {"Authorization": f"{scheme} {token}", **({} if sent is None else {"DPoP": sent})}
    return http.get(url, headers=headers)


def api_proof(token: str, key: ClientKey = KEY, **claims: Any) -> str:
    return key.proof("GET", API_URL, **{"nonce": nonce_now(), "ath": token_hash(token), **claims})


def refusal(response: Response) -> str:
    """The description of a refused token request."""
    assert response.status_code == 400, response.content
    assert response.json()["error"] == "invalid_dpop_proof"
    return str(response.json()["error_description"])


def challenge(response: Response) -> str:
    """The challenge of the API."""
    assert response.status_code == 401, response.content
    return str(response.headers["WWW-Authenticate"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"htm": "PUT"}, "htm"),
    ({"htm": None}, "htm"),
    ({"htu": "http://evil.example/id/connect/token"}, "htu"),
    ({"htu": "https://testserver/id/connect/token"}, "htu"),
    ({"htu": 7}, "htu"),
    ({"htu": "http://[::1"}, "htu"),
    ({"iat": 1_700_000_000}, "iat"),
    ({"iat": 4_000_000_000}, "iat"),
    ({"iat": None}, "iat"),
    ({"iat": float("nan")}, "iat"),
    ({"jti": None}, "jti"),
    ({"jti": "x" * 256}, "jti"),
]


class TestTokenEndpoint:
    def test_the_metadata_has_the_algorithms(self, http: Client) -> None:
        metadata = http.get("/id/.well-known/openid-configuration").json()
        assert metadata["dpop_signing_alg_values_supported"] == ["RS256", "PS256", "ES256", "EdDSA"]

    @pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "PS256"])
    def test_a_proof_binds_the_token(self, http: Client, algorithm: str) -> None:
        key = ClientKey(algorithm)
        content = ask(http, proof(key)).json()
        assert content["token_type"] == "DPoP"
        claims = jwt.decode(content["access_token"], options={"verify_signature": False})
        assert claims["cnf"] == {"jkt": key.jkt}
        form = {"client_id": SERVICE, "client_secret": SECRET, "token": content["access_token"]}
        kind = "application/x-www-form-urlencoded"
        found = http.post("/id/connect/introspect", urlencode(form), content_type=kind).json()
        assert (found["token_type"], found["cnf"]) == ("DPoP", {"jkt": key.jkt})

    def test_a_nonce_of_this_instance_is_needed(self, http: Client) -> None:
        for nonce in (None, "", "old", 7, "ü"):
            response = ask(http, proof(nonce=nonce))
            assert response.status_code == 400
            assert response.json()["error"] == "use_dpop_nonce"
            assert ask(http, proof(nonce=response.headers["DPoP-Nonce"])).status_code == 200

    @pytest.mark.parametrize("claims, said", WRONG)
    def test_claims_that_are_wrong_are_named(self, http: Client, claims: dict[str, Any], said: str) -> None:
        assert said in refusal(ask(http, proof(**claims)))

    def test_equivalent_urls_are_one(self, http: Client) -> None:
        for url in ("HTTP://TestServer:80/id/connect/token", "http://testserver/id/connect/%74oken?x=1#y"):
            assert ask(http, proof(htu=url)).status_code == 200

    def test_a_proof_is_used_once(self, http: Client) -> None:
        sent = proof()
        assert ask(http, sent).status_code == 200
        assert "used before" in refusal(ask(http, sent))
        assert (
            ask(http, proof(OTHER, jti=jwt.decode(sent, options={"verify_signature": False})["jti"])).status_code == 200
        )

    def test_malformed_proofs_are_refused(self, http: Client) -> None:
        claims = {"jti": "1", "htm": "POST", "htu": TOKEN_ENDPOINT, "iat": int(time.time()), "nonce": nonce_now()}
        header: dict[str, Any] = {"typ": "dpop+jwt", "jwk": KEY.jwk}
        rsa = ClientKey("RS256", bits=1024)
        malformed = [
            "", "x", "a.b.c", f"{proof()},{proof()}", "x" * 7000,
            KEY.sign(claims, **{**header, "typ": "JWT"}),
            KEY.sign(claims, typ="dpop+jwt"),
            KEY.sign(claims, **{**header, "jwk": OTHER.jwk}),
            KEY.sign(claims, **{**header, "jwk": {**KEY.jwk, "d": "AAAA"}}),
            KEY.sign(claims, **{**header, "jwk": {**KEY.jwk, "x": "A" * 900}}),
            KEY.sign(claims, **{**header, "jwk": {"kty": "oct", "k": "AAAA"}}),
            KEY.sign(claims, **{**header, "jwk": {"kty": [], "crv": {}}}),
            KEY.sign(claims, **{**header, "jwk": "x"}),
            rsa.sign(claims, typ="dpop+jwt", jwk=rsa.jwk),
            jwt.encode(claims, "", algorithm="none", headers=header),
            jwt.encode(claims, "s" * 32, algorithm="HS256", headers=header),
        ]  # fmt: skip
        for sent in malformed:
            assert refusal(ask(http, sent)), sent

    def test_a_proof_counts_only_beside_valid_credentials(self, http: Client) -> None:
        sent = proof()
        form = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": "wrong"}
        assert token_request(http, sent, **form).status_code == 401
        assert ask(http, sent).status_code == 200

    def test_an_application_may_have_to_send_one(self, http: Client) -> None:
        assert ask(http, None).json()["token_type"] == "Bearer"
        TrustedApplication.objects.filter(application_uri=SERVICE).update(dpop_required=True)
        assert "must send" in refusal(ask(http, None))
        assert ask(http, proof()).status_code == 200


class TestApi:
    def test_a_bound_token_needs_its_key(self, http: Client) -> None:
        token = bound_token(http)
        assert call(http, token, api_proof(token)).json()["application"] == SERVICE
        assert call(http, token, api_proof(token, htu=f"{API_URL}?$top=1"), url=f"{API}?x=1").status_code == 200
        assert challenge(call(http, token, None, "Bearer")).startswith('DPoP error="invalid_token"')
        assert challenge(call(http, token, api_proof(token), "Bearer")).startswith('DPoP error="invalid_token"')
        assert challenge(call(http, token, None))
        assert 'error="invalid_token"' in challenge(call(http, token, api_proof(token, OTHER)))

    @pytest.mark.parametrize("claims, said", [*WRONG, ({"ath": None}, "ath"), ({"ath": token_hash("x")}, "ath")])
    def test_claims_that_are_wrong_are_named(self, http: Client, claims: dict[str, Any], said: str) -> None:
        token = bound_token(http)
        found = challenge(call(http, token, api_proof(token, **claims)))
        assert found.startswith('DPoP error="invalid_dpop_proof"')
        assert f" {said} " in found or f"{said} must" in found
        assert 'algs="RS256 PS256 ES256 EdDSA"' in found

    def test_a_proof_is_used_once_and_for_one_request(self, http: Client) -> None:
        token = bound_token(http)
        sent = api_proof(token)
        assert call(http, token, sent).status_code == 200
        assert "used before" in challenge(call(http, token, sent))
        at_token_endpoint = proof(ath=token_hash(token))
        assert "htm" in challenge(call(http, token, at_token_endpoint))

    def test_the_nonce_is_told(self, http: Client) -> None:
        token = bound_token(http)
        response = call(http, token, api_proof(token, nonce=None))
        assert challenge(response).startswith('DPoP error="use_dpop_nonce"')
        assert call(http, token, api_proof(token, nonce=response.headers["DPoP-Nonce"])).status_code == 200

    def test_an_unbound_token_is_a_bearer_token(self, http: Client) -> None:
        token = str(ask(http, None).json()["access_token"])
        assert "not bound" in challenge(call(http, token, api_proof(token)))
        assert challenge(call(http, token, None, "DPoP"))
        assert call(http, token, None, "Bearer").status_code == 200
        assert call(http, token, api_proof(token), "Bearer").status_code == 200

    def test_userinfo_needs_the_key_too(self, browser: Browser) -> None:
        form = {"grant_type": "authorization_code", "code": browser.code(), "redirect_uri": REDIRECT}
        token = token_request(browser.client, proof(), client_id=WEB, client_secret=SECRET, **form).json()
        raw, url = str(token["access_token"]), f"{ISSUER}/connect/userinfo"
        sent = KEY.proof("GET", url, nonce=nonce_now(), ath=token_hash(raw))
        assert call(browser.client, raw, sent, url="/id/connect/userinfo").json()["sub"] == "demo"
        assert challenge(call(browser.client, raw, sent, url="/id/connect/userinfo")).startswith("DPoP ")
        assert challenge(call(browser.client, raw, None, "Bearer", "/id/connect/userinfo")).startswith("DPoP ")


class TestCodesAndRefreshTokens:
    def redeem(self, browser: Browser, code: str, sent: str | None) -> Response:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
        return token_request(browser.client, sent, client_id=WEB, client_secret=SECRET, **form)

    def test_a_code_may_be_bound(self, browser: Browser) -> None:
        code = browser.code(dpop_jkt=KEY.jkt)
        for sent in (None, proof(OTHER)):
            assert self.redeem(browser, code, sent).json()["error"] == "invalid_grant"
        assert self.redeem(browser, code, proof()).json()["token_type"] == "DPoP"
        refused = browser.authorize(dpop_jkt="short").headers["Location"]
        assert "error=invalid_request" in refused

    def test_a_pushed_request_with_a_proof_binds_its_code(self, browser: Browser) -> None:
        par = f"{ISSUER}/connect/par"
        form, kind = browser.ask(client_secret=SECRET), "application/x-www-form-urlencoded"

        def push(**more: str) -> Response:
            sent = KEY.proof("POST", par, nonce=nonce_now())
            body = urlencode({**form, **more})
            return browser.client.post("/id/connect/par", body, content_type=kind, headers={"DPoP": sent})

        assert push(dpop_jkt=OTHER.jkt).json()["error"] == "invalid_dpop_proof"
        uri = push(dpop_jkt=KEY.jkt).json()["request_uri"]
        code = browser.code(client_id=WEB, request_uri=uri)
        assert self.redeem(browser, code, proof(OTHER)).json()["error"] == "invalid_grant"
        assert self.redeem(browser, code, proof()).status_code == 200

    def test_public_applications_have_no_refresh_tokens_with_a_key_either(self, browser: Browser) -> None:
        """The owner's document, 5.3: "only to interactive confidential applications"."""
        application = TrustedApplication.objects.filter(application_uri=PUBLIC)
        application.update(dpop_required=True, scope="openid read offline_access")
        verifier, code_challenge = pkce()
        code = browser.code(
            client_id=PUBLIC, scope="openid read offline_access", code_challenge=code_challenge,
            code_challenge_method="S256",
        )  # fmt: skip
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "client_id": PUBLIC}
        answer = token_request(browser.client, proof(), code_verifier=verifier, **form).json()
        assert (answer["scope"], "refresh_token" in answer) == ("openid read", False)
