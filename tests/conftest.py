"""What every test can ask for, and what every test gets."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
from collections.abc import Generator, Iterator
from itertools import count
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core.cache import caches
from django.utils import translation
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser
from pytest_django import DjangoDbBlocker

from audit import record
from domain.dataset.tables import reference_rows
from foundation import cache_versions
from identity.oauth import keys
from platform_site import recorded_requests, urls  # noqa: F401  (pages of the admin are there for every test)
from rules import statistics, trace_log
from scripts import history
from tests.support import databases
from tests.support.chromium import launched
from tests.support.lock_holders import lock_holders
from tests.support.log_watch import LogWatch
from tests.support.platform import LICENSED_SESSIONS, LivePlatform, start_platform
from tests.support.receiver import LoopbackReceiver
from tests.support.signing_keys import SigningKeys
from tests.support.taking_turns import running_beside_others

# `default` finds the same examples in each run, so that a red suite is red for its author too; `fuzz` looks further.
hypothesis_settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
hypothesis_settings.register_profile("fuzz", deadline=None, max_examples=5000)
hypothesis_settings.load_profile("default")

kept_databases = databases.KeptDatabases()
databases.flush_by_deleting()
databases.flush_to_what_migrations_left()

_cache_generation = count()

# Fixtures that start an instance, once for a test process.
_SHARED_INSTANCES = ("live_platform", "acceptance_instance")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this suite."""
    parser.addoption(
        "--database-only",
        action="store_true",
        help="Only what a second run on another database can tell: tests that reach one or start an instance, and"
        " are marked neither once nor browser.",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Marks that follow from what a test is; then its turn, after pytest-django has put those with a database first."""
    if config.getoption("database_only"):
        left_out = [item for item in items if not _differs_by_database(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _differs_by_database(item)]
    for item in items:
        # A file's instances and browser belong to one test process.
        if _runs_alone(item):
            item.add_marker(pytest.mark.xdist_group("alone"))
        elif _starts_processes(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
        _open_all_databases(item)
    result = yield
    # The long ones first; and those that run alone when hardly anybody is left to wait for them.
    items.sort(key=lambda item: (_runs_alone(item), item.get_closest_marker("xdist_group") is None))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives as long as the process: no need to look through it for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _runs_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def _differs_by_database(item: pytest.Item) -> bool:
    once = any(item.get_closest_marker(name) is not None for name in ("once", "browser"))
    return not once and (_uses_database(item) or _starts_processes(item))


def _starts_processes(item: pytest.Item) -> bool:
    shares_instance = not set(_SHARED_INSTANCES).isdisjoint(getattr(item, "fixturenames", ()))
    return shares_instance or item.get_closest_marker("process") is not None


def _uses_database(item: pytest.Item) -> bool:
    asked_for = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    return bool(asked_for) or item.get_closest_marker("django_db") is not None


def _open_all_databases(item: pytest.Item) -> None:
    """A test with a database has all of them: `broker`, where tasks wait, is as much the product as `default`.

    pytest-django opens only `default` unless each test names the others, and so a test that commits a webhook would
    fail for a reason that is not its own.
    """
    marker = item.get_closest_marker("django_db")
    if not _uses_database(item) or (marker is not None and "databases" in marker.kwargs):
        return
    arguments = dict(marker.kwargs) if marker is not None else {}
    positional = marker.args if marker is not None else ()
    item.add_marker(pytest.mark.django_db(*positional, **arguments, databases=list(settings.DATABASES)), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that measures time runs alone, set-up and fixtures of its module included."""
    with running_beside_others(alone=_runs_alone(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report of a locked database says who holds the lock."""
    report = yield
    if call.excinfo is not None and "database is locked" in report.longreprtext:
        report.sections.append(("Locks of SQLite", lock_holders()))
    return report


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> bool:
    """pytest-django asks whether the test databases exist: they do where earlier runs left a copy of migrated ones."""
    return kept_databases.restore()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """After databases were migrated, a copy is kept for other processes and the next run."""
    with django_db_blocker.unblock():
        kept_databases.ready()


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Each test starts with an empty cache and counters: a new key prefix, which leaves other processes' entries alone.

    Clearing would not do: with Redis it empties the database that all test processes share.
    """
    prefix = f"{settings.CACHES['default']['KEY_PREFIX'].partition('/')[0]}/{next(_cache_generation)}"
    caches.settings["default"]["KEY_PREFIX"] = prefix  # for threads that open the cache from now on
    caches["default"].key_prefix = prefix


@pytest.fixture(autouse=True)
def no_cached_rows_of_other_tests() -> None:
    """A test's rows are rolled back or deleted without a commit of a dataset, which would bump their cache version."""
    reference_rows.forget()


@pytest.fixture(autouse=True)
def minute_of_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No minute of the rate limits ends within a test. Only limits see this time: tokens live by the real one."""
    monkeypatch.setattr("identity.rate_limits.time", SimpleNamespace(time=lambda: 1_800_000_020.0))


@pytest.fixture(autouse=True)
def signing_keys_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the key that signs a test's tokens took longer than most of these tests."""
    monkeypatch.setattr(keys, "generate_private_key", SigningKeys())


@pytest.fixture(autouse=True)
def cache_versions_read_on_demand(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache versions are read again twice a second: a test that counts queries would by chance count one more."""
    if request.node.get_closest_marker("cache_versions_by_the_clock") is None:
        monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 3600.0)


@pytest.fixture(autouse=True)
def language_of_nobody() -> None:
    """Django leaves a thread with the language of its last request, which a test without requests would speak."""
    translation.deactivate()


@pytest.fixture(autouse=True)
def nothing_left_to_write() -> Iterator[None]:
    """What rules counted and scripts noted in one test is not written by the next one, which may have no database."""
    yield
    for module in (statistics, history, trace_log, recorded_requests):
        module.pending.clear()
    record.forget()


@pytest.fixture(scope="session")
def log_watch() -> Iterator[LogWatch]:
    """On the root of all logs, as the product's own handler."""
    watch = LogWatch()
    logging.getLogger().addHandler(watch)
    yield watch
    logging.getLogger().removeHandler(watch)


@pytest.fixture(autouse=True)
def no_secret_is_logged(log_watch: LogWatch) -> Iterator[None]:
    """Whatever a test does; instances that it starts are looked at when they stop (tests.support.platform)."""
    yield
    found = log_watch.take()
    assert not found, f"secrets in the log: {found}"


@pytest.fixture
def loopback_receiver() -> Iterator[LoopbackReceiver]:
    """A real HTTP server on loopback with programmable answers."""
    with LoopbackReceiver().running() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module's tests. While it runs, Django takes this thread for one that must not use databases."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def live_platform() -> Iterator[LivePlatform]:
    """The real instance in demo mode, started once for each test process.

    Its tests open more sessions in twenty minutes than the demo's licence has.
    """
    with start_platform() as platform:
        more = f"from identity.models import Licence; Licence.objects.update(sessions={LICENSED_SESSIONS})"
        subprocess.run([sys.executable, "manage.py", "shell", "-c", more], env=dict(platform.environment), check=True)
        yield platform
