"""A running instance with two web processes, and a client library that knows nothing of us (Authlib)."""

from __future__ import annotations

import re
import secrets
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.jwk import KeySet

from identity.applications import secret_hash
from tests.support.platform import LivePlatform
from tests.support.processes import connection_to_each, cpu_seconds

pytestmark = pytest.mark.process
REDIRECT = "http://localhost:5080/signin-callback"
LOGOUT_REDIRECT = "http://localhost:5080/signout-callback"


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "input" and found.get("type") == "hidden":
            self.hidden[found["name"]] = found["value"]


def metadata_of(platform: LivePlatform) -> dict[str, Any]:
    sites = requests.get(f"{platform.base_url}/sys/auto-discovery", timeout=60).json()["WebSites"]
    issuer = next(site["Url"] for site in sites if site["Type"] == "ID")
    found: dict[str, Any] = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=60).json()
    assert found["issuer"] == issuer
    return found


def sign_in(url: str, login: str) -> tuple[requests.Session, str]:
    """Walk from the authorization URL through the login page to the application's address; (browser, that address)."""
    browser = requests.Session()
    answer = browser.get(url, allow_redirects=False, timeout=60)
    for _ in range(6):
        if answer.is_redirect:
            target = urljoin(answer.url, answer.headers["Location"])
            if target.startswith(REDIRECT):
                return browser, target
            answer = browser.get(target, allow_redirects=False, timeout=60)
            continue
        page = _Fields()
        page.feed(answer.text)
        form = {**page.hidden, "login": login, "password": login}
        answer = browser.post(answer.url, data=form, headers={"Referer": answer.url}, allow_redirects=False, timeout=60)
    raise AssertionError(f"no way to the application: {answer.status_code} {answer.url}")


def test_a_client_library_goes_the_whole_way(live_platform: LivePlatform) -> None:
    metadata = metadata_of(live_platform)
    client = OAuth2Session(
        "WebDemoClient",
        "DEMO",
        scope="openid profile email offline_access read",
        redirect_uri=REDIRECT,
        code_challenge_method="S256",
    )
    verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(12)
    url, state = client.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce
    )
    browser, answer = sign_in(url, "demo")
    assert parse_qs(urlsplit(answer).query)["iss"] == [metadata["issuer"]]
    token = client.fetch_token(
        metadata["token_endpoint"], authorization_response=answer, state=state, code_verifier=verifier
    )

    keys = KeySet.import_key_set(requests.get(metadata["jwks_uri"], timeout=60).json())
    claims = jwt.decode(token["id_token"], keys, algorithms=["RS256"]).claims
    registry = jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": metadata["issuer"]},
        aud={"essential": True, "value": "WebDemoClient"},
        nonce={"essential": True, "value": nonce},
        exp={"essential": True},
    )
    registry.validate(claims)

    assert client.get(metadata["userinfo_endpoint"]).json()["sub"] == claims["sub"] == "demo"
    fresh = client.refresh_token(metadata["token_endpoint"])
    assert fresh["access_token"] != token["access_token"]
    assert client.get(metadata["userinfo_endpoint"]).status_code == 200

    out = browser.get(
        metadata["end_session_endpoint"],
        params={"id_token_hint": token["id_token"], "post_logout_redirect_uri": LOGOUT_REDIRECT, "state": "bye"},
        allow_redirects=False,
        timeout=60,
    )
    assert out.headers["Location"] == f"{LOGOUT_REDIRECT}?state=bye"
    # The process that asks may be another than the one that signed out.
    assert [client.get(metadata["userinfo_endpoint"]).status_code for _ in range(6)] == [401] * 6


def test_the_login_takes_as_long_for_an_unknown_user_as_for_a_wrong_password(live_platform: LivePlatform) -> None:
    """Spec 01, 1.6, with the real password hash, in processor time of the server: the machine may be busy."""
    servers = list(connection_to_each(live_platform.base_url, live_platform.process.pid))
    url = f"{live_platform.base_url}/id/account/login"
    browser = requests.Session()
    page = _Fields()
    page.feed(browser.get(url, timeout=60).text)
    spent: dict[str, list[float]] = {"known": [], "unknown": [], "not for people": []}
    answers: set[tuple[int, str]] = set()

    def fail(kind: str, login: str) -> None:
        before = cpu_seconds(servers)
        form = {**page.hidden, "login": login, "password": "wrong"}
        answer = browser.post(url, data=form, headers={"Referer": url}, timeout=60)
        spent[kind].append(cpu_seconds(servers) - before)
        shown = re.sub(r'value="[^"]*"', "", answer.text)
        answers.add((answer.status_code, shown))

    for round_ in range(3):
        # Names in turn, so that none is throttled.
        for kind, login in (
            ("known", ("demo", "admin", "customer")[round_ % 3]),
            ("unknown", f"nobody-{round_}"),
            ("not for people", ("service", "SERVICE")[round_ % 2]),
        ):
            fail(kind, login)
    assert [status for status, _ in answers] == [200]
    known, *others = (statistics.median(seconds) for seconds in spent.values())
    # A check of a real Argon2id hash is most of it; leaving it out would make the ratio some 20.
    assert known > 0.02, spent
    for other in others:
        assert 0.6 < other / known < 1.6, spent


@pytest.fixture
def processes(live_platform: LivePlatform) -> Iterator[list[HTTPConnection]]:
    """A connection to each of the instance's two web processes."""
    found = connection_to_each(live_platform.base_url, live_platform.process.pid)
    yield list(found.values())
    for connection in found.values():
        connection.close()


@pytest.fixture
def service(live_platform: LivePlatform) -> Iterator[Service]:
    """A service application with a system user of its own."""
    made = Service.make(live_platform)
    yield made
    made.remove()


class TestTakingAway:
    """Spec 01, 1.5: from the next request on, with the token warm in both processes of the instance."""

    def test_revoking_the_token(self, processes: list[HTTPConnection], service: Service) -> None:
        form = {"token": service.token, "client_id": service.name, "client_secret": "DEMO"}
        url = f"{service.platform.base_url}/id/connect/revocation"
        acts_everywhere(processes, service.token, lambda: requests.post(url, data=form, timeout=60).raise_for_status())

    def test_disabling_the_application(self, processes: list[HTTPConnection], service: Service) -> None:
        acts_everywhere(processes, service.token, lambda: service.patch(service.application, {"IsEnabled": False}))

    def test_disabling_the_user(self, processes: list[HTTPConnection], service: Service) -> None:
        acts_everywhere(processes, service.token, lambda: service.patch(service.user, {"Active": False}))


@dataclass(frozen=True, slots=True)
class Service:
    """`application` and `user` are addresses of entities, relative to the service root."""

    platform: LivePlatform
    admin: dict[str, str]
    name: str
    application: str
    user: str
    token: str

    @staticmethod
    def make(platform: LivePlatform) -> Service:
        name = f"taken-away-{secrets.token_hex(4)}"
        admin = {"Authorization": f"Bearer {_token(platform, 'ServiceDemoClient')}"}

        def create(entity_set: str, body: dict[str, Any]) -> str:
            answer = requests.post(f"{platform.odata_url}{entity_set}", json=body, headers=admin, timeout=60)
            assert answer.status_code == 201, answer.text
            return str(answer.json()["@odata.id"])

        system_user = {"Login": f"of-{name}", "Name": {"EN": name}, "UserType": "SystemUserNoLogin"}
        user = create("Systems_Security_Users", system_user)
        application = create(
            "Systems_Security_TrustedApplications",
            {
                "ApplicationUri": name,
                "Name": name,
                "ClientType": "Confidential",
                "ApplicationSecretHash": secret_hash("DEMO"),
                "SystemUserAllowed": True,
                "SystemUser@odata.bind": user,
                "Scope": "read",
            },
        )
        return Service(platform, admin, name, application, user, _token(platform, name))

    def patch(self, entity: str, body: dict[str, Any]) -> None:
        answer = requests.patch(f"{self.platform.odata_url}{entity}", json=body, headers=self.admin, timeout=60)
        assert answer.status_code == 204, answer.text

    def remove(self) -> None:
        for entity in (self.application, self.user):
            requests.delete(f"{self.platform.odata_url}{entity}", headers=self.admin, timeout=60)


def _token(platform: LivePlatform, client_id: str) -> str:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", data=form, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def acts_everywhere(processes: list[HTTPConnection], token: str, take_away: Callable[[], object]) -> None:
    """Nobody who asks after the change gets in, and nobody was refused before."""

    def allowed(connection: HTTPConnection) -> bool:
        headers = {"Authorization": f"Bearer {token}"}
        # A system user without roles: what it may read is another question than who it is.
        connection.request("GET", "/api/domain/odata/", headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in {200, 401}, answer.status
        return answer.status == 200

    for _ in range(2):
        assert all(allowed(connection) for connection in processes)
    take_away()
    assert [allowed(connection) for connection in processes] == [False, False]
