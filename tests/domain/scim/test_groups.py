"""SCIM groups are roles: members and names come from the directory, rights from administrators."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from typing import Any

import pytest
import requests

from identity.models import Role, RolePermission, RoleUser, User
from tests.domain.scim.conftest import Directory
from tests.domain.scim.test_users import detail
from tests.support.platform import LivePlatform

pytestmark = pytest.mark.django_db


def members(group: dict[str, Any]) -> set[str]:
    return {each["display"] for each in group["members"]}


def patch(directory: Directory, group: dict[str, Any], **operation: Any) -> Any:
    return directory.send("patch", f"/Groups/{group['id']}", {"Operations": [operation]})


@pytest.fixture
def crew(directory: Directory) -> dict[str, Any]:
    """A group of Ada."""
    ada = directory.user("ada")
    body = {"displayName": "Crew", "externalId": "G-1", "members": [{"value": ada["id"]}]}
    answer = directory.send("post", "/Groups", body)
    assert answer.status_code == 201, answer.content
    result: dict[str, Any] = answer.json()
    return result


def test_a_new_group_is_a_role_without_rights(directory: Directory, crew: dict[str, Any]) -> None:
    role = Role.objects.get(pk=crew["id"])
    assert (role.name, role.external_id, role.is_active) == ("Crew", "G-1", True)
    assert not role.permissions.exists()
    assert members(crew) == {"ada"}
    ada = directory.send("get", f"/Users/{crew['members'][0]['value']}").json()
    assert [(each["value"], each["display"]) for each in ada["groups"]] == [(crew["id"], "Crew")]


def test_members_come_and_go(directory: Directory, crew: dict[str, Any]) -> None:
    bob = directory.user("bob")["id"]
    ada = crew["members"][0]["value"]
    assert members(patch(directory, crew, op="add", path="members", value=[{"value": bob}]).json()) == {"ada", "bob"}
    assert members(patch(directory, crew, op="Add", path="members", value=[{"value": bob}]).json()) == {"ada", "bob"}
    assert members(patch(directory, crew, op="remove", path=f'members[value eq "{ada}"]').json()) == {"bob"}
    assert members(patch(directory, crew, op="Remove", path="members", value=[{"value": bob}]).json()) == set()
    assert members(patch(directory, crew, op="replace", path="members", value=[{"value": ada}]).json()) == {"ada"}
    assert members(patch(directory, crew, op="remove", path="members").json()) == set()
    renamed = patch(directory, crew, op="replace", value={"id": crew["id"], "displayName": "Sailors"}).json()
    assert renamed["displayName"] == "Sailors"


def test_put_replaces_members_and_leaves_those_of_system_users(directory: Directory, crew: dict[str, Any]) -> None:
    service = User.objects.get(login="service")
    RoleUser.objects.create(user=service, role_id=crew["id"])
    bob = directory.user("bob")["id"]
    body = {"displayName": "Crew", "members": [{"value": bob}]}
    assert members(directory.send("put", f"/Groups/{crew['id']}", body).json()) == {"bob"}
    assert set(RoleUser.objects.filter(role_id=crew["id"]).values_list("user__login", flat=True)) == {"bob", "service"}


def test_filters(directory: Directory, crew: dict[str, Any]) -> None:
    ada = crew["members"][0]["value"]
    for expression in (
        'displayName eq "crew"',
        'externalId eq "G-1"',
        f'members.value eq "{ada}"',
        f'members eq "{ada}"',
    ):
        body = directory.get("/scim/v2/Groups", {"filter": expression, "excludedAttributes": "members"}).json()
        assert [each["id"] for each in body["Resources"]] == [crew["id"]], expression
        assert "members" not in body["Resources"][0]


@pytest.mark.parametrize(
    "body, status",
    [
        ({}, 400),
        ({"displayName": ""}, 400),
        ({"displayName": "Crew"}, 409),
        ({"displayName": "New", "members": [{"value": "nobody"}]}, 400),
        ({"displayName": "New", "members": [{"value": "00000000-0000-4000-8000-000000000000"}]}, 400),
        ({"displayName": "New", "members": [{}]}, 400),
        ({"displayName": "New", "members": "ada"}, 400),
    ],
)
def test_wrong_groups(directory: Directory, crew: dict[str, Any], body: dict[str, Any], status: int) -> None:
    count = Role.objects.count()
    assert detail(directory.send("post", "/Groups", body))[0] == status
    assert Role.objects.count() == count


def test_a_system_user_becomes_no_member(directory: Directory, crew: dict[str, Any]) -> None:
    service = User.objects.get(login="service")
    answer = patch(directory, crew, op="add", path="members", value=[{"value": str(service.pk)}])
    assert detail(answer) == (400, "invalidValue")


def test_deletion(directory: Directory, crew: dict[str, Any]) -> None:
    assert directory.send("delete", f"/Groups/{crew['id']}").status_code == 204
    assert detail(directory.send("get", f"/Groups/{crew['id']}"))[0] == 404
    assert not RoleUser.objects.filter(role_id=crew["id"]).exists()


def test_a_role_with_rights_is_not_deleted(directory: Directory, crew: dict[str, Any]) -> None:
    RolePermission.objects.create(role_id=crew["id"], repository="Crm.*", can_read=True)
    assert detail(directory.send("delete", f"/Groups/{crew['id']}"))[0] == 409
    assert RoleUser.objects.filter(role_id=crew["id"]).exists()


@pytest.mark.process
@pytest.mark.once
def test_a_large_body_is_received_of_a_directory_alone(live_platform: LivePlatform) -> None:
    """The web server asks who sends more than 64 KB."""
    register = ["register_app", "directory", "--service", "--system-user", "service", "--scope", "scim", "--json"]
    command = [sys.executable, "manage.py", *register]
    ran = subprocess.run(command, env=dict(live_platform.environment), check=True, capture_output=True, text=True)
    form = {"grant_type": "client_credentials", **json.loads(ran.stdout)}
    token = requests.post(f"{live_platform.base_url}/id/connect/token", data=form, timeout=60).json()["access_token"]
    body = {"displayName": "Large", "members": [{"value": str(uuid.uuid4()), "display": "x" * 100}] * 700}

    def sent(credential: str) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {credential}"}
        answer = requests.post(f"{live_platform.base_url}/scim/v2/Groups", json=body, headers=headers, timeout=60)
        return answer.status_code, answer.json()["detail"]

    status, text = sent(token)
    assert (status, "there is no user" in text) == (400, True)
    assert sent("enrt_" + "0" * 64)[0] == 401
