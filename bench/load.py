"""A load generator that takes little of the machine: raw sockets, kept open, in processes of their own."""

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
    """One request to repeat. `body` makes the body of the n-th one; None: there is none."""

    method: str
    url: str
    headers: dict[str, str]
    body: Callable[[int], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What came in how many seconds: the time that each answer took, in milliseconds, shortest first."""

    latencies: list[float]
    seconds: float

    @property
    def count(self) -> int:
        """How many answers came."""
        return len(self.latencies)

    def percentile(self, share: float) -> float:
        """The time within which this share of the answers came, in milliseconds; 0 without any."""
        return self.latencies[min(self.count - 1, int(self.count * share))] if self.latencies else 0.0


def requests_per_second(request: Request, *, seconds: float, connections: int) -> float:
    """Answers per second over all connections. Raises RuntimeError for an answer that is not 2xx."""
    measured = answers(request, seconds=seconds, connections=connections)
    return measured.count / measured.seconds


#: The server spreads the connections over its processes in this time, in which nothing is counted.
SPREAD_SECONDS = 1.5


def answers(request: Request, *, seconds: float, connections: int, begin: Callable[[], None] = lambda: None) -> Answers:
    """Repeat the request for so long over so many connections, once they are spread; `begin` is called then.

    Raises RuntimeError for an answer that is not 2xx.
    """
    context = multiprocessing.get_context("fork")
    answered: SimpleQueue[array[float] | int] = context.SimpleQueue()
    started = time.perf_counter() + SPREAD_SECONDS
    workers = [
        context.Process(target=_work, args=(request, started, started + seconds, number, answered))
        for number in range(connections)
    ]
    for worker in workers:
        worker.start()
    time.sleep(max(0.0, started - time.perf_counter()))
    begin()
    found = [answered.get() for _ in workers]
    took = time.perf_counter() - started
    for worker in workers:
        worker.join()
    for each in found:
        if isinstance(each, int):
            raise RuntimeError(f"{request.method} {request.url} answered {each}")
    return Answers(sorted(itertools.chain.from_iterable(each for each in found if not isinstance(each, int))), took)


def _work(request: Request, start: float, end: float, number: int, answered: SimpleQueue[array[float] | int]) -> None:
    """Put the latencies of one connection into the queue, or the status of the answer that is not 2xx."""
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    head = f"{request.method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    address = parts.hostname or "", parts.port or 80
    connection = _connect(address)
    sent, latencies = 0, array("f")
    while (asked := time.perf_counter()) < end:
        body = request.body(number * 1_000_000 + sent) if request.body is not None else b""
        length = f"Content-Length: {len(body)}\r\n" if request.body is not None else ""
        connection.sendall(f"{head}{length}\r\n".encode() + body)
        status, is_last = _answer(connection)
        if is_last:
            connection.close()
            connection = _connect(address)
        if not 200 <= status < 300:
            answered.put(status)
            return
        sent += 1
        if (now := time.perf_counter()) >= start:
            latencies.append((now - asked) * 1000)
    answered.put(latencies)


def _connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _answer(connection: socket.socket) -> tuple[int, bool]:
    """Read one answer to its end; its status, and whether the server ends the connection with it."""
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
