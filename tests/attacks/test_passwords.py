"""Who knows an old password, or a token, has nothing after a new one; weak passwords are refused (spec 01, 1.6).

Who: a guesser, somebody who has stolen tokens, and somebody at an open browser. What: to guess a weak password, to go
on with stolen tokens after a new one, to take the account over by its e-mail address. What prevents it: Django's
validators of passwords, identity.passwords, and identity.email_change.
"""

from __future__ import annotations

import contextlib
from io import StringIO
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.core.management import CommandError, call_command
from django.test import Client

from foundation import cache_versions
from identity.email_change import email_link_make
from identity.models import ReferenceToken, Session, User
from identity.password_reset import password_link_make as reset_link
from tests.domain.security.conftest import caller, give_role
from tests.identity.flows import WEB, Browser, fields_of, token_request
from tests.identity.test_pages import open_link, worker
from tests.support.api import Api
from tests.support.tasks import Worker

__all__ = ["worker"]

NEW = "vast-Harbour-42"
PASSWORD, EMAIL = "/id/account/password", "/id/account/email"
#: Too short, a number, a common one, like the e-mail address, like the name.
WEAK = ("short-Pw-42", "123456789012345", "password1234", "demo.example.com", "Demobenutzer1")


def post(browser: Browser, address: str, **form: str) -> Any:
    page = browser.client.get(address).content.decode()
    return browser.client.post(address, {**fields_of(page), **form})


def change(browser: Browser, new: str = NEW, **form: str) -> Any:
    return post(browser, PASSWORD, old_password="demo", new_password=new, repeated=new, **form)


@pytest.fixture
def stolen(browser: Browser) -> dict[str, str]:
    """What an attacker took of the demo user: tokens of an application, and a personal token, each of which works."""
    tokens: dict[str, str] = browser.tokens(scope="openid read offline_access")
    give_role(User.objects.get(login="demo"), {"General.*": "r"})
    tokens["personal_token"] = caller(User.objects.get(login="demo"), scopes="read").token
    tokens["code"] = browser.code(scope="openid read")
    assert [status(tokens[name]) for name in ("access_token", "personal_token")] == [200, 200]
    return tokens


def status(token: str) -> int:
    cache_versions.expire()
    answer = Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
    return int(answer.status_code)


def refreshed(token: str) -> bool:
    form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": "DEMO", "refresh_token": token}
    return "access_token" in token_request(Client(), **form).json()


def assert_worthless(stolen: dict[str, str]) -> None:
    assert [status(stolen[name]) for name in ("access_token", "personal_token")] == [401, 401]
    assert not refreshed(stolen["refresh_token"])
    assert Browser(Client()).redeem(stolen["code"]).json()["error"] == "invalid_grant"
    assert not Session.objects.filter(user__login="demo", closed=None).exists()
    assert not ReferenceToken.objects.filter(user__login="demo", revoked=None).exists()


@pytest.mark.parametrize("weak", WEAK)
def test_weak_passwords_are_refused_wherever_one_is_chosen(browser: Browser, weak: str) -> None:
    browser.log_in("demo")
    assert change(browser, weak).status_code == 200
    visitor = Browser(Client())
    at, page = open_link(visitor, reset_link(User.objects.get(login="demo"), ""))
    answer = visitor.client.post(at, {**fields_of(page), "new_password": weak, "repeated": weak})
    assert answer.status_code == 200
    assert User.objects.get(login="demo").check_password("demo")


@pytest.mark.parametrize("weak", WEAK[:2])
def test_commands_refuse_weak_passwords(db: None, monkeypatch: pytest.MonkeyPatch, weak: str) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", weak)
    with pytest.raises(CommandError):
        call_command("createsuperuser", interactive=False, login="boss")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", NEW)
    call_command("createsuperuser", interactive=False, login="boss")
    assert User.objects.get(login="boss").check_password(NEW)
    for typed, good in ((weak, False), (NEW + "x", True)):
        monkeypatch.setattr("getpass.getpass", lambda prompt, typed=typed: typed)
        with contextlib.nullcontext() if good else pytest.raises(CommandError):
            call_command("changepassword", "boss", stdout=StringIO(), stderr=StringIO())
    assert User.objects.get(login="boss").check_password(NEW + "x")


def test_a_command_that_changes_a_password_tells_its_user(
    demo: None, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[EmailMessage]
) -> None:
    worker = Worker()
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
    call_command("changepassword", "demo", stdout=StringIO(), stderr=StringIO())
    worker.work()
    assert [message.to for message in mailoutbox] == [["demo@example.com"]]
    assert "The password of your account was changed." in mailoutbox[0].body


def test_the_command_ends_what_the_old_password_opened(
    browser: Browser, stolen: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
    call_command("changepassword", "demo", stdout=StringIO(), stderr=StringIO())
    assert_worthless(stolen)


def test_passwords_are_stored_as_argon2id(demo: None) -> None:
    assert User.objects.get(login="demo").password.startswith("argon2$argon2id$")


def test_changing_the_password_ends_what_the_old_one_opened(browser: Browser, stolen: dict[str, str]) -> None:
    assert 'name="ends_access"' in browser.client.get(PASSWORD).content.decode()
    assert change(browser, ends_access="on").status_code == 302
    assert_worthless(stolen)
    assert browser.client.get("/profile/").status_code == 200


def test_the_person_may_leave_applications_signed_in(browser: Browser, stolen: dict[str, str]) -> None:
    assert change(browser).status_code == 302
    assert [status(stolen[name]) for name in ("access_token", "personal_token")] == [200, 200]


def test_a_reset_ends_what_the_old_password_opened(browser: Browser, stolen: dict[str, str]) -> None:
    visitor = Browser(Client())
    at, page = open_link(visitor, reset_link(User.objects.get(login="demo"), ""))
    answer = visitor.client.post(at, {**fields_of(page), "new_password": NEW, "repeated": NEW})
    assert answer.status_code == 302
    assert_worthless(stolen)
    assert browser.client.get("/profile/").status_code == 302


def test_nobody_fills_a_mailbox_with_links(browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]) -> None:
    for number in range(8):
        visitor = Browser(Client(REMOTE_ADDR=f"198.51.100.{number}"))
        assert b"message is on its way" in post(visitor, "/id/account/reset", login="demo").content
    worker.work()
    assert len(mailoutbox) == 5


# --- one's own e-mail address -------------------------------------------------------------------------------------


def test_a_new_address_is_proved_and_the_old_one_told(
    browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]
) -> None:
    browser.log_in("demo")
    assert b"demo.new@example.com" in post(browser, EMAIL, email="demo.new@example.com", old_password="demo").content
    worker.work()
    assert [message.to for message in mailoutbox] == [["demo.new@example.com"]]
    assert User.objects.get(login="demo").email == "demo@example.com"
    link = next(line for line in str(mailoutbox[0].body).splitlines() if line.startswith("http://testserver/"))
    at, page = open_link(browser, link.removeprefix("http://testserver"))
    assert User.objects.get(login="demo").email == "demo@example.com"  # mail programs follow links
    assert browser.client.post(at, fields_of(page)).status_code == 302
    assert User.objects.get(login="demo").email == "demo.new@example.com"
    worker.work()
    assert mailoutbox[1].to == ["demo@example.com"]
    assert browser.client.get(link.removeprefix("http://testserver"), follow=True).status_code == 400


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("email, shown", [("mallory@example.com", "mallory@example.com"), (None, "(none)")])
def test_the_old_address_is_told_of_an_administrators_change_too(
    demo: None, administrator: Api, worker: Worker, mailoutbox: list[EmailMessage], email: str | None, shown: str
) -> None:
    user = f"Systems_Security_Users({User.objects.get(login='demo').pk})"
    assert administrator.patch(user, {"Notes": "no news"}).status_code == 204
    assert administrator.patch(user, {"Email": email}).status_code == 204
    worker.work()
    assert [(message.to, shown in message.body) for message in mailoutbox] == [(["demo@example.com"], True)]


def test_nor_is_anybody_told_of_a_change_that_is_refused(demo: None, administrator: Api, worker: Worker) -> None:
    user = f"Systems_Security_Users({User.objects.get(login='demo').pk})"
    assert administrator.patch(user, {"Email": "m@example.com", "Login": "admin"}).status_code >= 400
    assert worker.take() == []


def test_an_open_browser_alone_changes_no_address(
    browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]
) -> None:
    browser.log_in("demo")
    assert post(browser, EMAIL, email="mallory@example.com", old_password="wrong").status_code == 200
    answers = [post(browser, EMAIL, email="mallory@example.com", old_password="wrong").status_code for _ in range(5)]
    assert answers[-1] == 429
    worker.work()
    assert mailoutbox == []


def test_a_link_gives_nobody_else_the_address(browser: Browser) -> None:
    link = email_link_make(User.objects.get(login="demo"), "mallory@example.com", "")
    browser.log_in("admin")
    assert browser.client.get(link, follow=True).status_code == 400
    stranger = Client()
    assert stranger.get(link, follow=True).redirect_chain[-1][0].startswith("/id/account/login")
    assert not User.objects.filter(email="mallory@example.com").exists()


def test_a_link_is_worth_nothing_after_a_new_password(browser: Browser) -> None:
    demo = User.objects.get(login="demo")
    link = email_link_make(demo, "mallory@example.com", "")
    demo.set_password(NEW)
    demo.save()
    browser.log_in("demo", NEW)
    assert browser.client.get(link, follow=True).status_code == 400
