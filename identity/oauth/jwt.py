"""Signs and verifies JWTs with the instance's keys (RFC 7519, RFC 9068)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from foundation.messages import TranslatableMessage as Message
from identity import instance
from identity.oauth import keys

ACCESS_TOKEN_TYPE = "at+jwt"  # noqa: S105
ID_TOKEN_TYPE = "JWT"  # noqa: S105
LOGOUT_TOKEN_TYPE = "logout+jwt"  # noqa: S105
AUDIENCES = ["DomainAPI", "TableAPI"]
_ALGORITHM = "RS256"
# Tolerated clock difference of nodes; it lengthens every token's life.
_LEEWAY_SECONDS = 5

Claims = Mapping[str, Any]


class InvalidToken(Exception):
    """An invalid token; `reason` is public, `expired`: it was valid before."""

    def __init__(self, reason: str, *, expired: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expired = expired


def sign(claims: Claims, *, type_: str) -> str:
    """A compact JWS of the claims, with this node's active key."""
    key_set = keys.key_set()
    headers = {"typ": type_, "kid": key_set.active_kid}
    return jwt.encode(dict(claims), key_set.active, algorithm=_ALGORITHM, headers=headers)


def verify_access_token(token: str) -> Claims:
    """The claims of a valid access token (RFC 9068, 4). Raises InvalidToken."""
    return _verify(token, type_=ACCESS_TOKEN_TYPE, audience=AUDIENCES)


def verify_id_token_hint(token: str) -> Claims:
    """The claims of an id token of this instance, which may have expired (RP-Initiated Logout, 2)."""
    return _verify(token, type_=ID_TOKEN_TYPE, audience=None, hint=True)


def _verify(token: str, *, type_: str, audience: list[str] | None, hint: bool = False) -> Claims:
    try:
        header = jwt.get_unverified_header(token)
    except jwt.InvalidTokenError as exc:
        raise InvalidToken(Message("it is not a JWT")) from exc
    if str(header.get("typ", "")).lower().removeprefix("application/") != type_.lower():
        raise InvalidToken(Message("it is of another type"))
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            _public_key(str(header.get("kid")), hint=hint),
            algorithms=[_ALGORITHM],
            audience=audience,
            leeway=_LEEWAY_SECONDS,
            options={
                "require": ["iss", "aud", "exp", "iat"],
                "verify_exp": not hint,
                "verify_aud": audience is not None,
                "verify_nbf": not hint,
                "verify_iat": not hint,
            },
        )
    except jwt.ExpiredSignatureError as exc:
        raise InvalidToken(Message("it has expired"), expired=True) from exc
    except jwt.ImmatureSignatureError as exc:
        raise InvalidToken(Message("it is not valid yet")) from exc
    except jwt.InvalidAudienceError as exc:
        raise InvalidToken(Message("it is for another service")) from exc
    except jwt.InvalidTokenError as exc:
        raise InvalidToken(Message("its signature or form does not verify")) from exc
    if not instance.is_issuer(str(claims["iss"])):
        raise InvalidToken(Message("it comes from another issuer"))
    return claims


def _public_key(kid: str, *, hint: bool) -> Any:
    found = _find(kid, hint=hint)
    if found is None:
        keys.reload()
        found = _find(kid, hint=hint)
    if found is None:
        raise InvalidToken(Message("its key is unknown"))
    return found


def _find(kid: str, *, hint: bool) -> Any:
    known = keys.key_set()
    return known.public.get(kid) or (known.retired.get(kid) if hint else None)
