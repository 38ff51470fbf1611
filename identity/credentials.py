"""Reads the access token from a request's headers (spec 01, 1.5; RFC 6750, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foundation import errors
from foundation.messages import TranslatableMessage as Message

REFERENCE_PREFIX = "enrt_"
# The instance's JWTs have some 1,500 characters.
_MAX_LENGTH = 8192
#: Schemes of the reference platform's older clients, refused with a message about the alternative (spec 14, 14.4).
_LEGACY_SCHEMES = {"basic": "Basic", "erpsession": "ErpSession"}


def read_credential(meta: Mapping[str, Any]) -> str:
    """The token, from `Authorization: Bearer` or `DPoP`, `X-Api-Key` or `Api-Key` of the request's META.

    Raises Unauthorized for no token, an old credential or another scheme, BadRequest for several tokens.
    """
    header: str = meta.get("HTTP_AUTHORIZATION", "")
    if not header and ("HTTP_ERPSESSION" in meta or "ErpSession=" in meta.get("HTTP_COOKIE", "")):
        raise errors.Unauthorized(errors.LEGACY_CREDENTIALS, "ErpSession")
    api_key: str | None = meta.get("HTTP_X_API_KEY") or meta.get("HTTP_API_KEY")
    if api_key is None:
        return _bearer(header, meta)
    if header:
        raise errors.BadRequest(errors.CREDENTIALS_AMBIGUOUS, "Authorization, X-Api-Key")
    if meta.get("HTTP_X_API_KEY") and meta.get("HTTP_API_KEY"):
        raise errors.BadRequest(errors.CREDENTIALS_AMBIGUOUS, "X-Api-Key, Api-Key")
    if not api_key.startswith(REFERENCE_PREFIX):
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("X-Api-Key takes reference tokens (enrt_…) only"))
    return api_key


def _bearer(header: str, meta: Mapping[str, Any]) -> str:
    if not header:
        raise errors.Unauthorized(errors.TOKEN_MISSING)
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() in _LEGACY_SCHEMES:
        raise errors.Unauthorized(errors.LEGACY_CREDENTIALS, _LEGACY_SCHEMES[scheme.lower()])
    is_bound = scheme.lower() == "dpop" and "HTTP_DPOP" in meta
    if not (is_bound or scheme.lower() == "bearer") or not token or len(token) > _MAX_LENGTH:
        raise errors.Unauthorized(
            errors.TOKEN_INVALID,
            Message("the Authorization header must be: Bearer <token>, or beside a DPoP header: DPoP <token>"),
        )
    return token
