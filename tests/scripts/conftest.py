"""Fixtures of the tests of scripts through HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts import history, services
from tests.domain.conftest import api, fresh_process, world

__all__ = ["api", "forget_history", "fresh_process", "world"]


@pytest.fixture(autouse=True)
def usual_pool() -> None:
    """The pool's limits, which runs can only tighten, are those of the instance and not of the first test."""
    services.pool()


@pytest.fixture(autouse=True)
def forget_history() -> Iterator[None]:
    """What earlier tests left to be written is none of the next one's business."""
    history.pending.clear()
    yield
    history.pending.clear()
