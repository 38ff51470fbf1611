"""Values of placeholders that come from the call: {$date}, {$user.Name}, {$role.Name}."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from domain.dataset.lookups.name_binding import EventName, EventValues, Origin
from domain.dataset.records.record import Record
from foundation.guids import new_guid
from foundation.kinds import Kind
from identity.instance import database_name


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value of the call or of the entity's type. `format`: for people, if the placeholder has none."""

    kind: Kind
    read: Callable[[Record, EventValues], Any]
    format: str = ""


def _user(record: Record, member: str) -> Any:
    user = record.dataset.context.user
    return None if user is None else getattr(user, member)


def _root_url(record: Record) -> str:
    return record.dataset.context.root_url or str(settings.BASE_URL)


#: The caller's e-mail address requires the right to read users; login and name are visible at entities anyway.
EMAIL = EventName("$user.email", Kind.REFERENCE, None, "Systems.Security.Users")
OWN_NAMES = frozenset({"Id", "Login", "Name"})

ENTITY_NAME = KnownValue(Kind.STRING, lambda record, events: record.repository.entity_name)
_USER_NAME = KnownValue(Kind.STRING, lambda record, events: _user(record, "name") or _user(record, "login"))
_NOW = KnownValue(Kind.DATETIME, lambda record, events: record.dataset.now())

#: Name in lower case → value.
KNOWN_VALUES: Mapping[str, KnownValue] = {
    "$date": KnownValue(Kind.DATE, lambda record, events: record.dataset.today()),
    "$time": KnownValue(Kind.DATETIME, lambda record, events: record.dataset.now(), "T"),
    "$now": _NOW,
    "$datetime": _NOW,
    "$datetimeutc": _NOW,
    "$newguid": KnownValue(Kind.STRING, lambda record, events: new_guid()),
    "$rooturl": KnownValue(Kind.STRING, lambda record, events: _root_url(record)),
    "$instance": KnownValue(Kind.STRING, lambda record, events: _root_url(record).partition("://")[2]),
    "$dbname": KnownValue(Kind.STRING, lambda record, events: database_name()),
    "$language": KnownValue(Kind.STRING, lambda record, events: record.dataset.context.language),
    "$repository": KnownValue(Kind.STRING, lambda record, events: record.repository.name),
    "$entity": ENTITY_NAME,
    "$idlist": KnownValue(Kind.STRING, lambda record, events: record.id),
    "$user": _USER_NAME,
    "$user.id": KnownValue(Kind.GUID, lambda record, events: _user(record, "id")),
    "$user.name": _USER_NAME,
    "$user.login": KnownValue(Kind.STRING, lambda record, events: _user(record, "login")),
    "$user.email": KnownValue(Kind.STRING, lambda record, events: _user(record, "email")),
}

#: Entities of the call, of which every attribute can be read.
ORIGINS: Mapping[str, Origin] = {
    origin.name: origin
    for origin in (
        Origin("$user", "Systems.Security.Users", lambda record: _user(record, "id")),
        Origin("$role", "Systems.Security.Roles", lambda record: record.dataset.context.role_id),
        Origin("$enterprisecompany", "General.EnterpriseCompanies", lambda record: record.dataset.context.company_id),
        Origin(
            "$enterprisecompanylocation",
            "General.Contacts.CompanyLocations",
            lambda record: record.dataset.context.location_id,
        ),
    )
}
