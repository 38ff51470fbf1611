"""An OpenID provider on loopback that says what a test tells it to: for sign-ins at other providers."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

CLIENT, SECRET = "platform", "upstream secret"


@dataclass
class UpstreamProvider:
    """`claims` go into the next id token, over the usual ones; None leaves a usual one out."""

    receiver: LoopbackReceiver
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    signing_key: rsa.RSAPrivateKey | None = None
    algorithm: str = "RS256"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return self.receiver.url

    def approve(self, location: str) -> dict[str, str]:
        """A person signs in: the parameters of the answer to the authorization request at this location."""
        asked = dict(parse_qsl(urlsplit(location).query))
        assert location.startswith(f"{self.issuer}/authorize?"), location
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def answer(self, request: ReceivedRequest) -> Answer:
        """What the provider answers."""
        match urlsplit(request.path).path:
            case "/.well-known/openid-configuration":
                return _json(self._discovery())
            case "/jwks":
                own = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
                return _json({"keys": [{**own, "kid": "one", "use": "sig"}]})
            case "/token":
                return self._token(request)
            case "/userinfo":
                return _json(self.userinfo)
        return Answer(status=404)

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            **self.metadata,
        }

    def _token(self, request: ReceivedRequest) -> Answer:
        form = dict(parse_qsl(request.body.decode()))
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".replace(" ", "+").encode()).decode()
        plain = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = self.codes.pop(form.get("code", ""), None)
        if request.headers["Authorization"] not in (basic, plain):
            return _json({"error": "invalid_client"}, 401)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
            return _json({"error": "invalid_grant"}, 400)
        now = int(time.time())
        usual = {
            "iss": self.issuer, "aud": CLIENT, "sub": "u-1", "iat": now, "exp": now + 60, "auth_time": now,
            "nonce": asked["nonce"], "preferred_username": "anna", "name": "Anna", "email": "anna@upstream.example",
            "email_verified": True,
        }  # fmt: skip
        claims = {name: value for name, value in {**usual, **self.claims}.items() if value is not None}
        secret: Any = self.signing_key or self.key
        if self.algorithm == "HS256":
            secret = SECRET
        secret = "" if self.algorithm == "none" else secret
        id_token = jwt.encode(claims, secret, self.algorithm, {"kid": "one"})
        return _json({"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": id_token})


@contextmanager
def upstream_provider() -> Iterator[UpstreamProvider]:
    """A running one."""
    receiver = LoopbackReceiver()
    with receiver.running():
        provider = UpstreamProvider(receiver)
        receiver.respond_with = provider.answer
        yield provider


def _json(content: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode(), {"Content-Type": "application/json"})
