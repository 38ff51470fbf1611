"""Spec 09, 9.5: every page in a real browser, wide and on a phone, light and dark, under its policy, for everybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.pages.cast import Cast, everything_shown
from tests.pages.states import State, states
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, administrators_page, fits, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]


@pytest.fixture(scope="module")
def cast(live_platform: LivePlatform) -> Iterator[Cast]:
    with everything_shown(live_platform) as shown:
        yield shown


def test_every_page_is_accessible_fits_and_keeps_to_the_policy(chromium: Browser, cast: Cast) -> None:
    """What the console says and requests that leave the instance are looked at when the page closes."""
    found: dict[str, list[str]] = {}
    base_url = cast.platform.base_url
    still = {"reduced_motion": "reduce"}  # or colours would be looked at while they change
    with (
        watched_page(chromium, base_url, **still) as stranger,
        administrators_page(chromium, base_url, **still) as administrator,
    ):
        for state in states(cast):
            found[state.name] = _problems(stranger if state.public else administrator, state)
    assert {name: problems for name, problems in found.items() if problems} == {}


def _problems(page: Page, state: State) -> list[str]:
    """Of one page: wide and light first; of a narrow dark one only colours and widths can differ."""
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    # A new fragment alone would not load the page again.
    page.goto("about:blank")
    answer = page.goto(state.path)
    assert answer is not None
    if answer.status != state.status:
        return [f"answered {answer.status}"]
    state.prepare(page)
    # What an answer will replace is paler meanwhile.
    expect(page.locator(".htmx-request")).to_have_count(0)
    problems = violations(page) + ([] if fits(page) else ["wider than the window"])
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    # Scripts hear of it with the next frame.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    problems += [f"dark: {problem}" for problem in violations(page, only=("color-contrast",))]
    if page.evaluate("getComputedStyle(document.body).backgroundColor") == light:
        problems.append("no dark colours")
    return problems if fits(page) else [*problems, "wider than a phone"]
