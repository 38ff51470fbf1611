"""Chromium for tests of pages, and what a page must not do whatever it shows (spec 09, 9.5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, StorageState, ViewportSize, expect, sync_playwright

from tests.support.programs import requires_program
from tests.support.waiting import eventually

#: What a page does at once may take long while other tests have the processors.
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
#: The browser's own note of a 4xx or 5xx answer; not a fault of the page that asked.
_REFUSED = "Failed to load resource: the server responded with a status of"
#: What htmx says of a request that ended with its page: a search while its words were typed, for example.
_LEFT = ("htmx:sendAbort", "htmx:afterRequest")
#: Address of an instance → what the administrator's browser kept after signing in there.
_signed_in: dict[str, StorageState] = {}


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; without Chromium the test skips (in CI: fails)."""
    path = requires_program("chromium-headless-shell", "chromium", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def told_by(message: ConsoleMessage) -> list[str]:
    """What the console says; not that a test has used a field before the page gave one the focus."""
    return [] if message.text.startswith("Autofocus processing was blocked") else [message.text]


@contextmanager
def watched_page(chromium: Browser, base_url: str, **options: Any) -> Iterator[Page]:
    """A page in a context of its own. Fails at the end for what its console said (errors of scripts, a violated
    security policy), and for requests that left the instance.
    """
    context = chromium.new_context(base_url=base_url, **{"viewport": WIDE, **options})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.extend(told_by(message)))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    yield page
    context.close()
    assert not [text for text in complaints if not text.startswith((_REFUSED, *_LEFT))], complaints
    assert [url for url in outside if not url.startswith((f"{base_url}/", "data:", "blob:"))] == []


@contextmanager
def administrators_page(chromium: Browser, base_url: str, **options: Any) -> Iterator[Page]:
    """A watched page of the demo instance's administrator, at the admin's home.

    Signs in once for each instance: every password costs the server what it is to cost an attacker.
    """
    with watched_page(chromium, base_url, **{"storage_state": _signed_in.get(base_url), **options}) as page:
        page.goto("/admin/")
        if page.locator("[name=login]").count():
            log_in(page)
            _signed_in[base_url] = page.context.storage_state()
        yield page


def log_in(page: Page, login: str = "admin", password: str = "admin") -> None:
    """On the login page, by keyboard."""
    page.fill("[name=login]", login)
    page.fill("[name=password]", password)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen. On phones a page that is too wide widens innerWidth with it.

    Charts follow a new width a moment later.
    """
    expression = "document.documentElement.scrollWidth <= Math.min(window.innerWidth, screen.width)"
    return eventually(lambda: bool(page.evaluate(expression)), 15)
