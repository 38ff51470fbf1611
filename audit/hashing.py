"""What is hashed and sealed of an entry.

The chain's hash is public: anybody can compute it from exported entries. A seal needs a key that is not in the database
(foundation.vault): the process that writes an entry seals it at once, so that what is changed or inserted in the
database before the entry is chained does not verify either, nor a whole chain that was computed anew.
"""

from __future__ import annotations

import datetime
import hashlib
import secrets
from typing import Any, NamedTuple

import orjson

from foundation import vault

#: The hash before the first entry.
GENESIS = "0" * 64
#: Larger contents are kept as their size and hash.
MAX_CONTENT_BYTES = 65_536
_NONCE_BYTES = 6


class Row(NamedTuple):
    """The columns of an entry, as the database driver gives them. On SQLite a position may have become anything."""

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
    """A time as it is hashed: UTC with microseconds. SQLite stores a text, without a fraction where that is zero."""
    if isinstance(at, str):
        return at.replace(" ", "T", 1) + ("Z" if "." in at else ".000000Z")
    return at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def entry_hash(previous: str, row: Row, position: int) -> str:
    """The hash of the entry at this position, after the hash before.

    SHA-256 of the hash before, followed by the JSON array of position, id, kind, time, actor, subject, content, seal.
    """
    try:
        fields = (position, row.id, row.kind, moment(row.at), row.actor, row.subject, row.content, row.seal)
        body = orjson.dumps(fields)
    except (TypeError, AttributeError, orjson.JSONEncodeError):
        # Somebody has written values that no entry has. The chain goes on, and the seal is wrong.
        body = repr(row).encode(errors="backslashreplace")
    return hashlib.sha256(previous.encode(errors="backslashreplace") + body).hexdigest()


def entry_seal(kind: str, at: datetime.datetime, actor: str, subject: str, content: str) -> str:
    """The seal of a new entry. A random number in it keeps a copy of the row from passing as another entry."""
    return _seal((kind, moment(at), actor, subject, content))


def entry_is_sealed(row: Row) -> bool | None:
    """Whether the row is as it was written; None if the key of its seal is not kept any more."""
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
    return f"{nonce}:{vault.checksum(orjson.dumps((nonce, *fields)))}"


def _is_sealed(fields: tuple[str, ...], seal: str) -> bool | None:
    nonce, _, checksum = seal.partition(":")
    return vault.checksum_is_right(orjson.dumps((nonce, *fields)), checksum)
