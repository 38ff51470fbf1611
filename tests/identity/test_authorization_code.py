"""The authorization code and hybrid flows (spec 01, 1.2 and 1.4), through HTTP."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest

from identity.models import AccessToken, Grant, TrustedApplication, User
from identity.oauth import backchannel
from identity.oauth.codes import stored_code
from tests.identity.flows import (
    DUAL,
    LOGOUT_REDIRECT,
    PUBLIC,
    REDIRECT,
    SERVICE,
    WEB,
    Browser,
    fields_of,
    parameters_of,
    pkce,
    token_request,
)
from tests.support.receiver import LoopbackReceiver
from tests.support.tasks import Worker


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def half_hash(value: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(value.encode()).digest()[:16]).rstrip(b"=").decode()


class TestCode:
    def test_it_ends_with_tokens_of_the_user(self, browser: Browser) -> None:
        answer = browser.sign_in()
        assert answer.headers["Location"].startswith(REDIRECT + "?")
        assert answer.headers["Cache-Control"] == "no-store"
        parameters = parameters_of(answer.headers["Location"])
        assert (parameters["state"], parameters["iss"]) == ("xyz", "http://testserver/id")
        response = browser.redeem(parameters["code"])
        body = response.json()
        assert set(body) == {"access_token", "token_type", "expires_in", "scope", "id_token"}
        access, identity = claims_of(body["access_token"]), claims_of(body["id_token"])
        user = User.objects.get(login="demo")
        assert (access["sub"], access["id"], access["user_type"]) == ("demo", user.pk, "InternalUser")
        assert (identity["aud"], identity["nonce"], identity["sub"]) == (WEB, "n-1", "demo")
        assert identity["at_hash"] == half_hash(body["access_token"])
        assert identity["sid"] == access["sid"]
        assert identity["auth_time"] == access["auth_time"]
        assert identity["email"] == "demo@example.com"
        assert (identity["name"], identity["locale"]) == ("Demo User", "en")

    def test_the_id_token_verifies_with_the_published_keys(self, browser: Browser) -> None:
        body = browser.tokens()
        metadata = browser.client.get("/id/.well-known/openid-configuration").json()
        jwks = browser.client.get(metadata["jwks_uri"].removeprefix("http://testserver")).json()
        key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(body["id_token"])["kid"]]
        claims = jwt.decode(body["id_token"], key, algorithms=["RS256"], audience=WEB, issuer=metadata["issuer"])
        assert claims["sub"] == "demo"

    def test_a_second_application_needs_no_second_login(self, browser: Browser) -> None:
        first = browser.tokens()
        response = browser.authorize(client_id=DUAL)
        assert response.headers["Location"].startswith(REDIRECT)
        second = browser.redeem(parameters_of(response.headers["Location"])["code"], DUAL).json()
        assert claims_of(first["id_token"])["sid"] != claims_of(second["id_token"])["sid"]

    def test_a_code_works_once_and_its_reuse_revokes_what_it_gave(self, browser: Browser) -> None:
        code = browser.code(scope="openid read offline_access")
        tokens = browser.redeem(code).json()
        me = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert browser.client.get("/id/connect/userinfo", headers=me).status_code == 200
        again = browser.redeem(code)
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
        assert browser.client.get("/id/connect/userinfo", headers=me).status_code == 401
        refreshed = token_request(
            browser.client,
            grant_type="refresh_token",
            client_id=WEB,
            client_secret="DEMO",
            refresh_token=tokens["refresh_token"],
        )
        assert refreshed.json()["error"] == "invalid_grant"

    def test_a_code_is_bound_to_client_and_redirect_uri(self, browser: Browser) -> None:
        assert browser.redeem(browser.code(), DUAL).json()["error"] == "invalid_grant"
        assert browser.redeem(browser.code(), redirect_uri=REDIRECT + "/").json()["error"] == "invalid_grant"
        assert browser.redeem(browser.code(), client_secret="wrong").status_code == 401

    def test_a_code_expires(self, browser: Browser) -> None:
        from datetime import timedelta

        from foundation.fields import utc_now

        code = browser.code()
        grant = Grant.objects.get(code=stored_code(code))
        assert 55 < (grant.expires - utc_now()).total_seconds() <= 60
        Grant.objects.update(expires=utc_now() - timedelta(seconds=1))
        assert browser.redeem(code).json()["error"] == "invalid_grant"

    def test_a_disabled_user_or_application_gets_no_tokens(self, browser: Browser) -> None:
        code = browser.code()
        User.objects.filter(login="demo").update(active=False)
        assert browser.redeem(code).json()["error"] == "invalid_grant"
        User.objects.filter(login="demo").update(active=True)
        TrustedApplication.objects.filter(application_uri=WEB).update(is_enabled=False)
        assert browser.redeem(code).json()["error"] == "unauthorized_client"

    def test_openid_is_optional_and_then_there_is_no_id_token(self, browser: Browser) -> None:
        assert "id_token" not in browser.tokens(scope="read")

    def test_the_only_redirect_uri_need_not_be_sent(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_login_url=REDIRECT)
        assert browser.sign_in(redirect_uri=None).headers["Location"].startswith(REDIRECT)

    def test_parameters_may_be_posted(self, browser: Browser) -> None:
        response = browser.client.post("/id/connect/authorize", browser.ask())
        assert response.headers["Location"].startswith("/id/connect/authorize?")


class TestErrorPages:
    """A wrong client or redirect URI never redirects (RFC 6749, 4.1.2.1)."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"client_id": "nobody"},
            {"client_id": None},
            {"client_id": f"{DUAL}-service"},
            {"redirect_uri": REDIRECT + "/"},
            {"redirect_uri": REDIRECT.upper()},
            {"redirect_uri": REDIRECT + "?x=1"},
            {"redirect_uri": "https://evil.example/"},
            {"redirect_uri": None},
            {"client_id": SERVICE},
        ],
    )
    def test_it_shows_a_page(self, browser: Browser, changes: dict[str, Any]) -> None:
        response = browser.authorize(**changes)
        assert response.status_code == 400
        assert "Location" not in response.headers
        assert b"cannot be served" in response.content
        assert b"<code>invalid_request</code>" in response.content

    def test_what_is_shown_is_escaped_and_cannot_be_framed(self, browser: Browser) -> None:
        response = browser.authorize(client_id="<script>alert(1)</script>")
        assert b"<script>alert" not in response.content
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


class TestErrorsForTheClient:
    @pytest.mark.parametrize(
        "changes, error",
        [
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"response_type": None}, "invalid_request"),
            ({"response_type": "code token"}, "unsupported_response_type"),
            ({"scope": "openid exec"}, "invalid_scope"),
            ({"prompt": "none"}, "login_required"),
            ({"prompt": "none login"}, "invalid_request"),
            ({"prompt": "dance"}, "invalid_request"),
            ({"request": "x"}, "request_not_supported"),
            ({"request_uri": "https://x.example"}, "request_uri_not_supported"),
            ({"response_mode": "carrier-pigeon"}, "invalid_request"),
            ({"response_type": "code id_token", "nonce": None}, "invalid_request"),
            ({"response_type": "code id_token", "response_mode": "query"}, "invalid_request"),
            ({"code_challenge": "a" * 43, "code_challenge_method": "plain"}, "invalid_request"),
            ({"code_challenge": "a" * 43}, "invalid_request"),
        ],
    )
    def test_it_says_what_is_wrong(self, browser: Browser, changes: dict[str, Any], error: str) -> None:
        response = browser.authorize(**changes)
        assert response.status_code == 302, response.content
        assert response.headers["Location"].startswith(REDIRECT)
        answer = parameters_of(response.headers["Location"])
        assert (answer["error"], answer["state"]) == (error, "xyz")
        assert answer["iss"] == "http://testserver/id"
        assert answer["error_description"]

    def test_a_disabled_application(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(is_enabled=False)
        assert parameters_of(browser.authorize().headers["Location"])["error"] == "unauthorized_client"


class TestPkce:
    def ask(self, browser: Browser, **changes: Any) -> dict[str, str]:
        return parameters_of(browser.sign_in(client_id=PUBLIC, **changes).headers["Location"])

    def test_a_public_application_needs_it(self, browser: Browser) -> None:
        assert self.ask(browser)["error"] == "invalid_request"

    def test_the_right_verifier_redeems(self, browser: Browser) -> None:
        verifier, challenge = pkce()
        answer = self.ask(browser, code_challenge=challenge, code_challenge_method="S256")
        assert browser.redeem(answer["code"], PUBLIC, code_verifier=verifier).status_code == 200

    @pytest.mark.parametrize("form", [{}, {"code_verifier": "x" * 43}])
    def test_another_or_no_verifier_does_not(self, browser: Browser, form: dict[str, str]) -> None:
        _, challenge = pkce()
        answer = self.ask(browser, code_challenge=challenge, code_challenge_method="S256")
        response = browser.redeem(answer["code"], PUBLIC, **form)
        assert response.status_code == 400
        assert response.json()["error"] in {"invalid_grant", "invalid_request"}

    def test_a_confidential_application_may_use_it(self, browser: Browser) -> None:
        verifier, challenge = pkce()
        code = browser.code(code_challenge=challenge, code_challenge_method="S256")
        assert browser.redeem(code).status_code == 400
        assert browser.redeem(code, code_verifier=verifier).status_code == 200

    def test_a_verifier_without_a_challenge_is_refused(self, browser: Browser) -> None:
        assert browser.redeem(browser.code(), code_verifier="x" * 43).json()["error"] == "invalid_grant"

    def test_a_public_application_gets_no_refresh_token(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=PUBLIC).update(scope="openid read offline_access")
        verifier, challenge = pkce()
        answer = self.ask(
            browser, scope="openid read offline_access", code_challenge=challenge, code_challenge_method="S256"
        )
        body = browser.redeem(answer["code"], PUBLIC, code_verifier=verifier).json()
        assert "refresh_token" not in body
        assert body["scope"] == "openid read"


class TestHybridAndModes:
    def test_code_id_token_answers_in_the_fragment(self, browser: Browser) -> None:
        location = browser.sign_in(response_type="code id_token").headers["Location"]
        assert location.startswith(REDIRECT + "#")
        answer = parameters_of(location)
        claims = claims_of(answer["id_token"])
        assert (claims["nonce"], claims["c_hash"]) == ("n-1", half_hash(answer["code"]))
        assert browser.redeem(answer["code"]).json()["id_token"]

    def test_the_order_of_response_types_is_free(self, browser: Browser) -> None:
        assert "id_token" in parameters_of(browser.sign_in(response_type="id_token code").headers["Location"])

    @pytest.mark.parametrize("response_type", ["code", "code id_token"])
    def test_form_post_is_a_page_that_submits_itself(self, browser: Browser, response_type: str) -> None:
        page = browser.sign_in(response_mode="form_post", response_type=response_type)
        assert page.status_code == 200
        fields = fields_of(page.content.decode())
        assert fields["state"] == "xyz"
        assert ("id_token" in fields) == (response_type != "code")
        assert f'action="{REDIRECT}"' in page.content.decode()
        assert "form-action" not in page.headers["Content-Security-Policy"]
        assert browser.redeem(fields["code"]).status_code == 200

    def test_errors_use_the_asked_mode(self, browser: Browser) -> None:
        page = browser.authorize(prompt="none", response_mode="form_post")
        assert fields_of(page.content.decode())["error"] == "login_required"
        fragment = browser.authorize(prompt="none", response_mode="fragment").headers["Location"]
        assert fragment.startswith(REDIRECT + "#error=login_required")


class TestPrompts:
    def test_none_answers_silently_when_signed_in(self, browser: Browser) -> None:
        browser.sign_in()
        assert "code" in parameters_of(browser.authorize(prompt="none").headers["Location"])

    @pytest.mark.parametrize("prompt", ["login", "select_account"])
    def test_login_asks_again_and_moves_auth_time(self, browser: Browser, prompt: str) -> None:
        browser.sign_in()
        first = browser.client.session["auth_time"]
        response = browser.authorize(prompt=prompt)
        assert response.headers["Location"].startswith("/id/account/login")
        answer = browser.sign_in(prompt=prompt)
        assert "code" in parameters_of(answer.headers["Location"])
        assert browser.client.session["auth_time"] > first

    def test_max_age(self, browser: Browser) -> None:
        browser.sign_in()
        session = browser.client.session
        session["auth_time"] -= 100
        session.save()
        assert browser.authorize(max_age=50).headers["Location"].startswith("/id/account/login")
        assert parameters_of(browser.authorize(max_age=50, prompt="none").headers["Location"])["error"] == (
            "login_required"
        )
        assert "code" in parameters_of(browser.authorize(max_age=500).headers["Location"])
        assert "code" in parameters_of(browser.sign_in(max_age=0).headers["Location"])

    def test_consent_is_asked_for_only_when_wished(self, browser: Browser) -> None:
        browser.sign_in()
        page = browser.authorize(prompt="consent")
        assert page.status_code == 200
        assert b"asks for access" in page.content
        fields = fields_of(page.content.decode())
        proof = page.content.decode().split('name="_consent" value="')[1].split('"')[0]
        allowed = browser.client.get("/id/connect/authorize", {**fields, "_consent": proof})
        assert "code" in parameters_of(allowed.headers["Location"])
        denied = browser.client.get("/id/connect/authorize", {**fields, "_consent": "no"})
        assert parameters_of(denied.headers["Location"])["error"] == "access_denied"

    def test_login_hint_fills_the_login_in(self, browser: Browser) -> None:
        location = browser.authorize(login_hint="demo", ui_locales="bg").headers["Location"]
        page = browser.client.get(location).content.decode()
        assert 'value="demo"' in page


class TestExternalUsers:
    def test_they_get_an_id_token_and_nothing_else(self, browser: Browser) -> None:
        body = browser.tokens("customer", scope="openid profile read offline_access")
        assert "id_token" in body
        assert "access_token" not in body
        assert "refresh_token" not in body
        assert claims_of(body["id_token"])["user_type"] == "ExternalCommunityUser"
        assert not AccessToken.objects.exists()

    def test_the_application_must_be_for_them(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_as_community_user_allowed=False)
        assert parameters_of(browser.sign_in("customer").headers["Location"])["error"] == "access_denied"

    def test_without_openid_there_is_nothing_for_them(self, browser: Browser) -> None:
        assert parameters_of(browser.sign_in("customer", scope="read").headers["Location"])["error"] == "invalid_scope"


class TestRefresh:
    def refresh(self, browser: Browser, token: str, **form: str) -> Any:
        return token_request(
            browser.client,
            **{
                "grant_type": "refresh_token",
                "client_id": WEB,
                "client_secret": "DEMO",
                "refresh_token": token,
                **form,
            },
        )

    def tokens(self, browser: Browser) -> dict[str, Any]:
        return browser.tokens(scope="openid read update offline_access")

    def test_it_rotates_and_keeps_the_session(self, browser: Browser) -> None:
        first = self.tokens(browser)
        second = self.refresh(browser, first["refresh_token"]).json()
        assert second["refresh_token"] != first["refresh_token"]
        assert claims_of(second["access_token"])["sid"] == claims_of(first["access_token"])["sid"]
        assert claims_of(second["access_token"])["auth_time"] == claims_of(first["access_token"])["auth_time"]

    @pytest.mark.parametrize("scope", ["openid offline_access", "openid offline_access DomainApi"])
    def test_a_repeated_request_keeps_its_scopes(self, browser: Browser, scope: str) -> None:
        first = browser.tokens(scope=scope)
        second = self.refresh(browser, first["refresh_token"], scope=scope).json()
        assert second["scope"] == first["scope"] == "openid offline_access read update"

    @pytest.mark.parametrize(
        "scope,granted",
        [
            ("openid read", "openid read"),
            ("openid", "openid read update"),
            ("DomainApi", "openid read update exec offline_access"),
            ("DomainApi read", "read"),
        ],
    )
    def test_it_narrows_the_scopes(self, browser: Browser, scope: str, granted: str) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(scope="openid offline_access read update exec")
        first = browser.tokens(scope="openid read update exec offline_access")
        assert self.refresh(browser, first["refresh_token"], scope=scope).json()["scope"] == granted

    def test_it_adds_no_scope(self, browser: Browser) -> None:
        first = browser.tokens(scope="openid read offline_access")
        for scope in ("openid update", "DomainApi update", "profile"):
            assert self.refresh(browser, first["refresh_token"], scope=scope).json()["error"] == "invalid_scope"

    def test_only_with_offline_access(self, browser: Browser) -> None:
        assert "refresh_token" not in browser.tokens()

    def test_using_a_dead_one_revokes_the_family(self, browser: Browser) -> None:
        first = self.tokens(browser)
        second = self.refresh(browser, first["refresh_token"]).json()
        third = self.refresh(browser, second["refresh_token"]).json()
        assert self.refresh(browser, first["refresh_token"]).json()["error"] == "invalid_grant"
        assert self.refresh(browser, third["refresh_token"]).json()["error"] == "invalid_grant"
        assert not AccessToken.objects.exists()

    def test_a_lost_answer_may_be_asked_for_again_at_once(self, browser: Browser) -> None:
        first = self.tokens(browser)
        lost = self.refresh(browser, first["refresh_token"]).json()
        again = self.refresh(browser, first["refresh_token"])
        assert again.status_code == 200
        assert self.refresh(browser, again.json()["refresh_token"]).status_code == 200
        assert self.refresh(browser, lost["refresh_token"]).json()["error"] == "invalid_grant"

    def test_but_not_after_the_grace(self, browser: Browser) -> None:
        from datetime import timedelta

        from foundation.fields import utc_now
        from identity.models import RefreshToken

        first = self.tokens(browser)
        second = self.refresh(browser, first["refresh_token"]).json()
        RefreshToken.objects.filter(revoked__isnull=False).update(revoked=utc_now() - timedelta(seconds=30))
        assert self.refresh(browser, first["refresh_token"]).json()["error"] == "invalid_grant"
        assert self.refresh(browser, second["refresh_token"]).json()["error"] == "invalid_grant"

    def test_it_is_bound_to_its_client(self, browser: Browser) -> None:
        token = self.tokens(browser)["refresh_token"]
        assert self.refresh(browser, token, client_id=DUAL).json()["error"] == "invalid_grant"
        assert self.refresh(browser, token).status_code == 200

    def test_scopes_may_shrink_and_not_grow(self, browser: Browser) -> None:
        token = self.tokens(browser)["refresh_token"]
        assert self.refresh(browser, token, scope="openid email").json()["error"] == "invalid_scope"
        narrowed = self.refresh(browser, token, scope="read").json()
        assert narrowed["scope"] == "read"
        # RFC 6749, 6: the new refresh token has the scope of the old one.
        renewed = self.refresh(browser, narrowed["refresh_token"]).json()
        assert set(renewed["scope"].split()) == {"openid", "read", "update", "offline_access"}
        assert "refresh_token" in renewed

    def test_public_and_service_applications_are_refused(self, browser: Browser) -> None:
        response = token_request(browser.client, grant_type="refresh_token", client_id=PUBLIC, refresh_token="x")
        assert response.json()["error"] == "unauthorized_client"
        response = self.refresh(browser, "x", client_id=SERVICE)
        assert response.json()["error"] == "unauthorized_client"

    def test_a_disabled_user_gets_nothing(self, browser: Browser) -> None:
        token = self.tokens(browser)["refresh_token"]
        User.objects.filter(login="demo").update(active=False)
        assert self.refresh(browser, token).json()["error"] == "invalid_grant"


class TestEndSession:
    def test_it_signs_out_and_returns_with_state(self, browser: Browser) -> None:
        tokens = browser.tokens()
        response = browser.client.get(
            "/id/connect/endsession",
            {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": LOGOUT_REDIRECT, "state": "s"},
        )
        assert response.headers["Location"] == f"{LOGOUT_REDIRECT}?state=s"
        assert browser.authorize(prompt="none").headers["Location"].find("login_required") > 0
        me = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert browser.client.get("/id/connect/userinfo", headers=me).status_code == 401

    def test_without_a_hint_it_asks_first(self, browser: Browser) -> None:
        browser.sign_in()
        page = browser.client.get("/id/connect/endsession")
        assert b"Sign out?" in page.content
        assert "code" in parameters_of(browser.authorize(prompt="none").headers["Location"])
        fields = fields_of(page.content.decode())
        assert b"signed out" in browser.client.post("/id/connect/endsession", fields).content
        assert "error" in parameters_of(browser.authorize(prompt="none").headers["Location"])

    def test_another_site_cannot_confirm(self, browser: Browser) -> None:
        browser.sign_in()
        answer = browser.client.post("/id/connect/endsession", {"confirm": "yes"}, follow=True)
        assert b"Sign out?" in answer.content

    @pytest.mark.parametrize(
        "changes",
        [
            {"post_logout_redirect_uri": "https://evil.example/"},
            {"post_logout_redirect_uri": LOGOUT_REDIRECT + "/"},
            {"client_id": DUAL},
            {"id_token_hint": "x.y.z"},
        ],
    )
    def test_wrong_requests_show_a_page(self, browser: Browser, changes: dict[str, str]) -> None:
        tokens = browser.tokens()
        response = browser.client.get("/id/connect/endsession", {"id_token_hint": tokens["id_token"], **changes})
        assert response.status_code == 400

    def test_the_front_channel_is_told(self, browser: Browser) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(
            front_channel_logout_url="http://localhost:5080/bye"
        )
        tokens = browser.tokens()
        page = browser.client.get("/id/connect/endsession", {"id_token_hint": tokens["id_token"]})
        sid = claims_of(tokens["id_token"])["sid"]
        assert f"sid={sid}" in page.content.decode()
        assert "frame-src http://localhost:5080" in page.headers["Content-Security-Policy"]

    def test_the_back_channel_is_told_by_the_worker(
        self, browser: Browser, loopback_receiver: LoopbackReceiver
    ) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(
            back_channel_logout_url=f"{loopback_receiver.url}/backchannel"
        )
        worker = Worker()
        tokens = browser.tokens()
        browser.client.get("/id/connect/endsession", {"id_token_hint": tokens["id_token"]})
        calls = worker.take()
        assert [call[0] for call in calls] == ["identity.oauth.backchannel.send"]
        assert backchannel.send(*calls[0][1:]) == 200
        (request,) = loopback_receiver.requests
        assert (request.method, request.headers["Content-Type"]) == ("POST", "application/x-www-form-urlencoded")
        (token,) = parse_qs(request.body.decode())["logout_token"]
        claims = claims_of(token)
        assert jwt.get_unverified_header(token)["typ"] == "logout+jwt"
        assert claims["sid"] == claims_of(tokens["id_token"])["sid"]
        assert claims["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
        assert (claims["aud"], claims["sub"], "nonce" in claims) == (WEB, "demo", False)


def test_a_system_user_cannot_log_in(browser: Browser) -> None:
    user = User.objects.get(login="service")
    user.set_password("service")
    user.save()
    assert browser.log_in("service").status_code == 200
