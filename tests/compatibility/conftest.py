"""Fixtures; writes the table of docs/reference/compatibility.md when asked to (tests.compatibility.table)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compatibility import table
from tests.domain.conftest import api, fresh_process, world
from tests.identity.conftest import browser, demo


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make compatibility` gives."""
    parser.addoption("--compatibility-table", action="store_true", help="Write docs/reference/compatibility.md anew.")


def pytest_configure(config: pytest.Config) -> None:
    """The writer is there only when asked for, and in the process that hears of every test."""
    if config.getoption("compatibility_table", default=False) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The check of the table would compare what this run is about to replace."""
    writes = config.getoption("compatibility_table", default=False)
    return True if writes and table.is_own_test(collection_path) else None


class _Writer:
    """Collects verdicts while the tests run; the worst of a test's phases and parameters counts."""

    def __init__(self) -> None:
        self.verdicts: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each phase of each test; a skipped one says nothing."""
        node = report.nodeid.partition("[")[0].partition("@")[0]
        if report.failed:
            self.verdicts[node] = table.FAILS
        elif report.when == "call" and report.passed:
            self.verdicts.setdefault(node, table.PASSES)

    def pytest_sessionfinish(self) -> None:
        """After all tests."""
        table.write(self.verdicts)


__all__ = ["api", "browser", "demo", "fresh_process", "world"]
