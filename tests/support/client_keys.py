"""Keys of clients, and the JWTs that they sign."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from identity.client_keys import thumbprint

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: This instance under Django's test client.
ISSUER = "http://testserver/id"
TOKEN_ENDPOINT = f"{ISSUER}/connect/token"


class ClientKey:
    """A key pair for one algorithm: ES256 (fast to make), EdDSA, RS256 or PS256."""

    def __init__(self, algorithm: str = "ES256", *, kid: str | None = None, bits: int = 2048) -> None:
        self.algorithm = algorithm
        public: Any
        if algorithm == "ES256":
            self.private: Any = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            public = OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            self.private = rsa.generate_private_key(65537, bits)
            public = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.jwk = {name: value for name, value in public.items() if name in {"kty", "crv", "x", "y", "n", "e"}}
        self.kid = kid
        if kid:
            self.jwk["kid"] = kid

    @property
    def jwks(self) -> str:
        """A JSON Web Key Set with this key."""
        return json.dumps({"keys": [self.jwk]})

    @property
    def jkt(self) -> str:
        """The key's thumbprint."""
        return thumbprint(self.jwk)

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """A compact JWS; None leaves a claim out."""
        present = {name: value for name, value in claims.items() if value is not None}
        named = {"kid": self.kid, **header} if self.kid else header
        return jwt.encode(present, self.private, algorithm=self.algorithm, headers=named)

    def assertion(self, client_id: str, **claims: Any) -> dict[str, str]:
        """Form fields of a client assertion (RFC 7523, 2.2)."""
        return assertion_fields(self.sign(assertion_claims(client_id, **claims)))

    def proof(self, method: str, url: str, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A DPoP proof (RFC 9449, 4.2)."""
        content = {"jti": uuid.uuid4().hex, "htm": method, "htu": url, "iat": int(time.time()), **claims}
        return self.sign(content, **{"typ": "dpop+jwt", "jwk": self.jwk, **(header or {})})


def assertion_claims(client_id: str, **claims: Any) -> dict[str, Any]:
    """The claims of a valid assertion, with changes."""
    now = int(time.time())
    valid = {"iss": client_id, "sub": client_id, "aud": ISSUER, "iat": now, "exp": now + 60, "jti": uuid.uuid4().hex}
    return {**valid, **claims}


def assertion_fields(token: str) -> dict[str, str]:
    """Form fields of a client assertion (RFC 7523, 2.2)."""
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": token}


def token_hash(token: str) -> str:
    """`ath` of a proof for this access token."""
    return base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=").decode()
