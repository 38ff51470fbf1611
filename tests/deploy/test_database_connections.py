"""Few sessions of PostgreSQL for many requests: behind PgBouncer in transaction mode, and by a bound (spec 13, 13.1).

Runs with the suite on PostgreSQL.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from platform_site.serving.preparation import _ADVISORY_LOCK
from tests.deploy.dockerfile import DEPLOY
from tests.support.instances import prepared_instance
from tests.support.platform import ROOT, LivePlatform, free_port, start_platform
from tests.support.programs import requires_program
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="SQLite has no connections to count"
    ),
]

SESSIONS = 4
CLIENTS, ROUNDS = 8, 5
GROUPS = "General_Products_ProductGroups"


@contextmanager
def pgbouncer(database_url: str) -> Iterator[str]:
    """DATABASE_URL of PgBouncer with the sample's settings, but for addresses, and no more than SESSIONS sessions."""
    program = requires_program("pgbouncer", "/usr/sbin/pgbouncer")
    # Not in the tests' own directory, which only this user may enter.
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        directory = Path(name)
        server, port = urlsplit(database_url), free_port()
        database = server.path.strip("/")
        text = (DEPLOY / "pgbouncer.ini").read_text()
        for pattern, value in (
            (
                r"host=db.internal port=5432 dbname=platform",
                f"host={server.hostname} port={server.port or 5432} dbname={database}",
            ),
            (r"listen_addr = .*", "listen_addr = 127.0.0.1\nunix_socket_dir ="),
            (r"listen_port = .*", f"listen_port = {port}"),
            (r"auth_type = .*", "auth_type = trust"),
            (r"auth_file = .*", f"auth_file = {directory}/users"),
            (r"default_pool_size = .*", f"default_pool_size = {SESSIONS}"),
        ):
            text, replaced = re.subn(pattern, value, text)
            assert replaced, pattern
        (directory / "pgbouncer.ini").write_text(text)
        (directory / "users").write_text(f'"{server.username}" "{server.password or ""}"\n')
        command = [program, str(directory / "pgbouncer.ini")]
        if os.geteuid() == 0:  # it refuses to run as root
            for path in (directory, *directory.iterdir()):
                shutil.chown(path, "nobody")
            command = ["runuser", "-u", "nobody", "--", *command]
        with (directory / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                url = f"postgres://{server.username}@127.0.0.1:{port}/platform"
                assert eventually(lambda: _answers(url), 60)
                yield url
            finally:
                process.terminate()
                process.wait(60)


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


class MostSessions:
    """The most sessions that web processes have had in a database at once, while the block runs."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most = 0

    def __enter__(self) -> MostSessions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        asked = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'platform web'"
        )
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._over.wait(0.02):
                ((count,),) = connection.execute(asked)
                self.most = max(self.most, count)


class Caller:
    """One client of the demo's service application, and what it was answered."""

    def __init__(self, platform: LivePlatform, number: int, token: str) -> None:
        self._root, self._number = platform.odata_url, number
        self._tables = f"{platform.base_url}/tableapi/odata/"
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"Bearer {token}"
        self.answers: Counter[tuple[str, int]] = Counter()

    def send(self, name: str, method: str, url: str, **options: Any) -> requests.Response:
        answer = self._http.request(method, url, timeout=60, **options)
        self.answers[name, answer.status_code] += 1
        return answer

    def group(self, code: str) -> dict[str, Any]:
        return {"Code": code, "Name": {"EN": code}}

    def run(self) -> Counter[tuple[str, int]]:
        """Every kind of request, ROUNDS times."""
        for each in range(ROUNDS):
            code = f"P{self._number:02}{each}"
            made = self.send("create", "POST", f"{self._root}{GROUPS}", json=self.group(code)).json()
            one = f"{self._root}{made['@odata.id']}"
            read = self.send("read", "GET", one).json()
            assert read["Code"] == code
            self.send("change", "PATCH", one, json={"Name": {"EN": "changed"}})
            self.send("page", "GET", f"{self._root}General_Products_Products?$top=20&$expand=ProductGroup&$count=true")
            begun = self.send("begin", "POST", f"{self._root}BeginTransaction", json={}).text.strip('"')
            inside = {"TransactionId": begun}
            self.send("inside", "POST", f"{self._root}{GROUPS}", json=self.group(f"T{code}"), headers=inside)
            self.send("end", "POST", f"{self._root}EndTransaction", json={"commit": True}, headers=inside)
            parts = [{"id": str(n), "method": "GET", "url": "General_Products_Products?$top=1"} for n in range(3)]
            self.send("batch", "POST", f"{self._root}$batch", json={"requests": parts})
            script = "Domain.General.Products.ProductsRepository.query({}, { fetch: 3 }).length;"
            self.send(
                "script", "POST", f"{self._root}ExecuteScript", data=script, headers={"Content-Type": "text/plain"}
            )
            table = self.send("table", "GET", f"{self._tables}Gen_Products?$format=csv")
            assert table.content.count(b"\n") > 1
            self.send("delete", "DELETE", one)
        return self.answers


def access_token(platform: LivePlatform) -> str:
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", {**form, "scope": "read update exec"}, timeout=60)
    return str(answer.json()["access_token"])


def run_load(platform: LivePlatform) -> Counter[tuple[str, int]]:
    """What CLIENTS callers at once were answered."""
    token = access_token(platform)
    callers = [Caller(platform, number, token) for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(Caller.run, callers), Counter())


def refused(answers: Counter[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The answers that no request may get."""
    assert len(answers) >= 11
    return {each: count for each, count in answers.items() if each[1] >= 300}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LivePlatform, str, str]]:
    """An instance behind PgBouncer; the URLs of PgBouncer and of the server."""
    with ExitStack() as stack:
        data_dir = tmp_path_factory.mktemp("pooled") / "data"
        direct = stack.enter_context(prepared_instance(data_dir))["DATABASE_URL"]
        url = stack.enter_context(pgbouncer(direct))
        settings = {"DATABASE_URL": url, "DATABASE_TRANSACTION_POOLER": "1"}
        yield stack.enter_context(start_platform(data_dir, settings=settings)), url, direct


def test_behind_a_pooler_in_transaction_mode_everything_works(pooled: tuple[LivePlatform, str, str]) -> None:
    platform, _url, direct = pooled
    with MostSessions(direct) as sessions:
        assert refused(run_load(platform)) == {}
    assert 1 <= sessions.most <= SESSIONS
    with psycopg.connect(direct) as connection:
        rows = connection.execute("SELECT count(*) FROM domain_productgroup WHERE code LIKE 'TP%'").fetchone()
    assert rows == (CLIENTS * ROUNDS,)


def test_a_session_of_the_server_keeps_nothing_of_a_request(pooled: tuple[LivePlatform, str, str]) -> None:
    """Each of as many transactions at once has another session."""
    _platform, url, _direct = pooled
    with ExitStack() as stack:
        seen = [
            stack.enter_context(psycopg.connect(url))
            .execute(
                "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements),"
                " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
                " current_setting('statement_timeout'),"
                " current_setting('lock_timeout'), current_setting('default_transaction_isolation')"
            )
            .fetchone()
            for _ in range(SESSIONS)
        ]
    assert len({each[0] for each in seen if each is not None}) == SESSIONS
    assert {each[1:] for each in seen if each is not None} == {(0, 0, "30s", "20s", "read committed")}


def test_a_start_waits_for_one_that_migrates(pooled: tuple[LivePlatform, str, str], tmp_path: Path) -> None:
    """The lock of the preparation is one of a transaction, which a pooler does not hand to others."""
    platform, _url, direct = pooled
    prepare = (
        "import django; django.setup();"
        "from platform_site.serving.preparation import prepare; prepare(lambda line: None)"
    )
    environment = {
        **platform.environment,
        "DATA_DIR": str(tmp_path),
        "DEMO": "0",
        "DJANGO_SETTINGS_MODULE": "platform_site.settings",
    }
    locks = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database AND datname = current_database()"
        f" WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = {_ADVISORY_LOCK}"
    )
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
        process = subprocess.Popen([sys.executable, "-c", prepare], cwd=ROOT, env=environment)
        try:
            assert eventually(lambda: connection.execute(f"{locks} AND NOT granted").fetchone() == (1,), 60)
            assert process.poll() is None
            connection.execute("SELECT pg_advisory_unlock(%s)", [_ADVISORY_LOCK])
            assert process.wait(120) == 0
        finally:
            process.kill()
        assert connection.execute(locks).fetchone() == (0,)


def test_the_doctor_finds_a_pooler_without_limits(pooled: tuple[LivePlatform, str, str]) -> None:
    platform, url, _direct = pooled

    def findings(database_url: str) -> list[dict[str, str]]:
        environment = {**platform.environment, "DATABASE_URL": database_url}
        command = [sys.executable, "manage.py", "doctor", "--json"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        return [each for each in json.loads(done.stdout)["findings"] if "statement_timeout" in each["text"]]

    assert findings(url) == []
    (found,) = findings(f"{url}_worker")
    assert found["level"] == "warning"
    assert "connect_query" in found["cure"]


def test_web_processes_open_no_more_connections_than_they_may() -> None:
    """Without the bound these requests take ten: those that wait for a script, and answers of the Table API."""
    with start_platform(settings={"DATABASE_CONNECTIONS": "4"}) as platform:
        with MostSessions(platform.environment["DATABASE_URL"]) as sessions:
            assert refused(run_load(platform)) == {}
        assert 1 <= sessions.most <= 4


@pytest.mark.fuzz
def test_fifty_web_processes_stay_below_the_bound() -> None:
    settings = {"WEB_PROCESSES": "50", "DATABASE_CONNECTIONS": "100", "SANDBOX_WORKERS": "1"}
    with start_platform(settings=settings) as platform:
        token = access_token(platform)

        def read(_number: int) -> set[tuple[int, str]]:
            with requests.Session() as http:
                http.headers["Authorization"] = f"Bearer {token}"
                url = f"{platform.odata_url}General_Products_Products?$top=100&$expand=ProductGroup"
                answers = [http.get(url, timeout=120) for _ in range(30)]
            return {(each.status_code, "" if each.ok else each.text) for each in answers}

        with MostSessions(platform.environment["DATABASE_URL"]) as sessions, ThreadPoolExecutor(200) as pool:
            assert set().union(*pool.map(read, range(200))) == {(200, "")}
        print(f"{sessions.most} connections of 50 processes")
        assert 30 <= sessions.most <= 100


def test_a_bound_that_is_too_low_is_refused(tmp_path: Path) -> None:
    environment = {**os.environ, "DATA_DIR": str(tmp_path), "DATABASE_CONNECTIONS": "3", "WEB_PROCESSES": "2"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "DATABASE_CONNECTIONS must be at least 4, two for each of the 2 web processes." in done.stderr
