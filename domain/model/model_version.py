"""The version of the model, which administrators extend by custom entities: the one that this process serves.

Definitions are rows; each commit of definitions bumps CACHE_VERSION. domain.entities.custom_entities.live builds
repositories of them between two requests and records here the cache version that they were built for. Each thread
records the cache version at which its unit of work began: its repositories are from that time, even if other threads
rebuild some. A write or read that finds a newer cache version is retried with the new model (ModelChanged).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import Error, connection

from foundation import cache_versions, errors

CACHE_VERSION = "custom_entities"


class ModelChanged(errors.Unavailable):
    """The definition of an entity was changed after the request began; the same request succeeds when repeated."""

    def __init__(self) -> None:
        super().__init__(errors.MODEL_CHANGED, retry_after_seconds=1)


class _Served:
    #: The cache version of the definitions that the registry was built from; 0: there never were any.
    version = 0
    #: Serves the current definitions; registered by domain.entities.custom_entities.live, which is above this module.
    follow: Callable[[], None]


class _Work(threading.local):
    #: The served cache version at the start of this thread's unit of work; None in a thread that never began one.
    version: int | None = None


_work = _Work()


def register_follower(follow: Callable[[], None]) -> None:
    """Register the function that serves the current definitions; called once at start-up."""
    _Served.follow = staticmethod(follow)


def follow_if_first() -> None:
    """Serve the current definitions if this process has served none. For the first dataset of a command.

    No caller can hold a repository that this rebuilds, so it need not be the start of a unit of work.
    """
    if _Served.version == 0 and not is_served():
        _Served.follow()
        # This begins no unit of work: the thread may continue for long.
        _work.version = None


def is_served() -> bool:
    """Whether the registry has the current definitions."""
    return cache_versions.current(CACHE_VERSION) == _Served.version


def is_current() -> bool:
    """Whether this thread's work began with the current definitions, so that a new unit of work begins as it did."""
    return _work.version == _Served.version == cache_versions.current(CACHE_VERSION)


def set_served(version: int) -> None:
    """Record that the registry has the definitions as of this cache version."""
    _Served.version = _work.version = version


def begin_work() -> None:
    """Record that this thread's work begins with the definitions that are served."""
    _work.version = _Served.version


def is_outdated() -> bool:
    """Whether definitions have changed since this thread's work began, as far as the process knows."""
    began = _Served.version if _work.version is None else _work.version
    return cache_versions.current(CACHE_VERSION) != began


def has_changed(check: Callable[[], None] = cache_versions.check) -> bool:
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
