"""Data permissions of callers (spec 01, 1.7): immutable, cached by user until the cache version "permissions" changes.

The rights of a user are the union of those of their active roles. A role that grants an operation without a row policy
grants it on every row; else on the rows that match any of its policies. A policy on a repository also applies, for the
same role, to the repositories derived from it and the parts of its entities (`alternatives`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from foundation import cache_versions
from identity.context import AllPermissions, Lineage, Operation, Permissions
from identity.lru import GenerationalCache
from identity.models import RolePermission, RoleUser, RowPolicy, User

CACHE_VERSION = "permissions"
#: Namespace of the repositories of access rights.
ACCESS_CONTROL = "Systems.Security."
#: Repositories that `*` does not grant: access rights, and configuration that runs code or sends data. A role must
#: grant them by name or namespace.
GRANTED_BY_NAME = (ACCESS_CONTROL, "Systems.Bpm.", "Systems.Config.", "Systems.Core.Scripts")
OPERATIONS: tuple[Operation, ...] = ("read", "create", "update", "delete")


@dataclass(frozen=True, slots=True)
class RoleGrants:
    """One role. `granted`: repository, `Namespace.*` or `*` → operations; `rows`: (repository, operation) → filters."""

    granted: Mapping[str, frozenset[Operation]]
    rows: Mapping[tuple[str, Operation], tuple[str, ...]]

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether the role grants the operation; the most specific entry for the repository decides."""
        return operation in self.granted.get(self.entry_of(repository), frozenset())

    def entry_of(self, repository: str) -> str:
        """The key of `granted` that applies to the repository; a name that is no key if none does."""
        if repository in self.granted:
            return repository
        namespace = repository
        while "." in namespace:
            namespace = namespace.rpartition(".")[0]
            if f"{namespace}.*" in self.granted:
                return f"{namespace}.*"
        return "" if repository.startswith(GRANTED_BY_NAME) else "*"


@dataclass(frozen=True, slots=True)
class RolePermissions:
    """The union of the rights of a user's roles."""

    key: str
    roles: tuple[RoleGrants, ...]
    # (repository, operation) → filters, or None for "not allowed"; filled on demand.
    _found_filters: dict[tuple[str, Operation], tuple[str, ...] | None] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )
    _alternatives: dict[Lineage, tuple[tuple[tuple[str, ...], ...], ...]] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )

    @property
    def grant_anything(self) -> bool:
        """Whether any role grants any operation on anything."""
        return any(operations for role in self.roles for operations in role.granted.values())

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether any role grants it."""
        return self._filters(repository, operation) is not None

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """Filters, of which a row must match one; empty if some role grants the operation without a policy."""
        return self._filters(repository, operation) or ()

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The filters of each granting role by member of the lineage; empty if one of these roles has no filter."""
        result = self._alternatives.get(lineage)
        if result is None:
            result = self._alternatives[lineage] = self._find_alternatives(lineage)
        return result

    def _find_alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        granting = [role for role in self.roles if role.allows(*lineage[0])]
        result = [tuple(role.rows.get(member, ()) for member in lineage) for role in granting]
        return () if any(not any(filters) for filters in result) else tuple(dict.fromkeys(result))

    def _filters(self, repository: str, operation: Operation) -> tuple[str, ...] | None:
        key = (repository, operation)
        if key not in self._found_filters:
            self._found_filters[key] = self._find_filters(repository, operation)
        return self._found_filters[key]

    def _find_filters(self, repository: str, operation: Operation) -> tuple[str, ...] | None:
        granting = [role for role in self.roles if role.allows(repository, operation)]
        if not granting:
            return None
        filters: list[str] = []
        for role in granting:
            own = role.rows.get((repository, operation), ())
            if not own:
                return ()
            filters.extend(own)
        return tuple(dict.fromkeys(filters))


@dataclass(frozen=True, slots=True)
class Assignments:
    """Guids of the companies, locations and roles that a user may select for a request. None: all of them."""

    companies: frozenset[str] | None = None
    locations: frozenset[str] | None = None
    roles: frozenset[str] | None = None

    @staticmethod
    def among(assigned: frozenset[str] | None, requested: str | None) -> str | None:
        """The requested guid if it is assigned, else None (spec 08, 8.4)."""
        return requested if assigned is None or requested in assigned else None


@dataclass(frozen=True, slots=True)
class _Rights:
    """The cached rights of a user."""

    permissions: Permissions
    assignments: Assignments


_by_user: GenerationalCache[str, tuple[int, _Rights]] = GenerationalCache(2048)
_ALL = AllPermissions()
_ANY = Assignments()


def may_enter_admin(user: User) -> bool:
    """Whether the user may open the admin site: active, internal, with a role that grants anything (spec 01, 1.7)."""
    if not user.active or user.user_type != "InternalUser":
        return False
    permissions = permissions_for(user.pk, is_admin=user.is_admin)
    return not isinstance(permissions, RolePermissions) or permissions.grant_anything


def permissions_for(user_id: str, *, is_admin: bool) -> Permissions:
    """The rights of a user; equal objects for equal rights. Cached under the cache version "permissions"."""
    return _ALL if is_admin else _rights(user_id).permissions


def assignments_for(user_id: str, *, is_admin: bool) -> Assignments:
    """The companies, locations and roles of a user, by memberships in active roles; cached as permissions_for."""
    return _ANY if is_admin else _rights(user_id).assignments


def roles_of(user_id: str) -> frozenset[str]:
    """Guids of the user's active roles, also of an administrator; cached as permissions_for."""
    return _rights(user_id).assignments.roles or frozenset()


def _rights(user_id: str) -> _Rights:
    version = cache_versions.current(CACHE_VERSION)
    cached = _by_user.get(user_id)
    if cached is None or cached[0] != version:
        cached = (version, _Rights(_load(user_id), _load_assignments(user_id)))
        _by_user.put(user_id, cached)
    return cached[1]


def _load_assignments(user_id: str) -> Assignments:
    rows = RoleUser.objects.filter(user_id=user_id, role__is_active=True).values_list(
        "enterprise_company_id", "company_location_id", "role_id"
    )
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Assignments(*(frozenset(str(found) for found in column if found) for column in columns))


def _load(user_id: str) -> Permissions:
    granted: dict[str, dict[str, frozenset[Operation]]] = defaultdict(dict)
    rows: dict[str, dict[tuple[str, Operation], tuple[str, ...]]] = defaultdict(dict)
    of_user = {"role__role_users__user_id": user_id, "role__is_active": True}
    for permission in RolePermission.objects.filter(**of_user).distinct():
        granted[str(permission.role_id)][permission.repository] = operations_of(permission)
    for policy in RowPolicy.objects.filter(is_active=True, **of_user).order_by("pk").distinct():
        flags = (policy.on_read, policy.on_create, policy.on_update, policy.on_delete)
        for operation, flag in zip(OPERATIONS, flags, strict=True):
            if flag:
                of_role = rows[str(policy.role_id)]
                key = (policy.repository, operation)
                of_role[key] = (*of_role.get(key, ()), policy.filter)
    roles = [RoleGrants(granted[role], rows[role]) for role in sorted(granted)]
    return RolePermissions(key=_key(roles), roles=tuple(roles))


def operations_of(permission: RolePermission) -> frozenset[Operation]:
    """The operations that a row grants."""
    flags = (permission.can_read, permission.can_create, permission.can_update, permission.can_delete)
    return frozenset(operation for operation, flag in zip(OPERATIONS, flags, strict=True) if flag)


def _key(roles: list[RoleGrants]) -> str:
    """A digest of the content, so that users of the same roles share plans."""
    content = repr(
        sorted(
            (sorted((name, sorted(ops)) for name, ops in role.granted.items()), sorted(role.rows.items()))
            for role in roles
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()[:24]
