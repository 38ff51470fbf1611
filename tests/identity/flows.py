"""Authorization code and token requests as clients make them."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client

# The test client adds json() and more to responses, under a name that it keeps to itself.
Response = Any

REDIRECT = "http://localhost:5080/signin-callback"
LOGOUT_REDIRECT = "http://localhost:5080/signout-callback"
PUBLIC = "PublicDemoClient"
WEB = "WebDemoClient"
DUAL = "DualDemoClient"
SERVICE = "ServiceDemoClient"
SECRET = "DEMO"
TOKEN_URL = "/id/connect/token"


def pkce() -> tuple[str, str]:
    """(verifier, S256 challenge)."""
    verifier = secrets.token_urlsafe(48)
    return verifier, base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def token_request(client: Client, **form: str) -> Response:
    """A form-encoded token request."""
    return client.post(TOKEN_URL, urlencode(form), content_type="application/x-www-form-urlencoded")


def service_token(client: Client, client_id: str = SERVICE, **form: str) -> str:
    """A service's access token."""
    response = token_request(
        client, **{"grant_type": "client_credentials", "client_id": client_id, "client_secret": SECRET, **form}
    )
    assert response.status_code == 200, response.content
    return str(response.json()["access_token"])


def parameters_of(location: str) -> dict[str, str]:
    """The parameters of a redirect, from its fragment or query."""
    parts = urlsplit(location)
    return dict(parse_qsl(parts.fragment or parts.query))


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of a page."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return {unescape(name): unescape(value) for name, value in found}


@dataclass(slots=True)
class Browser:
    """A person's browser: follows this instance's own redirects, logs in where asked."""

    client: Client

    def authorize(self, **parameters: Any) -> Response:
        """The first answer of the authorization endpoint."""
        return self.client.get("/id/connect/authorize", self.ask(**parameters))

    def ask(self, **parameters: Any) -> dict[str, str]:
        """An authorization request; None leaves a default out."""
        asked = {
            "client_id": WEB,
            "redirect_uri": REDIRECT,
            "response_type": "code",
            "scope": "openid profile email read",
            "state": "xyz",
            "nonce": "n-1",
            **parameters,
        }
        return {name: str(value) for name, value in asked.items() if value is not None}

    def log_in(self, login: str, password: str | None = None, at: str = "/id/account/login") -> Response:
        """Fill the login page in, with its CSRF token and whatever it hides."""
        page = self.client.get(at)
        assert page.status_code == 200, page
        fields = fields_of(page.content.decode())
        return self.client.post(at, {**fields, "login": login, "password": password or login})

    def sign_in(self, login: str = "demo", password: str | None = None, **parameters: Any) -> Response:
        """Authorize, log in when asked to, and return the answer that goes to the application."""
        response = self.authorize(**parameters)
        for _ in range(4):
            location = response.headers.get("Location", "")
            if location.startswith("/id/account/login"):
                response = self.log_in(login, password, at=location)
            elif location.startswith("/id/"):
                response = self.client.get(location)
            else:
                return response
        raise AssertionError(f"went round in circles: {response}")

    def code(self, login: str = "demo", **parameters: Any) -> str:
        """A code for the application."""
        answer = parameters_of(self.sign_in(login, **parameters).headers["Location"])
        return answer["code"]

    def redeem(self, code: str, client_id: str = WEB, **form: str) -> Response:
        """The token request for a code."""
        secret = {} if client_id == PUBLIC else {"client_secret": SECRET}
        return token_request(
            self.client,
            **{
                "grant_type": "authorization_code",
                "client_id": client_id,
                "code": code,
                "redirect_uri": REDIRECT,
                **secret,
                **form,
            },
        )

    def tokens(self, login: str = "demo", **parameters: Any) -> dict[str, Any]:
        """The token answer of a whole sign-in."""
        response = self.redeem(self.code(login, **parameters), parameters.get("client_id", WEB))
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        return found
