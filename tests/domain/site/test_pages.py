"""The pages under /api/ without a browser: what they contain, and how they get a token (spec 09, 9.5)."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.test.utils import override_script_prefix
from django.utils import translation

from domain.api_site.texts import page_texts
from domain.api_site.views import SITE
from foundation import cache_versions
from identity.models import AccessToken, Session, TrustedApplication, User
from platform_site.environment import BASE_DIR
from tests.support.api import Api

ORDERS = "Crm_Sales_SalesOrders"
PAGES = ["/api/", "/api/query", "/api/builder", "/api/domain/import", "/api/model", "/api/explorer"]
_STATIC = BASE_DIR / "domain/static/domain"


@pytest.fixture(autouse=True)
def changes_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's database transaction never commits, so nothing tells this process that cache versions have moved."""
    monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 0.0)


@pytest.fixture
def member(db: None) -> User:
    """An internal user without rights to data."""
    return User.objects.create_user(login="member", password="member", name={"EN": "Member"})


@pytest.fixture
def browser(member: User) -> Client:
    """The browser that the member is signed in with; CSRF is checked as in production."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(member)
    return client


def _session(browser: Client, method: str = "POST") -> Any:
    """The answer of /api/session, with the proof that the page carries."""
    page = browser.get("/api/query").content.decode()
    proof = re.search(r'name="csrf-token" content="([^"]+)"', page)
    assert proof
    return browser.generic(method, "/api/session", headers={"X-CSRFToken": proof[1]})


@pytest.mark.parametrize("path", PAGES)
def test_pages_need_no_foreign_asset_and_no_inline_code(db: None, client: Client, path: str) -> None:
    answer: Any = client.get(path)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    # The service root and the addresses of the instance itself are on the test server's own host.
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert " style=" not in page
    assert "<style" not in page
    assert all("src=" in tag or 'type="application/json"' in tag for tag in re.findall(r"<script[^>]*>", page))
    assert all(f'href="{other}"' in page for other in PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_pages_work_behind_a_path_prefix(db: None, client: Client, path: str) -> None:
    # The test client leaves to its caller what the environment of a WSGI server sets.
    with override_script_prefix("/erp/"):
        page = client.get(path, SCRIPT_NAME="/erp").content.decode()
    addresses = [*re.findall(r'href="(/[^"]*)"', page), *re.findall(r'": "(/[^"]*)"', page)]
    assert len(addresses) >= 15
    assert [url for url in addresses if not url.startswith(("/erp/", settings.STATIC_URL))] == []
    # Scripts know no address of their own.
    assert [path.name for path in _scripts() if re.search(r"""["'`]/(?:api|id|static)""", path.read_text())] == []


@override_settings(BASE_URL="https://erp.example.com", ALLOWED_HOSTS=["testserver"])
def test_the_public_root_is_the_configured_one(db: None, client: Client) -> None:
    page = client.get("/api/query").content.decode()
    data = json.loads(re.findall(r'id="site-data" type="application/json">(.*?)</script>', page)[0])
    assert data["publicRoot"] == "https://erp.example.com/api/domain/odata/"
    assert data["root"] == "/api/domain/odata/"


def test_the_explorer_offers_every_namespace_of_the_document(db: None, client: Client) -> None:
    page = client.get("/api/explorer").content.decode()
    offered = re.findall(r'href="#([^"]+)"', page.partition('id="namespaces"')[2])
    assert {"Crm.Sales", "General.Products", "Operations"} < set(offered)
    sets: list[str] = []
    for namespace in offered:
        sets += client.get("/api/openapi.json", {"namespace": namespace}).json()["paths"]
    assert sorted(sets) == sorted(client.get("/api/openapi.json").json()["paths"])


# --- the token ----------------------------------------------------------------------------------------------------


def test_who_is_signed_in_gets_a_token_of_the_sites_own_application(browser: Client) -> None:
    answer = _session(browser)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    token = answer.json()["accessToken"]
    # Issuing takes no licence slot; the first request does.
    assert Session.objects.count() == 0
    told: Any = Client().get("/api/domain/odata/GetVersion()", headers={"Authorization": f"Bearer {token}"})
    assert told.status_code == 200
    session = Session.objects.get()
    assert (session.application.application_uri, session.user.login) == (SITE.uri, "member")
    application = TrustedApplication.objects.get(application_uri=SITE.uri)
    # Nothing of it can be redirected anywhere, and administrators can save it as it is.
    assert application.login_urls == []
    application.clean()


def test_two_tokens_of_one_sign_in_share_a_slot(browser: Client) -> None:
    for _ in range(2):
        token = _session(browser).json()["accessToken"]
        assert _version(token) == 200
    assert Session.objects.count() == 1


def test_ending_the_session_frees_the_slot_and_revokes_the_tokens(browser: Client) -> None:
    token = _session(browser).json()["accessToken"]
    assert _version(token) == 200
    assert _session(browser, "DELETE").status_code == 204
    assert Session.objects.filter(closed=None).count() == 0
    assert AccessToken.objects.count() == 0
    assert _version(token) == 401
    # The browser is still signed in.
    assert _version(_session(browser).json()["accessToken"]) == 200


def test_signing_out_ends_the_session_too(browser: Client) -> None:
    token = _session(browser).json()["accessToken"]
    assert _version(token) == 200
    page = browser.get("/id/account/logout").content.decode()
    proof = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert proof
    browser.post("/id/account/logout", {"csrfmiddlewaretoken": proof[1]})
    assert Session.objects.filter(closed=None).count() == 0
    assert _version(token) == 401
    assert _session(browser).status_code == 401


def test_other_sites_cannot_get_a_token(browser: Client, member: User) -> None:
    assert browser.post("/api/session").status_code == 403
    assert browser.delete("/api/session").status_code == 403
    assert AccessToken.objects.count() == 0


def test_strangers_external_users_and_a_disabled_application_get_none(db: None, browser: Client) -> None:
    assert _session(Client(enforce_csrf_checks=True)).json()["error"]["type"] == "TokenMissing"
    external = User.objects.create_user(
        login="external", password="x", name={"EN": "X"}, user_type="ExternalCommunityUser"
    )
    outside = Client(enforce_csrf_checks=True)
    outside.force_login(external)
    refused = _session(outside)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "UserNotInternal")
    assert _session(browser).status_code == 200
    TrustedApplication.objects.filter(application_uri=SITE.uri).update(is_enabled=False)
    refused = _session(browser)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ApplicationDisabled")


def test_an_administrator_may_narrow_the_scopes(browser: Client) -> None:
    _session(browser)
    TrustedApplication.objects.filter(application_uri=SITE.uri).update(scope="read")
    token = _session(browser).json()["accessToken"]
    refused: Any = Client().post(
        "/api/domain/odata/General_Products_Products",
        "{}",
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ScopeMissing")


def test_the_applications_flows_stay_closed(browser: Client) -> None:
    _session(browser)
    answer: Any = browser.get(
        "/id/connect/authorize",
        {"client_id": SITE.uri, "redirect_uri": "http://testserver/api/query", "response_type": "code"},
    )
    assert answer.status_code == 400
    assert "Location" not in answer
    refused = browser.post("/id/connect/token", {"grant_type": "client_credentials", "client_id": SITE.uri})
    assert refused.status_code in {400, 401}


def _version(token: str) -> int:
    answer: Any = Client().get("/api/domain/odata/GetVersion()", headers={"Authorization": f"Bearer {token}"})
    return int(answer.status_code)


# --- texts --------------------------------------------------------------------------------------------------------


def _scripts() -> list[Path]:
    found = sorted(_STATIC.glob("site_*.js"))
    assert len(found) == 11
    return found


def test_scripts_and_texts_know_the_same_keys() -> None:
    used = {key for path in _scripts() for key in re.findall(r'\bt\("([^"]+)"', path.read_text(encoding="utf-8"))}
    assert used == set(page_texts())


@pytest.mark.parametrize("language", ["bg", "de"])
def test_texts_are_translated_with_their_places(language: str) -> None:
    english = page_texts()
    with translation.override(language):
        translated = page_texts()
    for key, text in english.items():
        assert sorted(re.findall(r"\{\w+\}", translated[key])) == sorted(re.findall(r"\{\w+\}", text))
    same = [key for key in english if translated[key] == english[key]]
    assert len(same) < len(english) / 10


def test_what_the_pages_show_as_examples_works(api: Api) -> None:
    caller = Client()
    caller.force_login(User.objects.get(login="anna"))
    examples = re.findall(r'<a href="#GET%20([^"]+)"', caller.get("/api/query").content.decode())
    assert len(examples) == 4
    for example in examples:
        assert api.get(unquote(unescape(example))).status_code == 200, example
    shown = re.search(r"<pre[^>]*>(.*?)</pre>", caller.get("/api/domain/import").content.decode(), re.S)
    assert shown
    answer = api.post("Import", {"objects": json.loads(unescape(shown[1]))}).json()
    assert answer["@erpnet.result"] == "success", answer
