"""The profile's list of browsers in which a person is signed in, and how the person ends one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from pytest_django import DjangoAssertNumQueries

from foundation.fields import utc_now
from identity.browser_sign_ins import browser_name, browsers_list
from identity.models import BrowserSignIn, Session, TrustedApplication, User
from identity.sessions import browser_sessions_prune
from tests.identity.factors import SECOND
from tests.identity.flows import REDIRECT, WEB, Browser, fields_of
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, fits, log_in, watched_page
from tests.support.platform import ROOT, LivePlatform
from tests.support.tasks import Worker

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.0 Mobile/15E148 Safari/604.1"
)


def signed_in(user_agent: str, login: str = "demo", address: str = "127.0.0.1") -> Browser:
    headers: dict[str, Any] = {"user-agent": user_agent}
    result = Browser(Client(enforce_csrf_checks=True, headers=headers, REMOTE_ADDR=address))
    assert result.log_in(login).status_code == 302
    return result


def profile(browser: Browser) -> str:
    answer = browser.client.get("/profile/")
    assert answer.status_code == 200, answer.headers
    return str(answer.content.decode())


def sign_out(browser: Browser, key: str) -> Any:
    token = fields_of(profile(browser))["csrfmiddlewaretoken"]
    return browser.client.post(f"/profile/browsers/{key}/sign-out", {"csrfmiddlewaretoken": token}, follow=True)


def key_of(browser: Browser, user_agent: str) -> str:
    return str(BrowserSignIn.objects.get(user_agent=user_agent).pk)


def api(tokens: dict[str, Any]) -> int:
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    return int(Client().get("/api/domain/odata/General_Products_Products?$top=1", headers=headers).status_code)


def test_another_browser_is_listed_and_signed_out(browser: Browser) -> None:
    mine, other = signed_in(FIREFOX), signed_in(IPHONE, address="192.0.2.7")
    page = profile(mine)
    assert "Firefox on Linux" in page
    assert "Safari on iPhone" in page
    assert "192.0.2.7" in page
    assert page.count("This browser") == 1
    answer = sign_out(mine, key_of(mine, IPHONE))
    assert "You are signed out in the other browser." in answer.content.decode()
    assert other.client.get("/profile/").headers["Location"].startswith("/id/account/login")
    assert "Safari on iPhone" not in profile(mine)


def test_a_signed_out_browser_is_signed_out_of_its_applications(browser: Browser) -> None:
    TrustedApplication.objects.filter(application_uri=WEB).update(back_channel_logout_url="http://localhost:5080/back")
    worker = Worker()
    mine, other = signed_in(FIREFOX), signed_in(IPHONE)
    tokens, kept = other.tokens(scope="openid read"), mine.tokens(scope="openid read")
    assert [api(each) for each in (tokens, kept)] == [200, 200]
    sign_out(mine, key_of(mine, IPHONE))
    assert [api(each) for each in (tokens, kept)] == [401, 200]
    assert Session.objects.filter(closed=None).count() == 1
    (call,) = worker.take()
    assert (call[0], call[3]) == ("identity.oauth.backchannel.send", "demo")


def test_sign_ins_of_others_cannot_be_ended(browser: Browser) -> None:
    mine, other = signed_in(FIREFOX), signed_in(IPHONE, "admin")
    assert "Safari on iPhone" not in profile(mine)
    for key in (key_of(other, IPHONE), "0" * 40, "x" * 500):
        assert sign_out(mine, key).status_code == 404
    assert other.client.get("/profile/").status_code == 200
    # Nor without the proof against requests of other sites.
    mine_too = signed_in(IPHONE + " 2")
    assert mine.client.post(f"/profile/browsers/{key_of(mine_too, IPHONE + ' 2')}/sign-out").status_code == 403
    assert Client().post("/profile/browsers/x/sign-out").status_code == 302


def test_a_sign_in_goes_with_its_session(browser: Browser) -> None:
    mine = signed_in(FIREFOX)
    assert BrowserSignIn.objects.count() == 1
    mine.client.logout()
    assert BrowserSignIn.objects.count() == 0
    signed_in(IPHONE)
    BrowserSession.objects.update(expire_date=utc_now())
    assert browsers_list(User.objects.get(login="demo"), "") == []
    assert browser_sessions_prune() == BrowserSession.objects.count() + 1
    assert BrowserSignIn.objects.count() == 0


def test_the_list_is_one_query_and_bounded(browser: Browser, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    user = User.objects.get(login="demo")
    for number in range(60):
        session = BrowserSession.objects.create(
            session_key=f"{number:040}", session_data="", expire_date=utc_now().replace(year=2100)
        )
        BrowserSignIn.objects.create(session=session, user=user, since=utc_now(), last_used=utc_now())
    with django_assert_num_queries(1):
        assert len(browsers_list(user, "")) == 50


def test_a_page_is_noted_at_most_once_a_minute(browser: Browser) -> None:
    mine = signed_in("A" * 5000 + "\0")
    (row,) = BrowserSignIn.objects.all()
    assert row.user_agent == "A" * 300
    BrowserSignIn.objects.update(last_used=utc_now().replace(year=2020))
    profile(mine)
    assert BrowserSignIn.objects.get().last_used.year == 2020


@pytest.mark.parametrize(
    "user_agent, name",
    [
        (FIREFOX, "Firefox on Linux"), (IPHONE, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/130.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Version/18.0 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.0", "Unknown browser"), ("", "Unknown browser"), ("Firefox/1", "Firefox"),
    ],
    ids=["firefox", "iphone", "edge", "android", "mac", "curl", "none", "no-system"],
)  # fmt: skip
def test_browsers_are_named(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name


@pytest.mark.browser
@pytest.mark.process
def test_a_person_signs_another_browser_out(live_platform: LivePlatform, chromium: Chromium) -> None:
    with (
        watched_page(chromium, live_platform.base_url, viewport=PHONE) as page,
        watched_page(chromium, live_platform.base_url, user_agent=IPHONE) as other,
    ):
        for each in (other, page):
            each.goto("/profile/")
            log_in(each, "demo", "demo")
        page.reload()
        assert (violations(page), fits(page)) == ([], True)
        page.emulate_media(color_scheme="dark")
        assert violations(page) == []
        page.get_by_role("button", name="Sign out Safari on iPhone").first.press("Enter")
        expect(page.locator("[role=status]")).to_have_text("You are signed out in the other browser.")
        other.reload()
        expect(other.locator("[name=password]")).to_be_visible()
        assert "/id/account/login" in other.url


_CAREFUL = """
import pyotp
from identity.factors import authenticator_app
from identity.models import User
person = User.objects.create_user("twostep", "twostep")
authenticator_app.app_add(person, secret := authenticator_app.secret_make(), pyotp.TOTP(secret).now())
"""


@pytest.mark.browser
@pytest.mark.process
def test_the_second_step_names_application_and_instance(live_platform: LivePlatform, chromium: Chromium) -> None:
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", _CAREFUL]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True)
    asked = f"client_id={WEB}&redirect_uri={REDIRECT}&response_type=code&scope=openid"
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto(f"/id/connect/authorize?{asked}")
        brand = page.inner_text(".brand")
        log_in(page, "twostep", "twostep")
        assert SECOND in page.url
        expect(page.locator("main")).to_contain_text("You are signing in to Web demo client as twostep.")
        assert brand == page.inner_text(".brand") != ""
        assert violations(page) == []
        # To the instance's own pages there is no application to name.
        page.goto("/id/account/login")
        log_in(page, "twostep", "twostep")
        expect(page.locator("main")).to_contain_text("You are signing in as twostep.")
