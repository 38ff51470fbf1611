"""HTTP client for addresses that users configure: webhooks and scripts (spec 06, 6.2, "Egress safety").

`send` resolves the host name once, refuses non-public addresses, and connects to the address that it checked. So DNS
rebinding has no effect. The check uses resolved addresses, never the spelling in the URL: 2130706433, 0x7f.1,
0177.0.0.1 and [::ffff:127.0.0.1] are all 127.0.0.1. TLS is verified against the host name. Redirects are not followed.
Proxies of the environment are not used, because a proxy would resolve the name itself.

The client uses http.client, the layer below urllib3: only the opening of the socket is replaced, the request is sent
byte for byte as given, and one deadline covers the whole exchange. urllib3's timeouts are per read, so a server that
sends one byte a second could hold a connection for ever.

errors.Refused (EGRESS_REFUSED)   the URL or every address of its host is not allowed; the request was not sent
EgressFailed                      the request was tried: kind is "resolve", "connect", "tls", "timeout" or "protocol"
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import certifi

from foundation import errors
from foundation.egress.headers import InvalidHeader, check_headers
from foundation.egress.policy import POLICY_SETTING, Destination, EgressPolicy, destination_of, egress_policy
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of

Headers = Sequence[tuple[str, str]]
Kind = Literal["resolve", "connect", "tls", "timeout", "protocol"]
#: (host, port) → addresses as text, in order of preference. Raises OSError.
Resolver = Callable[[str, int], Sequence[str]]

MAX_RESPONSE_BYTES = 64 * 1024
_CHUNK_BYTES = 16 * 1024


class EgressFailed(Exception):
    """The request was tried and no complete response arrived. The message is for people and contains nothing of the
    request.
    """

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class EgressRequest:
    """One request. The client adds Host and Content-Length; everything else is sent as given, in order.

    total_timeout_seconds  from the DNS lookup to the last byte of the response
    listed_hosts_only      refuse hosts that the policy does not list, public ones too
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    connect_timeout_seconds: float = 5.0
    total_timeout_seconds: float = 10.0
    max_response_bytes: int = MAX_RESPONSE_BYTES
    listed_hosts_only: bool = False


@dataclass(frozen=True, slots=True)
class EgressResponse:
    """A response with any status. `body` is cut at the limit; `truncated` says whether there was more."""

    status: int
    reason: str
    headers: Headers
    body: bytes
    truncated: bool
    address: str

    def header(self, name: str) -> str | None:
        """The first value of a header, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


# --- sending ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Deadline:
    at: float

    def remaining(self) -> float:
        """Seconds left. Raises TimeoutError when there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def resolve_by_system(host: str, port: int) -> list[str]:
    """Addresses of a name from the operating system's resolver, without duplicates, in its order."""
    result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in result))


def send(
    request: EgressRequest, *, policy: EgressPolicy | None = None, resolver: Resolver = resolve_by_system
) -> EgressResponse:
    """Send one request and read its response. The module's docstring lists the errors.

    `policy` defaults to the instance's.
    """
    try:
        destination = destination_of(request.url)
    except ValueError as exc:
        raise errors.Refused(errors.EGRESS_REFUSED, _shown(request.url), reason_of(exc)) from exc
    policy = policy or egress_policy()
    if request.listed_hosts_only and not policy.lists(destination.host):
        raise errors.Refused(
            errors.EGRESS_REFUSED,
            destination.name,
            Message("a host that comes from a placeholder must be listed in the setting {0}", POLICY_SETTING),
        )
    try:
        check_headers(request.headers)
    except InvalidHeader as exc:
        raise errors.Refused(errors.EGRESS_REFUSED, destination.name, reason_of(exc)) from exc
    deadline = _Deadline(time.monotonic() + request.total_timeout_seconds)
    try:
        addresses = _allowed_addresses(destination, policy, resolver, deadline)
        connection = _PinnedConnection(destination, addresses, deadline, request.connect_timeout_seconds)
        try:
            return _exchange(connection, request, destination.target)
        finally:
            connection.hang_up()
    except TimeoutError as exc:
        raise EgressFailed(
            "timeout", Message("no complete answer within {0} seconds", f"{request.total_timeout_seconds:g}")
        ) from exc
    except ssl.SSLError as exc:
        reason = getattr(exc, "verify_message", "") or exc.reason or Message("handshake failed")
        raise EgressFailed("tls", Message("TLS: {0}", reason)) from exc
    except http.client.RemoteDisconnected as exc:
        raise EgressFailed("protocol", Message("the connection was closed without an answer")) from exc
    except http.client.HTTPException as exc:
        raise EgressFailed("protocol", Message("the answer is not HTTP: {0}", type(exc).__name__)) from exc
    except ValueError as exc:
        raise EgressFailed(
            "protocol", Message("the method or a header holds characters that HTTP does not allow")
        ) from exc
    except OSError as exc:
        raise EgressFailed("connect", exc.strerror or type(exc).__name__) from exc


def _shown(url: str) -> str:
    """A URL for messages, without query and userinfo, which may hold secrets."""
    return url.partition("?")[0].rpartition("@")[2][:100]


def _allowed_addresses(
    destination: Destination, policy: EgressPolicy, resolver: Resolver, deadline: _Deadline
) -> list[str]:
    addresses = _resolve(destination, resolver, deadline)
    allowed: list[str] = []
    problem: str = Message("its name has no address")
    for address in addresses:
        result = policy.problem(destination.host, address)
        if result is None:
            allowed.append(address)
        else:
            problem = result
    if not allowed:
        raise errors.Refused(errors.EGRESS_REFUSED, destination.name, problem)
    return allowed


def certain_refusal(destination: Destination, *, policy: EgressPolicy | None = None) -> str | None:
    """Reason why a request to the destination is always refused, without a DNS lookup; None if that is not certain.

    Certain are hosts that are IP addresses in any spelling, and names of this machine (RFC 6761, 6.3).
    """
    host = destination.host.rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        addresses = ["127.0.0.1"]
    else:
        try:
            result = socket.getaddrinfo(host, destination.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except OSError:
            return None
        addresses = [str(entry[4][0]) for entry in result]
    return _refusal(destination, addresses, policy or egress_policy())


def present_refusal(
    destination: Destination,
    *,
    timeout_seconds: float,
    policy: EgressPolicy | None = None,
    resolver: Resolver = resolve_by_system,
) -> str | None:
    """Reason why a request to the destination would be refused now, after one DNS lookup; None also if the lookup times
    out.
    """
    try:
        addresses = _resolve(destination, resolver, _Deadline(time.monotonic() + timeout_seconds))
    except (TimeoutError, EgressFailed):
        return None
    return _refusal(destination, addresses, policy or egress_policy())


def _refusal(destination: Destination, addresses: Sequence[str], policy: EgressPolicy) -> str | None:
    problems = [policy.problem(destination.host, address) for address in addresses]
    return problems[0] if problems and all(problems) else None


def _resolve(destination: Destination, resolver: Resolver, deadline: _Deadline) -> Sequence[str]:
    """Resolve in a separate thread: getaddrinfo has no timeout and may take half a minute."""
    try:
        return [str(ipaddress.ip_address(destination.host))]
    except ValueError:
        pass
    result: list[Sequence[str] | Exception] = []

    def look_up() -> None:
        try:
            result.append(resolver(destination.host, destination.port))
        except (OSError, UnicodeError) as exc:
            result.append(exc)

    thread = threading.Thread(target=look_up, name="egress-resolve", daemon=True)
    thread.start()
    thread.join(deadline.remaining())
    if not result:
        raise TimeoutError
    if isinstance(result[0], Exception):
        raise EgressFailed("resolve", Message("the name {0} cannot be resolved", destination.host)) from result[0]
    return result[0]


class _PinnedConnection(http.client.HTTPConnection):
    """A connection to one of the checked addresses; the host name is not resolved again."""

    def __init__(
        self, destination: Destination, addresses: Sequence[str], deadline: _Deadline, connect_timeout_seconds: float
    ) -> None:
        super().__init__(destination.host, destination.port)
        self._scheme = destination.scheme
        self.host_header = destination.host_header
        self._addresses = addresses
        self._deadline = deadline
        self._connect_timeout_seconds = connect_timeout_seconds
        self.address = ""
        self._opened: socket.socket | None = None

    def connect(self) -> None:
        """Try the addresses in order, within the connect timeout together."""
        give_up = _Deadline(min(self._deadline.at, time.monotonic() + self._connect_timeout_seconds))
        for position, address in enumerate(self._addresses):
            try:
                opened = socket.create_connection((address, self.port), give_up.remaining())
            except TimeoutError as exc:
                raise EgressFailed("timeout", Message("no connection in time")) from exc
            except OSError:
                if position == len(self._addresses) - 1:
                    raise
                continue
            self.address, self._opened = address, opened
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._opened = self._secured(opened)
            self.sock = _TimedSocket(self._opened, self._deadline)
            return

    def hang_up(self) -> None:
        """Close without reading the rest of the response."""
        if self._opened is not None:
            self._opened.close()

    def _secured(self, opened: socket.socket) -> socket.socket:
        if self._scheme != "https":
            return opened
        opened.settimeout(self._deadline.remaining())
        return tls_context().wrap_socket(opened, server_hostname=self.host.rstrip("."))


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """A context that verifies certificate and host name against the system's authorities (or SSL_CERT_FILE)."""
    context = ssl.create_default_context()
    known: Any = ssl.get_default_verify_paths()  # files that do not exist are None, unlike the library's types say
    if known.cafile is None and known.capath is None:
        context.load_verify_locations(certifi.where())
    return context


class _TimedSocket:
    """The socket interface that http.client needs; every wait ends at the deadline."""

    def __init__(self, inner: socket.socket, deadline: _Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._inner.settimeout(self._deadline.remaining())
        self._inner.sendall(data)

    def makefile(self, mode: str, *args: Any, **kwargs: Any) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._inner, self._deadline), _CHUNK_BYTES)

    def close(self) -> None:
        """Do nothing: http.client closes before it reads a response that ends with the connection. `send` closes."""


class _TimedReader(io.RawIOBase):
    def __init__(self, inner: socket.socket, deadline: _Deadline) -> None:
        super().__init__()
        self._inner = inner
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._inner.settimeout(self._deadline.remaining())
        return self._inner.recv_into(buffer)


@dataclass(slots=True)
class _Body:
    limit: int
    chunks: list[bytes] = field(default_factory=list)

    def read(self, answer: http.client.HTTPResponse) -> bool:
        """Read up to the limit; returns whether there was more."""
        left = self.limit
        while left > 0:
            chunk = answer.read1(min(left, _CHUNK_BYTES))
            if not chunk:
                return False
            self.chunks.append(chunk)
            left -= len(chunk)
        return bool(answer.read1(1))


def _exchange(connection: _PinnedConnection, request: EgressRequest, target: str) -> EgressResponse:
    connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", connection.host_header)
    for name, value in request.headers:
        # Beyond ASCII a header value is opaque bytes (RFC 9110, 5.5); UTF-8 is what receivers expect.
        connection.putheader(name, value.encode())
    if request.body or request.method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
        connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body or None)
    answer = connection.getresponse()
    body = _Body(request.max_response_bytes)
    truncated = body.read(answer)
    return EgressResponse(
        answer.status, answer.reason, tuple(answer.getheaders()), b"".join(body.chunks), truncated, connection.address
    )
