"""Sections of a configuration document for tables without repository: permissions, row policies, event sinks.

Passwords of sinks are never exported: for a mask, the instance keeps its password, provided that the servers are the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.db.models import Field

from event_sinks.brokers.target import SENT_TO, check_destination, target_of
from event_sinks.delivery import context_for, sink_begin, sink_retry, subscription_for
from event_sinks.models import EventSink
from foundation.errors import PlatformError
from foundation.messages import reason_of
from identity.models import Role, RolePermission, RowPolicy, User
from webhooks.headers import MASK

Values = dict[str, Any]


class ConfigurationError(Exception):
    """The document cannot be read or applied; the message is for people."""


class TableSection(Protocol):
    """One kind of object. name: of the section. noun: name of one object, in the diff."""

    @property
    def name(self) -> str: ...

    @property
    def noun(self) -> str: ...

    def exported(self) -> dict[str, Values]:
        """The objects of this instance by key, without default values."""

    def normal(self, key: str, values: Values) -> Values:
        """An object of a document in the form of an export. Raises ConfigurationError."""

    def apply(self, key: str, here: Values | None, there: Values | None, notes: list[str]) -> None:
        """Create, change or delete the object; None: it does not exist here or there. Adds manual steps to the notes.

        Raises ConfigurationError.
        """


def named_user(login: str, notes: list[str]) -> tuple[User, bool]:
    """(user, whether it was created now). A new user cannot sign in, and has no permissions without roles."""
    user = User.objects.filter(login=login).first()
    if user is not None:
        return user, False
    names: Values = {"name": {"EN": login}}
    user = User(login=login, user_type="SystemUserNoLogin", **names)
    user.set_unusable_password()
    user.save()
    notes.append(f"The system user {login} was made; it has no roles yet.")
    return user, True


@dataclass(frozen=True, slots=True)
class RoleSection:
    """A table of roles, such as permissions; a section maps role/repository to the members.

    members   names of members besides role and repository
    switches  boolean member → its default, which an export leaves out
    """

    name: str
    noun: str
    model: type[RolePermission] | type[RowPolicy]
    switches: Mapping[str, bool]
    members: tuple[str, ...] = ()

    def exported(self) -> dict[str, Values]:
        """The rows by role and repository, numbered if a role has several for a repository."""
        result: dict[str, Values] = {}
        rows = self.model._default_manager.select_related("role")
        for row in rows.order_by("role__name", "repository", *self.members[:1], "id"):
            key, number = f"{row.role.name}/{row.repository}", 1
            while (numbered := key if number == 1 else f"{key}/{number}") in result:
                number += 1
            result[numbered] = self._values(row)
        return result

    def _values(self, row: RolePermission | RowPolicy) -> Values:
        values: Values = {"role": row.role.name, "repository": row.repository}
        values |= {name: value for name in self.members if (value := getattr(row, name))}
        switches = {name: getattr(row, name) for name in self.switches}
        return values | {name: on for name, on in switches.items() if on != self.switches[name]}

    def normal(self, key: str, values: Values) -> Values:
        """Adds the members for role and repository, if they are only in the key: Role/Repository/2."""
        role, _, repository = key.partition("/")
        named = {"role": role, "repository": repository.partition("/")[0]}
        return named | {name: on for name, on in values.items() if self.switches.get(name) != on}

    def apply(self, key: str, here: Values | None, there: Values | None, notes: list[str]) -> None:
        """Replace the row."""
        if here is not None:
            rows = self.model._default_manager.filter(role__name=here["role"], repository=here["repository"])
            stored = next((row for row in rows if self._values(row) == here), None)
            if stored is None:
                raise ConfigurationError(f"{self.noun} {key}: it has been changed meanwhile; import again.")
            stored.delete()
        if there is None:
            return
        values = dict(there)
        role, made = Role.objects.get_or_create(name=values.pop("role"))
        if made:
            notes.append(f"The role {role.name} was made; it has no users yet.")
        try:
            row = self.model(role=role, **values)
            row.full_clean()
        except (TypeError, ValidationError) as exc:
            raise ConfigurationError(f"{self.noun} {key}: {exc}") from exc
        row.save()


class SinkSection:
    """Event sinks by name, with the reader by login. Positions in the change feed are not exported."""

    name, noun = "event_sinks", "event sink"

    def exported(self) -> dict[str, Values]:
        """The sinks by name."""
        logins = dict(User.objects.filter(pk__in=EventSink.objects.values("reader_id")).values_list("pk", "login"))
        return {
            sink.name: self.normal(
                sink.name,
                {
                    **{name: getattr(sink, name) for name in _SINK_MEMBERS},
                    "password": MASK if sink.password else "",
                    "reader": logins.get(sink.reader_id, ""),
                },
            )
            for sink in EventSink.objects.all()
        }

    def normal(self, key: str, values: Values) -> Values:
        """As for other sections. Refuses a password in clear text, before a diff shows it."""
        if values.get("password") not in (None, "", MASK):
            raise ConfigurationError(f"{self.noun} {key}: enter the password in the admin, and {MASK} in the document.")
        return {name: value for name, value in values.items() if _sink_defaults().get(name) != value}

    def apply(self, key: str, here: Values | None, there: Values | None, notes: list[str]) -> None:
        """Create, change or delete the sink; deactivates one that cannot deliver."""
        sink = EventSink.objects.filter(name=key).first()
        if there is None:
            if sink is not None:
                sink.delete()
            return
        values = {**_sink_defaults(), **there}
        if unknown := sorted(values.keys() - {*_SINK_MEMBERS, "password", "reader"}):
            raise ConfigurationError(f"{self.noun} {key}: there is no attribute {', '.join(unknown)}.")
        login, password = values.pop("reader"), values.pop("password")
        if not login:
            notes.append(f"The event sink {key} was left out: its reader was deleted.")
            return
        sink = sink or EventSink(name=key)
        if not password or any(values.get(name) != getattr(sink, name) for name in SENT_TO):
            sink.password = None
        sink.reader, made = named_user(login, notes)
        for name, value in values.items():
            setattr(sink, name, value)
        try:
            sink.full_clean()
            check_destination(sink.broker, sink.destination)
        except (ValidationError, ValueError) as exc:
            reason = exc if isinstance(exc, ValidationError) else reason_of(exc)
            raise ConfigurationError(f"{self.noun} {key}: {reason}") from exc
        is_lost = bool(password and not sink.password)
        obstacle = "its reader has no roles yet" if made else "it has no password" if is_lost else _obstacle(sink)
        if obstacle and sink.is_active:
            sink.is_active = False
            notes.append(f"The event sink {key} is inactive: {obstacle}.")
        sink.save()
        sink_begin(sink)
        sink_retry(sink)


#: The members of a sink besides name, password and reader.
_SINK_MEMBERS = ("is_active", "broker", "servers", "uses_tls", "user_name", "destination", "repositories", "operations")


@lru_cache(maxsize=1)
def _sink_defaults() -> Mapping[str, Any]:
    fields = [EventSink._meta.get_field(name) for name in _SINK_MEMBERS]
    own = {field.name: field.get_default() for field in fields if isinstance(field, Field) and field.has_default()}
    return own | {"password": "", "reader": ""}


def _obstacle(sink: EventSink) -> str:
    """Why a sink cannot deliver here; "" if it can."""
    try:
        target_of(sink)
        subscription_for(sink, context_for(sink))
    except ValueError as exc:
        return reason_of(exc)
    except PlatformError as exc:
        return exc.message
    return ""


TABLE_SECTIONS: tuple[TableSection, ...] = (
    RoleSection(
        "role_permissions",
        "role permission",
        RolePermission,
        {"can_read": True, "can_create": False, "can_update": False, "can_delete": False},
    ),
    RoleSection(
        "row_policies",
        "row policy",
        RowPolicy,
        dict.fromkeys(("on_read", "on_create", "on_update", "on_delete", "is_active"), True),
        ("filter", "notes"),
    ),
    SinkSection(),
)
