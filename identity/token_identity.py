"""Maps a token to its identity, cached in the process by the token's digest (spec 01, 1.5).

The first use of a token costs a signature check and a query. After that it is one lookup, until the cache version
"tokens" changes: then the state of token, application and user is read again, without any RSA operation. So revoking
and disabling take effect on the next request (foundation.cache_versions).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from foundation import cache_versions, errors
from foundation.messages import TranslatableMessage as Message
from identity.changes import TOKENS
from identity.context import Caller
from identity.credentials import REFERENCE_PREFIX
from identity.lru import GenerationalCache
from identity.models import AccessToken, TrustedApplication, User
from identity.oauth import jwt
from identity.oauth.scopes import scopes_allowed
from identity.reference_tokens import reference_token_load, reference_token_used
from identity.sessions import SessionKey


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Identity of a verified token; `expires` is a UTC timestamp, `reference_id` that of a reference token.

    top_paging        as of CallContext
    authenticated_by  acr and amr values of the user's sign-in; "" for services and reference tokens
    actors            URIs of the applications that act for the user by exchanged tokens (RFC 8693), newest first
    audiences         the services that it is for (RFC 9068, 2.2)
    """

    caller: Caller
    application_id: str
    application_uri: str
    application_limit: int | None
    top_paging: bool
    scopes: frozenset[str]
    session: SessionKey
    is_service: bool
    expires: float
    default_language: str
    reference_id: str | None = None
    jkt: str | None = None
    authenticated_by: str = ""
    actors: tuple[str, ...] = ()
    audiences: tuple[str, ...] = tuple(jwt.AUDIENCES)


@dataclass(slots=True)
class _Entry:
    version: int
    identity: TokenIdentity
    used_noted: float = 0.0


_entries: GenerationalCache[bytes, _Entry] = GenerationalCache(8192)
_NOTE_USED_SECONDS = 30
#: Lifetime of an identity by password, which is used for one request.
_PASSWORD_SECONDS = 60


def identify(token: str) -> TokenIdentity:
    """The identity of the token. Raises Unauthorized or Forbidden. If cached: no RSA, no query, no write."""
    digest = hashlib.sha256(token.encode()).digest()
    entry = _entries.get(digest)
    version = cache_versions.current(TOKENS)
    now = time.time()
    if entry is None or entry.version != version:
        # Loaded after the cache version was read: a change in between causes a needless reload, never a stale entry.
        identity = _load(token, digest, known=entry.identity if entry else None)
        entry = _Entry(version, identity, entry.used_noted if entry else 0.0)
        _entries.put(digest, entry)
    identity = entry.identity
    if identity.expires <= now:
        _entries.drop(digest)
        raise errors.Unauthorized(errors.TOKEN_EXPIRED)
    if identity.reference_id is not None and now - entry.used_noted >= _NOTE_USED_SECONDS:
        entry.used_noted = now
        reference_token_used(identity.reference_id)
    return identity


def forget() -> None:
    """Drop the cache (tests)."""
    _entries.clear()


def _load(token: str, digest: bytes, *, known: TokenIdentity | None) -> TokenIdentity:
    if token.startswith(REFERENCE_PREFIX):
        return _load_reference(digest)
    # The toolkit's checksum is the hexadecimal digest of the same bytes.
    audiences = _verified_audiences(token) if known is None else known.audiences
    identity = _of_row(token_checksum=digest.hex())
    return identity if identity.audiences == audiences else replace(identity, audiences=audiences)


def _verified_audiences(token: str) -> tuple[str, ...]:
    """The audiences of a valid access token. Raises Unauthorized."""
    try:
        given = jwt.verify_access_token(token)["aud"]
    except jwt.InvalidToken as exc:
        if exc.expired:
            raise errors.Unauthorized(errors.TOKEN_EXPIRED) from exc
        raise errors.Unauthorized(errors.TOKEN_INVALID, exc.reason) from exc
    return tuple(given) if isinstance(given, list) else (str(given),)


def _of_row(**key: Any) -> TokenIdentity:
    row = AccessToken.objects.select_related("user", "application", "application__system_user").filter(**key).first()
    if row is None or row.application is None:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("it has been revoked"))
    application: TrustedApplication = row.application
    if row.subject_token_id is not None:
        return _exchanged(row)
    user = application.system_user if row.is_service else row.user
    return _identity(
        user,
        application,
        scopes=row.scope,
        session_key=row.sid,
        is_service=row.is_service,
        expires=row.expires.timestamp(),
        jkt=row.dpop_jkt or None,
        authenticated_by=row.authenticated_by,
    )


def _exchanged(row: AccessToken) -> TokenIdentity:
    """The identity of an exchanged token; valid while its subject token and the delegation are
    (identity.oauth.exchange).
    """
    subject = _of_row(pk=row.subject_token_id)
    actor: TrustedApplication = row.application
    if subject.application_uri not in actor.exchangeable:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("its application may no longer act for users"))
    return _identity(
        row.user,
        actor,
        scopes=" ".join(subject.scopes.intersection(row.scope.split())),
        session_key=row.sid,
        is_service=False,
        expires=row.expires.timestamp(),
        jkt=row.dpop_jkt or None,
        authenticated_by=row.authenticated_by,
        subject=subject,
    )


def _load_reference(digest: bytes) -> TokenIdentity:
    row = reference_token_load(digest.hex())
    return _identity(
        row.user,
        row.application,
        scopes=row.scope,
        session_key=str(row.pk),
        is_service=row.kind == row.SERVICE,
        expires=row.expires.timestamp(),
        reference_id=str(row.pk),
    )


def identify_user(user: User, application: TrustedApplication, *, scopes: Sequence[str]) -> TokenIdentity:
    """The identity of a user by password, with those of the scopes that the application may have.

    All calls of a user have one session. Raises Unauthorized or Forbidden.
    """
    key = hashlib.sha256(f"password {application.pk} {user.pk}".encode()).hexdigest()
    return _identity(
        user,
        application,
        scopes=" ".join(scopes),
        session_key=key,
        is_service=False,
        expires=time.time() + _PASSWORD_SECONDS,
    )


def _identity(
    user: User | None,
    application: TrustedApplication,
    *,
    scopes: str,
    session_key: str,
    is_service: bool,
    expires: float,
    reference_id: str | None = None,
    jkt: str | None = None,
    authenticated_by: str = "",
    subject: TokenIdentity | None = None,
) -> TokenIdentity:
    check_access(user, application, is_service=is_service)
    # Reference and exchanged tokens have a separate policy, checked when the row was loaded.
    own_policy = reference_id is not None or subject is not None or is_service
    if not own_policy and not application.impersonate_as_internal_user_allowed:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("its application may no longer act for users"))
    assert user is not None
    return TokenIdentity(
        caller=user.as_caller(user.default_language or "en"),
        application_id=str(application.pk),
        application_uri=application.application_uri,
        application_limit=application.rate_limit_per_minute,
        top_paging=settings.TOP_PAGING if application.top_paging is None else application.top_paging,
        # An administrator may have taken scopes from the application since the token was issued.
        scopes=scopes_allowed(application, service=is_service).intersection(scopes.split()),
        session=subject.session if subject else SessionKey(session_key, str(user.pk), str(application.pk), is_service),
        is_service=is_service,
        expires=expires,
        default_language=(user.default_language or "").lower(),
        reference_id=reference_id,
        jkt=jkt,
        authenticated_by=authenticated_by,
        actors=(application.application_uri, *subject.actors) if subject else (),
    )


def check_access(user: User | None, application: TrustedApplication, *, is_service: bool) -> None:
    """Check that user and application may still call the API. Raises Unauthorized or Forbidden."""
    if not application.is_enabled:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("its application is disabled"))
    if user is None or not user.active:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("its user is disabled"))
    if is_service and not application.system_user_allowed:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("its application may no longer run as a service"))
    if not user.may_call(as_service=is_service):  # the user of a service may have become external
        raise errors.Forbidden(errors.USER_NOT_INTERNAL)
