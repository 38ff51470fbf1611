"""Fixtures of the tests of webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from foundation import cache_versions
from webhooks import templates


@pytest.fixture(autouse=True)
def forget_templates() -> Iterator[None]:
    """What earlier tests saved is gone, and its cache versions with it: the same number may now mean something else."""
    cache_versions.expire()
    templates.forget()
    yield
    cache_versions.expire()
    templates.forget()


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Settings) -> None:
    """As in demo mode: receivers of these tests listen there."""
    settings.EGRESS_ALLOW = ["127.0.0.0/8", "::1"]
