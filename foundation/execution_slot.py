"""The execution slot of a web process: one request at a time holds it (platform_site.serving.scheduler).

Commands, background workers and tests have no slot; the functions of this module do nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

#: Rows per slice; some milliseconds of work.
STEP: Final = 250


class Slot(Protocol):
    """The scheduler of a web process."""

    def release(self) -> None:
        """The request of this thread continues without the slot, which the next request gets."""

    def defer(self) -> None:
        """Wait a moment for a free slot, if the request of this thread runs without it."""

    def stand_aside(self) -> None:
        """Wait a moment for a free slot, from a thread that executes no request."""


_slot: Slot | None = None


def install(slot: Slot) -> None:
    """Set the slot of this process."""
    global _slot
    _slot = slot


def release_slot() -> None:
    """Call before this thread waits for something outside the process, such as a script or an HTTP response."""
    if _slot is not None:
        _slot.release()


def defer_to_slot() -> None:
    """Call often in long work: a request that lost the slot lets the requests that hold it go first."""
    if _slot is not None:
        _slot.defer()


def stand_aside() -> None:
    """Call often in long work outside of requests, or that is perhaps outside: requests go first."""
    if _slot is not None:
        _slot.stand_aside()


def in_steps(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in slices of STEP; defers to other requests between two slices."""
    if len(rows) <= STEP:
        yield rows
        return
    for start in range(0, len(rows), STEP):
        if start:
            defer_to_slot()
        yield rows[start : start + STEP]
