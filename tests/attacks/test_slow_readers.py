"""A caller asks for large answers on many connections and reads none of them.

Who: anybody who may call the API. What: the memory that unread responses hold. What prevents it:
platform_site.serving.receiving: the server sends a large response from a file, as fast as its client reads.
"""

from __future__ import annotations

import socket

import pytest
import requests

from tests.acceptance.caller import Caller, answered
from tests.acceptance.people import token_request
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import start_platform
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.once]

CONNECTIONS = 300
#: Of one process: what making a few answers takes.
MEMORY_BYTES = 200 * 1024 * 1024


def test_unread_answers_fill_no_memory() -> None:
    with start_platform(settings={"WEB_PROCESSES": "1"}) as platform:
        site = Caller(platform.base_url)
        form = {"grant_type": "client_credentials", "scope": "DomainApi read update"}
        token = answered(token_request(site, client_id="ServiceDemoClient", **form), 200).json()["access_token"]
        caller = site.with_token(token)
        path = "General_Products_Products?$select=*&$expand=*"
        size = len(
            requests.get(
                caller.url(path), headers={**caller.headers, "Accept-Encoding": "identity"}, timeout=60
            ).content
        )
        assert size * CONNECTIONS > 2 * MEMORY_BYTES, "the attack would fill the memory"
        (process,) = web_processes(platform)
        before = forget_peak(process)
        request = f"GET {caller.url(path).removeprefix(platform.base_url)} HTTP/1.1\r\nHost: localhost\r\n"
        request += "".join(f"{name}: {value}\r\n" for name, value in caller.headers.items()) + "\r\n"
        port = int(platform.base_url.rpartition(":")[2])
        connections = []
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request.encode())
            connections.append(connection)
        # Another caller is served all the while.
        other_token = answered(token_request(site, client_id="DualDemoClient-service", **form), 200)
        other = site.with_token(other_token.json()["access_token"])
        for _ in range(20):
            assert len(other.rows("General_Products_Products?$top=1")) == 1
        assert eventually(lambda: connections[0].recv(1) == b"H")
        assert peak_bytes(process) - before < MEMORY_BYTES
        for connection in connections:
            connection.close()
        # And the caller itself, when its clients have gone.
        assert eventually(lambda: len(caller.rows("General_Products_Products?$top=1")) == 1, 60)
