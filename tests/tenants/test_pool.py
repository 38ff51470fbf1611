"""The pool starts tenants when they are needed, stops them when they are not, and takes changes up while it runs."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from platform_site.tenants.directory import Tenant
from tests.support.platform import free_port
from tests.support.programs import requires_program
from tests.support.receiver import LoopbackReceiver
from tests.support.tenants import Pool, new_pool, nginx_configuration
from tests.support.waiting import eventually

#: They wait for stops and restarts, minutes on a busy machine: `make fuzz`. In each run, test_isolation.py shows that a
#: pool starts tenants and responds for a suspended one.
pytestmark = [pytest.mark.process, pytest.mark.once, pytest.mark.fuzz]

TOKEN = {
    "grant_type": "client_credentials",
    "client_id": "ServiceDemoClient",
    "client_secret": "DEMO",
    "scope": "read update exec",
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A pool that runs two tenants at once; the tests use different ones of its four."""
    settings = {"TENANTS_RUNNING": "2", "TENANT_IDLE_SECONDS": "5"}
    with new_pool(tmp_path_factory.mktemp("pool"), **settings) as (pool, original):
        for number, name in enumerate(("ada", "bob", "cy", "dee"), 1):
            pool.copy_of(original, name, f"127.0.3.{number}")
        with pool.serving():
            yield pool


def tenant(pool: Pool, name: str) -> Tenant:
    return Tenant(pool.tenants / name)


def answers(pool: Pool, name: str) -> int:
    return pool.request(tenant(pool, name), "GET", "/healthz").status_code


@contextlib.contextmanager
def used(pool: Pool, *names: str) -> Iterator[None]:
    """These tenants are asked all the time, as long as the block takes."""
    is_over = threading.Event()

    def use(name: str) -> None:
        while not is_over.is_set():
            assert answers(pool, name) in (200, 503)
            time.sleep(0.3)

    with concurrent.futures.ThreadPoolExecutor() as executor:
        busy = [executor.submit(use, name) for name in names]
        try:
            yield
        finally:
            is_over.set()
        for each in busy:
            each.result()


def test_nothing_runs_until_it_is_asked_and_then_the_first_request_is_answered(pool: Pool) -> None:
    assert pool.running() == []
    assert answers(pool, "ada") == 200
    assert pool.running() == ["ada"]
    log = tenant(pool, "ada").log_file
    assert log.stat().st_mode & 0o077 == 0


def test_a_long_log_is_set_aside_while_the_tenant_runs(pool: Pool) -> None:
    assert answers(pool, "ada") == 200
    log = tenant(pool, "ada").log_file
    with log.open("ab") as file:
        file.write(b"x" * 10_000_001)
    assert eventually(lambda: log.stat().st_size < 10_000_000, 20)
    aside = log.with_suffix(".1.txt").stat()
    assert aside.st_size > 10_000_000
    assert aside.st_mode & 0o077 == 0
    assert answers(pool, "ada") == 200


def test_an_idle_tenant_stops_and_its_next_request_waits_for_it(pool: Pool) -> None:
    assert answers(pool, "ada") == 200
    assert pool.stops(tenant(pool, "ada"))
    assert not (tenant(pool, "ada").data / "platform.sqlite3-wal").exists()  # it was closed in order
    assert answers(pool, "ada") == 200


def test_requests_that_come_while_it_stops_are_answered(pool: Pool) -> None:
    """All through several stops: none is refused or reset."""
    ada = tenant(pool, "ada")
    statuses: list[int] = []
    for _ in range(3):
        assert answers(pool, "ada") == 200
        supervisor = pool.processes(ada)[0]
        supervisor.terminate()
        deadline = time.monotonic() + 30
        while supervisor.is_running() and supervisor.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            statuses.append(pool.request(ada, "POST", "/id/connect/token", data=TOKEN).status_code)
    assert set(statuses) == {200}


def test_a_third_tenant_takes_the_place_of_the_one_used_least_recently(pool: Pool) -> None:
    assert answers(pool, "ada") == 200
    assert answers(pool, "bob") == 200
    with used(pool, "bob"):
        assert eventually(lambda: answers(pool, "cy") == 200, 180)
        assert pool.running() == ["bob", "cy"]


def test_who_finds_no_room_is_told_to_come_again_and_gets_a_turn(pool: Pool) -> None:
    """However often others are asked."""
    for name in ("ada", "bob"):  # so that none has run for long
        tenant(pool, name).suspend()
        assert pool.stops(tenant(pool, name))
        tenant(pool, name).resume()
    with used(pool, "ada", "bob"):
        assert eventually(lambda: pool.running() == ["ada", "bob"], 30)
        refused = pool.request(tenant(pool, "dee"), "GET", "/healthz")
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert refused.json()["error"]["code"] == 10
        assert eventually(lambda: answers(pool, "dee") == 200, 180)


def test_a_suspended_tenant_is_answered_by_the_pool(pool: Pool) -> None:
    cy = tenant(pool, "cy")
    assert eventually(lambda: answers(pool, "cy") == 200, 10)
    cy.suspend()
    assert eventually(lambda: answers(pool, "cy") == 503, 40)
    assert pool.stops(cy)
    refused = pool.request(cy, "POST", "/id/connect/token", data={"pad": "x" * 300_000})
    assert refused.status_code == 503
    assert refused.headers["Content-Type"] == "application/json"
    assert refused.headers["Cache-Control"] == "no-store"
    assert int(refused.headers["Retry-After"]) == 60
    error = refused.json()["error"]
    assert (error["code"], error["type"]) == (9, "InstanceSuspended")
    assert error["info"] == "The pool of tenants answered; no process of the instance was started."
    assert "cy" not in pool.running()
    assert pool.request(cy, "HEAD", "/").content == b""
    cy.resume()
    assert eventually(lambda: answers(pool, "cy") == 200, 10)


def test_who_sends_nothing_to_a_suspended_tenant_holds_nothing(pool: Pool) -> None:
    dee = tenant(pool, "dee")
    dee.suspend()
    assert eventually(lambda: answers(pool, "dee") == 503, 40)
    silent = [socket.create_connection(("127.0.0.1", dee.port)) for _ in range(250)]
    started = time.monotonic()
    assert answers(pool, "ada") == 200
    assert time.monotonic() - started < 30
    for each in silent:
        each.settimeout(30)
        assert each.recv(10) == b""
        each.close()
    dee.resume()


def test_a_changed_setting_is_taken_up_without_a_restart_of_the_pool(pool: Pool) -> None:
    dee = tenant(pool, "dee")
    assert eventually(lambda: answers(pool, "dee") == 200, 40)
    dee.write_settings({**dee.settings(), "INSTANCE_NAME": "Dee and Daughters"})
    shown = lambda: "Dee and Daughters" in pool.request(dee, "GET", "/id/account/login").text  # noqa: E731
    assert eventually(shown, 30)


def test_a_tenant_that_takes_what_another_has_is_not_served(pool: Pool) -> None:
    cy, dee = tenant(pool, "cy"), tenant(pool, "dee")
    theirs = dee.settings()
    dee.write_settings({**theirs, "ALLOWED_HOSTS": f"127.0.3.4,{cy.hosts()[0]}"})
    assert eventually(lambda: any("dee may not have the host" in line for line in pool.output), 10)
    assert eventually(lambda: answers(pool, "dee") == 503, 40)
    assert answers(pool, "cy") == 200
    dee.write_settings({**theirs, "INSTANCE_LOGO": str(cy.data / "secret_key")})
    assert eventually(lambda: any("INSTANCE_LOGO of dee must be a file below" in line for line in pool.output), 10)
    dee.write_settings(theirs)
    assert eventually(lambda: answers(pool, "dee") == 200, 40)


def test_a_retry_that_is_due_wakes_a_sleeping_tenant(pool: Pool) -> None:
    bob = tenant(pool, "bob")
    bob.write_settings({**bob.settings(), "WEBHOOK_RETRY_SECONDS": "20", "WEBHOOK_RETRY_JITTER": "0"})
    with LoopbackReceiver().running() as receiver:
        receiver.answer(503)
        assert eventually(lambda: answers(pool, "bob") == 200, 40)
        time.sleep(2)  # the pool has taken up the settings
        token = pool.request(bob, "POST", "/id/connect/token", data=TOKEN).json()["access_token"]

        def create(path: str, body: Any) -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            answer = pool.request(bob, "POST", f"/api/domain/odata/{path}", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            return answer.json()

        create("Systems_Config_WebHooks", {
            "Code": "WAKE", "Name": {"EN": "Wake"}, "RepositoryName": "General.Products.ProductGroups",
            "Url": receiver.url, "Body": "{Code}", "IsActive": True, "RetryLogic": "Retry",
        })  # fmt: skip
        create("Systems_Bpm_UserBusinessRules", {
            "Code": "WAKE", "Name": {"EN": "Wake"}, "RepositoryName": "General.Products.ProductGroups",
            "IsActive": True, "Layer": "BackEnd", "Conditions": [],
            "Events": [{"EventType": "AGGREGATECLIENTCOMMIT", "Layer": "BackEnd"}],
            "Actions": [
                {"ActionNo": 10, "ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": "WAKE"}
            ],
        })  # fmt: skip
        create("General_Products_ProductGroups", {"Code": "WAKE", "Name": {"EN": "Wake"}})
        receiver.wait_for(1)
        # Not by idleness, which may end after the retry on a busy machine.
        pool.processes(bob)[0].terminate()
        assert pool.stops(bob, 15)
        assert len(receiver.requests) == 1
        receiver.wait_for(2, 120)
        assert receiver.requests[1].at - receiver.requests[0].at > 15


def test_nginx_leads_each_host_to_its_tenant(pool: Pool, tmp_path: Path) -> None:
    requires_program("nginx")
    port = free_port()
    configuration = nginx_configuration(tmp_path, pool.command("tenants", "proxy", "nginx").stdout, port)
    nginx = subprocess.Popen(["nginx", "-c", str(configuration), "-p", str(tmp_path)])
    try:

        def asked(host: str) -> str:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                page = "/id/.well-known/openid-configuration"
                client.sendall(f"GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                return b"".join(iter(lambda: client.recv(65536), b"")).decode()

        def listens() -> bool:
            try:
                return bool(asked("127.0.0.1"))
            except OSError:
                return False

        assert eventually(listens, 20), (tmp_path / "error.log").read_text()
        for name in ("ada", "bob", "cy"):
            host = tenant(pool, name).hosts()[0]
            assert f'"issuer": "{tenant(pool, name).settings()["BASE_URL"]}/id"' in asked(host), asked(host)
        assert asked("nobody.example.com").startswith("HTTP/1.1 421 ")
    finally:
        nginx.terminate()
        nginx.wait(20)


def test_the_pool_stops_in_order(tmp_path: Path) -> None:
    with new_pool(tmp_path) as (pool, original):
        ada = pool.copy_of(original, "ada", "127.0.3.9")
        with pool.serving():
            assert pool.request(ada, "GET", "/healthz").status_code == 200
            processes = pool.processes(ada)
        assert pool.output[-1] == "Stopped.\n"
        assert pool.process is not None
        assert pool.process.returncode == 0
        assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"DEMO": "1"}, "DEMO is not for a pool of tenants"),
        ({"REDIS_URL": "redis://127.0.0.1:1/0"}, "REDIS_URL is not for a pool of tenants"),
    ],
)
def test_a_pool_with_settings_of_an_instance_is_refused(tmp_path: Path, settings: dict[str, str], text: str) -> None:
    pool = Pool(tmp_path, settings)
    done = pool.command("serve")
    assert done.returncode == 1
    assert text in done.stderr


def test_killed_processes_disturb_no_other_tenant_and_start_again(pool: Pool) -> None:
    for name in ("cy", "dee"):  # their work would take the place of who was killed
        tenant(pool, name).suspend()
    assert eventually(lambda: not {"cy", "dee"} & set(pool.running()), 40)
    assert answers(pool, "ada") == 200
    assert answers(pool, "bob") == 200
    others = {process.pid for process in pool.processes(tenant(pool, "bob"))}
    for _ in range(2):
        for process in pool.processes(tenant(pool, "ada")):
            with contextlib.suppress(ProcessLookupError):  # it ends with the one before
                os.kill(process.pid, signal.SIGKILL)
        assert answers(pool, "bob") == 200
        assert answers(pool, "ada") == 200
    assert others <= {process.pid for process in pool.processes(tenant(pool, "bob"))}
    for name in ("cy", "dee"):
        tenant(pool, name).resume()
