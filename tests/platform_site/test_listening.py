"""Closing a listening socket without losing those who connected (platform_site.serving.listening)."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from platform_site.serving import listening
from platform_site.serving.listening import ListeningSocket

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's"),
]


@pytest.fixture
def opened() -> Iterator[tuple[ListeningSocket, socket.socket]]:
    """A listening socket, and the same as a server's process has it."""
    held = ListeningSocket("127.0.0.1", 0)
    server = socket.socket(fileno=held.open())
    server.listen(8)
    yield held, server
    server.detach()
    held.close()


def test_who_connected_is_served_and_nobody_connects_any_more(opened: tuple[ListeningSocket, socket.socket]) -> None:
    held, server = opened
    address = server.getsockname()
    waiting = [socket.create_connection(address, 1) for _ in range(3)]
    for number, client in enumerate(waiting):
        client.sendall(b"%d" % number)
    drained = threading.Thread(target=held.drain)
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


def test_a_server_that_takes_nobody_is_not_waited_for(
    opened: tuple[ListeningSocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, server = opened
    monkeypatch.setattr(listening, "DRAIN_TIMEOUT_SECONDS", 0.3)
    with socket.create_connection(server.getsockname(), 1):
        begun = time.monotonic()
        held.drain()
        assert 0.3 <= time.monotonic() - begun < 2


def test_one_that_nobody_listens_on_needs_no_drain() -> None:
    ListeningSocket("127.0.0.1", 0).drain()
