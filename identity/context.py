"""Who is calling, passed explicitly to everything that acts for somebody (ARCHITECTURE: no thread-locals)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

Operation = Literal["read", "create", "update", "delete"]
UserType = Literal["InternalUser", "ExternalCommunityUser", "SystemUserNoLogin"]


#: (repository, operation) of a row and of what it belongs to, the row itself first.
Lineage = tuple[tuple[str, Operation], ...]


class Permissions(Protocol):
    """What a caller may do with data. Immutable; `key` is equal for callers with the same rights, for plan caches."""

    @property
    def key(self) -> str:
        """Identifies this set of rights: callers with equal keys may share cached plans."""
        ...

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether the caller may do this to the repository (dotted name) at all."""
        ...

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """OData filter expressions of which at least one must hold for a row; empty: no restriction (spec 01, 1.7)."""
        ...

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """As `policies`, for a row together with what it is and what it belongs to; empty: no restriction.

        lineage starts with the row's own repository. One alternative for each role that grants the operation on it:
        for each member of the lineage the role's filters, of which one must hold, or () where it has none. A row is
        within the caller's rights when one alternative holds for all members.
        """
        ...


@dataclass(frozen=True, slots=True)
class AllPermissions:
    """Administrators, the system itself, and tests."""

    key: str = "all"

    def allows(self, repository: str, operation: Operation) -> bool:
        """Always."""
        return True

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """None."""
        return ()

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class Caller:
    """The person or system user on whose behalf things happen. `id` is the guid in Systems.Security.Users."""

    id: str
    login: str
    name: str = ""
    email: str = ""
    user_type: UserType = "InternalUser"
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Quota:
    """Whose rate limits a call counts against (identity.rate_limits)."""

    application_id: str
    application_limit: int | None
    user_id: str


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call: who, through what, with which rights, in which language, from where.

    user               None only for anonymous calls
    application        ApplicationUri of the trusted app; "" for the admin site, commands and workers
    session_id         guid of the licensed session; None where none is held (admin, commands, workers)
    scopes             granted scopes
    language           lower-case language code for messages and display texts
    company_id         current enterprise company (guid) or None (spec 08, 8.4); as location_id and role_id one that an
                       administrator has assigned to the user, never merely what the request names
    client_initiated   False for server-side rules and jobs: CLIENT* events do not fire for them (spec 05, 5.1)
    traceparent        the caller's trace (W3C Trace Context), to be passed on; "" where it has none
    prefer             parsed Prefer tokens in lower case → value ("" where bare)
    quota              what further requests of the same call count against; None for the platform itself
    """

    user: Caller | None
    application: str = ""
    session_id: str | None = None
    scopes: frozenset[str] = frozenset()
    permissions: Permissions = field(default_factory=AllPermissions)
    language: str = "en"
    client_address: str = ""
    request_id: str = ""
    traceparent: str = ""
    company_id: str | None = None
    location_id: str | None = None
    role_id: str | None = None
    client_initiated: bool = True
    prefer: Mapping[str, str] = field(default_factory=dict)
    quota: Quota | None = None

    def with_(self, **changes: object) -> CallContext:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


def system_context(**changes: object) -> CallContext:
    """The platform acting by itself: commands, workers, seeding. All rights, no session."""
    return CallContext(user=None, client_initiated=False).with_(**changes)
