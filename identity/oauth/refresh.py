"""Rotates refresh tokens: a second use of one means a theft or a lost response (RFC 9700, 4.14.2)."""

from __future__ import annotations

import datetime
import hashlib
import logging
from typing import TYPE_CHECKING

from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from foundation.fields import utc_now
from identity.factors.policy import is_enough
from identity.models import RefreshToken, TrustedApplication
from identity.oauth import issue
from identity.oauth.binding import check_bound

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
    check_bound(request, row.dpop_jkt, "refresh token")  # before the reuse check, which revokes the family
    # Before the expiry: its successors live longer than the token.
    if row.revoked is not None and not _is_repeated(row):
        issue.reuse_revoke(row.token_family, row.application, what="refresh token")
        logger.warning("refresh token %s of client %s was used again", row.pk, row.application_id)
        raise InvalidGrantError(description=_REFUSED)
    if row.expires <= utc_now():
        raise InvalidGrantError(description=_REFUSED)
    if not row.user.active or issue.is_external(row.user):
        raise InvalidGrantError(description="The user is disabled.")
    if not is_enough(str(row.user_id), row.authenticated_by.split()[1:]):
        raise InvalidGrantError(description="A role of the user requires another factor: sign in again.")
    if not set(row.scope.split()) <= set(application.scopes):
        # The application has lost scopes; a new sign-in gets the current ones.
        raise InvalidGrantError(description="The application may no longer have all scopes of this token.")
    request.refresh_token_instance = row
    request.user = row.user


def refresh_use(request: Request) -> None:
    """Invalidate the old token; of two concurrent requests one succeeds. Raises InvalidGrantError.

    Called inside the transaction that saves the successors.
    """
    row: RefreshToken = request.refresh_token_instance
    now = utc_now()
    if row.revoked is None:
        if not RefreshToken.objects.filter(pk=row.pk, revoked=None).update(revoked=now, updated=now):
            raise InvalidGrantError(description=_REFUSED)
    else:
        # A repeated request: the tokens of its lost response are revoked, so that one successor remains.
        RefreshToken.objects.filter(token_family=row.token_family, revoked=None).update(revoked=now, updated=now)


def _is_repeated(row: RefreshToken) -> bool:
    """Whether a client repeats a request because its response was lost: within the grace, and no successor was used.

    A revoked family has no valid member, so a revoked token is never accepted here.
    """
    if row.revoked is None or row.revoked <= utc_now() - _GRACE:
        return False
    later = RefreshToken.objects.filter(token_family=row.token_family, pk__gt=row.pk)
    return later.filter(revoked=None).count() == 1 and not later.filter(revoked__isnull=False).exists()
