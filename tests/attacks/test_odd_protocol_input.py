"""Odd texts in what clients, devices and directories send.

Who: anybody who may reach the token endpoint, and a directory's service. What: an internal error, by what JSON can have
and a database or digest cannot: NUL, half of a surrogate pair, an empty name; or minutes of work by one request. What
prevents it: the text is refused where it is read.
"""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from identity.client_keys import InvalidKey, key_set_parse
from identity.dpop import nonce_now
from tests.domain.scim.conftest import Directory, directory, directory_token  # noqa: F401
from tests.domain.scim.test_users import detail
from tests.identity.conftest import browser, demo, fresh_process, http  # noqa: F401
from tests.identity.flows import PUBLIC, REDIRECT, SECRET, WEB, Browser, Response, parameters_of
from tests.support.client_keys import TOKEN_ENDPOINT, ClientKey
from tests.support.measuring import slowness

FORM = "application/x-www-form-urlencoded"
HALF = "\ud800"
KEY = ClientKey()
REQUEST_URI = "urn:ietf:params:oauth:request_uri:x"


def post(http: Client, path: str, form: str, **headers: str) -> Response:  # noqa: F811
    return http.post(f"/id/connect/{path}", form, content_type=FORM, headers=headers)


@pytest.mark.parametrize(
    "jwk, claims",
    [
        ({"kty": None}, {}),
        ({}, {"nonce": HALF}),
        ({}, {"jti": HALF}),
        ({}, {"jti": "\x00"}),
        ({}, {"extra": [{"deep": HALF}]}),
    ],
)
def test_an_odd_proof_is_refused(http: Client, jwk: dict[str, Any], claims: dict[str, Any]) -> None:  # noqa: F811
    """Any caller may send one: the public application has no secret."""
    key = {name: value for name, value in {**KEY.jwk, **jwk}.items() if value is not None}
    proof = KEY.proof("POST", TOKEN_ENDPOINT, header={"jwk": key}, **{"nonce": nonce_now(), **claims})
    form = {"grant_type": "authorization_code", "client_id": PUBLIC, "code": "x", "redirect_uri": REDIRECT}
    assert post(http, "token", urlencode(form), DPoP=proof).status_code == 400


def test_a_key_without_a_type_is_no_key() -> None:
    """Neither in a set that an administrator pastes, nor in one that an application publishes."""
    key = {name: value for name, value in KEY.jwk.items() if name != "kty"}
    with pytest.raises(InvalidKey):
        key_set_parse(json.dumps({"keys": [key]}))


@pytest.mark.parametrize("subject", [HALF, f"https://apps.example/{HALF}", "\x00"])
def test_an_assertion_of_nobody_is_refused(http: Client, subject: str) -> None:  # noqa: F811
    form = {"grant_type": "client_credentials", **KEY.assertion(subject)}
    for path in ("token", "par", "deviceauthorization", "introspect"):
        assert post(http, path, urlencode(form)).status_code == 401, path


@pytest.mark.parametrize("more", ["=x", "login_hint=a%00b", "%00=b"])
def test_an_odd_parameter_is_not_pushed(browser: Browser, more: str) -> None:  # noqa: F811
    form = urlencode({**browser.ask(), "client_secret": SECRET})
    answer = post(browser.client, "par", f"{form}&{more}")
    assert answer.status_code == (201 if more == "=x" else 400), answer.content


@pytest.mark.parametrize("method", ["plain", "\x00", "x" * 300])
def test_a_method_without_a_challenge_is_refused(browser: Browser, method: str) -> None:  # noqa: F811
    """It would be stored with the code."""
    answer = browser.authorize(code_challenge_method=method)
    assert parameters_of(answer.headers["Location"])["error"] == "invalid_request"


@pytest.mark.parametrize("name, value", [("request_uri", REQUEST_URI), ("_pushed", "x")])
@pytest.mark.parametrize("client_id", ["\x00", f"{WEB}\x00", "x" * 5000])
def test_a_pushed_request_of_nobody_is_refused(http: Client, client_id: str, name: str, value: str) -> None:  # noqa: F811
    assert http.get("/id/connect/authorize", {"client_id": client_id, name: value}).status_code == 400


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_no_filter(directory: Directory, moment: str) -> None:  # noqa: F811
    answer = directory.get("/scim/v2/Users", {"filter": f'meta.lastModified gt "{moment}"'})
    assert detail(answer) == (400, "invalidFilter")


@pytest.mark.parametrize(
    "operations",
    [
        [("replace", "emails", ["x"]), ("add", "emails", "y")],
        [("replace", "emails", ["x"]), ("add", "emails.value", "y")],
        [("add", "emails", "x"), ("replace", 'emails[not (value eq "q")]', {"value": "y"})],
        [("replace", "emails", 5), ("remove", "emails", "y")],
        [("replace", "emails", [None]), ("add", "emails", [None])],
    ],
)
def test_a_value_that_is_no_object_is_not_patched(directory: Directory, operations: list[Any]) -> None:  # noqa: F811
    ada = directory.user("ada", emails=[{"value": "ada@example.com"}])
    named = [{"op": op, "path": path, "value": value} for op, path, value in operations]
    assert detail(directory.patch_user(ada["id"], *named)) == (400, "invalidValue")


def test_a_patch_takes_no_minutes(directory: Directory) -> None:  # noqa: F811
    """30,000 members and 990 removals took 41 seconds, and 20,000 members replaced by others 7."""
    group = directory.send("post", "/Groups", {"displayName": "Crowd"}).json()
    many = [{"value": f"a{number}"} for number in range(20_000)]
    others = [{"value": f"b{number}"} for number in range(20_000)]
    replace = {"op": "replace", "path": "members", "value": many}
    add = {"op": "add", "path": "members", "value": others}
    removals = [{"op": "remove", "path": f'members[value eq "x{number}"]'} for number in range(990)]
    one_operation = {"op": "replace", "value": {f'members[value eq "x{number}"].display': 1 for number in range(9000)}}
    for operations, status in (([replace, *removals], 413), ([replace, one_operation], 400), ([replace, add], 400)):
        began = time.process_time()
        answer = directory.send("patch", f"/Groups/{group['id']}", {"Operations": operations})
        assert answer.status_code == status, answer.content[:300]
        assert time.process_time() - began < 10 * slowness()
