"""A load generator that takes little of the machine: raw sockets, kept open, in processes of their own."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
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
    """How many answers came in how many seconds."""

    count: int
    seconds: float


def requests_per_second(request: Request, *, seconds: float, connections: int) -> float:
    """Answers per second over all connections. Raises RuntimeError for an answer that is not 2xx."""
    measured = answers(request, seconds=seconds, connections=connections)
    return measured.count / measured.seconds


def answers(request: Request, *, seconds: float, connections: int) -> Answers:
    """Repeat the request for so long over so many connections. Raises RuntimeError for an answer that is not 2xx."""
    context = multiprocessing.get_context("fork")
    answered = context.Value("q", 0)
    failed = context.Value("q", 0)
    workers = [
        context.Process(target=_work, args=(request, seconds, number, answered, failed))
        for number in range(connections)
    ]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed.value:
        raise RuntimeError(f"{request.method} {request.url} answered {failed.value}")
    return Answers(answered.value, time.perf_counter() - started)


def _work(
    request: Request, seconds: float, number: int, answered: Synchronized[int], failed: Synchronized[int]
) -> None:
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    head = f"{request.method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    connection = socket.create_connection((parts.hostname or "", parts.port or 80))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        body = request.body(number * 1_000_000 + count) if request.body is not None else b""
        length = f"Content-Length: {len(body)}\r\n" if request.body is not None else ""
        connection.sendall(f"{head}{length}\r\n".encode() + body)
        status = _answer(connection)
        if not 200 <= status < 300:
            failed.value = status
            return
        count += 1
    with answered.get_lock():
        answered.value += count


def _answer(connection: socket.socket) -> int:
    """Read one answer to its end; its status."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    missing = length - len(rest)
    while missing > 0:
        missing -= len(connection.recv(min(1 << 18, missing)))
    return status
