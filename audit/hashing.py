"""Hashes and seals of entries.

The chain's hash needs no key: exported entries are enough to compute it. A seal needs a key that is not in the database
(foundation.encryption). The process that writes an entry seals it at once, so verification also detects entries that
were changed or inserted before they were chained, and a recomputed chain.
"""

from __future__ import annotations

import datetime
import hashlib
import secrets
from typing import Any, NamedTuple

import orjson

from foundation import encryption

#: The hash before the first entry.
GENESIS = "0" * 64
#: Larger contents are kept as their size and hash.
MAX_CONTENT_BYTES = 65_536
_NONCE_BYTES = 6


class Row(NamedTuple):
    """The columns of an entry, as the database driver gives them. A tampered position can have any type on SQLite."""

    id: int
    kind: str
    at: datetime.datetime | str
    actor: str
    subject: str
    content: str
    seal: str
    position: Any
    hash: str


def canonical(content: dict[str, Any]) -> str:
    """The content as JSON text: sorted keys, no spaces. Raises TypeError for values that JSON does not have."""
    raw = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    if len(raw) > MAX_CONTENT_BYTES:
        raw = orjson.dumps({"omittedBytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()})
    return raw.decode()


def moment(at: datetime.datetime | str) -> str:
    """The hashed form of a time: UTC with microseconds. SQLite's texts have no fraction if it is zero."""
    if isinstance(at, str):
        return at.replace(" ", "T", 1) + ("Z" if "." in at else ".000000Z")
    return at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def entry_hash(previous: str, row: Row, position: int) -> str:
    """The hash of the entry at this position; `previous` is the hash of the entry before it.

    SHA-256 of `previous`, followed by the JSON array of position, id, kind, time, actor, subject, content, seal.
    """
    try:
        fields = (position, row.id, row.kind, moment(row.at), row.actor, row.subject, row.content, row.seal)
        body = orjson.dumps(fields)
    except (TypeError, AttributeError, orjson.JSONEncodeError):
        # Tampered values that JSON cannot have: the chain continues, and the wrong seal reports the entry.
        body = repr(row).encode(errors="backslashreplace")
    return hashlib.sha256(previous.encode(errors="backslashreplace") + body).hexdigest()


def entry_seal(kind: str, at: datetime.datetime, actor: str, subject: str, content: str) -> str:
    """The seal of a new entry. Its random number reveals a copied row."""
    return _seal((kind, moment(at), actor, subject, content))


def entry_is_sealed(row: Row) -> bool | None:
    """Whether the row is unchanged since it was written; None if the key of its seal was deleted."""
    try:
        return _is_sealed((row.kind, moment(row.at), row.actor, row.subject, row.content), row.seal)
    except (TypeError, AttributeError, orjson.JSONEncodeError):
        return False


def head_seal(token: str) -> str:
    """The seal of a head."""
    return _seal((token,))


def head_is_sealed(token: str, seal: str) -> bool | None:
    """As `entry_is_sealed`, of a head."""
    return _is_sealed((token,), seal)


def _seal(fields: tuple[str, ...]) -> str:
    nonce = secrets.token_hex(_NONCE_BYTES)
    return f"{nonce}:{encryption.checksum(orjson.dumps((nonce, *fields)))}"


def _is_sealed(fields: tuple[str, ...], seal: str) -> bool | None:
    nonce, _, checksum = seal.partition(":")
    return encryption.checksum_is_right(orjson.dumps((nonce, *fields)), checksum)
