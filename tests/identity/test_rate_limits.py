"""Rate limits (spec 01, 1.9)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import Client

from foundation import cache_versions
from identity import counters as counters_module
from identity.counters import FileCounters, RedisCounters
from identity.models import RateLimits, TrustedApplication
from tests.identity.flows import SERVICE, Browser, fields_of, service_token, token_request
from tests.support.platform import free_port
from tests.support.redis_server import redis_of_its_own

pytestmark = pytest.mark.urls("tests.identity.api")


def limit(**values: int) -> None:
    RateLimits.objects.filter(pk=1).update(**values)
    cache_versions.bump("limits")


def call(http: Client, token: str) -> Any:
    return http.get("/api/whoami", headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def token(http: Client) -> str:
    return service_token(http)


def test_an_application_over_its_limit_gets_429(http: Client, token: str) -> None:
    TrustedApplication.objects.filter(application_uri=SERVICE).update(rate_limit_per_minute=3)
    assert [call(http, token).status_code for _ in range(4)] == [200, 200, 200, 429]
    response = call(http, token)
    error = response.json()["error"]
    assert (error["code"], error["type"]) == (120, "RateLimited")
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert response.headers["RateLimit-Limit"] == "3"
    assert response.headers["RateLimit-Remaining"] == "0"
    assert response.headers["RateLimit-Reset"] == response.headers["Retry-After"]


def test_the_instance_has_a_default_that_changes_live(http: Client, token: str) -> None:
    assert call(http, token).status_code == 200
    limit(application_per_minute=1)
    assert [call(http, token).status_code for _ in range(2)] == [200, 429]
    limit(application_per_minute=0)
    assert call(http, token).status_code == 200


def test_users_of_one_application_are_counted_apart(browser: Browser) -> None:
    other = Browser(Client(enforce_csrf_checks=True))
    mine, theirs = browser.tokens()["access_token"], other.tokens("admin")["access_token"]
    limit(user_per_minute=1)
    assert [call(browser.client, mine).status_code for _ in range(2)] == [200, 429]
    assert call(browser.client, theirs).status_code == 200


def test_guessing_clients_are_stopped(http: Client) -> None:
    limit(token_failures_per_minute=2)
    wrong = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": "x"}
    assert [token_request(http, **wrong).status_code for _ in range(3)] == [401, 401, 429]


def test_token_requests_have_their_own_limit(http: Client) -> None:
    limit(token_per_minute=1)
    right = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": "DEMO"}
    # Nobody without the secret uses it up.
    assert [token_request(http, **{**right, "client_secret": "x"}).status_code for _ in range(3)] == [401] * 3
    assert [token_request(http, **right).status_code for _ in range(2)] == [200, 429]


def test_guessing_logins_are_stopped_and_the_right_password_too(browser: Browser) -> None:
    limit(login_failures_per_minute=2)
    assert [browser.log_in("demo", "wrong").status_code for _ in range(3)] == [200, 200, 429]
    response = browser.log_in("demo", "demo")
    assert response.status_code == 429
    assert "Retry-After" in response.headers
    assert browser.log_in("DEMO", "demo").status_code == 429
    assert browser.log_in("admin", "admin").status_code == 302


def test_other_spellings_of_a_login_are_no_further_tries(browser: Browser) -> None:
    """To PostgreSQL the small letter of U+0130 is i, and that of the Kelvin sign k."""
    limit(login_failures_per_minute=2)
    spellings = ("ADM\u0130N", "\uff41dmin", "admin")
    assert [browser.log_in(login, "wrong").status_code for login in spellings] == [200, 200, 429]


def test_an_address_that_tries_many_logins_is_slowed_down(browser: Browser) -> None:
    """Beyond the limit each login has one try in five seconds; beyond ten times the limit the whole address has."""
    limit(login_address_per_minute=2)
    assert [browser.log_in(login, "x").status_code for login in ("u0", "u1", "u2", "u2", "u3")] == [
        200, 200, 200, 429, 200,
    ]  # fmt: skip
    statuses = [browser.log_in(f"v{n}", "x").status_code for n in range(20)]
    assert statuses == [200] * 17 + [429] * 3


def test_whoever_asks_for_links_too_often_is_told_when_to_ask_again(browser: Browser) -> None:
    def answer(page: str, **fields: str) -> Any:
        return browser.client.post(page, {**fields_of(browser.client.get(page).content.decode()), **fields})

    browser.log_in("demo")
    for page, tries, fields in (
        ("/id/account/reset", 5, {"login": "demo"}),
        ("/id/account/email", 3, {"email": "new@example.com", "old_password": "demo"}),
    ):
        assert [answer(page, **fields).status_code for _ in range(tries)] == [200] * tries
        refused = answer(page, **fields)
        assert refused.status_code == 429
        assert f"Try again in {refused.headers['Retry-After']} seconds" in refused.content.decode()


class TestFileCounters:
    def test_names_and_windows_are_apart(self, tmp_path: Path) -> None:
        counters = FileCounters(tmp_path / "counters")
        assert [counters.add("a", 1), counters.add("a", 1), counters.add("b", 1)] == [1, 2, 1]
        assert counters.add("a", 1, 0) == 2
        assert counters.add("a", 2) == 1

    def test_no_process_clears_what_another_counts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "counters"
        program = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        others: list[int] = []
        pwrite = os.pwrite

        def seen(*arguments: Any) -> int:
            others.append(
                subprocess.run([sys.executable, "-c", program, str(path)], stderr=subprocess.DEVNULL).returncode
            )
            return pwrite(*arguments)

        monkeypatch.setattr(os, "pwrite", seen)
        FileCounters(path)
        assert others == [1], "another process could count while the file is cleared"

    def test_thousands_of_names_fit(self, tmp_path: Path) -> None:
        counters = FileCounters(tmp_path / "counters")
        assert {counters.add(f"name-{number}", 1) for number in range(5000)} == {1}
        assert counters.add("name-17", 1) == 2

    def test_processes_count_together(self, tmp_path: Path) -> None:
        path = tmp_path / "counters"
        program = (
            "import sys; from pathlib import Path; from identity.counters import FileCounters;"
            "c = FileCounters(Path(sys.argv[1])); [c.add('x', 1) for _ in range(2000)]"
        )
        running = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(4)]
        assert [process.wait(60) for process in running] == [0] * 4
        assert FileCounters(path).add("x", 1, 0) == 8000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """REDIS_URL of a server of these tests."""
    with redis_of_its_own() as url:
        yield url


@pytest.mark.xdist_group("tests/identity/test_rate_limits.py::TestRedisCounters")
class TestRedisCounters:
    """For several nodes."""

    def test_processes_count_together(self, url: str) -> None:
        name = "together"
        program = (
            "import sys; from identity.counters import RedisCounters;"
            "c = RedisCounters(sys.argv[1]); [c.add(sys.argv[2], 1) for _ in range(500)]"
        )
        running = [subprocess.Popen([sys.executable, "-c", program, url, name]) for _ in range(4)]
        assert [process.wait(60) for process in running] == [0] * 4
        counters = RedisCounters(url)
        assert counters.add(name, 1, 0) == 2000
        assert counters.add(name, 2) == 1

    def test_counts_go_away_by_themselves(self, url: str) -> None:
        name = "short"
        RedisCounters(url).add(name, 1)
        assert 60 < redis.Redis.from_url(url).ttl(f"count:{name}:1") <= 120

    def test_with_a_redis_it_is_what_counts(self, url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.REDIS_URL = url
        monkeypatch.setattr(counters_module.counters, "_made", None)
        assert isinstance(counters_module.counters(), RedisCounters)


@pytest.mark.urls("platform_site.urls")
def test_without_its_redis_an_instance_asks_callers_to_come_back(
    http: Client, token: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    monkeypatch.setattr(counters_module.counters, "_made", None)
    http.raise_request_exception = False
    form = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": "DEMO"}
    refused = token_request(http, **form)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert refused.json()["error"] == "temporarily_unavailable"
    first = http.get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
    assert (first.status_code, first.headers["Retry-After"]) == (503, "5")
    assert first.json()["error"]["type"] == "RedisUnreachable"
    page = Browser(http).log_in("demo")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
