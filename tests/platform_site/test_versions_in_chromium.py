"""Versions of rules, scripts and webhooks in Chromium, under the pages' policy: differences and restoring."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

# Two versions of each kind.
_CAST = """
import json
from domain.dataset.dataset import Dataset
from identity.context import AllPermissions, CallContext
from identity.models import User
ADMIN = CallContext(user=User.objects.get(login="admin").as_caller("en"), permissions=AllPermissions())
dataset, name, currencies = Dataset(ADMIN), {"EN": "Kept"}, "General.Currencies.Currencies"
script = dataset.create("Systems.Core.Scripts", {"Code": "KEPT", "Name": name,
    "ScriptText": "const rate = 2;\\n" + "// unchanged\\n" * 20 + "return rate;"}, by_client=True)
hook = dataset.create("Systems.Config.WebHooks", {"Code": "KEPT", "Name": name, "RepositoryName": currencies,
    "URL": "https://hooks.example/", "Body": "first body"}, by_client=True)
rule = dataset.create("Systems.Bpm.UserBusinessRules", {"Code": "KEPT", "Name": name, "RepositoryName": currencies},
    by_client=True)
dataset.create("Systems.Bpm.UserBusinessRuleEvents", {"EventType": "COMMIT"}, parent=rule, by_client=True)
action = dataset.create("Systems.Bpm.UserBusinessRuleActions", {"ActionNo": 10, "ActionType": "FAIL",
    "Parameter1Type": "Constant", "Parameter1Value": "First message."}, parent=rule, by_client=True)
dataset.commit()
dataset.set(script, "ScriptText", script.script_text.replace("rate = 2", "rate = 3"))
dataset.set(hook, "Body", "second body")
dataset.set(action, "Parameter1Value", "Second message.")
dataset.commit()
print(json.dumps({"script": script.id, "webhook": hook.id, "userbusinessrule": rule.id}))
"""
#: kind → a line of the first and of the second version, and the field that restoring fills
KINDS = {
    "script": ("const rate = 2;", "const rate = 3;", "[name=script_text]"),
    "webhook": ("first body", "second body", "[name=body]"),
    "userbusinessrule": ("First message.", "Second message.", "[name=Actions-0-parameter_1_value]"),
}


@pytest.fixture(scope="module")
def ids(live_platform: LivePlatform) -> dict[str, str]:
    """The guids of one object of each kind."""
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", _CAST]
    done = subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True, capture_output=True, text=True)
    result: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return result


def editors(page: Page) -> list[str]:
    """The texts of the editors that show the differences."""
    return page.locator("[data-differences] .cm-content").all_inner_texts()


@pytest.mark.parametrize("kind", KINDS)
def test_versions_are_compared_and_restored(
    live_platform: LivePlatform, chromium: Browser, ids: dict[str, str], kind: str
) -> None:
    first, second, field = KINDS[kind]
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto(f"/admin/domain/{kind}/{ids[kind]}/change/")
        with page.expect_navigation():
            page.click("a[href$='/versions/']")
        expect(page.locator("[data-shown=side-by-side] .cm-content")).to_have_count(2)
        before, after = editors(page)
        assert first in before
        assert second in after
        expect(page.locator("[data-differences] .cm-changedText").first).to_be_visible()
        if kind == "script":
            expect(page.locator("[data-differences] .cm-collapsedLines").first).to_contain_text("unchanged lines")
            mark = "node => getComputedStyle(node, '::before').content"
            assert page.locator("[data-differences] .cm-collapsedLines").first.evaluate(mark) == '"…"'
        expect(page.locator("[data-as-text] pre")).to_be_hidden()
        page.click("[data-as-text] summary")
        expect(page.locator("[data-as-text] pre")).to_contain_text(second)

        with page.expect_navigation():
            page.click("button[name=version][value='1']")
        before, after = editors(page)
        assert second in before
        assert first in after
        with page.expect_navigation():
            page.click("[name=confirmed]")
        expect(page.locator(".messagelist, [role=status]").first).to_contain_text("Version 1 is restored.")
        expect(page.locator(field)).to_have_value(first if kind != "script" else page.input_value(field))
        assert first in page.input_value(field)
        page.goto(f"/admin/domain/{kind}/{ids[kind]}/versions/")
        expect(page.locator(".versions tbody tr")).to_have_count(3)


def test_differences_fit_on_a_phone(live_platform: LivePlatform, chromium: Browser, ids: dict[str, str]) -> None:
    options = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with administrators_page(chromium, live_platform.base_url, **options) as page:
        page.goto(f"/admin/domain/webhook/{ids['webhook']}/versions/?from=1&to=2")
        expect(page.locator("[data-shown=unified] .cm-content")).to_have_count(1)
        expect(page.locator("[data-differences] .cm-deletedChunk")).to_contain_text("first body")
        assert "second body" in editors(page)[0]
        assert fits(page)
        # Turned around there is room for both.
        page.set_viewport_size({"width": 1000, "height": 400})
        expect(page.locator("[data-shown=side-by-side] .cm-content")).to_have_count(2)


def test_without_scripts_the_differences_are_a_text(
    live_platform: LivePlatform, chromium: Browser, ids: dict[str, str]
) -> None:
    with administrators_page(chromium, live_platform.base_url, java_script_enabled=False) as page:
        page.goto(f"/admin/domain/script/{ids['script']}/versions/?from=1&to=2")
        expect(page.locator("[data-as-text] pre")).to_be_visible()
        assert "-  const rate = 2;" in page.inner_text("[data-as-text] pre")
        assert "+  const rate = 3;" in page.inner_text("[data-as-text] pre")
