"""Charts are drawn under the pages' policy, follow the colours and the window, and can be read without a mouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

#: Colour of a canvas's painted pixels → how many there are, without the mixed ones at edges.
_PAINTED = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height), counts = {};
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 255) {
      const colour = [...data.slice(at, at + 3)].join();
      counts[colour] = (counts[colour] ?? 0) + 1;
    }
  }
  return counts;
}"""
_BLUE = {"light": "27,95,193", "dark": "127,178,255"}


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    """The home page. At the end a violation of the policy, an error or a request to elsewhere fails the test."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        expect(opened.locator("#health-orders canvas")).to_be_visible()
        yield opened


def painted(canvas: Locator, colour: str) -> int:
    """Pixels of the colour."""
    return int(canvas.evaluate(_PAINTED).get(colour, 0))


def test_a_chart_is_drawn_in_the_colours_of_the_page(page: Page) -> None:
    assert "style-src 'self';" in page.goto("/admin/").headers["content-security-policy"]  # type: ignore[union-attr]
    canvas = page.locator("#health-orders canvas")
    expect(canvas).to_be_visible()
    assert painted(canvas, _BLUE["light"]) > 1000
    assert painted(canvas, _BLUE["dark"]) == 0
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html.dark")).to_be_attached()
    page.wait_for_function(f"canvas => ({_PAINTED})(canvas)['{_BLUE['dark']}'] > 1000", arg=canvas.element_handle())
    assert painted(canvas, _BLUE["light"]) == 0
    assert violations(page) == []


def test_a_chart_is_as_wide_as_the_window_lets_it(page: Page) -> None:
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        page.wait_for_function(
            """() => [...document.querySelectorAll('.chart-drawing')].every((drawing) =>
              Math.abs(drawing.querySelector('canvas').clientWidth - drawing.clientWidth) < 2)"""
        )


def test_the_mouse_reads_a_bar_and_opens_what_it_counts(page: Page) -> None:
    canvas = page.locator("#health-orders canvas")
    before = canvas.evaluate(_PAINTED)
    box = canvas.bounding_box()
    assert box is not None
    # The column of "New" is the first of six; the demo has such orders.
    at = {"x": 0.16 * box["width"], "y": 0.7 * box["height"]}
    canvas.hover(position=at)  # type: ignore[arg-type]
    page.wait_for_function(
        f"([canvas, before]) => JSON.stringify(({_PAINTED})(canvas)) !== before",
        arg=[canvas.element_handle(), page.evaluate("value => JSON.stringify(value)", before)],
    )
    with page.expect_navigation():
        canvas.click(position=at)  # type: ignore[arg-type]
    assert "state=New" in page.url
    expect(page.locator("#result_list tbody tr").first).to_be_visible()


def test_the_keyboard_reads_the_table(page: Page) -> None:
    summary = page.locator("#health-sales summary")
    summary.focus()
    page.keyboard.press("Enter")
    rows = page.locator("#health-sales tbody tr")
    expect(rows).to_have_count(12)
    expect(rows.first).to_be_visible()
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "/admin/domain/salesorder/" in page.url


def test_without_scripts_there_is_the_table_and_no_empty_box(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url, java_script_enabled=False) as page:
        expect(page.locator("#health-sales .chart-drawing")).to_be_hidden()
        page.click("#health-sales summary")
        expect(page.locator("#health-sales tbody tr").first).to_be_visible()
