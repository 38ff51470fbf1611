"""Name, logo, colour and icon of the instance (INSTANCE_NAME, INSTANCE_LOGO, INSTANCE_COLOUR)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings

from identity.models import TrustedApplication
from platform_site.appearance import colour_problem, contrast, on_dark_pages
from platform_site.environment import BASE_DIR
from tests.identity.conftest import demo, fresh_process  # noqa: F401
from tests.identity.flows import REDIRECT, WEB
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, administrators_page, fits, log_in, watched_page
from tests.support.instances import instance_environment
from tests.support.platform import LivePlatform, start_platform

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><rect width="90" height="30" fill="#0a6"/></svg>'
GREEN = "#0b6b3a"
LOGIN = "/id/account/login"
AUTHORIZE = {"client_id": WEB, "redirect_uri": REDIRECT, "response_type": "code", "scope": "openid read"}


@pytest.fixture
def logo(tmp_path: Path) -> Path:
    path = tmp_path / "logo.svg"
    path.write_bytes(SVG)
    return path


class TestColours:
    @pytest.mark.parametrize("one, other, ratio", [("#000000", "#ffffff", 21.0), ("#777777", "#ffffff", 4.48)])
    def test_contrast_is_that_of_wcag(self, one: str, other: str, ratio: float) -> None:
        assert round(contrast(one, other), 2) == round(contrast(other, one), 2) == ratio

    @pytest.mark.parametrize("colour", ["green", "#0b6", "0b6b3a", "#0b6b3a;}", "#0b6b3g"])
    def test_other_spellings_are_refused(self, colour: str) -> None:
        assert "must be a colour such as #1b5fc1" in str(colour_problem(colour))

    @pytest.mark.parametrize("colour", ["#ffcc00", "#7fb2ff", "#ffffff"])
    def test_light_ones_are_refused_with_their_contrast(self, colour: str) -> None:
        assert re.search(r"is too light: its contrast with the pages is \d\.\d", str(colour_problem(colour)))

    @pytest.mark.parametrize("colour", ["#1b5fc1", GREEN, "#000000", "#8a0000"])
    def test_dark_pages_have_a_lighter_one(self, colour: str) -> None:
        assert colour_problem(colour) is None
        assert contrast(on_dark_pages(colour), "#1b212a") > 4.5


class TestStart:
    def problem(self, tmp_path: Path, **settings: str) -> str:
        run = subprocess.run(
            [sys.executable, "manage.py", "check"],
            cwd=BASE_DIR,
            env=instance_environment(tmp_path / "data", 0, **settings),
            capture_output=True,
            text=True,
            check=False,
        )
        return "" if run.returncode == 0 else run.stderr

    @pytest.mark.parametrize(
        "settings, said",
        [
            ({"INSTANCE_COLOUR": "#ffff00"}, "too light"),
            ({"INSTANCE_LOGO": "/nowhere/logo.svg"}, "INSTANCE_LOGO cannot be read"),
            ({"INSTANCE_LOGO": "manage.py"}, "must be a file that ends in .svg"),
        ],
    )
    def test_a_wrong_value_stops_the_start(self, tmp_path: Path, settings: dict[str, str], said: str) -> None:
        assert said in self.problem(tmp_path, **settings)

    def test_a_logo_that_is_too_large_stops_it(self, tmp_path: Path) -> None:
        large = tmp_path / "large.png"
        large.write_bytes(bytes(512 * 1024 + 1))
        assert "may have 524288 bytes, not 524289" in self.problem(tmp_path, INSTANCE_LOGO=str(large))

    def test_right_values_start(self, tmp_path: Path, logo: Path) -> None:
        assert self.problem(tmp_path, INSTANCE_LOGO=str(logo), INSTANCE_COLOUR=GREEN) == ""


@pytest.mark.django_db
class TestAddresses:
    def test_without_settings_there_is_neither_logo_nor_colour(self, client: Client) -> None:
        assert client.get("/brand/logo").status_code == client.get("/brand/style.css").status_code == 404

    def test_the_logo_is_served_and_runs_nothing(self, client: Client, settings: Settings, logo: Path) -> None:
        settings.INSTANCE_LOGO = str(logo)
        answer = client.get("/brand/logo")
        assert (answer.content, answer.headers["Content-Type"]) == (SVG, "image/svg+xml")
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"

    def test_the_colour_is_a_style_sheet(self, client: Client, settings: Settings) -> None:
        settings.INSTANCE_COLOUR = GREEN
        answer = client.get("/brand/style.css")
        assert answer.headers["Content-Type"].startswith("text/css")
        assert f"--accent: {GREEN};" in answer.content.decode()

    def test_the_icon_is_the_logo_or_the_platforms(self, client: Client, settings: Settings, logo: Path) -> None:
        assert re.fullmatch(r"/static/platform_site/icon[.\w]*\.svg", client.get("/favicon.ico").headers["Location"])
        settings.INSTANCE_LOGO = str(logo)
        target = client.get("/favicon.ico").headers["Location"]
        assert client.get(target).content == SVG

    @pytest.mark.django_db
    @pytest.mark.parametrize("path", ["/", LOGIN, "/id/account/reset", "/nowhere", "/api/"])
    def test_every_page_has_name_and_icon(self, client: Client, settings: Settings, path: str) -> None:
        settings.INSTANCE_NAME = "Häberle & Söhne"
        page = client.get(path).content.decode()
        assert re.search(r'<link rel="icon" href="/static/platform_site/icon[.\w]*\.svg">', page)
        assert ("Häberle &amp; Söhne" in page) == (path != "/api/")


@pytest.mark.usefixtures("demo")
class TestSignIn:
    def heading(self, client: Client, **parameters: str) -> str:
        target = f"/id/connect/authorize?{urlencode({**AUTHORIZE, **parameters})}"
        page = client.get(f"{LOGIN}?next={quote(target)}").content.decode()
        found = re.search(r"<h1>(.*?)</h1>", page)
        assert found
        return found[1]

    def test_it_names_the_application_that_asks(self, client: Client) -> None:
        assert self.heading(client) == "Sign in to continue to Web demo client"
        answer = client.get("/id/connect/authorize", AUTHORIZE, follow=True)
        assert "Sign in to continue to Web demo client" in answer.content.decode()

    def test_it_still_does_after_a_wrong_password(self, client: Client) -> None:
        form = {"login": "demo", "password": "wrong", "next": f"/id/connect/authorize?{urlencode(AUTHORIZE)}"}
        assert "Sign in to continue to Web demo client" in client.post(LOGIN, form).content.decode()

    @pytest.mark.parametrize("changes", [{"client_id": "Nobody"}, {"redirect_uri": "https://evil.example/"}])
    def test_it_names_nobody_who_cannot_be_reached(self, client: Client, changes: dict[str, str]) -> None:
        assert self.heading(client, **changes) == "Sign in"

    def test_an_unchecked_name_is_not_shown(self, client: Client) -> None:
        TrustedApplication.objects.filter(application_uri=WEB).update(registration_source="dcr", name="Your Bank")
        assert self.heading(client) == "Sign in to continue to localhost:5080"


@pytest.fixture(scope="module")
def branded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlatform]:
    path = tmp_path_factory.mktemp("brand") / "logo.svg"
    path.write_bytes(SVG)
    settings = {"INSTANCE_NAME": "Green Works", "INSTANCE_LOGO": str(path), "INSTANCE_COLOUR": GREEN}
    with start_platform(settings=settings) as platform:
        yield platform


def looks_right(page: Page, colour: str) -> None:
    """The logo has been loaded, the name is there, and buttons or links have the colour."""
    logo = page.locator("img[src^='/brand/logo']:visible").first
    expect(logo).to_be_visible()
    assert logo.evaluate("image => image.naturalWidth") > 0
    expect(page.locator("text=Green Works").first).to_be_visible()
    used = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    assert used == colour


@pytest.mark.browser
@pytest.mark.process
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_show_them_in_both_schemes_and_sizes(branded: LivePlatform, chromium: Browser, scheme: str) -> None:
    colour = GREEN if scheme == "light" else on_dark_pages(GREEN)
    options = {"color_scheme": scheme, "reduced_motion": "reduce"}
    consent = f"/id/connect/authorize?{urlencode({**AUTHORIZE, 'prompt': 'consent'})}"
    public = [LOGIN, f"{LOGIN}?{urlencode({'next': consent})}", "/id/account/reset", "/"]
    signed_in = ["/profile/", consent, "/id/account/password", "/admin/", "/admin/domain/salesorder/"]
    with (
        watched_page(chromium, branded.base_url, **options) as stranger,
        administrators_page(chromium, branded.base_url, **options) as administrator,
    ):
        for viewport in (WIDE, PHONE):
            for page, path in [*((stranger, path) for path in public), *((administrator, path) for path in signed_in)]:
                page.set_viewport_size(viewport)
                page.goto(path)
                if path.startswith("/admin/") and viewport == PHONE:
                    page.click("button[aria-label='Navigation']:visible")
                if path != "/":
                    looks_right(page, colour)
                assert violations(page) == [], path
                assert fits(page), path


@pytest.mark.browser
@pytest.mark.process
def test_a_browser_loads_the_icon(branded: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, branded.base_url) as page:
        page.goto("/api/")
        address = page.locator("link[rel=icon]").get_attribute("href")
        assert address is not None
        assert page.request.get(address).headers["content-type"] == "image/svg+xml"
        page.goto(LOGIN)
        log_in(page)
        expect(page.locator("h1")).to_have_text("Profile")
