"""Fixtures of the domain's tests through HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from foundation import stamps
from identity.demo import seed_identity
from tests.identity.conftest import forget_everything
from tests.rules.cast import World, make_world
from tests.rules.conftest import _forget as forget_rules
from tests.support.api import Api, service_api


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a process just started: earlier tests' rows are gone, and what the process remembers of them must be too.

    Stamps are read every time: inside a test's transaction nothing is committed, so nothing would tell of a change.
    """
    monkeypatch.setattr(stamps, "CHECK_SECONDS", 0.0)
    forget_everything()
    forget_rules()
    yield
    forget_everything()
    forget_rules()


@pytest.fixture
def world(db: None, fresh_process: None) -> World:
    """A company, a customer, a product."""
    return make_world()


@pytest.fixture
def api(world: World, client: Client) -> Api:
    """A service application that may do everything."""
    seed_identity()
    return service_api(client)
