"""Masks secrets in URLs of templates.

Many receivers authenticate a sender only by the URL: `?token=…`, `user:password@`, or an unguessable path, as chat
services do. It masks rather too much; a part that consists of placeholders is no secret.
"""

from __future__ import annotations

import re

from webhooks.headers import MASK, is_secret_name

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:(?P<user>[^/?#@]*)@)?(?P<host>[^/?#]*)(?P<rest>.*)", re.S)
#: Names of query parameters that are secrets, but not as header names: `sig` and `code` of cloud functions, `pass`,
#: `hmac`.
_PARAMETER = re.compile(r"sig|code|pass|pw|hmac|hash", re.I)
_PLACEHOLDERS = re.compile(r"(?:\{[^{}]*\})+")
#: An unguessable segment: long, of letters and digits, without words of a placeholder.
_UNGUESSABLE = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_~%.-]{20,}")


def masked_url(url: str | None) -> str | None:
    """The URL with likely secrets masked."""
    return None if url is None else "".join(MASK if secret else text for text, secret in _parts(url))


def unmasked_url(given: str | None, original: str | None) -> str | None:
    """An edited URL, with masks replaced by the secrets of the original.

    Only for the same host: a secret is never sent to another host. Other masks stay.
    """
    if not given or not original or MASK not in given:
        return given
    secrets = [text for text, secret in _parts(original) if secret]
    pieces = given.split(MASK)
    if not is_same_host(given, original) or len(pieces) != len(secrets) + 1:
        return given
    filled = "".join(piece + secret for piece, secret in zip(pieces, [*secrets, ""], strict=True))
    return filled if masked_url(filled) == given else given


def revealed_url(given: str, current: str | None) -> str | None:
    """As `unmasked_url`; None if a mask is left."""
    result = unmasked_url(given, current)
    return None if result is not None and MASK in result else result


def is_same_host(url: str | None, other: str | None) -> bool:
    """Whether two URLs have the same scheme and host."""
    return _origin(url or "") == _origin(other or "")


def _origin(url: str) -> tuple[str, str]:
    match = _URL.fullmatch(url)
    return ("", url) if match is None else (match["scheme"].lower(), match["host"].lower())


def _parts(url: str) -> list[tuple[str, bool]]:
    """(text, whether it is a secret) in order; joined they are the URL."""
    match = _URL.fullmatch(url)
    if match is None:
        return [(url, False)]
    parts = [(match["scheme"], False)]
    if match["user"] is not None:
        parts += [(match["user"], bool(match["user"])), ("@", False)]
    parts.append((match["host"], False))
    path, mark, query = match["rest"].partition("?")
    for segment in re.split(r"(/)", path):
        parts.append((segment, _UNGUESSABLE.fullmatch(segment) is not None))
    parts.append((mark, False))
    for pair in re.split(r"([&#])", query):
        name, equals, value = pair.partition("=")
        secret = bool(value) and (is_secret_name(name) or _PARAMETER.search(name) is not None)
        parts += [(name + equals, False), (value, secret and _PLACEHOLDERS.fullmatch(value) is None)]
    return parts
