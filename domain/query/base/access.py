"""The caller's rights in a query, and the variables that row policies may use (spec 01, 1.7).

Row policies are OData filters with variables of the call, written like parameters:

    $user.Id  $user.Login  $user.Name  $user.Email  $user.UserType  $user.IsAdmin
    $company.Id (the current enterprise company)  $location.Id  $role.Id  $application

    "SalesPerson/Person eq $user.Id or CreationUser eq $user.Login"

The current company, location and role are those that the request names, if they are assigned to the user, else null.

A row is visible if one of the caller's policies holds. Policies are evaluated with full rights: administrators write
them, and policies may refer to each other's repositories.

A policy on a repository also restricts derived repositories and the entities that its entities own: a caller who may
not see an order sees none of its lines, and one who may not change it changes none of them (`PolicyScope`).

Rows that belong to a user (`Declaration.belongs_to`) have a policy besides those of roles: only this user and
administrators see them.

A view (`Declaration.view_of`) shows a row only if the caller may see the viewed row and its owners in their own sets.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from domain.model.custom_properties import Definition
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import culture_date_pattern
from domain.syntax import parse_boolean_expression
from domain.syntax.ast import Expression
from domain.syntax.errors import ODataUrlError
from foundation import errors
from identity.context import AllPermissions, AsOf, CallContext, Operation, Permissions

#: Prefix of the parameter aliases that replace variables, which the OData grammar lacks.
VARIABLE_PREFIX = "call__"
#: A string literal, which is skipped, or a variable.
CALL_VARIABLE = re.compile(r"'(?:[^']|'')*'|\$(user|company|location|role)\.([A-Za-z]+)|\$(application)\b")
#: Variables by their lower-case form.
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
    "today": lambda ctx: datetime.datetime.now(datetime.UTC).date(),
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
    """A repository whose policies apply to a row: the row's own, a base of it, or an owner's.

    path       owner references from the row to this repository; () for the row itself
    is_subtype it applies only to owners of this type
    operation  the operation on that repository: any write to an owned entity is an update of its owner
    """

    repository: Repository[Any]
    path: tuple[str, ...]
    is_subtype: bool
    operation: Operation


def policy_scopes(repository: Repository[Any], operation: Operation) -> tuple[PolicyScope, ...]:
    """The repositories whose policies apply to a row of the repository, its own first."""
    return _policy_scopes(repositories.generation, repository.name, operation)


@lru_cache(maxsize=4096)
def _policy_scopes(generation: int, name: str, operation: Operation) -> tuple[PolicyScope, ...]:
    result: dict[tuple[str, tuple[str, ...]], PolicyScope] = {}
    for scope in _walk(repositories[name], (), operation, ()):
        result.setdefault((scope.repository.name, scope.path), scope)
    return tuple(result.values())


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


def _is_personal(scope: PolicyScope) -> bool:
    """Whether only the user to whom a row belongs may perform the operation: all except creation."""
    return bool(scope.repository.belongs_to) and scope.operation != "create"


def _with_own(filters: tuple[str, ...], own: str) -> tuple[str, ...]:
    """The alternative filters, each joined by "and" with the additional condition."""
    if not own:
        return filters
    return tuple(f"({text}) and {own}" for text in filters) or (own,)


class Access:
    """The rights of one plan. Plans with equal `permissions.key` are shared."""

    def __init__(self, permissions: Permissions | None, at: AsOf | None = None) -> None:
        """permissions: None if everything is visible (for policies themselves and rules of the platform).

        at: the time that the plan reads; plans are shared by times with the same AsOf.key.
        """
        self._permissions = permissions
        self.at = at

    @classmethod
    def of(cls, ctx: CallContext) -> Access:
        """The rights of a call, and the time that it reads."""
        return cls(ctx.permissions, ctx.at)

    def now(self) -> Access:
        """The same rights, for reading current data."""
        return self if self.at is None else Access(self._permissions)

    @property
    def narrows(self) -> bool:
        """Whether the caller may be restricted: False for full rights and for administrators."""
        return self._permissions is not None and not isinstance(self._permissions, AllPermissions)

    def readable(self, repository: Repository[Any]) -> bool:
        """Whether the caller may read the repository at all."""
        if self._permissions is None:
            return True
        if repository.admin_only and not isinstance(self._permissions, AllPermissions):
            return False
        return self._permissions.allows(repository.name, "read")

    def alternatives(
        self, repository: Repository[Any], operation: Operation = "read"
    ) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The filters by role, for each of policy_scopes (Permissions.alternatives); empty: no restriction."""
        if self._permissions is None or isinstance(self._permissions, AllPermissions):
            return ()
        scopes = policy_scopes(repository, operation)
        lineage = tuple((scope.repository.name, scope.operation) for scope in scopes)
        found = self._permissions.alternatives(lineage)
        own = [f"{scope.repository.belongs_to}/Id eq $user.Id" if _is_personal(scope) else "" for scope in scopes]
        if not any(own):
            return found
        return tuple(
            tuple(_with_own(filters, text) for filters, text in zip(alternative, own, strict=True))
            for alternative in found or (tuple(() for _ in scopes),)
        )

    def restricts(self, repository: Repository[Any]) -> bool:
        """Whether some rows of the repository may be hidden from the caller."""
        if self._permissions is None:
            return False
        if self.narrows and (repository.describing_repository or repository.visible_through):
            return True
        return any(
            not self.readable(other) or bool(self.alternatives(other))
            for other in (repository, *self.subtypes(repository), *repository.viewed)
        )

    def restricts_values(self, known: Definition) -> bool:
        """Whether values of the custom property are entities of which some may be hidden from the caller."""
        return bool(known.allowed_from) and self.restricts(repositories[known.allowed_from])

    @staticmethod
    def subtypes(repository: Repository[Any]) -> tuple[Repository[Any], ...]:
        """The derived repositories of the set's rows, which have their own restrictions."""
        return repository.subtypes if repository.is_polymorphic else ()

    def check_readable(self, repository: Repository[Any]) -> None:
        """Raise NotFound unless the caller may read the repository, as if it did not exist."""
        if not self.readable(repository):
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, repository.set_name)
