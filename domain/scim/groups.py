"""Roles as SCIM groups. A new role has no rights: administrators grant them. Members are people (domain.scim.users)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import QuerySet
from rest_framework import serializers

from domain.dataset.dataset import Dataset
from domain.scim.conditions import Column
from domain.scim.errors import ScimError
from domain.scim.resources import GROUP, Resource
from domain.scim.users import USERS, visible_users
from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.context import CallContext
from identity.models import Role, RoleUser

ROLES: Final = "Systems.Security.Roles"
ROLE_USERS: Final = "Systems.Security.RoleUsers"
MAX_MEMBERS: Final = 10_000
ATTRIBUTES: Final[Mapping[str, bool]] = {"displayName": False, "externalId": False, "members": True}
COLUMNS: Final[Mapping[str, Column]] = {
    "id": Column("guid", "pk"),
    "externalid": Column("exact", "external_id"),
    "displayname": Column("text", "name"),
    "members": Column("guid", "role_users__user__pk"),
    "members.value": Column("guid", "role_users__user__pk"),
    "meta.lastmodified": Column("time", "aggregate_last_update_time_utc"),
}


class _MemberSerializer(serializers.Serializer[Any]):
    value = serializers.UUIDField()


class GroupSerializer(serializers.Serializer[Any]):
    """The attributes that a client may write."""

    displayName = serializers.CharField(max_length=254)
    externalId = serializers.CharField(max_length=64, required=False, allow_null=True, allow_blank=True)
    members = serializers.ListField(child=_MemberSerializer(), required=False, allow_null=True, max_length=MAX_MEMBERS)


def visible_groups() -> QuerySet[Role]:
    """All roles."""
    return Role.objects.all()


def group_get(role_id: str, *, lock: bool = False) -> Role:
    """The role, locked until the end of the transaction. Raises NotFound."""
    roles = Role.objects.select_for_update() if lock else Role.objects.all()
    role = roles.filter(pk=role_id).first() if is_guid(role_id) else None
    if role is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "Group", role_id)
    return role


def group_resources(roles: Iterable[Role], root: str) -> list[Resource]:
    """The roles with their members; two queries, whatever their number."""
    shown = list(roles)
    members: dict[str, dict[str, str]] = defaultdict(dict)
    held = RoleUser.objects.filter(role__in=shown, user__in=visible_users()).order_by("user__login")
    for role_id, user_id, login in held.values_list("role_id", "user_id", "user__login"):
        members[str(role_id)][str(user_id)] = login
    return [_resource(role, members[str(role.pk)], root) for role in shown]


def _resource(role: Role, members: Mapping[str, str], root: str) -> Resource:
    result: Resource = {
        "schemas": [GROUP],
        "id": str(role.pk),
        "externalId": role.external_id,
        "displayName": role.name,
        "members": [
            {"value": user_id, "display": login, "$ref": f"{root}/Users/{user_id}"}
            for user_id, login in members.items()
        ],
        "meta": {"resourceType": "Group", "location": f"{root}/Groups/{role.pk}"},
    }
    if role.aggregate_last_update_time_utc:
        result["meta"]["lastModified"] = utc_text(role.aggregate_last_update_time_utc)
    return {name: value for name, value in result.items() if value is not None}


def group_create(context: CallContext, body: Resource) -> str:
    """Create a role with members and without rights. Returns the guid."""
    data = _validated(body)
    dataset = Dataset(context)
    values = {"Name": data["displayName"], "ExternalId": data.get("externalId") or None}
    role = dataset.create(ROLES, values, by_client=True)
    _set_members(dataset, role.id, set(), _members(data))
    dataset.commit()
    return role.id


def group_update(context: CallContext, role: Role, body: Resource) -> None:
    """Store the resource as the new state of the role. Keeps memberships of system users."""
    data = _validated(body)
    dataset = Dataset(context)
    record = dataset.load(ROLES, str(role.pk))
    assert record is not None
    for name, value in {"Name": data["displayName"], "ExternalId": data.get("externalId") or None}.items():
        if record.values.get(name) != value:
            dataset.set(record, name, value)
    _set_members(dataset, str(role.pk), _held(role), _members(data))
    dataset.commit()


def group_remove(context: CallContext, role: Role) -> None:
    """Delete the role with its memberships. Refused if an administrator has given it rights."""
    if role.permissions.exists() or role.row_policies.exists():
        raise ScimError(409, Message("{0} has rights, which an administrator has given to it.", role.name))
    dataset = Dataset(context)
    _set_members(dataset, str(role.pk), _held(role), set())
    record = dataset.load(ROLES, str(role.pk))
    assert record is not None
    dataset.delete(record, by_client=True)
    dataset.commit()


def _set_members(dataset: Dataset, role_id: str, held: set[str], wanted: set[str]) -> None:
    users = dataset.load_many(USERS, sorted(held ^ wanted))
    known = {str(pk) for pk in visible_users().filter(pk__in=wanted - held).values_list("pk", flat=True)}
    if unknown := sorted(wanted - held - known):
        raise ScimError(400, Message("members: there is no user {0}.", unknown[0]), "invalidValue")
    dataset.load_children(list(users.values()), "RoleUsers")
    for user_id, user in users.items():
        if user_id in wanted:
            dataset.create(ROLE_USERS, {"Role": role_id}, parent=user, collection="RoleUsers", by_client=True)
            continue
        for membership in dataset.children(user, "RoleUsers"):
            if membership.role_id == role_id:
                dataset.delete(membership, by_client=True)


def _held(role: Role) -> set[str]:
    """Guids of the people who have the role."""
    held = RoleUser.objects.filter(role=role, user__in=visible_users()).values_list("user_id", flat=True)
    return {str(user_id) for user_id in held}


def _members(data: Resource) -> set[str]:
    return {str(member["value"]) for member in data.get("members") or ()}


def _validated(body: Resource) -> Resource:
    serializer = GroupSerializer(data=body)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
