"""The webhook pages in Chromium, under their own security policy (spec 06, 6.3; how they look: tests.pages)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.chromium import administrators_page
from tests.support.platform import ROOT, LivePlatform
from tests.support.receiver import Answer, LoopbackReceiver

pytestmark = [pytest.mark.browser, pytest.mark.process]

# One delivery that arrives, one that is refused with a body, and a template that is signed.
_CAST = """
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
new_web_hook("{url}/orders/{{CurrencySign}}?source=erp", code="BROWSER", RetryLogic="Retry",
    Headers="Authorization: Bearer s3cret\\nX-Source: platform",
    Body='{{"name": "{{Name}}", "sign": "{{CurrencySign}}"}}')
for sign in ("QQA", "QQB", "QQC"):
    new_delivery("BROWSER", new_currency(sign, "Currency " + sign))
from tests.webhooks.cast import deliver_due
deliver_due()
"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[LoopbackReceiver]:
    with LoopbackReceiver().running() as running:
        running.answer(Answer(200, b'{"ok": true}', {"Content-Type": "application/json"}))
        running.default = Answer(410, b"no longer wanted", {"Content-Type": "text/plain", "Set-Cookie": "sid=c00kie"})
        yield running


@pytest.fixture(scope="module")
def platform(live_platform: LivePlatform, receiver: LoopbackReceiver) -> LivePlatform:
    """The instance with a template that has sent something."""
    code = _CAST.replace("{{", "{").replace("}}", "}").replace("{url}", receiver.url)
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", code]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True)
    receiver.wait_for(3, 30)
    return live_platform


def test_a_delivery_is_redelivered_and_a_secret_rotated_by_click(
    platform: LivePlatform, chromium: Browser, receiver: LoopbackReceiver
) -> None:
    with administrators_page(chromium, platform.base_url) as page:
        page.goto("/admin/webhooks/webhookdelivery/?state__exact=Failed")
        page.click(".field-shown_state a >> nth=0")
        sent = len(receiver.requests)
        page.click("text=Redeliver")
        assert "sent again" in page.inner_text(".messagelist")
        receiver.wait_for(sent + 1, 30)
        page.click("dl.webhook-facts a >> nth=0")
        address = page.url
        page.click("text=Sign deliveries")
        secret = page.inner_text(".webhook-secret").strip()
        assert secret.startswith("whsec_")
        page.goto(address)
        assert secret not in page.content()
        assert "No rule sends it yet" in page.inner_text("main, #main")
        page.fill("#preview-entity", "QQB")
        page.click("#show-preview")
        expect(page.locator(".webhook-preview")).to_contain_text(f"POST {receiver.url}/orders/QQB?source=erp")
        page.goto(address)
        page.click("text=Send test event")
        receiver.wait_for(sent + 2, 30)
        assert "v1," in receiver.requests[-1].headers["webhook-signature"]
        assert "s3cret" not in page.content()


def test_a_webhook_is_composed_with_its_rule_and_sends(
    platform: LivePlatform, chromium: Browser, receiver: LoopbackReceiver
) -> None:
    with administrators_page(chromium, platform.base_url) as page:
        page.goto("/admin/domain/webhook/add/")
        page.fill("[name=code]", "COMPOSED")
        page.fill("[name=name_en]", "Of a new currency")
        page.fill("[name=url]", f"{receiver.url}/composed/{{CurrencySign}}")
        page.fill("[name=repository_name]", "General.Currencies.Currencies")
        page.press("[name=repository_name]", "Tab")
        expect(page.locator("[name=rule-event_type] option[value=STATECHANGED]")).to_have_count(0)
        page.select_option("[name=rule-event_type]", "CLIENTCOMMITTED")
        expect(page.locator("#webhook-composer .rule-hint", has_text="CLIENTCOMMITTED")).to_be_visible()
        page.select_option("[name=rule-attribute_name]", "CurrencySign")
        page.select_option("[name=rule-comparison_type]", "Like")
        page.fill("[name=rule-value]", "QR*")
        # What is written and not saved yet is shown beside it.
        page.fill("[name=body]", '{{"name": "{Name}"}}')
        page.fill("#preview-entity", "QQA")
        page.click("#show-preview")
        expect(page.locator(".webhook-preview")).to_contain_text('{"name": "Currency QQA"}')
        with page.expect_navigation():
            page.click("[name=_continue]")
        page.click(".messagelist a:has-text('COMPOSED')")
        expect(page.locator("[name=Conditions-0-value]")).to_have_value("QR*")
        sent = len(receiver.requests)
        for sign in ("QSA", "QRA"):
            page.goto("/admin/domain/currency/add/")
            page.fill("[name=currency_sign]", sign)
            page.fill("[name=name]", f"Currency {sign}")
            with page.expect_navigation():
                page.click("[name=_save]")
        received = receiver.wait_for(sent + 1, 30)[-1]
        assert (received.path, received.json()) == ("/composed/QRA", {"name": "Currency QRA"})
