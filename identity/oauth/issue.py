"""Issues and revokes access and refresh tokens (spec 01, 1.4 and 1.5)."""

from __future__ import annotations

import datetime
import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from django.db import transaction
from oauth2_provider.models import set_token_value
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from audit.actors import Actor
from audit.record import failure, record
from foundation.fields import utc_now
from identity.audit_actors import actor_of_client
from identity.audit_kinds import TokenIssued, TokenReused, TokenRevoked
from identity.changes import tokens_revoked
from identity.models import AccessToken, DeviceGrant, Grant, ReferenceToken, RefreshToken, TrustedApplication, User
from identity.oauth import claims, jwt
from identity.reference_tokens import reference_token_revoke
from identity.sessions import session_close

if TYPE_CHECKING:
    from oauthlib.common import Request

# Retention of used codes and dead refresh tokens, so that their reuse is detected.
_REMEMBERED = datetime.timedelta(days=1)
_PRUNE_BATCH = 5000


def source_of(request: Request) -> Grant | DeviceGrant | RefreshToken | None:
    """The row of the request's grant: code, device or refresh token; None for client_credentials."""
    return getattr(request, "grant_instance", None) or getattr(request, "refresh_token_instance", None)


def refresh_scopes(request: Request) -> list[str]:
    """The scopes of a new refresh token: those of the replaced one, even if the request asks for an access token with
    fewer (RFC 6749, 6); else the granted ones.
    """
    replaced: RefreshToken | None = getattr(request, "refresh_token_instance", None)
    granted: list[str] = request.scopes if replaced is None else replaced.scope.split()
    return granted


def is_external(user: User | None) -> bool:
    """External users get an id token only."""
    return user is not None and user.user_type != "InternalUser"


def access_token_create(request: Request) -> str:
    """The JWT for a token request (ACCESS_TOKEN_GENERATOR); its unsaved row is `request.access_token`.

    A service request starts a token family, which is also its session.
    """
    source = source_of(request)
    family = source.token_family if source else uuid.uuid4()
    request.access_token = AccessToken(
        user=request.user,
        application=request.client,
        scope=" ".join(request.scopes),
        sid=source.sid if source else str(family),
        token_family=family,
        is_service=source is None,
        authenticated_by=source.authenticated_by if source else "",
        dpop_jkt=getattr(request, "dpop_jkt", ""),
    )
    return access_token_sign(
        request.access_token,
        issuer=oauth2_settings.oidc_issuer(request),
        lifetime_seconds=request.expires_in,
        auth_time=source.auth_time if source else None,
    )


def access_token_sign(
    row: AccessToken,
    *,
    issuer: str,
    lifetime_seconds: int,
    auth_time: datetime.datetime | None = None,
    carried: claims.Claims | None = None,
) -> str:
    """The JWT of an unsaved row; sets the row's expiry and checksum.

    `carried`: claims from the subject token of an exchange.
    """
    now = utc_now()
    row.expires = now + datetime.timedelta(seconds=lifetime_seconds)
    content = claims.access_token_claims(row, issuer=issuer, issued=now, auth_time=auth_time)
    raw = jwt.sign({**content, **(carried or {})}, type_=jwt.ACCESS_TOKEN_TYPE)
    set_token_value(row, raw)
    return raw


def tokens_save(request: Request, token: dict[str, Any]) -> None:
    """Store the digests of the tokens in the response."""
    if "access_token" not in token:
        return
    access_token: AccessToken = request.access_token
    access_token.save(force_insert=True)
    source = source_of(request)
    by = actor_of_client(request, request.user, request.client)
    token_issued(access_token, by=by, grant=str(request.grant_type), refreshable="refresh_token" in token)
    if "refresh_token" in token and source is not None:
        row = RefreshToken(
            user=request.user,
            application=request.client,
            access_token=access_token,
            token_family=source.token_family,
            sid=source.sid,
            scope=" ".join(refresh_scopes(request)),
            auth_time=source.auth_time,
            authenticated_by=source.authenticated_by,
            expires=utc_now() + datetime.timedelta(seconds=oauth2_settings.REFRESH_TOKEN_EXPIRE_SECONDS),
        )
        set_token_value(row, token["refresh_token"])
        row.save(force_insert=True)


def token_issued(row: AccessToken, *, by: Actor, grant: str, **content: object) -> None:
    """Record a new access token in the audit chain."""
    family = str(row.token_family)
    subject = f"token family {family}"
    record(TokenIssued, by=by, subject=subject, grant=grant, scopes=row.scope.split(), sid=row.sid, **content)


def family_revoke(token_family: uuid.UUID | None, *, by: Actor) -> None:
    """Revoke all access and refresh tokens of the family, and close its session."""
    if token_family is None:
        return
    with transaction.atomic():
        live = AccessToken.objects.filter(token_family=token_family)
        family = RefreshToken.objects.filter(token_family=token_family)
        # An exchanged token shares the session of its subject token, which stays open.
        own = live.filter(subject_token=None).values_list("sid", flat=True)
        sids = {*own, *family.values_list("sid", flat=True)}
        now = utc_now()
        family.filter(revoked=None).update(revoked=now, updated=now)
        live.delete()
        tokens_revoked()
        session_close(sids)
        record(TokenRevoked, by=by, subject=f"token family {token_family}")


def reuse_revoke(token_family: uuid.UUID | None, application: TrustedApplication, *, what: str) -> None:
    """Revoke the family of a code or refresh token that was used again."""
    by = Actor(application=application.application_uri)
    family_revoke(token_family, by=by)
    failure(TokenReused, by=by, subject=f"token family {token_family}", what=what)


def token_revoke(raw: str, application: TrustedApplication, *, by: Actor) -> None:
    """RFC 7009: revoke a token of this application, with all of its family. Unknown tokens are no error.

    Raises InvalidGrantError for a token of another application (2.1).
    """
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    found = (
        ReferenceToken.objects.filter(digest=checksum).first()
        or AccessToken.objects.filter(token_checksum=checksum).first()
        or RefreshToken.objects.filter(token_checksum=checksum).first()
    )
    if found is None:
        return
    if found.application_id != application.pk:
        raise InvalidGrantError(description="The token was issued to another client.")
    if not isinstance(found, ReferenceToken):
        family_revoke(found.token_family, by=by)
    elif found.revoked is None:
        reference_token_revoke(found, by=by)
        tokens_revoked()


def application_revoke(application: TrustedApplication, *, by: Actor) -> int:
    """Revoke all tokens of an application; returns the number of families."""
    return _families_revoke(by, application=application)


def user_revoke(user: User, *, by: Actor) -> int:
    """Revoke all tokens of a user; returns the number of families."""
    return _families_revoke(by, user=user)


def grant_revoke(user: User, application: TrustedApplication, *, by: Actor) -> int:
    """Revoke all tokens of an application for a user; returns the number of families."""
    return _families_revoke(by, user=user, application=application)


def tokens_prune() -> int:
    """Delete expired rows after their retention; returns their number."""
    now = utc_now()
    removed = 0
    for model in (AccessToken, DeviceGrant, Grant, RefreshToken):
        until = now if model is AccessToken else now - _REMEMBERED
        old = model.objects.filter(expires__lt=until).values_list("pk", flat=True)[:_PRUNE_BATCH]
        removed += model.objects.filter(pk__in=list(old)).delete()[0]
    return removed


def _families_revoke(by: Actor, **owner: TrustedApplication | User) -> int:
    families = {
        *AccessToken.objects.filter(**owner).values_list("token_family", flat=True),
        *RefreshToken.objects.filter(**owner, revoked=None).values_list("token_family", flat=True),
    }
    for family in families:
        family_revoke(family, by=by)
    return len(families)
