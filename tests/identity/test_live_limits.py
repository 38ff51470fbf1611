"""Rate limits of a running instance with two web processes (spec 01, 1.9): one count, and limits that change live."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
import requests

from tests.identity.flows import fields_of
from tests.support.platform import LivePlatform
from tests.support.processes import connection_to_each
from tests.support.waiting import eventually

pytestmark = pytest.mark.process
LIMIT = 10


@contextmanager
def limited(platform: LivePlatform, per_minute: int) -> Iterator[None]:
    """The instance's limit for each application, edited in the admin, as long as the block lasts."""
    browser = requests.Session()
    login, url = f"{platform.base_url}/id/account/login", f"{platform.base_url}/admin/identity/ratelimits/1/change/"
    form = {**fields_of(browser.get(login, timeout=60).text), "login": "admin", "password": "admin"}
    browser.post(login, form, headers={"Referer": login}, timeout=60).raise_for_status()

    def save(limit: int) -> None:
        hidden = fields_of(browser.get(url, timeout=60).text)
        others = {"user_per_minute": 0, "token_per_minute": 0, "token_failures_per_minute": 30}
        logins = {"sessions_per_minute": 60, "login_failures_per_minute": 10, "login_address_per_minute": 60}
        values: dict[str, Any] = {**hidden, **others, **logins, "application_per_minute": limit}
        saved = browser.post(url, values, headers={"Referer": url}, allow_redirects=False, timeout=60)
        assert saved.status_code == 302, saved.text

    save(per_minute)
    try:
        yield
    finally:
        save(0)


def token_of(platform: LivePlatform, client_id: str) -> str:
    """A service token."""
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", form, timeout=60)
    return str(answer.json()["access_token"])


def asked(connection: HTTPConnection, token: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by lower-case names and body of a request that this connection's process answers."""
    connection.request("GET", "/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def test_two_processes_count_together_and_learn_of_a_new_limit(live_platform: LivePlatform) -> None:
    connections = list(connection_to_each(live_platform.base_url, live_platform.process.pid).values())
    assert len(connections) == 2
    busy, fresh = (token_of(live_platform, name) for name in ("ServiceDemoClient", "DualDemoClient-service"))
    assert [asked(connection, busy)[0] for connection in connections] == [200, 200]
    with limited(live_platform, LIMIT):
        for connection in connections:
            assert eventually(lambda at=connection: asked(at, busy)[0] == 429, 60)  # type: ignore[misc]
        check_refusal(*asked(connections[0], busy))
        statuses = of_one_minute(connections, fresh)
        assert statuses == [200] * LIMIT + [429] * LIMIT
    for connection in connections:
        assert eventually(lambda at=connection: asked(at, busy)[0] == 200, 60)  # type: ignore[misc]
        connection.close()


def check_refusal(status: int, headers: dict[str, str], body: bytes) -> None:
    """1.9: the error body, Retry-After and RateLimit-*."""
    error = json.loads(body)["error"]
    assert (status, error["code"], error["type"]) == (429, 120, "RateLimited")
    assert error["parameters"] == [str(LIMIT), headers["retry-after"]]
    assert 1 <= int(headers["retry-after"]) <= 60
    assert headers["ratelimit-reset"] == headers["retry-after"]
    assert (headers["ratelimit-limit"], headers["ratelimit-remaining"]) == (str(LIMIT), "0")


def of_one_minute(connections: list[HTTPConnection], token: str) -> list[int]:
    """Statuses of 2 × LIMIT requests in turns of the processes, all counted in the same minute."""
    while True:
        minute = time.time() // 60
        statuses = [asked(connections[number % 2], token)[0] for number in range(2 * LIMIT)]
        if time.time() // 60 == minute:
            return statuses
