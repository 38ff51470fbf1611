"""The guided flow of a trusted application in Chromium, and its programs as an administrator would run them.

The programs in shell, Python and JavaScript are run; those in C# are parsed.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from tests.identity.flows import fields_of
from tests.support.accessibility import violations
from tests.support.c_sharp import syntax_errors
from tests.support.chromium import PHONE, WIDE, administrators_page, fits
from tests.support.platform import LivePlatform
from tests.support.programs import requires_program
from tests.support.receiver import Answer, LoopbackReceiver

pytestmark = [pytest.mark.browser, pytest.mark.process]

RETURN = "http://localhost:5997/signin"
ENDINGS = ("sh", "py", "mjs")
TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Made:
    """What the last page shows: the secret ("" for public ones), and program by key, such as service-py."""

    uri: str
    secret: str
    programs: dict[str, str]


def make(page: Page, kind: str, *, redirect_uri: str = RETURN) -> Made:
    """Add an application; the page is at its last step then."""
    uri = f"{kind}-{secrets.token_hex(4)}"
    page.goto(f"/admin/identity/trustedapplication/add/?kind={kind}")
    page.fill("[name=name]", f"Try {uri}")
    page.fill("[name=application_uri]", uri)
    for name in ("impersonate_login_url", "impersonate_logout_url"):
        if page.locator(f"[name={name}]").count():
            page.fill(f"[name={name}]", redirect_uri)
    return _saved(page, uri)


def make_by_keyboard(page: Page) -> Made:
    """As `make`, a service, from the choice of the kind on."""
    uri = f"keyboard-{secrets.token_hex(4)}"
    page.goto("/admin/identity/trustedapplication/add/")
    _tab_to(page, "a[href='?kind=service']")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    _tab_to(page, "[name=name]")
    page.keyboard.type(f"Try {uri}")
    _tab_to(page, "[name=application_uri]")
    page.keyboard.type(uri)
    return _saved(page, uri)


def _saved(page: Page, uri: str) -> Made:
    with page.expect_navigation():
        page.locator("[name=application_uri]").press("Enter")
    expect(page.locator("pre").first).to_be_visible()
    secret = page.locator("code.secret")
    programs = {str(each.get_attribute("id")): str(each.text_content()) for each in page.locator("pre[id]").all()}
    return Made(uri, secret.inner_text() if secret.count() else "", programs)


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(150):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {selector}")


@contextmanager
def running(made: Made, key: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own, which knows the secret as the page says."""
    ending = key.rpartition("-")[2]
    interpreter = {"sh": requires_program("bash"), "py": sys.executable, "mjs": requires_program("node")}[ending]
    path = directory / f"program.{ending}"
    path.write_text(made.programs[key], encoding="utf-8")
    environment = {**os.environ, "CLIENT_SECRET": made.secret}
    process = subprocess.Popen(
        [interpreter, str(path)], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def printed_address(process: subprocess.Popen[str]) -> str:
    """What the program asks to open in a browser."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"https?://\S+", line):
            return found[0]
    raise AssertionError("the program printed no address")


def sign_in(address: str, login: str) -> str:
    """The address to which a sign-in by plain HTTP returns."""
    with requests.Session() as browser:
        page = browser.get(address, timeout=60)
        form = {**fields_of(page.text), "login": login, "password": login}
        answer = browser.post(page.url, form, headers={"Referer": page.url}, allow_redirects=False, timeout=60)
        while not (target := urljoin(answer.url, answer.headers["Location"])).startswith(RETURN):
            answer = browser.get(target, allow_redirects=False, timeout=60)
        return target


def output_of(process: subprocess.Popen[str], given: str = "") -> str:
    printed, _nothing = process.communicate(given, timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, printed
    return printed


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    with administrators_page(chromium, live_platform.base_url, reduced_motion="reduce") as page:
        yield page


def test_a_service_is_added_by_keyboard_and_its_programs_work(page: Page, tmp_path: Path) -> None:
    made = make_by_keyboard(page)
    for ending in ENDINGS:
        with running(made, f"service-{ending}", tmp_path) as process:
            assert "$metadata" in output_of(process), ending

    _tab_to(page, "input[type=submit]")
    page.keyboard.press("Enter")
    expect(page.locator("#token pre")).to_contain_text(f'"client_id": "{made.uri}"')
    expect(page.locator("code.secret")).to_have_text(made.secret)  # still on the same page


@pytest.mark.parametrize("kind, login", [("web", "demo"), ("external", "customer"), ("spa", "demo")])
def test_programs_sign_people_in(page: Page, tmp_path: Path, kind: str, login: str) -> None:
    made = make(page, kind)
    endings = ENDINGS if kind != "spa" else ("sh", "py")  # that in JavaScript is for browsers
    for ending in endings:
        with running(made, f"code-{ending}", tmp_path) as process:
            returned = sign_in(printed_address(process), login)
            code = parse_qs(urlsplit(returned).query)["code"][0]
            printed = output_of(process, f"{code if ending == 'sh' else returned}\n")
            assert "id_token" in printed if ending == "sh" else login in printed, printed
            assert ("$metadata" in printed) == (ending != "sh" and kind != "external"), printed


def test_a_program_refuses_an_answer_to_another_request(page: Page, tmp_path: Path) -> None:
    made = make(page, "web")
    for ending in ("py", "mjs"):
        with running(made, f"code-{ending}", tmp_path) as process:
            printed_address(process)
            printed, _nothing = process.communicate(f"{RETURN}?code=x&state=y\n", timeout=TIMEOUT_SECONDS)
            assert process.returncode != 0
            assert "This is not the answer" in printed


def test_the_module_of_a_single_page_application_works_in_its_page(page: Page, chromium: Browser) -> None:
    with LoopbackReceiver().running() as receiver:
        made = make(page, "spa", redirect_uri=f"{receiver.url}/")
        module = Answer(body=made.programs["code-mjs"].encode(), headers={"Content-Type": "text/javascript"})
        shell = Answer(
            body=b'<!doctype html><body><script type="module" src="sign-in.js"></script>',
            headers={"Content-Type": "text/html"},
        )
        receiver.respond_with = lambda request: module if request.path == "/sign-in.js" else shell
        visitor = chromium.new_context().new_page()
        visitor.goto(receiver.url)
        visitor.fill("[name=login]", "demo")
        visitor.fill("[name=password]", "demo")
        visitor.keyboard.press("Enter")
        visitor.wait_for_url(f"{receiver.url}/*")
        expect(visitor.locator("body")).to_contain_text("$metadata")
        visitor.context.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_programs_connect_a_device(page: Page, tmp_path: Path, ending: str) -> None:
    made = make(page, "device")
    with running(made, f"device-{ending}", tmp_path) as process:
        page.goto(printed_address(process))
        page.click("button")
        page.click("button[value=allow]")
        expect(page.locator("h1")).to_contain_text("is connected")
        printed = output_of(process)
        assert ("access_token" if ending == "sh" else "$metadata") in printed, printed


def test_both_halves_of_a_dual_application_have_programs(page: Page, tmp_path: Path) -> None:
    made = make(page, "dual")
    with running(made, "service-py", tmp_path) as process:
        assert "$metadata" in output_of(process)
    with running(made, "code-py", tmp_path) as process:
        assert "$metadata" in output_of(process, f"{sign_in(printed_address(process), 'demo')}\n")


#: Kind → what its programs in C# name.
C_SHARP = {
    "service": ("FormUrlEncodedContent", '["grant_type"] = "client_credentials"', '("CLIENT_SECRET")'),
    "web": ("AddOpenIdConnect", 'options.CallbackPath = "/signin"', '("CLIENT_SECRET")'),
    "spa": ("AddOidcAuthentication", f'RedirectUri = "{RETURN}"', "DefaultScopes"),
    "device": ("device_code", "authorization_pending", "slow_down"),
}


@pytest.mark.parametrize("kind", list(C_SHARP))
def test_programs_in_c_sharp_name_the_application(page: Page, live_platform: LivePlatform, kind: str) -> None:
    made = make(page, kind)
    program = next(text for key, text in made.programs.items() if key.endswith("-cs"))
    for text in (f'"{made.uri}"', live_platform.base_url, *C_SHARP[kind]):
        assert text in program
    assert syntax_errors(program) == []
    assert made.secret == "" or made.secret not in "".join(made.programs.values())


def test_the_secret_and_programs_are_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    made = make(page, "service")
    copied: Callable[[], str] = lambda: str(page.evaluate("navigator.clipboard.readText()"))  # noqa: E731
    page.click("button.copy >> nth=0")
    expect(page.locator("button.copy").first).to_have_text("Copied")
    assert copied() == made.secret
    page.locator("#service-sh + button").click()
    expect(page.locator("#service-sh + button")).to_have_text("Copied")
    assert copied() == made.programs["service-sh"]


def test_without_scripts_the_token_is_shown_in_a_new_window(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url, java_script_enabled=False) as page:
        page.goto("/admin/identity/trustedapplication/add/?kind=service")
        page.fill("[name=name]", "No scripts")
        page.fill("[name=application_uri]", f"no-scripts-{secrets.token_hex(4)}")
        with page.expect_navigation():
            page.click("[name=_save] >> nth=0")
        with page.context.expect_page() as opened:
            page.click("input[type=submit]")
        expect(opened.value.locator("#token pre")).to_contain_text('"scope"')


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_steps_are_accessible_and_fit(page: Page, colours: str) -> None:
    page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
    for viewport in (WIDE, PHONE):
        page.set_viewport_size(viewport)
        page.goto("/admin/identity/trustedapplication/add/")
        found = violations(page)
        page.click("a[href='?kind=dual']")
        found += violations(page)
        narrow = fits(page)
        page.fill("[name=name]", "Accessible")
        page.fill("[name=application_uri]", f"accessible-{secrets.token_hex(4)}")
        page.fill("[name=impersonate_login_url]", RETURN)
        page.fill("[name=impersonate_logout_url]", RETURN)
        with page.expect_navigation():
            page.click("[name=_save] >> nth=0")
        expect(page.locator("code.secret")).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found += violations(page)
        assert (found, narrow, fits(page)) == ([], True, True)
