"""Fixtures of the write engine's tests."""

from __future__ import annotations

import pytest

from domain.dataset.dataset import Dataset
from tests.rules.cast import World, dataset


@pytest.fixture
def ds(world: World) -> Dataset:
    """A dataset of the administrator."""
    return dataset(world.context)
