"""Signing keys: RSA, private halves as files of one node (0600), public halves in the database for all (spec 01, 1.2).

Each node signs with its newest key and never shares it; every node verifies with the public halves. Rotation adds a key
and retires the node's others, which stay published while tokens may use them. The processes cache the keys under the
cache version "keys".
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

from audit.actors import Actor
from audit.models import AuditHead
from audit.record import record
from foundation import cache_versions, private_files
from foundation.fields import utc_now
from identity.audit_kinds import SecretChanged
from identity.models import SigningKey

CACHE_VERSION = "keys"
_KEY_BITS = 2048
# Refresh tokens are not signed; the longest-lived signed token is an access or id token.
_PUBLISHED_AFTER_RETIREMENT = datetime.timedelta(hours=2)
# Applications send long expired id tokens as hints at sign-out (RP-Initiated Logout, 2).
_REMEMBERED_AFTER_RETIREMENT = datetime.timedelta(days=90)


@dataclass(frozen=True, slots=True)
class KeySet:
    """A process's keys: `public` maps kid → key of every published key, `active` signs.

    `retired` has keys that are no longer published: valid for id token hints, not for access tokens.
    """

    version: int
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
    if known is None or known.version != version:
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


def keys_rotate(*, by: Actor) -> SigningKey:
    """Sign with a new key from now on; retire this node's other keys, and delete long retired ones."""
    with _directory_lock(), transaction.atomic():
        own_keys = [row for row in SigningKey.objects.filter(retired=None) if _path(row.kid).exists()]
        new = _create()
        SigningKey.objects.filter(kid__in=[row.kid for row in own_keys]).update(retired=utc_now())
        _prune()
        cache_versions.bump(CACHE_VERSION)
        record(SecretChanged, by=by, subject=f"signing key {new.kid}")
    forget()
    return new


def _load(version: int) -> KeySet:
    rows = list(SigningKey.objects.order_by("created"))
    active = next((row for row in reversed(rows) if row.retired is None and _path(row.kid).exists()), None)
    if active is None:
        active = _first_key()
        # Creating the key has bumped the cache version.
        version = cache_versions.current(CACHE_VERSION)
        rows = list(SigningKey.objects.order_by("created"))
    now = utc_now()
    rows = [row for row in rows if row.retired is None or row.retired > now - _REMEMBERED_AFTER_RETIREMENT]
    oldest = now - _PUBLISHED_AFTER_RETIREMENT
    published = [row for row in rows if row.retired is None or row.retired > oldest]
    return KeySet(
        version=version,
        active_kid=active.kid,
        active=_private_key(_path(active.kid).read_bytes()),
        public=_keys_of(published),
        retired=_keys_of(row for row in rows if row not in published),
        # Newest first: clients that read only the first key get the one that signs.
        jwks=tuple(row.public_jwk for row in reversed(published)),
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


def _prune() -> None:
    """Delete private halves of retired keys, and public halves that no id token hint or audit head needs."""
    now = utc_now()
    for row in SigningKey.objects.filter(retired__lt=now - _PUBLISHED_AFTER_RETIREMENT):
        _path(row.kid).unlink(missing_ok=True)
    old = SigningKey.objects.filter(retired__lt=now - _REMEMBERED_AFTER_RETIREMENT)
    old.exclude(kid__in=AuditHead.objects.values("kid")).delete()


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
