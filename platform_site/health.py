"""Health checks of an instance's parts, each cached for a few seconds so that probes stay cheap (spec 01, 1.1).

A check is a function that returns None when the part works, and a sentence or an exception when it does not. Apps
register the checks of their parts in AppConfig.ready.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.core.cache import cache
from django.db import connections
from django_q.brokers import get_broker

from scripts.services import pool
from webhooks.selectors import workers_problem

Check = Callable[[], str | None]

_CACHED_SECONDS = 5.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; `problem` is None if the part works. Requests are served without the parts that are not
    `vital`.
    """

    name: str
    problem: str | None
    milliseconds: float
    vital: bool = True


_checks: dict[str, Check] = {}
_not_vital: set[str] = set()
_findings: dict[str, tuple[float, Finding]] = {}


def register(name: str, check: Check, *, vital: bool = True) -> None:
    """Add or replace the check of a part."""
    _checks[name] = check
    if not vital:
        _not_vital.add(name)


def examine(name: str) -> Finding:
    """The finding of a part, at most a few seconds old."""
    now = time.monotonic()
    known = _findings.get(name)
    if known is not None and now - known[0] < _CACHED_SECONDS:
        return known[1]
    started = time.perf_counter()
    try:
        problem = _checks[name]()
    except Exception as exc:
        # The log has the message; the public probe shows only the exception's type.
        logger.warning("the check of %s failed: %s", name, exc)
        problem = f"{type(exc).__name__}"
    finding = Finding(name, problem, round((time.perf_counter() - started) * 1000, 1), name not in _not_vital)
    _findings[name] = (now, finding)
    return finding


def examine_all() -> list[Finding]:
    """The findings of all parts."""
    return [examine(name) for name in _checks]


def forget() -> None:
    """Drop the cached findings (tests)."""
    _findings.clear()


def _database() -> str | None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
    return None


def _cache() -> str | None:
    value = secrets.token_hex(4)
    cache.set("health", value, 10)
    return None if cache.get("health") is not None else "What is put into the cache is not found there."


def _queue() -> str | None:
    get_broker().queue_size()
    return None


def _sandbox() -> str | None:
    failure = pool().start_failure()
    if failure is None:
        return None
    logger.warning("script workers do not start: %s", failure)
    return "Script workers do not start; the log says why."


register("database", _database)
register("cache", _cache)
register("queue", _queue)
register("sandbox", _sandbox)
# Without workers web nodes still serve: tasks wait in the database.
register("worker", workers_problem, vital=False)
