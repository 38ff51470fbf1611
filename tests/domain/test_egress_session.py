"""The session that carries every outgoing request: pooled connections, no proxy, redirect or cookie (spec 06, 6.2)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import requests

from foundation import errors
from foundation.egress import client, connection
from foundation.egress.client import EgressFailed, EgressRequest, EgressResponse, EgressSession
from foundation.egress.policy import ANYWHERE, EgressPolicy
from tests.support.receiver import Answer, LoopbackReceiver

WEBHOOK = [("webhook-id", "1")]


@dataclass
class Server:
    """Answers each request with 204; closes a connection after so many requests, without saying so."""

    port: int
    closes_after: int
    #: Number of requests of each connection.
    connections: list[int] = field(default_factory=list)
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def serve(self, opened: socket.socket) -> None:
        self.connections.append(0)
        number = len(self.connections) - 1
        with opened, opened.makefile("rb") as lines:
            while self.connections[number] < self.closes_after and lines.readline():
                while lines.readline() != b"\r\n":
                    pass
                self.connections[number] += 1
                opened.sendall(b"HTTP/1.1 204 No Content\r\nSet-Cookie: a=b\r\n\r\n")
        self.closed.release()


@contextmanager
def serving(closes_after: int = 100) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1], closes_after)

        def run() -> None:
            while True:
                try:
                    opened, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=server.serve, args=(opened,), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def ask(
    server: Server, method: str, headers: Sequence[tuple[str, str]] = (), host: str = "a.example"
) -> EgressResponse:
    request = EgressRequest(method, f"http://{host}:{server.port}/", headers)
    return client.send(request, policy=ANYWHERE, resolver=lambda host, port: ["127.0.0.1"])


def test_requests_that_may_be_repeated_share_a_connection() -> None:
    with serving() as server:
        for method, headers in (("GET", []), ("POST", WEBHOOK), ("PUT", []), ("POST", [("Idempotency-Key", "1")])):
            assert ask(server, method, headers).status == 204
        assert server.connections == [4]
        ask(server, "POST")
        ask(server, "POST")
    assert server.connections == [4, 1, 1], "whether a POST was carried out cannot be known, so it is never repeated"


def test_a_pooled_connection_that_the_server_closed_costs_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the client has not noticed: it connects again."""
    with serving(closes_after=1) as server:
        ask(server, "POST", WEBHOOK)
        server.closed.acquire()
        monkeypatch.setattr("urllib3.connection.wait_for_read", lambda *arguments, **options: False)
        assert ask(server, "POST", WEBHOOK).status == 204
    assert server.connections == [1, 1]


def test_a_connection_is_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LIFETIME_SECONDS", 0)
    with serving() as server:
        ask(server, "GET")
        ask(server, "GET")
    assert server.connections == [1, 1]


def test_a_pooled_connection_serves_only_a_name_that_still_leads_there() -> None:
    """The name is resolved and checked for each request, before the pool is asked."""
    with serving() as server:
        ask(server, "GET")
        ask(server, "GET", host="b.example")
        request = EgressRequest("GET", f"http://a.example:{server.port}/", connect_timeout_seconds=0.05)
        with pytest.raises(EgressFailed):
            client.send(request, policy=ANYWHERE, resolver=lambda host, port: ["127.255.255.255"])
        with pytest.raises(errors.Refused):
            client.send(request, policy=EgressPolicy(), resolver=lambda host, port: ["127.0.0.1"])
    assert server.connections == [1, 1]


def test_the_environment_names_no_proxy(loopback_receiver: LoopbackReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert EgressSession(ANYWHERE).get(loopback_receiver.url).status_code == 200
    client.send(EgressRequest("GET", loopback_receiver.url), policy=ANYWHERE)
    assert len(loopback_receiver.requests) == 2


def test_users_of_requests_are_held_to_the_same(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(
        Answer(302, headers={"Location": "/next", "Set-Cookie": "sid=1"}), Answer(body=b"x" * 100_000)
    )
    session = EgressSession(ANYWHERE)
    assert session.get(f"{loopback_receiver.url}/first", allow_redirects=True).status_code == 302
    assert len(session.get(f"{loopback_receiver.url}/second").content) == 64 * 1024
    assert [request.path for request in loopback_receiver.requests] == ["/first", "/second"]
    assert "Cookie" not in loopback_receiver.requests[1].headers
    with pytest.raises(errors.Refused):
        EgressSession(EgressPolicy()).get(loopback_receiver.url)
    with pytest.raises(requests.RequestException):
        session.post("http://127.0.0.1:9/", timeout=1)
