"""Signs heads of the audit chain with the instance's keys (audit.signer)."""

from __future__ import annotations

from typing import Any

import jwt as pyjwt
from jwt import PyJWK

from audit.signer import UnknownKey, WrongSignature
from identity.models import SigningKey
from identity.oauth import jwt, keys

_TYPE = "audit-head+jwt"


class InstanceSigner:
    """Signs with this node's key, and verifies with the public keys of all nodes, also with retired ones."""

    def key_id(self) -> str:
        """The key that signs now."""
        return keys.key_set().active_kid

    def sign(self, claims: jwt.Claims) -> str:
        """The claims as a JWS."""
        return jwt.sign(claims, type_=_TYPE)

    def verify(self, token: str) -> jwt.Claims:
        """The claims of a token. Raises UnknownKey, WrongSignature."""
        try:
            header = pyjwt.get_unverified_header(token)
        except pyjwt.InvalidTokenError as exc:
            raise WrongSignature from exc
        kid = str(header.get("kid"))
        row = SigningKey.objects.filter(kid=kid).first()
        if row is None:
            raise UnknownKey(kid)
        try:
            claims: dict[str, Any] = pyjwt.decode(
                token, PyJWK.from_dict(row.public_jwk).key, algorithms=["RS256"], options={"verify_aud": False}
            )
        except pyjwt.InvalidTokenError as exc:
            raise WrongSignature from exc
        if header.get("typ") != _TYPE:
            raise WrongSignature
        return claims
