"""What goes over the wire, and what may come back: real sockets, real deliveries (spec 06, 6.2)."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from audit.actors import OPERATOR
from domain.entities.systems_config import WebHook
from domain.entities.systems_core import Notification
from foundation.egress import client
from foundation.egress.client import tls_context
from foundation.errors import PlatformError
from foundation.fields import utc_now
from identity.models import User
from scripts.bridge import actions
from tests.support.certificates import certificate_for
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import deliver_due, new_currency, new_delivery, new_web_hook, reloaded
from webhooks.authentication import authentication_schemes
from webhooks.models import TemplateHealth, WebHookAttempt, WebHookDelivery
from webhooks.services import signing_secret_rotate

pytestmark = pytest.mark.django_db


@dataclass
class RawServer:
    """Keeps every byte of each request and says what `say` writes."""

    port: int
    received: list[bytes] = field(default_factory=list)


@contextmanager
def raw_server(say: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """A server of bytes on loopback; with a context it speaks TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(listener.getsockname()[1])

    def serve(plain: socket.socket) -> None:
        with plain, suppress(OSError):
            connection = context.wrap_socket(plain, server_side=True) if context else plain
            data = b""
            while b"\r\n\r\n" not in data:
                if not (chunk := connection.recv(65536)):
                    return
                data += chunk
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
            while len(body) < length:
                body += connection.recv(65536)
            server.received.append(head + b"\r\n\r\n" + body)
            say(connection)

    def run() -> None:
        with suppress(OSError):
            while True:
                serve(listener.accept()[0])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


def ok(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def delivered(url: str, **template: Any) -> WebHookDelivery:
    """A delivery of a new template after one attempt."""
    new_web_hook(url, **template)
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    return reloaded(delivery)


# --- the request --------------------------------------------------------------------------------------------------


def test_the_request_is_the_templates_byte_for_byte() -> None:
    body = '{"name": "{Name}", "nested": {"sign": "{CurrencySign}"}, "list": ["{CurrencySign}"]}'
    with raw_server(ok) as server:
        new_web_hook(
            f"http://127.0.0.1:{server.port}/a%20b/{{CurrencySign}}/x?n={{Name}}&fixed=1+1",
            Headers="X-Two: {Name}\nauthorization: Bearer s3cret\nX-One: 1\nX-One: 2",
            Body=body,
        )
        delivery = new_delivery("HOOK", new_currency("EUR", 'Eu"ro\n€'))
        secret = signing_secret_rotate("HOOK", by=OPERATOR)
        deliver_due()
    (raw,) = server.received
    timestamp = int(re.findall(rb"webhook-timestamp: (\d+)", raw)[0])
    assert abs(timestamp - time.time()) < 30
    sent_body = '{"name": "Eu\\"ro\\n€", "nested": {"sign": "EUR"}, "list": ["EUR"]}'.encode()
    ((_, signature),) = authentication_schemes.headers(
        [secret], message_id=str(delivery.pk), timestamp=timestamp, body=sent_body
    )
    expected = [
        "POST /a%20b/EUR/x?n=Eu%22ro%0A%E2%82%AC&fixed=1+1 HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        'X-Two: Eu"ro €',
        "authorization: Bearer s3cret",
        "X-One: 1",
        "X-One: 2",
        "Content-Type: application/json",
        "User-Agent: BusinessPlatform-Webhooks/1.0",
        f"webhook-id: {delivery.pk}",
        f"webhook-timestamp: {timestamp}",
        f"webhook-signature: {signature}",
        f"Content-Length: {len(sent_body)}",
    ]
    assert raw == "\r\n".join([*expected, "", ""]).encode() + sent_body


def test_a_template_without_body_sends_an_empty_one() -> None:
    with raw_server(ok) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}", Headers="User-Agent: mine")
    (raw,) = server.received
    lines = raw.decode().split("\r\n")
    assert lines[0] == "POST / HTTP/1.1"
    assert lines[2] == "User-Agent: mine"
    assert lines[-3:] == ["Content-Length: 0", "", ""]
    assert delivery.state == "Delivered"


#: What a template, a receiver and a rotation know, and nobody else may read.
SECRETS = ("Bearer s3cret-1", "s3cret-2", "s3cret-3", "s3cret-4", "whsec_")


def test_secrets_in_headers_get_into_no_log_and_no_row(
    loopback_receiver: LoopbackReceiver, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    """However an attempt ends: delivered, refused by the receiver, not allowed, or not to be sent at all."""
    caplog.set_level(logging.DEBUG)
    loopback_receiver.answer(200, Answer(500, headers={"Set-Cookie": "sid=s3cret-4"}))
    headers = "Authorization: Bearer s3cret-1\nX-Api-Key: s3cret-2\nX-Auth: {Name}"
    new_web_hook(f"{loopback_receiver.url}/", Headers=headers, RetryLogic="NoRetry")
    signing_secret_rotate("HOOK", by=OPERATOR)
    record = new_currency(name="s3cret-3")
    outcomes = []
    for change in ("delivered", "answered", "not allowed", "broken", "crash"):
        delivery = new_delivery("HOOK", record)
        if change == "not allowed":
            settings.EGRESS_ALLOW = []
        elif change == "broken":
            settings.EGRESS_ALLOW = ["127.0.0.0/8"]
            WebHookDelivery.objects.filter(pk=delivery.pk).update(
                headers=[["Authorization", "Bearer s3cret-1\r\nX: y"]]
            )
        elif change == "crash":
            WebHook._default_manager.update(signing_secret="whsec_nonsense")
        deliver_due()
        outcomes.append(WebHookAttempt.objects.get(delivery=delivery).outcome)
    assert outcomes == ["Delivered", "Failed", "Refused", "Refused", "Refused"]
    assert caplog.text.count("webhook not delivered") == 4
    told = [caplog.text, *(str(vars(entry)) for entry in caplog.records)]
    told += [str(row) for row in WebHookAttempt.objects.values()]
    told += [str({**row, "headers": ""}) for row in WebHookDelivery.objects.values()]
    for secret in SECRETS:
        assert [text for text in told if secret in text] == [], secret


# --- what comes back ----------------------------------------------------------------------------------------------


def test_a_huge_answer_costs_64_kb_and_counts_by_its_status() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        with suppress(OSError):
            while True:
                connection.sendall(b"x" * 65536)

    with raw_server(endless) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}/")
    assert delivery.state == "Delivered", "who read on would time out"
    assert len(WebHookAttempt.objects.get().response_body or "") == 4096


def test_a_body_that_trickles_is_cut_off_by_the_templates_timeout() -> None:
    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        with suppress(OSError):
            for _ in range(100):
                connection.sendall(b"x")
                time.sleep(0.1)

    with raw_server(trickle) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}/", TimeoutSeconds=1, RetryLogic="Retry")
    assert (delivery.state, delivery.attempt_count) == ("Pending", 1)
    assert "1 seconds" in (delivery.last_error or "")


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 999999 X\r\n\r\n"])
def test_what_is_no_answer_is_tried_again(answer: bytes) -> None:
    with raw_server(lambda connection: connection.sendall(answer)) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}/", RetryLogic="Retry")
    assert delivery.state == "Pending"
    assert (delivery.last_error or "").startswith("protocol:")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 O\0K\r\nX-A: b\0c\r\nContent-Length: 3\r\n\r\na\0b",
        b"HTTP/1.1 429 X\r\nRetry-After: " + b"9" * 5_000 + b"\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["NUL", "a number of 5,000 digits"],
)
def test_what_no_receiver_should_answer_is_an_outcome(answer: bytes) -> None:
    with raw_server(lambda connection: connection.sendall(answer)) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}/", RetryLogic="Retry")
    assert (delivery.state, delivery.attempt_count) == ("Pending", 1)
    attempt = WebHookAttempt.objects.get()
    assert attempt.status_code in (429, 500)
    assert "\0" not in f"{attempt.error}{attempt.response_head}{attempt.response_body}"


def test_a_2xx_whose_body_breaks_off_was_delivered() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"
    with raw_server(lambda connection: connection.sendall(answer)) as server:
        delivery = delivered(f"http://127.0.0.1:{server.port}/", RetryLogic="Retry")
    assert delivery.state == "Delivered"


def test_redirects_are_not_followed_not_even_to_inside(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(307, headers={"Location": f"{loopback_receiver.url}/elsewhere"}))
    delivery = delivered(f"{loopback_receiver.url}/")
    assert [request.path for request in loopback_receiver.requests] == ["/"]
    assert (delivery.state, delivery.last_error) == ("Failed", "307: redirects are not followed")


def test_410_stops_at_once_although_retries_are_left(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(410)
    delivery = delivered(f"{loopback_receiver.url}/", RetryLogic="Retry")
    assert (delivery.state, delivery.attempt_count) == ("Failed", 1)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_honoured_in_seconds_and_as_a_date(
    loopback_receiver: LoopbackReceiver, status: int, date: bool
) -> None:
    before = utc_now()
    value = formatdate(before.timestamp() + 300, usegmt=True) if date else "300"
    loopback_receiver.answer(Answer(status, headers={"Retry-After": value}))
    delivery = delivered(f"{loopback_receiver.url}/", RetryLogic="Retry")
    assert delivery.next_attempt_time_utc is not None
    wanted = before + timedelta(seconds=300)
    assert wanted - timedelta(seconds=1) <= delivery.next_attempt_time_utc <= wanted + (utc_now() - before)


def test_a_template_that_only_fails_is_suspended_and_administrators_are_told(
    loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    settings.WEBHOOKS = {"suspend_failures": 3, "suspend_after_seconds": 0}
    User.objects.create_superuser("boss", "vast-Harbour-42")
    loopback_receiver.default = Answer(500)
    new_web_hook(f"{loopback_receiver.url}/")
    deliveries = [new_delivery("HOOK", new_currency(f"C{number}")) for number in range(3)]
    deliver_due()
    late = new_delivery("HOOK", new_currency("LATE"))
    deliver_due()
    assert len(loopback_receiver.requests) == 3
    assert {reloaded(delivery).state for delivery in deliveries} == {"Failed"}
    assert reloaded(late).state == "Suspended"
    assert TemplateHealth.objects.get().suspended_at is not None
    assert "HOOK" in (Notification._default_manager.get(notification_class="WebHookSuspended").subject or "")


# --- TLS ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, trusted, state",
    [("127.0.0.1", True, "Delivered"), ("127.0.0.1", False, "Pending"), ("192.0.2.1", True, "Pending")],
)
def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool, state: str) -> None:
    certificate = certificate_for(name, tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client.tls_context.cache_clear()
    try:
        with raw_server(ok, context) as server:
            delivery = delivered(f"https://127.0.0.1:{server.port}/", RetryLogic="Retry")
    finally:
        client.tls_context.cache_clear()
    assert delivery.state == state, delivery.last_error
    if state == "Pending":
        assert (delivery.last_error or "").startswith("tls:")
        assert server.received == [], "nothing is said before the certificate is verified"


def test_the_default_context_verifies() -> None:
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


# --- where it goes ------------------------------------------------------------------------------------------------

INSIDE = [
    "http://127.0.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/", "http://[::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/", "http://localhost:{port}/",
    "http://0.0.0.0:{port}/", "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://192.168.1.1/",
    "http://[fe80::1]/", "http://[fd00::1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://224.0.0.1/",
]  # fmt: skip


@pytest.mark.parametrize("url", INSIDE)
def test_no_spelling_of_an_inner_address_is_ever_called(
    loopback_receiver: LoopbackReceiver, settings: Settings, url: str
) -> None:
    url = url.format(port=loopback_receiver.url.rpartition(":")[2])
    settings.EGRESS_ALLOW = ["0.0.0.0/0", "::/0", "localhost"]
    new_web_hook(url, RetryLogic="Retry")
    settings.EGRESS_ALLOW = []
    delivery = new_delivery("HOOK", new_currency())
    deliver_due()
    delivery = reloaded(delivery)
    assert (delivery.state, WebHookAttempt.objects.get().outcome) == ("Failed", "Refused"), delivery.last_error
    answer = actions.http("GET", url, "", False, None, time.monotonic() + 60)
    assert (answer["isSuccess"], answer["statusCode"]) == (False, 0)
    assert loopback_receiver.requests == []


@dataclass
class Rebinding:
    """A name server that answers with the first address once, and from then on with the second."""

    first: str
    second: str
    asked: int = 0

    def __call__(self, host: str, port: int, *args: object, **kwargs: object) -> list[tuple[object, ...]]:
        self.asked += 1
        address = self.first if self.asked == 1 else self.second
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


def rebind(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> tuple[Rebinding, list[tuple[str, int]]]:
    """The resolver of the whole process lies; (the resolver, the addresses that were connected to)."""
    resolver = Rebinding(first, second)
    connected: list[tuple[str, int]] = []
    real = socket.create_connection

    def connect(address: tuple[str, int], *args: object, **kwargs: object) -> socket.socket:
        connected.append(address)
        if address[0] != "127.0.0.1":
            raise ConnectionRefusedError
        return real(address, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    monkeypatch.setattr(socket, "create_connection", connect)
    return resolver, connected


def test_a_name_that_turns_inside_after_the_check_is_not_followed_there(
    loopback_receiver: LoopbackReceiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EGRESS_ALLOW = []
    port = int(loopback_receiver.url.rpartition(":")[2])
    new_web_hook(f"http://rebinding.example:{port}/", RetryLogic="Retry")
    delivery = new_delivery("HOOK", new_currency())
    with monkeypatch.context() as patched:
        resolver, connected = rebind(patched, "93.184.216.34", "127.0.0.1")
        deliver_due()
        assert resolver.asked == 1, "looked up once for check and connection"
        assert connected == [("93.184.216.34", port)]
        assert reloaded(delivery).state == "Pending"
        # The retry looks the name up anew, and is refused now that it leads inside.
        WebHookDelivery.objects.update(next_attempt_time_utc=utc_now())
        deliver_due()
    assert (reloaded(delivery).state, connected) == ("Failed", [("93.184.216.34", port)])
    assert "loopback" in (reloaded(delivery).last_error or "")
    assert loopback_receiver.requests == []


def test_scripts_are_held_to_the_same(
    loopback_receiver: LoopbackReceiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EGRESS_ALLOW = []
    port = int(loopback_receiver.url.rpartition(":")[2])
    url = f"http://rebinding.example:{port}/"
    with monkeypatch.context() as patched:
        resolver, connected = rebind(patched, "93.184.216.34", "127.0.0.1")
        first = actions.http("POST", url, "x", False, None, time.monotonic() + 60)
        second = actions.http("POST", url, "x", False, None, time.monotonic() + 60)
    assert (first["isSuccess"], second["isSuccess"], resolver.asked) == (False, False, 2)
    assert connected == [("93.184.216.34", port)]
    assert loopback_receiver.requests == []


@pytest.mark.parametrize("url", ["http://user:pw@127.0.0.1/", "http://example.com@127.0.0.1/", "http://127.0.0.1\\@x/"])
def test_userinfo_never_gets_into_the_outbox(url: str) -> None:
    with pytest.raises(PlatformError):
        new_web_hook(url)


def test_the_allow_list_lets_in_what_it_names(loopback_receiver: LoopbackReceiver, settings: Settings) -> None:
    port = loopback_receiver.url.rpartition(":")[2]
    new_web_hook(f"http://127.0.0.1:{port}/", code="OTHER")
    settings.EGRESS_ALLOW = ["localhost"]
    assert delivered(f"http://localhost:{port}/").state == "Delivered"
    other = new_delivery("OTHER", new_currency("USD"))
    deliver_due()
    assert reloaded(other).state == "Failed"
