"""Admin pages of identity's own tables."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.models import (
    AccessToken,
    Licence,
    ReferenceToken,
    Role,
    RolePermission,
    RowPolicy,
    Session,
    SigningKey,
    TrustedApplication,
    User,
)
from identity.sessions import CLOSED_RETENTION
from identity.tasks import sweep
from identity.usage import DAYS, HOURS, usage_by_day, usage_by_hour
from tests.identity.flows import service_token

PAGES = [
    "accesstoken", "licence", "ratelimits", "referencetoken", "rolepermission", "rowpolicy", "session", "signingkey",
]  # fmt: skip


@pytest.fixture
def admin(demo: None) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="admin"))
    return client


@pytest.mark.parametrize("name", PAGES)
def test_each_list_opens(admin: Client, name: str) -> None:
    service_token(admin)
    assert admin.get(reverse(f"admin:identity_{name}_changelist")).status_code == 200


@pytest.mark.parametrize("login, status", [("demo", 403), ("customer", 302)])
@pytest.mark.parametrize("name", PAGES)
def test_others_stay_outside(demo: None, login: str, status: int, name: str) -> None:
    """Whoever has roles enters the admin, and none of these pages."""
    client = Client()
    client.force_login(User.objects.get(login=login))
    for page in ("changelist", "add"):
        assert client.get(reverse(f"admin:identity_{name}_{page}")).status_code == status


def open_session(key: str = "k") -> Session:
    now = utc_now()
    return Session.objects.create(
        key=key,
        user=User.objects.get(login="demo"),
        application=TrustedApplication.objects.get(application_uri="WebDemoClient"),
        opened=now - timedelta(minutes=5),
        expires=now + timedelta(minutes=15),
    )


def test_sessions_are_closed_by_the_action(admin: Client) -> None:
    session = open_session()
    url = reverse("admin:identity_session_changelist")
    assert b"open" in admin.get(url).content
    admin.post(url, {"action": "close_sessions", "_selected_action": [session.pk]})
    session.refresh_from_db()
    assert session.close_reason == "administrator"


def test_the_page_of_a_session_says_whose_it_is_and_closes_it(admin: Client) -> None:
    session = open_session()
    address = reverse("admin:identity_session_change", args=[session.pk])
    page = admin.get(address).content.decode()
    assert "<title>demo – WebDemoClient" in page
    button = re.search(r'<li class="page-button"><form method="post" action="([^"]+)">(.*?)Close the session', page)
    assert button is not None
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]+)"', button[2]))
    admin.post(button[1], fields)
    session.refresh_from_db()
    assert session.close_reason == "administrator"
    assert "Close the session" not in admin.get(address).content.decode()


def test_a_signing_key_is_shown_without_styles_in_its_page(admin: Client) -> None:
    key = SigningKey.objects.create(kid="k1", public_jwk={"kty": "RSA", "n": "AQAB"})
    page = admin.get(reverse("admin:identity_signingkey_change", args=[key.pk])).content.decode()
    assert "&quot;kty&quot;: &quot;RSA&quot;" in page
    assert "style=" not in page.partition('id="content"')[2]


def test_the_licence_shows_its_use(admin: Client) -> None:
    open_session()
    page = admin.get(reverse("admin:identity_licence_change", args=[1])).content.decode()
    assert "1 of 25" in page
    assert "<meter" in page
    now = utc_now()
    assert [usage.most for usage in usage_by_hour(now)][-1] == 1
    assert page.count('<tr><th scope="row">') == HOURS + DAYS
    assert f'<th scope="row">{now:%-d %b}</th><td>1</td><td>25</td>' in page


def test_the_history_is_the_most_at_once_whenever_somebody_looked(admin: Client) -> None:
    open_session()
    session = Session.objects.get()
    noon = utc_now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=2)
    # Three in the hour before noon, of which two at once; one of them lasts into the hour after.
    for begins, ends in ((-50, -40), (-30, -10), (-20, 15)):
        session.pk, session.key = new_guid(), str(begins)
        session.opened, session.expires = noon + timedelta(minutes=begins), noon + timedelta(minutes=ends)
        session.closed = session.expires
        session.save(force_insert=True)
    by_hour = {usage.begin: usage.most for usage in usage_by_hour(noon + timedelta(hours=1), 4)}
    assert list(by_hour.values()) == [0, 2, 1, 0]
    assert {usage.begin.day: usage.most for usage in usage_by_day(utc_now())}[noon.day] == 2


def test_closed_sessions_are_forgotten_after_a_while(admin: Client) -> None:
    open_session()
    closed = utc_now() - CLOSED_RETENTION
    for age, kept in ((-1, 1), (1, 0)):
        Session.objects.update(closed=closed - timedelta(hours=age))
        sweep()
        assert Session.objects.count() == kept


def test_the_list_shows_what_is_open_unless_asked(admin: Client) -> None:
    open_session()
    url = reverse("admin:identity_session_changelist")
    assert admin.get(url).context["cl"].result_count == 1
    Session.objects.update(closed=utc_now(), close_reason="signed out")
    assert admin.get(url).context["cl"].result_count == 0
    assert "signed out" in admin.get(f"{url}?state=closed").content.decode()
    assert admin.get(f"{url}?state=all").context["cl"].result_count == 1


def test_the_list_asks_once_for_the_transactions_of_all_rows(admin: Client) -> None:
    url = reverse("admin:identity_session_changelist")
    counts = []
    for key in ("first", "second"):
        open_session(key)
        admin.get(url)
        with CaptureQueriesContext(connection) as queries:
            admin.get(url)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_licence_can_be_changed_and_not_removed(admin: Client) -> None:
    url = reverse("admin:identity_licence_change", args=[1])
    seats = {"reserved_seats-TOTAL_FORMS": "0", "reserved_seats-INITIAL_FORMS": "0"}
    assert admin.post(url, {"sessions": "3", **seats}).status_code == 302
    assert (Licence.objects.get().sessions, Licence.objects.get().features) == (3, [])
    Licence.objects.update(features=["OfAnotherVersion"])
    features = ["AdvancedBpm", "OfAnotherVersion"]
    assert admin.post(url, {"sessions": "3", "features": features, **seats}).status_code == 302
    assert Licence.objects.get().features == features
    assert admin.post(url, {"sessions": "3", "features": ["Nothing"], **seats}).status_code == 200
    assert admin.get(reverse("admin:identity_licence_delete", args=[1])).status_code == 403


def test_a_permission_for_nothing_is_refused_with_what_was_meant(admin: Client) -> None:
    url = reverse("admin:identity_rolepermission_add")
    form = {"role": Role.objects.get().pk, "repository": "Crm.Sales.SalesOrder", "can_read": "on"}
    refused = admin.post(url, form)
    assert "Crm.Sales.SalesOrders" in refused.context["adminform"].form.errors["repository"][0]
    for name in ("Crm.Sales.SalesOrders", "Crm.*", "Crm.Sales.*"):
        assert admin.post(url, {**form, "repository": name}).status_code in (200, 302)
        assert RolePermission.objects.filter(repository=name).exists(), name
    assert '<option value="Crm.Sales.*">' in admin.get(url).content.decode()


def test_a_reference_token_is_issued_and_shown_once(admin: Client) -> None:
    url = reverse("admin:identity_referencetoken_add")
    application = TrustedApplication.objects.get(application_uri="PublicDemoClient")
    form = {
        "name": "till",
        "application": application.pk,
        "user": User.objects.get(login="demo").pk,
        "scope": ["read"],
        "days": "7",
    }
    answer = admin.post(url, form)
    token = answer.content.decode().split('<code class="secret">')[1].split("<")[0]
    assert token.startswith("enrt_")
    assert "no-store" in answer.headers["Cache-Control"]
    # Django's messages would store it in a cookie, signed and readable.
    assert "messages" not in admin.cookies
    assert all(token not in cookie.value for cookie in admin.cookies.values())
    assert ReferenceToken.objects.get().name == "till"
    assert "enrt_" not in admin.get(reverse("admin:identity_referencetoken_changelist")).content.decode()
    refused = admin.post(url, {**form, "scope": ["sec"]})
    assert b"may not have the scopes" in refused.content
    admin.post(
        reverse("admin:identity_referencetoken_changelist"),
        {"action": "revoke_tokens", "_selected_action": [ReferenceToken.objects.get().pk]},
    )
    assert ReferenceToken.objects.get().revoked is not None


def test_access_tokens_are_revoked_by_the_action(admin: Client) -> None:
    service_token(admin)
    url = reverse("admin:identity_accesstoken_changelist")
    admin.post(url, {"action": "revoke_tokens", "_selected_action": [AccessToken.objects.get().pk]})
    assert not AccessToken.objects.exists()


def test_a_row_policy_that_cannot_be_applied_is_refused_at_its_field(admin: Client) -> None:
    url = reverse("admin:identity_rowpolicy_add")
    form = {"role": Role.objects.get().pk, "repository": "Crm.Sales.SalesOrders", "filter": "bad", "on_read": "on"}
    assert b"(position 0, at" in admin.post(url, form).content
    unknown = admin.post(url, {**form, "repository": "Crm.Sales.SalesOrder", "filter": "Void eq false"})
    message = "There is no repository Crm.Sales.SalesOrder. Did you mean Crm.Sales.SalesOrders?"
    assert unknown.context["adminform"].form.errors == {"repository": [message]}
    empty = admin.post(url, {**form, "repository": "", "filter": ""}).context["adminform"].form.errors
    assert empty == {"repository": ["This field is required."], "filter": ["This field is required."]}
    admin.post(url, {**form, "filter": "Void eq false"})
    assert RowPolicy.objects.get().filter == "Void eq false"
