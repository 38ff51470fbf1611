"""Passkeys, authenticator apps and recovery codes in sign-ins, by HTTP (spec 01, 1.6)."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import jwt
import pytest
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from identity.models import AuthenticatorApp, Passkey, RecoveryCode, Role
from tests.identity.factors import (
    ADD_APP,
    ADD_PASSKEY,
    SECOND,
    codes_in,
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
from tests.identity.flows import Browser, parameters_of, token_request
from tests.support.api import service_api
from tests.support.authenticator import Authenticator
from tests.support.tasks import Worker

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("seconds_of_a_code")]

NEW = "/id/account/second-factor/new"


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


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def after_password(visitor: Browser, **parameters: Any) -> str:
    """Where the password leads in an authorization request."""
    answer = visitor.log_in("demo", at=visitor.authorize(**parameters).headers["Location"])
    assert not signed_in(visitor)
    return str(answer.headers["Location"])


def tokens_after(visitor: Browser, answer: Any) -> dict[str, Any]:
    """The tokens of an authorization whose last step was answered."""
    for _ in range(3):
        location = answer.headers["Location"]
        if not location.startswith("/id/"):
            break
        answer = visitor.client.get(location)
    response = visitor.redeem(parameters_of(answer.headers["Location"])["code"])
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


class TestPasskeys:
    def test_a_passkey_alone_signs_in(self, visitor: Browser, key: Authenticator) -> None:
        answer = passkey_login(visitor, key, "/id/account/password")
        assert answer.headers["Location"] == "/id/account/password"
        assert signed_in(visitor)
        passkey = Passkey.objects.get()
        assert passkey.last_used is not None
        assert (passkey.transports, passkey.rp_id) == ("internal", "localhost")

    def test_tokens_say_by_what_the_user_signed_in(self, visitor: Browser, key: Authenticator) -> None:
        at = visitor.authorize(scope="openid read offline_access").headers["Location"]
        answer = passkey_login(visitor, key, at.partition("next=")[2])
        tokens = tokens_after(visitor, answer)
        expected = {"acr": "phr", "amr": ["pop", "user", "mfa"]}
        refreshed = token_request(
            visitor.client, grant_type="refresh_token", refresh_token=tokens["refresh_token"],
            client_id="WebDemoClient", client_secret="DEMO",
        ).json()  # fmt: skip
        for token in (tokens["id_token"], tokens["access_token"], refreshed["access_token"], refreshed["id_token"]):
            assert {name: claims_of(token)[name] for name in expected} == expected
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert visitor.client.get("/id/connect/userinfo", headers=bearer).json().items() >= expected.items()

    def test_with_a_passkey_the_password_alone_is_not_enough(self, visitor: Browser, key: Authenticator) -> None:
        answer = visitor.log_in("demo")
        assert answer.headers["Location"] == SECOND
        assert not signed_in(visitor)
        assert prove_passkey(visitor, key).headers["Location"] == "/profile/"
        assert signed_in(visitor)

    def test_names_and_removal(self, visitor: Browser, key: Authenticator) -> None:
        passkey_login(visitor, key)
        passkey = Passkey.objects.get()
        page = "/id/account/factors/passkey/{}/{}"
        form = form_at(visitor, "/profile/")
        assert visitor.client.post(page.format(passkey.pk, "rename"), {**form, "name": "Phone"}).status_code == 302
        assert 'value="Phone"' in page_at(visitor, "/profile/")
        assert visitor.client.post(page.format(passkey.pk, "rename"), {**form, "name": ""}).status_code == 302
        assert Passkey.objects.get().name == "Phone"
        other = person()
        other.log_in("customer")
        form_of_other = form_at(other, "/id/account/password")
        for path in (page.format(passkey.pk, "remove"), page.format(passkey.pk, "rename"), page.format("x", "remove")):
            assert other.client.post(path, {**form_of_other, "name": "x"}).status_code == 404
        assert visitor.client.post(page.format(passkey.pk, "remove"), form).status_code == 302
        assert not Passkey.objects.exists()
        assert not RecoveryCode.objects.exists()

    @pytest.mark.parametrize("host", ["127.0.0.1", "testserver"])
    def test_they_are_not_offered_where_browsers_refuse_them(self, visitor: Browser, host: str) -> None:
        """At an IP address, and without HTTPS."""
        visitor.client.defaults["SERVER_NAME"] = host
        assert "data-passkey" not in page_at(visitor, "/id/account/login")
        visitor.log_in("demo")
        assert "Passkeys need HTTPS" in page_at(visitor, ADD_PASSKEY)

    def test_a_user_who_is_disabled_does_not_sign_in(self, visitor: Browser, key: Authenticator) -> None:
        type(user("demo")).objects.filter(login="demo").update(active=False)
        assert passkey_login(visitor, key).status_code == 400
        assert not signed_in(visitor)


class TestAuthenticatorApps:
    def test_setting_up_and_signing_in(self, visitor: Browser) -> None:
        visitor.log_in("demo")
        phone, answer = set_up_app(visitor)
        assert len(set(codes_in(answer))) == 10
        assert answer.headers["Cache-Control"].find("no-store") >= 0
        visitor.client.logout()
        assert visitor.log_in("demo").headers["Location"] == SECOND
        assert prove(visitor, code="000000" if phone.code() != "000000" else "111111").status_code == 200
        assert prove(visitor, code=f"{phone.code()[:3]} {phone.code()[3:]}").headers["Location"] == "/profile/"
        assert signed_in(visitor)

    def test_a_wrong_code_sets_nothing_up_and_keeps_the_key(self, visitor: Browser) -> None:
        visitor.log_in("demo")
        page = page_at(visitor, ADD_APP)
        answer = visitor.client.post(ADD_APP, {**form_at(visitor, ADD_APP), "code": "12345x"})
        assert "The code is wrong" in answer.content.decode()
        assert page.partition('class="token">')[2][:39] in answer.content.decode()
        assert not AuthenticatorApp.objects.exists()

    def test_tokens_say_so(self, visitor: Browser) -> None:
        phone = phone_of("demo")
        assert after_password(visitor) == SECOND
        tokens = tokens_after(visitor, prove(visitor, code=phone.code()))
        claims = claims_of(tokens["id_token"])
        assert (claims["acr"], claims["amr"]) == ("mfa", ["pwd", "otp", "mfa"])

    def test_recovery_codes_sign_in_once_each(self, visitor: Browser) -> None:
        phone_of("demo")
        codes = recovery_codes_of("demo")
        visitor.log_in("demo")
        assert prove(visitor, recovery_code=codes[0].upper().replace("-", " ")).headers["Location"] == "/profile/"
        visitor.client.logout()
        visitor.log_in("demo")
        assert "used already" in prove(visitor, recovery_code=codes[0]).content.decode()
        assert prove(visitor, recovery_code=codes[1]).status_code == 302
        assert "8 unused codes" in page_at(visitor, "/profile/")

    def test_new_codes_replace_the_old_ones(self, visitor: Browser) -> None:
        visitor.log_in("demo")
        _phone, answer = set_up_app(visitor)
        old = codes_in(answer)
        form = form_at(visitor, "/profile/")
        new = codes_in(visitor.client.post("/id/account/factors/recovery-codes", form))
        assert len({*old, *new}) == 20
        assert visitor.client.post("/id/account/factors/app/remove", form).status_code == 302
        assert visitor.client.post("/id/account/factors/app/remove", form).status_code == 404
        assert not RecoveryCode.objects.exists()

    def test_users_are_told_by_mail(self, visitor: Browser, mailoutbox: list[EmailMessage]) -> None:
        worker = Worker()
        visitor.log_in("demo")
        set_up_app(visitor)
        register_passkey(visitor, Authenticator())
        form = form_at(visitor, "/profile/")
        visitor.client.post("/id/account/factors/recovery-codes", form)
        visitor.client.post("/id/account/factors/app/remove", form)
        worker.work()
        assert [message.to for message in mailoutbox] == [["demo@example.com"]] * 4
        told = [str(message.body) for message in mailoutbox]
        for text, said in zip(told, ("set up", "passkey was added", "recovery codes", "removed"), strict=True):
            assert said in text
            assert "Account: demo" in text


class TestRoles:
    """A role requires a factor; demo users have no such role, and sign in as before."""

    def test_who_has_none_sets_one_up_at_the_sign_in(self, visitor: Browser) -> None:
        require("demo", "SecondFactor")
        assert visitor.log_in("demo").headers["Location"] == NEW
        assert not signed_in(visitor)
        assert ADD_APP in page_at(visitor, NEW)
        _phone, answer = set_up_app(visitor)
        assert 'href="/profile/"' in answer.content.decode()
        assert codes_in(answer)
        assert signed_in(visitor)

    def test_a_passkey_is_registered_at_the_sign_in(self, visitor: Browser) -> None:
        require("demo", "Passkey")
        at = after_password(visitor)
        assert at == NEW
        assert ADD_APP not in page_at(visitor, NEW)
        answer = register_passkey(visitor, Authenticator())
        target = answer.content.decode().partition('class="button" href="')[2].partition('"')[0]
        assert target.startswith("/id/connect/authorize?")
        assert signed_in(visitor)

    def test_an_app_is_not_enough_where_a_passkey_is_required(self, visitor: Browser) -> None:
        require("demo", "Passkey")
        phone = phone_of("demo")
        assert visitor.log_in("demo").headers["Location"] == SECOND
        assert prove(visitor, code=phone.code()).headers["Location"] == NEW
        assert not signed_in(visitor)
        assert visitor.client.get(ADD_APP).status_code == 302
        assert register_passkey(visitor, Authenticator()).status_code == 200
        assert signed_in(visitor)

    def test_a_code_does_not_replace_a_passkey_that_there_is(self, visitor: Browser, key: Authenticator) -> None:
        require("demo", "Passkey")
        phone = phone_of("demo")
        visitor.log_in("demo")
        assert 'name="code"' not in page_at(visitor, SECOND)
        assert prove(visitor, code=phone.code()).status_code == 200
        assert visitor.client.get(ADD_PASSKEY).headers["Location"].startswith("/id/account/login")
        assert prove_passkey(visitor, key).status_code == 302
        assert signed_in(visitor)

    def test_a_recovery_code_lets_a_lost_passkey_be_replaced(self, visitor: Browser, key: Authenticator) -> None:
        require("demo", "Passkey")
        codes = recovery_codes_of("demo")
        visitor.log_in("demo")
        assert prove(visitor, recovery_code=codes[0]).headers["Location"] == NEW
        assert not signed_in(visitor)
        assert register_passkey(visitor, Authenticator()).status_code == 302
        assert signed_in(visitor)

    def test_sign_ins_end_when_a_role_begins_to_require_more(self, visitor: Browser) -> None:
        tokens = visitor.tokens("demo", scope="openid read offline_access")
        assert signed_in(visitor)
        role = require("demo", "SecondFactor")
        assert not signed_in(visitor)
        assert visitor.authorize().headers["Location"].startswith("/id/account/login")
        refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        refused = token_request(visitor.client, **refresh, client_id="WebDemoClient", client_secret="DEMO")
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
        Role.objects.filter(pk=role.pk).update(is_active=False)
        role.refresh_from_db()
        role.save()
        assert signed_in(visitor)

    def test_administrators_are_no_exception(self, visitor: Browser) -> None:
        visitor.log_in("admin")
        assert visitor.client.get("/admin/").status_code == 200
        require("admin", "Passkey")
        assert visitor.client.get("/admin/").headers["Location"].startswith("/admin/login/")
        assert visitor.log_in("admin", at="/id/account/login?next=/admin/").headers["Location"] == NEW
        assert visitor.client.get("/admin/").status_code == 302

    def test_the_last_required_factor_stays(self, visitor: Browser) -> None:
        require("demo", "SecondFactor")
        visitor.log_in("demo")
        set_up_app(visitor)
        form = form_at(visitor, "/profile/")
        answer = visitor.client.post("/id/account/factors/app/remove", form, follow=True)
        assert "requires this factor" in answer.content.decode()
        assert AuthenticatorApp.objects.exists()


class TestStepUp:
    def test_an_application_asks_for_more(self, visitor: Browser) -> None:
        visitor.sign_in("demo")
        phone = phone_of("demo")
        answer = visitor.authorize(acr_values="mfa")
        assert answer.headers["Location"].startswith(f"{SECOND}?next=")
        tokens = tokens_after(visitor, prove(visitor, answer.headers["Location"], code=phone.code()))
        assert claims_of(tokens["id_token"])["acr"] == "mfa"
        # From now on the sign-in meets it.
        assert "code" in parameters_of(visitor.authorize(acr_values="mfa", prompt="none").headers["Location"])

    def test_who_has_no_factor_sets_one_up(self, visitor: Browser) -> None:
        visitor.sign_in("demo")
        at = visitor.authorize(acr_values="phr").headers["Location"]
        page = page_at(visitor, visitor.client.get(at).headers["Location"])
        assert "asks for more than a password" in page
        assert "Go on without it" in page
        link = page.partition('class="button" href="')[2].partition('"')[0]
        answer = register_passkey(visitor, Authenticator(), link)
        target = answer.content.decode().partition('class="button" href="')[2].partition('"')[0].replace("&amp;", "&")
        code = parameters_of(visitor.client.get(target).headers["Location"])["code"]
        assert claims_of(visitor.redeem(code).json()["id_token"])["acr"] == "phr"

    def test_a_user_may_decline(self, visitor: Browser) -> None:
        visitor.sign_in("demo")
        phone_of("demo")
        page = page_at(visitor, visitor.authorize(acr_values="mfa").headers["Location"])
        declined = page.partition('<p class="links')[2].partition('href="')[2].partition('"')[0].replace("&amp;", "&")
        told = parameters_of(visitor.client.get(declined).headers["Location"])
        assert (told["error"], told["state"]) == ("unmet_authentication_requirements", "xyz")

    def test_without_a_page_the_client_is_told(self, visitor: Browser) -> None:
        visitor.sign_in("demo")
        told = parameters_of(visitor.authorize(acr_values="mfa", prompt="none").headers["Location"])
        assert told["error"] == "login_required"

    @pytest.mark.parametrize("values", ["pwd", "tenant:main idp:local", "phr pwd"])
    def test_what_the_sign_in_meets_or_nobody_knows_is_no_hindrance(self, visitor: Browser, values: str) -> None:
        answer = visitor.sign_in("demo", acr_values=values)
        token = visitor.redeem(parameters_of(answer.headers["Location"])["code"]).json()["id_token"]
        assert (claims_of(token)["acr"], claims_of(token)["amr"]) == ("pwd", ["pwd"])

    def test_the_preferred_value_that_is_met_is_the_answer(self, visitor: Browser, key: Authenticator) -> None:
        passkey_login(visitor, key)
        answer = visitor.authorize(acr_values="mfa phr")
        token = visitor.redeem(parameters_of(answer.headers["Location"])["code"]).json()["id_token"]
        assert claims_of(token)["acr"] == "mfa"

    def test_a_new_login_for_max_age_asks_for_both(self, visitor: Browser) -> None:
        phone = phone_of("demo")
        at = visitor.authorize(max_age="0").headers["Location"]
        assert visitor.log_in("demo", at=at).headers["Location"] == SECOND
        tokens = tokens_after(visitor, prove(visitor, code=phone.code()))
        assert claims_of(tokens["id_token"])["amr"] == ["pwd", "otp", "mfa"]

    def test_discovery_names_them(self, visitor: Browser) -> None:
        found = visitor.client.get("/id/.well-known/openid-configuration").json()
        assert found["acr_values_supported"] == ["pwd", "mfa", "phr"]
        assert {"acr", "amr"} <= set(found["claims_supported"])


class TestAdministration:
    def test_an_administrator_removes_factors(
        self, visitor: Browser, key: Authenticator, mailoutbox: list[EmailMessage]
    ) -> None:
        worker = Worker()
        phone_of("demo")
        visitor.log_in("admin")
        page = reverse("admin:identity_user_factors", args=[user("demo").pk])
        assert page in page_at(visitor, reverse("admin:identity_user_change", args=[user("demo").pk]))
        form = form_at(visitor, page)
        assert visitor.client.post(page, {**form, "factor": ["app", "made-up"]}).status_code == 302
        assert not AuthenticatorApp.objects.exists()
        assert Passkey.objects.exists()
        assert "Removed second factors" in page_at(
            visitor, reverse("admin:identity_user_history", args=[user("demo").pk])
        )
        visitor.client.post(page, {**form, "factor": [str(Passkey.objects.get().pk)]})
        assert not RecoveryCode.objects.exists()
        worker.work()
        assert all("An administrator removed" in str(message.body) for message in mailoutbox)
        assert len(mailoutbox) == 2
        assert person().log_in("demo").headers["Location"] == "/profile/"

    def test_a_deleted_user_leaves_none(self, visitor: Browser, key: Authenticator) -> None:
        phone_of("customer")
        recovery_codes_of("customer")
        api = service_api(Client())
        assert api.delete(f"Systems_Security_Users({user('customer').pk})").status_code == 204
        assert not AuthenticatorApp.objects.exists()
        assert not RecoveryCode.objects.exclude(user=user("demo")).exists()

    def test_an_operator_removes_the_last_administrators(self, visitor: Browser, key: Authenticator) -> None:
        phone_of("demo")
        out = StringIO()
        call_command("remove_factors", "demo", "--json", stdout=out)
        assert json.loads(out.getvalue()) == {"removed": 2}
        assert visitor.log_in("demo").headers["Location"] == "/profile/"

    def test_others_do_not(self, visitor: Browser, key: Authenticator) -> None:
        other = person()
        other.log_in("customer")
        page = reverse("admin:identity_user_factors", args=[user("demo").pk])
        assert other.client.get(page).status_code == 302
        passkey_login(visitor, key)
        assert visitor.client.get(page).status_code == 403
        assert Passkey.objects.exists()
