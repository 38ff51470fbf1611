"""A file whose content is taken while it is written."""

from __future__ import annotations

from typing import Any


class Written:
    """A file that only keeps what was written to it since the last `take`."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: Any) -> int:
        """Keep a copy."""
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """Nothing: all is written already."""

    def close(self) -> None:
        """Nothing: what was written can still be taken."""

    def take(self) -> bytes:
        """The bytes that were written, once."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
