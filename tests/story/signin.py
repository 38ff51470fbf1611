"""Signing in as a person does, by plain HTTP: authorization code flow with PKCE, login form with its CSRF token."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import parse_qs, urljoin, urlsplit

import requests

from tests.story.narrator import TIMEOUT_SECONDS, Narrator, StoryFailed

_MOST_STEPS = 10


@dataclass(frozen=True, slots=True)
class SignedIn:
    """One sign-in: the browser with its cookies, and the tokens that the application got."""

    browser: requests.Session
    access_token: str
    id_token: str


@dataclass(slots=True)
class Form:
    """A form of a page: where it goes, what it holds."""

    action: str = ""
    fields: dict[str, str] | None = None
    login_field: str = ""
    password_field: str = ""


class _FormFinder(HTMLParser):
    """Finds the form that asks for a password."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Form | None = None
        self._current: Form | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._current = Form(attributes.get("action", ""), {})
        elif tag == "input" and self._current is not None and self._current.fields is not None:
            name, kind = attributes.get("name", ""), attributes.get("type", "text")
            if kind == "password":
                self._current.password_field = name
                self.found = self._current
            elif kind in {"text", "email"}:
                self._current.login_field = self._current.login_field or name
            elif kind == "hidden" and name:
                self._current.fields[name] = attributes.get("value", "")


def sign_in(
    narrator: Narrator,
    metadata: dict[str, str],
    *,
    client_id: str,
    redirect_uri: str,
    login: str,
    password: str,
    scope: str,
    quiet: bool = False,
) -> SignedIn:
    """Sign in once, with a browser of its own; so each sign-in is a session of its own (`sid`)."""
    browser = requests.Session()
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    state = secrets.token_urlsafe(12)
    asked = {
        "client_id": client_id,
        "response_type": "code",
        "scope": scope,
        "redirect_uri": redirect_uri,
        "state": state,
        "nonce": secrets.token_urlsafe(12),
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    response = narrator.send(
        "GET", metadata["authorization_endpoint"], params=asked, expect=(200, 302, 303), http=browser, quiet=quiet
    )
    answer = _walk(narrator, browser, response, redirect_uri, login=login, password=password, quiet=quiet)
    if answer.get("state") != state or "code" not in answer:
        raise StoryFailed(f"the sign-in came back with {answer}")
    tokens = narrator.send(
        "POST",
        metadata["token_endpoint"],
        form={
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": answer["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        },
        quiet=quiet,
    ).json()
    return SignedIn(browser, tokens["access_token"], tokens["id_token"])


def sign_out(narrator: Narrator, metadata: dict[str, str], signed_in: SignedIn, *, quiet: bool = False) -> None:
    """End the sign-in at the identity provider; its licence slot is free when the answer is there."""
    narrator.send(
        "GET",
        metadata["end_session_endpoint"],
        params={"id_token_hint": signed_in.id_token},
        expect=(200, 302, 303),
        http=signed_in.browser,
        quiet=quiet,
    )


def _walk(
    narrator: Narrator,
    browser: requests.Session,
    response: requests.Response,
    redirect_uri: str,
    *,
    login: str,
    password: str,
    quiet: bool,
) -> dict[str, str]:
    """Follow redirects and fill in the login form, until the application's address is reached; its query."""
    for _ in range(_MOST_STEPS):
        if response.is_redirect:
            target = urljoin(response.url, response.headers["Location"])
            if target.startswith(redirect_uri):
                return {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
            response = browser.get(target, timeout=TIMEOUT_SECONDS, allow_redirects=False)
            continue
        form = _login_form(response)
        response = narrator.send(
            "POST",
            urljoin(response.url, form.action) if form.action else response.url,
            form={**(form.fields or {}), form.login_field: login, form.password_field: password},
            # As browsers do: CSRF protection over TLS asks where the form came from.
            headers={"Referer": response.url},
            expect=(302, 303),
            http=browser,
            quiet=quiet,
        )
    raise StoryFailed(f"the sign-in went round in circles, last at {response.url}")


def _login_form(response: requests.Response) -> Form:
    finder = _FormFinder()
    finder.feed(response.text)
    if finder.found is None or not finder.found.login_field:
        raise StoryFailed(f"{response.url} ({response.status_code}) has no login form")
    return finder.found
