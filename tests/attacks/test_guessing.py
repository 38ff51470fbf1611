"""Nobody guesses secrets at any speed, and nobody who shares an address with a guesser is locked out (spec 01, 1.9).

Who: a guesser of passwords, client secrets or tokens, and who wants to lock others out. What: to try many, at one
endpoint or several, from one address or many; to use up the tries of a login or of a shared address. What prevents it:
identity.rate_limits counts failures per login and address, per client and address, and slows down instead of locking;
browsers with an earlier login have counters of their own (identity.known_browsers).
"""

from __future__ import annotations

import secrets
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from identity.models import User
from tests.identity.flows import DUAL, SERVICE, WEB, Browser, fields_of, service_token, token_request
from tests.support.api import Api

pytestmark = pytest.mark.once

FORM = "application/x-www-form-urlencoded"
#: More than the limits of a minute: 30 wrong client secrets, 10 wrong passwords of a login, 60 of an address.
MANY = 70


class Clock:
    """The time that limits see; it stands still unless it is moved, so that no minute ends within a test."""

    def __init__(self) -> None:
        self.now = 1_800_000_020.0

    def time(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("identity.rate_limits.time", SimpleNamespace(time=clock.time))
    return clock


def client_request(path: str, client_id: str = SERVICE, secret: str = "wrong", **form: str) -> Any:
    body = urlencode({"client_id": client_id, "client_secret": secret, "token": "x", **form})
    return Client().post(f"/id/connect/{path}", body, content_type=FORM)


ENDPOINTS = ("token", "introspect", "revocation")


@pytest.mark.parametrize("path", ENDPOINTS)
def test_guessing_a_client_secret_is_stopped_at_every_endpoint(demo: None, path: str) -> None:
    answers = [client_request(path, grant_type="client_credentials") for _ in range(40)]
    assert [answer.status_code for answer in answers] == [401] * 30 + [429] * 10
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_tries_at_one_endpoint_count_at_the_others(demo: None) -> None:
    for number in range(30):
        client_request(ENDPOINTS[number % 3], grant_type="client_credentials")
    assert {client_request(path, grant_type="client_credentials").status_code for path in ENDPOINTS} == {429}


def test_reference_tokens_are_not_tried_by_revocation_or_introspection_for_free(demo: None) -> None:
    for _ in range(30):
        client_request("revocation", token="enrt_" + "0" * 64)
    assert client_request("revocation", token="enrt_" + "0" * 64).status_code == 429


def test_the_guesser_of_one_client_locks_no_other_client_of_the_address_out(http: Client) -> None:
    for _ in range(MANY):
        client_request("token", grant_type="client_credentials")
        client_request("token", "nobody", grant_type="client_credentials")
    assert service_token(http, f"{DUAL}-service")
    assert client_request("introspect", WEB, "DEMO").status_code == 200


@pytest.mark.parametrize("header", ["Authorization", "X-Api-Key", "Api-Key"])
@pytest.mark.parametrize("path", ["/api/domain/odata/", "/id/connect/userinfo", "/profile/me"])
def test_reference_tokens_cannot_be_tried_at_any_speed(demo: None, header: str, path: str) -> None:
    def attempt() -> Any:
        token = f"enrt_{secrets.token_hex(32)}"
        return Client().get(path, headers={header: f"Bearer {token}" if header == "Authorization" else token})

    answers = [attempt() for _ in range(35)]
    assert [answer.status_code for answer in answers] == [401] * 30 + [429] * 5
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_who_guesses_reference_tokens_locks_nobody_else_of_the_address_out(administrator: Api) -> None:
    for _ in range(MANY):
        Client().get("/api/domain/odata/", headers={"X-Api-Key": f"enrt_{secrets.token_hex(32)}"})
    assert administrator.get("").status_code == 200
    assert service_token(Client())


def test_guessing_one_password_slows_down_and_is_over_within_seconds(browser: Browser, clock: Clock) -> None:
    answers = [browser.log_in("demo", "wrong") for _ in range(15)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 5
    wait = int(answers[-1].headers["Retry-After"])
    assert 1 <= wait <= 5
    clock.now += wait
    assert browser.log_in("demo", "demo").status_code == 302


def test_who_guesses_many_logins_locks_nobody_else_of_the_address_out(browser: Browser) -> None:
    for number in range(MANY):
        Browser(Client(enforce_csrf_checks=True)).log_in(f"guess-{number}", "wrong")
    assert browser.log_in("demo", "demo").status_code == 302


def test_a_guesser_elsewhere_does_not_lock_the_owner_of_a_login_out(browser: Browser) -> None:
    guesser = Browser(Client(enforce_csrf_checks=True, REMOTE_ADDR="198.51.100.7"))
    assert [guesser.log_in("demo", "wrong").status_code for _ in range(20)][-1] == 429
    assert browser.log_in("demo", "demo").status_code == 302


def test_a_network_of_ipv6_is_one_address(browser: Browser) -> None:
    def guess(number: int, network: str = "2001:db8:0:1") -> int:
        client = Client(REMOTE_ADDR=f"{network}::{number:x}")
        token = f"enrt_{secrets.token_hex(32)}"
        return client.get("/api/domain/odata/", headers={"X-Api-Key": token}).status_code

    assert [guess(number) for number in range(1, 36)] == [401] * 30 + [429] * 5
    assert guess(1, "2001:db8:0:2") == 401
    guessers = [Browser(Client(enforce_csrf_checks=True, REMOTE_ADDR=f"2001:db8::{n:x}")) for n in range(1, 13)]
    assert [each.log_in("demo", "wrong").status_code for each in guessers] == [200] * 10 + [429] * 2
    assert browser.log_in("demo", "demo").status_code == 302


def test_guessing_one_password_from_many_addresses_slows_down(browser: Browser, clock: Clock) -> None:
    assert browser.log_in("demo", "demo").status_code == 302
    guesses = [
        Browser(Client(enforce_csrf_checks=True, REMOTE_ADDR=f"198.51.100.{number}")).log_in("demo", "wrong")
        for number in range(110)
    ]
    statuses = [answer.status_code for answer in guesses]
    assert statuses == [200] * 101 + [429] * 9  # the first beyond the limit is the one try in five seconds
    clock.now += int(guesses[-1].headers["Retry-After"])
    elsewhere = Browser(Client(enforce_csrf_checks=True, REMOTE_ADDR="203.0.113.1"))
    assert elsewhere.log_in("demo", "demo").status_code == 302
    # The owner's own browser is not slowed down meanwhile.
    browser.client.post("/id/account/logout", {"csrfmiddlewaretoken": browser.client.cookies["csrftoken"].value})
    assert browser.log_in("demo", "demo").status_code == 302


def test_a_browser_that_logged_in_before_is_not_slowed_by_guessers_beside_it(browser: Browser) -> None:
    assert browser.log_in("demo", "demo").status_code == 302
    browser.client.post("/id/account/logout", {"csrfmiddlewaretoken": browser.client.cookies["csrftoken"].value})
    guesser = Browser(Client(enforce_csrf_checks=True))
    assert [guesser.log_in("demo", "wrong").status_code for _ in range(12)][-1] == 429
    assert browser.log_in("demo", "demo").status_code == 302
    # The same cookie is no way to guess without a limit, and none to another login.
    assert [browser.log_in("demo", "wrong").status_code for _ in range(12)][-1] == 429


def test_a_stolen_sign_in_does_not_tell_the_password(browser: Browser) -> None:
    """The page that changes a password asks for the present one, and so could be asked for it."""
    browser.log_in("demo", "demo")

    def attempt(password: str) -> Any:
        page = browser.client.get("/id/account/password")
        new = "a-new-Password-9317"
        form = {"old_password": password, "new_password": new, "repeated": new}
        return browser.client.post("/id/account/password", {**fields_of(page.content.decode()), **form})

    assert [attempt("wrong").status_code for _ in range(12)] == [200] * 10 + [429] * 2


def test_nor_by_the_field_for_a_new_password(browser: Browser) -> None:
    """The page refuses the present password as a new one, but only with the present password."""
    password = "a-long-Password-9317"
    user = User.objects.get(login="demo")
    user.set_password(password)
    user.save()
    browser.log_in("demo", password)
    page = browser.client.get("/id/account/password")
    form = {"old_password": "wrong", "new_password": password, "repeated": password}
    answer = browser.client.post("/id/account/password", {**fields_of(page.content.decode()), **form})
    assert "current password is wrong" in answer.content.decode()
    assert "has already" not in answer.content.decode()


def test_a_client_introspects_its_own_tokens_only(browser: Browser, http: Client) -> None:
    tokens = browser.tokens(scope="openid read offline_access")
    foreign = service_token(http)
    shown = [client_request("introspect", WEB, "DEMO", token=token).json() for token in
             (tokens["access_token"], tokens["refresh_token"], foreign)]  # fmt: skip
    assert [answer["active"] for answer in shown] == [True, True, False]
    assert shown[2] == {"active": False}
    assert client_request("introspect", SERVICE, "DEMO", token=tokens["access_token"]).json() == {"active": False}
    assert client_request("introspect", SERVICE, "DEMO", token=foreign).json()["active"]


def test_token_requests_with_the_right_secret_are_not_counted_as_guesses(http: Client) -> None:
    form = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": "DEMO"}
    assert {token_request(http, **form).status_code for _ in range(40)} == {200}
