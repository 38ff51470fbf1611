"""What tests of the audit chain begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.identity.conftest import forget_everything


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    """Heads are signed with a key of this test: the row of an earlier test's key is gone."""
    forget_everything()
    yield
    forget_everything()
