"""A thread is taken for a request that is whole (platform_site.serving.receiving)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.http import StreamingHttpResponse
from pytest_django import Settings

from foundation import errors
from foundation.streamed_responses import PipedResponse, TemporaryFileResponse
from platform_site import recorded_requests
from platform_site.models import RecordedRequest
from platform_site.serving import receiving
from platform_site.serving.application import PooledApplication
from platform_site.serving.callers import Callers
from platform_site.serving.connection_balance import ConnectionBalance, SharedCounts
from platform_site.serving.exchange import RESPONSE_BYTES, StartResponse, environ_of
from platform_site.serving.receiving import (
    AT_ONCE_BYTES,
    BODY_SECONDS,
    BYTES_PER_SECOND,
    FILE_SECONDS,
    KNOWN_BYTES,
    Receiver,
)
from platform_site.serving.scheduler import Request, Scheduler
from tests.domain.security.conftest import caller, person
from tests.identity.conftest import demo, fresh_process

__all__ = ["demo", "fresh_process"]


class Future:
    """As granian has them; `come` is what its server does."""

    def __init__(self) -> None:
        self.callback: Callable[[Any], None] = lambda future: None
        self.cancelled = False
        self._result: Any = None

    def add_done_callback(self, callback: Callable[[Any], None], context: Any) -> None:
        self.callback = callback

    def result(self) -> Any:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def cancel(self) -> bool:
        self.cancelled = True
        return True

    def come(self, result: Any) -> None:
        self._result = result
        self.callback(self)


class Client:
    """The connection of one request: what it sends, and what it was answered."""

    def __init__(self) -> None:
        self.asked = Future()
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self.streamed: list[bytes] = []
        self.answers = 0
        self.file = ""
        self.gone = Future()

    def __call__(self) -> Future:
        return self.asked

    def __aiter__(self) -> Client:
        return self

    def __anext__(self) -> Future:
        self.asked = Future()
        return self.asked

    def client_disconnect(self) -> Future:
        return self.gone

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body
        self.answers += 1

    def response_file(self, status: int, headers: list[tuple[str, str]], file: str) -> None:
        self.file = file
        self.response_bytes(status, headers, Path(file).read_bytes())

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Any:
        self.status, self.headers = status, headers
        return SimpleNamespace(send_bytes=self.streamed.append)

    @property
    def message(self) -> str:
        """What an error says."""
        message: str = json.loads(self.body)["error"]["message"]
        return message


class Policy:
    """100,000 bytes, more than KNOWN_BYTES from those with a token, under /data an application that refuses."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def prepare(self, environ: dict[str, Any]) -> None:
        """No proxies here."""

    def caller(self, environ: dict[str, Any]) -> tuple[str, bool]:
        token = environ.get("HTTP_AUTHORIZATION", "")
        return (token, False) if token in self.known else ("stranger", bool(token))

    def find_caller(self, environ: dict[str, Any]) -> str:
        self.known.append(environ["HTTP_AUTHORIZATION"])
        return self.known[-1]

    def max_bytes(self, environ: dict[str, Any]) -> int:
        return 100_000

    def is_known(self, environ: dict[str, Any]) -> bool:
        if environ.get("HTTP_COOKIE") == "sessionid=guess":
            raise errors.TooManyRequests(30, 7, retry_after_seconds=7)
        return "HTTP_AUTHORIZATION" in environ

    def takes_data(self, environ: dict[str, Any]) -> bool:
        return bool(environ["PATH_INFO"].startswith("/data"))


def scope(path: str = "/", method: str = "POST", **headers: str) -> Any:
    """A request's head."""
    named = {"host": "example.org", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return SimpleNamespace(
        path=path,
        method=method,
        query_string="a=1",
        http_version="1.1",
        scheme="http",
        client="[2001:db8::1]:4711",
        server="127.0.0.1:8000",
        authority=None,
        headers=named,
    )


def echo(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Answers the body, read by its declared length as Django does."""
    start_response("200 OK", [])
    return [environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))]


def only_process() -> ConnectionBalance:
    """The connections of an instance with one web process."""
    return ConnectionBalance(SharedCounts(1), 0)


class AtOnce(Scheduler):
    """A scheduler without other requests."""

    def __init__(self) -> None:
        super().__init__()
        self.callers: list[tuple[str, bool]] = []
        self.is_full = False

    def submit(self, request: Request) -> bool:
        if self.is_full:
            return False
        self.callers.append((request.caller, request.resolve is not None))
        if request.resolve is not None:
            request.caller = request.resolve()
        request.work()
        return True

    def count_requests(self) -> int:
        return 0


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(echo, Policy(), AtOnce(), only_process())


@pytest.fixture
def send(receiver: Receiver) -> Callable[..., Client]:
    """Send a head."""

    def take(path: str = "/", method: str = "POST", **headers: str) -> Client:
        client = Client()
        receiver.take(SimpleNamespace(proto=client, scope=scope(path, method, **headers)))
        return client

    return take


def test_a_request_without_a_body_is_answered_at_once(send: Callable[..., Client]) -> None:
    assert send(method="GET").status == 200
    assert send(content_length="0").status == 200


def test_a_short_body_comes_at_once(send: Callable[..., Client]) -> None:
    client = send(content_length="5")
    assert client.answers == 0
    client.asked.come(b"hello")
    assert (client.status, client.body) == (200, b"hello")


def test_a_long_body_comes_in_parts(send: Callable[..., Client]) -> None:
    client = send(content_length=str(AT_ONCE_BYTES + 1))
    client.asked.come(b"x" * AT_ONCE_BYTES)
    client.asked.come(b"y")
    assert client.answers == 0
    client.asked.come(b"")
    assert client.body == b"x" * AT_ONCE_BYTES + b"y"


def test_a_chunked_body_gets_its_length(send: Callable[..., Client]) -> None:
    client = send(transfer_encoding="chunked")
    for part in (b"hel", b"lo", b""):
        client.asked.come(part)
    assert client.body == b"hello"


@pytest.mark.parametrize("length", [90, AT_ONCE_BYTES + 1])
def test_a_body_that_breaks_off_never_reaches_the_application(send: Callable[..., Client], length: int) -> None:
    """Even where what arrived would be a whole document: nobody knows what else was to come."""
    client = send(content_length=str(length))
    if length > AT_ONCE_BYTES:
        client.asked.come(b'{"Name":"Gone"}')
    client.asked.come(RuntimeError("closed"))
    assert (client.status, client.answers) == (400, 1)
    assert f"the {length} bytes" in client.message


@pytest.mark.django_db
def test_a_request_that_never_reaches_the_application_is_recorded_by_its_id(
    send: Callable[..., Client], settings: Settings
) -> None:
    settings.REQUEST_HISTORY_DAYS = 14
    client = send("/api/x", content_length=str(AT_ONCE_BYTES + 1))
    for part in (b"hel", b""):
        client.asked.come(part)
    recorded_requests.pending.flush()
    row = RecordedRequest.objects.get()
    assert dict(client.headers)["X-Request-Id"] == row.request_id
    assert row.request_id in json.loads(client.body)["error"]["info"]
    assert (row.method, row.path, row.status, row.error_type) == ("POST", "/api/x?a=1", 400, "InvalidBody")


def test_a_refused_body_is_told_in_the_language_of_the_request(send: Callable[..., Client]) -> None:
    german = send(content_length="90", accept_language="de")
    german.asked.come(RuntimeError("closed"))
    assert "Content-Length" in german.message
    assert german.message.startswith("Der Rumpf")
    assert dict(german.headers)["Content-Language"] == "de"


@pytest.mark.parametrize("path", ["/", "/data"])
def test_more_than_a_little_is_taken_from_those_who_are_known(send: Callable[..., Client], path: str) -> None:
    length = KNOWN_BYTES + 1
    refused = send(path, content_length=str(length))
    # The application answers by itself where it can, and cannot take the missing body for an empty one.
    assert refused.status == (413 if path == "/" else 500)
    chunked = send(path, transfer_encoding="chunked")
    chunked.asked.come(b"x" * length)
    assert chunked.status == refused.status
    known = send(path, content_length=str(length), authorization="Bearer token")
    known.asked.come(b"x" * length)
    known.asked.come(b"")
    assert (known.status, len(known.body)) == (200, length)
    assert send("/", content_length="100001", authorization="Bearer token").status == 413


def test_who_tries_keys_by_large_bodies_is_slowed_down(send: Callable[..., Client]) -> None:
    refused = send(content_length=str(KNOWN_BYTES + 1), cookie="sessionid=guess")
    assert refused.status == 429
    assert ("Retry-After", "7") in refused.headers


def test_a_large_body_may_come_with_a_token_in_any_header(demo: None) -> None:
    reference = caller(person("alice", is_admin=True)).token
    assert reference.startswith("enrt_")
    for name, shown in (("AUTHORIZATION", f"Bearer {reference}"), ("X_API_KEY", reference), ("API_KEY", reference)):
        assert Callers().is_known(
            {"REMOTE_ADDR": "192.0.2.1", "PATH_INFO": "/api/domain/odata/Import", f"HTTP_{name}": shown}
        )
        assert not Callers().is_known(
            {"REMOTE_ADDR": "192.0.2.1", "PATH_INFO": "/api/domain/odata/Import", f"HTTP_{name}": f"{shown}0"}
        )


def test_a_body_has_a_deadline_that_its_parts_put_off(receiver: Receiver, send: Callable[..., Client]) -> None:
    silent, slow, done = send(content_length="10"), send(transfer_encoding="chunked"), send(content_length="1")
    slow.asked.come(b"x" * BYTES_PER_SECOND * 10)
    done.asked.come(b"x")
    now = time.monotonic()
    receiver.check(now + BODY_SECONDS - 1)
    assert (silent.answers, slow.answers) == (0, 0)
    receiver.check(now + BODY_SECONDS + 1)
    assert (silent.status, slow.answers, done.answers) == (408, 0, 1)
    assert ("Connection", "close") in silent.headers
    assert silent.asked.cancelled
    silent.asked.come(b"0123456789")
    assert silent.answers == 1, "what comes after the deadline is not served"
    receiver.check(now + BODY_SECONDS + 11)
    assert slow.status == 408


def test_a_process_that_ends_does_not_wait_for_bodies(receiver: Receiver, send: Callable[..., Client]) -> None:
    client = send(content_length="10")
    receiver.stop()
    receiver.check(time.monotonic() + receiving.STOP_SECONDS + 1)
    assert client.status == 408


def test_the_caller_of_a_request_is_looked_up_once() -> None:
    scheduler = AtOnce()
    receiver = Receiver(echo, Policy(), scheduler, only_process())
    for _ in range(2):
        receiver.take(SimpleNamespace(proto=Client(), scope=scope(method="GET", authorization="Bearer token")))
    receiver.take(SimpleNamespace(proto=Client(), scope=scope(method="GET")))
    assert scheduler.callers == [("stranger", True), ("Bearer token", False), ("stranger", False)]


def test_a_caller_with_a_full_queue_is_refused() -> None:
    client, scheduler = Client(), AtOnce()
    scheduler.is_full = True
    Receiver(echo, Policy(), scheduler, only_process()).take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert (client.status, dict(client.headers)["Retry-After"]) == (429, "1")
    assert "of your requests wait" in client.message


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_of_a_caller_with_a_full_queue_is_refused_once(chunked: bool) -> None:
    client, scheduler = Client(), AtOnce()
    scheduler.is_full = True
    receiver = Receiver(echo, Policy(), scheduler, only_process())
    framing = {"transfer_encoding": "chunked"} if chunked else {"content_length": str(KNOWN_BYTES + 1)}
    receiver.take(SimpleNamespace(proto=client, scope=scope(**framing)))
    if chunked:
        client.asked.come(b"x" * (KNOWN_BYTES + 1))
    assert (client.status, client.answers) == (429, 1)
    receiver.check(time.monotonic() + BODY_SECONDS + KNOWN_BYTES)
    assert client.answers == 1, "the body has no deadline any more"


def large(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Answers a megabyte and a byte."""
    start_response("200 OK", [])
    return [b"a" * RESPONSE_BYTES, b"b"]


def test_a_large_response_is_kept_in_a_file() -> None:
    client = Client()
    receiver = Receiver(PooledApplication(large), Policy(), AtOnce(), only_process())
    receiver.take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert client.body == b"a" * RESPONSE_BYTES + b"b"
    assert ("Content-Length", str(RESPONSE_BYTES + 1)) in client.headers
    assert Path(client.file).exists()
    receiver.check(time.monotonic() + FILE_SECONDS + 1)
    assert not Path(client.file).exists()


def test_a_temporary_file_is_sent_as_it_is() -> None:
    """The web server reads it; the application has neither read nor closed it."""

    def export(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115  (the receiver closes it)
        file.write(b"a,b")
        file.flush()
        response = TemporaryFileResponse(file, filename="Продажби.csv", content_type="text/csv")
        start_response("200 OK", [*response.headers.items()])
        return response

    client = Client()
    receiver = Receiver(PooledApplication(export), Policy(), AtOnce(), only_process())
    receiver.take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert client.body == b"a,b"
    assert ("Content-Length", "3") in client.headers
    assert Path(client.file).exists()
    receiver.check(time.monotonic() + FILE_SECONDS + 1)
    assert not Path(client.file).exists()


def test_a_piped_response_that_begins_while_the_process_stops_is_refused() -> None:
    class Parts:
        closed = 0

        def __iter__(self) -> Iterator[bytes]:
            return iter([b"never sent"])

        def close(self) -> None:
            self.closed += 1

    parts, client = Parts(), Client()
    receiver = Receiver(lambda environ, start_response: PipedResponse(parts), Policy(), AtOnce(), only_process())
    receiver.stop()
    receiver.take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert (client.status, client.answers, parts.closed) == (503, 1, 1)
    assert client.message == "The server stops or restarts. Try again in 1 seconds."
    assert dict(client.headers)["Retry-After"] == "1"


@pytest.mark.parametrize("parts", [3, 300])
def test_a_streamed_response_is_whole(parts: int) -> None:
    """Beyond a megabyte it is written to a file while it is made, and never held as a whole."""
    ended: list[bool] = []

    def made() -> Iterator[bytes]:
        try:
            for number in range(parts):
                yield bytes([65 + number % 26]) * 10_000
        finally:
            ended.append(True)

    def rows(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        response = StreamingHttpResponse(made())
        start_response("200 OK", [*response.headers.items()])
        return cast(Iterable[bytes], response)

    client = Client()
    receiver = Receiver(PooledApplication(rows), Policy(), AtOnce(), only_process())
    receiver.take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert client.body == b"".join(bytes([65 + number % 26]) * 10_000 for number in range(parts))
    assert ended == [True]
    if parts == 300:
        assert ("Content-Length", "3000000") in client.headers
        assert Path(client.file).exists()


def test_a_failing_application_is_answered_for() -> None:
    def fail(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        raise ValueError("broken")

    client = Client()
    Receiver(fail, Policy(), AtOnce(), only_process()).take(SimpleNamespace(proto=client, scope=scope(method="GET")))
    assert client.status == 500


def test_the_environment_is_what_wsgi_says() -> None:
    twice = scope("/caf\u00e9", x_one="a", content_type="text/plain")
    headers = [*twice.headers.items(), ("x-one", "b"), ("x_forwarded_for", "6.6.6.6"), ("x-forwarded-for", "1.1.1.1")]
    twice.headers = SimpleNamespace(items=lambda: headers, keys=lambda: [*dict(headers), "x-two"])
    environ = environ_of(twice)
    assert environ["PATH_INFO"] == "/caf\u00c3\u00a9"
    assert environ["REMOTE_ADDR"] == "2001:db8::1"
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("127.0.0.1", "8000")
    assert (environ["CONTENT_TYPE"], environ["HTTP_X_ONE"]) == ("text/plain", "a,b")
    assert environ["HTTP_X_TWO"] == "", "a value that is not ASCII has no item"
    assert environ["HTTP_X_FORWARDED_FOR"] == "1.1.1.1", "a name with an underscore is dropped"
