"""The pages of scripts in Chromium, under their own security policy: wide and narrow, light and dark (spec 04, 4.4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

TEXT = """// Prices with tax, by size.
const rates = { S: 0.05, M: 0.1, L: 0.2 };

function withTax(net, rate) {
  return Math.round(net * (1 + rate) * 100) / 100; // cents
}

parameters.gross = withTax(price, rates[size]);
console.log(`gross of ${price}:`, parameters.gross);
if (note === 'fail')
  missing.call();
return { size, gross: parameters.gross, at: [1, 2, null] };
"""
SCHEMA = """{
  "price": {"type": "number", "required": true, "description": "Before tax"},
  "size": {"type": "string", "enum": ["S", "M", "L"], "default": "M"},
  "note": {"type": "string", "direction": "InputOutput"},
  "lines": {"type": "array", "description": "Anything else, as JSON"},
  "gross": {"type": "number", "direction": "Output"}
}"""
_CAST = """
from domain.dataset.dataset import Dataset
from identity.context import CallContext
ds = Dataset(CallContext(user=None, client_initiated=False))
ds.create("Systems.Core.Scripts", {{"Code": "PRICES", "Name": {{"EN": "Prices with tax"}}, "Language": "JavaScript",
    "IsActive": True, "ScriptText": {text!r}, "ParameterSchema": {schema!r}}})
ds.commit()
"""


@pytest.fixture(scope="module")
def platform(live_platform: LivePlatform) -> LivePlatform:
    """The instance with a script."""
    code = _CAST.format(text=TEXT, schema=SCHEMA)
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", code]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True)
    return live_platform


@contextmanager
def script_page(chromium: Browser, base_url: str, **options: object) -> Iterator[Page]:
    """An administrator at the script."""
    with administrators_page(chromium, base_url, **options) as page:
        page.goto("/admin/domain/script/?q=PRICES")
        page.goto(str(page.locator("#result_list tbody th a").first.get_attribute("href")))
        yield page


def wait_for_aligned_numbers(page: Page, count: int) -> None:
    """Every line of the script has its number beside it, at most a pixel off. The editor measures what is in view."""
    page.locator(".code-editor").first.scroll_into_view_if_needed()
    page.wait_for_function(
        """(count) => {
          const root = document.querySelector('.code-editor[data-for=script_text]').shadowRoot;
          const top = (each) => each.getBoundingClientRect().top;
          const shown = [...root.querySelectorAll('.cm-lineNumbers .cm-gutterElement')]
            .filter((each) => each.style.visibility !== 'hidden');
          const lines = [...root.querySelectorAll('.cm-line')];
          return lines.length === count && lines.every((line, i) =>
            shown[i] && shown[i].textContent === String(i + 1) && Math.abs(top(line) - top(shown[i])) <= 1);
        }""",
        arg=count,
    )


@pytest.mark.parametrize(
    "options", [{}, {"viewport": PHONE, "has_touch": True, "is_mobile": True}], ids=["wide", "phone"]
)
def test_pages_fit_and_keep_to_the_policy(
    platform: LivePlatform, chromium: Browser, options: dict[str, object]
) -> None:
    with script_page(chromium, platform.base_url, **options) as page:
        expect(page.locator(".code-editor .cm-content")).to_have_count(2)
        # Highlighting: a keyword and a comment have colours of their own.
        colours = page.evaluate(
            "[...document.querySelector('.code-editor').shadowRoot.querySelectorAll('.cm-line span')]"
            ".map((each) => getComputedStyle(each).color)"
        )
        assert len(set(colours)) >= 4
        wait_for_aligned_numbers(page, len(TEXT.split("\n")))
        page.fill("[name='arg:price']", "80")
        page.select_option("[name='arg:size']", label="L")
        page.click("#script-run button")
        expect(page.locator("#script-result")).to_contain_text('"gross": 96')
        expect(page.locator("#script-result")).to_contain_text("gross of 80: 96")
        expect(page.locator("#script-runs tbody tr").first).to_contain_text("Succeeded")
        assert fits(page), page.evaluate(
            "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > screen.width)"
            ".map(e => e.tagName + '.' + e.className + '#' + e.id)"
        )
        page.goto("/admin/scripts/scriptrun/?name=PRICES")
        assert page.locator(".run-outcome.succeeded").count() >= 1
        page.goto(str(page.locator("#result_list tbody th a").first.get_attribute("href")))
        assert fits(page), "wider than the screen"


def test_errors_are_shown_where_they_are(platform: LivePlatform, chromium: Browser) -> None:
    with script_page(chromium, platform.base_url) as page:
        editor = page.locator(".code-editor[data-for=script_text]")
        # At run time: the place is marked, and a click on it leads there.
        page.fill("[name='arg:price']", "1")
        page.fill("[name='arg:note']", "fail")
        page.click("#script-run button")
        expect(page.locator("#script-result [data-line='11']")).to_be_visible()
        expect(editor.locator(".cm-lint-marker-error")).to_have_count(1)
        page.click("#script-result [data-line]")
        expect(editor.locator(".cm-activeLine")).to_have_text("  missing.call();")
        # While one writes: by keyboard, and gone when it is mended.
        page.keyboard.press("Control+End")
        page.keyboard.type("let = = 1;")
        expect(editor.locator(".cm-lintRange-error")).to_have_count(1)
        # Saving is refused, and the text is still there.
        page.click("[name=_continue] >> nth=0")
        expect(page.locator(".field-script_text .errorlist")).to_contain_text("line 13")
        expect(editor.locator(".cm-lintRange-error")).to_have_count(1)
        # Out of the editor by keyboard alone.
        editor.locator(".cm-content").focus()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className !== 'code-editor'") or page.evaluate(
            "document.activeElement.dataset.for !== 'script_text'"
        )


def test_without_scripts_there_are_text_areas_and_a_page_of_the_run(platform: LivePlatform, chromium: Browser) -> None:
    with script_page(chromium, platform.base_url, java_script_enabled=False) as page:
        assert page.locator("textarea[name=script_text]").is_visible()
        page.fill("[name='arg:price']", "50")
        page.click("#script-run button")
        page.wait_for_url("**/run/")
        assert '"gross": 55' in page.inner_text("#script-result")
