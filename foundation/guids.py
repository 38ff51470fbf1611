"""Guids as the platform writes them: lower-case, dashed text, ordered by time of creation."""

from __future__ import annotations

import os
import re
import threading
import time

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ANY = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")

_lock = threading.Lock()
_last = 0


def new_guid() -> str:
    """A version 7 UUID (RFC 9562, 5.7): 48 bits of milliseconds, then a counter that only grows within a process.

    Rows created one after another lie one after another in the index, and so in pages ordered by key.
    """
    global _last
    now = time.time_ns() // 1_000_000 << 16
    with _lock:
        # 16 bits below the millisecond count creations inside it; the rest is random.
        _last = now if now > _last else _last + 1
        stamp = _last
    random = int.from_bytes(os.urandom(8), "big")
    sub = stamp & 0xFFFF
    milliseconds = stamp >> 16
    high = f"{milliseconds:012x}"
    # The counter's upper 12 bits follow the version nibble, its lower 4 lead the variant group.
    tail = 0x8000 | (sub & 0xF) << 10 | random >> 54
    node = random & 0xFFFFFFFFFFFF
    return f"{high[:8]}-{high[8:]}-7{sub >> 4:03x}-{tail:04x}-{node:012x}"


def is_guid(text: str) -> bool:
    """Whether the text is a guid in dashed form, in any case."""
    return _ANY.fullmatch(text) is not None


def parse_guid(text: str) -> str:
    """The canonical form of a dashed guid. Raises ValueError for anything else."""
    if _CANONICAL.fullmatch(text):
        return text
    if _ANY.fullmatch(text):
        return text.lower()
    raise ValueError(f"not a guid: {text!r}")
