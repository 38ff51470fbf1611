"""Tokens at the API (spec 01, 1.5): what is accepted, what is refused, and what a warm call costs."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import jwt as pyjwt
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.actors import OPERATOR
from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import AccessToken, ReferenceToken, SigningKey, TrustedApplication, User
from identity.oauth import jwt, keys
from identity.reference_tokens import ReferenceTokenRefused, reference_token_issue, reference_token_revoke
from tests.identity.flows import PUBLIC, SERVICE, WEB, Browser, service_token, token_request

pytestmark = [pytest.mark.urls("tests.identity.api"), pytest.mark.once]


def call(http: Client, token: str | None = None, **headers: str) -> Any:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return http.get("/api/whoami", headers=headers)


def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["type"]


class TestAccessTokens:
    def test_a_service_acts_as_its_system_user(self, http: Client) -> None:
        response = call(http, service_token(http), **{"X-Request-Id": "r-1"})
        assert response.status_code == 200
        body = response.json()
        assert (body["login"], body["application"]) == ("service", SERVICE)
        assert (body["scopes"], body["request_id"]) == (["exec", "read", "update"], "r-1")

    def test_a_person_acts_as_themselves(self, browser: Browser) -> None:
        assert call(browser.client, browser.tokens()["access_token"]).json()["login"] == "demo"

    def test_no_token(self, http: Client) -> None:
        response = call(http)
        assert error_of(response) == (401, "TokenMissing")
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("header", ["Bearer", "Bearer x", "Digest x", "x", "Bearer a.b.c", "Bearer " + "x" * 9000])
    def test_what_is_no_token(self, http: Client, header: str) -> None:
        response = http.get("/api/whoami", headers={"Authorization": header})
        assert error_of(response) == (401, "TokenInvalid")
        assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]

    def test_a_token_in_the_query_does_not_count(self, http: Client) -> None:
        assert http.get("/api/whoami", {"access_token": service_token(http)}).status_code == 401

    @pytest.mark.parametrize(
        "changes",
        [
            {"iss": "https://evil.example/id"},
            {"aud": ["other"]},
            {"exp": 1},
            {"nbf": 4_000_000_000},
        ],
    )
    def test_claims_that_do_not_fit(self, http: Client, changes: dict[str, Any]) -> None:
        claims = pyjwt.decode(service_token(http), options={"verify_signature": False})
        forged = jwt.sign({**claims, **changes}, type_="at+jwt")
        assert call(http, forged).status_code == 401

    def test_an_id_token_or_a_foreign_signature_is_refused(self, http: Client) -> None:
        claims = pyjwt.decode(service_token(http), options={"verify_signature": False})
        assert call(http, jwt.sign(claims, type_="JWT")).status_code == 401
        headers = {"kid": keys.key_set().active_kid, "typ": "at+jwt"}
        assert call(http, pyjwt.encode(claims, "x" * 64, algorithm="HS256", headers=headers)).status_code == 401
        assert call(http, pyjwt.encode(claims, "", algorithm="none", headers=headers)).status_code == 401
        # Signed by us, but never issued.
        assert call(http, jwt.sign({**claims, "jti": "other"}, type_="at+jwt")).status_code == 401

    def test_an_expired_token_says_so_even_when_cached(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        token = service_token(http)
        assert call(http, token).status_code == 200
        now = time.time()
        monkeypatch.setattr("identity.token_identity.time.time", lambda: now + 3700)
        assert error_of(call(http, token)) == (401, "TokenExpired")

    def test_the_scope_is_named(self, http: Client) -> None:
        response = call(http, service_token(http, scope="update"))
        assert error_of(response) == (403, "ScopeMissing")
        assert "'read'" in response.json()["error"]["message"]


class TestTakingAway:
    """Each acts although the token is cached."""

    @pytest.fixture
    def token(self, http: Client) -> str:
        token = service_token(http)
        assert call(http, token).status_code == 200
        return token

    def test_revoking(self, http: Client, token: str) -> None:
        form = f"client_id={SERVICE}&client_secret=DEMO&token={token}"
        response = http.post("/id/connect/revocation", form, content_type="application/x-www-form-urlencoded")
        assert response.status_code == 200
        assert error_of(call(http, token)) == (401, "TokenInvalid")

    def test_only_ones_own_tokens_can_be_revoked(self, http: Client, token: str) -> None:
        form = f"client_id=WebDemoClient&client_secret=DEMO&token={token}"
        response = http.post("/id/connect/revocation", form, content_type="application/x-www-form-urlencoded")
        assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")
        assert call(http, token).status_code == 200

    def test_disabling_the_application(self, http: Client, token: str) -> None:
        application = TrustedApplication.objects.get(application_uri=SERVICE)
        application.is_enabled = False
        application.save()
        assert error_of(call(http, token)) == (401, "TokenInvalid")

    def test_disabling_the_user(self, http: Client, token: str) -> None:
        user = User.objects.get(login="service")
        user.active = False
        user.save()
        assert error_of(call(http, token)) == (401, "TokenInvalid")

    def test_making_the_user_external(self, browser: Browser) -> None:
        token = browser.tokens()["access_token"]
        assert call(browser.client, token).status_code == 200
        user = User.objects.get(login="demo")
        user.user_type = "ExternalCommunityUser"
        user.save()
        assert error_of(call(browser.client, token)) == (403, "UserNotInternal")


class TestWarmCalls:
    def test_they_cost_no_query_no_write_and_no_signature(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        token = service_token(http)
        assert call(http, token).status_code == 200
        assert call(http, token).status_code == 200
        monkeypatch.setattr(jwt, "verify_access_token", lambda token: pytest.fail("verified again"))
        with CaptureQueriesContext(connection) as queries:
            for _ in range(5):
                assert call(http, token).status_code == 200
        assert len(queries) == 0

    def test_a_changed_version_costs_one_query(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        token = service_token(http)
        assert call(http, token).status_code == 200
        monkeypatch.setattr(jwt, "verify_access_token", lambda token: pytest.fail("verified again"))
        cache_versions.bump("tokens")
        assert call(http, token).status_code == 200


class TestReferenceTokens:
    def issue(self, login: str | None = "demo", uri: str = PUBLIC, **options: Any) -> tuple[str, ReferenceToken]:
        return reference_token_issue(
            user=User.objects.get(login=login) if login else None,
            application=TrustedApplication.objects.get(application_uri=uri),
            name="test",
            by=OPERATOR,
            **{"scopes": ["read"], "lifetime": timedelta(days=1), **options},
        )

    def test_all_three_headers_take_them(self, http: Client) -> None:
        token, row = self.issue()
        assert token.startswith("enrt_")
        assert len(token) == 5 + 64
        assert token not in str(vars(row))
        for header, value in (("Authorization", f"Bearer {token}"), ("X-Api-Key", token), ("Api-Key", token)):
            assert http.get("/api/whoami", headers={header: value}).json()["login"] == "demo"
        row.refresh_from_db()
        assert row.last_used is not None

    def test_two_credentials_are_ambiguous(self, http: Client) -> None:
        token, _ = self.issue()
        for headers in ({"Authorization": "Bearer x", "X-Api-Key": token}, {"Api-Key": token, "X-Api-Key": token}):
            assert error_of(http.get("/api/whoami", headers=headers)) == (400, "CredentialsAmbiguous")

    def test_a_jwt_is_no_api_key(self, http: Client) -> None:
        assert http.get("/api/whoami", headers={"X-Api-Key": service_token(http)}).status_code == 401

    @pytest.mark.parametrize("language", ["en", "bg"])
    def test_the_challenge_is_ascii(self, http: Client, language: str) -> None:
        """Its characters are those of RFC 6750, 3; another one would encode the whole header."""
        response = http.get("/api/whoami", headers={"X-Api-Key": "x", "Accept-Language": language})
        challenge = response.headers["WWW-Authenticate"]
        assert re.fullmatch(r'Bearer error="invalid_token", error_description="[ !#-\[\]-~]+"', challenge), challenge
        assert "(enrt_...)" in challenge

    def test_a_service_token_acts_as_the_system_user(self, http: Client) -> None:
        TrustedApplication.objects.filter(application_uri=SERVICE).update(access_tokens="AuthenticatedUsers")
        token, row = self.issue(None, SERVICE)
        assert row.kind == "SAT"
        assert call(http, token).json()["login"] == "service"

    def test_revoking_acts_at_once(self, http: Client) -> None:
        token, row = self.issue()
        assert call(http, token).status_code == 200
        reference_token_revoke(row, by=OPERATOR)
        assert error_of(call(http, token)) == (401, "TokenInvalid")

    def test_expiry(self, http: Client) -> None:
        token, _ = self.issue()
        ReferenceToken.objects.update(expires=utc_now() - timedelta(seconds=1))
        assert error_of(call(http, token)) == (401, "TokenExpired")
        assert call(http, "enrt_" + "0" * 64).status_code == 401

    @pytest.mark.parametrize(
        "login, uri, options",
        [
            ("demo", "WebDemoClient", {}),
            ("demo", SERVICE, {}),
            ("customer", PUBLIC, {}),
            ("demo", PUBLIC, {"scopes": ["exec"]}),
            ("demo", PUBLIC, {"scopes": []}),
            ("demo", PUBLIC, {"lifetime": timedelta(days=4000)}),
            (None, PUBLIC, {}),
        ],
    )
    def test_the_policy_decides_who_gets_one(self, demo: None, login: str, uri: str, options: dict[str, Any]) -> None:
        with pytest.raises(ReferenceTokenRefused):
            self.issue(login, uri, **options)

    def test_administrators_only_means_administrators_only(self, http: Client) -> None:
        assert call(http, self.issue("admin", SERVICE)[0]).status_code == 200

    def test_a_changed_policy_acts_on_tokens_already_issued(self, http: Client) -> None:
        token, _ = self.issue()
        assert call(http, token).status_code == 200
        application = TrustedApplication.objects.get(application_uri=PUBLIC)
        application.access_tokens = "None"
        application.save()
        assert call(http, token).status_code == 401


class TestContext:
    @pytest.mark.parametrize(
        "query, cookie, accepted, language",
        [
            ("", "", "", "en"),
            ("", "", "de-DE,de;q=0.9,en;q=0.5", "de"),
            ("", "c=bg-BG|uic=bg-BG", "de", "bg"),
            ("?culture=fr-FR", "c=bg-BG|uic=bg-BG", "de", "fr"),
            ("?culture=%22", "", "bg", "bg"),
        ],
    )
    def test_language(self, http: Client, query: str, cookie: str, accepted: str, language: str) -> None:
        headers = {"Authorization": f"Bearer {service_token(http)}"}
        if accepted:
            headers["Accept-Language"] = accepted
        if cookie:
            headers["Cookie"] = f".AspNetCore.Culture={cookie}"
        assert http.get(f"/api/whoami{query}", headers=headers).json()["language"] == language

    def test_prefer_and_company(self, http: Client) -> None:
        company = "01900000-0000-7000-8000-00000000000A"
        token = service_token(http)
        prefer = f"return=minimal, CurrentEnterpriseCompanyId={company}"
        body = call(http, token, Prefer=prefer).json()
        assert body["company"] == company.lower()
        assert body["prefer"]["return"] == "minimal"
        response = http.get(
            f"/api/whoami?CurrentEnterpriseCompanyId={company}", headers={"Authorization": f"Bearer {token}"}
        )
        assert response.json()["company"] == company.lower()
        assert call(http, token, Prefer="CurrentEnterpriseCompanyId=x").json()["company"] is None


class TestIntrospection:
    def ask(self, http: Client, token: str, client: str = SERVICE, secret: str = "DEMO") -> Any:
        form = f"client_id={client}&client_secret={secret}&token={token}"
        return http.post("/id/connect/introspect", form, content_type="application/x-www-form-urlencoded")

    def test_it_tells_confidential_clients_about_live_tokens(self, http: Client) -> None:
        token = service_token(http)
        body = self.ask(http, token).json()
        assert (body["active"], body["client_id"], body["scope"]) == (True, SERVICE, "exec read update")
        AccessToken.objects.all().delete()
        cache_versions.bump("tokens")
        assert self.ask(http, token).json() == {"active": False}
        assert self.ask(http, "nonsense").json() == {"active": False}

    def test_it_needs_a_client(self, http: Client) -> None:
        assert self.ask(http, "x", secret="wrong").status_code == 401
        assert self.ask(http, "x", client=PUBLIC, secret="").status_code == 401


class TestUserinfo:
    def test_it_answers_by_scope(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid email read")["access_token"]
        body = browser.client.get("/id/connect/userinfo", headers={"Authorization": f"Bearer {token}"}).json()
        assert (body["sub"], body["email"]) == ("demo", "demo@example.com")
        assert "name" not in body

    def test_it_is_for_people_with_openid(self, browser: Browser) -> None:
        for token in (browser.tokens(scope="read")["access_token"], service_token(browser.client)):
            response = browser.client.get("/id/connect/userinfo", headers={"Authorization": f"Bearer {token}"})
            assert (response.status_code, response.json()["error"]) == (403, "insufficient_scope")


class TestProfileMe:
    def test_by_token_and_by_cookie(self, browser: Browser) -> None:
        token = browser.tokens()["access_token"]
        for response in (
            Client().get("/profile/me", headers={"Authorization": f"Bearer {token}"}),
            browser.client.get("/profile/me"),
        ):
            assert response.headers["Cache-Control"] == "no-store"
            body = response.json()
            assert (body["login"], body["isAdmin"], body["userType"]) == ("demo", False, "InternalUser")
            assert body["preferredLanguage"] == "en"
            assert body["instance"]["url"] == "http://testserver"

    def test_strangers_and_services(self, http: Client) -> None:
        assert error_of(http.get("/profile/me")) == (401, "TokenMissing")
        headers = {"Authorization": f"Bearer {service_token(http)}"}
        assert error_of(http.get("/profile/me", headers=headers)) == (403, "UserRequired")


class TestScopesTakenFromTheApplication:
    """Spec 01, 1.3: Scope has what its tokens may do, also those that were issued before."""

    def test_of_a_personal_token(self, http: Client) -> None:
        application = TrustedApplication.objects.get(application_uri=PUBLIC)
        token, _row = reference_token_issue(
            user=User.objects.get(login="demo"), application=application, name="laptop", scopes=["read", "update"],
            lifetime=timedelta(days=365), by=OPERATOR,
        )  # fmt: skip
        assert call(http, token).json()["scopes"] == ["read", "update"]
        application.scope = "openid profile read"
        application.save()
        assert call(http, token).json()["scopes"] == ["read"]

    def test_of_a_service(self, http: Client) -> None:
        token = service_token(http)
        application = TrustedApplication.objects.get(application_uri=SERVICE)
        application.scope = "read"
        application.save()
        assert call(http, token).json()["scopes"] == ["read"]
        # Without Scope, a service has read and update (spec 14, 14.4).
        application.scope = ""
        application.save()
        assert call(http, token).json()["scopes"] == ["read", "update"]

    def test_of_a_sign_in(self, browser: Browser) -> None:
        token = browser.tokens(scope="openid profile read update")["access_token"]
        assert call(browser.client, token).json()["scopes"] == ["openid", "profile", "read", "update"]
        application = TrustedApplication.objects.get(application_uri=WEB)
        application.scope = "read"
        application.save()
        assert call(browser.client, token).json()["scopes"] == ["openid", "profile", "read"]


class TestKeys:
    def published(self, http: Client) -> list[str]:
        found = http.get("/id/.well-known/openid-configuration/jwks").json()["keys"]
        assert not any("d" in key for key in found)
        return [key["kid"] for key in found]

    def kid(self, http: Client) -> str:
        return str(pyjwt.get_unverified_header(service_token(http))["kid"])

    def test_a_rotated_key_signs_once_no_cache_lacks_it(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        token, before = service_token(http), keys.key_set().active_kid
        cached = http.get("/id/.well-known/openid-configuration/jwks").headers["Cache-Control"]
        seconds = sum(int(number) for number in re.findall(r"(?:max-age|stale-while-revalidate)=(\d+)", cached))
        after = keys.keys_rotate(by=OPERATOR).kid
        assert (self.kid(http), self.published(http)) == (before, [before, after])
        later = utc_now() + timedelta(seconds=seconds + 1)
        monkeypatch.setattr(keys, "utc_now", lambda: later)
        assert (self.kid(http), self.published(http)) == (after, [after, before])
        assert call(http, token).status_code == 200

    def test_keys_rotated_in_a_row_sign_one_after_another(self, http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        start, kids = utc_now(), [keys.key_set().active_kid]

        def later(minutes: int) -> datetime:
            moment = start + timedelta(minutes=minutes)
            monkeypatch.setattr(keys, "utc_now", lambda: moment)
            return moment

        for minutes in (1, 6):
            moment = later(minutes)
            kids.append(keys.keys_rotate(by=OPERATOR).kid)
            SigningKey.objects.filter(pk=kids[-1]).update(created=moment)
        seen = []
        for minutes in (7, 12, 17):
            later(minutes)
            seen.append(self.kid(http))
        assert seen == kids

    def test_a_stolen_key_signs_no_more(self, http: Client) -> None:
        stolen = self.kid(http)
        call_command("rotate_keys", "--now", "--json", stdout=StringIO())
        new = self.kid(http)
        assert new != stolen
        assert self.published(http) == [new, stolen]
        keys.keys_rotate(by=OPERATOR)
        assert self.kid(http) == new

    def test_private_keys_are_readable_by_their_owner_only(self, http: Client) -> None:
        from django.conf import settings

        keys.key_set()
        directory = settings.DATA_DIR / "keys"
        assert directory.stat().st_mode & 0o077 == 0
        assert all(file.stat().st_mode & 0o077 == 0 for file in directory.glob("*.pem"))


def test_the_token_endpoint_answers_cors_for_the_origins_of_applications(http: Client) -> None:
    preflight = http.options("/id/connect/token", headers={"Origin": "http://localhost:5080"})
    assert preflight.headers["Access-Control-Allow-Origin"] == "http://localhost:5080"
    foreign = http.options("/id/connect/token", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in foreign.headers
    assert token_request(http, grant_type="x").headers["Vary"].startswith("Origin")
