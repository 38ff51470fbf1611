"""Messages that a script writes by Action.log and Action.error: a bounded number of bytes, of each run and each minute.

Any script may write them, also of a caller without any right, and they are stored.
"""

from __future__ import annotations

from typing import Final

from foundation import errors
from identity import rate_limits
from identity.context import CallContext

#: Of one message.
MAX_CHARACTERS: Final = 10_000
#: Of one run, and of the runs of a user in a minute.
RUN_BYTES: Final = 100_000
MINUTE_BYTES: Final = 1_000_000
#: A short message is a row all the same.
_ROW_BYTES: Final = 100
_FULL: Final = "Further messages of this script are not kept."
_FULL_MINUTE: Final = "Messages of this script are not kept: its caller has written many in this minute."


class Messages:
    """The messages of one run, in order: (type, text)."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []
        self._size = 0

    def add(self, kind: str, text: str) -> None:
        """Keep a message; beyond RUN_BYTES only that there were others."""
        if self._size > RUN_BYTES:
            return
        text = text[:MAX_CHARACTERS]
        self._size += len(text.encode("utf-8", "replace")) + _ROW_BYTES
        self._kept.append((kind, text) if self._size <= RUN_BYTES else ("Warning", _FULL))

    def taken(self, context: CallContext) -> list[tuple[str, str]]:
        """The messages to store. Counts them as the caller's; beyond MINUTE_BYTES there is only one."""
        if self._kept and context.user is not None:
            try:
                rate_limits.count(f"script-messages:{context.user.id}", MINUTE_BYTES, amount=self._size)
            except errors.TooManyRequests:
                return [("Warning", _FULL_MINUTE)]
        return self._kept
