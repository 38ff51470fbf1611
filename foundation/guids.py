"""Guids: lower-case, dashed text, ordered by time of creation."""

from __future__ import annotations

import os
import re
import struct
import threading
import time

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ANY = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")

_RANDOMS_PER_CALL = 64

_lock = threading.Lock()
_last = 0
#: 64 random bits for each of the next guids: a system call per guid took half of the time.
_random_bits: list[int] = []


def new_guid() -> str:
    """A version 7 UUID (RFC 9562, 5.7): 48 bits of milliseconds, then a counter that only grows within a process.

    Rows created one after another are neighbours in the index, and so in pages ordered by key.
    """
    global _last
    now = time.time_ns() // 1_000_000 << 16
    with _lock:
        # 16 bits below the millisecond count guids within it; the rest is random.
        _last = counter = now if now > _last else _last + 1
        if not _random_bits:
            _random_bits.extend(struct.unpack(f"{_RANDOMS_PER_CALL}Q", os.urandom(8 * _RANDOMS_PER_CALL)))
        random = _random_bits.pop()
    # The counter's upper 12 bits follow the version (7), its lower 4 the variant (binary 10).
    number = (counter >> 16) << 80 | (0x7000 | counter >> 4 & 0xFFF) << 64 | (0x20 | counter & 0xF) << 58 | random >> 6
    text = number.to_bytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _drop_random_bits() -> None:
    """Drop the random bits after a fork: parent and child must not share them, and the lock may stay held."""
    global _lock
    _lock = threading.Lock()
    _random_bits.clear()


os.register_at_fork(after_in_child=_drop_random_bits)


def is_guid(text: str) -> bool:
    """Whether the text is a guid in dashed form, in any case."""
    return _ANY.fullmatch(text) is not None


def parse_guid(text: str) -> str:
    """The canonical form of a dashed guid. Raises ValueError for anything else."""
    if _CANONICAL.fullmatch(text):
        return text
    if _ANY.fullmatch(text):
        return text.lower()
    raise ValueError(f"not a guid: '{text}'")
