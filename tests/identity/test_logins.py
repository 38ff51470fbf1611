"""Who a token names: `sub` is the login, `id` the guid that stays, `preferred_username` the login beside them."""

from __future__ import annotations

from typing import Any

import jwt as pyjwt
import pytest
from rest_framework.test import APIClient

from domain.dataset.dataset import Dataset
from foundation import errors
from identity.context import system_context
from identity.logins import former_logins
from identity.models import UsedLogin, User
from tests.identity.flows import SECRET, SERVICE, WEB, Browser, parameters_of, token_request

USERS = "Systems.Security.Users"


def claims(token: str) -> dict[str, Any]:
    found: dict[str, Any] = pyjwt.decode(token, options={"verify_signature": False})
    return found


def renamed(user: User, login: str) -> None:
    """Rename as the admin and the API do."""
    dataset = Dataset(system_context())
    record = dataset.load(USERS, str(user.pk))
    assert record is not None
    dataset.set(record, "Login", login)
    dataset.commit()


def created(login: str) -> None:
    dataset = Dataset(system_context())
    dataset.create(USERS, {"Login": login, "Name": {"EN": "Second"}})
    dataset.commit()


def told(browser: Browser, login: str) -> list[dict[str, Any]]:
    """What the access token, the id token and userinfo tell of a user who signs in with the password of the demo."""
    tokens = browser.tokens(login)
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    userinfo = APIClient().get("/id/connect/userinfo", headers=headers).json()
    return [claims(tokens["access_token"]), claims(tokens["id_token"]), userinfo]


def test_another_login_ends_the_grants_of_the_former(browser: Browser) -> None:
    """A refreshed id token and userinfo name the same subject (OIDC Core, 5.3.2 and 12.2)."""
    tokens = browser.tokens(scope="openid read offline_access")
    renamed(User.objects.get(login="demo"), "Demo")
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert APIClient().get("/id/connect/userinfo", headers=headers).status_code == 401
    form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": SECRET}
    response = token_request(browser.client, **form, refresh_token=tokens["refresh_token"])
    assert response.json()["error"] == "invalid_grant"
    # The browser is signed in as before.
    answer = parameters_of(browser.authorize(prompt="none", id_token_hint=tokens["id_token"]).headers["Location"])
    assert claims(browser.redeem(answer["code"]).json()["id_token"])["sub"] == "Demo"


def test_no_service_has_the_subject_of_a_person(demo: None) -> None:
    """RFC 9068, 5: `sub` of a service's token is its ApplicationUri."""
    with pytest.raises(errors.Refused) as refused:
        created(SERVICE.upper())
    assert refused.value.code is errors.LOGIN_USED
    renamed(User.objects.get(login="demo"), "demo.new")
    for login in ("admin", "demo"):
        dataset = Dataset(system_context())
        values = {"ApplicationUri": login, "Name": login, "ClientType": "Confidential"}
        dataset.create("Systems.Security.TrustedApplications", values)
        with pytest.raises(errors.PlatformError, match="had, this login"):
            dataset.commit()


def test_the_guid_stays_where_the_login_changes(browser: Browser) -> None:
    demo = User.objects.get(login="demo")
    for each in told(browser, "demo"):
        assert (each["sub"], each["id"], each["preferred_username"]) == ("demo", demo.pk, "demo")
    renamed(demo, "demo.new")
    demo.refresh_from_db()
    demo.set_password("demo.new")
    demo.save(update_fields=["password"])
    fresh = Browser(APIClient(enforce_csrf_checks=True))
    for each in told(fresh, "demo.new"):
        assert (each["sub"], each["id"], each["preferred_username"]) == ("demo.new", demo.pk, "demo.new")
    assert former_logins(demo) == ["demo"]


@pytest.mark.parametrize("another", ["demo", "DEMO", "Demo"])
def test_no_way_gives_a_login_to_a_second_user(demo: None, another: str) -> None:
    holder = User.objects.get(login="demo")
    renamed(holder, "demo.new")
    with pytest.raises(errors.Refused, match="belonged to another user"):
        User.objects.create_user(another)  # commands, seeds and sign-ins
    with pytest.raises(errors.Refused, match="belonged to another user"):
        created(another)
    with pytest.raises(errors.Refused, match="belonged to another user"):
        renamed(User.objects.get(login="customer"), another)
    assert UsedLogin.objects.get(login__iexact="demo").user_id == holder.pk
