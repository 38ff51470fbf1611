"""Opaque tokens of links, such as $skiptoken: text that a client returns unchanged, and cannot forge."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings

from foundation.texts import base64url, decode_base64

_SIGNATURE_BYTES = 16


def make_token(kind: str, bound_to: bytes, payload: bytes) -> str:
    """A token of this kind with the payload, valid only together with `bound_to`."""
    return base64url(_signature(kind, bound_to, payload) + payload)


def read_token(kind: str, bound_to: bytes, token: str) -> bytes:
    """The payload. Raises ValueError for a token that was not made for this."""
    signed = decode_base64(token)
    signature, payload = signed[:_SIGNATURE_BYTES], signed[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(kind, bound_to, payload)):
        raise ValueError("the signature is not valid")
    return payload


def _signature(kind: str, bound_to: bytes, payload: bytes) -> bytes:
    key = hashlib.sha256(f"{kind}:{settings.SECRET_KEY}".encode()).digest()
    return hmac.digest(key, bound_to + payload, "sha256")[:_SIGNATURE_BYTES]
