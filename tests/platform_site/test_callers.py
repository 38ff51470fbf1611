"""The caller of a request, before the application runs (platform_site.serving.callers)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.test import Client

from platform_site.serving.callers import Callers
from tests.domain.security.conftest import caller, person
from tests.identity.conftest import browser, demo, fresh_process
from tests.identity.flows import Browser, service_token
from tests.support.api import ROOT

__all__ = ["browser", "demo", "fresh_process"]


def request(path: str = ROOT, **headers: str) -> dict[str, Any]:
    """The part of WSGI's environment that identifies the caller."""
    return {"PATH_INFO": path, "REMOTE_ADDR": "192.0.2.1", **{f"HTTP_{name}": shown for name, shown in headers.items()}}


def found(callers: Callers, environ: dict[str, Any]) -> str:
    """The caller after one look-up, which another request with the same credential does not need."""
    assert callers.name(environ) == ("address 192.0.2.1", True)
    name = callers.find(environ)
    assert callers.name({**environ, "REMOTE_ADDR": "192.0.2.2"}) == (name, False)
    return name


def test_all_tokens_of_a_user_are_one_caller(demo: None) -> None:
    callers, alice = Callers(), person("alice")
    tokens = [caller(alice).token for _ in range(2)]
    assert {found(callers, request(X_API_KEY=token)) for token in tokens} == {alice.id}
    assert found(callers, request(AUTHORIZATION=f"Bearer {caller(person('boris')).token}")) != alice.id


def test_all_tokens_of_a_service_are_one_caller(demo: None) -> None:
    callers = Callers()
    requests = [request(AUTHORIZATION=f"Bearer {service_token(Client())}") for _ in range(2)]
    first, second = (found(callers, environ) for environ in requests)
    assert first == second


def test_a_browser_is_known_by_its_session(browser: Browser) -> None:
    callers = Callers()
    browser.log_in("demo")
    key = browser.client.cookies[settings.SESSION_COOKIE_NAME].value
    user = found(callers, request("/admin/", COOKIE=f"other=1; {settings.SESSION_COOKIE_NAME}={key}"))
    assert callers.name(request("/profile/", COOKIE=f"{settings.SESSION_COOKIE_NAME}={key}")) == (user, False)


def test_strangers_belong_to_their_address(demo: None) -> None:
    callers = Callers()
    assert callers.name(request()) == ("address 192.0.2.1", False)
    assert callers.name(request("/admin/", COOKIE="csrftoken=1")) == ("address 192.0.2.1", False)
    for environ in (
        request(AUTHORIZATION="Bearer guess"),
        request(AUTHORIZATION="Basic guess", X_API_KEY="enrt_guess"),
        request("/admin/", COOKIE=f"{settings.SESSION_COOKIE_NAME}=guess"),
    ):
        assert callers.find(environ) == "address 192.0.2.1"
        assert callers.name(environ)[0] == "address 192.0.2.1"


def test_a_token_identifies_the_caller_only_at_the_domain_api(demo: None) -> None:
    environ = request("/id/connect/userinfo", AUTHORIZATION=f"Bearer {caller(person('alice')).token}")
    assert Callers().name(environ) == ("address 192.0.2.1", False)


def test_all_addresses_of_a_network_of_ipv6_are_one_stranger() -> None:
    callers = Callers()
    names = {callers.name({**request(), "REMOTE_ADDR": f"2001:db8::{number:x}"})[0] for number in range(1, 50)}
    assert len(names) == 1
    assert callers.name({**request(), "REMOTE_ADDR": "2001:db8:0:1::1"})[0] not in names


def test_a_token_is_looked_up_once_however_it_is_written(demo: None) -> None:
    """Else each spelling would have its first request in the queue of strangers, and a place in memory."""
    callers, token = Callers(), caller(person("alice")).token
    alice = found(callers, request(AUTHORIZATION=f"Bearer {token}"))
    for spelling in (f"bearer {token}", f"BEARER   {token} "):
        assert callers.name(request(AUTHORIZATION=spelling)) == (alice, False)
    assert callers.name(request(X_API_KEY=token)) == callers.name(request(API_KEY=token)) == (alice, False)
    # Several at once are refused, so they belong to their sender.
    assert callers.name(request(AUTHORIZATION=f"Bearer {token}", X_API_KEY="1")) == ("address 192.0.2.1", False)
