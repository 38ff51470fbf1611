"""Verifies JWTs that clients sign: length, form, signature and times (RFC 7519, 7.2; RFC 8725, 3)."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from jwt.types import Options

Claims = dict[str, Any]

#: Tolerated difference of the client's clock.
LEEWAY_SECONDS = 10
_MAX_LENGTH = 6000
_MAX_JTI_LENGTH = 255
_LATEST = 10**12
_SIGNATURE_ONLY: Options = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


class InvalidClientJwt(Exception):
    """A JWT that is refused; the message is public."""


def header_of(token: str) -> Claims:
    """The header, not verified. Raises InvalidClientJwt."""
    if len(token) > _MAX_LENGTH:
        raise InvalidClientJwt(f"it has more than {_MAX_LENGTH} characters")
    try:
        return _storable(jwt.get_unverified_header(token))
    except (jwt.InvalidTokenError, RecursionError, ValueError) as exc:
        raise InvalidClientJwt("it is not a signed JWT") from exc


def subject_of(token: str) -> str:
    """The claim `sub`, not verified; "" if it cannot be read."""
    try:
        header_of(token)
        subject = _storable(jwt.decode(token, options={"verify_signature": False})).get("sub")
    except (InvalidClientJwt, jwt.InvalidTokenError, RecursionError, ValueError, OverflowError):
        return ""
    return subject if isinstance(subject, str) else ""


def claims_of(token: str, key: jwt.PyJWK | str, algorithm: str) -> Claims:
    """The claims, after a check of the signature alone. Raises InvalidClientJwt."""
    try:
        return _storable(jwt.decode(token, key, algorithms=[algorithm], options=_SIGNATURE_ONLY))
    except (jwt.PyJWTError, RecursionError, ValueError, TypeError) as exc:
        raise InvalidClientJwt("its signature does not verify") from exc


def seconds_of(claims: Claims, name: str) -> float:
    """A time as seconds since 1970 (RFC 7519, 2: NumericDate). Raises InvalidClientJwt."""
    value = claims.get(name)
    # Infinity, NaN and integers beyond floats are outside, too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        raise InvalidClientJwt(f"{name} must be a number of seconds since 1970")
    return float(value)


def check_not_later(claims: Claims, name: str) -> None:
    """Check that the time, if given, is in the past. Raises InvalidClientJwt."""
    if name in claims and seconds_of(claims, name) > time.time() + LEEWAY_SECONDS:
        raise InvalidClientJwt(f"its {name} is in the future")


def identifier_of(claims: Claims) -> str:
    """The claim `jti`, by which each JWT is accepted once. Raises InvalidClientJwt."""
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 0 < len(jti) <= _MAX_JTI_LENGTH:
        raise InvalidClientJwt(f"jti must be a text of 1 to {_MAX_JTI_LENGTH} characters")
    return jti


def _storable(content: Claims) -> Claims:
    """The content, if UTF-8 can encode it: JSON can have half of a surrogate pair. Raises InvalidClientJwt."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise InvalidClientJwt("it has half of a surrogate pair") from exc
    return content
