"""Outgoing HTTP: a `requests` session whose adapter applies the egress policy (spec 06, 6.2, "Egress safety").

The adapter resolves the host name once, refuses non-public addresses, and connects to the address that it checked. So
DNS rebinding has no effect. The check uses the resolved addresses, not the text of the URL: 2130706433, 0x7f.1,
0177.0.0.1 and [::ffff:127.0.0.1] are all 127.0.0.1. TLS is verified against the host name. Redirects are not followed,
cookies not kept. Proxies of the environment are not used, because a proxy would resolve the name itself.

Connections are pooled for requests that may be repeated: a server may close a pooled connection just when the request
is sent, which is then sent again over a new connection.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.util import SKIP_HEADER

from foundation import dry_runs, errors
from foundation.egress.connection import (
    POOL_CLASSES,
    Deadline,
    EgressFailed,
    Exchange,
    current_exchange,
    tls_context,
)
from foundation.egress.headers import InvalidHeader, check_headers
from foundation.egress.policy import POLICY_SETTING, Destination, EgressPolicy, destination_of, egress_policy
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from foundation.per_process import PerProcess

__all__ = [
    "EgressAdapter",
    "EgressFailed",
    "EgressRequest",
    "EgressResponse",
    "EgressSession",
    "Headers",
    "certain_refusal",
    "present_refusal",
    "send",
    "tls_context",
]

Headers = Sequence[tuple[str, str]]
#: (host, port) → addresses as text, in order of preference. Raises OSError.
Resolver = Callable[[str, int], Sequence[str]]

MAX_RESPONSE_BYTES = 64 * 1024
CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 10.0
#: Methods whose requests may be repeated (RFC 9110, 9.2.2), and headers by which receivers recognize a repetition.
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_REPETITION_HEADERS = ("webhook-id", "Idempotency-Key")


def resolve_by_system(host: str, port: int) -> list[str]:
    """Addresses of a name from the operating system's resolver, without duplicates, in its order."""
    result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in result))


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
    connect_timeout_seconds: float = CONNECT_SECONDS
    total_timeout_seconds: float = TOTAL_SECONDS
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


def send(
    request: EgressRequest, *, policy: EgressPolicy | None = None, resolver: Resolver = resolve_by_system
) -> EgressResponse:
    """Send one request and read its response. The module's docstring lists the errors.

    `policy` defaults to the instance's.
    """
    destination = _destination(request.url)
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
    prepared = requests.PreparedRequest()
    prepared.method, prepared.url, prepared.body = request.method, request.url, request.body or None
    prepared.headers = _FieldLines([*_lines(request, destination)])
    seconds = request.connect_timeout_seconds, request.total_timeout_seconds
    response = _session().send(prepared, timeout=seconds, policy=policy, resolver=resolver)
    body = cast(_Body, response.raw)
    status, reason, content = response.status_code, response.reason, response.content
    return EgressResponse(status, reason, body.headers, content, body.truncated, body.address)


def _lines(request: EgressRequest, destination: Destination) -> Iterator[tuple[str, Any]]:
    """Every header line; SKIP_HEADER keeps urllib3 from adding one."""
    yield "Host", destination.host_header
    given = {name.lower() for name, _ in request.headers}
    yield from ((name, SKIP_HEADER) for name in ("User-Agent", "Accept-Encoding") if name.lower() not in given)
    # Beyond ASCII a header value is opaque bytes (RFC 9110, 5.5); UTF-8 is what receivers expect.
    yield from ((name, value.encode()) for name, value in request.headers)
    if request.body or request.method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
        yield "Content-Length", str(len(request.body))


class _FieldLines(CaseInsensitiveDict[Any]):
    """Headers in the order given; a name may repeat."""

    def __init__(self, lines: Sequence[tuple[str, Any]]) -> None:
        super().__init__(lines)
        self._lines = lines

    def items(self) -> Any:
        return self._lines

    def copy(self) -> _FieldLines:
        return _FieldLines(self._lines)


class EgressSession(requests.Session):
    """For users of `requests`: `get`, `post` … go through the adapter, and a timeout is for the whole exchange.

    Responses are read completely, up to 64 KB, and undecoded. `policy` defaults to the instance's.
    """

    def __init__(self, policy: EgressPolicy | None = None) -> None:
        super().__init__()
        self.trust_env = False
        self.headers.clear()
        adapter = EgressAdapter(policy)
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: redirects are not followed."""


_session = PerProcess(EgressSession)


class EgressAdapter(HTTPAdapter):
    """Sends requests to addresses that the policy allows; the module's docstring says how."""

    def __init__(self, policy: EgressPolicy | None = None) -> None:
        super().__init__(pool_connections=32, pool_maxsize=8)
        self._policy = policy

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        to = current_exchange.get().destination
        tls = {"ssl_context": tls_context()} if to.scheme == "https" else {}
        return {"scheme": to.scheme, "host": to.host, "port": to.port}, tls

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Ignore the arguments: the context of the pool always verifies."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        *args: Any,
        policy: EgressPolicy | None = None,
        resolver: Resolver = resolve_by_system,
        **kwargs: Any,
    ) -> requests.Response:
        """`timeout`: seconds for the whole exchange, or (to connect, for the whole exchange)."""
        connect, total = timeout if isinstance(timeout, tuple) else (CONNECT_SECONDS, timeout or TOTAL_SECONDS)
        deadline = Deadline.after(total)
        destination = _destination(request.url or "")
        if (run := dry_runs.current()) is not None:
            run.add("notRun", {"kind": "http", "method": request.method, "destination": destination.name})
            raise errors.Refused(errors.EGRESS_REFUSED, destination.name, Message("a dry run sends nothing"))
        try:
            addresses = _allowed_addresses(destination, policy or self._policy or egress_policy(), resolver, deadline)
            give_up = Deadline(min(deadline.at, Deadline.after(connect).at))
            may_reuse = _may_repeat(request)
            while True:
                exchange = Exchange(destination, addresses, deadline, give_up, may_reuse)
                try:
                    return self._exchange(request, exchange)
                except Exception as exc:
                    if not (exchange.reused and isinstance(_cause(exc), ConnectionError)):
                        raise
                may_reuse = False
        except Exception as exc:
            cause = _cause(exc)
            raise _failure(cause, total) from cause

    def _exchange(self, request: requests.PreparedRequest, exchange: Exchange) -> requests.Response:
        token = current_exchange.set(exchange)
        try:
            response = super().send(request, stream=True, timeout=exchange.deadline.remaining())
            response.raw = _Body(response.raw, exchange.address)
            return response
        finally:
            current_exchange.reset(token)


def _may_repeat(request: requests.PreparedRequest) -> bool:
    return request.method in _IDEMPOTENT or any(name in request.headers for name in _REPETITION_HEADERS)


class _Body(io.BytesIO):
    """The body up to the limit, with the connection's address; reading it releases or closes the connection."""

    def __init__(self, raw: urllib3.HTTPResponse, address: str) -> None:
        raw.enforce_content_length = False  # an incomplete body is a response, too
        try:
            read = raw.read(MAX_RESPONSE_BYTES + 1, decode_content=False)
        finally:
            raw.close()  # unless it is back in the pool
        super().__init__(read[:MAX_RESPONSE_BYTES])
        self.truncated = len(read) > MAX_RESPONSE_BYTES
        self.headers: Headers = tuple(raw.headers.items())
        self.address = address


def _cause(exc: BaseException) -> BaseException:
    """The innermost error, without the wrappers of requests and urllib3."""
    while isinstance(exc, (requests.RequestException, urllib3.exceptions.HTTPError)):
        below = exc.__cause__ or exc.__context__
        if isinstance(exc, EgressFailed) or below is None:
            break
        exc = below
    return exc


def _failure(exc: BaseException, total_seconds: float) -> BaseException:
    """The error to raise: EgressFailed, or the error itself if it is no failure of the exchange."""
    match exc:
        case EgressFailed():
            exc.__cause__ = None
            return exc
        case TimeoutError() | urllib3.exceptions.TimeoutError():
            return EgressFailed("timeout", Message("no complete answer within {0} seconds", f"{total_seconds:g}"))
        case ssl.SSLError():
            reason = getattr(exc, "verify_message", "") or exc.reason or Message("handshake failed")
            return EgressFailed("tls", Message("TLS: {0}", reason))
        case http.client.RemoteDisconnected():
            return EgressFailed("protocol", Message("the connection was closed without an answer"))
        case http.client.HTTPException() | urllib3.exceptions.HTTPError() | requests.RequestException():
            return EgressFailed("protocol", Message("the answer is not HTTP: {0}", type(exc).__name__))
        case ValueError():
            return EgressFailed("protocol", Message("the method or a header holds characters that HTTP does not allow"))
        case OSError():
            return EgressFailed("connect", exc.strerror or type(exc).__name__)
    return exc


# --- destinations -------------------------------------------------------------------------------------------------


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
        addresses = _resolve(destination, resolver, Deadline.after(timeout_seconds))
    except (TimeoutError, EgressFailed):
        return None
    return _refusal(destination, addresses, policy or egress_policy())


def _refusal(destination: Destination, addresses: Sequence[str], policy: EgressPolicy) -> str | None:
    problems = [policy.problem(destination.host, address) for address in addresses]
    return problems[0] if problems and all(problems) else None


def _destination(url: str) -> Destination:
    """Parse the URL. Raises Refused; its message shows neither query nor userinfo, which may hold secrets."""
    try:
        return destination_of(url)
    except ValueError as exc:
        shown = url.partition("?")[0].rpartition("@")[2][:100]
        raise errors.Refused(errors.EGRESS_REFUSED, shown, reason_of(exc)) from exc


def _allowed_addresses(
    destination: Destination, policy: EgressPolicy, resolver: Resolver, deadline: Deadline
) -> list[str]:
    problems = {
        address: policy.problem(destination.host, address) for address in _resolve(destination, resolver, deadline)
    }
    allowed = [address for address, problem in problems.items() if problem is None]
    if not allowed:
        problem = [*problems.values()][-1] if problems else Message("its name has no address")
        raise errors.Refused(errors.EGRESS_REFUSED, destination.name, problem)
    return allowed


def _resolve(destination: Destination, resolver: Resolver, deadline: Deadline) -> Sequence[str]:
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
