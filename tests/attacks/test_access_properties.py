"""Whatever a person without administrator's rights does, and lets others set off, who may do what stays as it is.

Who: a user with every right that roles can give. What: random sequences of what every way of writing offers: requests,
imports, batches, transactions, scripts, rules on any event, edits of an administrator's rule, posts to admin pages;
then people, an administrator among them, do harmless things that set the rules off. What prevents it:
domain.dataset.checks.authority. The digest of all that decides access is the same before and after.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client, TestCase
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from foundation import cache_versions
from foundation.guids import new_guid
from identity.models import Role, RoleUser, TrustedApplication, User
from rules import index
from tests.attacks.access import CURRENCIES, ROLES, RULES, USERS, attacker, digest, rule_body, save_rule
from tests.domain.security.conftest import caller, person
from tests.support.api import Answer, Api

Draw = Callable[[st.SearchStrategy[Any]], Any]
MEMBERS, APPLICATIONS = "Systems_Security_RoleUsers", "Systems_Security_TrustedApplications"
REPOSITORIES = (
    "General.Currencies.Currencies", "General.Products.ProductGroups", "Systems.Security.Users",
    "Systems.Security.RoleUsers", "Systems.Bpm.UserBusinessRules",
)  # fmt: skip
EVENTS = (
    "CREATENEW", "COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED",
    "AGGREGATECLIENTCOMMITTED",
)  # fmt: skip
#: (attribute, value) of users, as bodies, SETVALUE actions and scripts give them.
CHANGES: tuple[tuple[str, Any], ...] = (
    ("IsAdmin", True), ("Email", "mallory@example.com"), ("Login", "root"), ("Active", False),
    ("UserType", "InternalUser"), ("UserType", "SystemUserNoLogin"), ("Notes", "harmless"),
)  # fmt: skip


@dataclass(frozen=True)
class Cast:
    """Who acts, and what there is."""

    mallory: Api
    alice: Api
    page: Client
    users: tuple[str, ...]
    role: str
    membership: str
    application: str
    alices_rule: str


@pytest.fixture
def cast(demo: None) -> Cast:
    mallory = attacker()
    alice = caller(person("alice", is_admin=True))
    page = Client(raise_request_exception=False)
    page.force_login(User.objects.get(login="mallory"))
    users = tuple(str(User.objects.get(login=login).pk) for login in ("mallory", "admin", "customer", "alice"))
    return Cast(
        mallory, alice, page, users, str(Role.objects.get(name="Sales").pk),
        str(RoleUser.objects.get(user__login="demo").pk), str(TrustedApplication.objects.all()[0].pk),
        save_rule(alice, "ALICE", "General.Currencies.Currencies", "COMMIT", ("WARNING", "seen")),
    )  # fmt: skip


def bodies(cast: Cast, draw: Draw) -> tuple[str, str, dict[str, Any]]:
    """(set, guid, body) of something that decides access."""
    name, value = draw(st.sampled_from(CHANGES))
    role = {"Role@odata.bind": f"{ROLES}({cast.role})"}
    member = {"User@odata.bind": f"{USERS}({cast.users[0]})", **role}
    found: tuple[str, str, dict[str, Any]] = draw(
        st.sampled_from(
            [
                *((USERS, user, {name: value}) for user in cast.users),
                (USERS, new_guid(), {"Login": "eve", "Name": {"EN": "Eve"}, name: value}),
                (USERS, cast.users[0], {"RoleUsers": [{"@erpnet.action": "create", **role}]}),
                (ROLES, cast.role, {"Name": "Owners"}),
                (ROLES, new_guid(), {"Name": "Owners"}),
                (MEMBERS, cast.membership, member),
                (MEMBERS, new_guid(), member),
                (APPLICATIONS, cast.application, {"Scope": "read update exec", "Name": "x"}),
            ]
        )
    )
    return found


def sources(cast: Cast, draw: Draw) -> str:
    """JavaScript that tries to change who may do what; refusals are caught or not."""
    name, value = draw(st.sampled_from(CHANGES))
    user, given = draw(st.sampled_from(cast.users)), json.dumps(value)
    security = "Domain.Systems.Security"
    inner = json.dumps(f"{security}.UsersRepository.getById('{cast.users[0]}').IsAdmin = true;")
    part = draw(
        st.sampled_from(
            [
                f"{security}.UsersRepository.getById('{user}').{name} = {given};",
                f"{security}.UsersRepository.createNew({{Login: 'eve', Name: 'Eve', {name}: {given}}});",
                f"{security}.UsersRepository.getById('{user}').Delete();",
                f"{security}.RolesRepository.createNew({{Name: 'Owners'}});",
                f"{security}.RolesRepository.getById('{cast.role}').IsActive = false;",
                f"{security}.RoleUsersRepository.createNew({{User: '{cast.users[0]}', Role: '{cast.role}'}});",
                f"{security}.RoleUsersRepository.getById('{cast.membership}').Delete();",
                f"const r = Domain.Systems.Bpm.UserBusinessRulesRepository.getById('{cast.alices_rule}');"
                f"r.ScriptLanguage = 'JavaScript'; r.ScriptText = {inner};",
                "Domain.Systems.Bpm.UserBusinessRulesRepository.createNew({Code: 'IN' + Date.now() % 100000, Name: 'i',"
                "IsActive: true, RepositoryName: 'General.Currencies.Currencies', ScriptLanguage: 'JavaScript',"
                f"ScriptText: {inner}, Events: [{{EventType: 'COMMIT'}}]}});",
            ]
        )
    )
    return f"try {{ {part} }} catch (e) {{}}" if draw(st.booleans()) else str(part)


def write(cast: Cast, draw: Draw) -> None:
    """A request, alone, in a transaction, a batch or an import."""
    name, id, body = bodies(cast, draw)
    way = draw(st.sampled_from(["POST", "PATCH", "PUT", "DELETE", "merge", "copy", "transaction", "batch", "import"]))
    api, path = cast.mallory, f"{name}({id})"
    if way == "merge":
        api.post(name, {"@erpnet.action": "merge", "Id": id, **body})
    elif way == "copy":
        api.post(f"{path}/CreateCopy", {})
    elif way == "transaction":
        inside = api.begin(model=draw(st.sampled_from(["common", "frontend"])))
        inside.patch(path, body)
        inside.end()
    elif way == "batch":
        api.post("$batch", {"requests": [{"id": "1", "method": "PATCH", "url": path, "body": body}]})
    elif way == "import":
        api.post("Import", {"objects": [{"@odata.type": f"Erp.{name.removesuffix('s')}", "@odata.id": path, **body}]})
    else:
        api.request(way, name if way == "POST" else path, None if way == "DELETE" else body)


def run_script(cast: Cast, draw: Draw) -> None:
    """ExecuteScript, or a managed script of the attacker's own, run by an administrator as well."""
    source = f"{sources(cast, draw)} Transaction.commit();"
    if draw(st.booleans()):
        cast.mallory.post("ExecuteScript", source, Content_Type="text/plain")
        return
    id = new_guid()
    values = {"Id": id, "Code": id[-8:], "Name": {"EN": "s"}, "Language": "JavaScript", "IsActive": True}
    cast.mallory.post("Systems_Core_Scripts", {**values, "ScriptText": source})
    runner: Api = draw(st.sampled_from([cast.mallory, cast.alice]))
    runner.post(f"Systems_Core_Scripts({id})/Execute", {})


def write_rule(cast: Cast, draw: Draw) -> None:
    """A rule of the attacker's own."""
    repository, event = draw(st.sampled_from(REPOSITORIES)), draw(st.sampled_from(EVENTS))
    values: dict[str, Any] = {}
    actions: list[tuple[str, ...]] = []
    if repository.endswith("Users") and draw(st.booleans()):
        name, value = draw(st.sampled_from(CHANGES))
        actions.append(("SETVALUE", name, str(value).lower() if isinstance(value, bool) else str(value)))
    else:
        values = {"ScriptLanguage": "JavaScript", "ScriptText": sources(cast, draw)}
    if event == "CREATENEW":
        values["Layer"] = "Common"
    body = rule_body(new_guid()[-8:], repository, event, *actions, **values)
    if event == "CREATENEW":
        body["Events"][0]["Layer"] = "Common"
    cast.mallory.post(RULES, body)


def edit_rule(cast: Cast, draw: Draw) -> None:
    """The administrator's rule, changed by the attacker."""
    if draw(st.booleans()):
        script = {"ScriptLanguage": "JavaScript", "ScriptText": sources(cast, draw)}
        cast.mallory.patch(f"{RULES}({cast.alices_rule})", script)
    else:
        cast.mallory.post(f"{RULES}({cast.alices_rule})/Events", {"EventType": draw(st.sampled_from(EVENTS[1:]))})


def post_page(cast: Cast, draw: Draw) -> None:
    """A form of the admin, with what its page does not offer."""
    user = draw(st.sampled_from(cast.users))
    address, form = draw(
        st.sampled_from(
            [
                (f"user/{user}/change/", {"is_admin": "on", "email": "m@example.com", "login": "root"}),
                (f"user/{user}/delete/", {"post": "yes"}),
                (f"user/{user}/password-link/", {}),
                (
                    f"user/{user}/change/",
                    {
                        "RoleUsers-TOTAL_FORMS": "1",
                        "RoleUsers-0-role": cast.role,
                        "RoleUsers-0-user": user,
                    },
                ),
                (
                    f"user/{user}/change/",
                    {
                        "RoleUsers-TOTAL_FORMS": "1",
                        "RoleUsers-INITIAL_FORMS": "1",
                        "RoleUsers-0-id": cast.membership,
                        "RoleUsers-0-user": user,
                        "RoleUsers-0-role": cast.role,
                        "RoleUsers-0-DELETE": "on",
                    },
                ),
                (
                    "user/?_to_field=id&_popup=1",
                    {
                        "form-TOTAL_FORMS": "1",
                        "form-INITIAL_FORMS": "1",
                        "form-0-id": user,
                        "form-0-is_admin": "on",
                        "_save": "1",
                    },
                ),
                ("roleuser/", {"action": "delete_selected", "_selected_action": [cast.membership], "post": "yes"}),
                ("user/add/", {"login": "eve", "name_en": "Eve", "is_admin": "on"}),
                ("roleuser/add/", {"user": user, "role": cast.role}),
                ("role/add/", {"name": "Owners", "is_active": "on"}),
                (f"role/{cast.role}/change/", {"name": "Owners"}),
                ("rolepermission/add/", {"role": cast.role, "repository": "*", "can_update": "on"}),
                ("rowpolicy/", {"action": "delete_selected"}),
                ("licence/1/change/", {"sessions": "9999"}),
                ("ratelimits/1/change/", {"token_failures_per_minute": "0"}),
                (f"trustedapplication/{cast.application}/secret/", {"days": "0"}),
                (f"trustedapplication/{cast.application}/change/", {"scope": "exec"}),
                ("referencetoken/add/", {"name": "x", "user": user, "application": cast.application, "days": "1"}),
            ]
        )
    )
    rows = {"RoleUsers-TOTAL_FORMS": "0", "RoleUsers-INITIAL_FORMS": "0"}
    cast.page.post(f"/admin/identity/{address}", {**rows, **form})


def harmless(cast: Cast, api: Api) -> list[Callable[[], Answer]]:
    """What raises events of the repositories that rules are written for."""
    text = new_guid()[-8:]
    return [
        lambda: api.post(CURRENCIES, {"CurrencySign": text[-5:], "Name": text}),
        lambda: api.post("General_Products_ProductGroups", {"Code": text, "Name": {"EN": text}}),
        lambda: api.patch(f"{USERS}({cast.users[0]})", {"Notes": text}),
    ]


def set_off(cast: Cast, draw: Draw) -> None:
    """Something harmless, by the attacker or by an administrator."""
    api: Api = draw(st.sampled_from([cast.mallory, cast.alice]))
    draw(st.sampled_from(harmless(cast, api)))()


def set_all_off(cast: Cast, draw: Draw) -> None:
    """All of it, by the administrator: rules first write rules, which then act."""
    for act in harmless(cast, cast.alice) + harmless(cast, cast.alice):
        with TestCase.captureOnCommitCallbacks(execute=True):
            act()
        cache_versions.expire()


STEPS = (write, run_script, write_rule, write_rule, write_rule, edit_rule, post_page, set_off)


def attack(cast: Cast, data: st.DataObject) -> None:
    """Several steps and what sets off whatever they left; nothing of it is kept."""
    index._index.forget()  # a rolled back cache version may be used again
    with transaction.atomic():
        before = digest()
        steps = data.draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=6))
        for step in (*steps, set_all_off):
            with TestCase.captureOnCommitCallbacks(execute=True):
                step(cast, data.draw)
            cache_versions.expire()
        assert digest() == before
        transaction.set_rollback(True)
    cache_versions.expire()


# An example is short as it is; to make one shorter takes minutes.
_BOUNDED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@given(data=st.data())
@settings(max_examples=10, suppress_health_check=_BOUNDED, phases=[Phase.explicit, Phase.generate])
def test_nothing_that_decides_access_changes(cast: Cast, data: st.DataObject) -> None:
    """Few examples, in each run."""
    attack(cast, data)


@pytest.mark.fuzz
@given(data=st.data())
@settings(suppress_health_check=_BOUNDED, phases=[Phase.explicit, Phase.generate])
def test_nothing_that_decides_access_changes_however_long_one_tries(cast: Cast, data: st.DataObject) -> None:
    """Many, with `make fuzz`."""
    attack(cast, data)
