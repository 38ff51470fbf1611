"""Whoever sends too much is told the limit that holds: of each address, with a login and without.

Who: anybody. What: a body beyond the limit of its address. What prevents it: platform_site.serving.receiving and
identity.anonymous_forms; the message names the number of bytes that the sender may send there.
"""

from __future__ import annotations

import http.client
import re
import socket

import pytest
from django.conf import settings

from identity.anonymous_forms import MAX_BYTES
from platform_site.serving.exchange import HEADER_BYTES
from platform_site.serving.receiving import KNOWN_BYTES
from tests.acceptance.caller import Caller
from tests.acceptance.people import Browser, token_request
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

API = "/api/domain/odata/"
FORM = "application/x-www-form-urlencoded"


def answer(platform: LivePlatform, path: str, headers: dict[str, str], size: int, *, sent: int = 0) -> tuple[int, str]:
    """Status and text of the answer to a POST of that declared size, of which only the first bytes are sent."""
    host, _, port = platform.base_url.removeprefix("http://").partition(":")
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + b"x" * sent)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read().decode()


@pytest.mark.parametrize("size", [MAX_BYTES + 1, KNOWN_BYTES, KNOWN_BYTES + 1, 3_000_000])
@pytest.mark.parametrize("path", ["/id/account/login", "/id/connect/token", "/id/connect/authorize", "/admin/login/"])
def test_a_stranger_is_told_the_limit_of_strangers(live_platform: LivePlatform, path: str, size: int) -> None:
    # What is larger is refused by its head.
    status, text = answer(live_platform, path, {"Content-Type": FORM}, size, sent=size if size <= KNOWN_BYTES else 0)
    assert status in (400, 413)
    assert re.search(rf"\b{MAX_BYTES}\b", text), text


@pytest.mark.parametrize("path", ["/admin/domain/product/add/", "/id/account/password"])
def test_a_person_is_told_the_limit_of_forms(live_platform: LivePlatform, path: str) -> None:
    person = Browser(Caller(live_platform.base_url))
    assert person.log_in("admin").status_code == 302
    cookie = {"Cookie": f"sessionid={person.http.cookies['sessionid']}"}
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    status, text = answer(live_platform, path, cookie, limit + 1)
    assert status == 413
    assert f"larger than {limit} bytes" in text


@pytest.mark.parametrize("path", ["General_Products_Products", "$batch", "Import"])
def test_a_caller_is_told_the_limit_of_the_domain_api(live_platform: LivePlatform, path: str) -> None:
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    token = token_request(Caller(live_platform.base_url), **form).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    limit = settings.MAX_IMPORT_BYTES if path == "Import" else settings.MAX_BODY_BYTES
    status, text = answer(live_platform, f"{API}{path}", headers, limit + 1)
    assert status == 413
    assert f"larger than {limit} bytes" in text


@pytest.mark.parametrize("name", ["Accept-Language", "Cookie", "Prefer"])
def test_a_long_header_is_refused(live_platform: LivePlatform, name: str) -> None:
    texts = [{name: "x" * HEADER_BYTES}, {name: "x" * (HEADER_BYTES + 1)}, {name: "x", name.lower(): "y" * 200_000}]
    answers = [answer(live_platform, "/healthz", each, 0) for each in texts]
    assert [status == 431 for status, _ in answers] == [False, True, True]
    assert f"{name.lower()} is larger than {HEADER_BYTES} bytes" in answers[1][1].lower()
