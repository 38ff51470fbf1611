"""What others keep for a session, and give up when it closes.

Domain transactions belong to the session that began them (spec 03, 3.2), and identity may not import the domain; so the
domain registers here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

# Guids of sessions that have just closed → None; runs in the database transaction that closes them.
CloseHook = Callable[[Collection[str]], None]
# Guids of sessions → how many open transactions each of them has; sessions without one may be missing.
CountHook = Callable[[Collection[str]], Mapping[str, int]]

_close: list[CloseHook] = []
_count: list[CountHook] = []


def register(*, close: CloseHook, count: CountHook) -> None:
    """Called at start-up by who keeps something for sessions."""
    _close.append(close)
    _count.append(count)


def sessions_closed(session_ids: Collection[str]) -> None:
    """Let go of what belongs to these sessions."""
    if session_ids:
        for hook in _close:
            hook(session_ids)


def transactions_open(session_ids: Collection[str]) -> dict[str, int]:
    """Open Domain transactions by session."""
    found: dict[str, int] = {}
    for hook in _count:
        for session_id, count in hook(session_ids).items():
            found[session_id] = found.get(session_id, 0) + count
    return found
