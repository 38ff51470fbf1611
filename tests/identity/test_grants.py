"""The profile's list of applications with access, and how a person ends that access."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import requests
from django.test import Client
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from pytest_django import DjangoAssertNumQueries

from foundation.fields import utc_now
from identity.grants import grants_list
from identity.models import AccessToken, ReferenceToken, RefreshToken, Session, TrustedApplication, User
from identity.sessions import session_close
from tests.identity.flows import DUAL, REDIRECT, SECRET, WEB, Browser, fields_of, pkce, service_token, token_request
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, fits, log_in, watched_page
from tests.support.platform import LivePlatform

SCOPE = "openid offline_access read"


def address_of(client_id: str = WEB) -> str:
    return f"/profile/applications/{TrustedApplication.objects.get(application_uri=client_id).pk}/revoke"


def revoke(browser: Browser, address: str) -> Any:
    token = fields_of(browser.client.get("/profile/").content.decode())["csrfmiddlewaretoken"]
    return browser.client.post(address, {"csrfmiddlewaretoken": token}, follow=True)


def status(token: str) -> int:
    return Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"}).status_code


def refreshed(tokens: dict[str, Any]) -> int:
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    return int(token_request(Client(), client_id=WEB, client_secret=SECRET, **form).status_code)


def test_an_application_keeps_its_access_when_its_session_has_ended(browser: Browser) -> None:
    tokens = browser.tokens(scope=SCOPE)
    assert status(tokens["access_token"]) == 200
    session_close(Session.objects.values_list("key", flat=True))
    AccessToken.objects.all().delete()
    page = browser.client.get("/profile/").content.decode()
    assert "No application uses your account at the moment." in page
    assert "Web demo client" in page
    assert SCOPE in page
    assert address_of() in page


def test_a_revoked_application_cannot_go_on(browser: Browser) -> None:
    tokens, others = browser.tokens(scope=SCOPE), browser.tokens(client_id=DUAL, scope=SCOPE)
    answer = revoke(browser, address_of())
    assert "The application has no access any more." in answer.content.decode()
    assert (status(tokens["access_token"]), refreshed(tokens)) == (401, 400)
    assert status(others["access_token"]) == 200
    assert [grant.application.application_uri for grant in grants_list(User.objects.get(login="demo"))] == [DUAL]


def test_a_code_that_is_not_redeemed_ends_too(browser: Browser) -> None:
    browser.tokens(scope=SCOPE)
    code = browser.code()
    revoke(browser, address_of())
    assert browser.redeem(code).status_code == 400


def test_personal_tokens_stay(browser: Browser) -> None:
    browser.tokens(scope=SCOPE)
    demo = User.objects.get(login="demo")
    application = TrustedApplication.objects.get(application_uri=WEB)
    until = utc_now() + datetime.timedelta(days=1)
    ReferenceToken.objects.create(
        user=demo, application=application, name="Mine", digest="0" * 64, scope="read", expires=until
    )
    revoke(browser, address_of())
    assert ReferenceToken.objects.get().revoked is None


def test_times_are_those_of_the_sign_in_and_of_the_last_use(browser: Browser) -> None:
    tokens = browser.tokens(scope=SCOPE)
    signed_in = utc_now() - datetime.timedelta(days=9)
    RefreshToken.objects.update(auth_time=signed_in)
    AccessToken.objects.update(created=utc_now() - datetime.timedelta(days=8))
    status(tokens["access_token"])
    (grant,) = grants_list(User.objects.get(login="demo"))
    assert grant.since == RefreshToken.objects.get().auth_time
    assert grant.last_used == max(Session.objects.get().last_activity, RefreshToken.objects.get().created)


def test_what_has_ended_is_no_grant(browser: Browser) -> None:
    browser.tokens(scope=SCOPE)
    for model in (AccessToken, RefreshToken):
        model.objects.update(expires=utc_now())
    service_token(Client())
    assert grants_list(User.objects.get(login="demo")) == grants_list(User.objects.get(login="service")) == []


def test_nobody_ends_the_access_that_others_gave(browser: Browser) -> None:
    tokens = browser.tokens(scope=SCOPE)
    address, stranger = address_of(), Client()
    assert stranger.post(address).status_code == 302  # to the login
    stranger.force_login(User.objects.get(login="admin"))
    assert stranger.post(address).status_code == stranger.post("/profile/applications/x/revoke").status_code == 404
    assert stranger.get(address).status_code == 405
    assert status(tokens["access_token"]) == 200


def test_many_tokens_are_read_by_as_many_queries_as_one(
    browser: Browser, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    demo = User.objects.get(login="demo")
    for _ in range(3):
        browser.tokens(scope=SCOPE)
    browser.tokens(client_id=DUAL, scope=SCOPE)
    with django_assert_num_queries(4):
        assert len(grants_list(demo)) == 2


@pytest.mark.browser
@pytest.mark.process
def test_a_person_ends_an_access_by_keyboard(live_platform: LivePlatform, chromium: Chromium) -> None:
    verifier, code_challenge = pkce()
    asked = {
        "client_id": WEB, "redirect_uri": REDIRECT, "response_type": "code", "scope": SCOPE,
        "code_challenge": code_challenge, "code_challenge_method": "S256",
    }  # fmt: skip
    with watched_page(chromium, live_platform.base_url, viewport=PHONE) as page:
        page.goto("/profile/")
        log_in(page, "demo", "demo")
        answer = page.request.get("/id/connect/authorize", params=dict(asked), max_redirects=0)
        code = answer.headers["location"].partition("code=")[2].partition("&")[0]
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": REDIRECT,
                "client_id": WEB, "client_secret": SECRET}  # fmt: skip
        tokens = requests.post(f"{live_platform.base_url}/id/connect/token", data=form, timeout=60).json()
        page.reload()
        assert (violations(page), fits(page)) == ([], True)
        page.get_by_role("button", name="Revoke Web demo client").press("Enter")
        expect(page.locator("[role=status]")).to_have_text("The application has no access any more.")
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert requests.get(f"{live_platform.base_url}/profile/me", headers=headers, timeout=60).status_code == 401
