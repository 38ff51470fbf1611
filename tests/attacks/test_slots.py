"""Licence slots stay first come, first served: no caller takes them all, or churns through them (spec 01, 1.8).

Who: a service that takes a new token for each request. What: to take every slot from others, or to open sessions at any
speed. What prevents it: MaxSessions of the application, at which it replaces its own sessions; a limit of sessions a
minute for a user of an application (identity.sessions).
"""

from __future__ import annotations

from typing import Any

from django.test import Client

from foundation import cache_versions
from identity.models import Licence
from tests.identity.flows import DUAL, SERVICE, Browser, service_token
from tests.support.api import Api

APPLICATIONS = "Systems_Security_TrustedApplications"


def bounded(administrator: Api, sessions: int | None, application: str = f"{DUAL}") -> None:
    found = administrator.read(f"{APPLICATIONS}?$filter=ApplicationUri%20eq%20'{application}'")["value"][0]
    answer = administrator.patch(found["@odata.id"], {"MaxSessions": sessions})
    assert answer.status_code == 204, answer.content
    cache_versions.expire()


def call(token: str) -> Any:
    return Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})


def test_a_service_that_forgets_its_tokens_leaves_slots_to_others(administrator: Api, browser: Browser) -> None:
    Licence.objects.update(sessions=4)
    cache_versions.expire()
    bounded(administrator, 2)
    statuses = [call(service_token(Client(), f"{DUAL}-service")).status_code for _ in range(10)]
    assert statuses == [200] * 10
    assert call(browser.tokens()["access_token"]).status_code == 200


def test_without_a_slot_a_batch_says_so_as_a_whole(administrator: Api) -> None:
    administrator.read("")
    Licence.objects.update(sessions=1)
    cache_versions.expire()
    outside = Api(Client(), service_token(Client()))
    answer = outside.post("$batch", {"requests": [{"id": "1", "method": "GET", "url": "Systems_Security_Users"}]})
    assert answer.status_code == 503
    assert answer.headers["Cache-Control"] == "no-store"
    assert 1 <= int(answer.headers["Retry-After"]) <= 1200
    assert answer.json()["error"]["code"] == 8


def test_nobody_opens_sessions_at_any_speed(administrator: Api) -> None:
    """At MaxSessions each new token would close a session and write three rows."""
    bounded(administrator, 1, SERVICE)
    answers = [call(service_token(Client())) for _ in range(65)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:55] == [200] * 55
    assert statuses[-5:] == [429] * 5
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    # Who is connected stays so, and others open theirs.
    assert call(service_token(Client(), f"{DUAL}-service")).status_code == 200
