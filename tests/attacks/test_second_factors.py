"""Nobody signs in past a second factor, and no proof is good twice.

Who: somebody who knows a password, has seen a code or a passkey's response, or sits at a browser that is signed in.
What: to go on without the second factor, to use a proof again, for another account or at another site, to guess codes,
and to add a factor of their own. What prevents it: nobody is signed in before the last step; challenges are signed, for
one purpose and one use; codes are used once and counted; factors are changed after a fresh sign-in only.
"""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client

from audit.models import AuditEntry
from identity.factors.authenticator_app import MAX_FAILURES
from identity.models import AuthenticatorApp, Passkey
from tests.attacks.test_stolen_database import whole_database
from tests.identity.factors import (
    ADD_APP,
    ADD_PASSKEY,
    PASSKEY_LOGIN,
    SECOND,
    form_at,
    page_at,
    passkey_login,
    person,
    phone_of,
    prove,
    prove_passkey,
    recovery_codes_of,
    register_passkey,
    require,
    seconds_of_a_code,  # noqa: F401
    set_up_app,
    signed_in,
    user,
)
from tests.identity.flows import Browser, fields_of
from tests.support.authenticator import FLAGS, Authenticator, ceremony_of
from tests.support.tasks import Worker

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("seconds_of_a_code")]

#: What a page or endpoint answers to somebody who is not signed in.
CLOSED = {
    "/profile/": 302, "/profile/me": 401, "/admin/": 302, "/id/account/password": 302, "/id/account/email": 302,
    ADD_APP: 302, ADD_PASSKEY: 302,
}  # fmt: skip


@pytest.fixture
def visitor(demo: None) -> Browser:
    return person()


@pytest.fixture
def key(visitor: Browser) -> Authenticator:
    """A passkey of the user `demo`, who is signed out."""
    visitor.log_in("demo")
    key = Authenticator()
    assert register_passkey(visitor, key).status_code == 200
    visitor.client.logout()
    return key


def test_the_second_step_is_not_skipped_by_another_address(visitor: Browser) -> None:
    phone_of("demo")
    assert visitor.log_in("demo").headers["Location"] == SECOND
    for path, status in CLOSED.items():
        assert visitor.client.get(path).status_code == status, path
    assert visitor.authorize().headers["Location"].startswith("/id/account/login")
    assert visitor.client.get("/id/account/second-factor/new").headers["Location"] == SECOND
    form = form_at(visitor, SECOND)
    assert visitor.client.post("/api/session", form).status_code == 401  # the token of the pages under /api/
    for path in (ADD_APP, ADD_PASSKEY, "/id/account/factors/app/remove", "/id/account/factors/recovery-codes"):
        assert "/id/account/login" in visitor.client.post(path, {**form, "name": "x", "code": "1"}).headers["Location"]
    assert AuthenticatorApp.objects.count() == 1


def test_a_required_registration_is_not_skipped_either(visitor: Browser) -> None:
    require("demo", "SecondFactor")
    visitor.log_in("demo")
    for path in set(CLOSED) - {ADD_APP, ADD_PASSKEY}:
        assert visitor.client.get(path).status_code == CLOSED[path], path
    assert not signed_in(visitor)


def test_a_pending_sign_in_ends(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself after a time, and when the password is changed."""
    phone = phone_of("demo")
    visitor.log_in("demo")
    form = form_at(visitor, SECOND)
    demo = user("demo")
    demo.set_password("another-Password-8")
    demo.save()
    assert visitor.client.post(SECOND, {**form, "code": phone.code()}).headers["Location"].startswith("/id/account/log")
    visitor.log_in("demo", "another-Password-8")
    assert visitor.client.get(SECOND).status_code == 200
    later = time.time() + 901
    monkeypatch.setattr("identity.factors.flow.time", SimpleNamespace(time=lambda: later))
    assert visitor.client.get(SECOND).headers["Location"].startswith("/id/account/login")


def test_the_session_key_changes_with_each_step(visitor: Browser) -> None:
    """A key that an attacker has put into the browser is of no use after any of them."""
    phone = phone_of("demo")
    keys = []
    visitor.log_in("demo")
    keys.append(visitor.client.cookies["sessionid"].value)
    prove(visitor, code=phone.code())
    keys.append(visitor.client.cookies["sessionid"].value)
    register_passkey(visitor, Authenticator())
    keys.append(visitor.client.cookies["sessionid"].value)
    assert len(set(keys)) == 3
    for old in keys[:2]:
        other = Client(SERVER_NAME="localhost")
        other.cookies["sessionid"] = old
        assert other.get("/profile/").status_code == 302
        assert other.get(SECOND).status_code == 302


def test_a_passkeys_response_is_good_once(visitor: Browser, key: Authenticator) -> None:
    """Also of an authenticator without a counter, and in the attacker's own browser."""
    key.counter, key.counts = 0, False
    Passkey.objects.update(sign_count=0)
    page = page_at(visitor, "/id/account/login")
    form = fields_of(page.partition('data-passkey="get"')[2])
    form["credential"] = key.prove(ceremony_of(page))
    assert visitor.client.post(PASSKEY_LOGIN, form).status_code == 302
    other = person()
    form |= {"csrfmiddlewaretoken": form_at(other, "/id/account/login")["csrfmiddlewaretoken"]}
    for browser in (visitor, other):
        again = browser.client.post(PASSKEY_LOGIN, {**form, **form_at(browser, "/id/account/login")})
        assert again.status_code == 400
        assert "used already" in again.content.decode()
    assert not signed_in(other)
    assert passkey_login(visitor, key).status_code == 302


def test_an_old_challenge_is_refused(visitor: Browser, key: Authenticator, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_at(visitor, "/id/account/login")
    form = fields_of(page.partition('data-passkey="get"')[2])
    later = time.time() + 901
    monkeypatch.setattr("django.core.signing.time", SimpleNamespace(time=lambda: later))
    answer = visitor.client.post(PASSKEY_LOGIN, {**form, "credential": key.prove(ceremony_of(page))})
    assert (answer.status_code, "too long" in answer.content.decode()) == (400, True)


def test_a_challenge_is_for_its_own_purpose(visitor: Browser, key: Authenticator) -> None:
    """The response of one page is not accepted by another: for the login, for a second step, for a registration."""
    login = page_at(visitor, "/id/account/login")
    state = fields_of(login.partition('data-passkey="get"')[2])["state"]
    visitor.log_in("demo")
    form = {**form_at(visitor, SECOND), "state": state, "credential": key.prove(ceremony_of(login))}
    assert "another page" in visitor.client.post(SECOND, form).content.decode()
    assert not signed_in(visitor)


@pytest.mark.once
@pytest.mark.parametrize(
    "forged, changes",
    [
        ({"origin": "http://localhost:8001"}, {}),
        ({"origin": "https://localhost"}, {}),
        ({"origin": "http://localhost.evil.example"}, {}),
        ({"rp_id": "evil.example"}, {}),
        ({"flags": FLAGS.UP}, {}),
        ({"flags": FLAGS.UV}, {}),
        ({"credential_id": b"made up" * 4}, {}),
        ({"key": Authenticator().key}, {}),
        ({}, {"type": "webauthn.create"}),
        ({}, {"challenge": b"x" * 32}),
        ({}, {"user_handle": "AAAAAAAAAAAAAAAAAAAAAA"}),
    ],
    ids=[
        "another port",
        "another scheme",
        "another host",
        "another relying party",
        "user not verified",
        "user not present",
        "another credential",
        "another key",
        "another ceremony",
        "another challenge",
        "another user",
    ],
)
def test_forged_responses_are_refused(
    visitor: Browser, key: Authenticator, forged: dict[str, Any], changes: dict[str, Any]
) -> None:
    for name, value in forged.items():
        setattr(key, name, value)
    assert passkey_login(visitor, key, **changes).status_code == 400
    visitor.log_in("demo")
    assert prove_passkey(visitor, key, **changes).status_code == 200
    assert not signed_in(visitor)


@pytest.mark.parametrize(
    "changes", [{"origin": "https://evil.example"}, {"type": "webauthn.get"}, {"challenge": b"y" * 32}], ids=str
)
def test_forged_registrations_are_refused(visitor: Browser, changes: dict[str, Any]) -> None:
    visitor.log_in("demo")
    answer = register_passkey(visitor, Authenticator(), **changes)
    assert "cannot be accepted" in answer.content.decode()
    for forged in (Authenticator(rp_id="evil.example"), Authenticator(flags=FLAGS.UP)):
        assert register_passkey(visitor, forged).status_code == 200
    assert not Passkey.objects.exists()


@pytest.mark.once
@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "nul", '{"id": 1}', '{"id": "x", "rawId": "x", "type": "public-key", "response": {}}', "\x00"],
)
def test_malformed_responses_are_refused(visitor: Browser, key: Authenticator, text: str) -> None:
    page = page_at(visitor, "/id/account/login")
    form = fields_of(page.partition('data-passkey="get"')[2])
    for state in (form["state"], "x", ""):
        assert visitor.client.post(PASSKEY_LOGIN, {**form, "state": state, "credential": text}).status_code == 400
    good = json.loads(key.prove(ceremony_of(page)))
    for name in ("clientDataJSON", "authenticatorData", "signature", "userHandle"):
        wrong: tuple[object, ...] = ("", "AAAA", None, 5, [], "ö")
        for broken in wrong:
            response = {**good, "response": {**good["response"], name: broken}}
            if name == "userHandle" and broken is None:
                continue  # it may be absent
            answer = visitor.client.post(PASSKEY_LOGIN, {**form, "credential": json.dumps(response)})
            assert answer.status_code in (400, 429), (name, broken)
    assert not signed_in(visitor)


def test_a_counter_that_goes_back_is_refused(visitor: Browser, key: Authenticator) -> None:
    """The key was copied: both copies count for themselves."""
    for _ in range(3):
        assert passkey_login(visitor, key).status_code == 302
    visitor.client.logout()
    key.counter -= 2
    answer = passkey_login(visitor, key)
    assert (answer.status_code, "counter went back" in answer.content.decode()) == (400, True)
    key.counter = 0
    assert passkey_login(visitor, key).status_code == 400
    assert not signed_in(visitor)


def test_anothers_passkey_is_no_second_factor(visitor: Browser, key: Authenticator) -> None:
    phone_of("admin")
    other = person()
    other.log_in("customer")
    register_passkey(other, Authenticator())
    other.client.logout()
    other.log_in("customer")
    assert "not known here" in prove_passkey(other, key).content.decode()
    assert not signed_in(other)


def test_a_passkey_is_registered_for_one_account(visitor: Browser, key: Authenticator) -> None:
    visitor.log_in("admin")
    assert "registered already" in register_passkey(visitor, key).content.decode()
    assert Passkey.objects.get().user == user("demo")


def test_a_code_is_good_once(visitor: Browser) -> None:
    phone = phone_of("demo")
    visitor.log_in("demo")
    code = phone.code()
    assert prove(visitor, code=code).status_code == 302
    other = person()
    other.log_in("demo")
    for used in (code, phone.code(-1)):
        assert "used already" in prove(other, code=used).content.decode()
    assert not signed_in(other)
    assert prove(other, code=phone.code(1)).status_code == 302


def test_the_code_of_the_setup_is_used_with_it(visitor: Browser) -> None:
    visitor.log_in("demo")
    phone, _answer = set_up_app(visitor)
    visitor.client.logout()
    visitor.log_in("demo")
    assert "used already" in prove(visitor, code=phone.code(-1)).content.decode()


@pytest.mark.parametrize("field", ["code", "recovery_code"])
def test_codes_cannot_be_guessed_at_any_speed(visitor: Browser, field: str) -> None:
    phone = phone_of("demo")
    recovery_codes_of("demo")
    visitor.log_in("demo")
    wrong = next(text for text in ("000000", "111111", "222222", "333333") if text not in map(phone.code, (-1, 0, 1)))
    form = form_at(visitor, SECOND)
    answers = [visitor.client.post(SECOND, {**form, field: wrong}) for _ in range(14)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 4
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    # Nor by starting again: the failures are those of the login.
    other = person()
    assert other.log_in("demo").status_code in (302, 429)


def test_a_slow_guesser_is_stopped_as_well(
    visitor: Browser, key: Authenticator, mailoutbox: list[EmailMessage]
) -> None:
    """A million codes would last three months at the rate of passwords, with a good chance every day."""
    worker = Worker()
    phone = phone_of("demo")
    AuthenticatorApp.objects.update(failed_codes=MAX_FAILURES - 1)
    visitor.log_in("demo")
    prove(visitor, code=phone.code(99))
    # Whoever tried is not known: neither the user nor the operator did.
    blocked = AuditEntry.objects.filter(kind="credentials.changed").latest("id")
    assert ("tried many codes" in blocked.content, blocked.actor) == (True, "")
    assert "no codes any more" in prove(visitor, code=phone.code(1)).content.decode()
    worker.work()
    assert "tried many codes" in str(mailoutbox[-1].body)
    assert prove_passkey(visitor, key).status_code == 302
    visitor.client.logout()
    visitor.log_in("demo")
    assert prove(visitor, code=phone.code(1)).status_code == 302


def test_unknown_passkeys_cannot_be_tried_at_any_speed(visitor: Browser, key: Authenticator) -> None:
    page = page_at(visitor, "/id/account/login")
    form = fields_of(page.partition('data-passkey="get"')[2])
    form["credential"] = Authenticator().prove(ceremony_of(page))
    answers = [visitor.client.post(PASSKEY_LOGIN, form) for _ in range(32)]
    assert [answer.status_code for answer in answers] == [400] * 30 + [429] * 2


@pytest.mark.parametrize(
    "path", [ADD_APP, ADD_PASSKEY, "/id/account/factors/app/remove", "/id/account/factors/recovery-codes"]
)
def test_an_unattended_browser_changes_no_factors(visitor: Browser, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    visitor.log_in("demo")
    set_up_app(visitor)
    form = form_at(visitor, "/profile/")
    later = time.time() + 901
    for module in ("registration_pages", "flow"):
        monkeypatch.setattr(f"identity.factors.{module}.time", SimpleNamespace(time=lambda: later))
    answer = visitor.client.post(path, {**form, "name": "x", "code": "123456"})
    assert answer.headers["Location"].startswith("/id/account/login")
    if path in (ADD_APP, ADD_PASSKEY):
        assert visitor.client.get(path).headers["Location"] == f"/id/account/login?next={path.replace('/', '%2F')}"
    assert AuthenticatorApp.objects.exists()


def test_a_sign_in_by_password_from_before_changes_no_factors(visitor: Browser) -> None:
    """The password was known to somebody else, who was signed in already when its owner set up a factor."""
    other = person()
    other.log_in("demo")
    visitor.log_in("demo")
    set_up_app(visitor)
    form = form_at(other, "/profile/")
    for path in (ADD_APP, ADD_PASSKEY, "/id/account/factors/app/remove", "/id/account/factors/recovery-codes"):
        assert other.client.post(path, {**form, "name": "x"}).headers["Location"].startswith("/id/account/login")
    assert visitor.client.post("/id/account/factors/app/remove", form_at(visitor, "/profile/")).status_code == 302
    assert not AuthenticatorApp.objects.exists()


def test_a_new_password_by_a_link_is_no_way_around(visitor: Browser) -> None:
    phone_of("demo")
    demo = user("demo")
    demo.set_password("another-Password-8")
    demo.save()
    assert visitor.log_in("demo", "another-Password-8").headers["Location"] == SECOND


def test_an_app_is_not_set_up_by_a_secret_that_another_user_has_seen(visitor: Browser) -> None:
    """Whoever used this browser before has begun the set-up of an app, and has left."""
    require("customer", "SecondFactor")
    visitor.log_in("customer")
    seen = visitor.client.get(ADD_APP).context["secret"]
    visitor.log_in("demo")
    assert signed_in(visitor)
    assert visitor.client.get(ADD_APP).context["secret"] != seen


def test_a_stolen_database_has_no_factor(visitor: Browser) -> None:
    visitor.log_in("demo")
    phone, _answer = set_up_app(visitor)
    codes = recovery_codes_of("demo")
    stored = whole_database()
    for secret in (phone.secret, *codes, *(code.replace("-", "") for code in codes)):
        assert secret not in stored


def test_a_foreign_target_is_not_followed(visitor: Browser) -> None:
    phone = phone_of("demo")
    visitor.log_in("demo", at="/id/account/login?next=https://evil.example/")
    answer = prove(visitor, f"{SECOND}?next=https://evil.example/", code=phone.code())
    assert answer.headers["Location"] == "/profile/"
