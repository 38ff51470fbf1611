"""Requests take turns (platform_site.serving.turns), when they have arrived whole (test_receiving)."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections

from foundation.turns import share, turn, waiting
from platform_site.serving.turns import TurnApplication
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually


def test_the_turn_is_given_back_while_waiting() -> None:
    order: list[str] = []

    def other() -> None:
        with turn:
            order.append("other")

    with turn:
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.05)
        order.append("first")
        with waiting():
            thread.join(5)
        order.append("again")
    assert order == ["first", "other", "again"]


def test_waiting_without_a_turn_does_nothing() -> None:
    with waiting():
        assert not turn.is_mine


def test_an_error_gives_the_turn_back() -> None:
    with pytest.raises(ValueError, match="broken"), turn:
        raise ValueError("broken")
    with turn:
        pass


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
            with urllib.request.urlopen(f"{live_platform.base_url}/healthz", timeout=10) as answer:
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
    with urllib.request.urlopen(request, timeout=10) as answer:
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
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request + broken)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 411 "), answer


def _token(platform: LivePlatform) -> str:
    form = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
    with urllib.request.urlopen(f"{platform.base_url}/id/connect/token", data=form, timeout=10) as answer:
        return str(json.load(answer)["access_token"])


def test_who_holds_something_does_not_wait_for_ever_for_the_turn() -> None:
    """Whoever has the turn may be waiting for just that: both would stand still."""
    held, released = threading.Event(), threading.Event()

    def other() -> None:
        with turn:
            held.set()
            assert released.wait(10)

    thread = threading.Thread(target=other)
    with turn:
        with waiting(patience_seconds=0.01):
            thread.start()
            assert held.wait(10)
        assert (turn.is_mine, turn.is_lent) == (False, True)
        released.set()
        thread.join(10)
        with waiting():
            pass
        assert (turn.is_mine, turn.is_lent) == (True, False), "it has it again when it is free"
    assert (turn.is_mine, turn.is_lent) == (False, False)
    with turn:
        pass


def test_who_works_long_lets_others_go_first() -> None:
    """Without a thing to wait for: `share` stands aside when somebody wants the turn, and only then."""
    order: list[str] = []

    def other() -> None:
        with turn:
            order.append("other")

    thread = threading.Thread(target=other)
    with turn:
        share()
        assert turn.is_mine
        thread.start()
        while not turn.is_wanted:
            time.sleep(0.001)
        while not order:
            share()  # a moment after it was taken
        order.append("first")
        assert turn.is_mine
    thread.join(10)
    assert order == ["other", "first"]


def test_connections_go_with_the_turn_and_stay_with_who_waits() -> None:
    """Two threads, one after the other, have one connection; one that waits in its turn keeps its own."""
    seen: dict[str, object] = {}

    def show(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen[environ["name"]] = connections["default"]
        if environ["name"] == "waits":
            with waiting():
                ask_as("meanwhile")
            assert connections["default"] is seen["waits"]
        return [b""]

    application = TurnApplication(show)

    def ask(name: str) -> None:
        with turn:
            application({"name": name}, lambda *args: None)

    def ask_as(name: str) -> None:
        thread = threading.Thread(target=ask, args=(name,))
        thread.start()
        thread.join(10)

    for name in ("first", "waits", "last"):
        ask_as(name)
    assert seen["first"] is seen["waits"] is seen["last"]
    assert seen["meanwhile"] is not seen["first"]
    assert seen["first"] is not connections["default"], "what is not served has connections of its own"


class _Poll:
    """A long poll that has its answer; counts those that ask for it."""

    def __init__(self) -> None:
        self.waited = threading.Event()

    def wait(self) -> bool:
        self.waited.set()
        return True

    def answer(self) -> bytes:
        assert turn.is_mine
        return b"{}"

    def close(self) -> None:
        """Holds nothing."""


def test_of_polls_that_are_woken_together_one_asks_for_the_turn() -> None:
    """Or requests, of which one thread asks at a time, would come after all of them."""
    polls = [_Poll() for _ in range(6)]
    waiting_for_answers = iter(polls)

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        return SimpleNamespace(long_poll=next(waiting_for_answers))

    buffered = TurnApplication(application)
    with turn:
        answers = [buffered({"wsgi.input": io.BytesIO()}, lambda *args: None) for _ in polls]
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda answer=answer: got.append(b"".join(answer))) for answer in answers]
    with turn:
        for thread in threads:
            thread.start()
        assert all(poll.waited.wait(5) for poll in polls)
        assert eventually(lambda: turn.is_wanted)
        assert not eventually(lambda: sum(len(line.going_on) for line in turn._lines.values()) > 1, 0.2)
    for thread in threads:
        thread.join(5)
    assert got == [b"{}"] * len(polls)
