"""A client learns nothing of the tokens of other clients and ends none of them (RFC 7009, 2.1; RFC 7662, 4).

Who: whoever runs an application, and has tokens of another one, from a log for example. What: to learn by introspection
whose and how good they are, or to revoke them. What prevents it: both endpoints look at the tokens of the client that
asks. Introspection answers for others as for tokens that do not exist; revocation refuses them, so that nobody believes
that they have ended.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from identity.models import User
from tests.domain.security.conftest import caller, give_role
from tests.identity.flows import DUAL, PUBLIC, SERVICE, WEB, Browser, token_request

pytestmark = pytest.mark.once

FORM = "application/x-www-form-urlencoded"
OTHERS = {SERVICE: "DEMO", DUAL: "DEMO", PUBLIC: ""}
KINDS = ("access_token", "refresh_token", "id_token", "personal_token")


@pytest.fixture
def tokens(browser: Browser) -> dict[str, str]:
    """Tokens of the web application, and a personal one of an application of its own."""
    found: dict[str, str] = browser.tokens(scope="openid read offline_access")
    give_role(User.objects.get(login="demo"), {"General.*": "r"})
    return {**found, "personal_token": caller(User.objects.get(login="demo"), scopes="read").token}


def asked(endpoint: str, client_id: str, secret: str, token: str, **more: str) -> Any:
    form = {"client_id": client_id, "token": token, **({"client_secret": secret} if secret else {}), **more}
    body = "&".join(f"{name}={value}" for name, value in form.items())
    return Client().post(f"/id/connect/{endpoint}", body, content_type=FORM)


def works(token: str) -> bool:
    return Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def refreshed(token: str) -> dict[str, Any]:
    form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": "DEMO", "refresh_token": token}
    answer: dict[str, Any] = token_request(Client(), **form).json()
    return answer


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_learns_nothing_of_foreign_tokens_and_ends_none(tokens: dict[str, str], kind: str, other: str) -> None:
    unknown = asked("introspect", other, OTHERS[other], "0" * 64)
    answer = asked("introspect", other, OTHERS[other], tokens[kind])
    assert (answer.status_code, answer.content) == (unknown.status_code, unknown.content)
    for hint in ("", "access_token", "refresh_token"):
        ended = asked("revocation", other, OTHERS[other], tokens[kind], **({"token_type_hint": hint} if hint else {}))
        # An id token is never revoked, so it is an unknown one.
        assert (ended.status_code, ended.json().get("error")) == (
            (200, None) if kind == "id_token" else (400, "invalid_grant")
        )
    assert works(tokens["access_token"])
    assert works(tokens["personal_token"])
    assert "access_token" in refreshed(tokens["refresh_token"])


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_revoking_one_token_ends_its_family(tokens: dict[str, str], kind: str) -> None:
    successor = refreshed(tokens["refresh_token"])
    assert works(successor["access_token"])
    assert asked("revocation", WEB, "DEMO", {**tokens, **successor}[kind]).status_code == 200
    assert not works(tokens["access_token"])
    assert not works(successor["access_token"])
    for token in (tokens["refresh_token"], successor["refresh_token"]):
        assert refreshed(token)["error"] == "invalid_grant"
    assert works(tokens["personal_token"])


def test_a_token_that_shows_who_signed_in_is_none_to_introspect(tokens: dict[str, str]) -> None:
    assert asked("introspect", WEB, "DEMO", tokens["id_token"]).json() == {"active": False}
