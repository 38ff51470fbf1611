"""Requests that arrive slowly or break off, and the connections of threads (platform_site.serving.application)."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterable
from typing import Any

import pytest
from django.db import connections

from platform_site.serving.application import PooledApplication
from tests.support.platform import LivePlatform


@pytest.mark.process
@pytest.mark.once
def test_half_sent_requests_hold_nobody_up(live_platform: LivePlatform) -> None:
    host, _, port = live_platform.base_url.removeprefix("http://").partition(":")
    held = []
    for _ in range(12):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(
            b"POST /id/connect/token HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\na="
        )
        held.append(connection)
    try:
        for _ in range(8):
            with urllib.request.urlopen(f"{live_platform.base_url}/healthz", timeout=60) as answer:
                assert answer.status == 200
    finally:
        for connection in held:
            connection.close()


@pytest.mark.process
@pytest.mark.once
def test_a_chunked_form_is_read(live_platform: LivePlatform) -> None:
    form = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
    request = urllib.request.Request(
        f"{live_platform.base_url}/id/connect/token",
        data=iter([form[:20], form[20:]]),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Transfer-Encoding": "chunked"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["token_type"] == "Bearer"


@pytest.mark.process
@pytest.mark.once
@pytest.mark.parametrize("broken", [b"ZZ\r\n", b""], ids=["no chunk", "no more"])
def test_a_chunked_script_that_breaks_off_is_not_run(live_platform: LivePlatform, broken: bytes) -> None:
    """The web server gives what came as the whole body, however it ended."""
    host, port = live_platform.base_url.removeprefix("http://").split(":")
    script = b"return 'half of it'"
    request = (
        b"POST /api/domain/odata/ExecuteScript HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
        b"Authorization: Bearer " + _token(live_platform).encode() + b"\r\n"
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(script), script)
    )
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request + broken)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 411 "), answer


@pytest.mark.process
@pytest.mark.once
@pytest.mark.parametrize("name", [b"TransactionId", b"If-Match", b"If-None-Match", b"X-Change-Reason"])
@pytest.mark.parametrize("value", [b"\xe4", 'W/"ä"'.encode(), b""])
def test_a_header_that_is_not_ascii_is_not_left_out(live_platform: LivePlatform, name: bytes, value: bytes) -> None:
    """The web server gives an empty value."""
    host, port = live_platform.base_url.removeprefix("http://").split(":")
    request = (
        b"POST /api/domain/odata/General_Currencies_Currencies HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Authorization: Bearer " + _token(live_platform).encode() + b"\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: 2\r\n%s: %s\r\n\r\n{}" % (name, value)
    )
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 "), answer


def _token(platform: LivePlatform) -> str:
    form = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
    with urllib.request.urlopen(f"{platform.base_url}/id/connect/token", data=form, timeout=60) as answer:
        return str(json.load(answer)["access_token"])


def test_threads_share_connections_one_after_the_other() -> None:
    seen: dict[str, object] = {}

    def show(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen[environ["name"]] = connections["default"]
        if environ["name"] == "outer":
            ask_as("meanwhile")
            assert connections["default"] is seen["outer"]
        return [b""]

    application = PooledApplication(show)

    def ask_as(name: str) -> None:
        thread = threading.Thread(target=application, args=({"name": name}, lambda *args: None))
        thread.start()
        thread.join(60)

    for name in ("first", "outer", "last"):
        ask_as(name)
    assert seen["first"] is seen["outer"] is seen["last"]
    assert seen["meanwhile"] is not seen["first"], "a request that goes on keeps its connections"
    assert seen["first"] is not connections["default"], "a thread outside of requests has its own"


def test_a_request_that_leaves_a_transaction_open_is_not_continued() -> None:
    left: list[Any] = []

    def leave(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        connection = connections["default"]
        left.append(connection)
        assert not connection.in_atomic_block
        connection.in_atomic_block = True
        return [b""]

    application = PooledApplication(leave)
    for _ in range(2):
        thread = threading.Thread(target=application, args=({}, lambda *args: None))
        thread.start()
        thread.join(60)
    assert left[0] is not left[1]
