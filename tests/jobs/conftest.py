"""Fixtures of the tests of jobs."""

from __future__ import annotations

from tests.domain.conftest import api, fresh_process, world

__all__ = ["api", "fresh_process", "world"]
