"""The pages for people: login, logout, password, profile (spec 01, 1.6)."""

from __future__ import annotations

import re
from smtplib import SMTPRecipientsRefused
from typing import Any

import environ
import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext

from identity.models import ReferenceToken, TrustedApplication, User
from identity.password_reset import password_link_make
from tests.identity.flows import Browser, fields_of
from tests.support.mail import MailServer
from tests.support.tasks import Worker

pytestmark = pytest.mark.once

PROFILE = "/profile/"


class TestLogin:
    def test_the_right_password_lets_in(self, browser: Browser) -> None:
        assert browser.log_in("demo").headers["Location"] == PROFILE
        assert b"demo@example.com" in browser.client.get(PROFILE).content

    def test_a_login_is_good_in_any_case(self, browser: Browser) -> None:
        assert browser.log_in("DeMo", "demo").status_code == 302

    def test_unknown_user_wrong_password_and_inactive_look_the_same(self, browser: Browser) -> None:
        User.objects.filter(login="customer").update(active=False)
        pages = set()
        for login, password in (("demo", "x"), ("nobody", "x"), ("customer", "customer"), ("service", "service")):
            response = browser.log_in(login, password)
            assert response.status_code == 200
            text = response.content.decode()
            for part in (login, fields_of(text)["csrfmiddlewaretoken"]):
                text = text.replace(part, "")
            pages.add(text)
        assert len(pages) == 1

    def test_without_a_csrf_token_nothing_happens(self, browser: Browser) -> None:
        refused = browser.client.post("/id/account/login", {"login": "demo", "password": "demo"})
        assert refused.status_code == 403
        assert "load the page again" in " ".join(refused.content.decode().split())

    def test_the_sessions_key_changes(self, browser: Browser) -> None:
        browser.client.get(PROFILE)
        session = browser.client.session
        session["planted"] = True
        session.save()
        before = session.session_key
        browser.client.cookies["sessionid"] = before or ""
        browser.log_in("demo")
        assert browser.client.session.session_key != before

    @pytest.mark.parametrize(
        "target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:evil"]
    )
    def test_next_stays_at_this_instance(self, browser: Browser, target: str) -> None:
        page = browser.client.get("/id/account/login", {"next": target})
        fields = {**fields_of(page.content.decode()), "next": target}
        response = browser.client.post("/id/account/login", {**fields, "login": "demo", "password": "demo"})
        assert response.headers["Location"] == PROFILE

    def test_next_leads_on(self, browser: Browser) -> None:
        response = browser.client.get("/id/account/password")
        assert browser.log_in("demo", at=response.headers["Location"]).headers["Location"] == "/id/account/password"

    def test_the_page_is_not_cached_and_has_a_strict_policy(self, browser: Browser) -> None:
        response = browser.client.get("/id/account/login")
        assert "no-store" in response.headers["Cache-Control"]
        policy = response.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        text = response.content.decode()
        assert "<script" not in text
        assert " style=" not in text

    @pytest.mark.parametrize("language, text", [("en", "Sign in"), ("bg", "Вход"), ("de", "Anmelden")])
    def test_it_speaks_three_languages(self, browser: Browser, language: str, text: str) -> None:
        by_header = browser.client.get("/id/account/login", headers={"Accept-Language": language})
        assert f"<h1>{text}</h1>" in by_header.content.decode()
        by_application = browser.client.get("/id/account/login", {"ui_locales": f"xx {language}-XX"})
        assert f"<h1>{text}</h1>" in by_application.content.decode()
        assert f'<html lang="{language}">' in by_application.content.decode()

    def test_the_admin_site_uses_it(self, browser: Browser) -> None:
        response = browser.client.get("/admin/", follow=True)
        assert response.redirect_chain[-1][0] == "/id/account/login?next=%2Fadmin%2F"


class TestLogout:
    def test_it_asks_and_then_signs_out(self, browser: Browser) -> None:
        browser.log_in("demo")
        page = browser.client.get("/id/account/logout").content.decode()
        assert "Sign out?" in page
        assert browser.client.get(PROFILE).status_code == 200
        assert browser.client.post("/id/account/logout", fields_of(page)).status_code == 200
        assert browser.client.get(PROFILE).status_code == 302

    def test_it_needs_a_csrf_token(self, browser: Browser) -> None:
        browser.log_in("demo")
        assert browser.client.post("/id/account/logout").status_code == 403


class TestPassword:
    def change(self, browser: Browser, **changes: str) -> int:
        page = browser.client.get("/id/account/password").content.decode()
        form = {"old_password": "demo", "new_password": "correct horse", "repeated": "correct horse", **changes}
        return browser.client.post("/id/account/password", {**fields_of(page), **form}).status_code

    def test_it_can_be_changed_and_other_browsers_are_signed_out(self, browser: Browser) -> None:
        other = Browser(Client(enforce_csrf_checks=True))
        for one in (browser, other):
            one.log_in("demo")
        assert self.change(browser) == 302
        assert browser.client.get(PROFILE).status_code == 200
        assert other.client.get(PROFILE).status_code == 302
        assert other.log_in("demo", "correct horse").status_code == 302

    def test_the_user_is_told_by_mail(self, browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]) -> None:
        browser.log_in("demo")
        assert self.change(browser, repeated="x") == 200
        worker.work()
        assert mailoutbox == []
        assert self.change(browser) == 302
        worker.work()
        assert [message.to for message in mailoutbox] == [["demo@example.com"]]
        assert "The password of your account was changed." in mailoutbox[0].body
        assert "If it was not you, tell an administrator." in mailoutbox[0].body

    def test_the_user_is_told_of_a_link_that_an_administrator_has_made_and_somebody_used(
        self, browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]
    ) -> None:
        browser.log_in("admin")
        user = User.objects.get(login="demo")
        address = reverse("admin:identity_user_password_link", args=[user.pk])
        form = fields_of(browser.client.get(address).content.decode())
        page = browser.client.post(address, form).content.decode()
        link = page.split('<code class="secret">')[1].split("<")[0].removeprefix("http://testserver")
        other = Browser(Client(enforce_csrf_checks=True))
        at, page = open_link(other, link)
        chosen = {"new_password": "correct horse", "repeated": "correct horse"}
        assert other.client.post(at, {**fields_of(page), **chosen}).status_code == 302
        worker.work()
        assert [message.to for message in mailoutbox] == [["demo@example.com"]]
        assert "The password of your account was changed." in mailoutbox[0].body

    @pytest.mark.parametrize("changes", [{"old_password": "x"}, {"repeated": "x"}, {"new_password": ""}])
    def test_what_does_not_fit_is_refused(self, browser: Browser, changes: dict[str, str]) -> None:
        browser.log_in("demo")
        assert self.change(browser, **changes) == 200
        assert User.objects.get(login="demo").check_password("demo")

    @pytest.mark.parametrize(
        "new", ["demo-demo-demo", "Demo_demo_2024", "demo@example.com-1", "example-example", "2024!demo-demo"]
    )
    def test_a_password_made_of_the_login_or_the_address_is_refused(self, browser: Browser, new: str) -> None:
        browser.log_in("demo")
        assert self.change(browser, new_password=new, repeated=new) == 200
        assert User.objects.get(login="demo").check_password("demo")

    def test_the_password_that_one_has_is_no_new_one(self, browser: Browser) -> None:
        browser.log_in("demo")
        assert self.change(browser) == 302
        assert self.change(browser, old_password="correct horse") == 200
        assert self.change(browser, old_password="correct horse", new_password="x" * 8 + "demo" * 2) == 200
        fine = "demo likes chairs"  # the login among other words
        assert self.change(browser, old_password="correct horse", new_password=fine, repeated=fine) == 302


class TestProfile:
    def make(self, browser: Browser, **changes: object) -> str:
        page = browser.client.get(PROFILE).content.decode()
        application = page.split('<option value="')[1].split('"')[0]
        form = {"name": "laptop", "application_id": application, "scopes": ["read"], "days": 7, **changes}
        csrf = {"csrfmiddlewaretoken": fields_of(page)["csrfmiddlewaretoken"]}
        return browser.client.post(PROFILE, {**csrf, **form}).content.decode()

    def test_a_token_is_made_shown_once_and_revoked(self, browser: Browser) -> None:
        browser.log_in("demo")
        page = self.make(browser)
        token = page.split('<code class="token">')[1].split("<")[0]
        assert token.startswith("enrt_")
        later = browser.client.get(PROFILE).content.decode()
        assert token not in later
        assert f"…{token[-4:]}" in later
        row = ReferenceToken.objects.get()
        csrf = {"csrfmiddlewaretoken": fields_of(later)["csrfmiddlewaretoken"]}
        assert browser.client.post(f"/profile/tokens/{row.pk}/revoke", csrf).status_code == 302
        row.refresh_from_db()
        assert row.revoked is not None

    def test_scopes_beyond_the_application_are_refused(self, browser: Browser) -> None:
        browser.log_in("demo")
        other = TrustedApplication.objects.get(application_uri="ServiceDemoClient")
        other.access_tokens = "AuthenticatedUsers"
        other.save()
        chosen = str(TrustedApplication.objects.get(application_uri="PublicDemoClient").pk)
        page = self.make(browser, scopes=["exec"], application_id=chosen)
        assert "exec – Run scripts" in page
        assert "may not have: exec" in page
        assert not ReferenceToken.objects.exists()

    def test_anothers_token_does_not_exist(self, browser: Browser) -> None:
        browser.log_in("demo")
        self.make(browser)
        row = ReferenceToken.objects.get()
        other = Browser(Client(enforce_csrf_checks=True))
        other.log_in("customer")
        page = other.client.get(PROFILE).content.decode()
        assert "No application allows you to make tokens." in page
        csrf = {"csrfmiddlewaretoken": other.client.cookies["csrftoken"].value}
        assert other.client.post(f"/profile/tokens/{row.pk}/revoke", csrf).status_code == 404

    @pytest.mark.parametrize("made_up", ["x", "%00", "a" * 300, "01900000-0000-7000-8000-000000000001"])
    def test_made_up_ids_are_not_found(self, browser: Browser, made_up: str) -> None:
        browser.log_in("admin")
        for at in ("/admin/identity/user/%s/password-link/", "/admin/identity/trustedapplication/%s/secret/"):
            assert browser.client.get(at % made_up).status_code == 404
        csrf = {"csrfmiddlewaretoken": browser.client.cookies["csrftoken"].value}
        assert browser.client.post(f"/profile/tokens/{made_up}/revoke", csrf).status_code == 404

    def test_strangers_are_sent_to_the_login(self, browser: Browser) -> None:
        assert browser.client.get(PROFILE).headers["Location"] == "/id/account/login?next=/profile/"


@pytest.fixture
def worker(db: None) -> Worker:
    return Worker()


def open_link(browser: Browser, path: str) -> tuple[str, str]:
    """(address, text) of the form to which a link leads."""
    answer = browser.client.get(path)
    assert answer.status_code == 302, answer.content
    page = browser.client.get(answer.headers["Location"])
    assert page.status_code == 200
    return answer.headers["Location"], page.content.decode()


class TestReset:
    def ask(self, browser: Browser, login: str) -> str:
        page = browser.client.get("/id/account/reset").content.decode()
        return browser.client.post("/id/account/reset", {**fields_of(page), "login": login}).content.decode()

    def test_a_link_sets_a_new_password_once(
        self, browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]
    ) -> None:
        self.ask(browser, "DEMO")
        worker.work()
        assert mailoutbox[0].to == ["demo@example.com"]
        link = next(line for line in str(mailoutbox[0].body).splitlines() if line.startswith("http://testserver/"))
        path = link.removeprefix("http://testserver")
        form = {"new_password": "correct horse", "repeated": "correct horse"}
        at, page = open_link(browser, path)
        assert browser.client.post(at, {**fields_of(page), **form}).status_code == 302
        assert browser.log_in("demo", "correct horse").status_code == 302
        for used in (path, at):
            refused = browser.client.get(used)
            assert (refused.status_code, b"used already" in refused.content) == (400, True)

    def test_the_form_is_at_an_address_without_the_token(self, browser: Browser) -> None:
        """A page that holds a secret in its address may send no referrer, and is then no page that can post a form."""
        path = password_link_make(User.objects.get(login="demo"), "")
        answer = browser.client.get(path)
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        form = browser.client.get(answer.headers["Location"])
        assert form.headers["Referrer-Policy"] == "same-origin"
        assert path.rpartition("/")[2] not in answer.headers["Location"] + form.content.decode()

    def test_a_link_opens_the_form_in_its_own_browser_alone(self, browser: Browser) -> None:
        at, _page = open_link(browser, password_link_make(User.objects.get(login="demo"), ""))
        assert Client().get(at).status_code == 400
        other = password_link_make(User.objects.get(login="admin"), "")
        assert browser.client.get(other.rpartition("/")[0] + "/set").status_code == 400

    def test_an_old_link_is_refused(self, browser: Browser, settings: Any) -> None:
        path = password_link_make(User.objects.get(login="demo"), "")
        at, _page = open_link(browser, path)
        settings.PASSWORD_RESET_TIMEOUT = -1
        assert browser.client.get(path).status_code == browser.client.get(at).status_code == 400

    def test_nobody_learns_who_exists(self, browser: Browser, worker: Worker, mailoutbox: list[EmailMessage]) -> None:
        """Neither from the page nor from how long it takes: all of the work is the worker's."""
        User.objects.filter(login="customer").update(active=False)
        pages = set()
        queries = set()
        for login in ("demo", "nobody", "service", "customer"):
            with CaptureQueriesContext(connection) as asked:
                pages.add(self.ask(browser, login))
            # The cache versions are read again by the clock.
            queries.add(sum("foundation_cacheversion" not in query["sql"] for query in asked.captured_queries))
        assert len(pages) == len(queries) == 1
        worker.work()
        assert [message.to for message in mailoutbox] == [["demo@example.com"]]

    @pytest.mark.parametrize("language, subject", [("en", "Your new password"), ("bg", None), ("de", None)])
    def test_a_mail_server_gets_it_in_the_users_language(
        self, browser: Browser, worker: Worker, settings: Any, language: str, subject: str | None
    ) -> None:
        User.objects.filter(login="demo").update(default_language=language)
        with MailServer().running() as mail:
            for name, value in environ.Env.email_url_config(mail.url).items():
                setattr(settings, name, value)
            self.ask(browser, "demo")
            worker.work()
        assert mail.recipients == ["demo@example.com"]
        message = mail.messages[0]
        assert (message["To"], message["From"]) == ("demo@example.com", settings.DEFAULT_FROM_EMAIL)
        with translation.override(language):
            assert message["Subject"] == gettext("Your new password")
        assert (message["Subject"] == "Your new password") is (subject is not None)
        link = re.search(r"http://testserver(/id/account/reset/\S+)", message.get_content())
        assert link is not None
        assert open_link(browser, link[1])

    def test_a_mail_server_that_refuses_fails_the_task_and_not_the_page(
        self, browser: Browser, worker: Worker, settings: Any
    ) -> None:
        with MailServer(refuse=True).running() as mail:
            for name, value in environ.Env.email_url_config(mail.url).items():
                setattr(settings, name, value)
            assert "message is on its way" in self.ask(browser, "demo")
            with pytest.raises(SMTPRecipientsRefused):
                worker.work()

    @pytest.mark.parametrize("path", ["/id/account/reset/x/y", "/id/account/reset/MQ/x-y", "/id/account/reset/_w/x-y"])
    def test_made_up_links_are_refused(self, browser: Browser, path: str) -> None:
        refused = browser.client.get(path)
        assert (refused.status_code, b"made by another instance" in refused.content) == (400, True)

    @pytest.mark.parametrize("path", ["/id/account/reset/x/y", "/id/account/email/x/y"])
    def test_links_refused_or_opened_are_told_to_no_other_page(self, browser: Browser, path: str) -> None:
        assert browser.client.get(path).headers["Referrer-Policy"] == "no-referrer"

    def test_it_is_offered_only_where_mail_can_be_sent(self, browser: Browser, settings: Any) -> None:
        assert "/id/account/reset" in browser.client.get("/id/account/login").content.decode()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        assert "/id/account/reset" not in browser.client.get("/id/account/login").content.decode()
        settings.EMAIL_HOST = "localhost"  # EMAIL_URL=smtp://localhost:25: said, and so meant
        assert "/id/account/reset" in browser.client.get("/id/account/login").content.decode()


class TestNewUsers:
    """An administrator makes a user, who chooses a password by a link."""

    @pytest.fixture
    def admin(self, demo: None) -> Client:
        client = Client()
        client.force_login(User.objects.get(login="admin"))
        return client

    def test_a_new_user_has_no_password_until_they_choose_one(self, admin: Client, browser: Browser) -> None:
        roles = {"RoleUsers-TOTAL_FORMS": "0", "RoleUsers-INITIAL_FORMS": "0"}
        form = {"login": "anna", "name_en": "Anna", "user_type": "InternalUser", "active": "on", **roles}
        made = admin.post(reverse("admin:identity_user_add"), form)
        assert made.status_code == 302, made.context["errors"]
        user = User.objects.get(login="anna")
        assert not user.has_usable_password()
        for guess in ("", "!", "anna"):
            assert browser.log_in("anna", guess).status_code == 200
        page = reverse("admin:identity_user_password_link", args=[user.pk])
        assert page in admin.get(reverse("admin:identity_user_change", args=[user.pk])).content.decode()
        assert "/id/account/reset/" not in admin.get(page).content.decode()
        shown = admin.post(page)
        assert "no-store" in shown.headers["Cache-Control"]
        link = re.search(r"http://testserver(/id/account/reset/[^<]+)<", shown.content.decode())
        assert link is not None
        at, shown_form = open_link(browser, link[1])
        new = {"new_password": "correct horse", "repeated": "correct horse"}
        assert browser.client.post(at, {**fields_of(shown_form), **new}).status_code == 302
        assert browser.log_in("anna", "correct horse").status_code == 302

    def test_there_is_no_link_for_who_does_not_log_in_nor_from_others(self, admin: Client, browser: Browser) -> None:
        service = reverse("admin:identity_user_password_link", args=[User.objects.get(login="service").pk])
        assert admin.post(service).status_code == 403
        browser.log_in("demo")
        other = reverse("admin:identity_user_password_link", args=[User.objects.get(login="admin").pk])
        assert browser.client.get(other).status_code == browser.client.post(other).status_code == 403

    def test_who_may_not_enter_the_admin_is_told_so(self, browser: Browser) -> None:
        assert b"who may not enter" not in browser.client.get("/admin/", follow=True).content
        browser.log_in("customer")
        page = browser.client.get("/admin/", follow=True)
        assert b"You are signed in as customer, who may not enter the administration" in page.content
        assert b"who may not enter" not in browser.client.get("/id/account/login").content
        at = page.redirect_chain[-1][0]
        assert browser.log_in("admin", at=at).headers["Location"] == "/admin/"
        assert browser.client.get("/admin/").status_code == 200
