"""RSA keys made once in each test process: each costs some 40 ms, and most tests need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from identity.oauth import keys

_made: list[RSAPrivateKey] = []


class SigningKeys:
    """Stands for `generate_private_key` in one test: its n-th key is the n-th of the process, so no two are equal."""

    def __init__(self) -> None:
        self._keys = self._next()

    def __call__(self, **parameters: Any) -> RSAPrivateKey:
        key = next(self._keys, None)
        if key is None:
            key = generate_private_key(**parameters)
            _made.append(key)
        # An earlier test's file of this key; its row went with that test's transaction.
        keys._path(keys._public_jwk(key.public_key())["kid"]).unlink(missing_ok=True)
        return key

    def _next(self) -> Iterator[RSAPrivateKey]:
        yield from list(_made)
