"""Authorization codes: one use, 60 seconds, bound to client, redirect URI and challenge (RFC 6749, 4.1.2; RFC 7636)."""

from __future__ import annotations

import datetime
import hashlib
import logging
import uuid
from typing import TYPE_CHECKING

from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from foundation.fields import utc_now
from identity.factors.methods import as_stored
from identity.models import Grant, TrustedApplication
from identity.oauth import issue
from identity.oauth.binding import check_bound
from identity.oauth.scopes import scopes_for_user
from identity.oauth.sign_in import SignIn

if TYPE_CHECKING:
    from oauthlib.common import Request

logger = logging.getLogger(__name__)
_REFUSED = "The authorization code is unknown, expired, already used or was issued to another client."


def stored_code(code: str) -> str:
    """The digest of a code, also of a device or a pushed request; a stolen database contains no usable codes."""
    return hashlib.sha256(code.encode()).hexdigest()


def code_prepare(sign_in: SignIn, application: TrustedApplication, acr: str, dpop_jkt: str) -> Grant:
    """A code for this sign-in, which meets `acr`; `code_save` completes and stores. `dpop_jkt`: its key, or ""."""
    return Grant(
        application=application,
        user=sign_in.user,
        sid=sign_in.sid(str(application.pk)),
        auth_time=sign_in.auth_time,
        authenticated_by=as_stored(acr, sign_in.amr),
        token_family=uuid.uuid4(),
        dpop_jkt=dpop_jkt,
    )


def code_save(request: Request, code: str) -> Grant:
    """Complete and store `request.grant_instance` with the data for the token request."""
    request.scopes = scopes_for_user(request.user, request.scopes)
    grant: Grant = request.grant_instance
    grant.code = stored_code(code)
    grant.expires = utc_now() + datetime.timedelta(seconds=oauth2_settings.AUTHORIZATION_CODE_EXPIRE_SECONDS)
    grant.redirect_uri = request.redirect_uri
    grant.scope = " ".join(request.scopes)
    grant.code_challenge = request.code_challenge or ""
    grant.code_challenge_method = request.code_challenge_method or ""
    grant.nonce = request.nonce or ""
    grant.save(force_insert=True)
    return grant


def code_load(code: str, application: TrustedApplication, request: Request) -> None:
    """Load the code's data into the request; a reused code revokes its tokens. Raises InvalidGrantError."""
    if not code.isascii() or "\x00" in code:
        raise InvalidGrantError(description=_REFUSED)  # PostgreSQL refuses NUL in parameters
    grant = Grant.objects.select_related("user").filter(code=stored_code(code), application=application).first()
    if grant is None:
        raise InvalidGrantError(description=_REFUSED)
    # Before the expiry: its tokens live longer than the code.
    if grant.used is not None:
        _reused(grant)
    if grant.is_expired():
        raise InvalidGrantError(description=_REFUSED)
    if not grant.user.active:
        raise InvalidGrantError(description="The user is disabled.")
    if not application.admits(grant.user):
        raise InvalidGrantError(description="The application may no longer sign this user in.")
    # RFC 9700, 4.8.2: a verifier without a challenge means that an attacker removed the challenge.
    if request.code_verifier and not grant.code_challenge:
        raise InvalidGrantError(description="The authorization request had no code_challenge.")
    check_bound(request, grant.dpop_jkt)
    request.grant_instance = grant
    request.user = grant.user
    request.scopes = grant.scope.split()
    request.nonce = grant.nonce or None


def check_redirect_uri(request: Request, redirect_uri: str) -> None:
    """The redirect URI must equal that of the authorization request (RFC 6749, 4.1.3). Raises InvalidGrantError."""
    if not request.grant_instance.redirect_uri_allowed(redirect_uri):
        raise InvalidGrantError(description="redirect_uri differs from that of the authorization request.")


def code_use(code: str, application: TrustedApplication) -> None:
    """Mark the code used. If another request has used it, revokes the tokens of both and raises InvalidGrantError."""
    used = Grant.objects.filter(code=stored_code(code), application=application, used=None).update(used=utc_now())
    if not used:
        grant = Grant.objects.filter(code=stored_code(code), application=application).first()
        if grant is not None:
            _reused(grant)
        raise InvalidGrantError(description=_REFUSED)


def _reused(grant: Grant) -> None:
    # RFC 6749, 4.1.2: "SHOULD revoke (when possible) all tokens previously issued based on that authorization code".
    issue.reuse_revoke(grant.token_family, grant.application, what="code")
    logger.warning("authorization code %s of client %s was used again", grant.pk, grant.application_id)
    raise InvalidGrantError(description=_REFUSED)
