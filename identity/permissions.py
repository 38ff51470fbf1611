"""What callers may do with data (spec 01, 1.7): immutable, cached by user, dropped when the stamp "permissions" moves.

The rights of a user are the union of those of their active roles. A role that grants an operation without a row policy
grants it on every row; else the rows are those of any of its policies. A policy on a repository also narrows, for the
same role, the repositories derived from it and the parts of its entities (`alternatives`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from foundation import stamps
from identity.context import AllPermissions, Lineage, Operation, Permissions
from identity.lru import GenerationalCache
from identity.models import RolePermission, RowPolicy

STAMP = "permissions"
OPERATIONS: tuple[Operation, ...] = ("read", "create", "update", "delete")


@dataclass(frozen=True, slots=True)
class RoleGrants:
    """One role. `granted`: repository, `Namespace.*` or `*` → operations; `rows`: (repository, operation) → filters."""

    granted: Mapping[str, frozenset[Operation]]
    rows: Mapping[tuple[str, Operation], tuple[str, ...]]

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether the role grants it; the most specific entry that names the repository decides."""
        return operation in self.granted.get(self._entry(repository), frozenset())

    def _entry(self, repository: str) -> str:
        if repository in self.granted:
            return repository
        namespace = repository
        while "." in namespace:
            namespace = namespace.rpartition(".")[0]
            if f"{namespace}.*" in self.granted:
                return f"{namespace}.*"
        return "*"


@dataclass(frozen=True, slots=True)
class RolePermissions:
    """The union of the rights of a user's roles."""

    key: str
    roles: tuple[RoleGrants, ...]
    # (repository, operation) → filters, or None for "not allowed"; filled as questions come.
    _answers: dict[tuple[str, Operation], tuple[str, ...] | None] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )
    _alternatives: dict[Lineage, tuple[tuple[tuple[str, ...], ...], ...]] = field(
        default_factory=dict, compare=False, hash=False, repr=False
    )

    def allows(self, repository: str, operation: Operation) -> bool:
        """Whether any role grants it."""
        return self._answer(repository, operation) is not None

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """Filters of which one must hold; empty when some role grants the operation without a policy."""
        return self._answer(repository, operation) or ()

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """One for each granting role; empty when one of these has no policy on any member of the lineage."""
        found = self._alternatives.get(lineage)
        if found is None:
            found = self._alternatives[lineage] = self._find_alternatives(lineage)
        return found

    def _find_alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        granting = [role for role in self.roles if role.allows(*lineage[0])]
        found = [tuple(role.rows.get(member, ()) for member in lineage) for role in granting]
        return () if any(not any(filters) for filters in found) else tuple(dict.fromkeys(found))

    def _answer(self, repository: str, operation: Operation) -> tuple[str, ...] | None:
        question = (repository, operation)
        if question not in self._answers:
            self._answers[question] = self._find(repository, operation)
        return self._answers[question]

    def _find(self, repository: str, operation: Operation) -> tuple[str, ...] | None:
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


_by_user: GenerationalCache[str, tuple[int, Permissions]] = GenerationalCache(2048)
_ALL = AllPermissions()


def permissions_for(user_id: str, *, is_admin: bool) -> Permissions:
    """The rights of a user; equal objects for equal rights. No query while the stamp "permissions" stands still."""
    if is_admin:
        return _ALL
    stamp = stamps.current(STAMP)
    cached = _by_user.get(user_id)
    if cached is None or cached[0] != stamp:
        cached = (stamp, _load(user_id))
        _by_user.put(user_id, cached)
    return cached[1]


def _load(user_id: str) -> Permissions:
    granted: dict[str, dict[str, frozenset[Operation]]] = defaultdict(dict)
    rows: dict[str, dict[tuple[str, Operation], tuple[str, ...]]] = defaultdict(dict)
    mine = {"role__role_users__user_id": user_id, "role__is_active": True}
    for permission in RolePermission.objects.filter(**mine):
        flags = (permission.can_read, permission.can_create, permission.can_update, permission.can_delete)
        operations = frozenset(operation for operation, flag in zip(OPERATIONS, flags, strict=True) if flag)
        granted[str(permission.role_id)][permission.repository] = operations
    for policy in RowPolicy.objects.filter(is_active=True, **mine).order_by("pk"):
        flags = (policy.on_read, policy.on_create, policy.on_update, policy.on_delete)
        for operation, flag in zip(OPERATIONS, flags, strict=True):
            if flag:
                of_role = rows[str(policy.role_id)]
                question = (policy.repository, operation)
                of_role[question] = (*of_role.get(question, ()), policy.filter)
    roles = [RoleGrants(granted[role], rows[role]) for role in sorted(granted)]
    return RolePermissions(key=_key(roles), roles=tuple(roles))


def _key(roles: list[RoleGrants]) -> str:
    """A digest of the content, so that users of the same roles share plans."""
    content = repr(
        sorted(
            (sorted((name, sorted(ops)) for name, ops in role.granted.items()), sorted(role.rows.items()))
            for role in roles
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()[:24]
