"""Lists and revokes grants: the applications that may act for a user, by live access or refresh tokens.

A grant outlives the application's sessions: a refresh token can open another one.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Max, Min
from django.db.models.functions import Coalesce

from audit.actors import Actor
from foundation.fields import utc_now
from identity.models import AccessToken, DeviceGrant, Grant, RefreshToken, Session, TrustedApplication, User
from identity.oauth.issue import grant_revoke


@dataclass(frozen=True, slots=True)
class ApplicationGrant:
    """An application with access: its scopes, the time of the sign-in, and its last request or renewed token."""

    application: TrustedApplication
    scopes: list[str]
    since: datetime.datetime
    last_used: datetime.datetime


@dataclass(slots=True)
class _Use:
    scopes: dict[str, None] = field(default_factory=dict)
    times: list[datetime.datetime] = field(default_factory=list)


def grants_list(user: User) -> list[ApplicationGrant]:
    """The applications that have access to the user's data, by name; four queries."""
    found: dict[str, _Use] = defaultdict(_Use)
    for application_id, scope, first, last in _live(user):
        grant = found[str(application_id)]
        grant.scopes.update(dict.fromkeys(scope.split()))
        grant.times += [first, last]
    sessions = Session.objects.filter(user=user, application__in=list(found))
    used = dict(sessions.values_list("application").annotate(Max("last_activity")).order_by())
    return [
        ApplicationGrant(
            application,
            list(found[str(application.pk)].scopes),
            min(found[str(application.pk)].times),
            max([*found[str(application.pk)].times, *filter(None, [used.get(application.pk)])]),
        )
        for application in TrustedApplication.objects.filter(pk__in=list(found)).order_by("name", "pk")
    ]


def application_grant_revoke(user: User, application: TrustedApplication, *, by: Actor) -> None:
    """Revoke the application's tokens and codes of the user, and close its sessions."""
    with transaction.atomic():
        for model in (Grant, DeviceGrant):
            model.objects.filter(user=user, application=application).delete()
        grant_revoke(user, application, by=by)


def _live(user: User) -> Iterator[tuple[object, str, datetime.datetime, datetime.datetime]]:
    """(application, scope, first, last) of live tokens; a renewed refresh token has the time of the sign-in."""
    access = AccessToken.objects.filter(user=user, is_service=False, expires__gt=utc_now())
    refresh = RefreshToken.objects.filter(user=user, revoked=None, expires__gt=utc_now())
    yield from refresh.values_list("application", "scope").annotate(
        first=Min(Coalesce("auth_time", "created")), last=Max("created")
    )
    yield from access.values_list("application", "scope").annotate(first=Min("created"), last=Max("created"))
