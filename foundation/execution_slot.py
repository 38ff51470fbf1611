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
        """Pass the slot to the next request; the request of this thread continues without it."""

    def defer(self) -> None:
        """Wait a moment for a free slot, if the request of this thread runs without it."""

    def yield_to_requests(self) -> None:
        """Wait a moment for a free slot, from a thread that executes no request."""


_slot: Slot | None = None


def install(slot: Slot) -> None:
    """Set the slot of this process."""
    global _slot
    _slot = slot


def release_slot() -> None:
    """Release the slot before this thread waits for something outside the process: a script, an HTTP response."""
    if _slot is not None:
        _slot.release()


def defer_to_slot() -> None:
    """Give precedence to the holder of the slot. Call often in long requests, which may have lost the slot."""
    if _slot is not None:
        _slot.defer()


def yield_to_requests() -> None:
    """Give precedence to requests. Call often in long work that may run outside of requests."""
    if _slot is not None:
        _slot.yield_to_requests()


def in_slices(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in slices of STEP; defers to other requests between two slices."""
    if len(rows) <= STEP:
        yield rows
        return
    for start in range(0, len(rows), STEP):
        if start:
            defer_to_slot()
        yield rows[start : start + STEP]
