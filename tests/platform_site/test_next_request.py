"""What is saved through one web process is in force for the next request on each of them (spec 05, 5.2; 01, 1.5).

A running instance with two web processes; each is asked over a connection of its own. Nothing is waited for.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle
from typing import Any

import pytest
import requests

from identity.applications import secret_hash
from tests.identity.flows import fields_of
from tests.support.platform import LICENSED_SESSIONS, LivePlatform
from tests.support.processes import connection_to_each

CURRENCIES = "General_Currencies_Currencies"
RULES = "Systems_Bpm_UserBusinessRules"
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Process:
    """One web process, asked over the connection that it has accepted."""

    connection: HTTPConnection

    def ask(self, method: str, path: str, body: Any = None, *, token: str) -> tuple[int, Any]:
        """Status and JSON; the path is relative to the service root."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        self.connection.request(method, f"/api/domain/odata/{path}", data, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None


@dataclass(frozen=True, slots=True)
class Instance:
    """The instance, its processes and an administrator's token."""

    platform: LivePlatform
    processes: tuple[Process, ...]
    token: str

    def ask(self, method: str, path: str, body: Any = None, *, at: int = 0) -> Any:
        """The JSON of an administrator's request, which must succeed."""
        status, answer = self.processes[at].ask(method, path, body, token=self.token)
        assert status < 300, answer
        return answer

    def create(self, entity_set: str, body: dict[str, Any], *, at: int = 0) -> str:
        """The path of a new entity."""
        return str(self.ask("POST", entity_set, body, at=at)["@odata.id"])

    def statuses(self, method: str, path: str, body: Any = None, *, token: str = "") -> list[int]:
        """What each process answers."""
        return [each.ask(method, path, body, token=token or self.token)[0] for each in self.processes]

    def token_of(self, client_id: str) -> str:
        """A service token."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "DEMO"}
        answer = requests.post(f"{self.platform.base_url}/id/connect/token", form, timeout=60)
        return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def instance(live_platform: LivePlatform) -> Iterator[Instance]:
    connections = list(connection_to_each(live_platform.base_url, live_platform.process.pid).values())
    made = Instance(live_platform, tuple(map(Process, connections)), "")
    yield Instance(live_platform, made.processes, made.token_of("ServiceDemoClient"))
    for connection in connections:
        connection.close()


@pytest.fixture
def currency(instance: Instance) -> Iterator[str]:
    path = instance.create(CURRENCIES, {"CurrencySign": f"Z{secrets.token_hex(1)}".upper(), "Name": "next request"})
    yield path
    instance.ask("DELETE", path)


@dataclass(frozen=True, slots=True)
class Caller:
    """A service application whose user may read what one role lets them; paths of the entities, and its token."""

    application: str
    client_id: str
    user: str
    role: str
    token: str


@pytest.fixture
def caller(instance: Instance) -> Iterator[Caller]:
    name = f"next-{secrets.token_hex(4)}"
    user = instance.create(
        "Systems_Security_Users", {"Login": f"of-{name}", "Name": {"EN": name}, "UserType": "SystemUserNoLogin"}
    )
    role = instance.create("Systems_Security_Roles", {"Name": name, "IsActive": True})
    member = instance.create("Systems_Security_RoleUsers", {"Role@odata.bind": role, "User@odata.bind": user})
    application = instance.create(
        "Systems_Security_TrustedApplications",
        {
            "ApplicationUri": name,
            "Name": name,
            "ClientType": "Confidential",
            "ApplicationSecretHash": secret_hash("DEMO"),
            "SystemUserAllowed": True,
            "SystemUser@odata.bind": user,
            "Scope": "read",
        },
    )
    yield Caller(application, name, user, role, instance.token_of(name))
    instance.ask("DELETE", member)
    # Its tokens and sessions keep the rest.
    instance.ask("PATCH", application, {"IsEnabled": False})


@dataclass(frozen=True, slots=True)
class AdminPages:
    """The admin's pages as a browser posts them."""

    base_url: str
    browser: requests.Session

    def save(self, page: str, values: dict[str, Any]) -> None:
        """Post a form, with what it holds hidden."""
        url = f"{self.base_url}/admin/identity/{page}"
        hidden = fields_of(self.browser.get(url, timeout=60).text)
        saved = self.browser.post(
            url, {**hidden, **values}, headers={"Referer": url}, allow_redirects=False, timeout=60
        )
        assert saved.status_code == 302, saved.text


@pytest.fixture(scope="module")
def admin_pages(live_platform: LivePlatform) -> AdminPages:
    browser = requests.Session()
    login = f"{live_platform.base_url}/id/account/login"
    form = {**fields_of(browser.get(login, timeout=60).text), "login": "admin", "password": "admin"}
    browser.post(login, form, headers={"Referer": login}, timeout=60).raise_for_status()
    return AdminPages(live_platform.base_url, browser)


def fail_rule(code: str, **changes: Any) -> dict[str, Any]:
    return {
        "Code": code,
        "Name": {"EN": code},
        "RepositoryName": "General.Currencies.Currencies",
        "IsActive": False,
        "Events": [{"EventType": "COMMIT"}],
        "Conditions": [{"AttributeName": "Name", "ComparisonType": "Equals", "Value": code}],
        "Actions": [{"ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "Refused."}],
        **changes,
    }


def test_no_write_slips_past_a_rule_that_was_saved_elsewhere(instance: Instance, currency: str) -> None:
    rule = instance.create(RULES, fail_rule("NEXT"))
    saved_at = cycle(range(len(instance.processes)))
    for round_ in range(ROUNDS):
        instance.ask("PATCH", rule, {"IsActive": True}, at=next(saved_at))
        assert instance.statuses("PATCH", currency, {"Name": "NEXT"}) == [500, 500], round_
        instance.ask("PATCH", rule, {"IsActive": False}, at=next(saved_at))
        next(saved_at)
        assert instance.statuses("PATCH", currency, {"Name": "NEXT"}) == [204, 204], round_
        instance.ask("PATCH", currency, {"Name": "other"})
    instance.ask("DELETE", rule)


def test_a_template_and_a_rule_that_names_it(instance: Instance) -> None:
    for here, there in ((0, 1), (1, 0)):
        template = instance.create(
            "Systems_Config_WebHooks",
            {
                "Code": f"NEXT{here}",
                "Name": {"EN": "Next"},
                "RepositoryName": "General.Currencies.Currencies",
                "URL": "https://example.com/",
            },
            at=here,
        )
        action = {"ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": f"NEXT{here}"}
        rule = instance.create(RULES, fail_rule(f"NEXTHOOK{here}", Actions=[action]), at=there)
        instance.ask("DELETE", rule, at=here)
        instance.ask("DELETE", template, at=here)
        status, _ = instance.processes[there].ask(
            "POST", RULES, fail_rule(f"NEXTHOOK{here}", Actions=[action]), token=instance.token
        )
        assert status == 500


def test_the_text_of_a_script(instance: Instance) -> None:
    script = instance.create(
        "Systems_Core_Scripts",
        {"Code": "NEXT", "Name": {"EN": "Next"}, "Language": "JavaScript", "ScriptText": "return 0", "IsActive": True},
    )
    for number, at in enumerate((0, 1, 0)):
        instance.ask("PATCH", script, {"ScriptText": f"return {number}"}, at=at)
        for process in range(2):
            assert instance.ask("POST", f"{script}/Execute", {}, at=process)["returnValue"] == number
    instance.ask("DELETE", script)


def test_a_custom_property_and_the_model(instance: Instance, currency: str) -> None:
    for here, there in ((0, 1), (1, 0)):
        name = f"CustomProperty_next{here}"
        assert instance.statuses("GET", f"{currency}?$select={name}") == [400, 400]
        definition = {
            "Code": f"next{here}",
            "Name": {"EN": "Next"},
            "EntityName": "General_Currencies_Currencies",
            "PropertyType": "Text",
        }
        made = instance.create("Systems_Bpm_CustomProperties", definition, at=here)
        assert instance.statuses("GET", f"{currency}?$select={name}") == [200, 200]
        instance.ask("PATCH", currency, {name: {"Value": "x"}}, at=there)
        instance.ask("PATCH", currency, {name: None}, at=here)
        instance.ask("DELETE", made, at=there)
        assert instance.statuses("GET", f"{currency}?$select={name}") == [400, 400]


def test_rights(instance: Instance, caller: Caller, currency: str, admin_pages: AdminPages) -> None:
    role_id = caller.role.partition("(")[2].strip(")'")
    assert instance.statuses("GET", currency, token=caller.token) == [403, 403]
    grant = {"role": role_id, "repository": "General.Currencies.Currencies", "can_read": "on"}
    admin_pages.save("rolepermission/add/", grant)
    assert instance.statuses("GET", currency, token=caller.token) == [200, 200]
    policy = {
        "role": role_id,
        "repository": "General.Currencies.Currencies",
        "filter": "Name eq 'nobody'",
        "on_read": "on",
        "is_active": "on",
    }
    admin_pages.save("rowpolicy/add/", policy)
    assert instance.statuses("GET", currency, token=caller.token) == [404, 404]
    for at in (0, 1):
        instance.ask("PATCH", caller.role, {"IsActive": False}, at=at)
        assert instance.statuses("GET", currency, token=caller.token) == [403, 403]
        instance.ask("PATCH", caller.role, {"IsActive": True}, at=at)
        assert instance.statuses("GET", currency, token=caller.token) == [404, 404]


def test_who_is_disabled(instance: Instance, caller: Caller) -> None:
    for at in (0, 1):
        for path, attribute in ((caller.application, "IsEnabled"), (caller.user, "Active")):
            instance.ask("PATCH", path, {attribute: True}, at=at)
            assert instance.statuses("GET", "", token=caller.token) == [200, 200]
            instance.ask("PATCH", path, {attribute: False}, at=at)
            assert instance.statuses("GET", "", token=caller.token) == [401, 401], attribute
            instance.ask("PATCH", path, {attribute: True}, at=at)


def test_a_revoked_token(instance: Instance, caller: Caller) -> None:
    for _ in range(3):
        token = instance.token_of(caller.client_id)
        assert instance.statuses("GET", "", token=token) == [200, 200]
        form = {"token": token, "client_id": caller.client_id, "client_secret": "DEMO"}
        url = f"{instance.platform.base_url}/id/connect/revocation"
        requests.post(url, form, timeout=60).raise_for_status()
        assert instance.statuses("GET", "", token=token) == [401, 401]


@pytest.fixture
def save_licence(admin_pages: AdminPages) -> Iterator[Callable[..., None]]:
    """Saves a licence in the admin; what is not given is as other tests need it, and so is the licence afterwards."""

    def save(*, sessions: int = LICENSED_SESSIONS, features: Sequence[str] = ("AdvancedBpm",)) -> None:
        seats = {"seats-TOTAL_FORMS": 0, "seats-INITIAL_FORMS": 0}
        admin_pages.save("licence/1/change/", {"sessions": sessions, "features": features, **seats})

    yield save
    save()


def test_the_features_of_the_licence(instance: Instance, save_licence: Callable[..., None]) -> None:
    script = instance.create(
        "Systems_Core_Scripts",
        {"Code": "LICENCE", "Name": {"EN": "L"}, "Language": "JavaScript", "ScriptText": "return 1", "IsActive": True},
    )
    for features, status in ((["AdvancedBpm"], 200), ([], 403), (["AdvancedBpm"], 200)):
        save_licence(features=features)
        assert instance.statuses("POST", f"{script}/Execute", {}) == [status, status]
    instance.ask("DELETE", script)


def test_the_sessions_of_the_licence(
    instance: Instance, caller: Caller, currency: str, save_licence: Callable[..., None]
) -> None:
    """The instance's own session holds a slot, so a licence of one session has none left."""
    for first in (instance.processes, instance.processes[::-1]):
        token = instance.token_of(caller.client_id)  # of a session that is not open yet
        save_licence(sessions=1)
        for each in first:
            status, answer = each.ask("GET", "", token=token)
            assert (status, answer["error"]["code"]) == (503, 8)
        assert instance.statuses("GET", currency) == [200, 200]
        save_licence()
        assert [each.ask("GET", "", token=token)[0] for each in first] == [200, 200]
        save_licence(sessions=1)
        assert [each.ask("GET", "", token=token)[0] for each in first] == [200, 200], "its session is open"
        save_licence()
