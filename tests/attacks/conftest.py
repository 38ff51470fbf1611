"""An instance as an attacker meets it: the product's own addresses and middleware, reached through HTTP alone."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.identity.conftest import browser, demo, fresh_process, http
from tests.support.api import Api, service_api

__all__ = ["browser", "demo", "fresh_process", "http"]


@pytest.fixture
def administrator(demo: None) -> Api:
    """The demo's service application, whose system user is an administrator."""
    return service_api(Client())
