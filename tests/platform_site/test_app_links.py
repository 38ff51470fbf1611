"""`/manage/apps/install` and `/manage/apps/uninstall`: links that register and remove trusted applications."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from audit.models import AuditEntry
from domain.entities.systems_extensions import Extension
from identity.applications import secret_matches
from identity.models import AccessToken, ReferenceToken, Session, TrustedApplication, User
from tests.identity.conftest import demo, fresh_process  # noqa: F401
from tests.identity.flows import token_request

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("demo"), pytest.mark.once]

INSTALL, UNINSTALL = "/manage/apps/install", "/manage/apps/uninstall"
URI = "my-app.example"
RETURN = "https://app.example/callback"
#: A confidential application that signs people in and runs as a service.
FULL = {
    "applicationName": "My App",
    "applicationUri": URI,
    "clientType": "Confidential",
    "redirectUri": RETURN,
    "impersonate": "all",
    "requestSecret": "true",
    "serviceAccess": "clientCredentials",
    "referenceTokens": "authenticatedUsers",
    "scope": "openid read update",
}


def signed_in(login: str) -> Client:
    """A browser of the user that enforces CSRF."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(login=login))
    return client


def link(path: str, *more: tuple[str, str], **parameters: str) -> str:
    return f"{path}?{urlencode([*parameters.items(), *more])}"


def confirmed(address: str, **form: str) -> Any:
    """The answer to an administrator's confirmation of the page."""
    client = signed_in("admin")
    page = client.get(address)
    assert page.status_code == 200, page.content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.content.decode())
    assert token
    return client.post(address, {"csrfmiddlewaretoken": token[1], **form})


def shown(response: Any, what: str) -> str:
    found = re.search(rf'id="{what}">([^<]+)<', response.content.decode())
    assert found, response.content.decode()
    return found[1]


def installed() -> TrustedApplication:
    return TrustedApplication.objects.select_related("system_user").get(application_uri=URI)


class TestInstall:
    def test_the_page_shows_what_will_be_registered_and_registers_nothing(self) -> None:
        page = signed_in("admin").get(link(INSTALL, **FULL)).content.decode()
        for text in ("My App", URI, RETURN, "AuthenticatedUsers", "openid read update", "shown once"):
            assert text in page
        assert not TrustedApplication.objects.filter(application_uri=URI).exists()

    def test_a_confirmed_application_works(self) -> None:
        response = confirmed(link(INSTALL, **FULL))
        assert response.headers["Cache-Control"].find("no-store") >= 0
        secret, application = shown(response, "secret"), installed()
        assert secret_matches(application, secret)
        assert (application.name, application.client_type, application.is_enabled) == ("My App", "Confidential", True)
        assert application.impersonate_as_internal_user_allowed
        assert application.impersonate_as_community_user_allowed
        assert application.login_urls == application.logout_urls == [RETURN]
        assert (application.access_tokens, application.scope) == ("AuthenticatedUsers", "openid read update")
        user = application.system_user
        assert user is not None
        assert (user.user_type, user.is_admin, user.roles.count()) == ("SystemUserNoLogin", False, 0)
        form = {"grant_type": "client_credentials", "client_id": f"{URI}-service", "client_secret": secret}
        assert token_request(Client(), **form).status_code == 200

    def test_only_the_uri_is_needed(self) -> None:
        assert confirmed(link(INSTALL, applicationUri=URI)).status_code == 200
        application = installed()
        assert (application.name, application.client_type, application.access_tokens) == (
            "(unnamed)", "Confidential", "None",
        )  # fmt: skip
        assert not application.is_interactive
        assert not application.system_user_allowed
        assert application.application_secret_hash is None

    def test_a_public_application(self) -> None:
        address = link(
            INSTALL, applicationUri=URI, clientType="public", impersonate="INTERNAL", redirectUri=RETURN, scope="openid"
        )
        assert confirmed(address).status_code == 200
        application = installed()
        assert application.is_public
        assert application.impersonate_as_internal_user_allowed
        assert not application.impersonate_as_community_user_allowed

    def test_a_reference_token_of_the_service(self) -> None:
        response = confirmed(link(INSTALL, applicationUri=URI, serviceAccess="referenceToken", scope="read"))
        token = shown(response, "reference-token")
        assert installed().access_tokens == "AdministratorsOnly"
        assert AuditEntry.objects.filter(kind="token.issued").latest("id").actor == "admin"
        answer = Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        # Its user has no rights yet.
        answer = Client().get(
            "/api/domain/odata/General_Products_Products", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 403

    def test_the_administrator_chooses_the_system_user(self) -> None:
        service = User.objects.get(login="service")
        count = User.objects.count()
        confirmed(link(INSTALL, **FULL), system_user=service.pk)
        assert installed().system_user == service
        assert User.objects.count() == count

    def test_somebody_who_is_no_system_user_is_refused_and_nothing_is_stored(self) -> None:
        response = confirmed(link(INSTALL, **FULL), system_user=User.objects.get(login="admin").pk)
        assert "problem" in response.content.decode()
        assert not TrustedApplication.objects.filter(application_uri=URI).exists()

    def test_a_registered_one_is_not_changed(self) -> None:
        before = TrustedApplication.objects.get(application_uri="WebDemoClient").scope
        response = signed_in("admin").get(link(INSTALL, **{**FULL, "applicationUri": "WebDemoClient"}))
        assert (response.status_code, "registered already" in response.content.decode()) == (409, True)
        confirmed(link(INSTALL, **FULL))
        assert signed_in("admin").get(link(INSTALL, **FULL)).status_code == 409
        assert TrustedApplication.objects.get(application_uri="WebDemoClient").scope == before

    def test_unknown_parameters_are_named_and_ignored(self) -> None:
        page = signed_in("admin").get(link(INSTALL, applicationUri=URI, scop="read"))
        assert "<code>scop</code>" in page.content.decode()

    @pytest.mark.parametrize(
        "wrong, parameter",
        [
            ({"applicationUri": ""}, "applicationUri"),
            ({"applicationUri": "a b"}, "applicationUri"),
            ({"applicationUri": "a\0b"}, "applicationUri"),
            ({"applicationUri": "x" * 255}, "applicationUri"),
            ({"applicationUri": "DomainApiSite"}, "applicationUri"),
            ({"applicationName": "x" * 255}, "applicationName"),
            ({"clientType": "Secret"}, "clientType"),
            ({"redirectUri": "javascript:alert(1)"}, "redirectUri"),
            ({"redirectUri": "http://app.example/"}, "redirectUri"),
            ({"redirectUri": "https://app.example/#x"}, "redirectUri"),
            ({"redirectUri": "https://app.example/,https://evil.example/"}, "redirectUri"),
            ({"redirectUri": "https://app.example/" + "x" * 500}, "redirectUri"),
            ({"redirectUri": ""}, "redirectUri"),
            ({"impersonate": "everybody"}, "impersonate"),
            ({"requestSecret": "yes"}, "requestSecret"),
            ({"serviceAccess": "all"}, "serviceAccess"),
            ({"referenceTokens": "some"}, "referenceTokens"),
            ({"scope": "read everything"}, "scope"),
            ({"scope": "x" * 1001}, "scope"),
            ({"serviceAccess": "referenceToken", "scope": "openid"}, "scope"),
            ({"clientType": "Public", "serviceAccess": "none"}, "requestSecret"),
            ({"clientType": "Public", "requestSecret": "false"}, "serviceAccess"),
            (
                {"clientType": "Public", "requestSecret": "false", "serviceAccess": "none", "impersonate": "none"},
                "impersonate",
            ),
        ],
    )
    def test_wrong_parameters_are_named(self, wrong: dict[str, str], parameter: str) -> None:
        client = signed_in("admin")
        for response in (client.get(link(INSTALL, **{**FULL, **wrong})),):
            assert response.status_code == 400
            assert f"<code>{parameter}</code>" in response.content.decode()

    def test_a_repeated_parameter_is_refused(self) -> None:
        response = signed_in("admin").get(link(INSTALL, ("redirectUri", "https://evil.example/"), **FULL))
        assert (response.status_code, "more than once" in response.content.decode()) == (400, True)

    def test_names_are_shown_as_text(self) -> None:
        page = signed_in("admin").get(link(INSTALL, applicationUri=URI, applicationName="<script>alert(1)</script>"))
        assert "<script>" not in page.content.decode()


@pytest.mark.parametrize("path", [INSTALL, UNINSTALL])
class TestWho:
    def test_strangers_sign_in_first(self, path: str) -> None:
        address = link(path, **FULL)
        response = Client().get(address)
        assert response.status_code == 302
        assert response.headers["Location"].startswith("/id/account/login?next=/manage/apps/")

    @pytest.mark.parametrize("login", ["demo", "customer"])
    def test_others_are_refused(self, path: str, login: str) -> None:
        client = Client()
        client.force_login(User.objects.get(login=login))
        for answered in (client.get(link(path, **FULL)), client.post(link(path, **FULL))):
            assert answered.status_code == 403
        assert not TrustedApplication.objects.filter(application_uri=URI).exists()

    def test_nothing_happens_without_the_form_of_the_page(self, path: str) -> None:
        count = TrustedApplication.objects.count()
        address = link(path, **{**FULL, "applicationUri": URI if path == INSTALL else "WebDemoClient"})
        assert signed_in("admin").post(address).status_code == 403  # no CSRF token
        assert signed_in("admin").put(address).status_code in {403, 405}
        assert TrustedApplication.objects.count() == count


class TestUninstall:
    def test_the_application_goes_with_all_that_it_has(self) -> None:
        secret = shown(confirmed(link(INSTALL, **{**FULL, "serviceAccess": "referenceToken"})), "secret")
        application = installed()
        form = {"grant_type": "client_credentials", "client_id": f"{URI}-service", "client_secret": secret}
        token = token_request(Client(), **form).json()["access_token"]
        ask = {"Authorization": f"Bearer {token}"}
        assert Client().get("/api/domain/odata/", headers=ask).status_code == 200
        Extension.objects.create(name="Its place", application_uri="x", extension_uri=URI)
        page = signed_in("admin").get(link(UNINSTALL, applicationUri=URI)).content.decode()
        assert "My App" in page
        assert "Its place" in page
        assert confirmed(link(UNINSTALL, applicationUri=URI)).status_code == 200
        assert not TrustedApplication.objects.filter(application_uri=URI).exists()
        for model in (AccessToken, ReferenceToken, Session):
            assert not model.objects.filter(application_id=application.pk).exists()
        assert not Extension.objects.exists()
        assert Client().get("/api/domain/odata/", headers=ask).status_code == 401
        assert confirmed(link(INSTALL, **FULL)).status_code == 200

    @pytest.mark.parametrize("uri, status", [("unknown", 404), ("", 400), ("DomainApiSite", 400), ("a b", 400)])
    def test_wrong_parameters(self, uri: str, status: int) -> None:
        assert signed_in("admin").get(link(UNINSTALL, applicationUri=uri)).status_code == status
        assert signed_in("admin").get(UNINSTALL).status_code == 400
