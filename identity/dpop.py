"""Proofs that the sender of a request holds a key (DPoP, RFC 9449).

Every proof needs a nonce of this instance (RFC 9449, 8 and 9), so none can be generated in advance. A nonce is computed
from the time and the instance's secret, so all nodes accept it without storing it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import SplitResult, unquote, urlsplit

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.texts import base64url
from identity.client_jwt import InvalidClientJwt, claims_of, header_of, identifier_of, seconds_of
from identity.client_keys import SIGNING_ALGORITHMS, InvalidKey, public_key, thumbprint
from identity.instance import base_url
from identity.single_use import use_once

TYPE = "dpop+jwt"
# Tolerated difference of the client's clock, in both directions.
_WINDOW_SECONDS = 60
# A nonce is accepted for one to two of these intervals.
_NONCE_SECONDS = 300
_DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidProof(Exception):
    """A refused proof; the message is public, `error` the code of RFC 9449, 12.2."""

    def __init__(self, reason: str, *, error: str = "invalid_dpop_proof") -> None:
        super().__init__(reason)
        self.error = error


def nonce_now() -> str:
    """The nonce for the next proofs (RFC 9449, 8)."""
    return _nonce(int(time.time()) // _NONCE_SECONDS)


def proof_check(proof: str, *, method: str, url: str, access_token: str | None = None) -> str:
    """Check the proof for this request (RFC 9449, 4.3), mark it used, and return the thumbprint of its key.

    `access_token`: the token that is sent with it. Raises InvalidProof.
    """
    try:
        header = header_of(proof)
        if str(header.get("typ", "")).lower() != TYPE:
            raise InvalidProof(f"its typ must be {TYPE}")
        algorithm, jwk = header.get("alg"), header.get("jwk")
        if algorithm not in SIGNING_ALGORITHMS or not isinstance(jwk, dict) or "crit" in header:
            raise InvalidProof(f"it needs a public key (jwk) and an alg of {', '.join(SIGNING_ALGORITHMS)}")
        claims = claims_of(proof, public_key(jwk, str(algorithm)), str(algorithm))
        jti, issued = identifier_of(claims), seconds_of(claims, "iat")
    except (InvalidClientJwt, InvalidKey) as exc:
        raise InvalidProof(str(exc)) from exc
    if claims.get("htm") != method:
        raise InvalidProof(f"its htm must be {method}")
    if _normal(claims.get("htu")) != _normal(url):
        raise InvalidProof("its htu is not the URL of this request")
    if abs(time.time() - issued) > _WINDOW_SECONDS:
        raise InvalidProof(f"its iat is more than {_WINDOW_SECONDS} seconds away from this server's time")
    if access_token is not None and claims.get("ath") != token_hash(access_token):
        raise InvalidProof("its ath is not the hash of the access token")
    _check_nonce(claims.get("nonce"))
    jkt = thumbprint(jwk)
    if not use_once("dpop proof", jkt, jti, seconds=2 * _WINDOW_SECONDS):
        raise InvalidProof("its jti has been used before")
    return jkt


def check_possession(request: HttpRequest, token: str, jkt: str | None, *, url: str | None = None) -> None:
    """Check that the sender holds the key that the token is bound to, if any (RFC 9449, 7). Raises ProofRefused.

    `jkt`: the key's thumbprint; `url`: that of the request, if `request` does not have it.
    """
    scheme = str(request.META.get("HTTP_AUTHORIZATION", "")).partition(" ")[0].lower()
    if jkt is None:
        if scheme == "dpop":
            raise refused("invalid_token", Message("it is not bound to a key; send it as Bearer"))
        return
    if scheme != "dpop":
        raise refused("invalid_token", Message("it is bound to a key; send it as DPoP, with a proof"))
    try:
        found = proof_check(
            request.META.get("HTTP_DPOP", ""),
            method=request.method or "",
            url=url or base_url(request) + request.path,
            access_token=token,
        )
    except InvalidProof as exc:
        raise refused(exc.error, Message("its DPoP proof is refused: {0}", str(exc))) from exc
    if not hmac.compare_digest(found, jkt):
        raise refused("invalid_token", Message("it is bound to another key than that of the DPoP proof"))


def refused(error: str, reason: str) -> errors.ProofRefused:
    """The refusal of a token or its proof, with the challenge of RFC 9449, 7.1."""
    nonce = nonce_now() if error == "use_dpop_nonce" else ""
    return errors.ProofRefused(reason, error=error, algorithms=" ".join(SIGNING_ALGORITHMS), nonce=nonce)


def token_hash(token: str) -> str:
    """The `ath` of a proof for this access token (RFC 9449, 4.2)."""
    return base64url(hashlib.sha256(token.encode()).digest())


def _check_nonce(given: object) -> None:
    number = int(time.time()) // _NONCE_SECONDS
    known = (_nonce(number), _nonce(number - 1))
    if not isinstance(given, str) or not any(hmac.compare_digest(given.encode(), each.encode()) for each in known):
        raise InvalidProof("it needs the nonce of the header DPoP-Nonce", error="use_dpop_nonce")


def _nonce(number: int) -> str:
    digest = salted_hmac("identity.dpop.nonce", str(number), algorithm="sha256").digest()
    return base64url(digest[:18])


def _normal(url: object) -> tuple[str, str, int | None, str] | None:
    """The compared parts of a URL, normalized (RFC 3986, 6.2.2 and 6.2.3)."""
    if not isinstance(url, str):
        return None
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    return scheme, parts.hostname or "", port or _DEFAULT_PORTS.get(scheme), unquote(parts.path) or "/"
