"""Messages of Action.log and Action.error, with limits per run and per minute.

The limits are needed because the messages are stored, and scripts of callers without any right may write them.
"""

from __future__ import annotations

from typing import Final

from foundation import errors
from identity import rate_limits
from identity.context import CallContext

#: Limit of one message.
MAX_CHARACTERS: Final = 10_000
#: Limits of one run, and of a user's runs in a minute.
RUN_BYTES: Final = 100_000
MINUTE_BYTES: Final = 1_000_000
#: Counted in addition to the text of each message, for its row.
_ROW_BYTES: Final = 100
_FULL: Final = "Further messages of this script are not kept."
_FULL_MINUTE: Final = "Messages of this script are not kept: its caller has written many in this minute."


class Messages:
    """The messages of one run, in order: (type, text)."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []
        self._size = 0

    def add(self, kind: str, text: str) -> None:
        """Add a message; beyond RUN_BYTES only one warning that messages were dropped."""
        if self._size > RUN_BYTES:
            return
        text = text[:MAX_CHARACTERS]
        self._size += len(text.encode("utf-8", "replace")) + _ROW_BYTES
        self._kept.append((kind, text) if self._size <= RUN_BYTES else ("Warning", _FULL))

    def to_store(self, context: CallContext) -> list[tuple[str, str]]:
        """The messages to store, counted as the caller's; beyond MINUTE_BYTES only one warning."""
        if self._kept and context.user is not None:
            try:
                rate_limits.count(f"script-messages:{context.user.id}", MINUTE_BYTES, amount=self._size)
            except errors.TooManyRequests:
                return [("Warning", _FULL_MINUTE)]
        return self._kept
