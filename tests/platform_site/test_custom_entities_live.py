"""Custom entities on a running instance with four web processes, on PostgreSQL of two nodes (spec 10, 10.3).

Each process is asked over a connection of its own. The nodes have a DATA_DIR each and no Redis, as on two machines:
nothing but the database tells the other.
"""

from __future__ import annotations

import http.cookiejar
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.domain.custom_entities.cars import CAR, CARS, ENTITIES, attribute
from tests.identity.flows import fields_of
from tests.support.instances import prepared_instance
from tests.support.platform import LivePlatform, start_platform
from tests.support.processes import connection_to_each

pytestmark = pytest.mark.process

#: A request that begins later than this after the commit is answered by the new definition (spec 10).
PROMISED_SECONDS = 1.0
SERVICE = "/api/domain/odata/"


class Process:
    """One web process, asked over the connection that it has accepted."""

    def __init__(self, connection: HTTPConnection, token: str, cookies: str) -> None:
        self._connection = connection
        self._token = {"Authorization": f"Bearer {token}"}
        self._cookies = {"Cookie": cookies}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request to the Domain API."""
        data = None if body is None else json.dumps(body)
        headers = {**self._token, "Content-Type": "application/json"}
        status, content = self._send(method, SERVICE + quote(path, safe="/?$=&(),'@;"), data, headers)
        return status, json.loads(content) if content[:1] == "{" else content

    def text(self, path: str) -> str:
        """The answer to a GET of the API; "" where it fails."""
        status, content = self._send("GET", path, None, self._token)
        return content if status == 200 else ""

    def page(self, path: str) -> str:
        """A page for the administrator; "" where it fails."""
        status, content = self._send("GET", path, None, self._cookies)
        return content if status == 200 else ""

    def script(self, source: str) -> str:
        """What a script says; "" where it fails."""
        headers = {**self._token, "Content-Type": "text/plain", "Accept": "application/json"}
        status, content = self._send("POST", f"{SERVICE}ExecuteScript", source, headers)
        return str(json.loads(content)["console"]) if status == 200 else ""

    def _send(self, method: str, path: str, data: str | None, headers: dict[str, str]) -> tuple[int, str]:
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def running(directory: Path, stack_settings: dict[str, str]) -> Iterator[list[Process]]:
    """Four web processes: of two nodes where they have a server of a database."""
    nodes = [directory]
    if "DATABASE_URL" in stack_settings:
        nodes.append(directory.with_name("another"))
    each = 4 // len(nodes)
    settings = {**stack_settings, "WEB_PROCESSES": str(each), "WORKER_PROCESSES": "1", "LICENSE_SESSIONS": "500"}
    with ExitStack() as stack:
        platforms = [stack.enter_context(start_platform(node, settings=settings)) for node in nodes]
        token = _token(platforms[0])
        yield [
            Process(connection, token, cookies)
            for platform in platforms
            for cookies in [_cookies(platform)]
            for connection in connection_to_each(platform.base_url, platform.process.pid, processes=each).values()
        ]


def _token(platform: LivePlatform) -> str:
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", form, timeout=60).json()
    return str(answer["access_token"])


def _cookies(platform: LivePlatform) -> str:
    browser = requests.Session()
    login = f"{platform.base_url}/id/account/login"
    form = {**fields_of(browser.get(login, timeout=60).text), "login": "admin", "password": "admin"}
    browser.post(login, form, headers={"Referer": login}, timeout=60).raise_for_status()
    cookies: http.cookiejar.CookieJar = browser.cookies
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)


NAME = "Custom.Fleet.Cars"
#: An object that is refused for what the definition says: it has no code.
NO_CAR = {"objects": [{"@odata.type": "Erp.Custom_Fleet_Car", "Brand": "Volta"}]}
#: What each process answers about cars, by surface.
SURFACES: dict[str, Callable[[Process], bool]] = {
    "set": lambda process: process.ask("GET", CARS)[0] == 200,
    "service document": lambda process: f'"{CARS}"' in process.text(SERVICE),
    "$metadata": lambda process: f'Name="{CARS}"' in process.text(f"{SERVICE}$metadata?$format=xml"),
    "OpenAPI": lambda process: CARS in process.text("/api/openapi.json?namespace=Custom.Fleet"),
    "currentmodel": lambda process: CARS in process.text(f"/api/domain/currentmodel/{CARS}"),
    "events": lambda process: process.ask("GET", f"GetRepositoryEvents(repositoryName='{NAME}')")[0] == 200,
    "Table API": lambda process: f'"{CARS}"' in process.text("/tableapi/odata/"),
    "import": lambda process: "'Code'" in str(process.ask("POST", "Import", NO_CAR)[1]),
    "rules": lambda process: NAME in process.page("/admin/domain/userbusinessrule/add/"),
    "roles": lambda process: NAME in process.page("/admin/identity/role/add/"),
    "list of the admin": lambda process: "/admin/custom/car/add/" in process.page("/admin/custom/car/"),
    "sidebar of the admin": lambda process: "/admin/custom/car/" in process.page("/admin/"),
    "scripts": lambda process: process.script("console.log(Domain.Custom.Fleet.CarsRepository.query().length)") != "",
}


def test_every_process_of_every_node_serves_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        settings = stack.enter_context(prepared_instance(tmp_path / "data"))
        if "DATABASE_URL" in settings:
            shutil.copytree(tmp_path / "data", tmp_path / "another")
        with running(tmp_path / "data", settings) as processes:
            assert len(processes) == 4
            first, *others = processes
            # They serve the model without cars.
            assert all(process.ask("GET", CARS)[0] == 400 for process in processes)
            status, made = first.ask("POST", ENTITIES, CAR)
            assert status == 201, made
            committed = time.monotonic()
            for name, answers in SURFACES.items():
                for process in (*others, first):
                    assert served(process, answers, committed), name
            # Writes need no second: each begins with the definitions of its database.
            for number, process in enumerate((*others, first)):
                status, answer = process.ask("POST", CARS, {"Code": f"C{number}"})
                assert status == 201, answer

            body = {"CustomEntity@odata.bind": made["@odata.id"], **attribute("Seats", "Integer", DefaultValue="5")}
            status, seats = others[-1].ask("POST", "Systems_Bpm_CustomEntityAttributes", body)
            assert status == 201, seats
            changed = time.monotonic()
            for process in processes:
                assert served(process, lambda each: len(_with_five_seats(each)) == len(processes), changed)

        with running(tmp_path / "data", settings) as processes:
            for process in processes:
                assert len(process.ask("GET", CARS)[1]["value"]) == len(processes)
                assert process.ask("PATCH", answer["@odata.id"], {"Seats": 7})[0] in (200, 204)
            # It has values, so that its plan has a token.
            assert processes[0].ask("DELETE", seats["@odata.id"])[1]["error"]["type"] == "PlanNotConfirmed"


def _with_five_seats(process: Process) -> list[Any]:
    status, body = process.ask("GET", f"{CARS}?$filter=Seats eq 5")
    return list(body["value"]) if status == 200 else []


def served(process: Process, answers: Callable[[Process], bool], since: float) -> bool:
    """Whether each request that begins after the promised time is answered; others may be."""
    while True:
        began = time.monotonic()
        if answers(process):
            return True
        if began - since > PROMISED_SECONDS:
            return False
