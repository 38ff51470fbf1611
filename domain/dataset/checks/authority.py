"""The authority behind a change of access data: users, roles, applications (spec 01, 1.7 and 05, 5.2).

The authority behind a rule's change is the rule's author, independent of the event's cause; otherwise it is the
caller. Behind a change by a managed script are both: whoever runs it, and its author, also when scripts run each other.
Access data need an administrator in each of them: the dataset reads the users table when the change is made, and again
at the commit. This holds for the API, scripts, rules, imports and the admin: all write through the dataset.

A repository declares that it decides access (Repository.decides_access and left_to_roles), and that its entities later
act with the authority of their author (authored: rules and managed scripts); domain.dataset.checks.authors keeps these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from domain.dataset.records.record import CommitResult, Record, UnitOfWork
from foundation import errors
from identity.context import AllPermissions, CallContext
from identity.models import User

#: The guid of a user, or one of the two below.
Authority = str
#: Management commands, run by the instance's operator.
PLATFORM: Authority = "platform"
#: Unknown; must not change access data.
NOBODY: Authority = ""


@dataclass(frozen=True, slots=True)
class Acting:
    """A rule on an event, or a managed script, while it acts: its name in messages, and its author."""

    name: str
    author: Authority = NOBODY
    is_rule: bool = True


def of_caller(context: CallContext) -> Authority:
    """The authority of a caller."""
    if context.user is not None:
        return context.user.id
    return PLATFORM if isinstance(context.permissions, AllPermissions) else NOBODY


def is_administrator(authority: Authority) -> bool:
    """Whether the authority is the platform or, at this moment, an active administrator."""
    if authority in (PLATFORM, NOBODY):
        return authority == PLATFORM
    return User.objects.filter(pk=authority, active=True, is_admin=True).exists()


def weakest(authorities: set[Authority]) -> Authority:
    """One of several authorities behind an entity: one that is not an administrator, if there is any."""
    ordered = sorted(authorities)
    return next((each for each in ordered if not is_administrator(each)), ordered[0] if ordered else NOBODY)


def check_authority(record: Record, operation: Literal["create", "update", "delete"], attribute: str = "") -> None:
    """Check and note the authority behind a change that is about to be made, where the repository requires it.

    attribute: API name of the changed attribute, or `@code` of a custom property; "" for the entity itself.
    Raises Forbidden(ADMINISTRATORS_ONLY), or Refused where the author of the acting rule (RULE_LACKS_AUTHORITY) or of a
    script (SCRIPT_LACKS_AUTHORITY) is no administrator.
    """
    repository, dataset = record.repository, record.dataset
    decides = repository.needs_administrator(operation, attribute)
    if not decides and not repository.authored:
        return
    behind = _behind(dataset)
    known = dataset.authorities.setdefault(record.key, set())
    for authority, step in behind.items() if decides else ():
        if authority not in known and not is_administrator(authority):
            raise _refusal(step, operation, f"{repository.name}.{attribute}" if attribute else repository.name)
    known.update(behind)


def _behind(dataset: UnitOfWork) -> dict[Authority, Acting | None]:
    """The authorities behind the current change → the acting rule or script; None of the caller.

    A rule's author acts alone. Each script within it, or without a rule, adds its author.
    """
    found: dict[Authority, Acting | None] = {}
    for step in reversed(dataset.acting):
        found.setdefault(step.author, step)
        if step.is_rule:
            return found
    found.setdefault(of_caller(dataset.context), None)
    return found


def _refusal(step: Acting | None, operation: str, what: str) -> errors.PlatformError:
    if step is None:
        return errors.Forbidden(errors.ADMINISTRATORS_ONLY, operation, what)
    code = errors.RULE_LACKS_AUTHORITY if step.is_rule else errors.SCRIPT_LACKS_AUTHORITY
    return errors.Refused(code, step.name, operation, what)


def check_authorities(dataset: UnitOfWork, result: CommitResult) -> None:
    """At commit: check that each authority is still an administrator, for requests may lie between.

    Raises Forbidden(ADMINISTRATORS_ONLY).
    """
    asked: dict[Authority, bool] = {}
    for record in dataset.changed() if dataset.authorities else ():
        if not record.repository.decides_access:
            continue
        for authority in dataset.authorities.get(record.key, ()):
            if authority not in asked:
                asked[authority] = is_administrator(authority)
            if not asked[authority]:
                raise errors.Forbidden(errors.ADMINISTRATORS_ONLY, "change", record.repository.name)
