"""Issuing and revoking access, refresh and id tokens (spec 01, 1.4 and 1.5)."""

from __future__ import annotations

import base64
import datetime
import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from foundation.fields import utc_now
from identity.changes import tokens_revoked
from identity.models import AccessToken, Grant, RefreshToken, TrustedApplication, User
from identity.oauth import claims, jwt
from identity.sessions import session_close

if TYPE_CHECKING:
    from oauthlib.common import Request

# Retention of used codes and dead refresh tokens, so that their reuse is detected.
_REMEMBERED = datetime.timedelta(days=1)
_PRUNE_BATCH = 5000


def seconds(name: str) -> int:
    """A lifetime from the settings."""
    value: int = settings.OAUTH2_PROVIDER[name]
    return value


def issuer_of(request: Request) -> str:
    """The issuer for the request's host; set by identity.oauth.server.request_headers."""
    return str(request.headers["X-Issuer"])


def may_refresh(application: TrustedApplication, scopes: list[str]) -> bool:
    """Refresh tokens require offline_access and a confidential application."""
    return "offline_access" in scopes and not application.is_public


def is_external(user: User | None) -> bool:
    """External users get an id token only."""
    return user is not None and user.user_type != "InternalUser"


def access_token_create(request: Request) -> str:
    """The JWT for a token request; a service request starts a token family, which is also its session."""
    if request.grant_type == "client_credentials":
        request.user = None
        request.token_family = uuid.uuid4()
        request.sid = str(request.token_family)
        request.auth_time = None
    return jwt.sign(
        claims.access_token_claims(
            issuer=issuer_of(request),
            application=request.client,
            user=request.user,
            scopes=request.scopes,
            sid=request.sid,
            jti=uuid.uuid4().hex,
            lifetime_seconds=request.expires_in,
            auth_time=request.auth_time,
        ),
        type_=jwt.ACCESS_TOKEN_TYPE,
    )


def id_token_create(request: Request, token: dict[str, Any]) -> str:
    """The id token beside the code or tokens in `token` (OIDC Core, 3.1.3.6 and 3.3.2.11)."""
    hashes = {
        name: _half_hash(token[source])
        for name, source in (("at_hash", "access_token"), ("c_hash", "code"))
        if source in token
    }
    return jwt.sign(
        claims.id_token_claims(
            issuer=issuer_of(request),
            application=request.client,
            user=request.user,
            scopes=request.scopes,
            sid=request.sid,
            lifetime_seconds=seconds("ID_TOKEN_EXPIRE_SECONDS"),
            auth_time=request.auth_time,
            nonce=request.nonce,
            hashes=hashes,
        ),
        type_=jwt.ID_TOKEN_TYPE,
    )


def tokens_save(request: Request, token: dict[str, Any]) -> None:
    """Store the digests of the tokens in the response."""
    raw = token.get("access_token")
    if raw is None:
        return
    access_token = AccessToken(
        user=request.user,
        application=request.client,
        scope=token["scope"],
        expires=utc_now() + datetime.timedelta(seconds=token["expires_in"]),
        sid=request.sid,
        token_family=request.token_family,
        is_service=request.user is None,
        token="",
    )
    access_token._raw_token = raw  # the toolkit stores only the checksum then
    access_token.save(force_insert=True)
    if refresh := token.get("refresh_token"):
        _refresh_token_save(request, refresh, access_token)


def family_revoke(token_family: uuid.UUID | None) -> None:
    """Revoke all access and refresh tokens of the family, and close its session."""
    if token_family is None:
        return
    with transaction.atomic():
        live = AccessToken.objects.filter(token_family=token_family)
        family = RefreshToken.objects.filter(token_family=token_family)
        sids = {*live.values_list("sid", flat=True), *family.values_list("sid", flat=True)}
        now = utc_now()
        family.filter(revoked=None).update(revoked=now, updated=now)
        live.delete()
        tokens_revoked()
        session_close(sids)


def token_revoke(raw: str, application: TrustedApplication) -> None:
    """RFC 7009: revoke a token of this application, with all of its family. Unknown tokens are no error."""
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    found = (
        AccessToken.objects.filter(token_checksum=checksum, application=application).first()
        or RefreshToken.objects.filter(token_checksum=checksum, application=application).first()
    )
    if found is not None:
        family_revoke(found.token_family)


def application_revoke(application: TrustedApplication) -> int:
    """Revoke all tokens of an application; returns the number of families."""
    families = {
        *AccessToken.objects.filter(application=application).values_list("token_family", flat=True),
        *RefreshToken.objects.filter(application=application, revoked=None).values_list("token_family", flat=True),
    }
    for family in families:
        family_revoke(family)
    return len(families)


def user_revoke(user: User) -> int:
    """Revoke all tokens of a user; returns the number of families."""
    families = {
        *AccessToken.objects.filter(user=user).values_list("token_family", flat=True),
        *RefreshToken.objects.filter(user=user, revoked=None).values_list("token_family", flat=True),
    }
    for family in families:
        family_revoke(family)
    return len(families)


def tokens_prune() -> int:
    """Delete expired rows after their retention; returns their number."""
    now = utc_now()
    removed = 0
    for model, until in ((AccessToken, now), (Grant, now - _REMEMBERED), (RefreshToken, now - _REMEMBERED)):
        old = model.objects.filter(expires__lt=until).values_list("pk", flat=True)[:_PRUNE_BATCH]
        removed += model.objects.filter(pk__in=list(old)).delete()[0]
    return removed


def _refresh_token_save(request: Request, raw: str, access_token: AccessToken) -> None:
    row = RefreshToken(
        user=request.user,
        application=request.client,
        access_token=access_token,
        token_family=request.token_family,
        sid=request.sid,
        scope=access_token.scope,
        auth_time=request.auth_time,
        expires=utc_now() + datetime.timedelta(seconds=seconds("REFRESH_TOKEN_EXPIRE_SECONDS")),
        token="",
    )
    row._raw_token = raw
    row.save(force_insert=True)


def _half_hash(value: str) -> str:
    digest = hashlib.sha256(value.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()
