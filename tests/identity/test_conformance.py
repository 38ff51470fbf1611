"""What the certification suite of the OpenID Foundation asks of a provider, by its profiles, through HTTP.

Basic OP, Config OP, Form Post OP, RP-Initiated, Front-Channel and Back-Channel Logout OP. What other files of this
folder already show is not repeated here.
"""

from __future__ import annotations

import base64
import datetime
import time
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client
from oauth2_provider.settings import DEFAULTS, oauth2_settings

from audit.actors import OPERATOR
from foundation.fields import utc_now
from identity import rate_limits
from identity.models import AccessToken, Role, RoleUser, SigningKey, TrustedApplication, User
from identity.oauth import issue, keys, refresh
from tests.identity.flows import (
    DUAL,
    LOGOUT_REDIRECT,
    PUBLIC,
    REDIRECT,
    SECRET,
    SERVICE,
    TOKEN_URL,
    WEB,
    Browser,
    fields_of,
    parameters_of,
    pkce,
    service_token,
    token_request,
)
from tests.support.tasks import Worker

pytestmark = pytest.mark.once

FORM = "application/x-www-form-urlencoded"
AUTHORIZE = "/id/connect/authorize"
USERINFO = "/id/connect/userinfo"
END_SESSION = "/id/connect/endsession"


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def post_form(http: Client, url: str, *pairs: tuple[str, str], **headers: str) -> Any:
    """A form in which a name may repeat."""
    return http.post(url, urlencode(pairs), content_type=FORM, headers=headers)


def refused(response: Any, error: str, status: int = 400) -> str:
    """The description of the protocol's JSON error, after its form has been checked (RFC 6749, 5.2)."""
    assert response.headers["Content-Type"] == "application/json", response.content
    assert (response.status_code, response.json()["error"]) == (status, error), response.content
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Pragma"] == "no-cache"
    description: str = response.json()["error_description"]
    assert description
    assert all(0x20 <= ord(character) <= 0x7E and character not in '"\\' for character in description)
    return description


def answer_of(response: Any) -> dict[str, str]:
    """What the redirect tells the client."""
    assert response.status_code == 302, response.content
    assert response.headers["Location"].startswith(REDIRECT)
    return parameters_of(response.headers["Location"])


# --- Config OP ----------------------------------------------------------------------------------------------------


class TestConfiguration:
    """oidcc-discovery-endpoint-verification, oidcc-server-rotate-keys."""

    def test_the_metadata_is_complete_and_true(self, http: Client) -> None:
        response = http.get("/id/.well-known/openid-configuration")
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        found = response.json()
        issuer = "http://testserver/id"
        assert found["issuer"] == issuer
        paths = {
            "authorization_endpoint": "connect/authorize",
            "token_endpoint": "connect/token",
            "userinfo_endpoint": "connect/userinfo",
            "revocation_endpoint": "connect/revocation",
            "introspection_endpoint": "connect/introspect",
            "end_session_endpoint": "connect/endsession",
            "jwks_uri": ".well-known/openid-configuration/jwks",
        }
        assert {name: found[name] for name in paths} == {name: f"{issuer}/{path}" for name, path in paths.items()}
        assert found["scopes_supported"] == [
            "openid", "profile", "email", "offline_access", "read", "update", "exec", "sec",
        ]  # fmt: skip
        assert found["response_types_supported"] == ["code", "code id_token"]
        assert found["response_modes_supported"] == ["query", "fragment", "form_post"]
        assert found["grant_types_supported"] == [
            "authorization_code",
            "client_credentials",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ]
        assert found["subject_types_supported"] == ["public"]
        assert found["id_token_signing_alg_values_supported"] == ["RS256"]
        assert {"client_secret_basic", "client_secret_post"} <= set(found["token_endpoint_auth_methods_supported"])
        assert found["code_challenge_methods_supported"] == ["S256"]
        for name in ("request", "request_uri", "claims"):
            assert found[f"{name}_parameter_supported"] is False
        for name in (
            "authorization_response_iss_parameter_supported",
            "frontchannel_logout_supported",
            "frontchannel_logout_session_supported",
            "backchannel_logout_supported",
            "backchannel_logout_session_supported",
        ):
            assert found[name] is True

    def test_the_claims_that_it_names_are_those_that_tokens_have(self, browser: Browser) -> None:
        named = set(browser.client.get("/id/.well-known/openid-configuration").json()["claims_supported"])
        hybrid = parameters_of(browser.sign_in(response_type="code id_token").headers["Location"])
        body = browser.redeem(hybrid["code"]).json()
        # `tid` is the tenant of a provider at which the user has signed in: tests/identity/test_federation.py.
        assert named - {"tid"} == set(claims_of(hybrid["id_token"])) | set(claims_of(body["id_token"]))

    def test_public_keys_have_one_kid_each_and_no_private_part(self, http: Client) -> None:
        keys.key_set()
        keys.keys_rotate(by=OPERATOR)
        published = http.get("/id/.well-known/openid-configuration/jwks").json()["keys"]
        assert len({key["kid"] for key in published}) == len(published) == 2
        for key in published:
            assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
            assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
            assert "=" not in key["n"] + key["e"]

    def test_a_key_long_retired_is_published_no_more_and_still_reads_hints(self, browser: Browser) -> None:
        tokens = browser.tokens()
        old = jwt.get_unverified_header(tokens["id_token"])["kid"]
        keys.keys_rotate(by=OPERATOR)
        SigningKey.objects.filter(kid=old).update(retired=utc_now() - datetime.timedelta(hours=3))
        keys.keys_rotate(by=OPERATOR)
        published = browser.client.get("/id/.well-known/openid-configuration/jwks").json()["keys"]
        assert old not in {key["kid"] for key in published}
        assert not keys._path(old).exists()
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 401
        out = browser.client.get(END_SESSION, {"id_token_hint": tokens["id_token"]})
        assert b"signed out" in out.content

    def test_a_retired_key_is_published_as_long_as_its_tokens_may_live(self, browser: Browser, settings: Any) -> None:
        settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "ACCESS_TOKEN_EXPIRE_SECONDS": 12 * 3600}
        tokens = browser.tokens()
        old = jwt.get_unverified_header(tokens["access_token"])["kid"]
        keys.keys_rotate(by=OPERATOR)
        SigningKey.objects.filter(kid=old).update(retired=utc_now() - datetime.timedelta(hours=11))
        keys.keys_rotate(by=OPERATOR)
        published = browser.client.get("/id/.well-known/openid-configuration/jwks").json()["keys"]
        assert old in {key["kid"] for key in published}
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 200


# --- Basic OP: the authorization request --------------------------------------------------------------------------


def bearer(tokens: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens['access_token']}"}


class TestAuthorizationRequest:
    @pytest.mark.parametrize(
        "changes",
        [
            {"display": "page"},
            {"display": "popup"},
            {"ui_locales": "se"},
            {"claims_locales": "se"},
            {"acr_values": "1 2"},
            {"extra": "foobar"},
            {"claims": '{"userinfo":{"name":{"essential":true}}}'},
            {"scope": "email read openid profile"},
            {"nonce": None},
            {"max_age": "10000"},
            {"max_age": "9" * 400},
            {"prompt": ""},
            {"response_mode": ""},
            {"state": None},
            {"scope": "openid DomainApi"},
            # None of oauthlib's own names may be planted.
            {"user": "x", "client": "x", "scopes": "x", "sid": "x", "auth_time": "1", "grant": "x"},
        ],
    )
    def test_what_means_nothing_here_is_ignored(self, browser: Browser, changes: dict[str, Any]) -> None:
        answer = answer_of(browser.sign_in(**changes))
        assert set(answer) == {"code", "iss"} | ({"state"} if changes.get("state", "x") else set())
        tokens = browser.redeem(answer["code"]).json()
        claims = claims_of(tokens["id_token"])
        assert claims["sub"] == "demo"
        assert claims.get("nonce") == (None if "nonce" in changes else "n-1")
        assert isinstance(claims["auth_time"], int)

    @pytest.mark.parametrize(
        "changes, error",
        [
            ({"max_age": "²"}, "invalid_request"),
            ({"max_age": "-1"}, "invalid_request"),
            ({"nonce": "n" * 256}, "invalid_request"),
            ({"nonce": "n\0"}, "invalid_request"),
            ({"code_challenge": "x" * 200, "code_challenge_method": "S256"}, "invalid_request"),
            ({"code_challenge": "x" * 42 + "=", "code_challenge_method": "S256"}, "invalid_request"),
            ({"id_token_hint": "x.y.z"}, "invalid_request"),
            ({"response_type": "none"}, "unsupported_response_type"),
            ({"response_type": "foobar"}, "unsupported_response_type"),
            ({"response_type": ""}, "invalid_request"),
        ],
    )
    def test_what_cannot_be_served_is_told_to_the_client(
        self, browser: Browser, changes: dict[str, Any], error: str
    ) -> None:
        answer = answer_of(browser.authorize(**changes))
        assert (answer["error"], answer["state"], answer["iss"]) == (error, "xyz", "http://testserver/id")

    @pytest.mark.parametrize("response_type", ["id_token", "token", "id_token token", "code token", "code id_token"])
    def test_errors_come_where_the_answer_would_have_come(self, browser: Browser, response_type: str) -> None:
        location = browser.authorize(response_type=response_type, nonce=None).headers["Location"]
        assert location.startswith(f"{REDIRECT}#error=")

    def test_the_answer_is_added_to_the_query_that_the_address_has(self, browser: Browser) -> None:
        address = "http://localhost:5080/in?tenant=a%20b"
        TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_login_url=address)
        location = browser.sign_in(redirect_uri=address).headers["Location"]
        assert location.startswith(f"{address}&code=")
        code = dict(parse_qsl(urlsplit(location).query))["code"]
        assert browser.redeem(code, redirect_uri=address).status_code == 200

    def test_any_state_comes_back_as_it_was(self, browser: Browser) -> None:
        state = "ü &=#/+%20\"<'" + "x" * 2000
        assert answer_of(browser.sign_in(state=state))["state"] == state
        assert answer_of(browser.authorize(state=state, prompt="none login"))["state"] == state

    def test_a_request_too_long_for_an_address_is_a_page(self, browser: Browser) -> None:
        for response in (browser.authorize(state="ü" * 4000), browser.authorize(state="x" * 20_000, prompt="none")):
            assert response.status_code == 400
            assert b"too long" in response.content

    @pytest.mark.parametrize(
        "name", ["state", "scope", "nonce", "response_type", "prompt", "code_challenge", "max_age", "unheard_of"]
    )
    def test_a_repeated_parameter_is_refused(self, browser: Browser, name: str) -> None:
        query = [*browser.ask().items(), (name, "1"), (name, "2")]
        assert answer_of(browser.client.get(AUTHORIZE, query))["error"] == "invalid_request"

    @pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
    def test_a_repeated_address_is_a_page(self, browser: Browser, name: str) -> None:
        asked = browser.ask()
        response = browser.client.get(AUTHORIZE, [*asked.items(), (name, asked[name])])
        assert (response.status_code, "Location" in response.headers) == (400, False)

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_a_request_of_a_thousand_parameters_is_a_page(self, browser: Browser, method: str) -> None:
        for url in (AUTHORIZE, END_SESSION):
            given = {f"p{n}": "x" for n in range(1001)}
            if method == "get":
                response = browser.client.get(url, given)
            else:  # a form of several parts would be too long
                response = browser.client.post(url, urlencode(given), content_type=FORM)
            assert response.status_code == 400
            assert b"too many parameters" in response.content

    def test_a_posted_request_is_served_like_the_others(self, browser: Browser) -> None:
        browser.sign_in()
        response = browser.client.post(AUTHORIZE, urlencode(browser.ask()), content_type=FORM)
        assert "code" in answer_of(browser.client.get(response.headers["Location"]))
        assert browser.client.put(AUTHORIZE).status_code == 405

    def test_no_scope_means_all_that_the_application_may_have(self, browser: Browser) -> None:
        for scope in (None, "DomainApi"):
            assert browser.redeem(browser.code(scope=scope)).json()["scope"] == (
                "openid profile email offline_access read update"
            )


class TestPromptNoneAndHints:
    """oidcc-prompt-none-*, oidcc-id-token-hint, oidcc-max-age-*."""

    @pytest.mark.parametrize(
        "asked, granted",
        [
            ("openid profile offline_access", "openid profile offline_access read update"),
            ("openid DomainApi", "openid read update"),
            ("DomainApi openid profile read", "openid profile read"),
            ("openid", "openid read update"),
        ],
    )
    def test_without_a_scope_of_the_api_it_is_read_and_update(self, browser: Browser, asked: str, granted: str) -> None:
        """The owner's document lists openid, profile, offline_access (4.2), and says that a token gives access (1)."""
        tokens = browser.tokens(client_id=DUAL, scope=asked)
        assert tokens["scope"] == granted
        assert claims_of(tokens["access_token"])["scope"] == granted.split()

    def test_what_the_application_may_not_have_is_not_added(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(scope="openid profile update")
        assert browser.tokens(scope="openid")["scope"] == "openid update"
        TrustedApplication.objects.filter(application_uri=WEB).update(scope="")
        tokens = browser.tokens(scope="openid offline_access")
        assert tokens["scope"] == "openid offline_access"
        # Scopes of the protocol need no entry in Scope (spec 14, 14.4), at a refresh neither.
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET}
        again = token_request(browser.client, **form, refresh_token=tokens["refresh_token"])
        assert again.json()["scope"] == "openid offline_access"

    def test_external_users_get_no_scope_of_the_api(self, browser: Browser) -> None:
        page = browser.sign_in("customer", scope="openid profile", prompt="consent").content.decode()
        assert "Your name and language" in page
        assert "Change data" not in page
        assert browser.tokens("customer", scope="openid profile")["scope"] == "openid profile"

    def test_silent_answers_have_the_same_person_and_time(self, browser: Browser) -> None:
        first = claims_of(browser.tokens()["id_token"])
        answer = answer_of(browser.authorize(prompt="none"))
        second = claims_of(browser.redeem(answer["code"]).json()["id_token"])
        for name in ("iss", "sub", "aud", "auth_time", "sid"):
            assert second[name] == first[name], name

    def test_a_hint_of_the_person_signed_in_is_fine(self, browser: Browser) -> None:
        hint = browser.tokens()["id_token"]
        assert "code" in answer_of(browser.authorize(prompt="none", id_token_hint=hint))

    def test_a_hint_of_somebody_else_is_not(self, browser: Browser) -> None:
        hint = Browser(Client(enforce_csrf_checks=True)).tokens("customer")["id_token"]
        browser.sign_in("demo")
        assert answer_of(browser.authorize(prompt="none", id_token_hint=hint))["error"] == "login_required"
        # Without prompt=none the other person may come and log in; nobody else is let through.
        at = browser.authorize(id_token_hint=hint).headers["Location"]
        assert at.startswith("/id/account/login")
        back = browser.log_in("demo", at=at).headers["Location"]
        assert answer_of(browser.client.get(back))["error"] == "login_required"
        assert "code" in answer_of(browser.sign_in("customer", id_token_hint=hint))

    def test_after_max_age_the_time_of_the_login_is_newer(self, browser: Browser) -> None:
        first = claims_of(browser.tokens()["id_token"])["auth_time"]
        session = browser.client.session
        session["auth_time"] -= 100
        session.save()
        second = claims_of(browser.tokens(max_age=50)["id_token"])
        assert second["auth_time"] >= first
        assert time.time() - second["auth_time"] < 50

    def test_a_hint_with_a_former_login_is_fine(self, browser: Browser) -> None:
        hint = browser.tokens()["id_token"]
        renamed = User.objects.get(login="demo")
        renamed.login = "demo.renamed"
        renamed.save()
        assert "code" in answer_of(browser.authorize(prompt="none", id_token_hint=hint))
        asked = {"id_token_hint": hint, "post_logout_redirect_uri": LOGOUT_REDIRECT}
        assert browser.client.get(END_SESSION, asked).headers["Location"] == LOGOUT_REDIRECT

    def test_an_expired_hint_is_as_good(self, browser: Browser) -> None:
        from identity.oauth import jwt as ours

        hint = claims_of(browser.tokens()["id_token"])
        old = ours.sign({**hint, "exp": 1000, "iat": 900}, type_="JWT")
        assert "code" in answer_of(browser.authorize(prompt="none", id_token_hint=old))

    def test_none_never_shows_a_page(self, browser: Browser) -> None:
        for changes in ({}, {"max_age": "0"}, {"scope": "read"}, {"response_mode": "fragment"}):
            assert answer_of(browser.authorize(prompt="none", **changes))["error"] == "login_required"
        browser.sign_in()
        assert answer_of(browser.authorize(prompt="none", max_age=0))["error"] == "login_required"
        TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_as_internal_user_allowed=False)
        assert answer_of(browser.authorize(prompt="none"))["error"] == "access_denied"

    def test_consent_is_for_the_scopes_that_were_shown(self, browser: Browser) -> None:
        browser.sign_in()
        page = browser.authorize(prompt="consent", scope="openid").content.decode()
        proof = page.split('name="_consent" value="')[1].split('"')[0]
        wider = browser.authorize(prompt="consent", scope="openid read", _consent=proof)
        assert answer_of(wider)["error"] == "access_denied"
        assert "code" in answer_of(browser.authorize(prompt="consent", scope="openid", _consent=proof))

    def test_somebody_else_at_the_same_browser_ends_the_first_sign_in(self, browser: Browser) -> None:
        first = browser.tokens("demo")
        browser.log_in("customer")
        assert browser.client.get(USERINFO, headers=bearer(first)).status_code == 401


@pytest.mark.parametrize(
    "locales, consent, error, ask",
    [
        ("bg", "иска достъп", "Тази заявка не може да бъде изпълнена", "Изход?"),
        ("xx de-AT", "bittet um Zugriff", "Diese Anfrage kann nicht bearbeitet werden", "Abmelden?"),
        ("xx", "asks for access", "This request cannot be served", "Sign out?"),
    ],
)
def test_every_page_of_a_request_speaks_its_ui_locales(
    browser: Browser, locales: str, consent: str, error: str, ask: str
) -> None:
    browser.sign_in()
    language = {"bg": "bg", "xx de-AT": "de"}.get(locales, "en")
    assert Client().get("/id/account/login", {"ui_locales": locales}).headers["Content-Language"] == language
    for response, text in (
        (browser.authorize(ui_locales=locales, prompt="consent"), consent),
        (browser.authorize(ui_locales=locales, redirect_uri="https://evil.example/"), error),
        (browser.client.get(END_SESSION, {"ui_locales": locales}), ask),
        (browser.client.get(END_SESSION, {"ui_locales": locales, "client_id": "nobody"}), error),
    ):
        assert text in response.content.decode()
        assert response.headers["Content-Language"] == language


def test_every_gate_of_the_toolkit_for_rfc_9700_is_shut() -> None:
    gates = [name for name in DEFAULTS if name.startswith("COMPLIANT_BCP_RFC9700_")]
    assert len(gates) >= 10
    assert [name for name in gates if getattr(oauth2_settings, name) is not True] == []


# --- Basic OP: the token endpoint ---------------------------------------------------------------------------------


class TestTokenRequest:
    CREDENTIALS = (("grant_type", "client_credentials"), ("client_id", SERVICE), ("client_secret", SECRET))

    @pytest.mark.parametrize("name", ["client_id", "client_secret", "grant_type", "scope", "unheard_of"])
    def test_a_repeated_parameter_is_refused(self, http: Client, name: str) -> None:
        value = dict(self.CREDENTIALS).get(name, "read")
        extra = ((name, value),) if name in dict(self.CREDENTIALS) else ((name, value), (name, value))
        assert name in refused(post_form(http, TOKEN_URL, *self.CREDENTIALS, *extra), "invalid_request")

    def test_an_audience_may_repeat(self, http: Client) -> None:
        """RFC 8693, 2.1."""
        TrustedApplication.objects.filter(application_uri=SERVICE).update(token_exchange_applications=WEB)
        tokens = Browser(http).tokens(scope="openid read")
        kind = "urn:ietf:params:oauth:token-type:access_token"
        response = post_form(
            http, TOKEN_URL,
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("client_id", SERVICE),
            ("client_secret", SECRET), ("subject_token", tokens["access_token"]), ("subject_token_type", kind),
            ("audience", "TableAPI"), ("audience", "DomainAPI"),
        )  # fmt: skip
        assert claims_of(response.json()["access_token"])["aud"] == ["TableAPI", "DomainAPI"]

    def test_a_resource_may_repeat(self, http: Client) -> None:
        response = post_form(http, TOKEN_URL, *self.CREDENTIALS, ("resource", "a"), ("resource", "b"))
        assert response.status_code == 200

    @pytest.mark.parametrize("path", ["token", "revocation", "introspect"])
    def test_whatever_is_no_form_is_refused_in_the_protocols_words(self, http: Client, path: str) -> None:
        url = f"/id/connect/{path}"
        many = [(f"p{n}", "x") for n in range(1001)]
        assert "too many" in refused(post_form(http, url, *many), "invalid_request")
        for query in ("x=1", "a=[b]", "a=%zz", "client_id=x"):
            refused(post_form(http, f"{url}?{query}", *self.CREDENTIALS), "invalid_request")
        refused(http.post(url, b"a=b", content_type=f"{FORM}; charset=utf-16"), "invalid_request")
        refused(http.post(url, b"x=" + b"y" * 70_000, content_type=FORM), "invalid_request", 413)
        refused(http.post(url, {"a": "b"}), "invalid_request")
        refused(http.get(url), "invalid_request", 405)

    @pytest.mark.parametrize("name", ["user", "client", "scopes", "service_half", "expires_in", "sid", "token_family"])
    def test_names_of_the_library_mean_nothing(self, http: Client, name: str) -> None:
        response = post_form(http, TOKEN_URL, *self.CREDENTIALS, (name, "x"))
        assert response.status_code == 200
        assert response.json()["expires_in"] == 3600

    def test_both_ways_of_authentication_at_once_are_refused(self, http: Client) -> None:
        header = "Basic " + base64.b64encode(f"{SERVICE}:{SECRET}".encode()).decode()
        refused(post_form(http, TOKEN_URL, *self.CREDENTIALS, Authorization=header), "invalid_request")
        other = (("grant_type", "client_credentials"), ("client_id", WEB))
        refused(post_form(http, TOKEN_URL, *other, Authorization=header), "invalid_request")
        same = (("grant_type", "client_credentials"), ("client_id", SERVICE))
        assert post_form(http, TOKEN_URL, *same, Authorization=header).status_code == 200

    @pytest.mark.parametrize("client_id", ["a\0b", "ü", "x" * 5000, "%00"])
    def test_made_up_clients_are_unknown(self, http: Client, client_id: str) -> None:
        response = token_request(http, grant_type="client_credentials", client_id=client_id, client_secret="x\0ü")
        refused(response, "invalid_client", 401)
        asked = {"client_id": client_id, "redirect_uri": "\0", "response_type": "code", "scope": "\0", "state": "\0"}
        assert http.get(AUTHORIZE, asked).status_code == 400
        assert http.get(END_SESSION, {"client_id": client_id, "state": "\0"}).status_code == 400

    @pytest.mark.parametrize("name", ["state", "scope", "login_hint", "ui_locales", "prompt", "response_mode"])
    def test_no_byte_of_a_request_breaks_the_page(self, browser: Browser, name: str) -> None:
        response = browser.authorize(**{name: "a\0b\r\nc"})
        assert response.status_code == 302
        assert browser.client.get(response.headers["Location"], follow=False).status_code in {200, 302, 404}

    @pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic eA==", "Basic /w=="])
    def test_credentials_that_cannot_be_read_are_refused(self, http: Client, header: str) -> None:
        response = post_form(http, TOKEN_URL, ("grant_type", "client_credentials"), Authorization=header)
        refused(response, "invalid_request")

    def test_basic_credentials_are_form_encoded_first(self, http: Client) -> None:
        """RFC 6749, 2.3.1: a colon or a plus in an id or secret must survive."""
        from identity.applications import secret_hash

        TrustedApplication.objects.filter(application_uri=SERVICE).update(
            application_uri="my app:1", application_secret_hash=secret_hash("a+b:c ü")
        )
        header = "Basic " + base64.b64encode(b"my+app%3A1:a%2Bb%3Ac+%C3%BC").decode()
        response = post_form(http, TOKEN_URL, ("grant_type", "client_credentials"), Authorization=header)
        assert response.status_code == 200, response.content

    @pytest.mark.parametrize("code", ["", "x", "ü", "x\0y", "x" * 5000])
    def test_what_is_no_code_is_refused(self, http: Client, code: str) -> None:
        response = token_request(
            http, grant_type="authorization_code", client_id=WEB, client_secret=SECRET, code=code, redirect_uri=REDIRECT
        )
        refused(response, "invalid_grant" if code else "invalid_request")

    @pytest.mark.parametrize("client_id", [PUBLIC, WEB, SERVICE])
    @pytest.mark.parametrize("grant_type", ["password", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer"])
    def test_grants_that_do_not_exist(self, http: Client, client_id: str, grant_type: str) -> None:
        refused(
            token_request(http, grant_type=grant_type, client_id=client_id, client_secret=SECRET),
            "unsupported_grant_type",
        )

    def test_a_redirect_uri_that_was_sent_must_be_sent_again(self, browser: Browser) -> None:
        refused(browser.redeem(browser.code(), redirect_uri=""), "invalid_request")
        for other in (REDIRECT.upper(), REDIRECT + "?x=1", "http://localhost:5080/callback"):
            refused(browser.redeem(browser.code(), redirect_uri=other), "invalid_grant")

    def test_the_only_redirect_uri_may_be_left_out_both_times(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_login_url=REDIRECT)
        code = answer_of(browser.sign_in(redirect_uri=None))["code"]
        assert browser.redeem(code, redirect_uri="").status_code == 200

    def test_a_service_application_redeems_no_codes(self, browser: Browser) -> None:
        refused(browser.redeem(browser.code(), SERVICE), "unauthorized_client")
        refused(browser.redeem(browser.code(client_id=DUAL), f"{DUAL}-service"), "unauthorized_client")

    def test_a_public_application_shows_no_secret(self, browser: Browser) -> None:
        verifier, challenge = pkce()
        code = browser.code(client_id=PUBLIC, code_challenge=challenge, code_challenge_method="S256")
        refused(browser.redeem(code, PUBLIC, code_verifier=verifier, client_secret="x"), "invalid_client", 401)
        assert browser.redeem(code, PUBLIC, code_verifier=verifier).status_code == 200

    def test_of_two_requests_with_one_code_at_once_neither_keeps_tokens(
        self, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """RFC 6749, 4.1.2: the second request finds the code unused, and used when it comes to save."""
        code = browser.code()
        others: list[Any] = []
        save = issue.tokens_save

        def interrupted(request: Any, token: dict[str, Any]) -> None:
            if not others:
                others.append(None)
                others[0] = browser.redeem(code)
            save(request, token)

        monkeypatch.setattr(issue, "tokens_save", interrupted)
        refused(browser.redeem(code), "invalid_grant")
        assert others[0].status_code == 200
        assert not AccessToken.objects.exists()

    def test_of_two_requests_with_one_refresh_token_at_once_one_keeps_tokens(
        self, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = browser.tokens(scope="openid read offline_access")["refresh_token"]
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET, "refresh_token": token}
        others: list[Any] = []
        load = refresh.refresh_load

        def interrupted(raw: str, application: TrustedApplication, request: Any) -> None:
            load(raw, application, request)
            if not others:
                others.append(None)
                others[0] = token_request(browser.client, **form)

        monkeypatch.setattr(refresh, "refresh_load", interrupted)
        kept = token_request(browser.client, **form).json()
        statuses = [browser.client.get(USERINFO, headers=bearer(each)).status_code for each in (others[0].json(), kept)]
        assert statuses == [401, 200]


class TestLostRefreshAnswers:
    """Spec 01, 1.4: "a grace of a few seconds for a lost answer is allowed if the same client repeats it"."""

    def refresh(self, browser: Browser, token: str) -> Any:
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET, "refresh_token": token}
        return token_request(browser.client, **form)

    def test_a_request_may_be_repeated_more_than_once(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid read offline_access")["refresh_token"]
        answers = [self.refresh(browser, token).json() for _ in range(4)]
        # The last answer counts; nothing of the lost ones goes on.
        statuses = [browser.client.get(USERINFO, headers=bearer(each)).status_code for each in answers]
        assert statuses == [401, 401, 401, 200]
        assert self.refresh(browser, answers[-1]["refresh_token"]).status_code == 200
        refused(self.refresh(browser, token), "invalid_grant")

    def test_a_token_of_a_lost_answer_ends_the_family(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid read offline_access")["refresh_token"]
        lost, kept = self.refresh(browser, token).json(), self.refresh(browser, token).json()
        refused(self.refresh(browser, lost["refresh_token"]), "invalid_grant")
        assert browser.client.get(USERINFO, headers=bearer(kept)).status_code == 401


class TestRefreshedIdToken:
    """oidcc-refresh-token: OIDC Core, 12.2."""

    def test_it_says_the_same_of_the_same_person(self, browser: Browser) -> None:
        tokens = browser.tokens(scope="openid read offline_access")
        refreshed = token_request(
            browser.client,
            grant_type="refresh_token",
            client_id=WEB,
            client_secret=SECRET,
            refresh_token=tokens["refresh_token"],
        ).json()
        first, second = claims_of(tokens["id_token"]), claims_of(refreshed["id_token"])
        for name in ("iss", "sub", "aud", "auth_time", "sid"):
            assert second[name] == first[name], name
        assert second["iat"] >= first["iat"]
        assert "nonce" not in second
        assert second["at_hash"] != first["at_hash"]

    def test_a_repeated_scope_or_an_unknown_token_is_refused(self, browser: Browser) -> None:
        for form in ({"refresh_token": "x"}, {"refresh_token": "x\0ü"}):
            refused(
                token_request(browser.client, grant_type="refresh_token", client_id=WEB, client_secret=SECRET, **form),
                "invalid_grant",
            )
        refused(
            token_request(browser.client, grant_type="refresh_token", client_id=WEB, client_secret=SECRET),
            "invalid_request",
        )

    def test_an_application_that_lost_a_scope_or_was_disabled_gets_nothing(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid read offline_access")["refresh_token"]
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET, "refresh_token": token}
        TrustedApplication.objects.filter(application_uri=WEB).update(scope="openid offline_access")
        refused(token_request(browser.client, **form), "invalid_grant")
        TrustedApplication.objects.filter(application_uri=WEB).update(is_enabled=False)
        refused(token_request(browser.client, **form), "unauthorized_client")

    def test_users_whom_the_application_admits_no_more_get_nothing(self, browser: Browser) -> None:
        code, token = browser.code(), browser.tokens(scope="openid read offline_access")["refresh_token"]
        TrustedApplication.objects.filter(application_uri=WEB).update(
            impersonate_as_internal_user_allowed=False, impersonate_as_community_user_allowed=True
        )
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET, "refresh_token": token}
        assert "sign this user in" in refused(token_request(browser.client, **form), "invalid_grant")
        assert "sign this user in" in refused(browser.redeem(code), "invalid_grant")

    def test_a_user_who_became_external_gets_nothing(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid read offline_access")["refresh_token"]
        User.objects.filter(login="demo").update(user_type="ExternalCommunityUser")
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET, "refresh_token": token}
        refused(token_request(browser.client, **form), "invalid_grant")


class TestDualMode:
    """The cases of spec 01, 1.4, that are about other places than client_credentials."""

    def test_a_plain_interactive_application_is_no_service(self, http: Client) -> None:
        response = token_request(http, grant_type="client_credentials", client_id=WEB, client_secret=SECRET)
        refused(response, "unauthorized_client")

    def test_the_service_half_signs_nobody_in(self, browser: Browser) -> None:
        response = browser.authorize(client_id=f"{DUAL}-service")
        assert (response.status_code, "Location" in response.headers) == (400, False)

    def test_a_real_application_of_that_name_wins(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(application_uri=f"{DUAL}-service")
        asked = {"client_id": f"{DUAL}-service", "scope": "openid read"}
        assert "code" in answer_of(browser.sign_in(**asked))
        response = token_request(
            browser.client, grant_type="client_credentials", client_id=f"{DUAL}-service", client_secret=SECRET
        )
        refused(response, "unauthorized_client")

    @pytest.mark.parametrize("changes", [{"is_enabled": False}, {"system_user": None}])
    def test_what_a_service_needs_is_checked_at_each_request(self, http: Client, changes: dict[str, Any]) -> None:
        TrustedApplication.objects.filter(application_uri=DUAL).update(**changes)
        response = token_request(
            http, grant_type="client_credentials", client_id=f"{DUAL}-service", client_secret=SECRET
        )
        refused(response, "unauthorized_client")

    def test_a_system_user_that_became_external_runs_no_service(self, http: Client) -> None:
        form = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": SECRET}
        token = token_request(http, **form).json()["access_token"]
        User.objects.filter(login="service").update(user_type="ExternalCommunityUser")
        refused(token_request(http, **form), "unauthorized_client")
        answer = http.get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "UserNotInternal")

    def test_a_disabled_system_user_runs_no_service(self, http: Client) -> None:
        User.objects.filter(login="service").update(active=False)
        response = token_request(http, grant_type="client_credentials", client_id=SERVICE, client_secret=SECRET)
        refused(response, "unauthorized_client")


# --- Basic OP: userinfo, revocation, introspection ------------------------------------------------------------------


class TestUserinfo:
    """oidcc-userinfo-get, -post-header, -post-body."""

    def test_all_three_ways_give_the_same(self, browser: Browser) -> None:
        tokens = browser.tokens()
        plain = Client()
        answers = [
            plain.get(USERINFO, headers=bearer(tokens)),
            plain.post(USERINFO, headers=bearer(tokens)),
            post_form(plain, USERINFO, ("access_token", tokens["access_token"])),
        ]
        for answer in answers:
            assert answer.status_code == 200, answer.content
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.json() == answers[0].json()
        assert answers[0].json()["sub"] == claims_of(tokens["id_token"])["sub"]

    def test_a_token_belongs_in_one_place(self, browser: Browser) -> None:
        tokens = browser.tokens()
        token = ("access_token", tokens["access_token"])
        refused(post_form(Client(), USERINFO, token, **bearer(tokens)), "invalid_request")
        refused(post_form(Client(), USERINFO, token, token), "invalid_request")
        in_query = Client().get(USERINFO, dict([token]))
        assert in_query.status_code == 401
        both = Client().get(USERINFO, headers={**bearer(tokens), "X-Api-Key": "enrt_" + "0" * 64})
        assert both.status_code == 400

    def test_a_query_of_a_thousand_parameters_is_refused(self, browser: Browser) -> None:
        many = {f"p{n}": "x" for n in range(1001)}
        refused(Client().get(USERINFO, many, headers=bearer(browser.tokens())), "invalid_request")

    def test_descriptions_are_ascii_in_every_language(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """RFC 6749, 5.2; RFC 6750, 3."""
        bulgarian = {"Accept-Language": "bg"}
        refused(http.get(USERINFO, headers={"Authorization": "Bearer x", **bulgarian}), "invalid_token", 401)
        monkeypatch.setattr(rate_limits, "check_client", lambda *_: rate_limits.count("none left", 0))
        refused(post_form(http, TOKEN_URL, ("grant_type", "client_credentials"), **bulgarian), "slow_down", 429)

    @pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eDp5"}])
    def test_without_a_good_token_there_is_a_challenge(self, http: Client, header: dict[str, str]) -> None:
        for response in (http.get(USERINFO, headers=header), http.post(USERINFO, headers=header)):
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
        refused(post_form(http, USERINFO, ("access_token", "x")), "invalid_token", 401)
        assert http.put(USERINFO).status_code == 405


class TestRevocation:
    URL = "/id/connect/revocation"
    CLIENT = (("client_id", WEB), ("client_secret", SECRET))

    @pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
    @pytest.mark.parametrize("hint", ["access_token", "refresh_token", "nonsense", ""])
    def test_either_token_ends_its_family(self, browser: Browser, kind: str, hint: str) -> None:
        tokens = browser.tokens(scope="openid read offline_access")
        form = (*self.CLIENT, ("token", tokens[kind]), ("token_type_hint", hint))
        assert post_form(browser.client, self.URL, *form).status_code == 200
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 401
        again = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET}
        refused(token_request(browser.client, **again, refresh_token=tokens["refresh_token"]), "invalid_grant")

    def test_unknown_tokens_are_no_error_and_strangers_are(self, http: Client) -> None:
        assert post_form(http, self.URL, *self.CLIENT, ("token", "x")).status_code == 200
        refused(post_form(http, self.URL, *self.CLIENT), "invalid_request")
        wrong = (("client_id", WEB), ("client_secret", "wrong"), ("token", "x"))
        refused(post_form(http, self.URL, *wrong), "invalid_client", 401)
        refused(post_form(http, self.URL, ("token", "x")), "invalid_client", 401)

    @pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
    def test_tokens_of_another_client_are_refused(self, browser: Browser, kind: str) -> None:
        """RFC 7009, 2.1."""
        tokens = browser.tokens(scope="openid read offline_access")
        form = (("client_id", DUAL), ("client_secret", SECRET), ("token", tokens[kind]))
        assert "another client" in refused(post_form(browser.client, self.URL, *form), "invalid_grant")
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 200

    def test_a_public_application_revokes_its_own(self, browser: Browser) -> None:
        verifier, challenge = pkce()
        code = browser.code(client_id=PUBLIC, code_challenge=challenge, code_challenge_method="S256")
        tokens = browser.redeem(code, PUBLIC, code_verifier=verifier).json()
        form = (("client_id", PUBLIC), ("token", tokens["access_token"]))
        assert post_form(browser.client, self.URL, *form).status_code == 200
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 401

    def test_introspection_needs_a_token(self, http: Client) -> None:
        refused(post_form(http, "/id/connect/introspect", *self.CLIENT), "invalid_request")
        own = (("client_id", SERVICE), ("client_secret", SECRET), ("token", service_token(http)))
        assert post_form(http, "/id/connect/introspect", *own).json()["active"] is True


# --- Form Post OP ---------------------------------------------------------------------------------------------------


class TestResponseModes:
    @pytest.mark.parametrize(
        "response_type, mode, starts",
        [
            ("code", "query", f"{REDIRECT}?code="),
            ("code", "fragment", f"{REDIRECT}#code="),
            ("code id_token", "fragment", f"{REDIRECT}#"),
        ],
    )
    def test_each_mode_that_fits_is_used(self, browser: Browser, response_type: str, mode: str, starts: str) -> None:
        answer = browser.sign_in(response_type=response_type, response_mode=mode)
        assert answer.headers["Location"].startswith(starts)
        assert browser.redeem(parameters_of(answer.headers["Location"])["code"]).status_code == 200

    def test_form_post_escapes_and_is_not_kept(self, browser: Browser) -> None:
        browser.sign_in()
        state = "\"><script>alert(1)</script>&'"
        page = browser.authorize(response_mode="form_post", state=state)
        assert page.headers["Cache-Control"] == "no-store"
        assert b"<script>alert" not in page.content
        assert fields_of(page.content.decode())["state"] == state

    def test_both_id_tokens_of_the_hybrid_flow_agree(self, browser: Browser) -> None:
        answer = parameters_of(browser.sign_in(response_type="code id_token").headers["Location"])
        tokens = browser.redeem(answer["code"]).json()
        front, back = claims_of(answer["id_token"]), claims_of(tokens["id_token"])
        for name in ("iss", "sub", "aud", "nonce", "sid", "auth_time"):
            assert front[name] == back[name], name
        assert "at_hash" not in front
        assert "c_hash" not in back

    def test_an_external_user_gets_the_front_id_token_too(self, browser: Browser) -> None:
        answer = parameters_of(browser.sign_in("customer", response_type="code id_token").headers["Location"])
        assert claims_of(answer["id_token"])["user_type"] == "ExternalCommunityUser"
        assert set(browser.redeem(answer["code"]).json()) == {"token_type", "expires_in", "scope", "id_token"}


# --- RP-Initiated Logout OP -----------------------------------------------------------------------------------------


def signed_in(browser: Browser) -> bool:
    return "code" in answer_of(browser.authorize(prompt="none"))


class TestLogout:
    """oidcc-rp-initiated-logout and its variants."""

    def out(self, browser: Browser, method: str = "get", **parameters: str) -> Any:
        return getattr(browser.client, method)(END_SESSION, parameters)

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_with_everything_it_returns_without_asking(self, browser: Browser, method: str) -> None:
        hint = browser.tokens()["id_token"]
        asked = {"post_logout_redirect_uri": LOGOUT_REDIRECT, "state": "s &", "client_id": WEB}
        if method == "post":
            # A form of another site comes without the cookie of the sign-in, which is added to a GET.
            asked = self.gone_on(Client().post(END_SESSION, {"id_token_hint": hint, **asked}))
        response = self.out(browser, **{"id_token_hint": hint, **asked})
        assert response.headers["Location"] == f"{LOGOUT_REDIRECT}?state=s+%26"
        assert not signed_in(browser)

    def gone_on(self, response: Any) -> dict[str, str]:
        """The parameters of the GET that a posted request goes on as."""
        assert response.status_code == 302, response.content
        assert response.headers["Location"].startswith(f"{END_SESSION}?")
        return dict(parse_qsl(response.headers["Location"].partition("?")[2]))

    def test_a_posted_request_that_proves_nothing_asks(self, browser: Browser) -> None:
        browser.sign_in()
        asked = self.gone_on(Client().post(END_SESSION, {"client_id": WEB, "confirm": "yes"}))
        assert asked == {"client_id": WEB}
        assert b"Sign out?" in self.out(browser, **asked).content
        assert signed_in(browser)
        assert Client().post(END_SESSION, {"state": "x" * 20_000}).status_code == 400

    def test_without_state_none_comes_back(self, browser: Browser) -> None:
        hint = browser.tokens()["id_token"]
        response = self.out(browser, id_token_hint=hint, post_logout_redirect_uri=LOGOUT_REDIRECT)
        assert response.headers["Location"] == LOGOUT_REDIRECT

    def test_without_an_address_it_ends_at_a_page(self, browser: Browser) -> None:
        hint = browser.tokens()["id_token"]
        response = self.out(browser, id_token_hint=hint, state="s")
        assert b"You are signed out" in response.content
        assert not signed_in(browser)

    @pytest.mark.parametrize("parameters", [{}, {"state": "s"}, {"client_id": WEB}])
    def test_without_a_hint_it_asks(self, browser: Browser, parameters: dict[str, str]) -> None:
        browser.sign_in()
        assert b"Sign out?" in self.out(browser, **parameters).content
        assert signed_in(browser)

    def test_a_modified_hint_ends_nothing(self, browser: Browser) -> None:
        head, body, signature = browser.tokens()["id_token"].split(".")
        other = base64.urlsafe_b64encode(base64.urlsafe_b64decode(body + "==").replace(b"demo", b"root")).decode()
        for hint in (f"{head}.{other.rstrip('=')}.{signature}", f"{head}.{body}.{signature[:-4]}AAAA", "nonsense"):
            response = self.out(browser, id_token_hint=hint, post_logout_redirect_uri=LOGOUT_REDIRECT)
            assert (response.status_code, "Location" in response.headers) == (400, False)
        assert signed_in(browser)

    @pytest.mark.parametrize("address", [LOGOUT_REDIRECT + "?x=1", LOGOUT_REDIRECT.upper(), "https://evil.example/"])
    def test_an_address_that_is_not_registered_is_not_followed(self, browser: Browser, address: str) -> None:
        hint = browser.tokens()["id_token"]
        response = self.out(browser, id_token_hint=hint, post_logout_redirect_uri=address)
        assert (response.status_code, "Location" in response.headers) == (400, False)

    def test_an_access_token_is_no_hint(self, browser: Browser) -> None:
        response = self.out(browser, id_token_hint=browser.tokens()["access_token"])
        assert response.status_code == 400

    def test_an_address_without_client_or_hint_is_not_followed(self, browser: Browser) -> None:
        browser.sign_in()
        response = self.out(browser, post_logout_redirect_uri=LOGOUT_REDIRECT, state="s")
        assert (response.status_code, "Location" in response.headers) == (400, False)

    def test_the_client_alone_may_return_after_the_question(self, browser: Browser) -> None:
        browser.sign_in()
        page = self.out(browser, client_id=WEB, post_logout_redirect_uri=LOGOUT_REDIRECT, state="s")
        response = browser.client.post(END_SESSION, fields_of(page.content.decode()))
        assert response.headers["Location"] == f"{LOGOUT_REDIRECT}?state=s"

    def test_a_repeated_parameter_is_a_page(self, browser: Browser) -> None:
        browser.sign_in()
        assert browser.client.get(END_SESSION, [("state", "a"), ("state", "b")]).status_code == 400

    def test_every_application_of_the_sign_in_is_told(self, browser: Browser) -> None:
        """Front-Channel and Back-Channel Logout: each with its own sid, and with what its address had."""
        worker = Worker()
        for name in (WEB, DUAL):
            TrustedApplication.objects.filter(application_uri=name).update(
                front_channel_logout_url=f"http://localhost:5080/front?app={name}",
                back_channel_logout_url=f"http://localhost:5080/back/{name}",
            )
        tokens = {name: browser.tokens(client_id=name) for name in (WEB, DUAL)}
        sids = {name: claims_of(found["id_token"])["sid"] for name, found in tokens.items()}
        page = self.out(browser, id_token_hint=tokens[WEB]["id_token"]).content.decode()
        for name, sid in sids.items():
            frame = f"http://localhost:5080/front?app={name}&amp;iss=http%3A%2F%2Ftestserver%2Fid&amp;sid={sid}"
            assert frame in page
            assert browser.client.get(USERINFO, headers=bearer(tokens[name])).status_code == 401
        calls = worker.take()
        assert {call[4] for call in calls} == set(sids.values())
        assert {(call[2], call[3]) for call in calls} == {("http://testserver/id", "demo")}


class TestWhatASignOutEnds:
    """Every application of the sign-in, at once (spec 01, 1.8)."""

    def test_applications_that_signed_in_at_the_same_time(self, browser: Browser) -> None:
        hint = browser.tokens()["id_token"]
        row = BrowserSession.objects.get()
        others = [browser.tokens(client_id=name, scope="openid read") for name in (DUAL, WEB)]
        # Of concurrent requests with one session the last wins: here the one that knows of none of the others.
        BrowserSession.objects.update(session_data=row.session_data)
        browser.client.get(END_SESSION, {"id_token_hint": hint})
        assert [browser.client.get(USERINFO, headers=bearer(each)).status_code for each in others] == [401, 401]

    def test_codes_that_are_not_redeemed(self, browser: Browser) -> None:
        hint, code = browser.tokens()["id_token"], browser.code(client_id=DUAL)
        browser.client.get(END_SESSION, {"id_token_hint": hint})
        refused(browser.redeem(code, DUAL), "invalid_grant")

    @pytest.mark.parametrize("at", [END_SESSION, "/id/account/logout"])
    def test_a_sign_in_that_lacks_a_factor_by_now(self, browser: Browser, at: str) -> None:
        tokens = browser.tokens()
        role = Role.objects.create(name="Strict", required_factor="SecondFactor")
        RoleUser.objects.create(user=User.objects.get(login="demo"), role=role)
        page = browser.client.get(at, {"client_id": WEB})
        assert b"Sign out?" in page.content
        assert b"You are signed out" in browser.client.post(at, fields_of(page.content.decode())).content
        assert browser.client.get(USERINFO, headers=bearer(tokens)).status_code == 401
        role.delete()
        assert not signed_in(browser)

    def test_a_posted_sign_out_of_nobody_is_no_error(self, browser: Browser) -> None:
        page = browser.client.get("/id/account/login").content.decode()
        answer = browser.client.post("/id/account/logout", fields_of(page))
        assert b"You are signed out" in answer.content


def test_the_first_key_of_a_node_is_loaded_once(db: None) -> None:
    """Making it changes the cache version of the keys; under the former one, the next request loaded the keys again."""
    SigningKey.objects.all().delete()
    keys.forget()
    first = keys.key_set()
    assert keys.key_set() is first
    keys.keys_rotate(by=OPERATOR)
    assert keys.key_set() is not first
