"""Hooks of other apps for closing sessions.

Domain transactions belong to the session that began them (spec 03, 3.2), and identity may not import the domain; so the
domain registers functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

# Guids of sessions that were closed → None; runs in the database transaction that closes them.
CloseHook = Callable[[Collection[str]], None]
# Guids of sessions → number of open transactions by session; sessions without one may be missing.
CountHook = Callable[[Collection[str]], Mapping[str, int]]

_close: list[CloseHook] = []
_count: list[CountHook] = []


def register(*, close: CloseHook, count: CountHook) -> None:
    """Register the hooks at start-up."""
    _close.append(close)
    _count.append(count)


def sessions_closed(session_ids: Collection[str]) -> None:
    """Call the hooks for closed sessions."""
    if session_ids:
        for hook in _close:
            hook(session_ids)


def transactions_open(session_ids: Collection[str]) -> dict[str, int]:
    """Open Domain transactions by session."""
    result: dict[str, int] = {}
    for hook in _count:
        for session_id, count in hook(session_ids).items():
            result[session_id] = result.get(session_id, 0) + count
    return result
