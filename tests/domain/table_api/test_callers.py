"""Who may call the Table API, and how (spec 11, 11.1; spec 01)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from foundation import cache_versions
from identity.models import Licence, RateLimits, Role, RoleUser, Session, TrustedApplication, User
from tests.domain.security.conftest import caller, give_role, person
from tests.domain.table_api.conftest import ROOT, Tables, body_of
from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of, service_api

PASSWORD = "a-good-Password-4711"
TABLE = "Gen_Currencies"


@pytest.fixture
def bob(world: World) -> User:
    """A person with a password, who may read currencies."""
    bob = person("bob")
    bob.set_password(PASSWORD)
    bob.save()
    give_role(bob, {"General.*": "r"})
    return bob


@pytest.fixture
def passwords(settings: Settings, bob: User) -> TrustedApplication:
    """The application as which users may call with their password."""
    settings.TABLE_API_PASSWORD_APPLICATION = "Spreadsheets"
    return TrustedApplication.objects.create(
        application_uri="Spreadsheets", name="Spreadsheets", scope="read", impersonate_as_internal_user_allowed=True
    )


def basic(login: str, password: str, path: str = TABLE, **extra: Any) -> Answer:
    """A GET with HTTP Basic."""
    given = base64.b64encode(f"{login}:{password}".encode()).decode()
    return Client().get(ROOT + path, headers={"Authorization": f"Basic {given}"}, **extra)


def of(token: str) -> Tables:
    return Tables(Client(), token)


def test_a_caller_needs_a_credential(world: World) -> None:
    answer = Client().get(ROOT + TABLE)
    assert (answer.status_code, error_of(answer)["type"]) == (401, "TokenMissing")
    assert answer.headers["WWW-Authenticate"] == 'Bearer, Basic realm="Table API", charset="UTF-8"'


def test_tokens_of_every_kind_are_accepted(bob: User, api: Api) -> None:
    assert of(api.token).rows(TABLE)
    token = caller(bob, scopes="read").token
    assert of(token).rows(TABLE)
    assert Client().get(ROOT + TABLE, headers={"X-Api-Key": token}).status_code == 200
    assert basic("bob", token).status_code == basic("BOB", token).status_code == 200


def test_the_scope_is_read(api: Api, client: Client) -> None:
    answer = of(service_api(client, scope="update").token).get(TABLE)
    assert (answer.status_code, error_of(answer)["type"]) == (403, "ScopeMissing")


def test_a_personal_token_needs_its_own_login(bob: User) -> None:
    token = caller(bob, scopes="read").token
    for login in ("alice", "", "bob "):
        assert basic(login, token).status_code == 401, login
    for header in ("Basic", "Basic !", "Basic Ym9i", f"Basic {base64.b64encode(b'bob').decode()}"):
        assert Client().get(ROOT + TABLE, headers={"Authorization": header}).status_code == 401, header


def test_basic_needs_tls_or_this_machine(bob: User) -> None:
    token = caller(bob, scopes="read").token
    assert basic("bob", token, REMOTE_ADDR="192.0.2.7").status_code == 401
    assert basic("bob", token, REMOTE_ADDR="192.0.2.7", secure=True).status_code == 200
    assert basic("bob", token, REMOTE_ADDR="::1").status_code == 200


def test_basic_is_for_tables_only(bob: User) -> None:
    token = caller(bob, scopes="read").token
    given = base64.b64encode(f"bob:{token}".encode()).decode()
    answer = Client().get("/api/domain/odata/General_Currencies", headers={"Authorization": f"Basic {given}"})
    assert answer.status_code == 401


def test_a_password_is_accepted_only_where_the_setting_allows_it(bob: User) -> None:
    assert basic("bob", PASSWORD).status_code == 401


def test_a_password_opens_one_session_for_reading(passwords: TrustedApplication) -> None:
    for _ in range(2):
        assert basic("bob", PASSWORD).status_code == 200
    assert [session.application for session in Session.objects.filter(user__login="bob")] == [passwords]
    assert basic("bob", "wrong").status_code == basic("nobody", PASSWORD).status_code == 401
    TrustedApplication.objects.update(is_enabled=False)
    assert basic("bob", PASSWORD).status_code == 401


def test_a_password_is_not_enough_where_a_role_requires_more(passwords: TrustedApplication, bob: User) -> None:
    role = Role.objects.create(name="guarded", required_factor="SecondFactor")
    RoleUser.objects.create(user=bob, role=role)
    cache_versions.expire()
    assert basic("bob", PASSWORD).status_code == 401
    assert basic("bob", caller(bob, scopes="read").token).status_code == 200


def test_users_of_the_community_are_refused(passwords: TrustedApplication, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(user_type="ExternalCommunityUser")
    assert basic("bob", PASSWORD).status_code == 403


@pytest.mark.parametrize("secret", ["wrong-password", f"enrt_{'0' * 64}"])
def test_secrets_cannot_be_tried_at_any_speed(
    passwords: TrustedApplication, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    statuses = [basic("bob", secret).status_code for _ in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429


def test_a_call_needs_a_licence(bob: User, api: Api) -> None:
    Licence.objects.update(sessions=1)
    assert api.get("General_Currencies").status_code == 200
    answer = basic("bob", caller(bob, scopes="read").token)
    assert (answer.status_code, error_of(answer)["type"]) == (503, "NoLicence")
    assert 0 < int(answer.headers["Retry-After"]) <= 1200
    assert body_of(of(api.token).get(f"{TABLE}/$count")) == b"1"


def test_requests_are_limited_as_those_of_the_domain_api(bob: User) -> None:
    RateLimits.objects.update_or_create(pk=1, defaults={"user_per_minute": 2})
    cache_versions.expire()
    token = caller(bob, scopes="read").token
    statuses = [of(token).get(TABLE).status_code for _ in range(6)]
    assert statuses[-1] == 429
