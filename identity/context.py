"""CallContext: the caller of a request, passed explicitly to all services (ARCHITECTURE: no thread-locals)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol

Operation = Literal["read", "create", "update", "delete"]
UserType = Literal["InternalUser", "ExternalCommunityUser", "SystemUserNoLogin"]


#: (repository, operation) of a row and of its base and owner rows, the row itself first.
Lineage = tuple[tuple[str, Operation], ...]


class Permissions(Protocol):
    """Data permissions of a caller. Immutable; `key` is equal for callers with the same rights, for plan caches."""

    @property
    def key(self) -> str:
        """Identifies this set of rights: callers with equal keys may share cached plans."""
        ...

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether the caller may do the operation on the repository (dotted name) at all."""
        ...

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """OData filters of which a row must match at least one; empty: no restriction (spec 01, 1.7)."""
        ...

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """As `policies`, for a row with its base and owner rows; empty: no restriction.

        lineage starts with the row's own repository. One alternative for each role that grants the operation on it: for
        each member of the lineage the role's filters, of which one must match, or () if it has none. The caller may
        access a row if all members match one alternative.
        """
        ...


@dataclass(frozen=True, slots=True)
class AllPermissions:
    """Permissions of administrators, the system itself, and tests."""

    key: str = "all"

    def allows(self, repository: str, operation: Operation) -> bool:
        return True

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        return ()

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Caller:
    """The user or system user of a call. `id` is the guid in Systems.Security.Users."""

    is_authenticated: ClassVar[bool] = True  # as Django's users have it

    id: str
    login: str
    name: str = ""
    email: str = ""
    user_type: UserType = "InternalUser"
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Quota:
    """The application and user whose rate limits apply to a call (identity.rate_limits)."""

    application_id: str
    application_limit: int | None
    user_id: str


@dataclass(frozen=True, slots=True)
class AsOf:
    """The point in time of a read (`$at`).

    unknown   repository without history at that time → start of its history, None without any
    key       identifies the unknown ones, for plan caches
    """

    moment: datetime.datetime
    unknown: Mapping[str, datetime.datetime | None]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call: the caller, its application, rights, language and origin.

    user               None only for anonymous calls
    application        ApplicationUri of the trusted app; "" for the admin site, commands and workers
    session_id         guid of the licensed session; None without one (admin, commands, workers)
    scopes             granted scopes
    language           lower-case language code for messages and display texts
    message_language   of messages, where the caller accepts another one that has translations; "" elsewhere
    culture            the language with a country, for formats: en-GB; "" if the caller names none
    company_id         current enterprise company (guid) or None (spec 08, 8.4); as location_id and role_id one that an
                       administrator has assigned to the user
    client_initiated   False for server-side rules and jobs: CLIENT* events do not fire for them (spec 05, 5.1)
    root_url           public root of the instance, without a trailing slash; "" outside of requests
    traceparent        the caller's trace (W3C Trace Context), to be passed on; "" without one
    top_paging         whether $top is the page size, not the maximum number of rows (spec 14, 14.2)
    prefer             parsed Prefer tokens in lower case → value ("" without one)
    reason             the caller's reason for changes, stored in the history (X-Change-Reason); "" for none
    at                 the point in time of reads; None for now
    quota              the rate limits of the call and of its parts; None for the platform itself
    """

    user: Caller | None
    application: str = ""
    session_id: str | None = None
    scopes: frozenset[str] = frozenset()
    permissions: Permissions = field(default_factory=AllPermissions)
    language: str = "en"
    message_language: str = ""
    culture: str = ""
    client_address: str = ""
    request_id: str = ""
    root_url: str = ""
    traceparent: str = ""
    company_id: str | None = None
    location_id: str | None = None
    role_id: str | None = None
    client_initiated: bool = True
    top_paging: bool = False
    prefer: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    at: AsOf | None = None
    quota: Quota | None = None

    @property
    def user_id(self) -> str:
        """The guid of the user; "" for anonymous calls."""
        return self.user.id if self.user is not None else ""

    def with_(self, **changes: object) -> CallContext:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


def system_context(**changes: object) -> CallContext:
    """Context of the platform itself: commands, workers, seeding. All rights, no session."""
    return CallContext(**{"user": None, "client_initiated": False, **changes})  # type: ignore[arg-type]
