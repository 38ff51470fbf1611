"""Rotates refresh tokens: a second use of one means a theft or a lost response (RFC 9700, 4.14.2)."""

from __future__ import annotations

import datetime
import hashlib
import logging
from typing import TYPE_CHECKING

from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from foundation.fields import utc_now
from identity.changes import tokens_revoked
from identity.factors.policy import is_enough
from identity.models import AccessToken, RefreshToken, TrustedApplication
from identity.oauth import issue
from identity.oauth.scopes import scopes_allowed

if TYPE_CHECKING:
    from oauthlib.common import Request

logger = logging.getLogger(__name__)
_GRACE = datetime.timedelta(seconds=10)
_REFUSED = "The refresh token is unknown, expired, revoked or was issued to another client."


def refresh_load(raw: str, application: TrustedApplication, request: Request) -> None:
    """Load the token's data into the request. Raises InvalidGrantError; reuse revokes the family."""
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    row = (
        RefreshToken.objects.select_related("user")
        .filter(token_checksum=checksum, application=application)
        .order_by("-pk")
        .first()
    )
    if row is None:
        raise InvalidGrantError(description=_REFUSED)
    # Before the expiry: its successors live longer than the token.
    if row.revoked is not None and not _is_repeated(row):
        issue.reuse_revoke(row.token_family, row.application, what="refresh token")
        logger.warning("refresh token %s of client %s was used again", row.pk, row.application_id)
        raise InvalidGrantError(description=_REFUSED)
    if row.expires <= utc_now():
        raise InvalidGrantError(description=_REFUSED)
    if not row.user.active or issue.is_external(row.user):
        raise InvalidGrantError(description="The user is disabled.")
    if not application.admits(row.user):
        raise InvalidGrantError(description="The application may no longer sign this user in.")
    if not is_enough(str(row.user_id), row.authenticated_by.split()[1:]):
        raise InvalidGrantError(description="A role of the user requires another factor: sign in again.")
    if not set(row.scope.split()) <= scopes_allowed(application, service=False):
        # The application has lost scopes; a new sign-in gets the current ones.
        raise InvalidGrantError(description="The application may no longer have all scopes of this token.")
    request.refresh_token_instance = row
    request.user = row.user


def refresh_use(request: Request) -> None:
    """Invalidate the old token, in the transaction that saves its successors. Raises InvalidGrantError."""
    # Concurrent requests with one token wait for one another here; on SQLite the transaction is the only writer.
    row = RefreshToken.objects.select_for_update().filter(pk=request.refresh_token_instance.pk).first()
    if row is None:
        raise InvalidGrantError(description=_REFUSED)
    now = utc_now()
    if row.revoked is None:
        RefreshToken.objects.filter(pk=row.pk).update(revoked=now, updated=now)
        return
    if not _is_repeated(row):
        raise InvalidGrantError(description=_REFUSED)
    # The tokens of the lost response are revoked, so that one successor remains.
    lost = RefreshToken.objects.filter(token_family=row.token_family, revoked=None)
    AccessToken.objects.filter(pk__in=list(lost.values_list("access_token", flat=True))).delete()
    tokens_revoked()
    lost.update(revoked=now, updated=now, is_withdrawn=True)


def _is_repeated(row: RefreshToken) -> bool:
    """Whether a client repeats a request because its response was lost: within the grace, and no successor was used.

    A revoked family has no valid member, so a revoked token is never accepted here.
    """
    if row.revoked is None or row.revoked <= utc_now() - _GRACE or row.is_withdrawn:
        return False
    later = RefreshToken.objects.filter(token_family=row.token_family, pk__gt=row.pk, is_withdrawn=False)
    return later.filter(revoked=None).count() == 1 and not later.filter(revoked__isnull=False).exists()
