"""MaxSessions of an application (spec 01, 1.8): at its limit a new session takes the place of the longest idle."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import Licence, ReservedSeat, Session, TrustedApplication, User
from identity.usage import usage_by_application, usage_warnings
from tests.identity.flows import SERVICE, Browser, service_token
from tests.identity.test_sessions import Clock, call, clock, licence, open_sessions, race

__all__ = ["clock"]
pytestmark = pytest.mark.urls("tests.identity.api")


def limit(sessions: int | None, application: str = SERVICE) -> None:
    TrustedApplication.objects.filter(application_uri=application).update(max_sessions=sessions)


def session_of(http: Client, token: str) -> Any:
    response = call(http, token)
    assert response.status_code == 200, response.content
    return response.json()["session"]


def test_a_new_token_closes_the_longest_idle_session_of_its_application(http: Client, clock: Clock) -> None:
    limit(2)
    first, second, third = (service_token(http) for _ in range(3))
    oldest = session_of(http, first)
    clock.forward(minutes=1)
    newer = session_of(http, second)
    clock.forward(minutes=1)
    assert session_of(http, first) == oldest  # so the second is idle longer now, though it opened later
    newest = session_of(http, third)
    assert set(Session.objects.filter(closed=None).values_list("pk", flat=True)) == {oldest, newest}
    assert Session.objects.get(pk=newer).close_reason == "for a newer session"


def test_a_closed_token_comes_back_in_the_place_of_another(http: Client) -> None:
    limit(1)
    first, second = service_token(http), service_token(http)
    opened = [session_of(http, token) for token in (first, second, first, second)]
    assert len(set(opened)) == 4
    assert open_sessions() == 1


def test_without_a_limit_each_token_takes_a_slot(http: Client) -> None:
    for _ in range(3):
        session_of(http, service_token(http))
    assert open_sessions() == 3


def test_others_keep_their_sessions(http: Client, browser: Browser) -> None:
    limit(1)
    person = session_of(browser.client, browser.tokens()["access_token"])
    for _ in range(3):
        session_of(http, service_token(http))
    assert open_sessions() == 2
    assert Session.objects.get(pk=person).closed is None


def test_a_full_licence_admits_who_replaces_a_session_of_their_own(http: Client, browser: Browser) -> None:
    licence(2)
    limit(1)
    session_of(browser.client, browser.tokens()["access_token"])
    session_of(http, service_token(http))
    session_of(http, service_token(http))
    assert open_sessions() == 2
    limit(None)
    assert call(http, service_token(http)).status_code == 503


def test_a_lowered_limit_holds_from_the_next_session_on(http: Client) -> None:
    for _ in range(4):
        session_of(http, service_token(http))
    limit(2)
    session_of(http, service_token(http))
    assert open_sessions() == 2


def test_nothing_is_closed_for_a_caller_who_is_refused(http: Client, browser: Browser) -> None:
    """The session on a reserved seat would give its slot back to its owner alone."""
    licence(1)
    limit(1, "WebDemoClient")
    ReservedSeat.objects.create(user=User.objects.get(login="demo"))
    kept = session_of(browser.client, browser.tokens()["access_token"])
    other = Browser(Client(enforce_csrf_checks=True))
    assert call(other.client, other.tokens("admin")["access_token"]).status_code == 503
    assert Session.objects.get(pk=kept).closed is None


def held(application: str, count: int) -> None:
    """Open sessions of the application, as its tokens would have opened them."""
    row, now = TrustedApplication.objects.get(application_uri=application), utc_now()
    Session.objects.bulk_create(
        Session(key=f"{application}-{n}", user=User.objects.get(login="service"), application=row,
                opened=now, last_activity=now, expires=now + timedelta(minutes=20))
        for n in range(count)
    )  # fmt: skip


@pytest.mark.parametrize(
    "service, web, said",
    [
        (5, 2, []),
        (6, 1, ["Service demo client holds 6 of 10 slots."]),
        (4, 4, ["8 of 10 slots are taken"]),
        (7, 1, ["8 of 10 slots are taken", "Service demo client holds 7 of 10 slots."]),
    ],
)
def test_administrators_are_warned_in_time(http: Client, service: int, web: int, said: list[str]) -> None:
    licence(10)
    held(SERVICE, service)
    held("WebDemoClient", web)
    warnings = usage_warnings()
    assert [warning.startswith(text) for warning, text in zip(warnings, said, strict=True)] == [True] * len(said)
    assert [holder.sessions for holder in usage_by_application()] == sorted([service, web], reverse=True)


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_real_processes_stay_within_the_limit(tmp_path: Path, transactional_db: None) -> None:
    from identity.demo import seed_identity

    seed_identity()
    Licence.objects.filter(pk=1).update(sessions=3)
    limit(2)
    Session.objects.all().delete()
    cache_versions.expire()
    http = Client()
    tokens = [service_token(http) for _ in range(40)]
    statuses = Counter(answer["status"] for answer in race(tmp_path, tokens))
    assert statuses == {200: len(tokens)}
    spans = [(opened, closed) for opened, closed in Session.objects.values_list("opened", "closed")]
    assert len(spans) == len(tokens)
    assert open_sessions() == 2
    # Opened under one lock, so at each opening all that were open before are known.
    for opened, _closed in spans:
        assert sum(begin <= opened and (end is None or end > opened) for begin, end in spans) <= 2
