"""What fails beside us: a locked database, a full disk, a client that goes, a body that is none (spec 03, spec 07)."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import requests
from django.db import OperationalError, connection

from domain.dataset.checks.database_errors import operational_error
from domain.dataset.commit import pipeline
from domain.dataset.dataset import Dataset
from domain.dataset.records.commit_result import CommitResult
from foundation import errors
from foundation.wsgi import HAS_CHUNKED_BODY
from tests.domain.odata.test_live_transactions import Caller
from tests.domain.odata.test_writing import CURRENCIES
from tests.support.api import Api, error_of
from tests.support.instances import prepared_instance
from tests.support.platform import LivePlatform, start_platform


@pytest.mark.parametrize(
    "text,kind",
    [
        ("database is locked", "DatabaseBusy"),
        ("deadlock detected", "DatabaseBusy"),
        ("the connection is closed", "DatabaseUnreachable"),
        ("consuming input failed: SSL error: unexpected eof while reading", "DatabaseUnreachable"),
        ("SSL connection has been closed unexpectedly", "DatabaseUnreachable"),
        ("connection failed: FATAL: sorry, too many clients already", "DatabaseUnreachable"),
        ("database or disk is full", "StorageFull"),
        ("could not extend file: No space left on device", "StorageFull"),
        ("disk I/O error", "StorageFull"),
    ],
)
def test_a_failing_database_is_503_and_nothing_is_written(
    api: Api, monkeypatch: pytest.MonkeyPatch, text: str, kind: str
) -> None:
    def fail(dataset: Dataset, result: CommitResult) -> None:
        raise OperationalError(text)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "STAGES", (*pipeline.STAGES, fail))
        refused = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert (refused.status_code, error_of(refused)["type"]) == (503, kind)
    assert int(refused["Retry-After"]) > 0
    assert refused["Cache-Control"] == "no-store"
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_what_is_a_bug_of_ours_stays_one() -> None:
    bug = OperationalError("no such column: x")
    assert operational_error(bug) is bug
    assert isinstance(operational_error(OperationalError("database is locked")), errors.Unavailable)


@pytest.mark.process
def test_another_process_that_keeps_the_database_locked_is_503(live_platform: LivePlatform) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no lock on the whole database")
    caller = Caller(live_platform)
    (file,) = [path for path in live_platform.data_dir.glob("*.sqlite3") if "broker" not in path.name]
    blocker = sqlite3.connect(file, isolation_level=None)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    with ThreadPoolExecutor() as pool:
        try:
            blocker.execute("BEGIN IMMEDIATE")
            waiting = pool.submit(requests.post, f"{live_platform.base_url}/id/connect/token", form, timeout=120)
            answer = caller.http.post(
                live_platform.odata_url + CURRENCIES, json={"CurrencySign": "LCK", "Name": "Locked"}, timeout=120
            )
            token = waiting.result()
        finally:
            blocker.execute("ROLLBACK")
            blocker.close()
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"]["type"] == "DatabaseBusy"
    assert (token.status_code, token.json()["error"]) == (503, "temporarily_unavailable")
    assert (token.headers["Retry-After"], token.headers["Cache-Control"]) == ("1", "no-store")
    assert caller.send("GET", f"{CURRENCIES}/$count?$filter=CurrencySign eq 'LCK'").text == "0"


@pytest.mark.process
@pytest.mark.parametrize("path", [CURRENCIES, "Import"])
def test_a_client_that_goes_in_the_middle_of_its_body_leaves_nothing(live_platform: LivePlatform, path: str) -> None:
    caller = Caller(live_platform)
    before = caller.send("GET", f"{CURRENCIES}/$count").text
    split = urlsplit(live_platform.odata_url)
    assert split.hostname is not None
    head = (
        f"POST {split.path}{path} HTTP/1.1\r\nHost: {split.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: {caller.http.headers['Authorization']!s}\r\nContent-Length: 100000\r\n\r\n"
    )
    with socket.create_connection((split.hostname, split.port or 80)) as client:
        client.sendall(head.encode() + b'{"CurrencySign":"GON","Name":"Gone"}')
    assert caller.send("GET", f"{CURRENCIES}/$count").text == before


def test_a_body_beyond_the_limit_is_413(api: Api, settings: object) -> None:
    settings.MAX_BODY_BYTES = 50  # type: ignore[attr-defined]
    refused = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "x" * 100})
    assert (refused.status_code, error_of(refused)["type"]) == (413, "PayloadTooLarge")


@pytest.mark.process
def test_a_full_disk_is_503_and_committed_data_stays(tmp_path: Path) -> None:
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        pytest.skip("the disk of a PostgreSQL server is not ours to fill")
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        with start_platform(disk / "data") as platform:
            caller = Caller(platform)
            # All that is left, so that the next page of the database has no place.
            with (disk / "filler").open("wb", buffering=0) as filler:
                try:
                    while filler.write(b"x" * 65536):
                        pass
                except OSError:
                    pass
            statuses = set()
            # The log that is written ahead has up to 4 MB already, which are written again after a checkpoint.
            for number in range(1000):
                body = {"CurrencySign": f"{number:03}", "Name": "x" * 50}
                answer = caller.http.post(platform.odata_url + CURRENCIES, json=body, timeout=60)
                statuses.add(answer.status_code)
                if answer.status_code != 201:
                    assert answer.status_code == 503, answer.text
                    break
            assert 503 in statuses
            count = caller.http.get(f"{platform.odata_url}{CURRENCIES}/$count", timeout=60)
            (disk / "filler").unlink()
            after = caller.send("POST", CURRENCIES, {"CurrencySign": "AFT", "Name": "After"})
            assert after.status_code == 201, after.text
            assert count.status_code in (200, 503)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@pytest.mark.parametrize(
    "path, content_type, body, status",
    [
        ("ExecuteScript", "text/plain", b"1", 411),
        ("ExecuteScript", "", b"1", 411),
        ("EndTransaction", "application/json", b"", 411),
        ("EndTransaction", "application/json", b" ", 411),
        (CURRENCIES, "application/json;charset=utf-8", b'{"CurrencySign": "USD"', 400),
        (CURRENCIES, "application/json;charset=utf-8", b'{"CurrencySign": "USD", "Name": "Dollar"}', 201),
    ],
)
def test_chunks_that_may_have_broken_off_are_taken_only_where_one_sees_the_end(
    api: Api, path: str, content_type: str, body: bytes, status: int
) -> None:
    inside = api.begin()
    answer = api.client.generic(
        "POST",
        f"/api/domain/odata/{path}",
        body,
        content_type=content_type,
        headers={"Authorization": f"Bearer {api.token}", "TransactionId": inside.headers["TransactionId"]},
        **{HAS_CHUNKED_BODY: True},  # type: ignore[arg-type]  # goes into the environment, as a server sets it
    )
    assert answer.status_code == status, answer.content
    assert inside.end(commit=False).status_code == 204, "it is still open"


def test_a_compressed_body_is_415_and_says_so(api: Api) -> None:
    body = gzip.compress(b'{"CurrencySign": "USD", "Name": "Dollar"}')
    refused = api.post(CURRENCIES, body, Content_Encoding="gzip")
    assert refused.status_code == 415
    assert "gzip" in error_of(refused)["message"]
    plain = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"}, Content_Encoding="identity")
    assert plain.status_code == 201


@pytest.mark.process
@pytest.mark.parametrize("bound", ["0", "8"])
def test_a_database_that_takes_no_connections_is_503_until_it_does(tmp_path: Path, bound: str) -> None:
    """A pool that waits in vain for a connection cannot tell why it gets none."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connections that a server could refuse")
    told = {"DatabaseUnreachable", "DatabaseBusy"} if bound != "0" else {"DatabaseUnreachable"}
    with ExitStack() as stack:
        given = stack.enter_context(prepared_instance(tmp_path / "data"))
        settings = {**given, "DATABASE_CONNECTIONS": bound}
        platform = stack.enter_context(start_platform(tmp_path / "data", settings=settings))
        caller = Caller(platform)
        name = urlsplit(given["DATABASE_URL"]).path.strip("/")
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as cursor:
            cursor.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            for body in (None, {"CurrencySign": "GON", "Name": "Gone"}):
                method = "GET" if body is None else "POST"
                answer = caller.http.request(method, platform.odata_url + CURRENCIES, json=body, timeout=60)
                assert (answer.status_code, answer.json()["error"]["type"] in told) == (503, True), answer.text
                assert int(answer.headers["Retry-After"]) > 0
            form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
            token = requests.post(f"{platform.base_url}/id/connect/token", form, timeout=60)
            assert (token.status_code, token.json()["error"]) == (503, "temporarily_unavailable")
            page = requests.get(f"{platform.base_url}/admin/", cookies={"sessionid": "any"}, timeout=60)
            assert (page.status_code, "The database" in page.text) == (503, True), page.text
            cursor.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
        assert caller.send("GET", f"{CURRENCIES}/$count?$filter=CurrencySign eq 'GON'").text == "0"
