"""A load generator with little overhead: persistent raw sockets in separate processes."""

from __future__ import annotations

import itertools
import multiprocessing
import socket
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """One request to repeat. `body` returns the body of the n-th one; None for requests without a body."""

    method: str
    url: str
    headers: dict[str, str]
    body: Callable[[int], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Responses:
    """The latencies of the responses in milliseconds, sorted, and the duration of the measurement."""

    latencies: list[float]
    seconds: float

    @property
    def count(self) -> int:
        """Number of responses."""
        return len(self.latencies)

    def percentile(self, share: float) -> float:
        """The latency in milliseconds that this share of the responses does not exceed; 0 without responses."""
        return self.latencies[min(self.count - 1, int(self.count * share))] if self.latencies else 0.0


def requests_per_second(request: Request, *, seconds: float, connections: int) -> float:
    """Responses per second over all connections. Raises RuntimeError for a response that is not 2xx."""
    measured = measure_responses(request, seconds=seconds, connections=connections)
    return measured.count / measured.seconds


#: Warm-up, in which the server distributes the connections over its processes; its responses are not counted.
SPREAD_SECONDS = 1.5


def measure_responses(
    request: Request, *, seconds: float, connections: int, begin: Callable[[], None] = lambda: None
) -> Responses:
    """Repeat the request over the connections for `seconds` after the warm-up; calls `begin` after the warm-up.

    Raises RuntimeError for a response that is not 2xx.
    """
    context = multiprocessing.get_context("fork")
    results: SimpleQueue[array[float] | int] = context.SimpleQueue()
    started = time.perf_counter() + SPREAD_SECONDS
    workers = [
        context.Process(target=_work, args=(request, started, started + seconds, number, results))
        for number in range(connections)
    ]
    for worker in workers:
        worker.start()
    time.sleep(max(0.0, started - time.perf_counter()))
    begin()
    found = [results.get() for _ in workers]
    took = time.perf_counter() - started
    for worker in workers:
        worker.join()
    for each in found:
        if isinstance(each, int):
            raise RuntimeError(f"{request.method} {request.url} results {each}")
    return Responses(sorted(itertools.chain.from_iterable(each for each in found if not isinstance(each, int))), took)


def _work(request: Request, start: float, end: float, number: int, results: SimpleQueue[array[float] | int]) -> None:
    """Put the latencies of one connection into the queue, or the status of a response that is not 2xx."""
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    head = f"{request.method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    address = parts.hostname or "", parts.port or 80
    connection = _connect(address)
    sent, latencies = 0, array("f")
    while (sent_at := time.perf_counter()) < end:
        body = request.body(number * 1_000_000 + sent) if request.body is not None else b""
        length = f"Content-Length: {len(body)}\r\n" if request.body is not None else ""
        connection.sendall(f"{head}{length}\r\n".encode() + body)
        status, is_last = _read_response(connection)
        if is_last:
            connection.close()
            connection = _connect(address)
        if not 200 <= status < 300:
            results.put(status)
            return
        sent += 1
        if (now := time.perf_counter()) >= start:
            latencies.append((now - sent_at) * 1000)
    results.put(latencies)


def _connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read_response(connection: socket.socket) -> tuple[int, bool]:
    """Read one response; returns its status, and whether the server closes the connection after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length, is_last = 0, False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        is_last = is_last or (name.lower() == b"connection" and value.strip().lower() == b"close")
    missing = length - len(rest)
    while missing > 0:
        missing -= len(connection.recv(min(1 << 18, missing)))
    return status, is_last
