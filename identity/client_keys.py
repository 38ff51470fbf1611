"""Public keys of clients as JSON Web Keys (RFC 7517; RFC 7518, 6), limited to sizes that are cheap to verify."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from foundation.messages import TranslatableMessage as Message
from foundation.texts import base64url

#: Key type, or curve → the algorithms of signatures that its keys may make (RFC 8725, 3.1: one use for each key).
_ALGORITHMS = {"RSA": ("RS256", "PS256"), "P-256": ("ES256",), "Ed25519": ("EdDSA",)}
#: Members of a key's thumbprint, which are also the members of its public half (RFC 7638, 3.2; RFC 8037, 2).
_MEMBERS = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
SIGNING_ALGORITHMS: Final = [name for names in _ALGORITHMS.values() for name in names]

MAX_SET_LENGTH: Final = 16 * 1024
MAX_KEYS: Final = 20
# The modulus of 4096 bits has 683 characters.
_MAX_MEMBER_LENGTH = 700
_RSA_BITS = range(2048, 4097)
# Verification takes time in proportion to the bits of the exponent, which is 65537 in practice.
_MAX_EXPONENT = 2**32

Jwk = dict[str, Any]


class InvalidKey(Exception):
    """A key, or a set of keys, that cannot be used; the message is public."""


def key_set_parse(text: str | bytes) -> list[Jwk]:
    """The keys of a JSON Web Key Set that verify signatures (RFC 7517, 5: others are ignored). Raises InvalidKey."""
    if len(text) > MAX_SET_LENGTH:
        raise InvalidKey(Message("it has more than {0} characters", MAX_SET_LENGTH))
    try:
        keys = json.loads(text)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise InvalidKey(Message("it is not of the form {0}", '{"keys": […]}')) from exc
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise InvalidKey(Message("keys must be a list of at most {0}", MAX_KEYS))
    if any(isinstance(key, dict) and _PRIVATE & key.keys() for key in keys):
        raise InvalidKey(Message("it has a private or secret key, which only the application may know"))
    usable = [key for key in keys if isinstance(key, dict) and algorithms_of(key)]
    for key in usable:
        public_key(key, algorithms_of(key)[0])
    if not usable:
        raise InvalidKey(Message("it has no signing key for {0}", ", ".join(SIGNING_ALGORITHMS)))
    return usable


def algorithms_of(key: Jwk) -> tuple[str, ...]:
    """The algorithms that the key may be used with; none for encryption keys and unknown types."""
    kind = key.get("kty") if key.get("kty") == "RSA" else key.get("crv")
    found = _ALGORITHMS.get(kind, ()) if isinstance(kind, str) else ()
    if key.get("use", "sig") != "sig":
        return ()
    return found if key.get("alg") is None else tuple(name for name in found if name == key["alg"])


def public_key(key: Jwk, algorithm: str) -> jwt.PyJWK:
    """The key, to verify signatures of this algorithm. Raises InvalidKey."""
    if _PRIVATE & key.keys():
        raise InvalidKey(Message("the key is not a public one"))
    if algorithm not in algorithms_of(key):
        raise InvalidKey(Message("the key is not one for {0}", algorithm))
    kind = key.get("kty")
    members = _MEMBERS.get(kind, ()) if isinstance(kind, str) else ()
    values = [key.get(name) for name in members]
    if not values or not all(isinstance(value, str) and 0 < len(value) <= _MAX_MEMBER_LENGTH for value in values):
        raise InvalidKey(Message("members of the key are missing or too long"))
    try:
        result = jwt.PyJWK.from_dict({name: key[name] for name in members}, algorithm=algorithm)
    except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError) as exc:
        raise InvalidKey(Message("the key cannot be read")) from exc
    found = result.key
    if isinstance(found, RSAPublicKey) and (
        found.key_size not in _RSA_BITS or found.public_numbers().e > _MAX_EXPONENT
    ):
        raise InvalidKey(Message("an RSA key must have 2048 to 4096 bits and an exponent of at most 32"))
    return result


def thumbprint(key: Jwk) -> str:
    """The key's SHA-256 thumbprint (RFC 7638, 3), of a key that `public_key` has accepted."""
    members = json.dumps({name: key[name] for name in _MEMBERS[key["kty"]]}, separators=(",", ":"))
    return base64url(hashlib.sha256(members.encode()).digest())
