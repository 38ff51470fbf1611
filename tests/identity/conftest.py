"""The cast of identity's tests: demo users and applications, one browser, and clients that speak OAuth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client

from foundation import cache_versions
from identity import counters, licences, rate_limits, sessions, token_identity
from identity.demo import seed_identity
from identity.oauth import keys
from tests.identity.flows import Browser
from tests.support.cache_versions import seen_at_once
from tests.support.prepared import Prepared

_prepared_demo = Prepared(seed_identity)


def forget_everything() -> None:
    """Drop what the process remembers of an earlier test's rows."""
    for module in (sessions, token_identity, keys):
        module.forget()
    licences._terms.forget()
    rate_limits._limits.forget()
    cache_versions.expire()


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test starts as a process just started, with unused counters.

    Counters are this process's file, with REDIS_URL too: there all test processes would fail each other's logins.
    """
    seen_at_once(monkeypatch)
    forget_everything()
    (settings.DATA_DIR / "counters.bin").unlink(missing_ok=True)
    mine = counters.FileCounters(settings.DATA_DIR / "counters.bin")
    monkeypatch.setattr(counters.counters, "_made", (mine,))
    yield
    forget_everything()


@pytest.fixture
def demo(db: None) -> None:
    """The demo's users and applications."""
    _prepared_demo()
    cache_versions.expire()


@pytest.fixture
def browser(demo: None) -> Browser:
    """A browser in which nobody is signed in."""
    return Browser(Client(enforce_csrf_checks=True))


@pytest.fixture
def http(demo: None) -> Client:
    """A client without cookies of interest."""
    return Client()
