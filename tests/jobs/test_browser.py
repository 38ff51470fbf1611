"""The pages of jobs in Chromium: make a job, run it, read its console; start a rule by hand (spec 10.4)."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]


def reload_until(page: Page, selector: str, text: str) -> None:
    """Reload until the worker has done its part; each look waits for the page."""
    for _ in range(60):
        if text in page.locator(selector).first.inner_text():
            return
        page.wait_for_timeout(500)
        page.reload()
    raise TimeoutError(text)


def test_a_job_is_made_run_and_its_console_read(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/job/add/")
        assert violations(page) == []
        types = page.locator("#id_job_type option").all_inner_texts()
        assert "RunPostponedEvents" not in types
        page.fill("#id_name", "Clean up")
        page.select_option("#id_job_type", "Prune")
        page.get_by_label("tokens", exact=True).check()
        page.select_option("#id_schedule", "Cron")
        page.fill("#id_cron_expression", "0 25 * * *")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text("It cannot be read: Bad hour")
        expect(page.get_by_label("tokens", exact=True)).to_be_checked()
        page.fill("#id_cron_expression", "0 4 * * *")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text("Next due:")
        page.get_by_role("button", name="Run now").click()
        expect(page.locator("body")).to_contain_text("A worker runs the job now.")
        reload_until(page, ".script-runs tbody tr", "Succeeded")
        assert violations(page) == []
        page.click(".script-runs tbody a >> nth=0")
        expect(page.locator(".run-facts")).to_contain_text("Succeeded")
        expect(page.locator("pre", has_text="tokens: ").first).to_be_visible()
        assert violations(page) == []
        page.set_viewport_size(PHONE)
        assert fits(page)
        page.goto("/admin/jobs/jobrun/")
        expect(page.locator("#result_list tbody tr").first).to_contain_text("Clean up")
        assert violations(page) == []
        page.goto("/admin/domain/job/")
        assert violations(page) == []
        assert fits(page)


def test_each_type_has_its_own_settings(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/job/add/")
        page.fill("#id_name", "Close what is old")
        settings = page.locator(".job-settings")
        expect(settings.get_by_label("Managed script")).to_be_hidden()
        settings.get_by_label("Repository").select_option("Crm.Sales.SalesOrders")
        settings.get_by_label("New state").select_option("Closed")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text(
            "Filter of the documents, as $filter of the API: This field is req"
        )
        expect(settings.locator("[aria-invalid]")).to_have_id("id_job_configurations-DocumentChangeState-Filter")
        settings.get_by_label("Filter of the documents").fill("DocumentDate lt 2001-01-01")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("#id_name")).to_have_value("Close what is old")
        expect(settings.get_by_label("New state")).to_have_value("Closed")
        assert violations(page) == []

        page.select_option("#id_job_type", "RunScript")
        expect(settings.get_by_label("New state")).to_be_hidden()
        settings.get_by_label("Managed script").select_option("DEMO-ORDER-TOTAL")
        settings.get_by_label("Arguments").fill("{no")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text('Arguments must be like {"percent": 5}')
        settings.get_by_label("Arguments").fill('{"documentNo": "0000000001"}')
        page.click("[name=_continue] >> nth=0")
        expect(settings.get_by_label("Managed script")).to_have_value("DEMO-ORDER-TOTAL")
        expect(settings.get_by_label("Arguments")).to_have_value('{\n  "documentNo": "0000000001"\n}')
        assert violations(page) == []
        page.set_viewport_size(PHONE)
        assert fits(page)


_RULE = """
from domain.dataset.dataset import Dataset
from identity.context import system_context
ds = Dataset(system_context())
rule = ds.create("Systems.Bpm.UserBusinessRules", {"Code": "ASK", "Name": {"EN": "Ask the seller"}, "IsActive": True,
    "RepositoryName": "General.Currencies.Currencies", "UserStartable": True})
ds.create("Systems.Bpm.UserBusinessRuleActions", {"ActionNo": 10, "ActionType": "WARNING", "Parameter1Type":
    "Interpolate", "Parameter1Value": "Somebody asks about {CurrencySign}."}, parent=rule)
ds.commit()
"""


def test_a_rule_is_started_from_the_page_of_an_entity(live_platform: LivePlatform, chromium: Browser) -> None:
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", _RULE]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True)
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/currency/?q=USD")
        page.goto(str(page.locator("#result_list tbody th a").first.get_attribute("href")))
        page.get_by_role("button", name="Start: Ask the seller").click()
        expect(page.locator(".messagelist")).to_contain_text("Somebody asks about USD.")
        expect(page.locator(".messagelist")).to_contain_text("The rule Ask the seller has run.")
        assert violations(page) == []
        page.set_viewport_size(PHONE)
        assert fits(page)
