"""GET /api/domain/events on a real instance of two web processes (spec 13, 13.5)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.domain.event_stream.listening import PATH, Listener
from tests.domain.odata.test_live_transactions import CURRENCIES, Caller
from tests.support.platform import LivePlatform, start_platform

pytestmark = pytest.mark.process

NAME = "General.Currencies.Currencies"
WRITERS, ENTITIES, TURNS = 4, 3, 12


@pytest.fixture(scope="module")
def platform() -> Iterator[LivePlatform]:
    with start_platform(settings={"WEB_PROCESSES": "2"}) as started:
        yield started


@pytest.fixture
def caller(platform: LivePlatform) -> Iterator[Caller]:
    """A caller with a session of its own, which is free again after the test."""
    result = Caller(platform)
    token = str(result.http.headers["Authorization"]).removeprefix("Bearer ")
    yield result
    form = {"token": token, "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    assert requests.post(f"{platform.base_url}/id/connect/revocation", form, timeout=60).status_code == 200


def create(caller: Caller, name: str) -> str:
    answer = caller.send("POST", CURRENCIES, {"CurrencySign": name[-3:], "Name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["@odata.id"].rpartition("(")[2].rstrip(")"))


def poll(caller: Caller, **asked: Any) -> dict[str, Any]:
    answer = caller.http.get(caller.platform.base_url + PATH, params={"wait": 120, **asked}, timeout=150)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def types_of(events: list[dict[str, Any]], id: str) -> list[str]:
    """The types of the events of an entity. A cursor may be before a transaction of another database that is open."""
    return [event["type"] for event in events if id in event["subject"]]


def poll_for(caller: Caller, id: str, number: int, since: str, **asked: Any) -> tuple[list[dict[str, Any]], str]:
    """The next events of an entity, as many as said, and the cursor after them."""
    found: list[dict[str, Any]] = []
    while len(found) < number:
        answer = poll(caller, since=since, repository=NAME, **asked)
        found += [event for event in answer["events"] if id in event["subject"]]
        since = answer["cursor"]
    return found, since


def test_a_stream_tells_each_change_once_with_its_values(caller: Caller) -> None:
    listener = Listener(caller, repository=NAME)
    id = create(caller, "one S01")
    caller.send("PATCH", f"{CURRENCIES}({id})", {"Name": "two"})
    listener.wait_for(lambda events: len(events) >= 2)
    caller.send("DELETE", f"{CURRENCIES}({id})")
    listener.wait_for(lambda events: len(events) >= 3)
    listener.stop()
    created, updated, deleted = listener.events
    assert [event["type"] for event in listener.events] == [f"{NAME}.{did}" for did in ("Create", "Update", "Delete")]
    assert {event["subject"] for event in listener.events} == {f"{CURRENCIES}({id})"}
    assert created["specversion"] == "1.0"
    assert created["source"] == f"{caller.platform.base_url}/api/domain"
    assert updated["data"]["entity"]["Name"] in ("two", None)
    assert updated["data"]["changes"]["Name"] == ["one S01", "two"]
    assert deleted["data"]["entity"] is None


def test_a_poll_goes_on_from_its_cursor_and_filters(caller: Caller) -> None:
    start = poll(caller, wait=0, lang="de", CurrentRoleId="")
    assert start["events"] == []
    id = create(caller, "poll P01")
    caller.send("PATCH", f"{CURRENCIES}({id})", {"Name": "renamed"})
    updates, cursor = poll_for(caller, id, 1, start["cursor"], event="update")
    assert types_of(updates, id) == [f"{NAME}.Update"]
    assert types_of(poll(caller, since=cursor, wait=0)["events"], id) == []
    others = poll(caller, since=start["cursor"], repository="Crm_Sales_SalesOrders", wait=0)["events"]
    assert not [event for event in others if not event["type"].startswith("Crm.Sales.SalesOrders.")]
    again, _ = poll_for(caller, id, 2, start["cursor"])
    assert types_of(again, id) == [f"{NAME}.Create", f"{NAME}.Update"]
    rest, _ = poll_for(caller, id, 1, again[0]["cursor"])
    # Cursors tell when they were given.
    assert [{**event, "cursor": ""} for event in rest] == [{**event, "cursor": ""} for event in again[1:]]
    caller.send("DELETE", f"{CURRENCIES}({id})")


def test_a_poll_waits_for_a_change(caller: Caller) -> None:
    start = poll(caller, wait=0)["cursor"]
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(poll(caller, since=start, repository=NAME, event="Create"))
    )
    waiting.start()
    id = create(Caller(caller.platform), "wait W01")
    waiting.join(130)
    assert types_of(answers[0]["events"], id) == [f"{NAME}.Create"]
    caller.send("DELETE", f"{CURRENCIES}({id})")


def test_all_that_is_kept_is_given_page_by_page(caller: Caller) -> None:
    seen, cursor = 0, "beginning"
    while found := poll(caller, since=cursor, wait=0, repository="Crm.Sales.SalesOrders")["events"]:
        seen, cursor = seen + len(found), found[-1]["cursor"]
    assert seen >= caller.http.get(f"{caller.platform.odata_url}Crm_Sales_SalesOrders/$count", timeout=60).json()


@pytest.mark.parametrize(
    "asked, status, type",
    [
        ({"since": "yesterday"}, 400, "InvalidCursor"),
        ({"since": "1-1"}, 410, "CursorExpired"),
        ({"since": "99999999999-1795745605"}, 410, "CursorExpired"),
        ({"event": "Rename"}, 400, "BadQueryOption"),
        ({"repository": "General.Nothing"}, 400, "UnknownRepository"),
        ({"wait": "-1"}, 400, "InvalidValue"),
        ({"wait": "soon"}, 400, "InvalidValue"),
        ({"repositories": "General.Currencies.Currencies"}, 400, "BadQueryOption"),
        ({"Event": "Create"}, 400, "BadQueryOption"),
        ({"repository": ["General.Currencies.Currencies", "Crm.Customers"]}, 400, "InvalidValue"),
        ({"repository": ","}, 400, "BadQueryOption"),
        ({"event": " , "}, 400, "BadQueryOption"),
    ],
)
def test_bad_requests_are_refused(caller: Caller, asked: dict[str, Any], status: int, type: str) -> None:
    answer = caller.http.get(caller.platform.base_url + PATH, params=asked, timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, type)


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"event": "Rename"}, "'Rename' is not one of Create, Update, Delete"),
        ({"repositry": "x"}, "'repositry' is not one of since, repository, event, wait"),
    ],
)
def test_a_refusal_says_what_is_allowed(caller: Caller, asked: dict[str, str], said: str) -> None:
    answer = caller.http.get(caller.platform.base_url + PATH, params={"wait": "0", **asked}, timeout=60)
    assert said in answer.json()["error"]["message"]


def test_what_all_requests_may_have_the_stream_may_have_too(caller: Caller) -> None:
    assert poll(caller, wait=0, culture="de", lang="de", CurrentRoleId="x")["events"] == []


def test_only_callers_with_a_token_listen(platform: LivePlatform, caller: Caller) -> None:
    assert caller.http.get(platform.base_url + PATH, params={"wait": 0}, timeout=60).status_code == 200
    caller.http.headers.pop("Authorization")
    assert caller.http.get(platform.base_url + PATH, timeout=60).status_code == 401


def test_a_poll_that_fails_is_answered_with_an_error(platform: LivePlatform) -> None:
    """Nothing has been sent yet when the right to listen ends."""
    caller = Caller(platform)
    answers: list[requests.Response] = []

    def wait() -> None:
        headers = {**caller.http.headers, "Accept-Language": "de"}
        answers.append(requests.get(platform.base_url + PATH, {"wait": 120}, headers=headers, timeout=150))

    waiting = threading.Thread(target=wait)
    waiting.start()
    token = str(caller.http.headers["Authorization"]).removeprefix("Bearer ")
    form = {"token": token, "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    assert requests.post(f"{platform.base_url}/id/connect/revocation", form, timeout=60).status_code == 200
    waiting.join(150)
    (answer,) = answers
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "TokenInvalid")
    assert answer.headers["Content-Language"] == "de"
    assert answer.headers["Content-Type"] == "application/json;charset=utf-8"
    assert answer.headers["X-Request-Id"] in answer.json()["error"]["info"]


def test_concurrent_writers_lose_no_event_and_those_of_one_entity_are_in_order(platform: LivePlatform) -> None:
    """Also for a listener that connects again and again, each time to any of the processes."""
    caller = Caller(platform)
    ids = [create(caller, f"many M{number:02}") for number in range(ENTITIES)]
    start = poll(caller, wait=0)["cursor"]
    steady = Listener(caller, start, repository=NAME)
    polled: list[dict[str, Any]] = []

    def poll_on() -> None:
        cursor, one = start, Caller(platform)
        while len({event["id"] for event in polled}) < WRITERS * TURNS * ENTITIES:
            answer = poll(one, since=cursor, repository=NAME, wait=1)
            polled.extend(answer["events"])
            cursor = answer["cursor"]

    def write(number: int) -> None:
        one = Caller(platform)
        for turn in range(TURNS):
            for id in ids:
                assert one.send("PATCH", f"{CURRENCIES}({id})", {"Name": f"w{number} {turn}"}).status_code < 300

    polling = threading.Thread(target=poll_on, daemon=True)
    polling.start()
    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    expected = WRITERS * TURNS
    names = {id: f"{CURRENCIES}({id})" for id in ids}
    # On PostgreSQL events wait for transactions that were open before, also those of other databases: other tests'.
    steady.wait_for(lambda events: len({event["id"] for event in events}) >= expected * ENTITIES, seconds=120)
    polling.join(120)
    steady.stop()
    for events in (steady.events, polled):
        for subject in names.values():
            own = list({event["id"]: event for event in events if event["subject"] == subject}.values())
            assert len(own) == expected
            # Each change begins with what the one before it left.
            values = [event["data"]["changes"]["Name"] for event in own]
            assert all(old == former for (_, former), (old, _) in pairwise(values))
    for id in ids:
        caller.send("DELETE", f"{CURRENCIES}({id})")


def test_a_client_that_does_not_read_holds_up_nobody(platform: LivePlatform, caller: Caller) -> None:
    split = urlsplit(platform.base_url)
    with socket.create_connection((str(split.hostname), split.port or 80)) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        token = caller.http.headers["Authorization"]
        head = f"GET {PATH}?since=beginning HTTP/1.1\r\nHost: {split.netloc}\r\nAuthorization: {token!s}\r\n"
        silent.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        listener = Listener(caller, repository=NAME)
        id = create(caller, "idle I01")
        listener.wait_for(lambda events: types_of(events, id) == [f"{NAME}.Create"])
        listener.stop()
    caller.send("DELETE", f"{CURRENCIES}({id})")


def test_the_stream_is_described(platform: LivePlatform, caller: Caller) -> None:
    document = caller.http.get(f"{platform.base_url}/api/asyncapi.json", timeout=60).json()
    schemas = caller.http.get(f"{platform.base_url}/api/openapi.json", timeout=60).json()["components"]["schemas"]
    assert document["asyncapi"] == "3.0.0"
    answer = poll(caller, wait=0)
    assert set(document["components"]["schemas"]["LongPoll"]["properties"]) == set(answer)
    messages = document["components"]["messages"]
    assert set(document["channels"]["changes"]["messages"]) == set(messages)
    for message in messages.values():
        entity = message["payload"]["allOf"][1]["properties"]["data"]["properties"]["entity"]["$comment"]
        assert entity.rpartition("/")[2] in schemas
    assert f"{NAME}.Update" in messages


@pytest.mark.fuzz
def test_a_thousand_subscribers_hear_of_a_change_within_a_second() -> None:
    with start_platform(settings={"WEB_PROCESSES": "1"}) as platform:
        caller = Caller(platform)
        split = urlsplit(platform.base_url)
        token = caller.http.headers["Authorization"]
        head = f"GET {PATH}?repository={NAME} HTTP/1.1\r\nHost: {split.netloc}\r\nAuthorization: {token!s}\r\n"
        connections = []
        for _ in range(1_000):
            one = socket.create_connection((str(split.hostname), split.port or 80))
            one.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            connections.append(one)
        for one in connections:
            assert b"200" in one.recv(4096)
        delays: list[float] = []
        for turn in range(20):
            begun = time.monotonic()
            create(caller, f"much {turn:03}")
            for one in connections:
                one.settimeout(10)
                heard = b""
                while b"many" not in heard and b"much" not in heard:
                    heard += one.recv(65536)
                delays.append(time.monotonic() - begun)
        delays.sort()
        print(f"p50 {delays[len(delays) // 2]:.3f} s, p95 {delays[len(delays) * 95 // 100]:.3f} s")
        assert delays[len(delays) * 95 // 100] <= 1.0
        for one in connections:
            one.close()
