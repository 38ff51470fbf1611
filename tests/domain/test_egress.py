"""Requests go only where the instance allows, whatever a URL looks like and a name resolves to (spec 06, 6.2)."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from foundation import errors
from foundation.egress import client
from foundation.egress.client import EgressFailed, EgressRequest, EgressResponse
from foundation.egress.policy import EgressPolicy, destination_of
from tests.support.receiver import Answer, LoopbackReceiver

LOOPBACK = EgressPolicy.parse(["127.0.0.0/8", "::1"])
PUBLIC_ONLY = EgressPolicy()


def get(url: str, policy: EgressPolicy = LOOPBACK, timeout: float = 3, **options: object) -> EgressResponse:
    return client.send(EgressRequest("GET", url, total_timeout_seconds=timeout), policy=policy, **options)  # type: ignore[arg-type]


@contextmanager
def raw_server(serve: Callable[[socket.socket], None], family: int = socket.AF_INET) -> Iterator[int]:
    """A server that says what `serve` writes, once for each connection; its port."""
    listener = socket.socket(family)
    listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
    listener.listen()

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    serve(connection)
                except OSError:
                    pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


# --- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "017700000001", "localhost",
        "0.0.0.0", "0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0xa9fea9fe", "100.64.0.1",
        "100.100.100.200", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.170", "198.18.0.1", "168.63.129.16",
        "192.88.99.1",
        "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[fe80::1]", "[fc00::1]",
        "[fd00:ec2::254]", "[ff02::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]",
        "[2001:0:53aa:64c:0:0:80ff:fffe]", "[2001:db8::1]", "[fec0::1]",
        # Special-purpose ranges in which versions of Python's ipaddress differ.
        "192.0.0.1", "192.0.0.9", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.175.48.1", "198.51.100.1",
        "203.0.113.1", "0.1.2.3", "[64:ff9b:1::1]", "[100::1]", "[2001:1::1]", "[2001:20::1]", "[3fff::1]", "[5f00::1]",
        "[2620:4f:8000::1]", "[4000::1]", "[::ffff:0:7f00:1]", "[2002:a00:1::]",
    ],
)  # fmt: skip
def test_addresses_inside_are_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(errors.Refused) as refused:
        get(f"http://{host}/", PUBLIC_ONLY)
    assert refused.value.code is errors.EGRESS_REFUSED


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert PUBLIC_ONLY.problem("example.com", address) is None


@pytest.mark.parametrize(
    "entries, host, address, allowed",
    [
        (["10.0.0.0/8"], "erp", "10.2.3.4", True),
        (["10.0.0.0/8"], "erp", "192.168.0.1", False),
        (["10.2.3.4"], "erp", "10.2.3.4", True),
        (["10.0.0.0/8"], "erp", "::ffff:10.2.3.4", True),
        (["::1/128"], "erp", "::1", True),
        (["erp.local"], "erp.local", "192.168.0.1", True),
        (["erp.local"], "other.local", "192.168.0.1", False),
        (["*.erp.local"], "a.b.erp.local", "192.168.0.1", True),
        (["*.erp.local"], "erp.local", "192.168.0.1", False),
        (["*.erp.local"], "evilerp.local", "192.168.0.1", False),
        (["bücher.local"], "bücher.local", "192.168.0.1", True),
        (["*.BÜCHER.local"], "a.bücher.local", "192.168.0.1", True),
        (["ü..local", "*.bücher.local"], "bücher.local", "192.168.0.1", False),
    ],
)
def test_the_allow_list_names_hosts_and_networks(entries: list[str], host: str, address: str, allowed: bool) -> None:
    destination = destination_of(f"http://{host}/")
    assert (EgressPolicy.parse(entries).problem(destination.host, address) is None) is allowed


def test_a_name_that_changes_its_mind_is_resolved_once(loopback_receiver: LoopbackReceiver) -> None:
    """DNS rebinding: the first answer is what is checked and what is connected to."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    asked = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    port = loopback_receiver.url.rpartition(":")[2]
    with pytest.raises(EgressFailed):
        get(f"http://rebind.example:{port}/", PUBLIC_ONLY, timeout=0.5, resolver=resolver)
    assert asked == ["rebind.example"]
    assert loopback_receiver.requests == []


def test_the_connection_goes_to_the_checked_address_under_the_name(loopback_receiver: LoopbackReceiver) -> None:
    port = loopback_receiver.url.rpartition(":")[2]
    answer = get(f"http://shop.example:{port}/a?b=c", resolver=lambda host, port: ["10.0.0.9", "127.0.0.1"])
    assert answer.address == "127.0.0.1"
    assert loopback_receiver.requests[0].headers["Host"] == f"shop.example:{port}"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com@127.0.0.1/", "http://user:pw@example.com/", "http://127.0.0.1\\@example.com/",
        "http://exa mple.com/", "http://example.com\t/", "http://example.com/\r\nX: y", "ftp://example.com/",
        "file:///etc/passwd", "//example.com/", "example.com", "http://", "http:///path", "http://[fe80::1%25eth0]/",
        "http://example.com:0/", "http://example.com:99999/", "http://example.com:x/", "http://[::1", "gopher://x/",
    ],
)  # fmt: skip
def test_urls_that_mislead_or_name_no_host_are_refused(url: str) -> None:
    with pytest.raises(errors.Refused):
        get(url)


@pytest.mark.parametrize(
    "url, name, host_header, target",
    [
        ("http://Example.COM", "example.com:80", "example.com", "/"),
        ("https://example.com:443/a", "example.com:443", "example.com", "/a"),
        ("https://example.com:8443/a?x=%20ä", "example.com:8443", "example.com:8443", "/a?x=%20%C3%A4"),
        ("http://[::1]:81/", "[::1]:81", "[::1]:81", "/"),
        ("http://bücher.example/#part", "xn--bcher-kva.example:80", "xn--bcher-kva.example", "/"),
    ],
)
def test_urls_are_read(url: str, name: str, host_header: str, target: str) -> None:
    destination = destination_of(url)
    assert (destination.name, destination.host_header, destination.target) == (name, host_header, target)


# --- the exchange -------------------------------------------------------------------------------------------------


def test_the_request_goes_out_byte_for_byte() -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def run() -> None:
        connection, _ = listener.accept()
        with connection:
            data = b""
            while not data.endswith(b"body"):
                data += connection.recv(65536)
            seen.append(data)
            serve(connection)

    thread = threading.Thread(target=run)
    thread.start()
    request = EgressRequest(
        "POST", f"http://127.0.0.1:{port}/p?q=1", [("X-B", "2"), ("X-A", "1"), ("X-B", "ü")], b"body"
    )
    answer = client.send(request, policy=LOOPBACK)
    thread.join()
    listener.close()
    assert answer.status == 204
    assert seen == [
        f"POST /p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-B: 2\r\nX-A: 1\r\nX-B: ü\r\n"
        "Content-Length: 4\r\n\r\nbody".encode()
    ]


def test_redirects_are_answers(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(302, headers={"Location": f"{loopback_receiver.url}/elsewhere"}))
    assert get(loopback_receiver.url).status == 302
    assert len(loopback_receiver.requests) == 1


def test_a_huge_answer_is_read_up_to_64_kb(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(Answer(200, body=b"x" * 300_000))
    answer = get(loopback_receiver.url)
    assert (len(answer.body), answer.truncated) == (64 * 1024, True)


def test_an_answer_that_ends_with_the_connection_is_read() -> None:
    with raw_server(lambda connection: connection.sendall(b"HTTP/1.0 200 OK\r\nX: y\r\n\r\nhello")) as port:
        answer = get(f"http://127.0.0.1:{port}/")
    assert (answer.body, answer.truncated, answer.header("x")) == (b"hello", False, "y")


def trickle(connection: socket.socket, beginning: bytes) -> None:
    connection.sendall(beginning)
    for _ in range(100):
        time.sleep(0.05)
        connection.sendall(b"x")


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"]
)
def test_a_server_that_trickles_cannot_outlast_the_total_timeout(beginning: bytes) -> None:
    with raw_server(lambda connection: trickle(connection, beginning)) as port, pytest.raises(EgressFailed) as failed:
        get(f"http://127.0.0.1:{port}/", timeout=0.4)
    assert failed.value.kind == "timeout"


def test_a_slow_name_server_cannot_outlast_it_either() -> None:
    given_up = threading.Event()

    def resolver(host: str, port: int) -> list[str]:
        given_up.wait(60)
        return []

    with pytest.raises(EgressFailed, match="within"):
        get("http://slow.example/", timeout=0.2, resolver=resolver)
    assert not given_up.is_set()
    given_up.set()


def test_connecting_has_a_timeout_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as others:
        for _ in range(4):  # nobody accepts: from the second on they wait, and so does every later one
            waiting = others.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        request = EgressRequest(
            "GET",
            f"http://127.0.0.1:{full.getsockname()[1]}/",
            connect_timeout_seconds=0.1,
            total_timeout_seconds=60,
        )
        with pytest.raises(EgressFailed, match="no connection in time") as failed:
            client.send(request, policy=LOOPBACK)
    assert failed.value.kind == "timeout"


def test_a_port_that_nobody_listens_on_fails_to_connect() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(EgressFailed) as failed:
            get(f"http://127.0.0.1:{probe.getsockname()[1]}/")
    assert failed.value.kind == "connect"


def test_a_name_without_address_fails_to_resolve() -> None:
    def resolver(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(EgressFailed) as failed:
        get("http://nowhere.example/", resolver=resolver)
    assert failed.value.kind == "resolve"


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH\r\n", b"", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_not_http_is_a_failure_of_the_protocol(said: bytes) -> None:
    with raw_server(lambda connection: connection.sendall(said)) as port, pytest.raises(EgressFailed) as failed:
        get(f"http://127.0.0.1:{port}/")
    assert failed.value.kind == "protocol"


@pytest.mark.parametrize(
    "header",
    [
        ("X", "a\r\nY: b"), ("X", "a\nY: b"), ("X\r\nY", "b"), ("X Y", "b"), ("X:", "b"), ("", "b"), ("X", "a\x00"),
        ("Host", "inside"), ("host", "inside"), ("Content-Length", "0"), ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive"), ("Keep-Alive", "1"), ("TE", "trailers"), ("Trailer", "X"), ("Upgrade", "h2c"),
        ("Expect", "100-continue"), ("Proxy-Authorization", "x"),
    ],
)  # fmt: skip
def test_headers_of_the_connection_and_line_breaks_are_refused(header: tuple[str, str]) -> None:
    """Before anything is sent: nobody listens on the port."""
    with pytest.raises(errors.Refused) as refused:
        client.send(EgressRequest("POST", "http://127.0.0.1:9/", [header]), policy=LOOPBACK)
    assert refused.value.code is errors.EGRESS_REFUSED


@pytest.mark.parametrize(
    "host, listed",
    [
        ("erp.example", True), ("a.shops.example", True), ("a.b.shops.example", True), ("10.0.0.7", True),
        ("shops.example", False), ("evil-shops.example", False), ("erp.example.evil.com", False), ("10.0.0.8", False),
        ("1.1.1.1", False),
    ],
)  # fmt: skip
def test_a_host_from_data_must_be_listed_by_itself(host: str, listed: bool) -> None:
    """Networks list nothing: they say which addresses may be reached, not which hosts data may choose."""
    policy = EgressPolicy.parse(["erp.example", "*.shops.example", "10.0.0.7", "10.1.0.0/16", "1.1.0.0/16"])
    assert policy.lists(host) is listed
    request = EgressRequest("GET", f"http://{host}/", listed_hosts_only=True)
    if not listed:
        with pytest.raises(errors.Refused, match="EGRESS_ALLOW"):
            client.send(request, policy=policy)


def test_ipv6_is_spoken() -> None:
    try:
        with raw_server(lambda connection: connection.sendall(b"HTTP/1.1 204 No\r\n\r\n"), socket.AF_INET6) as port:
            assert get(f"http://[::1]:{port}/").address == "::1"
    except OSError as exc:
        pytest.skip(f"no IPv6 loopback here: {exc}")


# --- TLS ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate for good.example in one file."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "good.example")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("good.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "good.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@contextmanager
def tls_server(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        try:
            connection, _ = listener.accept()
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        except OSError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        thread.join(60)


@pytest.mark.parametrize(
    "host, trusted, expected",
    [("good.example", True, None), ("bad.example", True, "tls"), ("good.example", False, "tls")],
)
def test_tls_is_verified_against_the_name(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool, expected: str | None
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client.tls_context.cache_clear()
    kind = None
    with tls_server(certificate) as port:
        try:
            get(f"https://{host}:{port}/", resolver=lambda host, port: ["127.0.0.1"])
        except EgressFailed as exc:
            kind = exc.kind
        finally:
            client.tls_context.cache_clear()
    assert kind == expected
