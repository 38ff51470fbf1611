"""Makes changed cache versions visible at once in tests, whose transactions never commit and so never announce them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from foundation import cache_versions


def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expire the known cache versions after each bump and each rollback."""
    for owner, name in (
        (cache_versions, "bump"),
        (BaseDatabaseWrapper, "rollback"),
        (BaseDatabaseWrapper, "savepoint_rollback"),
    ):
        monkeypatch.setattr(owner, name, _then_expire(getattr(owner, name)))


def _then_expire(change: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(change)
    def changed(*args: Any, **kwargs: Any) -> Any:
        try:
            return change(*args, **kwargs)
        finally:
            cache_versions.expire()

    return changed
