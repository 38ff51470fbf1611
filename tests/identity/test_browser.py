"""The id site in Chromium: with and without scripts, on a phone, in the dark, under its own security policy."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from tests.support.chromium import administrators_page, told_by
from tests.support.instances import instance_environment
from tests.support.mail import MailServer
from tests.support.platform import ROOT, LivePlatform
from tests.support.processes import database_of
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

CLIENT = "BrowserTest"
pytestmark = [pytest.mark.browser, pytest.mark.process]


class Visitor:
    """One person's browser. `complaints` is what its console says, a violated security policy for example."""

    def __init__(self, chromium: Browser, base_url: str, application: str = "", **options: Any) -> None:
        self.base_url = base_url
        self.application = application
        self.complaints: list[str] = []
        self.page: Page = chromium.new_context(**options).new_page()
        self.page.on("console", lambda message: self.complaints.extend(told_by(message)))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path: str, **query: str) -> None:
        self.page.goto(f"{self.base_url}{path}?{urlencode(query)}" if query else f"{self.base_url}{path}")

    def authorize(self, **changes: str) -> None:
        asked = {
            "client_id": CLIENT,
            "redirect_uri": self.application,
            "response_type": "code",
            "scope": "openid read",
        }
        self.go("/id/connect/authorize", **{**asked, **changes})

    def log_in(self, login: str = "demo", password: str = "demo") -> None:
        # By keyboard alone. The field has the focus by itself, but not yet when the first key would come this fast.
        self.page.fill("[name=login]", "")
        self.page.keyboard.type(login)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(password)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")


@pytest.fixture(scope="module")
def application(live_platform: LivePlatform) -> Iterator[LoopbackReceiver]:
    """A registered application: a real server, since redirects to it cannot be intercepted in the browser."""
    with LoopbackReceiver(default=Answer(body=b"the application")).running() as receiver:
        command = [sys.executable, "manage.py", "register_app", CLIENT, "--scope", "openid read"]
        urls = ["--login-url", f"{receiver.url}/callback", "--logout-url", f"{receiver.url}/bye"]
        environment = instance_environment(live_platform.data_dir, 0, **database_of(live_platform))
        subprocess.run([*command, *urls], env=environment, cwd=ROOT, check=True, capture_output=True)
        yield receiver


@pytest.fixture(autouse=True)
def forget_requests(application: LoopbackReceiver) -> None:
    """Each test sees its own requests."""
    application.requests.clear()


def arrived(application: LoopbackReceiver) -> ReceivedRequest:
    """The answer that reached the application; browsers ask for an icon, too, whenever they like."""
    return next(request for request in application.requests if request.path.startswith("/callback"))


def test_signing_in_leads_to_the_application(
    live_platform: LivePlatform, chromium: Browser, application: LoopbackReceiver
) -> None:
    visitor = Visitor(chromium, live_platform.base_url, f"{application.url}/callback")
    visitor.authorize()
    visitor.log_in(password="wrong")
    assert "wrong" in visitor.page.inner_text("[role=alert]")
    visitor.log_in()
    visitor.page.wait_for_url(application.url + "/**")
    assert arrived(application).path.startswith("/callback?code=")
    assert visitor.complaints == []


@pytest.mark.parametrize("scripts", [True, False])
def test_form_post_arrives_with_and_without_scripts(
    live_platform: LivePlatform,
    chromium: Browser,
    application: LoopbackReceiver,
    scripts: bool,
) -> None:
    redirect_uri = f"{application.url}/callback"
    visitor = Visitor(chromium, live_platform.base_url, redirect_uri, java_script_enabled=scripts)
    visitor.authorize(response_mode="form_post", response_type="code id_token", nonce="n")
    visitor.log_in()
    if not scripts:
        visitor.page.click("button")  # Playwright finds no text inside noscript
    visitor.page.wait_for_url(application.url + "/**")
    answer = arrived(application)
    assert (answer.method, answer.path) == ("POST", "/callback")
    assert b"id_token=" in answer.body
    assert visitor.complaints == []


def test_consent_and_sign_out_under_the_policy(
    live_platform: LivePlatform, chromium: Browser, application: LoopbackReceiver
) -> None:
    visitor = Visitor(chromium, live_platform.base_url, f"{application.url}/callback")
    visitor.authorize(prompt="consent")
    visitor.log_in()
    visitor.page.click("text=Allow")
    visitor.page.wait_for_url(application.url + "/callback**")
    assert "code=" in arrived(application).path
    bye = f"{application.url}/bye"
    visitor.go("/id/connect/endsession", client_id=CLIENT, post_logout_redirect_uri=bye, state="s")
    visitor.page.click("button")
    visitor.page.wait_for_url(f"{bye}?state=s")
    visitor.go("/profile/")
    assert "/id/account/login" in visitor.page.url
    assert visitor.complaints == []


def test_callbacks_may_redirect_to_another_origin(
    live_platform: LivePlatform, chromium: Browser, application: LoopbackReceiver
) -> None:
    """As of a backend at another host than its pages, and of a broker."""
    with LoopbackReceiver(default=Answer(body=b"the pages")).running() as pages:
        application.respond_with = lambda request: Answer(303, headers={"Location": f"{pages.url}{request.path}"})
        try:
            visitor = Visitor(chromium, live_platform.base_url, f"{application.url}/callback")
            visitor.authorize(state="login")
            visitor.log_in()
            visitor.page.wait_for_url(f"{pages.url}/callback?code=**state=login**")
            visitor.authorize(state="posted", response_mode="form_post")
            visitor.page.wait_for_url(f"{pages.url}/callback")
            visitor.authorize(state="consent", prompt="consent")
            visitor.page.click("text=Allow")
            visitor.page.wait_for_url(f"{pages.url}/callback?code=**state=consent**")
            visitor.go("/id/connect/endsession", client_id=CLIENT, post_logout_redirect_uri=f"{application.url}/bye")
            visitor.page.click("button")
            visitor.page.wait_for_url(f"{pages.url}/bye")
        finally:
            application.respond_with = None
    assert visitor.complaints == []


def test_a_form_of_another_site_signs_out_after_the_question(
    live_platform: LivePlatform, chromium: Browser, application: LoopbackReceiver
) -> None:
    """RP-Initiated Logout, 2: POST. Browsers send no cookie of SameSite=Lax with it."""
    visitor = Visitor(chromium, live_platform.base_url, f"{application.url}/callback")
    visitor.authorize()
    visitor.log_in()
    visitor.page.wait_for_url(application.url + "/callback**")
    assert "127.0.0.1" in live_platform.base_url
    visitor.page.goto(f"{application.url.replace('127.0.0.1', 'localhost')}/portal")
    fields = {"client_id": CLIENT, "post_logout_redirect_uri": f"{application.url}/bye", "state": "s"}
    visitor.page.evaluate(_SEND_FORM, [f"{live_platform.base_url}/id/connect/endsession", fields])
    visitor.page.get_by_role("button", name="Sign out").click()
    visitor.page.wait_for_url(f"{application.url}/bye?state=s")
    visitor.go("/profile/")
    assert "/id/account/login" in visitor.page.url
    assert visitor.complaints == []


_SEND_FORM = """([action, fields]) => {
    const form = Object.assign(document.createElement("form"), { method: "post", action });
    for (const [name, value] of Object.entries(fields)) {
        form.append(Object.assign(document.createElement("input"), { name, value, type: "hidden" }));
    }
    document.body.append(form);
    form.submit();
}"""


def test_a_sign_in_in_a_popup_answers_its_opener(
    live_platform: LivePlatform, chromium: Browser, application: LoopbackReceiver
) -> None:
    visitor = Visitor(chromium, live_platform.base_url, f"{application.url}/callback")
    visitor.page.goto(f"{application.url}/callback-of-nothing")
    asked = {"client_id": CLIENT, "redirect_uri": visitor.application, "response_type": "code", "scope": "openid"}
    address = f"{live_platform.base_url}/id/connect/authorize?{urlencode(asked)}"
    with visitor.page.expect_popup() as opened:
        visitor.page.evaluate("address => { window.popup = window.open(address); }", address)
    popup = opened.value
    popup.fill("[name=login]", "demo")
    assert visitor.page.evaluate("window.popup.closed") is False
    popup.fill("[name=password]", "demo")
    popup.keyboard.press("Enter")
    popup.wait_for_url(f"{application.url}/callback?code=**")
    popup.evaluate("window.opener.answer = location.search")
    assert "code=" in visitor.page.evaluate("window.answer")


def test_other_pages_keep_the_policy_for_forms(live_platform: LivePlatform, chromium: Browser) -> None:
    visitor = Visitor(chromium, live_platform.base_url)
    for path in ("/id/account/login", "/id/account/reset", "/admin/login/", "/"):
        answer = visitor.page.goto(f"{live_platform.base_url}{path}")
        assert answer is not None
        assert "form-action 'self'" in answer.headers["content-security-policy"], path


@pytest.mark.parametrize("locale, heading", [("en-US", "Sign in"), ("bg-BG", "Вход"), ("de-DE", "Anmelden")])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_login_page_on_a_phone(
    live_platform: LivePlatform, chromium: Browser, locale: str, heading: str, scheme: Any
) -> None:
    visitor = Visitor(
        chromium,
        live_platform.base_url,
        viewport={"width": 360, "height": 640},
        locale=locale,
        color_scheme=scheme,
        java_script_enabled=True,
    )
    visitor.go("/id/account/login")
    assert visitor.page.inner_text("h1") == heading
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 360
    sizes = visitor.page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), button')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 44  # WCAG 2.2, 2.5.5: big enough for a finger
    background = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(243, 244, 246)") is (scheme == "light")
    assert visitor.complaints == []


def test_the_profile_with_a_token_on_a_phone(live_platform: LivePlatform, chromium: Browser) -> None:
    visitor = Visitor(chromium, live_platform.base_url, viewport={"width": 390, "height": 780}, locale="bg-BG")
    visitor.go("/id/account/login")
    visitor.log_in()
    visitor.page.fill("[name=name]", "A laptop with quite a long name, as people give them")
    visitor.page.check("[name=scopes][value=read]")
    visitor.page.click("form:has([name=name]) button")
    assert visitor.page.inner_text("code.token").startswith("enrt_")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    labels = "[...document.querySelectorAll('.stacked td')].map(e => getComputedStyle(e, '::before').content)"
    assert '"Токен"' in visitor.page.evaluate(labels)
    tokens = visitor.page.locator("section[aria-labelledby=tokens] .stacked")
    tokens.locator("button").click()
    assert tokens.count() == 0
    assert visitor.complaints == []


@pytest.fixture(scope="module")
def mailed_link(live_platform: LivePlatform) -> str:
    """From the reset mail of the new user `forgetful`, which the worker's task sent by SMTP."""
    program = (
        "from identity.models import User; from identity.password_reset import send;"
        "User.objects.create_user('forgetful', email='forgetful@example.com');"
        f"send('forgetful', '{live_platform.base_url}')"
    )
    with MailServer().running() as mail:
        environment = {**live_platform.environment, "EMAIL_URL": mail.url}
        command = [sys.executable, "manage.py", "shell", "-c", program]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
    found = re.search(r"http://\S+", mail.messages[0].get_content())
    assert found is not None
    return found[0]


def choose_password(visitor: Visitor, link: str, password: str) -> None:
    """Open the link, send the form as a browser does, and sign in with the new password."""
    visitor.page.goto(link)
    visitor.page.fill("[name=new_password]", password)
    visitor.page.fill("[name=repeated]", password)
    with visitor.page.expect_navigation():
        visitor.page.click("form button")
    assert "Your password is set" in visitor.page.inner_text("[role=status]")
    visitor.log_in("forgetful", password)
    assert visitor.page.url.endswith("/profile/")


def test_a_password_is_chosen_by_the_link_of_the_mail(
    live_platform: LivePlatform, chromium: Browser, mailed_link: str
) -> None:
    visitor = Visitor(chromium, live_platform.base_url)
    choose_password(visitor, mailed_link, "correct horse battery")
    assert visitor.complaints == []
    visitor.page.goto(mailed_link)
    assert "used already" in visitor.page.inner_text("[role=alert]")


def test_a_password_is_chosen_by_the_link_of_the_administrator(
    live_platform: LivePlatform, chromium: Browser, mailed_link: str
) -> None:
    administrator = Visitor(chromium, live_platform.base_url)
    administrator.go("/id/account/login", next="/admin/identity/user/?q=forgetful")
    administrator.log_in("admin", "admin")
    administrator.page.click("#result_list tbody th a")
    administrator.page.click("text=Make a link to choose a password")
    administrator.page.click("input[value='Make the link']")
    link = administrator.page.inner_text("code.secret")
    visitor = Visitor(chromium, live_platform.base_url, java_script_enabled=False)
    choose_password(visitor, link, "staple correct battery")
    assert administrator.complaints == visitor.complaints == []


def test_what_is_no_language_time_zone_or_address_is_named_at_its_field(
    live_platform: LivePlatform, chromium: Browser
) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/identity/user/add/")
        page.fill("[name=login]", "wrong-values")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for name, wrong in (("default_language", "klingon"), ("time_zone", "Mars/Olympus"), ("email", "nobody@")):
            field = page.locator(f"[name={name}]")
            field.evaluate("(field, value) => { field.type = 'text'; field.value = value; }", wrong)
        page.click("[name=_continue] >> nth=0")
        for name, said in (
            ("default_language", "klingon is not a known language"),
            ("time_zone", "Mars/Olympus is not a known time zone"),
            ("email", "valid e"),
        ):
            assert said in page.locator(f".field-{name} .errorlist").inner_text()

        page.goto("/admin/identity/trustedapplication/add/?kind=all")
        page.fill("[name=application_uri]", "no-scheme")
        page.fill("[name=name]", "Without a scheme")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.fill("[name=impersonate_login_url]", "localhost:5080/cb")
        page.click("[name=_continue] >> nth=0")
        assert "localhost:5080/cb has no scheme" in page.locator(".field-impersonate_login_url .errorlist").inner_text()
