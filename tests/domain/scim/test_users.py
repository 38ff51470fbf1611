"""SCIM users (RFC 7643, 4.1; RFC 7644): joiners, changes and leavers."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from domain.dataset.dataset import Dataset
from identity.context import system_context
from identity.models import RoleUser, Session, User, UserPicture
from tests.domain.scim.conftest import Directory
from tests.identity.flows import Browser

pytestmark = pytest.mark.django_db

ADA: dict[str, Any] = {
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
    "userName": "ada",
    "externalId": "E-1",
    "name": {"givenName": "Ada", "familyName": "Lovelace"},
    "emails": [{"value": "old@example.com"}, {"value": "ada@example.com", "primary": True}],
    "phoneNumbers": [{"value": "+44 1"}],
    "preferredLanguage": "en",
    "timezone": "Europe/London",
    "photos": [{"value": "https://pictures.example/ada.png"}],
    "password": "is not taken over",
    "isAdmin": True,
}

WRONG_VALUES: tuple[dict[str, Any], ...] = (
    {"userName": ""},
    {"userName": None},
    {"userName": "x" * 65},
    {"userName": {"a": 1}},
    {"emails": [{"value": "no address"}]},
    {"emails": "ada@example.com"},
    {"emails": [7]},
    {"active": "perhaps"},
    {"userType": "SystemUserNoLogin"},
    {"displayName": "x" * 255},
    {"displayName": "a\0b"},
    {"name": []},
    {"photos": [{"value": "http://pictures.example/a.png"}]},
    {"preferredLanguage": "x" * 16},
)
FILTERS: tuple[tuple[str, list[str]], ...] = (
    ('userName eq "ADA"', ["ada"]),
    ('username Eq "ada"', ["ada"]),
    ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada"', ["ada"]),
    ('userName ne "ada" and externalId pr', ["bob"]),
    ('externalId eq "e-1"', []),
    ('userName sw "a" or userName ew "b"', ["ada", "admin", "bob"]),
    ('userName co "d" and not (userName eq "demo")', ["ada", "admin"]),
    ('emails.value eq "ada@example.com"', ["ada"]),
    ('emails[type eq "work" and value co "ADA@"]', ["ada"]),
    ('emails[type eq "home"]', []),
    ("active eq false", ["bob"]),
    ('displayName eq "ada lovelace"', ["ada"]),
    ('name.formatted sw "Ada"', ["ada"]),
    ('externalId gt "E-1"', ["bob"]),
    ("phoneNumbers pr", ["ada"]),
    ('userType eq "ExternalCommunityUser"', ["customer"]),
    ('id eq "nonsense"', []),
    ('meta.created lt "2000-01-01T00:00:00Z"', []),
    ('userName eq "%" or userName co "_"', []),
    ('userName eq "x\' OR 1=1 --"', []),
    ('userName eq "a\\"b\\u0041"', []),
)
WRONG_PARAMETERS = (
    ("count=two", "invalidValue"),
    ("count=99999999999", "invalidValue"),
    ("startIndex=1.5", "invalidValue"),
    ("count=1&count=2", "invalidSyntax"),
    ("filter=active%20eq%20true&filter=active%20eq%20false", "invalidSyntax"),
    ("sortBy=password", "invalidFilter"),
    ("sortBy=groups", "invalidPath"),
    ("sortBy=userName&sortOrder=up", "invalidValue"),
)
WRONG_OPERATIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"op": "replace", "path": "isAdmin", "value": True}, "invalidPath"),
    ({"op": "replace", "value": {"isAdmin": True}}, "invalidPath"),
    ({"op": "replace", "path": "password", "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": "id", "value": "x"}, "mutability"),
    ({"op": "add", "path": "groups", "value": [{"value": "x"}]}, "mutability"),
    ({"op": "replace", "path": "userType", "value": "SystemUserNoLogin"}, "invalidValue"),
    ({"op": "remove", "path": "userName"}, "invalidValue"),
    ({"op": "replace", "path": "userName[", "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": "x" * 3000, "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": 7, "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": 'userName[type eq "x"]', "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": 'emails[value gt "x"]', "value": {"value": "x"}}, "invalidPath"),
    ({"op": "replace", "path": 'emails[a[b eq "c"] eq "x"]', "value": "x"}, "invalidPath"),
    ({"op": "replace", "path": 'emails[type eq "work"]', "value": "x"}, "invalidValue"),
    ({"op": "replace", "value": "x"}, "noTarget"),
    ({"op": "remove"}, "noTarget"),
    ({"op": "destroy", "path": "userName"}, "invalidSyntax"),
    ({}, "invalidSyntax"),
)


def detail(answer: Any) -> tuple[int, str]:
    body = answer.json()
    assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert body["status"] == str(answer.status_code)
    assert body["detail"]
    return answer.status_code, body.get("scimType", "")


class TestJoiners:
    def test_a_new_user(self, directory: Directory) -> None:
        answer = directory.send("post", "/Users", ADA)
        body = answer.json()
        assert answer.status_code == 201
        assert answer.headers["Content-Type"].startswith("application/scim+json")
        assert answer.headers["Location"] == body["meta"]["location"] == f"http://testserver/scim/v2/Users/{body['id']}"
        assert answer.headers["ETag"] == body["meta"]["version"]
        assert body["displayName"] == "Ada Lovelace"
        assert body["emails"] == [{"value": "ada@example.com", "type": "work", "primary": True}]
        user = User.objects.get(pk=body["id"])
        assert (user.login, user.active, user.is_admin, user.user_type) == ("ada", True, False, "InternalUser")
        assert (user.external_id, user.phone_number, user.time_zone) == ("E-1", "+44 1", "Europe/London")
        assert not user.has_usable_password()
        assert UserPicture.objects.get(user=user).url == "https://pictures.example/ada.png"
        assert directory.send("get", f"/Users/{body['id']}").json() == body

    def test_a_taken_login_is_refused(self, directory: Directory) -> None:
        directory.user("ada")
        assert detail(directory.send("post", "/Users", {"userName": "ADA"})) == (409, "uniqueness")

    def test_wrong_values_are_refused_and_nothing_is_stored(self, directory: Directory) -> None:
        count = User.objects.count()
        for wrong in WRONG_VALUES:
            assert detail(directory.send("post", "/Users", {**ADA, **wrong})) == (400, "invalidValue"), wrong
        assert User.objects.count() == count

    def test_bodies_that_cannot_be_read(self, directory: Directory) -> None:
        for body in (b"{", b"[" * 100_000, b'{"userName": "\xff"}', b'{"userName": NaN}'):
            assert detail(directory.send("post", "/Users", body)) == (400, "invalidSyntax")
        assert detail(directory.send("post", "/Users", b"[]")) == (400, "invalidSyntax")
        large = b'{"userName": "' + b"x" * 1024 * 1024 + b'"}'
        assert detail(directory.send("post", "/Users", large))[0] == 413
        answer = directory.post("/scim/v2/Users", "userName=ada", content_type="application/x-www-form-urlencoded")
        assert detail(answer)[0] == 415

    def test_names_of_attributes_are_in_any_case(self, directory: Directory) -> None:
        assert (
            directory.send("post", "/Users", {"USERNAME": "ada", "displayname": "Ada"}).json()["displayName"] == "Ada"
        )


class TestReading:
    def test_filters(self, directory: Directory) -> None:
        directory.send("post", "/Users", ADA)
        directory.user("bob", externalId="E-2", active=False)
        for expression, found in FILTERS:
            answer = directory.get("/scim/v2/Users", {"filter": expression, "sortBy": "userName"})
            body = answer.json()
            assert answer.status_code == 200, body
            assert [each["userName"] for each in body["Resources"]] == found, expression
            assert body["totalResults"] == len(found)

    def test_system_users_do_not_exist(self, directory: Directory) -> None:
        service = User.objects.get(login="service")
        assert detail(directory.send("get", f"/Users/{service.pk}"))[0] == 404
        assert directory.get("/scim/v2/Users", {"filter": 'userName eq "service"'}).json()["totalResults"] == 0
        assert detail(directory.patch_user(service.pk, {"op": "replace", "path": "active", "value": False}))[0] == 404

    def test_pages(self, directory: Directory) -> None:
        for number in range(5):
            directory.user(f"user-{number}")
        query = {"filter": 'userName sw "user-"', "sortBy": "userName", "sortOrder": "descending", "count": "2"}
        pages = [
            directory.get("/scim/v2/Users", {**query, "startIndex": start}).json() for start in ("1", "3", "5", "7")
        ]
        assert [[each["userName"][-1] for each in page["Resources"]] for page in pages] == [
            ["4", "3"], ["2", "1"], ["0"], [],
        ]  # fmt: skip
        assert {page["totalResults"] for page in pages} == {5}
        for few in ("0", "-5"):
            assert directory.get("/scim/v2/Users", {**query, "startIndex": few}).json()["startIndex"] == 1
            assert directory.get("/scim/v2/Users", {**query, "count": few}).json()["Resources"] == []

    def test_wrong_parameters(self, directory: Directory) -> None:
        for query, scim_type in WRONG_PARAMETERS:
            assert detail(directory.send("get", f"/Users?{query}")) == (400, scim_type), query

    def test_chosen_attributes(self, directory: Directory) -> None:
        ada = directory.user("ada", displayName="Ada")
        found = directory.send("get", f"/Users/{ada['id']}?attributes=userName").json()
        assert set(found) == {"schemas", "id", "meta", "userName"}
        found = directory.send("get", f"/Users/{ada['id']}?excludedAttributes=displayName,id").json()
        assert "displayName" not in found
        assert "id" in found

    def test_versions(self, directory: Directory) -> None:
        ada = directory.user("ada")
        tag = ada["meta"]["version"]
        assert directory.send("get", f"/Users/{ada['id']}", **{"If-None-Match": tag}).status_code == 304
        change = {"op": "replace", "path": "displayName", "value": "Ada"}
        assert directory.patch_user(ada["id"], change, **{"If-Match": tag}).status_code == 200
        assert detail(directory.patch_user(ada["id"], change, **{"If-Match": tag}))[0] == 412
        assert detail(directory.send("delete", f"/Users/{ada['id']}", **{"If-Match": tag}))[0] == 412
        assert directory.send("delete", f"/Users/{ada['id']}", **{"If-Match": "*"}).status_code == 204


class TestChanges:
    def test_put_replaces(self, directory: Directory) -> None:
        ada = directory.send("post", "/Users", ADA).json()
        body = {"userName": "ada.lovelace", "displayName": "Countess", "active": True}
        changed = directory.send("put", f"/Users/{ada['id']}", body).json()
        assert (changed["userName"], changed["displayName"]) == ("ada.lovelace", "Countess")
        assert not {"emails", "phoneNumbers", "externalId", "photos"} & set(changed)

    @pytest.mark.parametrize(
        "operation, attribute, value",
        [
            ({"op": "Replace", "path": "userName", "value": "lovelace"}, "userName", "lovelace"),
            ({"op": "replace", "value": {"displayName": "Countess", "id": "x"}}, "displayName", "Countess"),
            ({"op": "replace", "path": "name.formatted", "value": "Countess"}, "displayName", "Countess"),
            ({"op": "add", "value": {"name.formatted": "Countess"}}, "displayName", "Countess"),
            ({"op": "Replace", "path": "active", "value": "False"}, "active", False),
            (
                {"op": "replace", "path": 'emails[type eq "work"].value', "value": "a@b.example"},
                "emails",
                "a@b.example",
            ),
            (
                {"op": "add", "path": "emails", "value": [{"value": "a@b.example", "primary": True}]},
                "emails",
                "a@b.example",
            ),
            ({"op": "remove", "path": "emails"}, "emails", None),
            ({"op": "remove", "path": 'emails[value ew "example.com"]'}, "emails", None),
            ({"op": "remove", "path": "externalId"}, "externalId", None),
            ({"op": "replace", "path": "phoneNumbers", "value": [{"value": "7"}]}, "phoneNumbers", "7"),
        ],
    )
    def test_patch(self, directory: Directory, operation: dict[str, Any], attribute: str, value: Any) -> None:
        ada = directory.send("post", "/Users", ADA).json()
        answer = directory.patch_user(ada["id"], operation)
        assert answer.status_code == 200, answer.content
        found = answer.json().get(attribute)
        assert (found[0]["value"] if isinstance(found, list) else found) == value

    def test_an_address_is_added_where_there_is_none(self, directory: Directory) -> None:
        ada = directory.user("ada")
        operation = {"op": "add", "path": 'emails[type eq "work"].value', "value": "ada@example.com"}
        assert directory.patch_user(ada["id"], operation).json()["emails"][0]["value"] == "ada@example.com"
        bob = directory.user("bob")
        assert detail(directory.patch_user(bob["id"], {**operation, "op": "replace"})) == (400, "noTarget")

    def test_wrong_operations(self, directory: Directory) -> None:
        ada = directory.send("post", "/Users", ADA).json()
        before = {"op": "replace", "path": "timezone", "value": "X"}
        for operation, scim_type in WRONG_OPERATIONS:
            assert detail(directory.patch_user(ada["id"], before, operation)) == (400, scim_type), operation
        assert directory.send("get", f"/Users/{ada['id']}").json() == ada

    def test_bodies_without_operations(self, directory: Directory) -> None:
        ada = directory.user("ada")
        bodies: list[dict[str, Any]] = [{}, {"Operations": []}, {"Operations": "x"}, {"Operations": ["x"]}]
        for body in bodies:
            assert detail(directory.send("patch", f"/Users/{ada['id']}", body)) == (400, "invalidSyntax")
        many = {"Operations": [{"op": "remove", "path": "timezone"}] * 1001}
        assert detail(directory.send("patch", f"/Users/{ada['id']}", many))[0] == 413

    def test_values_of_other_kinds_are_refused(self, directory: Directory) -> None:
        ada = directory.send("post", "/Users", ADA).json()
        for path, value in (
            ("name", 7),
            ("emails", [[1]]),
            ("displayName", {"a": []}),
            ("active", None),
            ("photos", {}),
        ):
            answer = directory.patch_user(ada["id"], {"op": "replace", "path": path, "value": value})
            assert answer.status_code == 400, (path, answer.content)


class TestLeavers:
    def test_deactivation_ends_sessions_and_tokens(self, directory: Directory, browser: Browser) -> None:
        tokens = browser.tokens(scope="openid offline_access read")
        ask = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert Client().get("/api/domain/odata/", headers=ask).status_code == 200
        assert browser.client.get("/profile/me").status_code == 200
        demo = User.objects.get(login="demo")
        answer = directory.patch_user(str(demo.pk), {"op": "replace", "path": "active", "value": False})
        assert answer.json()["active"] is False
        assert Client().get("/api/domain/odata/", headers=ask).status_code == 401
        assert browser.client.get("/profile/me").status_code == 401
        assert not Session.objects.filter(user=demo, closed=None).exists()
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        answer = browser.client.post(
            "/id/connect/token", {**form, "client_id": "WebDemoClient", "client_secret": "DEMO"}
        )
        assert answer.status_code == 400
        # Nor does what was issued before work for one who comes back.
        directory.patch_user(str(demo.pk), {"op": "replace", "path": "active", "value": True})
        assert Client().get("/api/domain/odata/", headers=ask).status_code == 401

    def test_a_deleted_user_is_gone_and_the_login_stays_reserved(self, directory: Directory) -> None:
        ada = directory.send("post", "/Users", ADA).json()
        role = directory.send("post", "/Groups", {"displayName": "Crew", "members": [{"value": ada["id"]}]}).json()
        assert directory.send("delete", f"/Users/{ada['id']}").status_code == 204
        for method in ("get", "delete"):
            assert detail(directory.send(method, f"/Users/{ada['id']}"))[0] == 404
        assert directory.get("/scim/v2/Users", {"filter": 'externalId eq "E-1"'}).json()["totalResults"] == 0
        assert "members" not in role or directory.send("get", f"/Groups/{role['id']}").json()["members"] == []
        assert detail(directory.send("post", "/Users", {"userName": "Ada"})) == (409, "uniqueness")
        row = User.objects.get(pk=ada["id"])
        assert (row.login, row.active) == ("ada", False)
        assert not RoleUser.objects.filter(user=row).exists()

    def test_a_login_once_used_is_never_given_to_another(self, directory: Directory) -> None:
        ada, bob = directory.user("ada"), directory.user("bob")
        rename = {"op": "replace", "path": "userName"}
        assert directory.patch_user(ada["id"], {**rename, "value": "lovelace"}).status_code == 200
        assert detail(directory.patch_user(bob["id"], {**rename, "value": "Ada"})) == (409, "uniqueness")
        assert detail(directory.send("post", "/Users", {"userName": "ada"})) == (409, "uniqueness")
        assert directory.patch_user(ada["id"], {**rename, "value": "ada"}).status_code == 200

    def test_an_administrator_who_activates_a_deleted_user_brings_the_user_back(self, directory: Directory) -> None:
        ada = directory.user("ada")
        directory.send("delete", f"/Users/{ada['id']}")
        dataset = Dataset(system_context())
        record = dataset.load("Systems.Security.Users", ada["id"])
        assert record is not None
        dataset.set(record, "Active", True)
        dataset.commit()
        assert directory.send("get", f"/Users/{ada['id']}").json()["active"] is True


class TestTimes:
    def test_created_and_changed(self, directory: Directory) -> None:
        before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
        ada = directory.user("ada")
        assert datetime.datetime.fromisoformat(ada["meta"]["created"]) > before
        query = {"filter": f'meta.lastModified gt "{before.isoformat()}"'}
        assert directory.get("/scim/v2/Users", query).json()["totalResults"] == 1


def test_the_catalogue(directory: Directory) -> None:
    config = directory.send("get", "/ServiceProviderConfig").json()
    assert (config["patch"]["supported"], config["bulk"]["supported"], config["etag"]["supported"]) == (
        True,
        False,
        True,
    )
    types = directory.send("get", "/ResourceTypes").json()
    assert [each["endpoint"] for each in types["Resources"]] == ["/Users", "/Groups"]
    for path in [f"/ResourceTypes/{each['id']}" for each in types["Resources"]]:
        assert directory.send("get", path).status_code == 200
    schemas = directory.send("get", "/Schemas").json()["Resources"]
    for schema in schemas:
        assert directory.send("get", f"/Schemas/{schema['id']}").json() == schema
    assert detail(directory.send("get", "/Schemas/urn:nothing"))[0] == 404
    assert detail(directory.send("get", "/Schemas?filter=x"))[0] == 403
    assert detail(directory.send("post", "/Bulk", {}))[0] == 404
    assert detail(directory.send("get", "/Me"))[0] == 404
    assert detail(directory.send("post", "/ServiceProviderConfig", {}))[0] == 405


def test_without_a_token(demo: None) -> None:
    answer = APIClient().get("/scim/v2/Users")
    assert (detail(answer), answer.headers["WWW-Authenticate"]) == ((401, ""), "Bearer")
