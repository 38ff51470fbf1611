"""The version of the model that administrators extend: which custom entities this process serves.

Definitions are rows; each commit of definitions bumps CACHE_VERSION. domain.entities.custom_entities.live builds
repositories of them between two requests and records here the cache version that they were built for. Each thread
remembers the cache version with which its unit of work began: what it holds of the model is from then, whatever other
threads do. A write that begins with a newer cache version is repeated with the new model (ModelChanged), and so is a
read that has met a newer cache version.
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
    #: The cache version that was served when this thread's unit of work began; None in a thread that never began one.
    version: int | None = None


_work = _Work()


def register_follower(follow: Callable[[], None]) -> None:
    """Give the function that serves the current definitions; called once at start-up."""
    _Served.follow = staticmethod(follow)


def follow_if_first() -> None:
    """Serve the current definitions if this process has served none: a command's first dataset.

    Whatever called this cannot hold a repository that changes, so it need not be a place where work begins.
    """
    if _Served.version == 0 and not is_served():
        _Served.follow()
        # It is no unit of work: the thread may go on for long.
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
    """As is_outdated, with one query: no commit before it is missed. False inside a transaction, which sees its own.

    check: runs the query, for callers with a faster way than Django's cursor.
    """
    if connection.in_atomic_block:
        return False
    try:
        check()
        return is_outdated()
    except Error:
        # The database is away; whoever asks has that error to report.
        return False
