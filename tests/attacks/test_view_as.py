"""An administrator who sees the admin as another user gets no more of that user than what the admin shows.

Who: an administrator, or somebody at an administrator's browser, with a view as another user; a user who is no
administrator. What: to change something in the other's name, to reach the other's profile, codes or tokens, to go on
after the view's time, to view one user through another, to view without being an administrator, or without a trace.
What prevents it: the view is in the administrator's own browser session and only pages of the admin look at it
(identity.view_as); they refuse all but reads, and check at each request who views whom until when.
"""

from __future__ import annotations

import datetime
import logging
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import get_resolver, reverse

from domain.model.registry import repositories
from foundation import cache_versions
from foundation.fields import utc_now
from identity import view_as
from identity.models import User
from tests.attacks.access import WIDE, digest
from tests.attacks.test_every_secret import routes
from tests.attacks.test_other_sites import addresses
from tests.domain.security.conftest import give_role, person
from tests.identity.flows import Browser, fields_of, parameters_of

pytestmark = pytest.mark.once

HOME = "/admin/"
STOP = "/id/account/view-as/stop"
PAGES = (HOME, "/admin/domain/salesorder/", "/admin/domain/product/", "/admin/identity/role/", "/admin/permissions/")


@pytest.fixture
def seen(demo: None) -> User:
    """The user who is viewed: of the role Sales."""
    return User.objects.get(login="demo")


@pytest.fixture
def viewer(seen: User) -> Client:
    """The browser of an administrator with a view as `seen`."""
    client = administrator()
    assert client.post(start_of(seen)).status_code == 302
    assert "<strong>demo</strong>" in client.get(HOME).content.decode()
    return client


def administrator(**options: Any) -> Client:
    client = Client(raise_request_exception=False, **options)
    client.force_login(User.objects.get(login="admin"))
    return client


def start_of(user: User) -> str:
    return reverse("admin:identity_user_view_as", args=[user.pk])


def is_viewing(client: Client) -> bool:
    page = client.get(HOME, follow=True)
    assert page.status_code == 200
    return 'class="view-as"' in page.content.decode()


def minutes_later(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    moment = utc_now() + datetime.timedelta(minutes=minutes)
    monkeypatch.setattr(view_as, "utc_now", lambda: moment)


def test_every_page_is_that_of_the_viewed_user(viewer: Client, seen: User) -> None:
    own = Client(raise_request_exception=False)
    own.force_login(seen)
    for path in PAGES:
        assert viewer.get(path).status_code == own.get(path).status_code, path
    for repository in repositories:
        model = repository.model._meta
        path = reverse(f"admin:{model.app_label}_{model.model_name}_changelist")
        shown, theirs = viewer.get(path), own.get(path)
        assert shown.status_code == theirs.status_code, path
        if theirs.status_code == 200:
            assert shown.context["cl"].result_count == theirs.context["cl"].result_count, path
            assert shown.context["available_apps"] == theirs.context["available_apps"], path


def test_nothing_is_written_in_the_admin(viewer: Client) -> None:
    before, history = digest(), LogEntry.objects.count()
    links = {"admin/login/", "admin/logout/", "admin/password_change/"}
    of_the_admin = {
        route: path for route, path in addresses().items() if route.startswith("admin/") and route not in links
    }
    answers = {("post", route): viewer.post(path, {"post": "yes"}).status_code for route, path in of_the_admin.items()}
    # The refusal does not look at the page, so the methods that no page has are tried at some.
    for route, path in list(of_the_admin.items())[::10]:
        for method in ("put", "patch", "delete"):
            answers[method, route] = getattr(viewer, method)(path, {"post": "yes"}).status_code
    assert len(answers) > 1000
    assert {key: status for key, status in answers.items() if status != 403} == {}
    assert (digest(), LogEntry.objects.count()) == (before, history)


def test_profile_and_tokens_are_those_of_the_administrator(viewer: Client, seen: User) -> None:
    assert viewer.get("/profile/").context["person"].login == "admin"
    assert viewer.get("/profile/me").json()["login"] == "admin"
    issued = viewer.post("/api/session")
    assert issued.json()["login"] == "admin"
    assert viewer.get("/id/account/password").context["user"].login == "admin"
    assert viewer.get("/profile/devices/none/sign-out").status_code in (404, 405)


def test_no_code_is_issued_for_the_viewed_user(viewer: Client) -> None:
    browser = Browser(viewer)
    answer = browser.authorize()
    code = parameters_of(answer.headers["Location"])["code"]
    tokens = browser.redeem(code).json()
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert Client().get("/id/connect/userinfo", headers=bearer).json()["preferred_username"] == "admin"


def test_the_api_looks_at_no_cookie(viewer: Client) -> None:
    for path in ("", "General_Currencies_Currencies", "$batch"):
        assert viewer.get(f"/api/domain/odata/{path}").status_code == 401, path
        assert viewer.post(f"/api/domain/odata/{path}", {}, content_type="application/json").status_code == 401, path


def test_no_user_is_viewed_through_another(viewer: Client) -> None:
    other = person("other")
    give_role(other, WIDE)
    for answer in (viewer.get(start_of(other)), viewer.post(start_of(other))):
        assert answer.status_code in (403, 404)
    page = viewer.get(HOME)
    assert page.context["user"].login == "demo"


def test_a_view_is_over_after_its_time(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    minutes_later(monkeypatch, view_as.VIEW_MINUTES - 1)
    assert is_viewing(viewer)
    minutes_later(monkeypatch, view_as.VIEW_MINUTES)
    before = digest()
    answer = viewer.post("/admin/identity/role/add/", {"name": "Mine"})
    assert (answer.status_code, answer.headers["Location"]) == (302, HOME)
    assert digest() == before
    page = viewer.get(HOME)
    assert page.context["user"].login == "admin"
    assert "yourself again" in page.content.decode()


@pytest.mark.parametrize("ending", ["stopped", "expired"])
def test_a_page_from_within_the_view_is_no_form_of_the_administrator(
    seen: User, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """It shows what the other user may; sent later, it would be saved with the rights of an administrator."""
    client = administrator(enforce_csrf_checks=True)
    assert client.post(start_of(seen), fields_of(client.get(start_of(seen)).content.decode())).status_code == 302
    form = fields_of(client.get("/admin/domain/salesorder/").content.decode())
    assert form["csrfmiddlewaretoken"]
    if ending == "stopped":
        assert client.post(STOP, form).status_code == 302
    else:
        minutes_later(monkeypatch, view_as.VIEW_MINUTES)
        assert client.get(HOME).status_code == 302
    assert client.post("/admin/identity/role/add/", form).status_code == 403
    fresh = fields_of(client.get("/admin/identity/role/add/").content.decode())
    assert client.post("/admin/identity/role/add/", fresh).status_code == 200


def test_only_administrators_start_one(demo: None) -> None:
    mallory, other = person("mallory"), person("other")
    for user in (mallory, other):
        give_role(user, WIDE)
    client = Client(raise_request_exception=False)
    assert client.post(start_of(other)).status_code == 302  # to the login
    client.force_login(mallory)
    for answer in (client.get(start_of(other)), client.post(start_of(other))):
        assert answer.status_code == 403
    assert "view-as" not in client.get(f"/admin/identity/user/{other.pk}/change/").content.decode()
    assert client.post(STOP).status_code == 302
    assert client.get(HOME).context["user"].login == "mallory"
    # What others put into a session is no view either: the administrator's id is in it, too.
    session = client.session
    stored = {"administrator": str(mallory.pk), "user": str(other.pk), "until": utc_now().timestamp() + 60}
    session["view_as"] = stored
    session.save()
    assert not is_viewing(client)


@pytest.mark.parametrize("login", ["boss", "outsider", "machine", "nobody"])
def test_these_users_are_not_viewed(demo: None, login: str) -> None:
    kinds = {"outsider": "ExternalCommunityUser", "machine": "SystemUserNoLogin"}
    user = person(login, is_admin=login == "boss")
    User.objects.filter(pk=user.pk).update(user_type=kinds.get(login, "InternalUser"))
    if login != "nobody":
        give_role(user, WIDE)
    client = administrator()
    for answer in (client.get(start_of(user)), client.post(start_of(user))):
        assert answer.status_code == 403
    assert not is_viewing(client)


@pytest.mark.parametrize("change", ["promoted", "deactivated", "without a role", "administrator demoted"])
def test_a_view_ends_with_what_it_needs(viewer: Client, seen: User, change: str) -> None:
    if change == "administrator demoted":
        User.objects.filter(login="admin").update(is_admin=False)
    elif change == "without a role":
        seen.roles.clear()
    else:
        changed = {"is_admin": True} if change == "promoted" else {"active": False}
        User.objects.filter(pk=seen.pk).update(**changed)
    cache_versions.expire()
    answer = viewer.get("/admin/domain/salesorder/")
    assert (answer.status_code, answer.headers["Location"]) == (302, HOME)
    # Who is no administrator any more has no admin here, and is sent to the login.
    assert viewer.get(HOME).status_code == (302 if change == "administrator demoted" else 200)
    assert b"view-as" not in viewer.get(HOME).content


def test_the_session_key_changes(seen: User) -> None:
    client = administrator()
    keys = [client.cookies["sessionid"].value]
    client.post(start_of(seen))
    keys.append(client.cookies["sessionid"].value)
    client.post(STOP)
    keys.append(client.cookies["sessionid"].value)
    assert len(set(keys)) == 3
    for key in keys[:2]:
        thief = Client()
        thief.cookies["sessionid"] = key
        assert thief.get(HOME).status_code == 302


def test_another_sign_in_ends_it(viewer: Client, seen: User) -> None:
    viewer.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    assert not is_viewing(viewer)


def test_history_and_log_say_who_viewed_whom(seen: User, caplog: pytest.LogCaptureFixture) -> None:
    client = administrator()
    with caplog.at_level(logging.INFO, logger="identity.view_as"):
        client.post(start_of(seen))
        client.get(HOME)
        client.post(STOP)
    assert [record.getMessage() for record in caplog.records if record.name == "identity.view_as"] == [
        "admin sees the admin as demo",
        "admin no longer sees the admin as demo",
    ]
    entry = LogEntry.objects.get(object_id=str(seen.pk))
    assert (entry.user.login, entry.change_message) == ("admin", "Saw the admin as this user")
    shown = client.get(reverse("admin:identity_user_history", args=[seen.pk])).content.decode()
    assert "Saw the admin as this user" in shown


def test_all_routes_of_the_admin_are_in_its_namespace() -> None:
    """The middleware goes by it."""
    outside = {"admin/login/", "admin/logout/", "admin/password_change/"}
    own = {f"admin/{route}" for route in routes(_Of(admin.site.get_urls()))}
    assert {route for route in routes(get_resolver()) if route.startswith("admin/")} == own | outside


class _Of:
    """Patterns as a resolver has them."""

    def __init__(self, patterns: list[Any]) -> None:
        self.url_patterns = patterns
