"""Fixtures of the admin's pages of entities."""

from __future__ import annotations

import pytest
from django.test import Client

from identity.models import User


@pytest.fixture
def boss(db: None, fresh_process: None, client: Client) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client
