"""The authority behind a change of access data: users, roles, applications (spec 01, 1.7 and 05, 5.2).

The authority behind a rule's change is the rule's author, whatever caused the event; otherwise it is the caller. A
managed script has two: the user who runs it and its author, also when scripts run each other. A change of access data
requires that each of them is an administrator: the dataset reads the users table at the change, and again at the
commit. This holds for the API, scripts, rules, imports and the admin: all write through the dataset.

A repository declares that it decides access (Repository.decides_access and left_to_roles), and that its entities later
act with their author's authority (authored: rules and managed scripts); domain.dataset.checks.authors stores these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.administration import needs_administrator
from foundation import cache_versions, errors
from identity.changes import TOKENS
from identity.context import AllPermissions, CallContext, system_context
from identity.lru import GenerationalCache
from identity.models import User
from identity.permissions import CACHE_VERSION as PERMISSIONS
from identity.permissions import RolePermissions, permissions_for

#: The guid of a user, or one of the two constants below.
Authority = str
#: Management commands, run by the instance's operator.
PLATFORM: Authority = "platform"
#: Unknown; may not change access data.
NOBODY: Authority = ""


_NO_RIGHTS = RolePermissions(key="none", roles=())
_OF_PLATFORM = system_context()
# guid → cache versions of users and permissions, and the context
_contexts: GenerationalCache[Authority, tuple[tuple[int, int], CallContext]] = GenerationalCache(512)


@dataclass(frozen=True, slots=True)
class RunningStep:
    """A running rule or managed script: its name in messages, its author, and of a rule its code."""

    name: str
    author: Authority = NOBODY
    is_rule: bool = True
    code: str = ""


def of_caller(context: CallContext) -> Authority:
    """The authority of a caller."""
    if context.user is not None:
        return context.user.id
    return PLATFORM if isinstance(context.permissions, AllPermissions) else NOBODY


def context_of(authority: Authority) -> CallContext:
    """A context with the authority's rights, also for a user who may no longer sign in.

    Cached until users or permissions change: each firing of a rule asks several times.
    """
    if authority == PLATFORM:
        return _OF_PLATFORM
    values = cache_versions.values()
    versions = values.get(TOKENS, 0), values.get(PERMISSIONS, 0)
    known = _contexts.get(authority)
    if known is None or known[0] != versions:
        known = (versions, _load_context(authority))
        _contexts.put(authority, known)
    return known[1]


def _load_context(authority: Authority) -> CallContext:
    user = User.objects.filter(pk=authority).first() if authority else None
    if user is None:
        return CallContext(user=None, permissions=_NO_RIGHTS, client_initiated=False)
    caller = user.as_caller()
    permissions = permissions_for(caller.id, is_admin=caller.is_admin)
    return CallContext(user=caller, permissions=permissions, client_initiated=False)


def is_administrator(authority: Authority) -> bool:
    """Whether the authority is the platform or currently an active administrator."""
    if authority in (PLATFORM, NOBODY):
        return authority == PLATFORM
    return User.objects.filter(pk=authority, active=True, is_admin=True).exists()


def weakest(authorities: set[Authority]) -> Authority:
    """The weakest of several authorities: one that is not an administrator, if there is any."""
    ordered = sorted(authorities)
    return next((each for each in ordered if not is_administrator(each)), ordered[0] if ordered else NOBODY)


def check_authority(record: Record, operation: Literal["create", "update", "delete"], attribute: str = "") -> None:
    """Check and record the authority behind a change, if the repository requires it.

    attribute: API name of the changed attribute, or `@code` of a custom property; "" for the entity itself. Raises
    Forbidden(ADMINISTRATORS_ONLY), or Refused if the author of the running rule (RULE_LACKS_AUTHORITY) or script
    (SCRIPT_LACKS_AUTHORITY) is no administrator.
    """
    repository, dataset = record.repository, record.dataset
    if not (repository.decides_access or repository.authored):
        return
    decides = needs_administrator(repository, operation, attribute)
    if not decides and not repository.authored:
        return
    behind = _behind(dataset)
    known = dataset.authorities.setdefault(record.key, set())
    for authority, step in behind.items() if decides else ():
        if authority not in known and not is_administrator(authority):
            raise _refusal(step, operation, f"{repository.name}.{attribute}" if attribute else repository.name)
    known.update(behind)


def _behind(dataset: UnitOfWork) -> dict[Authority, RunningStep | None]:
    """The authorities behind the current change → the running rule or script; None for the caller.

    A rule's author acts alone. Each script within it, or without a rule, adds its author.
    """
    result: dict[Authority, RunningStep | None] = {}
    for step in reversed(dataset.running_steps):
        result.setdefault(step.author, step)
        if step.is_rule:
            return result
    result.setdefault(of_caller(dataset.context), None)
    return result


def _refusal(step: RunningStep | None, operation: str, what: str) -> errors.PlatformError:
    if step is None:
        return errors.Forbidden(errors.ADMINISTRATORS_ONLY, operation, what)
    code = errors.RULE_LACKS_AUTHORITY if step.is_rule else errors.SCRIPT_LACKS_AUTHORITY
    return errors.Refused(code, step.name, operation, what)


def check_authorities(dataset: UnitOfWork, result: CommitResult) -> None:
    """At commit: check that each authority is still an administrator, since a transaction may span requests.

    Raises Forbidden(ADMINISTRATORS_ONLY).
    """
    checked: dict[Authority, bool] = {}
    for record in dataset.changed() if dataset.authorities else ():
        if not record.repository.decides_access:
            continue
        for authority in dataset.authorities.get(record.key, ()):
            if authority not in checked:
                checked[authority] = is_administrator(authority)
            if not checked[authority]:
                raise errors.Forbidden(errors.ADMINISTRATORS_ONLY, "change", record.repository.name)
