"""Provisioning by SCIM.

Who: a stranger, a user or service with a token of another purpose, and somebody who has stolen the directory's token.
What: read or change users without the right to; become an administrator or take one over; run a filter as SQL; exhaust
the parser. What prevents it: tokens of services with the scope `scim`, which nothing else accepts; a table of the
attributes that a filter may name, values as parameters of the query, bounds of length, depth and comparisons;
administrators can only be deactivated.
"""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from identity.models import User
from tests.domain.scim.conftest import Directory, directory, directory_token  # noqa: F401
from tests.domain.scim.test_users import detail
from tests.identity.conftest import browser, demo, fresh_process  # noqa: F401
from tests.identity.flows import Browser, service_token

pytestmark = [pytest.mark.django_db, pytest.mark.once]

FILTERS = (
    'password sw "argon2"',
    "isAdmin eq true",
    'roles__permissions__repository eq "x"',
    'user_permissions eq "x"',
    'userName eq "a" or 1 eq 1',
    "userName eq 'a'",
    'userName eq "a"; DROP TABLE identity_user',
    'userName eq "a" --',
    'userName__regex eq "(a+)+$"',
    'userName co "a"]',
    'emails[value eq "a"',
    '(userName eq "a"',
    "userName eq",
    "userName",
    'not userName eq "a"',
    'userName eq "\\ud800"',
    'userName eq "a\\u0000b"',
    'userName eq "a\x00b"',
    'userName eq "a\nb"',
    'userName like "a"',
    "userName eq 7",
    'active eq "true"',
    "active gt true",
    'meta.created gt "yesterday"',
    'meta.created gt "9999-99-99T00:00:00Z"',
    'id co "a"',
    "(" * 17 + 'userName eq "a"' + ")" * 17,
    "(" * 900 + 'userName eq "a"' + ")" * 900,
    "not (" * 300 + "active eq true" + ")" * 300,
    " or ".join(['userName eq "a"'] * 51),
    'userName eq "' + "a" * 2000 + '"',
    "." * 500,
    "urn:" * 200,
)
PATHS = ("/Users", "/Groups", "/ServiceProviderConfig", "/Schemas", "/ResourceTypes", "/nothing")


def test_only_a_service_with_the_scope_is_answered(demo: None, browser: Browser) -> None:  # noqa: F811
    # The demo's service is an administrator with the scopes read update exec.
    tokens = (service_token(APIClient()), browser.tokens()["access_token"])
    for path in PATHS:
        refuses(path, tokens)


def refuses(path: str, tokens: tuple[str, ...]) -> None:
    assert detail(APIClient().get(f"/scim/v2{path}"))[0] == 401
    assert detail(Directory("nonsense").send("get", path))[0] == 401
    assert detail(Directory("enrt_" + "0" * 64).send("get", path))[0] == 401
    for token in tokens:
        assert detail(Directory(token).send("get", path))[0] == 403
    signed_in = APIClient()
    signed_in.force_login(User.objects.get(login="admin"))
    assert detail(signed_in.get(f"/scim/v2{path}"))[0] == 401


def test_the_rights_of_the_system_user_hold(demo: None) -> None:  # noqa: F811
    weak = Directory(directory_token(is_admin=False))
    assert detail(weak.send("get", "/Users"))[0] == 403
    assert detail(weak.send("post", "/Users", {"userName": "ada"}))[0] == 403


def test_the_token_is_good_for_nothing_else(directory: Directory) -> None:  # noqa: F811
    for path in ("Systems_Security_Users", "General_Products_Products"):
        assert directory.get(f"/api/domain/odata/{path}").status_code == 403
    answer = directory.post("/api/domain/odata/Systems_Security_Users", {"Login": "x"}, format="json")
    assert answer.status_code == 403
    assert directory.get("/profile/me").status_code == 403


def test_nobody_becomes_an_administrator(directory: Directory) -> None:  # noqa: F811
    forged: dict[str, Any] = {"isAdmin": True, "IsAdmin": True, "is_admin": True, "Admin": True, "roles": ["admin"]}
    ada = directory.user("ada", **forged)
    directory.send("put", f"/Users/{ada['id']}", {"userName": "ada", **forged})
    for name in forged:
        assert detail(directory.patch_user(ada["id"], {"op": "add", "path": name, "value": True})) == (
            400,
            "invalidPath",
        )
    assert not User.objects.get(pk=ada["id"]).is_admin


@pytest.mark.parametrize(
    "change",
    [
        {"userName": "evil"},
        {"displayName": "Evil"},
        {"emails": [{"value": "evil@example.com"}]},
        {"userType": "ExternalCommunityUser"},
        {"photos": [{"value": "https://evil.example/"}]},
    ],
)
def test_an_administrator_is_not_taken_over(directory: Directory, change: dict[str, Any]) -> None:  # noqa: F811
    admin = User.objects.get(login="admin")
    before = User.objects.filter(pk=admin.pk).values().get()
    operations = [{"op": "replace", "path": name, "value": value} for name, value in change.items()]
    assert detail(directory.patch_user(str(admin.pk), *operations))[0] == 403
    shown = directory.send("get", f"/Users/{admin.pk}").json()
    assert detail(directory.send("put", f"/Users/{admin.pk}", {**shown, **change}))[0] == 403
    assert detail(directory.send("delete", f"/Users/{admin.pk}"))[0] == 403
    assert User.objects.filter(pk=admin.pk).values().get() == before


def test_the_last_administrator_stays_active(directory: Directory) -> None:  # noqa: F811
    admin = User.objects.get(login="admin")
    off = {"op": "replace", "path": "active", "value": False}
    assert detail(directory.patch_user(str(admin.pk), off))[0] == 403
    User.objects.create_superuser("second", email="second@example.com")
    assert directory.patch_user(str(admin.pk), off).status_code == 200
    # And is not brought back by the directory.
    assert detail(directory.patch_user(str(admin.pk), {**off, "value": True}))[0] == 403


def test_filters_are_no_way_in(directory: Directory) -> None:  # noqa: F811
    for expression in FILTERS:
        for kind in ("Users", "Groups"):
            answer = directory.get(f"/scim/v2/{kind}", {"filter": expression})
            assert detail(answer) == (400, "invalidFilter"), (kind, expression[:80])
    assert User.objects.filter(login="admin").exists()
