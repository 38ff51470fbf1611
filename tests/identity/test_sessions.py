"""Sessions and licences (spec 01, 1.8). Time is moved, never slept; the race runs in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from foundation import cache_versions
from foundation.fields import utc_now
from identity import licences, sessions
from identity.licences import LicenceTerms
from identity.models import Licence, ReservedSeat, Session, User
from tests.identity.flows import SERVICE, WEB, Browser, service_token, token_request

pytestmark = pytest.mark.urls("tests.identity.api")


class Clock:
    """Moves the time that sessions see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset = timedelta()
        monkeypatch.setattr(sessions, "utc_now", lambda: utc_now() + self.offset)

    def forward(self, **amount: float) -> None:
        self.offset += timedelta(**amount)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def licence(slots: int) -> None:
    Licence.objects.filter(pk=1).update(sessions=slots)


def call(http: Client, token: str) -> Any:
    return http.get("/api/whoami", headers={"Authorization": f"Bearer {token}"})


def revoke(http: Client, token: str) -> None:
    form = f"client_id={SERVICE}&client_secret=DEMO&token={token}"
    http.post("/id/connect/revocation", form, content_type="application/x-www-form-urlencoded")


def open_sessions() -> int:
    return Session.objects.filter(closed=None).count()


class TestOpening:
    def test_the_first_request_opens_not_the_token(self, http: Client) -> None:
        token = service_token(http)
        assert open_sessions() == 0
        first = call(http, token).json()["session"]
        assert open_sessions() == 1
        assert call(http, token).json()["session"] == first
        session = Session.objects.get()
        assert (session.is_service, session.user.login) == (True, "service")

    def test_each_token_family_of_a_service_is_a_session(self, http: Client) -> None:
        call(http, service_token(http))
        call(http, service_token(http))
        assert open_sessions() == 2

    def test_refreshing_keeps_the_session(self, browser: Browser) -> None:
        tokens = browser.tokens(scope="openid read offline_access")
        first = call(browser.client, tokens["access_token"]).json()["session"]
        fresh = token_request(
            browser.client,
            grant_type="refresh_token",
            client_id=WEB,
            client_secret="DEMO",
            refresh_token=tokens["refresh_token"],
        ).json()["access_token"]
        assert call(browser.client, fresh).json()["session"] == first
        assert open_sessions() == 1


class TestNoSlot:
    def test_the_answer_is_503_and_nothing_was_written(self, http: Client) -> None:
        licence(1)
        call(http, service_token(http))
        response = call(http, service_token(http))
        assert response.status_code == 503
        assert 1 <= int(response.headers["Retry-After"]) <= 1200
        assert response.headers["Content-Type"].startswith("application/json")
        assert response.headers["Cache-Control"] == "no-store"
        error = response.json()["error"]
        assert (error["code"], error["type"]) == (8, "NoLicence")
        assert error["parameters"] == [response.headers["Retry-After"]]
        assert Session.objects.count() == 1

    def test_retry_after_is_when_the_soonest_slot_can_free(self, http: Client, clock: Clock) -> None:
        licence(2)
        first = service_token(http)
        call(http, first)
        clock.forward(minutes=5)
        call(http, service_token(http))
        assert 890 <= int(call(http, service_token(http)).headers["Retry-After"]) <= 900

    def test_no_licence_row_means_the_configured_size(self, http: Client, settings: Any) -> None:
        Licence.objects.all().delete()
        settings.LICENSE_SESSIONS = 1
        assert call(http, service_token(http)).status_code == 200
        assert call(http, service_token(http)).status_code == 503


class TestClosing:
    def test_after_20_minutes_without_a_request(self, http: Client, clock: Clock) -> None:
        licence(1)
        token = service_token(http)
        call(http, token)
        clock.forward(minutes=19)
        assert call(http, token).status_code == 200
        clock.forward(minutes=19)
        assert call(http, service_token(http)).status_code == 503
        clock.forward(minutes=2)
        assert call(http, service_token(http)).status_code == 200  # the next caller sweeps; no worker runs here
        assert open_sessions() == 1

    def test_a_service_session_ends_after_an_hour(self, http: Client, clock: Clock) -> None:
        token = service_token(http)
        first = call(http, token).json()["session"]
        for _ in range(5):
            clock.forward(minutes=11)
            assert call(http, token).json()["session"] == first
        clock.forward(minutes=6)
        assert call(http, token).json()["session"] != first

    def test_a_persons_session_has_no_absolute_end(self, browser: Browser, clock: Clock) -> None:
        token = browser.tokens()["access_token"]
        first = call(browser.client, token).json()["session"]
        for _ in range(8):
            clock.forward(minutes=15)
            assert call(browser.client, token).json()["session"] == first

    def test_revoking_frees_the_slot_at_once(self, http: Client) -> None:
        licence(1)
        token = service_token(http)
        call(http, token)
        revoke(http, token)
        assert call(http, service_token(http)).status_code == 200

    def test_signing_out_frees_the_slot_at_once(self, browser: Browser) -> None:
        licence(1)
        tokens = browser.tokens()
        call(browser.client, tokens["access_token"])
        assert call(Client(), service_token(Client())).status_code == 503
        browser.client.get("/id/connect/endsession", {"id_token_hint": tokens["id_token"]})
        assert open_sessions() == 0
        assert call(Client(), service_token(Client())).status_code == 200

    def test_signing_out_by_hint_alone_closes_that_session(self, browser: Browser) -> None:
        tokens = browser.tokens()
        call(browser.client, tokens["access_token"])
        Client().get("/id/connect/endsession", {"id_token_hint": tokens["id_token"]})
        assert open_sessions() == 0

    def test_a_valid_token_reopens_when_a_slot_is_free(self, http: Client, clock: Clock) -> None:
        token = service_token(http)
        first = call(http, token).json()["session"]
        sessions.session_close_by_id(first)
        second = call(http, token).json()["session"]
        assert second != first
        licence(1)
        sessions.session_close_by_id(second)
        call(http, service_token(http))
        assert call(http, token).status_code == 503

    def test_the_worker_sweeps(self, http: Client, clock: Clock) -> None:
        from identity.tasks import sweep

        call(http, service_token(http))
        assert sweep().startswith("0 sessions")
        clock.forward(minutes=21)
        assert sweep().startswith("1 sessions")
        session = Session.objects.get()
        assert (session.closed, session.close_reason) == (session.expires, "expired")

    def test_the_sweep_is_on_the_schedule(self, http: Client) -> None:
        from django_q.models import Schedule

        assert Schedule.objects.filter(func="identity.tasks.sweep", minutes=1).count() == 1


class TestLastActivity:
    def test_it_is_written_at_most_every_30_seconds(
        self, http: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = service_token(http)
        call(http, token)
        call(http, token)
        clock.forward(seconds=29)
        with CaptureQueriesContext(connection) as queries:
            call(http, token)
        assert len(queries) == 0
        clock.forward(seconds=2)
        call(http, token)
        session = Session.objects.get()
        assert 30 <= (session.last_activity - session.opened).total_seconds() <= 33


class TestReservedSeats:
    def test_others_leave_them_free(self, browser: Browser) -> None:
        licence(2)
        ReservedSeat.objects.create(user=User.objects.get(login="demo"))
        other = Client()
        assert call(other, service_token(other)).status_code == 200
        assert call(other, service_token(other)).status_code == 503
        assert call(browser.client, browser.tokens()["access_token"]).status_code == 200

    @pytest.mark.parametrize(
        "slots, seats, opened, user, admitted",
        [
            (3, {}, {"a": 2}, "b", True),
            (3, {}, {"a": 3}, "b", False),
            (3, {"b": 1}, {"a": 2}, "a", False),
            (3, {"b": 1}, {"a": 2}, "b", True),
            (3, {"b": 1}, {"a": 1, "b": 1}, "b", True),
            (3, {"b": 1}, {"a": 1, "b": 2}, "b", False),
            (3, {"b": 1}, {"b": 1}, "a", True),
            (1, {"b": 2}, {}, "a", False),
            (1, {"b": 2}, {"b": 1}, "b", False),
            (0, {}, {}, "a", False),
        ],
    )
    def test_the_rule(
        self, slots: int, seats: dict[str, int], opened: dict[str, int], user: str, admitted: bool
    ) -> None:
        assert LicenceTerms(slots, seats=seats).admits(user, opened) is admitted


def test_a_feature_that_is_not_licensed_is_refused(demo: None) -> None:
    from foundation import errors

    licences.require_feature("AdvancedBpm")
    Licence.objects.update(features=[])
    cache_versions.bump("licence")
    with pytest.raises(errors.Forbidden) as refused:
        licences.require_feature("AdvancedBpm")
    assert refused.value.code is errors.FEATURE_NOT_LICENSED


PROCESSES = 4
SLOTS = 7
REQUESTS_EACH = 50


def oversold_once(tmp_path: Path) -> None:
    """PROCESSES × REQUESTS_EACH first requests at once for SLOTS slots."""
    from identity.demo import seed_identity

    seed_identity()
    licence(SLOTS)
    Session.objects.all().delete()
    cache_versions.expire()
    http = Client()
    tokens = [service_token(http) for _ in range(PROCESSES * REQUESTS_EACH)]
    answers = race(tmp_path, tokens)
    statuses = Counter(answer["status"] for answer in answers)
    assert statuses == {200: SLOTS, 503: len(tokens) - SLOTS}
    assert open_sessions() == SLOTS
    assert Session.objects.count() == SLOTS
    for answer in answers:
        if answer["status"] == 503:
            assert answer["body"]["error"]["code"] == 8
            assert 1 <= int(answer["retry"]) <= 1200
            assert answer["cache"] == "no-store"
            assert answer["type"].startswith("application/json")


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_real_processes_never_oversell(tmp_path: Path, transactional_db: None) -> None:
    oversold_once(tmp_path)


@pytest.mark.fuzz
@pytest.mark.process
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("repetition", range(20))
def test_real_processes_never_oversell_in_many_races(tmp_path: Path, transactional_db: None, repetition: int) -> None:
    oversold_once(tmp_path)


def race(tmp_path: Path, tokens: list[str]) -> list[dict[str, Any]]:
    """All processes start at one moment, each with its share of the tokens; their answers."""
    from django.conf import settings

    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.identity.worker_settings",
        "DATA_DIR": str(settings.DATA_DIR),
        "TEST_DATABASE_NAME": str(settings.DATABASES["default"]["NAME"]),
        "SECRET_KEY": settings.SECRET_KEY,
        "LOG_LEVEL": "CRITICAL",
    }
    start_at = time.time() + 6
    running = []
    for number in range(PROCESSES):
        share = tmp_path / f"tokens-{number}"
        share.write_text("\n".join(tokens[number::PROCESSES]))
        command = [sys.executable, "-m", "tests.identity.worker", str(share), str(start_at)]
        running.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    answers: list[dict[str, Any]] = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers += [json.loads(line) for line in out.splitlines()]
    return answers
