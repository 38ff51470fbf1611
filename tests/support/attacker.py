"""A process that sends the same requests over and over, on many connections, and drops what is answered.

    attack(port, seconds, [Stream("pages", connections=20, request=b"GET …")])

Run as a process of its own, so that it takes nothing of the interpreter that measures.
"""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.platform import ROOT

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of request. A slow one is sent but for its end, of which a byte follows each second."""

    name: str
    connections: int
    request: bytes
    slow: bool = False


@contextmanager
def attack(port: int, seconds: float, streams: list[Stream]) -> Iterator[Counter[str]]:
    """Send them as long as the block lasts, at most so many seconds; filled at its end: `name status` → answers."""
    told = [[each.name, each.connections, base64.b64encode(each.request).decode(), each.slow] for each in streams]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.attacker", str(port), str(seconds)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(told) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "begun\n"
    answers: Counter[str] = Counter()
    try:
        yield answers
    finally:
        out, _ = process.communicate()  # the end of its input ends it
        answers.update(json.loads(out))


def _attack(port: int, until: float) -> None:
    answers: Counter[str] = Counter()
    for name, connections, encoded, slow in json.loads(sys.stdin.readline()):
        request = base64.b64decode(encoded)
        for _ in range(connections):
            arguments = (port, name, request, until, answers)
            threading.Thread(target=_send_slowly if slow else _send, args=arguments, daemon=True).start()
    print("begun", flush=True)
    select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))
    print(json.dumps(answers), flush=True)
    os._exit(0)


def _send(port: int, name: str, request: bytes, until: float, answers: Counter[str]) -> None:
    buffer = bytearray(1 << 20)
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS) as connection:
                while time.monotonic() < until:
                    connection.sendall(request)
                    answers[f"{name} {_status(connection, buffer)}"] += 1
        except OSError as error:
            answers[f"{name} {type(error).__name__}"] += 1


def _status(connection: socket.socket, buffer: bytearray) -> int:
    """The status of an answer, which is read to its end. Raises ConnectionError."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += _received(connection)
    fields, _, rest = head.partition(b"\r\n\r\n")
    status, lowered = int(fields[9:12]), fields.lower()
    if b"content-length:" in lowered:
        left = int(lowered.partition(b"content-length:")[2].split(b"\r\n")[0]) - len(rest)
        while left > 0:
            got = connection.recv_into(buffer, min(left, len(buffer)))
            if not got:
                raise ConnectionError
            left -= got
    elif b"chunked" in lowered:
        while not rest.endswith(b"0\r\n\r\n"):
            rest = rest[-5:] + _received(connection)
    return status


def _received(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise ConnectionError
    return part


def _send_slowly(port: int, name: str, request: bytes, until: float, answers: Counter[str]) -> None:
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS) as connection:
                connection.sendall(request)
                while time.monotonic() < until:
                    connection.sendall(b" ")
                    time.sleep(1.0)
        except OSError as error:
            answers[f"{name} {type(error).__name__}"] += 1


if __name__ == "__main__":
    _attack(int(sys.argv[1]), time.monotonic() + float(sys.argv[2]))
