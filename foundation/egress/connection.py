"""Connections of urllib3 that dial only addresses that the egress policy has checked, within one deadline.

urllib3's timeouts are per read, so a server that sends one byte a second could hold a connection for ever: the sockets
here wait no longer than until the deadline of their exchange.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import certifi
import requests
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from foundation.egress.policy import Destination
from foundation.messages import TranslatableMessage as Message

Kind = Literal["resolve", "connect", "tls", "timeout", "protocol"]
#: A pooled connection is used again within this time: shorter than the keep-alive timeout of usual servers.
LIFETIME_SECONDS = 1.0


class EgressFailed(requests.RequestException):
    """The request was sent and no complete response arrived. The message is for users and contains no request data."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(slots=True)
class Deadline:
    """A time of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left. Raises TimeoutError when there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(slots=True)
class Exchange:
    """One request and its response.

    addresses  the checked addresses of the destination, in order of preference
    give_up    deadline of the connection attempt
    may_reuse  whether a pooled connection may carry the request
    reused     whether a pooled connection carries it
    address    the connected address
    """

    destination: Destination
    addresses: Sequence[str]
    deadline: Deadline
    give_up: Deadline
    may_reuse: bool
    reused: bool = True
    address: str = ""


#: The exchange of this thread: urllib3 has no parameter that reaches the connections.
current_exchange: ContextVar[Exchange] = ContextVar("egress_exchange")


class _Timed:
    """Mixin of a socket: every wait ends at the deadline."""

    deadline: Deadline

    def recv_into(self: Any, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.deadline.remaining())
        return int(super().recv_into(*args, **kwargs))  # type: ignore[misc]

    def sendall(self: Any, *args: Any, **kwargs: Any) -> None:
        self.settimeout(self.deadline.remaining())
        super().sendall(*args, **kwargs)  # type: ignore[misc]


class _TimedSocket(_Timed, socket.socket):
    pass


class _TimedTLSSocket(_Timed, ssl.SSLSocket):
    pass


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """A context that verifies certificate and host name against the system's authorities (or SSL_CERT_FILE)."""
    context = ssl.create_default_context()
    context.sslsocket_class = _TimedTLSSocket
    known: Any = ssl.get_default_verify_paths()  # files that do not exist are None, unlike the library's types say
    if known.cafile is None and known.capath is None:
        context.load_verify_locations(certifi.where())
    return context


class _Pinned(HTTPConnection):
    """A connection to one of the exchange's addresses; the host name is not resolved again."""

    sock: Any
    _address = ""
    _used_at = 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the exchange may use this pooled connection; otherwise the pool closes it and connects again."""
        exchange = current_exchange.get()
        return (
            exchange.may_reuse
            and self._address in exchange.addresses
            and time.monotonic() - self._used_at < LIFETIME_SECONDS
            and super().is_connected
        )

    def connect(self) -> None:
        super().connect()
        self.sock.deadline = current_exchange.get().deadline

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        """Send the request with the target as the author wrote it; urllib3 would encode it once more."""
        exchange = current_exchange.get()
        self._used_at = time.monotonic()
        if self.sock is not None:
            self.sock.deadline, exchange.address = exchange.deadline, self._address
        super().request(method, exchange.destination.target, *args, **kwargs)

    def _new_conn(self) -> socket.socket:
        """Try the addresses in order, within the connect timeout together."""
        exchange = current_exchange.get()
        exchange.reused = False
        for position, address in enumerate(exchange.addresses):
            try:
                opened = socket.create_connection((address, self.port), exchange.give_up.remaining())
            except TimeoutError as exc:
                raise EgressFailed("timeout", Message("no connection in time")) from exc
            except OSError:
                if position == len(exchange.addresses) - 1:
                    raise
                continue
            self._address = exchange.address = address
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            timed = _TimedSocket(opened.family, opened.type, opened.proto, opened.detach())
            timed.deadline = exchange.deadline
            timed.settimeout(exchange.deadline.remaining())  # of the TLS handshake
            return timed
        raise EgressFailed("connect", Message("its name has no address"))


class _PinnedTLS(_Pinned, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Pinned


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _PinnedTLS


POOL_CLASSES = {"http": _Pool, "https": _TLSPool}
