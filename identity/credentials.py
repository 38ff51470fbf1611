"""What a request shows to say who calls: one token, in one place (spec 01, 1.5; RFC 6750, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foundation import errors
from foundation.phrases import Phrase

REFERENCE_PREFIX = "enrt_"
# A JWT of ours has some 1,500 characters; anything much longer is not a token.
_MAX_LENGTH = 8192


def read_credential(meta: Mapping[str, Any]) -> str:
    """The token, from `Authorization: Bearer`, `X-Api-Key` or `Api-Key` of the request's META.

    Raises Unauthorized when there is none or another scheme, BadRequest when there are several.
    """
    header: str = meta.get("HTTP_AUTHORIZATION", "")
    api_key: str | None = meta.get("HTTP_X_API_KEY") or meta.get("HTTP_API_KEY")
    if api_key is None:
        return _bearer(header)
    if header:
        raise errors.BadRequest(errors.CREDENTIALS_AMBIGUOUS, "Authorization, X-Api-Key")
    if meta.get("HTTP_X_API_KEY") and meta.get("HTTP_API_KEY"):
        raise errors.BadRequest(errors.CREDENTIALS_AMBIGUOUS, "X-Api-Key, Api-Key")
    if not api_key.startswith(REFERENCE_PREFIX):
        raise errors.Unauthorized(errors.TOKEN_INVALID, Phrase("X-Api-Key takes reference tokens (enrt_…) only"))
    return api_key


def _bearer(header: str) -> str:
    if not header:
        raise errors.Unauthorized(errors.TOKEN_MISSING)
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _MAX_LENGTH:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Phrase("the Authorization header must be: Bearer <token>"))
    return token
