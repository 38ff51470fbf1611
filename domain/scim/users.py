"""Users as SCIM resources: read by the ORM, written by the dataset, so that rules, audit and rights apply.

SCIM does not show system users. A directory can only deactivate administrators: a provisioning client must not be able
to take over an administrator's account by a new e-mail address, or to make a user an administrator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import connection
from django.db.models import Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from rest_framework import serializers

from domain.dataset.dataset import Dataset
from domain.scim.conditions import Column
from domain.scim.errors import ScimError
from domain.scim.resources import USER, Resource
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.context import CallContext
from identity.models import RoleUser, User
from identity.pictures import PictureRefused, picture_link, picture_remove

USERS: Final = "Systems.Security.Users"
#: Writable attribute → whether it is multi-valued.
ATTRIBUTES: Final[Mapping[str, bool]] = {
    "userName": False,
    "externalId": False,
    "displayName": False,
    "name": False,
    "emails": True,
    "phoneNumbers": True,
    "photos": True,
    "active": False,
    "userType": False,
    "preferredLanguage": False,
    "timezone": False,
}
_TIMES: Final = {
    "meta.lastmodified": Column("time", "aggregate_last_update_time_utc"),
}
COLUMNS: Final[Mapping[str, Column]] = {
    "id": Column("guid", "pk"),
    "externalid": Column("exact", "external_id"),
    "username": Column("text", "login"),
    "displayname": Column("text", "english_name"),
    "name.formatted": Column("text", "english_name"),
    "emails": Column("text", "email"),
    "emails.value": Column("text", "email"),
    "emails.type": Column("constant", "email", "work"),
    "emails.primary": Column("constant", "email", True),
    "phonenumbers": Column("text", "phone_number"),
    "phonenumbers.value": Column("text", "phone_number"),
    "phonenumbers.type": Column("constant", "phone_number", "work"),
    "active": Column("bool", "active"),
    "usertype": Column("text", "user_type"),
    "preferredlanguage": Column("text", "default_language"),
    "timezone": Column("text", "time_zone"),
    "groups": Column("guid", "roles__pk"),
    "groups.value": Column("guid", "roles__pk"),
    "meta.created": Column("time", "creation_time_utc"),
    **_TIMES,
}


class _NameSerializer(serializers.Serializer[Any]):
    formatted = serializers.CharField(max_length=254, required=False, allow_null=True, allow_blank=True)
    givenName = serializers.CharField(max_length=120, required=False, allow_null=True, allow_blank=True)
    familyName = serializers.CharField(max_length=120, required=False, allow_null=True, allow_blank=True)


class _EmailSerializer(serializers.Serializer[Any]):
    value = serializers.EmailField(max_length=254)
    primary = serializers.BooleanField(required=False, default=False)


class _PhoneSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(max_length=64)
    primary = serializers.BooleanField(required=False, default=False)


class _PhotoSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(max_length=2000)
    primary = serializers.BooleanField(required=False, default=False)


class UserSerializer(serializers.Serializer[Any]):
    """The attributes that a client may write; ignores unknown and read-only ones (RFC 7644, 3.3)."""

    userName = serializers.CharField(max_length=64)
    externalId = serializers.CharField(max_length=64, required=False, allow_null=True, allow_blank=True)
    displayName = serializers.CharField(max_length=254, required=False, allow_null=True, allow_blank=True)
    name = _NameSerializer(required=False, allow_null=True)
    emails = _EmailSerializer(many=True, required=False, allow_null=True)
    phoneNumbers = _PhoneSerializer(many=True, required=False, allow_null=True)
    photos = _PhotoSerializer(many=True, required=False, allow_null=True)
    active = serializers.BooleanField(required=False)
    userType = serializers.ChoiceField(["InternalUser", "ExternalCommunityUser"], required=False)
    preferredLanguage = serializers.CharField(max_length=15, required=False, allow_null=True, allow_blank=True)
    timezone = serializers.CharField(max_length=64, required=False, allow_null=True, allow_blank=True)


def visible_users() -> QuerySet[User]:
    """The users that a directory sees: people whom it has not deleted, with their English name."""
    people = User.objects.exclude(user_type="SystemUserNoLogin").filter(provisioning_removed=False)
    return people.select_related("picture").annotate(english_name=_english_name())


def _english_name() -> Func:
    if connection.vendor == "postgresql":
        document: Any = Func(Cast("name", TextField()), template="%(expressions)s::jsonb")
        return Func(document, Value("EN"), function="jsonb_extract_path_text", output_field=TextField())
    return Func("name", Value("$.EN"), function="json_extract", output_field=TextField())


def user_get(user_id: str, *, lock: bool = False) -> User:
    """The user, locked until the end of the transaction. Raises NotFound."""
    if lock:
        User.objects.select_for_update().filter(pk=user_id).first()
    user = visible_users().filter(pk=user_id).first()
    if user is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "User", user_id)
    return user


def user_resources(users: Iterable[User], root: str) -> list[Resource]:
    """The users with their roles; two queries, whatever their number."""
    shown = list(users)
    roles: dict[str, dict[str, str]] = defaultdict(dict)
    held = RoleUser.objects.filter(user__in=shown).order_by("role__name")
    for user_id, role_id, name in held.values_list("user_id", "role_id", "role__name"):
        roles[str(user_id)][str(role_id)] = name
    return [_resource(user, roles[str(user.pk)], root) for user in shown]


def _resource(user: User, roles: Mapping[str, str], root: str) -> Resource:
    name = user.display_name()
    result: Resource = {
        "schemas": [USER],
        "id": str(user.pk),
        "externalId": user.external_id,
        "userName": user.login,
        "displayName": name,
        "name": {"formatted": name},
        "emails": _one(user.email),
        "phoneNumbers": _one(user.phone_number),
        "photos": _one(_picture_url(user), type_="photo"),
        "active": user.active,
        "userType": user.user_type,
        "preferredLanguage": user.default_language,
        "timezone": user.time_zone,
        "groups": [
            {"value": role_id, "display": name, "$ref": f"{root}/Groups/{role_id}"} for role_id, name in roles.items()
        ],
        "meta": {
            "resourceType": "User",
            "created": utc_text(user.creation_time_utc),
            "lastModified": utc_text(user.aggregate_last_update_time_utc or user.creation_time_utc),
            "location": f"{root}/Users/{user.pk}",
        },
    }
    return {name: value for name, value in result.items() if value not in (None, [])}


def _one(value: str | None, type_: str = "work") -> list[Resource]:
    return [{"value": value, "type": type_, "primary": True}] if value else []


def _picture_url(user: User) -> str:
    picture = getattr(user, "picture", None)
    return picture.url if picture is not None else ""


def user_create(context: CallContext, body: Resource) -> str:
    """Create a user without a password. Returns the guid. Raises PlatformError and DRF's ValidationError."""
    data = _validated(body)
    dataset = Dataset(context)
    values = {**_attributes(data, None), "UserType": data.get("userType", "InternalUser")}
    record = dataset.create(USERS, {**values, "Active": data.get("active", True)}, by_client=True)
    dataset.commit()
    _store_photo(record.id, data)
    return record.id


def user_update(context: CallContext, user: User, body: Resource) -> None:
    """Store the resource as the new state of the user. Raises as `user_create`."""
    data = _validated(body)
    values = _attributes(data, user)
    values["Active"] = data.get("active", user.active)
    values["UserType"] = data.get("userType", user.user_type)
    dataset = Dataset(context)
    record = dataset.load(USERS, str(user.pk))
    assert record is not None
    changed = {name: value for name, value in values.items() if record.values.get(name) != value}
    if user.is_admin:
        _check_administrator(user, changed, photo=_photo_of(data) != _picture_url(user))
    for name, value in changed.items():
        dataset.set(record, name, value)
    dataset.commit()
    if _photo_of(data) != _picture_url(user):
        _store_photo(str(user.pk), data)


def user_remove(context: CallContext, user: User) -> None:
    """Deactivate the user, remove the roles, and hide the user from the directory. The login stays reserved."""
    if user.is_admin:
        raise _administrator(user)
    dataset = Dataset(context)
    record = dataset.load(USERS, str(user.pk))
    assert record is not None
    dataset.set(record, "Active", False)
    for membership in dataset.children(record, "RoleUsers"):
        dataset.delete(membership, by_client=True)
    dataset.commit()
    User.objects.filter(pk=user.pk).update(provisioning_removed=True)


def _check_administrator(user: User, changed: Mapping[str, Any], *, photo: bool) -> None:
    if not changed and not photo:
        return
    if photo or set(changed) != {"Active"} or changed["Active"]:
        raise _administrator(user)
    people = User.objects.filter(Q(is_admin=True, active=True) & ~Q(user_type="SystemUserNoLogin"))
    # Lock all administrators, so that the second of two concurrent requests sees the first one's change.
    locked = people.select_for_update().order_by("pk").values_list("pk", flat=True)
    if not any(pk != user.pk for pk in locked):
        raise ScimError(403, Message("{0} is the last active administrator.", user.login))


def _administrator(user: User) -> ScimError:
    return ScimError(403, Message("{0} is an administrator, whom provisioning can only deactivate.", user.login))


def _validated(body: Resource) -> Resource:
    serializer = UserSerializer(data=body)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _attributes(data: Resource, user: User | None) -> dict[str, Any]:
    """The attributes of the entity; missing ones are cleared (RFC 7644, 3.5.1)."""
    return {
        "Login": data["userName"],
        "Name": _name(data, user),
        "Email": _first(data.get("emails")) or None,
        "PhoneNumber": _first(data.get("phoneNumbers")) or None,
        "DefaultLanguage": data.get("preferredLanguage") or None,
        "TimeZone": data.get("timezone") or None,
        "ExternalId": data.get("externalId") or None,
    }


def _name(data: Resource, user: User | None) -> dict[str, str]:
    """displayName or name.formatted, whichever is new; a changed name replaces those of other languages, too."""
    name = data.get("name") or {}
    parts = " ".join(part for part in (name.get("givenName"), name.get("familyName")) if part)
    given = [text for text in (data.get("displayName"), name.get("formatted")) if text]
    given = given or ([parts] if parts else [data["userName"]])
    if user is None:
        return {"EN": given[0]}
    known = user.display_name()
    new = next((text for text in given if text != known), None)
    return dict(user.name or {"EN": known}) if new is None else {"EN": new}


def _first(values: list[Resource] | None) -> str:
    """The last primary value, else the first value: clients append a new primary value to the old ones."""
    primary = [each for each in values or () if each.get("primary")]
    chosen = primary[-1:] or (values or [])[:1]
    return str(chosen[0]["value"]) if chosen else ""


def _photo_of(data: Resource) -> str:
    return _first(data.get("photos"))


def _store_photo(user_id: str, data: Resource) -> None:
    """Store the directory's picture URL; without one, remove an earlier picture URL but keep an uploaded picture."""
    try:
        if url := _photo_of(data):
            picture_link(user_id, url)
        else:
            _forget_photo(user_id)
    except PictureRefused as refused:
        raise ScimError(400, errors.reason(refused), "invalidValue") from refused


def _forget_photo(user_id: str) -> None:
    user = User.objects.select_related("picture").get(pk=user_id)
    if _picture_url(user):
        picture_remove(user_id)
