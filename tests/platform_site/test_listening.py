"""Closing a listening socket without losing those who connected (platform_site.serving.listening)."""

from __future__ import annotations

import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from platform_site.serving import addresses, listening
from platform_site.serving.connection_balance import SharedCounts
from platform_site.serving.granian_server import WebServer
from platform_site.serving.listening import drain, open_listening
from tests.support.measuring import slowness

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's"),
]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A listening socket."""
    with open_listening("127.0.0.1", 0) as opened:
        opened.listen(8)
        yield opened


def test_who_connected_is_served_and_nobody_connects_any_more(server: socket.socket) -> None:
    address = server.getsockname()
    waiting = [socket.create_connection(address, 1) for _ in range(3)]
    for number, client in enumerate(waiting):
        client.sendall(b"%d" % number)
    drained = threading.Thread(target=drain, args=(server,))
    drained.start()
    try:
        # The first packet is dropped, not refused: whoever sent it sends it again, or asks another node.
        with pytest.raises(TimeoutError):
            socket.create_connection(address, 0.3).close()
        assert drained.is_alive()
        for number in range(3):
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1) == b"%d" % number
                connection.sendall(b"served")
        drained.join(listening.DRAIN_TIMEOUT_SECONDS / 2)
        assert not drained.is_alive()
    finally:
        drained.join()
    assert [client.recv(6) for client in waiting] == [b"served"] * 3
    for client in waiting:
        client.close()


@pytest.mark.alone
def test_a_server_that_takes_nobody_is_not_waited_for(server: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "DRAIN_TIMEOUT_SECONDS", 0.3)
    with socket.create_connection(server.getsockname(), 1):
        begun = time.monotonic()
        drain(server)
        assert 0.3 <= time.monotonic() - begun < 2 * slowness()


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_client_that_reads_nothing_is_reset(monkeypatch: pytest.MonkeyPatch, is_shared: bool) -> None:
    """The server would hold its response, and its place among CONNECTIONS, for as long as it stays connected."""
    monkeypatch.setattr(listening, "STALLED_SECONDS", 0.5)
    shared = open_listening("127.0.0.1", 0) if is_shared else None
    web = WebServer("127.0.0.1", 0, SharedCounts(1), shared)
    with web.socket_of_a_process() as server, socket.socket() as client:
        server.listen(8)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.getsockname())
        connection, _ = server.accept()
        with connection:
            connection.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    connection.send(b"x" * 65536)
            reset = select.poll()
            reset.register(connection, 0)
            assert reset.poll(20_000)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_processes_listen_at_one_address_and_another_program_does_not(server: socket.socket) -> None:
    host, port = server.getsockname()
    with open_listening(host, port):
        assert "is in use by another program" in (addresses.port_problem(host, port) or "")
