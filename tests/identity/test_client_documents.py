"""Client ID metadata documents: off by default, within the policy, and at a bounded cost for whoever asks."""

from __future__ import annotations

import datetime
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client
from oauth2_provider.cimd import _fetch_slot

from foundation.egress.client import tls_context
from foundation.fields import utc_now
from identity.models import RegistrationPolicy, TrustedApplication
from identity.oauth import client_documents
from tests.identity.flows import Browser, Response, fields_of, parameters_of, pkce, token_request
from tests.support.certificates import certificate_for
from tests.support.measuring import assert_within, seconds_of
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

DISCOVERY, CALLBACK = "/id/.well-known/openid-configuration", "https://app.example/callback"
JSON = {"Content-Type": "application/json"}


@dataclass
class Publisher:
    """A host that publishes one document at every path; `changes` go over it, and `answer` is sent in its place."""

    receiver: LoopbackReceiver
    changes: dict[str, Any] = field(default_factory=dict)
    answer: Answer | None = None

    @property
    def url(self) -> str:
        return self.at("/app.json")

    def at(self, path: str) -> str:
        return self.receiver.url + path

    @property
    def asked(self) -> int:
        return len(self.receiver.requests)

    def respond(self, request: ReceivedRequest) -> Answer:
        document = {"client_id": self.at(request.path), "client_name": "Notes", "redirect_uris": [CALLBACK]}
        return self.answer or Answer(200, json.dumps({**document, **self.changes}).encode(), JSON)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_for("127.0.0.1", tmp_path_factory.mktemp("publisher"))


@pytest.fixture(scope="module")
def receiver(certificate: Path) -> Iterator[LoopbackReceiver]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with LoopbackReceiver(tls=context).running() as running:
        yield running


@pytest.fixture
def publisher(
    receiver: LoopbackReceiver, certificate: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Publisher]:
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls_context.cache_clear()
    client_documents.forget()
    receiver.requests.clear()
    publisher = Publisher(receiver)
    receiver.respond_with = publisher.respond
    yield publisher
    tls_context.cache_clear()


@pytest.fixture
def policy(demo: None, publisher: Publisher) -> RegistrationPolicy:
    """Documents of the publisher are allowed, and new applications are enabled at once."""
    host = publisher.receiver.url.removeprefix("https://")
    return RegistrationPolicy.objects.create(document_hosts=host, needs_approval=False)


def authorize(browser: Browser, client_id: str, **parameters: Any) -> Response:
    challenge = {"code_challenge": pkce()[1], "code_challenge_method": "S256"}
    asked = {"client_id": client_id, "redirect_uri": CALLBACK, "scope": "openid", **challenge, **parameters}
    return browser.authorize(**asked)


def refused(response: Response, text: str, status: int = 400) -> None:
    """A page that says `text`; nobody is redirected."""
    page = response.content.decode()
    assert (response.status_code, "Location" in response.headers) == (status, False), page
    assert text in page, page


def accepted(response: Response) -> None:
    assert response.headers["Location"].startswith("/id/account/login"), response.content


def stored() -> list[TrustedApplication]:
    return list(TrustedApplication.objects.filter(registration_source="cimd"))


def expire(age: datetime.timedelta = datetime.timedelta(seconds=1)) -> None:
    TrustedApplication.objects.filter(registration_source="cimd").update(document_expires_utc=utc_now() - age)


class TestUse:
    def test_it_is_off_by_default(self, browser: Browser, publisher: Publisher) -> None:
        refused(authorize(browser, publisher.url), "not that of a trusted application")
        RegistrationPolicy.objects.create(is_allowed=True, needs_approval=False)
        refused(authorize(browser, publisher.url), "not that of a trusted application")
        assert Client().get(DISCOVERY).json()["client_id_metadata_document_supported"] is False
        assert (publisher.asked, stored()) == (0, [])

    def test_somebody_signs_in(self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy) -> None:
        assert Client().get(DISCOVERY).json()["client_id_metadata_document_supported"] is True
        verifier, challenge = pkce()
        asked = {
            "client_id": publisher.url, "redirect_uri": CALLBACK, "scope": "openid",
            "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        text = browser.sign_in(**asked).content.decode()
        assert "Notes asks for access" in text
        assert publisher.receiver.url.removeprefix("https://") in text
        assert "app.example" in text
        allowed = text.split('name="_consent" value="')[1].split('"')[0]
        answer = browser.client.get("/id/connect/authorize", {**fields_of(text), "_consent": allowed})
        code = parameters_of(answer.headers["Location"])["code"]
        form = {"client_id": publisher.url, "redirect_uri": CALLBACK, "code_verifier": verifier, "code": code}
        tokens = token_request(browser.client, grant_type="authorization_code", **form)
        assert tokens.status_code == 200, tokens.content
        assert "refresh_token" not in tokens.json()
        assert "asks for access" in browser.sign_in(**asked).content.decode(), "people are always asked"
        assert parameters_of(authorize(browser, publisher.url, prompt="none").headers["Location"])["error"] == (
            "consent_required"
        )
        assert publisher.asked == 1, "the document is fresh"

    def test_the_application_can_do_nothing_else(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        inside = "http://169.254.169.254/latest/meta-data"
        names = ("jwks_uri", "backchannel_logout_uri", "frontchannel_logout_uri", "logo_uri")
        publisher.changes = {
            **dict.fromkeys(names, inside), "scope": "openid read scim", "response_types": ["code", "token"],
            "grant_types": ["authorization_code", "refresh_token", "client_credentials", 1],
        }  # fmt: skip
        accepted(authorize(browser, publisher.url))
        [application] = stored()
        assert (application.client_id, application.name) == (publisher.url, "Notes")
        assert (application.client_type, application.scope, application.access_tokens) == ("Public", "openid", "None")
        assert inside not in str(application.__dict__)
        assert not application.system_user_allowed
        assert not application.device_flow_allowed
        for grant in ("client_credentials", "refresh_token", "urn:ietf:params:oauth:grant-type:token-exchange"):
            answer = token_request(Client(), grant_type=grant, client_id=publisher.url, refresh_token="x")
            assert answer.json()["error"] == "unauthorized_client", answer.content
        plain = browser.authorize(client_id=publisher.url, redirect_uri=CALLBACK, scope="openid")
        assert parameters_of(plain.headers["Location"])["error"] == "invalid_request", "PKCE is required"

    def test_it_waits_for_an_administrator(
        self, browser: Browser, admin_client: Client, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        RegistrationPolicy.objects.update(needs_approval=True)
        refused(authorize(browser, publisher.url), "ask an administrator")
        [application] = stored()
        page = admin_client.get(f"/admin/identity/trustedapplication/{application.pk}/change/").content.decode()
        assert publisher.url in page
        assert "cimd" in page
        assert "Until when that document is used" in page
        expire()
        refused(authorize(browser, publisher.url), "ask an administrator")
        assert publisher.asked == 1, "a disabled application causes no requests"
        TrustedApplication.objects.filter(pk=application.pk).update(is_enabled=True)
        accepted(authorize(browser, publisher.url))
        assert publisher.asked == 2

    def test_it_pushes_its_requests(self, publisher: Publisher, policy: RegistrationPolicy) -> None:
        form = {
            "client_id": publisher.url, "redirect_uri": CALLBACK, "response_type": "code", "scope": "openid",
            "code_challenge": pkce()[1], "code_challenge_method": "S256",
        }  # fmt: skip
        pushed = Client().post("/id/connect/par", "&".join(f"{name}={value}" for name, value in form.items()),
                               content_type="application/x-www-form-urlencoded")  # fmt: skip
        assert pushed.status_code == 201, pushed.content
        form["client_id"] = publisher.at("/x/%2e%2e/app.json").replace("%", "%25")
        wrong = Client().post("/id/connect/par", "&".join(f"{name}={value}" for name, value in form.items()),
                              content_type="application/x-www-form-urlencoded")  # fmt: skip
        assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
        assert "dot segments" in wrong.json()["error_description"]

    def test_an_application_with_a_url_as_its_id_is_the_administrators(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        TrustedApplication.objects.create(
            application_uri=publisher.url, name="Ours", client_type="Public", scope="openid",
            impersonate_login_url=CALLBACK, impersonate_as_internal_user_allowed=True,
        )  # fmt: skip
        accepted(authorize(browser, publisher.url))
        assert (publisher.asked, stored()) == (0, [])

    def test_a_url_that_ends_like_a_service_is_another_application(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        for url in (publisher.url, publisher.url + "-service"):
            accepted(authorize(browser, url))
        assert {application.application_uri for application in stored()} == {publisher.url, publisher.url + "-service"}

    def test_two_requests_at_once_store_one_application(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        create = client_documents._create

        def other_first(*given: Any) -> TrustedApplication:
            create(*given)
            return create(*given)

        with patch("identity.oauth.client_documents._create", other_first):
            accepted(authorize(browser, publisher.url))
        assert len(stored()) == 1


def text(status: int = 200, body: bytes = b"{}", kind: str = "application/json", **headers: str) -> Answer:
    return Answer(status, body, {"Content-Type": kind, **headers})


class TestRefusals:
    @pytest.mark.parametrize(
        "answer, reason",
        [
            (text(404), "HTTP 404"), (text(500), "status 500"), (text(302, Location="/good.json"), "HTTP 302"),
            (text(kind="text/html"), "not JSON"),
            (text(body=b"{"), "not valid JSON"), (text(body=b""), "not valid JSON"),
            (text(body=b"[]"), "must be a JSON object"), (text(body=b"[" * 9000), "not JSON"),
            (text(body=b'{"x": "' + b"x" * 20_000 + b'"}'), "maximum allowed size"),
            (text(body=b'"' + b"x" * 70_000 + b'"'), "maximum allowed size"), (text(body=b"\xff"), "not valid JSON"),
        ],
        ids=lambda value: str(getattr(value, "status", value)),
    )  # fmt: skip
    def test_a_document_that_is_none(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, answer: Answer, reason: str
    ) -> None:
        publisher.answer = answer
        refused(authorize(browser, publisher.url), reason)
        assert (publisher.asked, stored()) == (1, [])

    @pytest.mark.parametrize(
        "changes, reason",
        [
            ({"client_id": "https://other.example/app.json"}, "another client_id"), ({"client_id": None}, "another"),
            ({"client_secret": "x"}, "client_secret"), ({"client_secret_expires_at": 0}, "client_secret"),
            ({"token_endpoint_auth_method": "client_secret_basic"}, "must be public"),
            ({"token_endpoint_auth_method": "private_key_jwt"}, "must be public"),
            ({"redirect_uris": []}, "redirect_uris"), ({"redirect_uris": "https://app.example/"}, "redirect_uris"),
            ({"redirect_uris": ["javascript:alert(1)"]}, "A redirect URI is"),
            ({"redirect_uris": [CALLBACK, "https://*.example/"]}, "A redirect URI is"),
            ({"grant_types": ["implicit"]}, "grant type"), ({"grant_types": {}}, "grant_types"),
            ({"response_types": ["token"]}, "response_types"), ({"client_name": "a\u202eb"}, "client_name"),
            ({"client_name": ["x"]}, "client_name"), ({"scope": ["openid"]}, "scope"),
        ],
        ids=str,
    )  # fmt: skip
    def test_metadata_that_cannot_be_used(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, changes: dict[str, Any], reason: str
    ) -> None:
        publisher.changes = changes
        refused(authorize(browser, publisher.url), reason)
        assert stored() == []

    @pytest.mark.parametrize(
        "url, reason",
        [
            ("http://{host}/app.json", "https scheme"), ("https://{host}/app.json#x", "fragment"),
            ("https://{host}/app.json#", "fragment"), ("https://{host}/a/../app.json", "dot"),
            ("https://{host}/a/./app.json", "dot"), ("https://{host}/a/%2e%2E/app.json", "dot segments"),
            ("https://user@{host}/app.json", "userinfo"), ("https://:x@{host}/app.json", "userinfo"),
            ("https://@{host}/app.json", "user name"), ("https://{host}", "path"),
            ("https://{host}/a b", "a space"), ("https://{host}\\\\@other/", "userinfo"),
            ("https://[::1/app.json", "cannot be used"), ("https://{host}/" + "x" * 250, "254 characters"),
            ("https://other.example/app.json", "other.example are not allowed"),
            ("https://127.0.0.1/app.json", "127.0.0.1 are not allowed"), ("https://127.1/app.json", "not allowed"),
            ("https://{host}.evil.example/app.json", "cannot be used"), ("https:///app.json", "cannot be used"),
        ],
    )  # fmt: skip
    def test_a_url_that_is_none(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, url: str, reason: str
    ) -> None:
        refused(authorize(browser, url.replace("{host}", policy.document_hosts)), reason)
        assert (publisher.asked, stored()) == (0, [])

    def test_an_address_inside_is_not_asked(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, settings: Any
    ) -> None:
        """Also under a name: localhost is listed, and leads inside."""
        settings.EGRESS_ALLOW = []
        port = policy.document_hosts.partition(":")[2]
        RegistrationPolicy.objects.update(document_hosts=f"{policy.document_hosts} localhost:{port} 169.254.169.254")
        for url in (publisher.url, publisher.url.replace("127.0.0.1", "localhost"), "https://169.254.169.254/latest/"):
            refused(authorize(browser, url), "address")
        assert (publisher.asked, stored()) == (0, [])

    def test_a_redirect_uri_that_is_not_in_the_document(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        for uri in ("https://evil.example/callback", CALLBACK + "/x", publisher.url):
            refused(authorize(browser, publisher.url, redirect_uri=uri), "not one of the application")

    def test_a_host_that_is_not_allowed_any_more(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        accepted(authorize(browser, publisher.url))
        RegistrationPolicy.objects.update(document_hosts="app.example")
        refused(authorize(browser, publisher.url), "are not allowed")

    def test_the_administrator_lists_hosts(self, demo: None, admin_client: Client) -> None:
        add = "/admin/identity/registrationpolicy/add/"
        for wrong in ("*", "https://app.example", "app.example/x", "*.example", "[::1]", "app.example:0"):
            page = admin_client.post(add, {"document_hosts": f"good.example {wrong}", "scopes": "openid"})
            assert "is not a host name" in page.content.decode(), wrong
        admin_client.post(add, {"document_hosts": "App.example  .Other.example\n x.example:8443", "scopes": "openid"})
        policy = RegistrationPolicy.objects.get()
        assert policy.document_hosts == "app.example .other.example x.example:8443"
        assert not policy.is_allowed
        for host, port, allowed in (
            ("app.example", 443, True), ("a.app.example", 443, False), ("app.example", 8443, False),
            ("a.other.example", 443, True), ("notother.example", 443, False), ("x.example", 8443, True),
        ):  # fmt: skip
            assert policy.admits_document(host, port) is allowed, host


class TestFreshness:
    def test_a_new_list_of_redirect_uris_takes_effect(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        accepted(authorize(browser, publisher.url))
        TrustedApplication.objects.filter(application_uri=publisher.url).update(scope="openid email")
        [before] = stored()
        publisher.changes = {"redirect_uris": ["https://new.example/"], "client_name": "New", "scope": "openid profile"}
        accepted(authorize(browser, publisher.url))
        expire()
        refused(authorize(browser, publisher.url), "not one of the application")
        accepted(authorize(browser, publisher.url, redirect_uri="https://new.example/"))
        [after] = stored()
        assert (after.name, after.scope) == ("New", "openid email"), "the scopes are the administrator's"
        assert after.object_version == before.object_version + 1
        assert after.document_expires_utc is not None
        assert after.document_expires_utc > utc_now()
        assert publisher.asked == 2

    @pytest.mark.parametrize(
        "cache, seconds", [("max-age=600", 600), ("no-store", 300), ("", 86400), ("max-age=9999999", 86400)]
    )
    def test_it_is_fresh_as_long_as_the_host_says(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, cache: str, seconds: int
    ) -> None:
        body = json.dumps({"client_id": publisher.url, "redirect_uris": [CALLBACK]}).encode()
        publisher.answer = Answer(200, body, {**JSON, "Cache-Control": cache})
        accepted(authorize(browser, publisher.url))
        [application] = stored()
        assert application.document_expires_utc is not None
        left = (application.document_expires_utc - utc_now()).total_seconds()
        assert seconds - 30 < left <= seconds
        assert application.name == "127.0.0.1", "the host, where the document has no name"

    @pytest.mark.parametrize("changes", [{"client_id": "https://other.example/x"}, {"redirect_uris": []}])
    def test_a_document_that_became_wrong_is_refused(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, changes: dict[str, Any]
    ) -> None:
        accepted(authorize(browser, publisher.url))
        expire()
        publisher.changes = changes
        refused(authorize(browser, publisher.url), "client_id")
        [application] = stored()
        assert application.login_urls == [CALLBACK]

    def test_the_last_document_is_used_for_a_day_while_the_host_fails(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        accepted(authorize(browser, publisher.url))
        publisher.answer = Answer(503)
        expire()
        for _ in range(3):
            accepted(authorize(browser, publisher.url))
        assert publisher.asked == 2, "once in a minute"
        expire(datetime.timedelta(days=1, seconds=1))
        refused(authorize(browser, publisher.url), "status 503")
        publisher.answer = None
        client_documents.forget()
        accepted(authorize(browser, publisher.url))


class TestCost:
    def test_a_url_that_failed_is_asked_once_in_a_minute(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publisher.answer = Answer(404)
        for _ in range(15):
            refused(authorize(browser, publisher.url), "HTTP 404")
        assert publisher.asked == 1
        publisher.answer = None
        monkeypatch.setattr(client_documents, "FAILURE_SECONDS", 0)
        accepted(authorize(browser, publisher.url))

    def test_an_address_causes_few_requests(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        accepted(authorize(browser, publisher.url))
        publisher.answer = Answer(404)
        answers = [authorize(browser, publisher.at(f"/{number}.json")) for number in range(25)]
        assert {answer.status_code for answer in answers} == {400, 429}
        assert publisher.asked <= 11
        limited = next(answer for answer in answers if answer.status_code == 429)
        assert int(limited.headers["Retry-After"]) > 0
        accepted(authorize(browser, publisher.url))
        pushed = Client().post(
            "/id/connect/par",
            f"client_id={publisher.at('/new.json')}",
            content_type="application/x-www-form-urlencoded",
        )
        assert pushed.status_code == 429, pushed.content
        other = Client(REMOTE_ADDR="192.0.2.7")
        refused(authorize(Browser(other), publisher.at("/new.json")), "HTTP 404")

    @pytest.mark.alone
    def test_a_slow_host_holds_nobody_up(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        publisher.answer = Answer(200, b"{}", JSON, delay_seconds=5)

        def ask() -> None:
            for _ in range(3):
                refused(authorize(browser, publisher.url), "no complete answer within 1 seconds")

        assert_within(4.5, lambda: seconds_of(ask))
        assert publisher.asked == 1

    def test_few_requests_wait_at_once(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy
    ) -> None:
        with ExitStack() as busy:
            assert all(busy.enter_context(_fetch_slot()) for _ in range(4))
            refused(authorize(browser, publisher.url), "Try again later")
            assert publisher.asked == 0
        accepted(authorize(browser, publisher.url))

    def test_the_table_has_a_limit(
        self, browser: Browser, publisher: Publisher, policy: RegistrationPolicy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client_documents, "MAX_APPLICATIONS", 1)
        accepted(authorize(browser, publisher.url))
        refused(authorize(browser, publisher.at("/second.json")), "too many applications")
        accepted(authorize(browser, publisher.url))
        assert len(stored()) == 1
