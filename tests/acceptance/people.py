"""People who sign in, with a browser's cookies and redirects and the login page's form."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import requests

from tests.acceptance.caller import Caller, answered

WEB = "WebDemoClient"
PUBLIC = "PublicDemoClient"
DUAL = "DualDemoClient"
SECRET = "DEMO"
RETURN_TO = "http://localhost:5080/signin-callback"
SIGNED_OUT = "http://localhost:5080/signout-callback"
_MOST_REDIRECTS = 8


class Fields(HTMLParser):
    """What a browser would send of the forms of a page: hidden, text and checked inputs, selects, text areas."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._select = self._area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name, kind = given.get("name", ""), given.get("type", "text")
        if tag == "input" and name and kind not in {"submit", "checkbox", "radio", "file", "button"}:
            self.values[name] = given.get("value", "")
        elif tag == "input" and name and "checked" in given:
            self.values[name] = given.get("value") or "on"
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in given:
            self.values[self._select] = given.get("value", "")
        elif tag == "textarea":
            self._area = name
            self.values[name] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] += data


@dataclass(slots=True)
class Browser:
    """A browser without a screen: keeps cookies; follows redirects of this instance and none beyond."""

    site: Caller
    http: requests.Session = field(default_factory=requests.Session)

    def get(self, address: str) -> requests.Response:
        """One request, redirects not followed."""
        return self.http.get(urljoin(self.site.base_url, address), timeout=60, allow_redirects=False)

    def submit(self, page: requests.Response, **values: str) -> requests.Response:
        """Send the page's form with these values filled in."""
        form = {**Fields(page.text).values, **values}
        return self.http.post(page.url, data=form, headers={"Referer": page.url}, timeout=60, allow_redirects=False)

    def log_in(self, login: str, password: str | None = None) -> requests.Response:
        """By the login page itself."""
        return self.submit(self.get("/id/account/login"), login=login, password=password or login)

    def authorize(self, **parameters: str) -> requests.Response:
        """The first answer to an authorization request; an empty value leaves a parameter out."""
        asked = {
            "client_id": WEB,
            "redirect_uri": RETURN_TO,
            "response_type": "code",
            "scope": "openid profile offline_access read update",
            "state": secrets.token_urlsafe(8),
            "nonce": secrets.token_urlsafe(8),
            **parameters,
        }
        return self.get(f"/id/connect/authorize?{urlencode({n: v for n, v in asked.items() if v})}")

    def sign_in(self, login: str, **parameters: str) -> str:
        """The address that the application is called back at, after the login page where it is shown."""
        answer = self.authorize(**parameters)
        for _ in range(_MOST_REDIRECTS):
            if not answer.is_redirect:
                answer = self.submit(answered(answer, 200), login=login, password=login)
                continue
            target = urljoin(answer.url, answer.headers["Location"])
            if not target.startswith(f"{self.site.base_url}/"):
                return target
            answer = self.get(target)
        raise AssertionError(f"no way to the application: {answer.status_code} {answer.url}")

    def code(self, login: str, **parameters: str) -> str:
        """An authorization code."""
        return parameters_of(self.sign_in(login, **parameters))["code"]


@dataclass(slots=True)
class Person:
    """Somebody signed in: the browser, the token response, and a caller with the access token if there is one."""

    browser: Browser
    tokens: dict[str, Any]

    @classmethod
    @contextmanager
    def signed_in(cls, site: Caller, login: str, **parameters: str) -> Iterator[Person]:
        """Signed in as long as the block lasts; the session's licence slot is free afterwards."""
        browser = Browser(site)
        client_id = parameters.get("client_id", WEB)
        answer = redeem(site, browser.code(login, **parameters), client_id=client_id)
        person = cls(browser, answered(answer, 200).json())
        yield person
        person.sign_out()

    @property
    def api(self) -> Caller:
        """A client with this person's access token."""
        return self.browser.site.with_token(self.tokens["access_token"])

    def sign_out(self, **parameters: str) -> requests.Response:
        """End the sign-in by the end session endpoint."""
        query = urlencode({"id_token_hint": self.tokens["id_token"], **parameters})
        return self.browser.get(f"/id/connect/endsession?{query}")


def token_request(site: Caller, **form: str) -> requests.Response:
    """A request of the token endpoint by the confidential application; an empty value leaves a field out."""
    given = {"client_id": WEB, "client_secret": SECRET, **form}
    return site.form("/id/connect/token", **{name: value for name, value in given.items() if value})


def redeem(site: Caller, code: str, /, **form: str) -> requests.Response:
    """The token request for a code."""
    return token_request(site, **{"grant_type": "authorization_code", "code": code, "redirect_uri": RETURN_TO, **form})


def pkce() -> tuple[str, str]:
    """(verifier, S256 challenge)."""
    verifier = secrets.token_urlsafe(48)
    return verifier, base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def parameters_of(address: str) -> dict[str, str]:
    """The parameters in an address's query or fragment."""
    parts = urlsplit(address)
    return dict(parse_qsl(parts.fragment or parts.query))


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JWT, unverified."""
    return _part(token, 1)


def header_of(token: str) -> dict[str, Any]:
    """The header of a JWT."""
    return _part(token, 0)


def _part(token: str, number: int) -> dict[str, Any]:
    encoded = token.split(".")[number]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    return found
