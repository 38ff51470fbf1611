"""Fixtures of the domain's tests through HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from tests.identity.conftest import forget_everything
from tests.rules.cast import World, prepared_world
from tests.rules.conftest import _forget as forget_rules
from tests.support.api import Api, prepared_token
from tests.support.cache_versions import seen_at_once


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a process just started: earlier tests' rows are gone, and what the process remembers of them must be too."""
    seen_at_once(monkeypatch)
    forget_everything()
    forget_rules()
    yield
    forget_everything()
    forget_rules()


@pytest.fixture
def world(db: None, fresh_process: None) -> World:
    """A company, a customer, a product."""
    return prepared_world()


@pytest.fixture
def api(world: World, client: Client) -> Api:
    """A service application that may do everything."""
    return Api(client, prepared_token())
