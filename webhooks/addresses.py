"""Secrets inside addresses of templates: what is masked where an address is shown outside the instance.

Many receivers know a sender by their address alone: `?token=…`, `user:password@`, or a path that nobody can guess, as
chat services have it. Rather a harmless value masked than a secret shown; what is a placeholder altogether is none.
"""

from __future__ import annotations

import re

from webhooks.headers import MASK, is_secret_name

_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:(?P<user>[^/?#@]*)@)?(?P<host>[^/?#]*)(?P<rest>.*)", re.S
)
#: Names of query parameters that are no secret's as header names: `sig` and `code` of cloud functions, `pass`, `hmac`.
_PARAMETER = re.compile(r"sig|code|pass|pw|hmac|hash", re.I)
_PLACEHOLDERS = re.compile(r"(?:\{[^{}]*\})+")
#: A segment that nobody guesses: long, of letters and digits, without words of a placeholder.
_UNGUESSABLE = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_~%.-]{20,}")


def masked_address(address: str | None) -> str | None:
    """The address with what smells of a secret masked."""
    return None if address is None else "".join(MASK if secret else text for text, secret in _parts(address))


def unmasked_address(given: str | None, original: str | None) -> str | None:
    """The address as a person left it, with the secrets of the original where it still has the masks.

    Only for the same host: a secret is not told to somebody else. What cannot be filled in keeps its masks.
    """
    if not given or not original or MASK not in given:
        return given
    secrets = [text for text, secret in _parts(original) if secret]
    pieces = given.split(MASK)
    if _origin(given) != _origin(original) or len(pieces) != len(secrets) + 1:
        return given
    filled = "".join(piece + secret for piece, secret in zip(pieces, [*secrets, ""], strict=True))
    return filled if masked_address(filled) == given else given


def _origin(address: str) -> tuple[str, str]:
    found = _ADDRESS.fullmatch(address)
    return ("", address) if found is None else (found["scheme"].lower(), found["host"].lower())


def _parts(address: str) -> list[tuple[str, bool]]:
    """(text, whether it is a secret) in order; joined they are the address."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return [(address, False)]
    parts = [(found["scheme"], False)]
    if found["user"] is not None:
        parts += [(found["user"], bool(found["user"])), ("@", False)]
    parts.append((found["host"], False))
    path, mark, query = found["rest"].partition("?")
    for segment in re.split(r"(/)", path):
        parts.append((segment, _UNGUESSABLE.fullmatch(segment) is not None))
    parts.append((mark, False))
    for pair in re.split(r"([&#])", query):
        name, equals, value = pair.partition("=")
        secret = bool(value) and (is_secret_name(name) or _PARAMETER.search(name) is not None)
        parts += [(name + equals, False), (value, secret and _PLACEHOLDERS.fullmatch(value) is None)]
    return parts
