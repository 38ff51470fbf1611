"""Signing keys: RSA, private halves as files of one node (0600), public halves in the database for all (spec 01, 1.2).

Each node signs with a key of its own and never shares it; every node verifies with the public halves. Rotation adds a
key and retires the node's others, which stay published while tokens may use them. A new key is published for as long as
applications and caches may keep the keys from before, and signs after that; until then the one before signs. In-process
copies follow the cache version "keys".
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from django.conf import settings
from django.db import transaction
from jwcrypto.jwk import JWK
from jwt import PyJWK
from oauth2_provider.settings import oauth2_settings

from audit.actors import Actor
from audit.models import AuditHead
from audit.record import record
from foundation import cache_versions, private_files
from foundation.fields import utc_now
from identity.audit_kinds import SecretChanged
from identity.models import SigningKey

CACHE_VERSION = "keys"
_KEY_BITS = 2048
# The keys are cached for max-age, and by stale-while-revalidate for as long again (the toolkit's JwksInfoView).
PUBLISHED_BEFORE_USE = datetime.timedelta(seconds=2 * oauth2_settings.OIDC_JWKS_MAX_AGE_SECONDS)
# For clocks and caches that are behind.
_MARGIN = datetime.timedelta(minutes=50)
# Applications send long expired id tokens as hints at sign-out (RP-Initiated Logout, 2).
_REMEMBERED_AFTER_RETIREMENT = datetime.timedelta(days=90)


@dataclass(frozen=True, slots=True)
class KeySet:
    """A process's keys: `public` maps kid → key of every published key, `active` signs.

    until    when a newer key of this node signs; the end of time if there is none
    retired  keys that are not published any more: valid for hints, not for access
    """

    version: int
    until: datetime.datetime
    active_kid: str
    active: RSAPrivateKey
    public: dict[str, RSAPublicKey]
    retired: dict[str, RSAPublicKey]
    jwks: tuple[dict[str, Any], ...]


_lock = threading.Lock()
_current: KeySet | None = None
_reloaded_at = float("-inf")


def key_set() -> KeySet:
    """The keys for the current cache version "keys"; generates this node's first key if there is none."""
    global _current
    version = cache_versions.current(CACHE_VERSION)
    known = _current
    if known is None or known.version != version or known.until <= utc_now():
        with _lock:
            known = _current = _load(version)
    return known


def reload() -> None:
    """Read the keys again: an unknown kid may belong to a new key of another node.

    At most once a second, since clients can send unknown kids.
    """
    global _current, _reloaded_at
    now = time.monotonic()
    if now - _reloaded_at >= 1.0:
        _reloaded_at = now
        _current = None


def forget() -> None:
    global _current
    _current = None


def keys_rotate(*, by: Actor, at_once: bool = False) -> SigningKey:
    """Publish a new key, which signs after PUBLISHED_BEFORE_USE; retire this node's others, delete long retired ones.

    at_once: the key is stolen. The new one signs from now on, and the others never again.
    """
    with _directory_lock(), transaction.atomic():
        own_keys = [row for row in SigningKey.objects.filter(retired=None) if _path(row.kid).exists()]
        new = _create()
        SigningKey.objects.filter(kid__in=[row.kid for row in own_keys]).update(retired=utc_now())
        if at_once:
            _delete_private(SigningKey.objects.exclude(kid=new.kid))
        _prune()
        cache_versions.bump(CACHE_VERSION)
        record(SecretChanged, by=by, subject=f"signing key {new.kid}")
    forget()
    return new


def _load(version: int) -> KeySet:
    now = utc_now()
    rows = list(SigningKey.objects.order_by("created"))
    mine = [row for row in rows if _path(row.kid).exists()]
    if all(row.retired for row in mine):
        mine = [_first_key()]
        # The new key bumped the cache version: under the old one, the next request would load the same keys again.
        version = cache_versions.current(CACHE_VERSION)
        rows = list(SigningKey.objects.order_by("created"))
    # The first key has no predecessor that could sign until then.
    known = [row for row in mine if row.created <= now - PUBLISHED_BEFORE_USE]
    active = known[-1] if known else mine[0]
    later = [row.created + PUBLISHED_BEFORE_USE for row in mine if row.created > active.created]
    rows = [row for row in rows if row.retired is None or row.retired > now - _REMEMBERED_AFTER_RETIREMENT]
    oldest = now - _published_after_retirement()
    # The one that signs first, for clients that read no other, and then the newest first.
    published = [row for row in reversed(rows) if row.retired is None or row.retired > oldest]
    published.sort(key=lambda row: row.kid != active.kid)
    return KeySet(
        version=version,
        until=min(later, default=datetime.datetime.max.replace(tzinfo=datetime.UTC)),
        active_kid=active.kid,
        active=_private_key(_path(active.kid).read_bytes()),
        public=_keys_of(published),
        retired=_keys_of(row for row in rows if row not in published),
        jwks=tuple(row.public_jwk for row in published),
    )


@lru_cache(maxsize=2)
def _private_key(pem: bytes) -> RSAPrivateKey:
    # Cached: loading takes some 40 ms, because it checks that the key's numbers are primes.
    private = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(private, RSAPrivateKey):
        raise TypeError("the signing key is not an RSA key")
    return private


def _first_key() -> SigningKey:
    with _directory_lock(), transaction.atomic():
        # Another process of this node may have created one meanwhile.
        for row in SigningKey.objects.filter(retired=None).order_by("-created"):
            if _path(row.kid).exists():
                return row
        new = _create()
        cache_versions.bump(CACHE_VERSION)
        return new


def _create() -> SigningKey:
    private = generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    jwk = _public_jwk(private.public_key())
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    private_files.write(_path(jwk["kid"]), pem, is_new=True)
    return SigningKey.objects.create(kid=jwk["kid"], public_jwk=jwk)


def _keys_of(rows: Iterable[SigningKey]) -> dict[str, RSAPublicKey]:
    return {row.kid: PyJWK.from_dict(row.public_jwk).key for row in rows}


def _published_after_retirement() -> datetime.timedelta:
    """How long tokens may use a retired key, which signs until its successor does. Refresh tokens are not signed."""
    longest = max(oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS, oauth2_settings.ID_TOKEN_EXPIRE_SECONDS)
    return datetime.timedelta(seconds=longest) + PUBLISHED_BEFORE_USE + _MARGIN


def _prune() -> None:
    """Delete private halves of retired keys, and public halves that no id token hint or audit head needs."""
    now = utc_now()
    _delete_private(SigningKey.objects.filter(retired__lt=now - _published_after_retirement()))
    # The signatures of heads of the audit chain are verified as long as the heads are kept.
    old = SigningKey.objects.filter(retired__lt=now - _REMEMBERED_AFTER_RETIREMENT)
    old.exclude(kid__in=AuditHead.objects.values("kid")).delete()


def _delete_private(rows: Iterable[SigningKey]) -> None:
    for row in rows:
        _path(row.kid).unlink(missing_ok=True)


def _public_jwk(key: RSAPublicKey) -> dict[str, Any]:
    """The published form; `kid` is the thumbprint of RFC 7638."""
    jwk = JWK.from_pyca(key)
    return {"kid": jwk.thumbprint(), "use": "sig", "alg": "RS256", **jwk.export_public(as_dict=True)}


def _directory() -> Path:
    directory: Path = settings.DATA_DIR / "keys"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _path(kid: str) -> Path:
    return _directory() / f"{kid}.pem"


def _directory_lock() -> AbstractContextManager[None]:
    """The lock of key generation between the processes of the node."""
    return private_files.lock(_directory() / ".lock")
