"""oidc-provider (npm), and a second instance of this platform, as upstream providers

A person signs in there in Chromium and comes back; the provider was configured on the admin's page.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.compatibility.relying_parties import LineProgram, sign_in
from tests.support.instances import instance_environment
from tests.support.platform import ROOT, LivePlatform, start_platform
from tests.support.processes import database_of

pytestmark = [pytest.mark.process, pytest.mark.browser]

SECRET = "upstream secret of some length"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """An instance that may ask providers on loopback; by a name of its own, since cookies ignore ports."""
    with start_platform(settings={"EGRESS_ALLOW": "127.0.0.0/8"}) as platform:
        yield platform.base_url.replace("127.0.0.1", "localhost")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    context.set_default_timeout(30_000)
    # The pages of oidc-provider would wait for a font of the internet.
    context.route("https://**", lambda route: route.abort())
    yield context.new_page()
    context.close()


def configure(page: Page, site: str, name: str, issuer: str, client_id: str, secret: str, login: str) -> str:
    """Fill the admin's page in; the redirect URI that it shows. `login`: the claim with the login."""
    page.goto(f"{site}/admin/identity/identityprovider/add/")
    sign_in(page, "admin")
    page.fill("[name=name]", name)
    page.fill("[name=code]", name.lower())
    page.fill("[name=issuer]", issuer)
    page.fill("[name=client_id]", client_id)
    page.fill("[name=client_secret]", secret)
    page.fill("[name=login_claim]", login)
    page.select_option("[name=new_users]", "ExternalCommunityUser")
    page.click("[name=_continue]")
    expect(page.locator(".messagelist")).to_contain_text(f"{name} answers.")
    redirect_uri = page.locator(".field-redirect_uri code").inner_text()
    page.goto(f"{site}/id/account/logout")
    page.click("button")
    return redirect_uri


def test_oidc_provider(page: Page, site: str) -> None:
    address = f"{site}/id/federation/independent"
    program = LineProgram(
        "oidc_provider", "provider.mjs", redirectUri=f"{address}/callback", logoutUri=f"{address}/signed-out"
    )
    try:
        issuer = program.says()["issuer"]
        assert (
            configure(page, site, "Independent", issuer, "platform", SECRET, "preferred_username")
            == f"{address}/callback"
        )
        page.goto(f"{site}/id/account/login")
        page.get_by_text("Sign in with Independent").click()
        page.wait_for_url(f"{issuer}/**")
        page.fill("[name=login]", "carla")
        page.fill("[name=password]", "any")
        page.click("button")
        page.get_by_text("Continue").click()
        page.wait_for_url(f"{site}/profile/")
        expect(page.locator("dl").first).to_contain_text("carla@upstream.example")
        page.goto(f"{site}/id/account/logout")
        page.click("button")
        page.wait_for_url(f"{issuer}/**")
        page.get_by_text("Yes, sign me out").click()
        page.wait_for_url(f"{address}/signed-out**")
    finally:
        program.process.terminate()


def test_a_second_instance_of_this_platform(page: Page, site: str, live_platform: LivePlatform) -> None:
    issuer, address = f"{live_platform.base_url}/id", f"{site}/id/federation/sister"
    command = [sys.executable, "manage.py", "register_app", "Sister", "--json", "--scope", "openid profile email"]
    command += ["--login-url", f"{address}/callback", "--logout-url", f"{address}/signed-out", "--external"]
    environment = instance_environment(live_platform.data_dir, 0, **database_of(live_platform))
    made = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    configure(page, site, "Sister", issuer, "Sister", json.loads(made.stdout)["client_secret"], "email")
    page.goto(f"{site}/id/account/login")
    page.get_by_text("Sign in with Sister").click()
    page.wait_for_url(f"{issuer}/**")
    sign_in(page, "customer")
    page.wait_for_url(f"{site}/profile/")
    expect(page.locator("dl").first).to_contain_text("customer@example.com")
