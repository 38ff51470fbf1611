"""Fixtures of the tests of rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from domain.model import custom_properties
from foundation import cache_versions
from rules import index, statistics, trace_log, trace_switches
from tests.identity.conftest import forget_everything
from tests.rules.cast import World, prepared_world
from tests.support.api import Api, prepared_token


@pytest.fixture(autouse=True)
def forget_rules() -> Iterator[None]:
    """Earlier tests were rolled back, and their cache versions too: the same number may now mean something else."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    cache_versions.expire()
    index._index.forget()
    trace_switches._traced.forget()
    trace_log.pending.clear()
    custom_properties._definitions.forget()
    statistics.pending.clear()


@pytest.fixture
def world(db: None) -> World:
    """A company, a customer, a product."""
    return prepared_world()


@pytest.fixture
def api(world: World, client: Client) -> Api:
    """A service application that may do everything, over HTTP."""
    forget_everything()
    return Api(client, prepared_token())
