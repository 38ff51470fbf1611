"""The version of the model, which administrators extend by custom entities: the one that this process serves.

Definitions are rows; each commit of definitions bumps STAMP. domain.entities.custom_entities.live builds repositories
of them between two requests and records here the stamp that they were built for. Each thread records the stamp at
which its unit of work began: its repositories are from that time, even if other threads rebuild some. A write or read
that finds a newer stamp is retried with the new model (ModelChanged).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import Error, connection

from foundation import errors, stamps

STAMP = "custom_entities"


class ModelChanged(errors.Unavailable):
    """The definition of an entity was changed after the request began; the same request succeeds when repeated."""

    def __init__(self) -> None:
        super().__init__(errors.MODEL_CHANGED, retry_after_seconds=1)


class _Served:
    #: The stamp of the definitions that the registry was built from; 0: there never were any.
    stamp = 0
    #: Serves the current definitions; registered by domain.entities.custom_entities.live, which is above this module.
    follow: Callable[[], None]


class _Work(threading.local):
    #: The served stamp at the start of this thread's unit of work; None in a thread that never began one.
    stamp: int | None = None


_work = _Work()


def register_follower(follow: Callable[[], None]) -> None:
    """Register the function that serves the current definitions; called once at start-up."""
    _Served.follow = staticmethod(follow)


def follow_if_first() -> None:
    """Serve the current definitions if this process has served none. For the first dataset of a command.

    No caller can hold a repository that this rebuilds, so it need not be the start of a unit of work.
    """
    if _Served.stamp == 0 and not is_served():
        _Served.follow()
        # This begins no unit of work: the thread may continue for long.
        _work.stamp = None


def is_served() -> bool:
    """Whether the registry has the current definitions."""
    return stamps.current(STAMP) == _Served.stamp


def is_current() -> bool:
    """Whether this thread's work began with the current definitions, so that a new unit of work begins as it did."""
    return _work.stamp == _Served.stamp == stamps.current(STAMP)


def set_served(stamp: int) -> None:
    """Record that the registry has the definitions as of this stamp."""
    _Served.stamp = _work.stamp = stamp


def begin_work() -> None:
    """Record that this thread's work begins with the definitions that are served."""
    _work.stamp = _Served.stamp


def is_outdated() -> bool:
    """Whether definitions have changed since this thread's work began, as far as the process knows."""
    began = _Served.stamp if _work.stamp is None else _work.stamp
    return stamps.current(STAMP) != began


def has_changed(check: Callable[[], None] = stamps.check) -> bool:
    """As is_outdated, with one query, so that no earlier commit is missed. False inside a transaction.

    check: runs the query, for callers with a faster way than Django's cursor.
    """
    if connection.in_atomic_block:
        return False
    try:
        check()
        return is_outdated()
    except Error:
        # The database is unavailable: the caller reports its own error.
        return False
