"""One instance for all statements, callers of it, and the checklist (tests.acceptance.statements)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.caller import Caller, answered
from tests.acceptance.licence import Licence
from tests.acceptance.objects import Maker
from tests.acceptance.people import Browser, Person
from tests.acceptance.receiving import Hooks
from tests.acceptance.statements import STATEMENT, Checklist, statements_of
from tests.support.platform import LivePlatform, start_platform
from tests.support.receiver import LoopbackReceiver
from tests.support.redis_server import redis_of_its_own

_HERE = Path(__file__).parent
_CHECKLIST = pytest.StashKey[Checklist]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make acceptance` gives."""
    parser.addoption("--checklist", action="store_true", help="Print each statement and its verdict.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reports carry the statements, also from the processes of pytest-xdist."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.user_properties.extend((STATEMENT, found) for found in statements_of(item))


class _Printer:
    """Collects verdicts while the tests run and prints them at the end."""

    def __init__(self) -> None:
        self.checklist = Checklist()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each phase of each test."""
        self.checklist.record(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """After all tests."""
        terminalreporter.section(f"acceptance on {_services()}")
        for line in self.checklist.lines():
            terminalreporter.line(line)


def pytest_configure(config: pytest.Config) -> None:
    """The printer is there only when asked for."""
    if config.getoption("checklist", default=False):
        config.pluginmanager.register(_Printer())


def _services() -> str:
    database = "PostgreSQL" if os.environ.get("DATABASE_URL", "").startswith("postgres") else "SQLite"
    return f"{database} with{'' if os.environ.get('REDIS_URL') else 'out'} Redis"


@pytest.fixture(scope="session")
def acceptance_instance() -> Iterator[LivePlatform]:
    """The instance in demo mode, started once. With REDIS_URL it uses a Redis of its own: keys are not prefixed.

    Times that a test would only wait for are short; what they are by default, tests of settings say.
    """
    settings = {"WEBHOOK_RETRY_SECONDS": "1", "WEBHOOK_RETRY_JITTER": "0", "SCRIPT_WALL_SECONDS": "1"}
    with ExitStack() as stack:
        if os.environ.get("REDIS_URL"):
            settings["REDIS_URL"] = stack.enter_context(redis_of_its_own())
        yield stack.enter_context(start_platform(settings=settings))


@pytest.fixture(scope="session")
def anyone(acceptance_instance: LivePlatform) -> Caller:
    """A caller without a token."""
    return Caller(acceptance_instance.base_url)


@pytest.fixture(scope="session")
def service(anyone: Caller) -> Caller:
    """A service application with the scopes read, update and exec and an administrator's rights."""
    answer = anyone.form(
        "/id/connect/token",
        grant_type="client_credentials",
        client_id="ServiceDemoClient",
        client_secret="DEMO",
        scope="read update exec",
    )
    return anyone.with_token(answered(answer, 200).json()["access_token"])


@pytest.fixture(scope="session")
def demo(anyone: Caller) -> Iterator[Person]:
    """The internal user `demo`, signed in to the confidential application."""
    with Person.signed_in(anyone, "demo") as person:
        yield person


@pytest.fixture
def mark() -> str:
    """Letters and digits that no other test uses, for codes and names."""
    return secrets.token_hex(4).upper()


@pytest.fixture
def make(service: Caller, mark: str) -> Iterator[Maker]:
    """Makes what a test needs and removes it afterwards."""
    with Maker.of(service, mark) as maker:
        yield maker


@pytest.fixture(scope="session")
def licence(anyone: Caller, service: Caller) -> Licence:
    """The licence as an administrator may change it."""
    browser = Browser(anyone)
    answered(browser.log_in("admin"), 302)
    return Licence(browser, service)


@pytest.fixture(scope="session")
def hooks() -> Iterator[Hooks]:
    """A real HTTP server that records what it is sent."""
    with LoopbackReceiver().running() as receiver:
        yield Hooks(receiver)
