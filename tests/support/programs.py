"""Programs and services that a test needs and a machine may lack."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Whether this run must not skip what it lacks (CI=true)."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing(reason: str) -> NoReturn:
    """Skip the test with the reason; in CI fail, because there a skipped test is a test that nobody runs."""
    if in_ci():
        pytest.fail(f"{reason} (CI must have it)", pytrace=False)
    pytest.skip(reason)


def requires_program(*names: str) -> str:
    """The path of the first of these programs that is installed; without any of them the test skips (in CI: fails)."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    missing(f"needs {' or '.join(names)}, which this machine lacks")
