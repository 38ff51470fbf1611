"""A file object whose content is read while it is written."""

from __future__ import annotations

from typing import Any


class Written:
    """A writable file object that keeps the data written since the last `take`."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: Any) -> int:
        """Append a copy of the data."""
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """Do nothing: the data is not buffered elsewhere."""

    def close(self) -> None:
        """Do nothing: `take` still returns the data."""

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
