"""A caller opens many change streams: with old cursors, without reading them, of large entities.

Who: anybody who may read. What: the thread that serves all subscribers, and the memory that unread events hold. What
prevents it: domain.event_stream.hub (callers take turns), platform_site.serving.pushes (parts wait for the client).
"""

from __future__ import annotations

import json
import socket

import pytest
from django.http import HttpResponse

from domain.dataset.dataset import Dataset
from domain.dataset.tables.models import ChangeFeedEntry
from domain.event_stream import cloud_events, feed
from domain.event_stream import hub as hubs
from domain.event_stream.cloud_events import render
from domain.event_stream.feed import Entry
from domain.event_stream.hub import Hub
from domain.event_stream.subscription import ServerSentEvents, StreamFilter, Subscription
from identity.context import CallContext
from identity.context import Caller as User
from tests.domain.conftest import world
from tests.domain.event_stream.listening import PATH, Listener
from tests.domain.odata.test_live_transactions import CURRENCIES, Caller
from tests.rules.cast import World
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import start_platform
from tests.support.response_writers import ReadResponseWriter

__all__ = ["world"]

NAME = "General.Currencies.Currencies"
HOGS = 50
CONNECTIONS = 300
#: Of one process: 128 KB that were not read and as much that was sent at once, for each connection.
MEMORY_BYTES = 120 * 1024 * 1024


class _ResponseWriter(ReadResponseWriter):
    """Notes in `given` who is sent events."""

    def __init__(self, login: str, given: list[str]) -> None:
        super().__init__()
        self.login, self.given = login, given

    def send(self, part: bytes) -> None:
        if b"data:" in part:
            self.given.append(self.login)


def user(login: str) -> User:
    return User(id=login, login=login, name=login, email="", user_type="InternalUser", is_admin=True)


def never_due() -> CallContext:
    raise AssertionError("rights are not looked up within a moment")


def never_refused(error: Exception) -> HttpResponse:
    raise error


def test_many_old_cursors_of_one_caller_hold_up_nobody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "ROUND_SECONDS", 0.0)  # one subscriber a round: the slowest there can be
    monkeypatch.setattr(hubs, "PAGE", 1)
    feed.poll()
    first = ChangeFeedEntry.objects.order_by("id").values_list("id", flat=True)[0] - 1
    given: list[str] = []
    hub = Hub()
    monkeypatch.setattr(hub, "_is_polling", True)  # no thread: the test polls
    for login in ["mallory"] * HOGS + ["alice"]:
        subscription = Subscription(
            hub, CallContext(user=user(login), root_url="http://x"), StreamFilter(None, frozenset("IUD")),
            ServerSentEvents(), first, seconds=60, renew=never_due, refusal=never_refused,
        )  # fmt: skip
        subscription.start(_ResponseWriter(login, given))
    for _ in range(4):
        hub.serve(hub.all())
    assert given.count("alice") >= 1
    assert len(given) == 4


def test_a_large_entity_is_named_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset(world.context)
    id = dataset.create(NAME, {"CurrencySign": "BIG", "Name": "x" * 50}).id
    dataset.commit()
    monkeypatch.setattr(cloud_events, "MAX_EVENT_BYTES", 450)
    entry = Entry(*ChangeFeedEntry.objects.filter(entity_id=id).values_list(*Entry._fields)[0])
    ((_, event),) = render([entry], world.context.with_(root_url="http://x"))
    assert json.loads(event)["data"] == {"entity": {"Id": id}, "changes": None}


@pytest.mark.process
@pytest.mark.once
def test_unread_streams_fill_no_memory() -> None:
    with start_platform(settings={"WEB_PROCESSES": "1"}) as platform:
        caller = Caller(platform)
        (process,) = web_processes(platform)
        before = forget_peak(process)
        request = f"GET {PATH}?since=beginning HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        request += f"Authorization: {caller.http.headers['Authorization']!s}\r\n\r\n"
        port = int(platform.base_url.rpartition(":")[2])
        connections = []
        for _ in range(CONNECTIONS):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(request.encode())
            connections.append(connection)
        # Another subscriber hears of changes all the while, and other requests are answered.
        listener = Listener(caller, repository=NAME)
        for number in range(20):
            sign = f"Z{number:02}"
            assert caller.send("POST", CURRENCIES, {"CurrencySign": sign, "Name": sign}).status_code == 201
        listener.wait_for(lambda events: len(events) == 20, seconds=60)
        listener.stop()
        assert peak_bytes(process) - before < MEMORY_BYTES
        # A client that reads after all gets what it has not read yet.
        late = connections[0]
        late.settimeout(30)
        heard = 0
        while heard < 1_000_000:
            part = late.recv(1 << 16)
            assert part, "the stream has ended"
            heard += len(part)
        for connection in connections:
            connection.close()
