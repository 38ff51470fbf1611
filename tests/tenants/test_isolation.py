"""No token, cookie, entry, delivery, log line, metric, file or memory of a tenant reaches another (spec 13, 13.6).

Tenants that differ in nothing but their keys: the same logins, applications, entity ids and codes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from platform_site.tenants.directory import Tenant
from tests.support.receiver import LoopbackReceiver
from tests.support.tenants import Pool, new_pool
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.once]

NAMES = ("ada", "bob", "cy")
ODATA = "/api/domain/odata/"
PRODUCTS = "General_Products_Products"
UNIT = "General_Products_MeasurementUnits"


@dataclass
class Person:
    """Who works with one tenant. `marker` is in all that this person does."""

    pool: Pool
    tenant: Tenant
    token: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def marker(self) -> str:
        return f"marker-of-{self.tenant.name}"

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"X-Request-Id": self.marker, **options.pop("headers", {})}
        return self.pool.request(self.tenant, method, path, headers=headers, **options)

    def api(self, method: str, path: str, token: str | None = None, **options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", **options.pop("headers", {})}
        return self.ask(method, ODATA + path, headers=headers, **options)

    def create(self, path: str, body: Any) -> Any:
        answer = self.api("POST", path, json=body)
        assert answer.status_code == 201, (self.tenant.name, answer.text)
        return answer.json()

    def sign_in(self) -> None:
        """A token of the service application, and the cookies of a browser."""
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        answer = self.ask("POST", "/id/connect/token", data={**form, "scope": "read update exec"})
        assert answer.status_code == 200, answer.text
        self.token = answer.json()["access_token"]
        page = self.ask("GET", "/id/account/login")
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
        cookies = page.cookies.get_dict()
        signed = self.ask(
            "POST",
            "/id/account/login",
            data={**hidden, "login": "demo", "username": "demo", "password": "demo"},
            cookies=cookies,
            headers={"Origin": f"http://{self.tenant.hosts()[0]}:{self.tenant.port}"},
        )
        assert signed.status_code == 302, signed.text[:2000]
        self.cookies = {**cookies, **signed.cookies.get_dict()}
        assert self.is_known()

    def is_served(self) -> bool:
        return self.ask("GET", "/healthz").status_code == 200

    def is_known(self, cookies: dict[str, str] | None = None) -> bool:
        answer = self.ask("GET", "/profile/", cookies=self.cookies if cookies is None else cookies)
        assert answer.status_code in (200, 302), answer.status_code
        return answer.status_code == 200


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Person]]:
    """A pool with three tenants that run, and who works with each."""
    with new_pool(tmp_path_factory.mktemp("pool"), METRICS_TOKEN="of-the-pool") as (pool, original):
        made = [pool.copy_of(original, name, f"127.0.1.{number}") for number, name in enumerate(NAMES, 1)]
        with pool.serving():
            found = [Person(pool, tenant) for tenant in made]
            assert pool.running() == []
            for person in found:
                person.sign_in()
            yield found


def others(people: list[Person]) -> Iterator[tuple[Person, Person]]:
    """Each pair of two."""
    return ((one, other) for one in people for other in people if one is not other)


def test_tokens_and_cookies_are_those_of_one_tenant(people: list[Person]) -> None:
    for one, other in others(people):
        assert one.api("GET", f"{PRODUCTS}?$top=1").status_code == 200
        assert one.api("GET", f"{PRODUCTS}?$top=1", token=other.token).status_code == 401
        assert not one.is_known(other.cookies)
        assert one.is_known()
    keys = {one.ask("GET", "/id/.well-known/openid-configuration/jwks").text for one in people}
    assert len(keys) == len(people)
    secrets = {(one.tenant.data / name).read_bytes() for one in people for name in ("secret_key", "encryption_keys")}
    assert len(secrets) == 2 * len(people)


def test_the_pool_responds_for_a_suspended_tenant_and_starts_a_resumed_one(people: list[Person]) -> None:
    """Here and not in test_pool.py, so that each run shows it: this pool runs already."""
    cy = people[-1]
    cy.tenant.suspend()
    assert eventually(lambda: not cy.is_served())
    assert cy.pool.stops(cy.tenant)
    refused = cy.ask("GET", "/healthz")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "60")
    assert refused.json()["error"]["type"] == "InstanceSuspended"
    assert "cy" not in cy.pool.running()
    cy.tenant.resume()
    assert eventually(cy.is_served)
    assert cy.is_known()


def test_a_host_of_another_tenant_is_refused(people: list[Person]) -> None:
    for one, other in others(people):
        answer = one.ask("GET", "/id/account/login", headers={"Host": other.tenant.hosts()[0]})
        assert answer.status_code == 400
        assert one.ask("GET", "/id/account/login", headers={"Host": "localhost"}).status_code == 400


def work(people: list[Person], receiver: LoopbackReceiver, rounds: int, seed: int) -> None:
    """Random requests of everybody; each is checked against what this tenant alone has been told."""
    chance = random.Random(seed)
    rule = {
        "Code": "SAME", "Name": {"EN": "Same"}, "RepositoryName": "General.Products.Products", "IsActive": True,
        "Layer": "BackEnd", "Events": [{"EventType": "AGGREGATECLIENTCOMMIT", "Layer": "BackEnd"}], "Conditions": [],
        "Actions": [{"ActionNo": 10, "ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": "SAME"}],
    }  # fmt: skip
    first = people[0].api("GET", f"{PRODUCTS}?$top=1&$select=Id&$expand=MeasurementUnit($select=Id)").json()["value"][0]
    unit = (
        first["MeasurementUnit"]["@odata.id"]
        if "@odata.id" in first["MeasurementUnit"]
        else first["MeasurementUnit"]["Id"]
    )
    unit = unit if "(" in unit else f"{UNIT}({unit})"
    for person in people:
        person.create(
            "Systems_Config_WebHooks",
            {
                "Code": "SAME", "Name": {"EN": "Same"}, "RepositoryName": "General.Products.Products",
                "Url": f"{receiver.url}/{person.tenant.name}", "Body": '{{"Part": "{PartNumber}"}}', "IsActive": True,
            },
        )  # fmt: skip
        person.create("Systems_Bpm_UserBusinessRules", rule)
    expected: dict[str, set[str]] = {person.tenant.name: set() for person in people}
    for number in range(rounds):
        person = chance.choice(people)
        stranger = chance.choice([each for each in people if each is not person])
        match chance.randrange(5):
            case 0 | 1:
                part = f"SAME-{number}-{person.marker}"
                key = f"key-{number}"  # the same for two tenants: neither gets the other's answer
                body = {"PartNumber": part, "Name": {"EN": person.marker}, "MeasurementUnit@odata.bind": unit}
                answer = person.api("POST", PRODUCTS, json=body, headers={"Idempotency-Key": key})
                assert answer.status_code == 201, answer.text
                expected[person.tenant.name].add(part)
                part = f"SAME-{number}-{stranger.marker}"
                body = {**body, "PartNumber": part, "Name": {"EN": stranger.marker}}
                answer = stranger.api("POST", PRODUCTS, json=body, headers={"Idempotency-Key": key})
                assert (answer.status_code, answer.json()["PartNumber"]) == (201, part)
                expected[stranger.tenant.name].add(part)
            case 2:
                # The same id everywhere.
                where = first["@odata.id"]
                assert person.api("PATCH", where, json={"Name": {"EN": person.marker}}).ok
                expected[person.tenant.name].add(person.api("GET", f"{where}?$select=PartNumber").json()["PartNumber"])
                assert person.marker in person.api("GET", where).text
                assert person.marker not in stranger.api("GET", where).text
            case 3:
                transaction = person.api("POST", "BeginTransaction", json={}).text
                assert re.fullmatch(r"\w{32}", transaction), transaction
                refused = stranger.api("GET", f"{PRODUCTS}?$top=1", headers={"TransactionId": transaction})
                assert refused.status_code >= 400, refused.text
                ended = person.api(
                    "POST", "EndTransaction", json={"commit": False}, headers={"TransactionId": transaction}
                )
                assert ended.ok, ended.text
            case 4:
                read = person.api(
                    "GET", f"{PRODUCTS}?$filter=startswith(PartNumber,'SAME-')&$select=PartNumber,Name&$top=1000"
                )
                text = read.text
                assert not [each.marker for each in people if each is not person and each.marker in text]
                found = {row["PartNumber"] for row in read.json()["value"]}
                assert found >= {part for part in expected[person.tenant.name] if part.startswith("SAME-")}
    # Each change is told to the receiver of its own tenant, at least once, and to no other.
    for name, parts in expected.items():
        assert eventually(partial(_is_told, receiver, name, parts)), (name, parts - _told(receiver, name))
        assert _told(receiver, name) == parts


def _told(receiver: LoopbackReceiver, name: str) -> set[str]:
    return {json.loads(each.body)["Part"] for each in receiver.requests if each.path == f"/{name}"}


def _is_told(receiver: LoopbackReceiver, name: str, parts: set[str]) -> bool:
    return _told(receiver, name) >= parts


def test_random_work_of_one_is_nowhere_at_another(people: list[Person]) -> None:
    with LoopbackReceiver().running() as receiver:
        work(people, receiver, rounds=40, seed=1306)
    check_what_is_left(people)


@pytest.mark.fuzz
def test_much_random_work_of_one_is_nowhere_at_another(tmp_path: Path) -> None:
    with new_pool(tmp_path) as (pool, original), LoopbackReceiver().running() as receiver:
        names = [f"tenant-{number}" for number in range(1, 6)]
        made = [pool.copy_of(original, name, f"127.0.2.{number}") for number, name in enumerate(names, 1)]
        pool.settings["TENANTS_RUNNING"] = "5"
        with pool.serving():
            found = [Person(pool, tenant) for tenant in made]
            for person in found:
                person.sign_in()
            work(found, receiver, rounds=1000, seed=random.randrange(1 << 30))
            check_what_is_left(found)


def check_what_is_left(people: list[Person]) -> None:
    """Files, logs, metrics, open files and shared memory."""
    for one, other in others(people):
        for path in one.tenant.path.rglob("*"):
            if path.is_file():
                assert other.marker.encode() not in path.read_bytes(), path
        assert one.marker in one.tenant.log_file.read_text()
    for one in people:
        assert not [path for path in one.tenant.path.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
        assert not [line for line in one.pool.output if "marker-of-" in line]
        assert one.ask("GET", "/metrics", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403
    check_metrics(people)
    check_processes(people)


def check_metrics(people: list[Person]) -> None:
    def counted(person: Person) -> float:
        text = person.ask("GET", "/metrics").text
        found = re.findall(r'^platform_requests_total\{[^}]*site="api"[^}]*\} ([0-9.e+]+)$', text, re.MULTILINE)
        assert found, text[:500]
        return sum(float(each) for each in found)

    for one, other in others(people):
        before = counted(one)
        assert other.api("GET", f"{PRODUCTS}?$top=1").ok
        assert counted(one) == before
        assert one.api("GET", f"{PRODUCTS}?$top=1").ok
        assert counted(one) == before + 1


def check_processes(people: list[Person]) -> None:
    files: dict[str, set[str]] = {}
    memory: dict[str, set[str]] = {}
    for one in people:
        name = one.tenant.name
        files[name], memory[name] = set(), set()
        for process in one.pool.processes(one.tenant):
            try:
                lines = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
                found = [str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
            except (OSError, psutil.Error):
                continue  # a worker that has just ended
            files[name] |= {each for each in found if each.startswith(("/", "socket:", "pipe:"))}
            files[name] |= {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
            # Shared and writable: what one process writes there another one reads.
            memory[name] |= {" ".join(line.split()[3:5]) for line in lines if line.split()[1] == "rw-s"}
    for one, other in others(people):
        name, stranger = one.tenant.name, other.tenant.name
        assert not [each for each in files[name] if f"/tenants/{stranger}/" in each]
        shared = {each for each in files[name] & files[stranger] if each.startswith(("socket:", "pipe:"))}
        assert shared == set()
        assert memory[name] & memory[stranger] == set()
