"""Registry of the signer of heads: identity, which has the instance's keys, registers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class UnknownKey(Exception):
    """The signature's key is unknown."""


class WrongSignature(Exception):
    """The token was not signed by the key that it names."""


class HeadSigner(Protocol):
    """Signs and verifies claims with the instance's keys (JWS, compact; the header names the key as `kid`)."""

    def key_id(self) -> str:
        """The key that signs now."""
        ...

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The signed claims."""
        ...

    def verify(self, token: str) -> Mapping[str, Any]:
        """The claims of a token. Raises UnknownKey, WrongSignature."""
        ...


_signer: HeadSigner | None = None


def register(signer: HeadSigner) -> None:
    """Set the signer; called once at start-up."""
    global _signer
    _signer = signer


def signer_get() -> HeadSigner:
    """The registered signer."""
    if _signer is None:
        raise RuntimeError("no signer of audit heads is registered")
    return _signer
