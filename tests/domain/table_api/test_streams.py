"""Long answers of the running instance: their places, clients that go away or read slowly, compression."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from tests.compatibility.node_clients import service_token
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import ROOT, LivePlatform, start_platform
from tests.support.waiting import eventually

pytestmark = pytest.mark.process

MASS = 8_000
#: What a connection keeps of an answer that nobody reads is less than the answer.
PRODUCTS = "/tableapi/odata/Gen_Products"
_MASS_DATA = "from domain.demo.mass_data import load_mass_data as load; load({}, 0, lambda *_: None)"


@pytest.fixture(scope="module")
def platform() -> Iterator[LivePlatform]:
    """An instance with long tables, one process and one place."""
    with start_platform(settings={"WEB_PROCESSES": "1", "TABLE_STREAMS": "1"}) as started:
        load = [sys.executable, "manage.py", "shell", "-v0", "-c", _MASS_DATA.format(MASS)]
        subprocess.run(load, cwd=ROOT, env=dict(started.environment), check=True)
        yield started


@pytest.fixture(scope="module")
def session(platform: LivePlatform) -> requests.Session:
    session = requests.Session()
    session.headers.update(
        {"Authorization": f"Bearer {service_token(platform, 'read')}", "Accept-Encoding": "identity"}
    )
    return session


def begun(platform: LivePlatform, session: requests.Session) -> socket.socket:
    """A request for a long answer, of which the client has read the beginning."""
    parts = urlsplit(platform.base_url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect((parts.hostname, parts.port))
    head = (f"GET {PRODUCTS} HTTP/1.1", f"Host: {parts.netloc}", f"Authorization: {session.headers['Authorization']!s}")
    connection.sendall("\r\n".join((*head, "", "")).encode())
    assert connection.recv(16).startswith(b"HTTP/1.1 200")
    return connection


def long_answer(session: requests.Session, url: str, coding: str = "identity") -> requests.Response:
    """The answer, as soon as the previous one has given its place back."""
    found: list[requests.Response] = []

    def is_there() -> bool:
        found.append(session.get(url, headers={"Accept-Encoding": coding}, timeout=60))
        return found[-1].status_code == 200

    assert eventually(is_there, 60), found[-1].text
    return found[-1]


def test_a_long_answer_is_whole_in_every_format(platform: LivePlatform, session: requests.Session) -> None:
    url = f"{platform.base_url}{PRODUCTS}"
    total = int(session.get(f"{url}/$count", timeout=60).text)
    assert total >= MASS

    def read(form: str, coding: str = "identity") -> requests.Response:
        return long_answer(session, f"{url}?$format={form}&$count=true", coding)

    plain = read("json")
    assert plain.headers["Transfer-Encoding"] == "chunked"
    rows = plain.json()["value"]
    assert plain.json()["@odata.count"] == len(rows) == len({row["Id"] for row in rows}) == total
    zipped = read("json", "gzip")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert sorted(zipped.json()["value"], key=lambda row: row["Id"]) == sorted(rows, key=lambda row: row["Id"])
    packed = session.get(
        url, params={"$format": "ndjson"}, headers={"Accept-Encoding": "gzip;q=0, zstd"}, stream=True, timeout=60
    )
    assert packed.headers["Content-Encoding"] == "zstd"
    lines = pa.CompressedInputStream(pa.BufferReader(packed.content), "zstd").read()
    assert [json.loads(line)["Id"] for line in lines.split(b"\n") if line] == [row["Id"] for row in rows]
    assert len(pa.ipc.open_stream(read("arrow").content).read_all()) == total
    parquet = read("parquet", "gzip")
    assert len(pq.read_table(io.BytesIO(parquet.content))) == total
    assert read("csv").content.count(b"\r\n") >= total


def test_the_next_long_answer_waits_and_is_refused_but_short_ones_come(
    platform: LivePlatform, session: requests.Session
) -> None:
    url = f"{platform.base_url}{PRODUCTS}"
    slow = begun(platform, session)
    refused = session.get(url, timeout=60)
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "TableStreamsBusy")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert len(session.get(f"{url}?$top=5", timeout=60).json()["value"]) == 5
    assert session.get(f"{platform.odata_url}General_Products_Products?$top=5", timeout=60).status_code == 200
    # The client that has gone gives its place to the next one.
    slow.close()
    long_answer(session, url)


def test_an_answer_takes_little_memory_however_slowly_it_is_read(
    platform: LivePlatform, session: requests.Session
) -> None:
    long_answer(session, f"{platform.base_url}{PRODUCTS}")
    (process,) = web_processes(platform)
    before = forget_peak(process)
    size = len(long_answer(session, f"{platform.base_url}{PRODUCTS}").content)
    slow = begun(platform, session)
    # Another is refused as long as this one waits for its client.
    assert session.get(f"{platform.base_url}{PRODUCTS}", timeout=60).status_code == 503
    slow.close()
    assert size > 12 * 1024 * 1024
    assert peak_bytes(process) - before < size


@pytest.mark.parametrize("reads_on", [False, True], ids=["client that does not read", "client that reads on"])
def test_a_process_that_stops_breaks_off_its_long_answers(
    platform: LivePlatform, session: requests.Session, reads_on: bool
) -> None:
    long_answer(session, f"{platform.base_url}{PRODUCTS}")
    (process,) = web_processes(platform)
    slow = begun(platform, session)
    os.kill(process, signal.SIGTERM)
    received = b""
    if reads_on:
        with contextlib.suppress(ConnectionResetError):
            while part := slow.recv(4096):
                received += part
    # The server starts another process instead; one that hangs would not be killed.
    assert eventually(lambda: not Path(f"/proc/{process}").exists(), 60)
    assert not received.endswith(b"\r\n0\r\n\r\n")
    slow.close()
    assert eventually(lambda: answers(platform), 60)


def test_a_process_stops_while_its_clients_read_faster_than_it_writes(
    platform: LivePlatform, session: requests.Session
) -> None:
    """The server waits for the next part then."""
    (process,) = web_processes(platform)
    begun_answers, is_over = threading.Semaphore(0), threading.Event()

    def read_on() -> None:
        while not is_over.is_set():
            with (
                contextlib.suppress(requests.RequestException),
                session.get(f"{platform.base_url}{PRODUCTS}", stream=True, timeout=60) as answer,
            ):
                if answer.status_code == 200:
                    begun_answers.release()
                    for _ in answer.iter_content(1024 * 1024):
                        pass

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        for _ in range(3):
            assert begun_answers.acquire(timeout=60)
        os.kill(process, signal.SIGTERM)
        assert eventually(lambda: not Path(f"/proc/{process}").exists(), 60)
    finally:
        is_over.set()
        reader.join()
    assert eventually(lambda: answers(platform), 60)


def answers(platform: LivePlatform) -> bool:
    """Whether the server takes connections."""
    try:
        return requests.get(f"{platform.base_url}/healthz", timeout=60).ok
    except requests.ConnectionError:
        return False
