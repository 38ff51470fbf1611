"""Stores texts for some minutes for their owner, in bounded storage that all processes share.

The storage is Redis, else a file of this node. Not Django's cache: its file backend creates and renames a file for each
value, which took longer than the requests whose reports are stored.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import random
import secrets
import struct
import threading
import time
import zlib
from pathlib import Path
from typing import Protocol

from django.conf import settings

from foundation.per_process import PerProcess
from foundation.redis_failures import redis_required

LIFETIME_SECONDS = 600
#: The file has several ring buffers; owners are spread over them, so that one owner displaces the texts of few others.
RINGS, RING_BYTES = 16, 4 << 20
MAX_BYTES = 1 << 20
#: Maximum texts of one owner in Redis.
TEXTS_IN_REDIS = 20


class TemporaryTexts(Protocol):
    """Texts by owner."""

    def store(self, owner: str, text: bytes) -> str:
        """Store a text of at most MAX_BYTES; returns its id. Raises OSError if it cannot be stored."""
        ...

    def get(self, owner: str, id: str) -> bytes | None:
        """The text; None if it has expired or belongs to another owner."""
        ...


class RedisTexts:
    """Storage for any number of nodes. Each owner has TEXTS_IN_REDIS keys, which each process reuses in turn.

    Raises errors.Unavailable while Redis is away.
    """

    def __init__(self, url: str) -> None:
        import redis

        self._client = redis.Redis.from_url(url)
        self._places = itertools.count(random.randrange(TEXTS_IN_REDIS))

    def store(self, owner: str, text: bytes) -> str:
        place, token = next(self._places) % TEXTS_IN_REDIS, secrets.token_hex(16)
        with redis_required():
            self._client.set(self._key(owner, place), token.encode() + text, ex=LIFETIME_SECONDS)
        return f"{place:x}-{token}"

    def get(self, owner: str, id: str) -> bytes | None:
        place, token = _parts(id)
        with redis_required():
            found = self._client.get(self._key(owner, place))
        is_match = isinstance(found, bytes) and secrets.compare_digest(found[:32], token.encode())
        return found[32:] if isinstance(found, bytes) and is_match else None

    def _key(self, owner: str, place: int) -> str:
        return f"temporary-text:{hashlib.sha256(owner.encode()).hexdigest()}:{place}"


class FileTexts:
    """Storage for the processes of one node: ring buffers in a file, written and read by position.

    A ring begins with the position of its next record. A record is (token, owner, expiry, length, checksum), then the
    text. New records overwrite old ones; a reader notices that by the checksum.
    """

    _NEXT = struct.Struct("<Q")
    _HEAD = struct.Struct("<32s16sdII")

    def __init__(self, path: Path, *, ring_bytes: int = RING_BYTES) -> None:
        self._ring_bytes = ring_bytes
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # A POSIX lock belongs to the process, so threads need a lock of their own.
        self._lock = threading.Lock()

    def store(self, owner: str, text: bytes) -> str:
        digest, token = _digest(owner), secrets.token_hex(16)
        expiry = time.time() + LIFETIME_SECONDS
        record = self._HEAD.pack(token.encode(), digest, expiry, len(text), zlib.crc32(text)) + text
        if len(record) > self._ring_bytes - self._NEXT.size:
            raise OSError("the text is longer than its ring")
        start = digest[0] % RINGS * self._ring_bytes
        with self._lock:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, self._NEXT.size, start)
            try:
                known = os.pread(self._descriptor, self._NEXT.size, start)
                position = self._NEXT.unpack(known)[0] if len(known) == self._NEXT.size else 0
                if not self._NEXT.size <= position <= self._ring_bytes - len(record):
                    position = self._NEXT.size
                os.pwrite(self._descriptor, record, start + position)
                os.pwrite(self._descriptor, self._NEXT.pack(position + len(record)), start)
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, self._NEXT.size, start)
        return f"{position:x}-{token}"

    def get(self, owner: str, id: str) -> bytes | None:
        position, token = _parts(id)
        digest = _digest(owner)
        if not self._NEXT.size <= position < self._ring_bytes:
            return None
        start = digest[0] % RINGS * self._ring_bytes + position
        head = os.pread(self._descriptor, self._HEAD.size, start)
        if len(head) < self._HEAD.size:
            return None
        known, of, expiry, length, checksum = self._HEAD.unpack(head)
        is_match = secrets.compare_digest(known, token.encode()) and of == digest and time.time() < expiry
        if not is_match or length > self._ring_bytes:
            return None
        text = os.pread(self._descriptor, length, start + self._HEAD.size)
        return text if zlib.crc32(text) == checksum else None


def _digest(owner: str) -> bytes:
    return hashlib.blake2b(owner.encode(), digest_size=16).digest()


def _parts(id: str) -> tuple[int, str]:
    """Position and token of an id; (-1, "") for anything else."""
    position, _, token = id.partition("-")
    try:
        return (int(position, 16), token) if len(id) < 64 and id.isascii() else (-1, "")
    except ValueError:
        return -1, ""


@PerProcess
def temporary_texts() -> TemporaryTexts:
    """The texts of this process."""
    url: str = settings.REDIS_URL
    return RedisTexts(url) if url else FileTexts(settings.DATA_DIR / "temporary_texts.bin")
