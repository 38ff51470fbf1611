"""Change signals (foundation.stamps) in a test's transaction, where nothing commits and so nothing tells of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from foundation import stamps


def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks after a change, or after one was taken back, reads the stamps anew."""
    for owner, name in (
        (stamps, "bump"),
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
            stamps.expire()

    return changed
