"""Signatures of deliveries, as Standard Webhooks 1.0 says: HMAC-SHA256 over `id.timestamp.body`, `v1,` and base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
#: Standard Webhooks asks for keys of 24 to 64 bytes.
KEY_BYTES = range(24, 65)


def new_secret() -> str:
    """A secret as receivers expect it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret stands for. Raises ValueError with a sentence."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as exc:
        raise ValueError(f"a signing secret is {PREFIX} followed by base64") from exc
    if len(key) not in KEY_BYTES:
        raise ValueError(f"a signing secret holds 24 to 64 bytes, not {len(key)}")
    return key


def signature_header(secrets_: Iterable[str], *, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of webhook-signature: one signature for each secret, so that receivers may rotate when they like."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode() for secret in secrets_
    )
