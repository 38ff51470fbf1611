"""What the caller's rights mean for a query, and what a query may know of the call (spec 01, 1.7).

Row policies are OData filters with variables of the call, written like parameters:

    $user.Id  $user.Login  $user.Name  $user.Email  $user.UserType  $user.IsAdmin
    $company.Id (the current enterprise company)  $location.Id  $role.Id  $application

    "SalesPerson/Person eq $user.Id or CreationUser eq $user.Login"

The current company, location and role are those that the request names, if they are assigned to the user, else null.

A row is visible when one of the caller's policies holds. A policy itself reads with full rights: it belongs to the
administrator who wrote it, and policies may refer to each other's repositories.

A policy on a repository narrows those derived from it, too, and what its entities own: who may not see an order sees
none of its lines, and who may not change it changes none of them (`PolicyScope`).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from domain.model.interpolation import culture_date_pattern
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.syntax import parse_boolean_expression
from domain.syntax.ast import Expression
from domain.syntax.errors import ODataUrlError
from foundation import errors
from identity.context import AllPermissions, CallContext, Operation, Permissions

#: How `$user.Id` is spelled where the grammar has only parameter aliases.
VARIABLE_PREFIX = "call__"
#: A literal, to pass over, or a variable of the call.
CALL_VARIABLE = re.compile(r"'(?:[^']|'')*'|\$(user|company|location|role)\.([A-Za-z]+)|\$(application)\b")
#: What administrators may write, by its lower-case form.
KNOWN_VARIABLES: Mapping[str, str] = {
    name.lower(): name
    for name in (
        "$user.Id", "$user.Login", "$user.Name", "$user.Email", "$user.UserType", "$user.IsAdmin",
        "$company.Id", "$location.Id", "$role.Id", "$application",
    )
}  # fmt: skip


def _user(name: str) -> Callable[[CallContext], object]:
    return lambda ctx: getattr(ctx.user, name) if ctx.user is not None else None


CALL_VALUES: Mapping[str, Callable[[CallContext], object]] = {
    "user.id": _user("id"),
    "user.login": _user("login"),
    "user.name": _user("name"),
    "user.email": _user("email"),
    "user.usertype": _user("user_type"),
    "user.isadmin": _user("is_admin"),
    "company.id": lambda ctx: ctx.company_id,
    "location.id": lambda ctx: ctx.location_id,
    "role.id": lambda ctx: ctx.role_id,
    "application": lambda ctx: ctx.application,
    "language": lambda ctx: ctx.language.upper(),
    "datepattern": lambda ctx: culture_date_pattern(ctx.language),
    "timepattern": lambda ctx: culture_date_pattern(ctx.language, with_time=True),
    "now": lambda ctx: datetime.datetime.now(datetime.UTC),
}


@lru_cache(maxsize=512)
def parse_policy(text: str) -> Expression:
    """A filter that may contain variables of the call. Raises BadRequest with the position."""
    try:
        return parse_boolean_expression(CALL_VARIABLE.sub(_as_alias, text))
    except ODataUrlError as exc:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$filter", exc.located) from exc


def _as_alias(found: re.Match[str]) -> str:
    name = found[3] or (f"{found[1]}.{found[2]}" if found[1] else "")
    return f"@{VARIABLE_PREFIX}{name.replace('.', '__')}" if name else found[0]


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """A repository whose policies also concern a row of another: its own, a base, or of what it is a part.

    path       owner references that lead from the row to the one of this repository; () for the row itself
    is_subtype    it concerns only owners that are of this type
    operation  what the caller must be allowed there: changing a part is changing what it is a part of
    """

    repository: Repository[Any]
    path: tuple[str, ...]
    is_subtype: bool
    operation: Operation


def policy_scopes(repository: Repository[Any], operation: Operation) -> tuple[PolicyScope, ...]:
    """Whose policies concern a row of the repository, its own first."""
    return _kin(repositories.generation, repository.name, operation)


@lru_cache(maxsize=4096)
def _kin(generation: int, name: str, operation: Operation) -> tuple[PolicyScope, ...]:
    found: dict[tuple[str, tuple[str, ...]], PolicyScope] = {}
    for kin in _walk(repositories[name], (), operation, ()):
        found.setdefault((kin.repository.name, kin.path), kin)
    return tuple(found.values())


def _walk(
    repository: Repository[Any], path: tuple[str, ...], operation: Operation, seen: tuple[str, ...]
) -> Iterator[PolicyScope]:
    current: Repository[Any] | None = repository
    while current is not None:
        yield PolicyScope(current, path, False, operation)
        current = current.base
    owner = repository.owner
    if owner is None or repository.name in seen:
        return
    target, behind = repositories[owner.target], (*path, owner.name)
    of_owner: Operation = "read" if operation == "read" else "update"
    yield from _walk(target, behind, of_owner, (*seen, repository.name))
    for subtype in Access.subtypes(target):
        yield PolicyScope(subtype, behind, True, of_owner)


class Access:
    """The rights under which one plan is made. Plans of equal `permissions.key` are shared."""

    def __init__(self, permissions: Permissions | None) -> None:
        """None: everything is visible (policies themselves, rules of the platform)."""
        self._permissions = permissions

    def readable(self, repository: Repository[Any]) -> bool:
        """Whether the caller may read the repository at all."""
        if self._permissions is None:
            return True
        if repository.admin_only and not isinstance(self._permissions, AllPermissions):
            return False
        return self._permissions.allows(repository.name, "read")

    def kin(self, repository: Repository[Any], operation: Operation = "read") -> tuple[PolicyScope, ...]:
        """Whose policies concern a row of the repository, in the order of each of the `alternatives`."""
        return policy_scopes(repository, operation)

    def alternatives(
        self, repository: Repository[Any], operation: Operation = "read"
    ) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The filters by role and kin (Permissions.alternatives); empty: none needed."""
        if self._permissions is None or isinstance(self._permissions, AllPermissions):
            return ()
        lineage = tuple((kin.repository.name, kin.operation) for kin in self.kin(repository, operation))
        return self._permissions.alternatives(lineage)

    def restricts(self, repository: Repository[Any]) -> bool:
        """Whether there may be rows of the repository that the caller does not see."""
        if self._permissions is None:
            return False
        return any(
            not self.readable(other) or bool(self.alternatives(other))
            for other in (repository, *self.subtypes(repository))
        )

    @staticmethod
    def subtypes(repository: Repository[Any]) -> tuple[Repository[Any], ...]:
        """The repositories whose rows show in this one and keep their own restrictions there."""
        return repository.subtypes if repository.is_polymorphic else ()

    def check_readable(self, repository: Repository[Any]) -> None:
        """Raise NotFound unless the caller may read: what one may not read answers as if it did not exist."""
        if not self.readable(repository):
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, repository.set_name)
