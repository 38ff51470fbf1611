"""Whose request it is, before the application has seen it (platform_site.serving.callers)."""

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
    """WSGI's environment, as far as it tells who calls."""
    return {"PATH_INFO": path, "REMOTE_ADDR": "192.0.2.1", **{f"HTTP_{name}": shown for name, shown in headers.items()}}


def identified(callers: Callers, environ: dict[str, Any]) -> str:
    """The caller after the look-up, which another request that shows the same does not need."""
    assert callers.caller_of(environ) == ("address 192.0.2.1", True)
    callers.identify(environ)
    name, is_new = callers.caller_of({**environ, "REMOTE_ADDR": "192.0.2.2"})
    assert not is_new
    return name


def test_all_tokens_of_a_user_are_one_caller(demo: None) -> None:
    callers, alice = Callers(), person("alice")
    tokens = [caller(alice).token for _ in range(2)]
    assert {identified(callers, request(X_API_KEY=token)) for token in tokens} == {alice.id}
    assert identified(callers, request(AUTHORIZATION=f"Bearer {caller(person('boris')).token}")) != alice.id


def test_a_service_is_one_caller_whichever_token_it_shows(demo: None) -> None:
    callers = Callers()
    shown = [request(AUTHORIZATION=f"Bearer {service_token(Client())}") for _ in range(2)]
    first, second = (identified(callers, environ) for environ in shown)
    assert first == second


def test_a_browser_is_known_by_its_session_on_every_page(browser: Browser) -> None:
    callers = Callers()
    browser.log_in("demo")
    key = browser.client.cookies[settings.SESSION_COOKIE_NAME].value
    user = identified(callers, request("/admin/", COOKIE=f"other=1; {settings.SESSION_COOKIE_NAME}={key}"))
    assert callers.caller_of(request("/api/", COOKIE=f"{settings.SESSION_COOKIE_NAME}={key}")) == (user, False)


def test_strangers_count_for_their_address(demo: None) -> None:
    callers = Callers()
    assert callers.caller_of(request()) == ("address 192.0.2.1", False)
    assert callers.caller_of(request("/admin/", COOKIE="csrftoken=1")) == ("address 192.0.2.1", False)
    for environ in (
        request(AUTHORIZATION="Bearer guess"),
        request(AUTHORIZATION="Basic guess", X_API_KEY="enrt_guess"),
        request("/admin/", COOKIE=f"{settings.SESSION_COOKIE_NAME}=guess"),
    ):
        callers.identify(environ)
        assert callers.caller_of(environ) == ("address 192.0.2.1", True)


def test_a_token_is_none_outside_of_the_api(demo: None) -> None:
    environ = request("/id/connect/userinfo", AUTHORIZATION=f"Bearer {caller(person('alice')).token}")
    assert Callers().caller_of(environ) == ("address 192.0.2.1", False)
