"""Reference tokens: `enrt_<64 hex>`, for users (PAT) and services (SAT), stored by digest (spec 01, 1.5)."""

from __future__ import annotations

import datetime
import hashlib
import secrets

from django.db import OperationalError, transaction
from django.db.models import QuerySet

from audit.actors import Actor
from audit.record import record
from foundation import errors
from foundation.fields import utc_now
from foundation.lock_waits import is_locked, short_lock_wait
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.audit_kinds import TokenIssued, TokenRevoked
from identity.credentials import REFERENCE_PREFIX
from identity.models import ReferenceToken, TrustedApplication, User
from identity.scopes import API_SCOPES, SERVICE_TOKEN_SCOPES
from identity.sessions import session_close

MAX_LIFETIME = datetime.timedelta(days=366)


class ReferenceTokenRefused(Exception):
    """The token may not be issued; the message says why."""


def reference_token_issue(
    *,
    user: User | None,
    application: TrustedApplication,
    name: str,
    scopes: list[str],
    lifetime: datetime.timedelta,
    by: Actor,
) -> tuple[str, ReferenceToken]:
    """(token, row); the token is shown once and not stored. `user` None issues a service token.

    Raises ReferenceTokenRefused if the application's policy, its scopes or the lifetime do not allow it.
    """
    kind = ReferenceToken.PERSONAL if user else ReferenceToken.SERVICE
    holder = user or application.system_user
    problem = _policy_problem(holder, application, kind) or _scope_problem(application, scopes, kind)
    if problem is None and not datetime.timedelta(0) < lifetime <= MAX_LIFETIME:
        problem = Message("A token lives for at most {0} days.", MAX_LIFETIME.days)
    if problem is not None or holder is None:
        raise ReferenceTokenRefused(problem or Message("There is nobody to issue the token for."))
    token = REFERENCE_PREFIX + secrets.token_hex(32)
    row = ReferenceToken.objects.create(
        digest=hashlib.sha256(token.encode()).hexdigest(),
        hint=token[-4:],
        name=name[:254] or "token",
        kind=kind,
        user=holder,
        application=application,
        scope=" ".join(scopes),
        expires=utc_now() + lifetime,
    )
    record(
        TokenIssued,
        by=by,
        subject=f"reference token {row.pk}",
        user=holder.login,
        application=application.application_uri,
        scopes=scopes,
        expires=utc_text(row.expires),
    )
    return token, row


def reference_token_revoke(row: ReferenceToken, *, by: Actor) -> None:
    """Revoke at once, and free its session's slot."""
    with transaction.atomic():
        row.revoked = utc_now()
        row.save(update_fields=["revoked"])
        session_close([str(row.pk)])
        record(TokenRevoked, by=by, subject=f"reference token {row.pk}")


def reference_tokens_list(*, user: User | None = None) -> QuerySet[ReferenceToken]:
    """Tokens that are neither revoked nor expired, newest first."""
    result = ReferenceToken.objects.filter(revoked=None, expires__gt=utc_now()).select_related("application", "user")
    return (result.filter(user=user, kind=ReferenceToken.PERSONAL) if user else result).order_by("-created")


def reference_token_load(digest: str) -> ReferenceToken:
    """The live token with this hexadecimal digest. Raises Unauthorized."""
    row = ReferenceToken.objects.select_related("user", "application").filter(digest=digest).first()
    if row is None:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("it is unknown"))
    if row.revoked is not None:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("it has been revoked"))
    if row.expires <= utc_now():
        raise errors.Unauthorized(errors.TOKEN_EXPIRED)
    if problem := _policy_problem(row.user, row.application, row.kind):
        raise errors.Unauthorized(errors.TOKEN_INVALID, problem)
    return row


def reference_token_used(token_id: str) -> None:
    """Record the use of the token; not while the database is busy."""
    try:
        with short_lock_wait():
            ReferenceToken.objects.filter(pk=token_id).update(last_used=utc_now())
    except OperationalError as exc:
        if not is_locked(exc):
            raise


def applications_for(user: User) -> list[TrustedApplication]:
    """Applications for which this user may make personal tokens."""
    enabled = TrustedApplication.objects.filter(is_enabled=True).exclude(access_tokens="None").order_by("name")
    return [found for found in enabled if _policy_problem(user, found, ReferenceToken.PERSONAL) is None]


def scopes_for(application: TrustedApplication, kind: str = ReferenceToken.PERSONAL) -> list[str]:
    """The scopes that a token of this application and kind may carry."""
    fitting = SERVICE_TOKEN_SCOPES if kind == ReferenceToken.SERVICE else API_SCOPES
    return [scope for scope in fitting if scope in application.scopes]


def _policy_problem(user: User | None, application: TrustedApplication, kind: str) -> str | None:
    if not application.is_enabled:
        return Message("The application is disabled.")
    if user is None or not user.active:
        return Message("The user is disabled.")
    if application.access_tokens == "None":
        return Message("The application does not allow reference tokens.")
    is_service = kind == ReferenceToken.SERVICE
    if is_service and not application.system_user_allowed:
        return Message("The application may not run as a service.")
    if not user.may_call(as_service=is_service):
        return Message("Only internal users may call this service.")
    if application.access_tokens == "AdministratorsOnly" and not (is_service or user.is_admin):
        return Message("The application allows reference tokens to administrators only.")
    return None


def _scope_problem(application: TrustedApplication, scopes: list[str], kind: str) -> str | None:
    allowed = scopes_for(application, kind)
    if not scopes:
        return Message("A token needs at least one scope.")
    beyond = [scope for scope in scopes if scope not in allowed]
    return Message("The application may not have the scopes: {0}.", ", ".join(beyond)) if beyond else None
