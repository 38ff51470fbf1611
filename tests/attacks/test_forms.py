"""Large bodies are for the Domain API alone.

Who: anybody who may open a page, also without a login. What: to fill the memory by posting hundreds of megabytes to a
form. What prevents it: the web server receives no more than the limit of the address (platform_site.serving.bodies),
and answers by the head of the request; Django's own limit stands behind it.
"""

from __future__ import annotations

import socket

import pytest
from django.conf import settings
from django.urls import get_resolver

from platform_site.serving import bodies
from tests.acceptance.caller import Caller
from tests.acceptance.people import Browser as Person
from tests.attacks.test_every_secret import address, routes
from tests.identity.flows import Browser, fields_of
from tests.support.platform import LivePlatform


def test_every_address_but_the_odata_service_has_the_limit_of_forms() -> None:
    found = {address(route) for route in routes(get_resolver())}
    large = {path for path in found if bodies.max_bytes({"PATH_INFO": path}) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE}
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE < 5_000_000 < settings.MAX_BODY_BYTES
    assert large
    assert not [path for path in large if not path.startswith("/api/domain/odata/")]


def test_django_refuses_a_form_beyond_the_limit(browser: Browser) -> None:
    browser.log_in("demo")
    form = fields_of(browser.client.get("/id/account/password").content.decode())
    large = {**form, "old_password": "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)}
    assert browser.client.post("/id/account/password", large).status_code in (400, 403, 413)


@pytest.mark.process
@pytest.mark.once
@pytest.mark.parametrize("framing", [b"Content-Length: 200000000", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", ["/admin/domain/product/add/", "/id/account/password", "/api/session"])
def test_a_person_cannot_post_a_large_form_either(live_platform: LivePlatform, path: str, framing: bytes) -> None:
    person = Person(Caller(live_platform.base_url))
    assert person.log_in("admin").status_code == 302
    host, _, port = live_platform.base_url.removeprefix("http://").partition(":")
    cookie = f"Cookie: sessionid={person.http.cookies['sessionid']}".encode()
    head = b"\r\n".join([f"POST {path} HTTP/1.1".encode(), b"Host: 127.0.0.1", cookie, framing, b"", b""])
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head)
        if b"chunked" in framing:
            chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
            for _ in range(8):
                try:
                    connection.sendall(chunk)
                except ConnectionError:
                    break  # answered, and closed
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
