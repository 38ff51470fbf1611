"""A new trusted application in steps: its kind, the settings of the kind, its secret and code to start with."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.admin.application_kinds import KINDS
from identity.models import RoleUser, TrustedApplication, User
from tests.domain.security.conftest import give_role, person
from tests.identity.flows import token_request
from tests.support.api import Api

pytestmark = pytest.mark.once

ADD = reverse("admin:identity_trustedapplication_add")
RETURN, BYE = "https://shop.example/signin", "https://shop.example/bye"
NAMES = {"name": "Shop", "application_uri": "shop"}
RETURNS = {"impersonate_login_url": RETURN, "impersonate_logout_url": BYE}
#: Kind → what is entered.
ENTERED: dict[str, dict[str, Any]] = {
    "web": {**NAMES, **RETURNS, "scope": ["openid", "read", "offline_access"]},
    "spa": {**NAMES, **RETURNS, "scope": ["openid", "read"], "impersonate_as_community_user_allowed": "on"},
    "service": {**NAMES, "scope": ["read", "update"]},
    "dual": {**NAMES, **RETURNS, "scope": ["openid", "read"]},
    "device": {**NAMES, "scope": ["openid", "read"]},
    "external": {**NAMES, **RETURNS, "scope": ["openid", "email"]},
}
#: Kind → (client type, internal users, external users, device flow, service)
SETTINGS = {
    "web": ("Confidential", True, False, False, False),
    "spa": ("Public", True, True, False, False),
    "service": ("Confidential", False, False, False, True),
    "dual": ("Confidential", True, False, False, True),
    "device": ("Public", True, False, True, False),
    "external": ("Confidential", False, True, False, False),
}


@pytest.fixture
def admin(api: Api) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="admin"))
    return client


def added(client: Client, kind: str, **changes: Any) -> Any:
    return client.post(f"{ADD}?kind={kind}", {**ENTERED[kind], **changes}, follow=True)


def page_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return unescape(answer.content.decode())


def secret_in(page: str) -> str:
    found = re.search(r'<code class="secret">([^<]+)</code>', page)
    assert found, page
    return found[1]


def test_first_the_kind_is_asked_with_a_sentence_for_each(admin: Client) -> None:
    page = page_of(admin.get(ADD))
    assert set(KINDS) == set(ENTERED) == set(SETTINGS)
    for kind in KINDS.values():
        assert f'href="?kind={kind.name}"' in page
        assert str(kind.meaning) in page
    assert 'name="application_uri"' not in page
    assert 'name="access_tokens"' in page_of(admin.get(f"{ADD}?kind=all"))
    assert "?kind=web" in page_of(admin.get(f"{ADD}?kind=nonsense"))


@pytest.mark.parametrize("kind", list(ENTERED))
def test_the_form_of_a_kind_asks_only_for_what_it_needs(admin: Client, kind: str) -> None:
    form = admin.get(f"{ADD}?kind={kind}").context["adminform"].form
    assert tuple(form.fields) == KINDS[kind].fields
    assert 'value="read" checked' in re.sub(r'(id|class)="[^"]*" ?', "", str(form["scope"])) or kind == "external"


@pytest.mark.parametrize("kind", list(ENTERED))
def test_the_kind_decides_the_rest(admin: Client, kind: str) -> None:
    page = page_of(added(admin, kind))
    application = TrustedApplication.objects.get(application_uri="shop")
    assert (
        application.client_type,
        application.impersonate_as_internal_user_allowed,
        application.impersonate_as_community_user_allowed,
        application.device_flow_allowed,
        application.system_user_allowed,
    ) == SETTINGS[kind]
    assert application.is_enabled
    assert set(application.scopes) == set(ENTERED[kind]["scope"])
    assert "curl" in page
    assert ('class="secret"' in page) == (not application.is_public)


def test_the_secret_is_shown_once_and_works(admin: Client) -> None:
    answer = added(admin, "service")
    page, secret = page_of(answer), secret_in(page_of(answer))
    assert "no-store" in answer.headers["Cache-Control"]
    form = {"grant_type": "client_credentials", "client_id": "shop", "client_secret": secret}
    assert token_request(Client(), **form).status_code == 200
    # The programs take it from the environment: they are shown again.
    application = TrustedApplication.objects.get(application_uri="shop")
    start = reverse("admin:identity_trustedapplication_start", args=[application.pk])
    again = page_of(admin.get(start))
    assert secret not in again
    assert re.findall(r"(?s)<pre.*?</pre>", page) == re.findall(r"(?s)<pre.*?</pre>", again) != []
    change = reverse("admin:identity_trustedapplication_change", args=[application.pk])
    assert secret not in (shown := page_of(admin.get(change)))
    assert start in shown


def test_a_service_without_a_system_user_gets_one_without_rights(admin: Client) -> None:
    page = page_of(added(admin, "service"))
    user = TrustedApplication.objects.get(application_uri="shop").system_user
    assert user is not None
    assert (user.user_type, user.is_admin, RoleUser.objects.filter(user=user).count()) == (
        "SystemUserNoLogin",
        False,
        0,
    )
    assert reverse("admin:identity_user_change", args=[user.pk]) in page
    chosen = str(User.objects.get(login="service").pk)
    added(admin, "service", application_uri="till", system_user=chosen)
    assert str(TrustedApplication.objects.get(application_uri="till").system_user_id) == chosen


@pytest.mark.parametrize(
    "kind, changes, field",
    [
        ("web", {"application_uri": "WebDemoClient"}, "application_uri"),
        ("web", {"name": ""}, "name"),
        ("web", {"impersonate_login_url": ""}, "impersonate_login_url"),
        ("spa", {"impersonate_login_url": "localhost:5000/cb"}, "impersonate_login_url"),
        ("dual", {"impersonate_logout_url": ""}, "impersonate_logout_url"),
        ("service", {"application_uri": ""}, "application_uri"),
    ],
)
def test_problems_are_shown_at_their_fields(admin: Client, kind: str, changes: dict[str, str], field: str) -> None:
    users = User.objects.count()
    answer = admin.post(f"{ADD}?kind={kind}", {**ENTERED[kind], **changes})
    assert list(answer.context["adminform"].form.errors) == [field]
    assert (TrustedApplication.objects.filter(name="Shop").exists(), User.objects.count()) == (False, users)


def test_a_client_id_that_is_taken_is_called_as_the_page_calls_it(admin: Client) -> None:
    answer = admin.post(f"{ADD}?kind=web", {**ENTERED["web"], "application_uri": "WebDemoClient"})
    message = "Trusted application with this Client id already exists."
    assert answer.context["adminform"].form.errors == {"application_uri": [message]}


def test_a_scope_that_the_kind_does_not_offer_is_not_known(admin: Client) -> None:
    """The checkboxes only propose; the checks of applications decide."""
    answer = admin.post(f"{ADD}?kind=service", {**ENTERED["service"], "scope": ["everything"]})
    assert "scope" in answer.context["adminform"].form.errors


class TestATokenNow:
    def ask(self, client: Client, application: TrustedApplication, secret: str) -> str:
        address = reverse("admin:identity_trustedapplication_token", args=[application.pk])
        return page_of(client.post(address, {"secret": secret}))

    @pytest.mark.parametrize("kind", ["service", "dual"])
    def test_its_claims_are_shown(self, admin: Client, kind: str) -> None:
        secret = secret_in(page_of(added(admin, kind)))
        page = self.ask(admin, TrustedApplication.objects.get(application_uri="shop"), secret)
        found = re.search(r'(?s)<div id="token".*?<pre[^>]*>(.*?)</pre>', page)
        assert found
        claims = json.loads(found[1])
        assert claims["scope"] == [scope for scope in ENTERED[kind]["scope"] if scope != "openid"]
        assert claims["client_id"] == "shop"
        assert secret not in page

    def test_an_error_is_shown_as_the_endpoint_says_it(self, admin: Client) -> None:
        secret = secret_in(page_of(added(admin, "service")))
        application = TrustedApplication.objects.get(application_uri="shop")
        assert "invalid_client" in self.ask(admin, application, "wrong")
        TrustedApplication.objects.update(is_enabled=False)
        assert "The application is disabled." in self.ask(admin, application, secret)

    def test_wrong_secrets_are_limited_there_too(self, admin: Client) -> None:
        added(admin, "service")
        application = TrustedApplication.objects.get(application_uri="shop")
        answers = [self.ask(admin, application, "wrong") for _ in range(40)]
        assert "slow_down" in answers[-1]

    def test_only_services_have_the_button(self, admin: Client) -> None:
        page = page_of(added(admin, "web"))
        application = TrustedApplication.objects.get(application_uri="shop")
        address = reverse("admin:identity_trustedapplication_token", args=[application.pk])
        assert address not in page
        assert admin.post(address, {"secret": "x"}).status_code == 403
        assert admin.get(address).status_code == 403


def test_keys_of_its_own_have_no_examples(admin: Client) -> None:
    added(admin, "web")
    TrustedApplication.objects.filter(application_uri="shop").update(dpop_required=True)
    application = TrustedApplication.objects.get(application_uri="shop")
    page = page_of(admin.get(reverse("admin:identity_trustedapplication_start", args=[application.pk])))
    assert "use a library for OpenID Connect" in page


def test_who_may_not_add_applications_sees_none_of_it(api: Api) -> None:
    clerk = person("clerk")
    give_role(clerk, {"Systems.Security.TrustedApplications": "crud", "General.*": "r"})
    client = Client()
    client.force_login(clerk)
    application = TrustedApplication.objects.get(application_uri="ServiceDemoClient")
    assert client.get(ADD).status_code == 403
    assert client.post(f"{ADD}?kind=service", ENTERED["service"]).status_code == 403
    for name in ("start", "token"):
        address = reverse(f"admin:identity_trustedapplication_{name}", args=[application.pk])
        assert {client.get(address).status_code, client.post(address).status_code} <= {403, 404}
