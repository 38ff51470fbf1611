"""private_key_jwt and client_secret_jwt (RFC 7523; OIDC Core, 9)."""

from __future__ import annotations

import base64
import datetime
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from django.test import Client

from audit.actors import OPERATOR
from identity.applications import secret_hash, secret_rotate
from identity.models import TrustedApplication
from identity.oauth import key_sets
from tests.identity.flows import REDIRECT, SERVICE, WEB, Browser, Response, token_request
from tests.support.client_keys import ISSUER, TOKEN_ENDPOINT, ClientKey, assertion_claims, assertion_fields
from tests.support.receiver import Answer, LoopbackReceiver

KEY = ClientKey(kid="one")
RSA_KEY = ClientKey("PS256")
SECRET = "a secret of at least 256 bits, as generated"


@pytest.fixture(autouse=True)
def no_keys_known() -> Iterator[None]:
    key_sets.forget()
    yield
    key_sets.forget()


def register(uri: str = SERVICE, **fields: Any) -> None:
    """Change the application behind its cache-free row."""
    TrustedApplication.objects.filter(application_uri=uri).update(**fields)


@pytest.fixture
def keyed(http: Client) -> Client:
    """The demo's service authenticates by its key."""
    register(client_authentication="PrivateKeyJwt", json_web_key_set=KEY.jwks)
    return http


@pytest.fixture
def encrypted(http: Client) -> Client:
    """The demo's service signs with its secret."""
    register(client_authentication="SecretJwt", encrypted_secret=SECRET, application_secret_hash=secret_hash(SECRET))
    return http


def ask(http: Client, fields: dict[str, str], **form: str) -> Response:
    return token_request(http, grant_type="client_credentials", **fields, **form)


def refusal(response: Response) -> tuple[str, str]:
    """(error, description); refused clients get no token."""
    content = response.json()
    assert "access_token" not in content
    return content["error"], content["error_description"]


def hmac_fields(key: str = SECRET, algorithm: str = "HS256", **claims: Any) -> dict[str, str]:
    return assertion_fields(jwt.encode(assertion_claims(SERVICE, **claims), key, algorithm=algorithm))


def hmac_by_hand(key: str, claims: dict[str, Any]) -> str:
    """An HS256 signature by a key that libraries refuse as a secret."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims)]
    signature = hmac.digest(key.encode(), b".".join(parts), "sha256")
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


class TestPrivateKey:
    @pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256", "PS256"])
    @pytest.mark.parametrize("audience", [ISSUER, TOKEN_ENDPOINT, ["https://other.example", ISSUER]])
    def test_a_signed_assertion_is_enough(self, http: Client, algorithm: str, audience: Any) -> None:
        key = KEY if algorithm == "ES256" else ClientKey(algorithm)
        register(client_authentication="PrivateKeyJwt", json_web_key_set=key.jwks)
        assert ask(http, key.assertion(SERVICE, aud=audience)).status_code == 200

    @pytest.mark.parametrize(
        "claims, said",
        [
            ({"aud": "https://other.example"}, "aud"),
            ({"aud": None}, "aud"),
            ({"aud": [7, {"a": 1}]}, "aud"),
            ({"iss": "WebDemoClient"}, "iss and sub"),
            ({"exp": 1}, "expired"),
            ({"exp": None}, "exp must be a number"),
            ({"exp": "soon"}, "exp must be a number"),
            ({"exp": 1e300}, "exp must be a number"),
            ({"exp": float("inf")}, "exp must be a number"),
            ({"exp": True}, "exp must be a number"),
            ({"exp": 4_000_000_000}, "3600 seconds ahead"),
            ({"iat": 4_000_000_000}, "iat is in the future"),
            ({"nbf": 4_000_000_000}, "nbf is in the future"),
            ({"jti": None}, "jti"),
            ({"jti": "x" * 256}, "jti"),
            ({"jti": 7}, "jti"),
        ],
    )
    def test_claims_that_are_wrong_are_named(self, keyed: Client, claims: dict[str, Any], said: str) -> None:
        response = ask(keyed, KEY.assertion(SERVICE, **claims))
        assert response.status_code == 401
        error, description = refusal(response)
        assert error == "invalid_client"
        assert said in description

    def test_it_is_used_once_at_whatever_endpoint(self, keyed: Client) -> None:
        fields = KEY.assertion(SERVICE)
        token = ask(keyed, fields).json()["access_token"]
        assert "used before" in refusal(ask(keyed, fields))[1]
        for endpoint in ("introspect", "revocation"):
            assert "used before" in refusal(request_at(keyed, endpoint, token=token, **fields))[1]

    def test_a_refused_assertion_is_not_used_up(self, keyed: Client) -> None:
        """Only what would have been accepted is remembered: nobody can fill the table without a key."""
        foreign = ClientKey(kid="one")
        claims = assertion_claims(SERVICE)
        assert "signature" in refusal(ask(keyed, assertion_fields(foreign.sign(claims))))[1]
        assert ask(keyed, assertion_fields(KEY.sign(claims))).status_code == 200

    def test_a_public_key_is_no_secret(self, http: Client) -> None:
        """RFC 8725, 2.1: the signature of HS256 by the public key, which everybody knows."""
        register(client_authentication="PrivateKeyJwt", json_web_key_set=RSA_KEY.jwks)
        for secret in (RSA_KEY.jwks, RSA_KEY.jwk["n"]):
            signed = hmac_by_hand(secret, assertion_claims(SERVICE))
            assert "alg must be" in refusal(ask(http, assertion_fields(signed)))[1]
        unsigned = jwt.encode(assertion_claims(SERVICE), "", algorithm="none")
        assert "alg must be" in refusal(ask(http, assertion_fields(unsigned)))[1]

    def test_the_key_must_fit_the_algorithm(self, http: Client) -> None:
        register(
            client_authentication="PrivateKeyJwt",
            json_web_key_set=json.dumps({"keys": [{**RSA_KEY.jwk, "alg": "RS256"}]}),
        )
        assert "no key" in refusal(ask(http, RSA_KEY.assertion(SERVICE)))[1]

    def test_one_method_only(self, keyed: Client) -> None:
        """A secret that is still stored does not authenticate an application with keys, nor both together."""
        error, description = refusal(ask(keyed, {"client_id": SERVICE, "client_secret": "DEMO"}))
        assert (error, "private_key_jwt" in description) == ("invalid_client", True)
        both = ask(keyed, KEY.assertion(SERVICE), client_secret="DEMO")
        assert refusal(both)[0] == "invalid_request"
        basic = base64.b64encode(f"{SERVICE}:DEMO".encode()).decode()
        response = keyed.post(
            "/id/connect/token", {"grant_type": "client_credentials", **KEY.assertion(SERVICE)},
            headers={"Authorization": f"Basic {basic}"},
        )  # fmt: skip
        assert response.status_code == 400

    @pytest.mark.parametrize(
        "change, error",
        [
            ({"client_assertion_type": ""}, "invalid_request"),
            ({"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}, "invalid_request"),
            ({"client_assertion": ""}, "invalid_request"),
            ({"client_assertion": "a.b.c"}, "invalid_client"),
            ({"client_assertion": "x" * 9000}, "invalid_client"),
            ({"client_assertion": base64.urlsafe_b64encode(b"[" * 4000).decode() + ".e30.x"}, "invalid_client"),
            ({"client_id": WEB}, "invalid_request"),
        ],
    )
    def test_malformed_requests_are_refused(self, keyed: Client, change: dict[str, str], error: str) -> None:
        assert refusal(ask(keyed, {**KEY.assertion(SERVICE), **change}))[0] == error

    def test_public_and_secret_applications_take_no_assertion(self, http: Client) -> None:
        for uri in ("PublicDemoClient", SERVICE):
            assert refusal(ask(http, KEY.assertion(uri)))[0] == "invalid_client"

    def test_codes_introspection_and_revocation(self, browser: Browser) -> None:
        register(WEB, client_authentication="PrivateKeyJwt", json_web_key_set=KEY.jwks)
        form = {"grant_type": "authorization_code", "code": browser.code(), "redirect_uri": REDIRECT}
        token = token_request(browser.client, **form, **KEY.assertion(WEB)).json()["access_token"]
        here = f"{ISSUER}/connect/introspect"
        found = request_at(browser.client, "introspect", token=token, **KEY.assertion(WEB, aud=here))
        assert found.json()["active"] is True
        assert request_at(browser.client, "revocation", token=token, **KEY.assertion(WEB)).json() == {}
        again = request_at(browser.client, "introspect", token=token, **KEY.assertion(WEB))
        assert again.json() == {"active": False}


def request_at(client: Client, endpoint: str, **form: str) -> Response:
    """A form-encoded request to another endpoint."""
    return client.post(f"/id/connect/{endpoint}", urlencode(form), content_type="application/x-www-form-urlencoded")


class TestSecret:
    def test_the_secret_signs(self, encrypted: Client) -> None:
        assert ask(encrypted, hmac_fields()).status_code == 200
        assert refusal(ask(encrypted, hmac_fields("another secret of 256 bits and more"))) == (
            "invalid_client", "The client_assertion is refused: its signature does not verify.",
        )  # fmt: skip
        assert "alg must be HS256" in refusal(ask(encrypted, hmac_fields(SECRET * 2, "HS512")))[1]
        assert "client_secret_jwt" in refusal(ask(encrypted, {"client_id": SERVICE, "client_secret": SECRET}))[1]

    def test_rotation_keeps_the_previous_one_as_long_as_asked(self, encrypted: Client) -> None:
        application = TrustedApplication.objects.get(application_uri=SERVICE)
        second = secret_rotate(application, keep_previous=datetime.timedelta(days=1), by=OPERATOR)
        assert [ask(encrypted, hmac_fields(key)).status_code for key in (SECRET, second)] == [200, 200]
        application.refresh_from_db()
        third = secret_rotate(application, keep_previous=datetime.timedelta(0), by=OPERATOR)
        assert [ask(encrypted, hmac_fields(key)).status_code for key in (SECRET, second, third)] == [401, 401, 200]


class TestPublishedKeys:
    def test_a_new_key_is_fetched_and_unknown_ones_at_most_once_a_minute(
        self, http: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [1000.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        second = ClientKey(kid="two")
        with LoopbackReceiver(Answer(body=KEY.jwks.encode())).running() as receiver:
            register(client_authentication="PrivateKeyJwt", json_web_key_set_url=f"{receiver.url}/jwks")
            assert [ask(http, key.assertion(SERVICE)).status_code for key in (KEY, KEY, second)] == [200, 200, 401]
            assert len(receiver.requests) == 1
            now[0] += 61
            receiver.default = Answer(body=second.jwks.encode())
            assert [ask(http, key.assertion(SERVICE)).status_code for key in (KEY, second, KEY)] == [200, 200, 401]
            assert len(receiver.requests) == 2

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(500),
            Answer(302, b"", {"Location": "/"}),
            Answer(body=b"no JSON"),
            Answer(body=b'{"keys": []}'),
            Answer(body=b'{"keys": [' + b" " * 20_000 + b"]}"),
        ],
    )
    def test_unusable_keys_are_a_refusal_that_says_why(self, http: Client, answer: Answer) -> None:
        with LoopbackReceiver(answer).running() as receiver:
            register(client_authentication="PrivateKeyJwt", json_web_key_set_url=f"{receiver.url}/jwks")
            error, description = refusal(ask(http, KEY.assertion(SERVICE)))
            assert (error, "jwks_uri cannot be used" in description) == ("invalid_client", True)
            assert len(receiver.requests) == 1
        assert "jwks_uri" in refusal(ask(http, KEY.assertion(SERVICE)))[1]
