"""A stranger opens connections and sends little or nothing: heads that do not end, bodies that do not come.

Who: anybody who can connect. What: to take all threads, memory and disk. What prevents it:
platform_site.serving.receiving, which gives a thread to whole requests only and ends slow bodies, and by
the server's own limits for heads (granian_server.HEAD_SECONDS, CONNECTIONS).
"""

from __future__ import annotations

import json
import resource
import socket
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.measuring import assert_within
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

CONNECTIONS = 1000
_LINE = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
_TOKEN, _SERVICE = _LINE % b"/id/connect/token", _LINE % b"/api/domain/odata/$batch"
#: What is sent at first, and whether a byte follows now and then.
SLOW = (
    (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0", False),  # a head that does not end
    (b"", False),
    (_TOKEN + b"Content-Length: 1000\r\n\r\n", False),  # a body that does not come
    (_SERVICE + b"Content-Length: 60000\r\n\r\n{", True),  # ... that comes byte by byte
    (_SERVICE + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", False),
)


@contextmanager
def slow_connections(platform: LivePlatform, count: int) -> Iterator[list[tuple[socket.socket, bool]]]:
    """That many open connections, of every kind, and whether each goes on byte by byte."""
    host, _, port = platform.base_url.removeprefix("http://").partition(":")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, count + 512)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    with ExitStack() as stack:
        held = []
        for number in range(count):
            first, goes_on = SLOW[number % len(SLOW)]
            connection = stack.enter_context(socket.create_connection((host, int(port)), 10))
            connection.sendall(first)
            held.append((connection, goes_on))
        yield held
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def seconds_of_healthz(platform: LivePlatform) -> float:
    """How long a new client waits for it."""
    begun = time.monotonic()
    with urllib.request.urlopen(f"{platform.base_url}/healthz", timeout=60) as answer:
        assert answer.status == 200
    return time.monotonic() - begun


@pytest.mark.alone
def test_a_thousand_slow_connections_hold_nobody_up(live_platform: LivePlatform) -> None:
    with slow_connections(live_platform, CONNECTIONS) as held:

        def wait() -> float:
            for connection, goes_on in held:
                if goes_on:
                    connection.sendall(b" ")
            return seconds_of_healthz(live_platform)

        # Others use this machine too: a median, and not the worst.
        assert_within(0.1, lambda: statistics.median(wait() for _ in range(15)))
        form = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
        with urllib.request.urlopen(f"{live_platform.base_url}/id/connect/token", data=form, timeout=60) as answer:
            assert json.load(answer)["token_type"] == "Bearer"


@pytest.mark.parametrize(
    "head, status",
    [(_SERVICE + b"Content-Length: 200000000\r\n\r\n", 401), (_TOKEN + b"Content-Length: 200000000\r\n\r\n", 413)],
    ids=["service", "page"],
)
def test_a_stranger_is_answered_before_a_large_body_comes(
    live_platform: LivePlatform, head: bytes, status: int
) -> None:
    host, _, port = live_platform.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head)
        assert connection.recv(4096).startswith(b"HTTP/1.1 %d " % status)


def test_a_stranger_cannot_send_a_large_body_in_chunks(live_platform: LivePlatform) -> None:
    host, _, port = live_platform.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(_SERVICE + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        connection.sendall(chunk + chunk)
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")
