"""What people do with second factors, by HTTP."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from html import unescape
from types import SimpleNamespace
from typing import Any

import pyotp
import pytest
from django.test import Client

from identity.factors import authenticator_app, recovery
from identity.models import Role, RoleUser, User
from tests.identity.flows import Browser, fields_of
from tests.support.authenticator import Authenticator, ceremony_of

Response = Any
SECOND = "/id/account/second-factor"
PASSKEY_LOGIN, ADD_PASSKEY, ADD_APP = "/id/account/passkey", "/id/account/factors/passkey", "/id/account/factors/app"


@pytest.fixture
def seconds_of_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thirty seconds of a code do not end within a test, neither for the phone nor for who checks it."""
    now = time.time()
    for module in ("pyotp.totp", __name__):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(time=lambda: now))


def person() -> Browser:
    """A browser at a host name where passkeys work."""
    return Browser(Client(enforce_csrf_checks=True, SERVER_NAME="localhost"))


def page_at(browser: Browser, path: str) -> str:
    """The text of a page, which must be there."""
    answer = browser.client.get(path)
    assert answer.status_code == 200, (path, answer.status_code, answer.headers.get("Location"))
    return str(answer.content.decode())


def form_at(browser: Browser, path: str) -> dict[str, str]:
    """The hidden fields of the page's forms without those of a passkey ceremony."""
    fields = fields_of(page_at(browser, path))
    return {name: value for name, value in fields.items() if name not in ("state", "credential")}


def register_passkey(browser: Browser, key: Authenticator, path: str = ADD_PASSKEY, **changes: Any) -> Response:
    """Register the key at the page."""
    page = page_at(browser, path)
    form = {**fields_of(page), "name": "My key", "credential": key.register(ceremony_of(page, "create"), **changes)}
    return browser.client.post(path, form)


def prove_passkey(browser: Browser, key: Authenticator, path: str = SECOND, **changes: Any) -> Response:
    """Use the key as second factor."""
    page = page_at(browser, path)
    form = fields_of(page.partition('data-passkey="get"')[2])
    form["credential"] = key.prove(ceremony_of(page), **changes)
    return browser.client.post(path.partition("?")[0], form)


def passkey_login(browser: Browser, key: Authenticator, next_: str = "", **changes: Any) -> Response:
    """Sign in by the key alone."""
    page = page_at(browser, f"/id/account/login?next={next_}")
    fields = fields_of(page.partition('data-passkey="get"')[2])
    return browser.client.post(PASSKEY_LOGIN, {**fields, "credential": key.prove(ceremony_of(page), **changes)})


@dataclass
class Phone:
    """An authenticator app. `step` moves its clock, in codes."""

    secret: str
    step: int = 0

    def code(self, step: int | None = None) -> str:
        totp = pyotp.TOTP(self.secret)
        return totp.generate_otp(totp.timecode(time.time()) + (self.step if step is None else step))


def set_up_app(browser: Browser, path: str = ADD_APP) -> tuple[Phone, Response]:
    """The phone, and the answer to its first code."""
    page = page_at(browser, path)
    secret = re.search(r'<code class="token">([A-Z2-7 ]+)</code>', page)
    assert secret is not None
    phone = Phone(secret[1].replace(" ", ""), step=-1)
    answer = browser.client.post(path.partition("?")[0], {**fields_of(page), "code": phone.code()})
    phone.step = 0
    return phone, answer


def prove(browser: Browser, path: str = SECOND, **proof: str) -> Response:
    """Give a code or a recovery code."""
    return browser.client.post(path.partition("?")[0], {**form_at(browser, path), **proof})


def codes_in(answer: Response) -> list[str]:
    """The recovery codes that a page shows."""
    return [unescape(found) for found in re.findall(r"<li><code>([a-z2-7-]+)</code></li>", answer.content.decode())]


def phone_of(login: str) -> Phone:
    """Give the user an app, without pages."""
    secret = authenticator_app.secret_make()
    phone = Phone(secret)
    assert authenticator_app.app_add(user(login), secret, phone.code(-1))
    return phone


def recovery_codes_of(login: str) -> list[str]:
    """Give the user recovery codes, without pages."""
    return recovery.codes_make(user(login))


def user(login: str) -> User:
    return User.objects.get(login=login)


def require(login: str, factor: str) -> Role:
    """Give the user a role that requires the factor."""
    role = Role.objects.create(name=f"Requires {factor}", required_factor=factor)
    RoleUser.objects.create(user=user(login), role=role)
    return role


def signed_in(browser: Browser) -> bool:
    """Whether the profile is open to the browser."""
    return bool(browser.client.get("/profile/").status_code == 200)
