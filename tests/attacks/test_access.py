"""Nobody but an administrator changes who may do what (spec 01, 1.6 and 1.7; spec 05, 5.2).

Who: a user with every right that roles can give, all of Systems.Security and Systems.Bpm among them. What: to change
accounts, roles and memberships directly, by every way of writing, and by rules that others set off; to get a login that
somebody had. What prevents it: dataset.checks.authority
asks, where a change is made in a dataset, for an administrator behind it; behind a rule stands who saved it last.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from domain.model.administration import needs_administrator
from domain.model.registry import repositories
from foundation import cache_versions
from foundation.guids import new_guid
from identity.models import Role, RoleUser, TrustedApplication, User
from rules.models import RuleState
from tests.attacks.access import (
    CURRENCIES,
    ROLES,
    RULES,
    USERS,
    attacker,
    digest,
    refused_as,
    save_rule,
    script,
)
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Answer, Api

MAKE_ME_ADMIN = "Domain.Systems.Security.UsersRepository.query({Login: 'mallory'}).forEach(u => u.IsAdmin = true);"
JOIN_A_ROLE = (
    "const role = Domain.Systems.Security.RolesRepository.query({Name: 'Sales'})[0];"
    "const user = Domain.Systems.Security.UsersRepository.query({Login: 'mallory'})[0];"
    "Domain.Systems.Security.RoleUsersRepository.createNew({User: user, Role: role});"
)
MAKE_A_ROLE = "Domain.Systems.Security.RolesRepository.createNew({Name: 'Owners', IsActive: true});"


@pytest.fixture
def mallory(demo: None) -> Api:
    return attacker()


@pytest.fixture
def alice(demo: None) -> Api:
    """An administrator."""
    return caller(person("alice", is_admin=True))


def user_id(login: str) -> str:
    return str(User.objects.get(login=login).pk)


def currency(sign: str = "XXA") -> dict[str, str]:
    return {"CurrencySign": sign, "Name": sign}


def is_admin(login: str = "mallory") -> bool:
    return User.objects.get(login=login).is_admin


# --- directly -----------------------------------------------------------------------------------------------------

#: What is tried on the administrator's account.
TAKE_OVER = (
    {"Email": "mallory@example.com"},
    {"Login": "root"},
    {"UserType": "ExternalCommunityUser"},
    {"Active": False},
    {"IsAdmin": False},
    {"Name": {"EN": "Mallory"}},
)


@pytest.mark.parametrize("change", TAKE_OVER, ids=lambda change: next(iter(change)))
def test_no_role_is_enough_to_change_an_account(mallory: Api, change: dict[str, object]) -> None:
    before = digest()
    for login in ("admin", "mallory", "customer"):
        answer = mallory.patch(f"{USERS}({user_id(login)})", change)
        assert (answer.status_code, refused_as(answer)) in ((403, "AdministratorsOnly"), (204, "")), answer.content
    assert digest() == before


def ways_to_change_a_user(api: Api) -> list[Answer]:
    admin, role = user_id("admin"), str(Role.objects.get(name="Sales").pk)
    mail = {"Email": "mallory@example.com"}
    typed = {"@odata.type": "Erp.Systems_Security_User"}
    member = {"Role@odata.bind": f"{ROLES}({role})"}
    member_of = {**member, "User@odata.bind": f"{USERS}({user_id('mallory')})"}
    source = f"const u = Domain.Systems.Security.UsersRepository.getById('{admin}'); u.Email = 'm@example.com';"
    inside = api.begin(model="common")
    return [
        api.post(USERS, {"Login": "eve", "Name": {"EN": "Eve"}}),
        api.request("PUT", f"{USERS}({new_guid()})", {"Login": "eve", "Name": {"EN": "Eve"}}),
        api.patch(f"{USERS}({new_guid()})", {"Login": "eve", "Name": {"EN": "Eve"}}),
        api.request("PUT", f"{USERS}({admin})", {"Login": "admin", "Name": {"EN": "Administrator"}, **mail}),
        api.request("PUT", f"{USERS}({admin})/Email", {"value": "m@example.com"}),
        api.delete(f"{USERS}({admin})/Email"),
        api.delete(f"{USERS}({user_id('customer')})"),
        api.post(f"{USERS}({admin})/CreateCopy", {}),
        api.post(f"{ROLES}({role})/CreateCopy", {}),
        api.post(f"{USERS}({user_id('mallory')})/RoleUsers", member),
        api.post("Systems_Security_RoleUsers", member_of),
        api.delete(f"Systems_Security_RoleUsers({RoleUser.objects.get(user__login='demo').pk})"),
        api.patch(f"{USERS}({user_id('mallory')})", {"RoleUsers": [{"@erpnet.action": "create", **member}]}),
        api.post(USERS, {"@erpnet.action": "merge", "@erpnet.findBy": {"Code": "admin"}, "Login": "admin", **mail}),
        api.post(USERS, {"@erpnet.action": "merge", "Id": admin, **mail}),
        api.patch(f"{ROLES}({role})", {"Name": "Owners"}),
        api.post("ExecuteScript", f"{source} Transaction.commit();", Content_Type="text/plain"),
        api.post("Import", {"objects": [{**typed, "@odata.id": f"{USERS}({admin})", **mail}]}),
        api.post("Import", {"objects": [{**typed, "Login": "eve", "Name": {"EN": "Eve"}}]}),
        api.post("$batch", {"requests": [{"id": "1", "method": "PATCH", "url": f"{USERS}({admin})", "body": mail}]}),
        inside.patch(f"{USERS}({admin})", mail),
        inside.end(),
        api.patch(f"Systems_Security_TrustedApplications({TrustedApplication.objects.all()[0].pk})", {"Name": "x"}),
    ]


def test_no_way_of_writing_changes_who_may_do_what(mallory: Api) -> None:
    before = digest()
    answers = ways_to_change_a_user(mallory)
    assert digest() == before
    assert [(n, a.status_code) for n, a in enumerate(answers) if a.status_code >= 500 or a.status_code == 400] == []


def test_what_decides_nothing_is_left_to_roles(mallory: Api) -> None:
    change = {"Notes": "n", "PhoneNumber": "1", "TimeZone": "UTC", "DefaultLanguage": "bg"}
    assert mallory.patch(f"{USERS}({user_id('admin')})", change).status_code == 204


def test_nothing_else_of_users_is_left_to_roles() -> None:
    """An attribute that somebody adds is an administrator's until it is named here and in the security model."""
    users = repositories["Systems.Security.Users"]
    left = {name for name in users.attributes if not needs_administrator(users, "update", name)}
    assert left == {
        "Notes", "PhoneNumber", "TimeZone", "DefaultLanguage", "ExternalId", "ExternalSystem", "AdditionalDataJson",
    }  # fmt: skip
    assert not needs_administrator(users, "update", "@custom")
    deciding = {each.name for each in repositories if each.decides_access}
    access = {f"Systems.Security.{name}" for name in ("Users", "Roles", "RoleUsers", "TrustedApplications")}
    # Everybody who enters the admin is shown the links of extensions.
    # A definition of an entity makes and drops tables.
    definitions = {"Systems.Bpm.CustomEntities", "Systems.Bpm.CustomEntityAttributes"}
    # Who could change what is kept of changes could change unseen.
    history = {"Systems.Core.RepositoryTracking"}
    assert deciding == {*access, *definitions, *history, "Systems.Core.Extensions"}


def test_administrators_change_it(alice: Api) -> None:
    user = alice.create(USERS, {"Login": "eve", "Name": {"EN": "Eve"}})["@odata.id"]
    assert alice.patch(user, {"Email": "eve@example.com", "IsAdmin": True, "Login": "eva"}).status_code == 204
    assert User.objects.get(login="eva").is_admin


def test_a_star_does_not_grant_what_runs_for_others_or_decides_access(demo: None) -> None:
    user = person("stella")
    give_role(user, {"*": "crud"})
    api = caller(user)
    assert api.get(CURRENCIES).status_code == 200
    for refused in (
        USERS, ROLES, RULES, "Systems_Bpm_CustomProperties", "Systems_Core_Scripts", "Systems_Config_WebHooks",
        "Systems_Config_WebHookDeliveries", "Systems_Security_RoleUsers",
    ):  # fmt: skip
        assert api.get(refused).status_code == 403, refused
    give_role(user, {"Systems.Bpm.*": "r", "Systems.Core.Scripts": "r"})
    assert [api.get(name).status_code for name in (RULES, "Systems_Core_Scripts", USERS)] == [200, 200, 403]


# --- by a rule ----------------------------------------------------------------------------------------------------

#: Events of a currency that is created, changed and deleted.
EVENTS = (
    "CREATENEW", "ATTRIBUTECHANGING:Name", "ATTRIBUTECHANGED:Name", "COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT",
    "COMMITTED", "CLIENTCOMMITTED", "AGGREGATECLIENTCOMMITTED",
)  # fmt: skip


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.django_db(transaction=True)
def test_a_rules_script_does_no_more_than_its_author_could(mallory: Api, alice: Api, event: str) -> None:
    for number, source in enumerate((MAKE_ME_ADMIN, JOIN_A_ROLE, MAKE_A_ROLE)):
        layers = {"Layer": "FrontEnd"} if event.startswith("ATTRIBUTE") else {}
        body = script(source) | {"Events": [{"EventType": event.partition(":")[0], **layers, **(
            {"EventParameter": "Name"} if layers else {})}], **layers}  # fmt: skip
        save_rule(mallory, f"M{number}", "General.Currencies.Currencies", event, **body)
    before = digest()
    for number, api in enumerate((mallory, alice)):
        answer = api.post(CURRENCIES, currency(f"XX{number}"))
        if "COMMITTED" not in event:
            assert refused_as(answer) == "RuleLacksAuthority", answer.content
    assert digest() == before


def test_a_script_that_catches_the_refusal_has_changed_nothing(mallory: Api, alice: Api) -> None:
    source = f"try {{ {MAKE_ME_ADMIN} }} catch (e) {{}} try {{ {MAKE_A_ROLE} }} catch (e) {{}}"
    save_rule(mallory, "M1", "General.Currencies.Currencies", "COMMIT", **script(source))
    before = digest()
    assert alice.post(CURRENCIES, currency()).status_code == 201
    assert digest() == before


SET_VALUES = (("IsAdmin", "true"), ("Email", "m@example.com"), ("Login", "root"), ("Active", "false"),
              ("UserType", "SystemUserNoLogin"))  # fmt: skip


@pytest.mark.parametrize("attribute, value", SET_VALUES)
def test_setvalue_does_no_more_than_its_author_could(mallory: Api, alice: Api, attribute: str, value: str) -> None:
    save_rule(mallory, "M1", "Systems.Security.Users", "COMMIT", ("SETVALUE", attribute, value))
    before = digest()
    for api in (mallory, alice):
        answer = api.patch(f"{USERS}({user_id('mallory')})", {"Notes": "x"})
        assert refused_as(answer) == "RuleLacksAuthority", answer.content
    assert digest() == before


def test_a_rule_may_set_what_roles_may_set(mallory: Api) -> None:
    save_rule(mallory, "M1", "Systems.Security.Users", "COMMIT", ("SETVALUE", "Notes", "by a rule"))
    assert mallory.patch(f"{USERS}({user_id('demo')})", {"PhoneNumber": "1"}).status_code == 204
    assert User.objects.get(login="demo").notes == "by a rule"


def test_actions_have_the_server_s_rights_and_scripts_their_caller_s(alice: Api) -> None:
    """Except for the entity that the rule runs on, which its script may change."""
    bob = person("bob")
    give_role(bob, {"General.Currencies.Currencies": "cr"})
    api = caller(bob)
    told = ("NOTIFYUSER", user_id("alice"), "a currency")
    subject = script("subject.Name = 'by a rule';")
    save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", told, **subject)
    answer = api.post(CURRENCIES, currency())
    assert answer.status_code == 201, answer.content
    assert json.loads(answer.content)["Name"] == "by a rule"
    notifications = "Systems_Core_Notifications"
    assert len(alice.read(notifications)["value"]) == 1
    assert api.get(notifications).status_code == 403
    other = script("Domain.General.Products.ProductGroupsRepository.createNew({Code: 'PG9', Name: 'g'});")
    save_rule(alice, "A2", "General.Currencies.Currencies", "CREATENEW", **other)
    assert api.post(CURRENCIES, currency("XXB")).status_code in (403, 500)
    assert alice.read("General_Products_ProductGroups?$filter=Code eq 'PG9'".replace(" ", "%20"))["value"] == []
    answer = alice.post(CURRENCIES, currency("XXC"))
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize("event", ["COMMIT", "COMMITTED"])
@pytest.mark.django_db(transaction=True)
def test_what_an_administrator_configured_happens_whoever_sets_it_off(mallory: Api, alice: Api, event: str) -> None:
    save_rule(alice, "A1", "General.Currencies.Currencies", event, **script(MAKE_A_ROLE))
    assert mallory.post(CURRENCIES, currency()).status_code == 201
    assert Role.objects.filter(name="Owners").exists()


def test_a_rule_loses_its_authority_with_its_author(mallory: Api, alice: Api) -> None:
    save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", **script(MAKE_A_ROLE))
    for change in ({"is_admin": False}, {"is_admin": True, "active": False}):
        User.objects.filter(login="alice").update(**change)
        assert refused_as(mallory.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert not Role.objects.filter(name="Owners").exists()


def edit_rule(api: Api, rule: str) -> Answer:
    return api.patch(f"{RULES}({rule})", {"Notes": "mine now"})


def add_child(api: Api, rule: str) -> Answer:
    return api.post(f"{RULES}({rule})/Events", {"EventType": "CREATENEW", "Layer": "Common"})


def add_child_to_its_set(api: Api, rule: str) -> Answer:
    body = {"UserBusinessRule@odata.bind": f"{RULES}({rule})", "EventType": "COMMITTED"}
    return api.post("Systems_Bpm_UserBusinessRuleEvents", body)


def remove_condition(api: Api, rule: str) -> Answer:
    condition = api.read(f"{RULES}({rule})/Conditions")["value"][0]
    return api.delete(condition["@odata.id"])


def change_condition(api: Api, rule: str) -> Answer:
    condition = api.read(f"{RULES}({rule})/Conditions")["value"][0]
    return api.patch(condition["@odata.id"], {"Value": "Q%"})


def move_condition_away(api: Api, rule: str) -> Answer:
    other = save_rule(api, "M9", "General.Currencies.Currencies", "COMMIT", ("WARNING", "x"))
    condition = api.read(f"{RULES}({rule})/Conditions")["value"][0]
    return api.patch(condition["@odata.id"], {"UserBusinessRule@odata.bind": f"{RULES}({other})"})


def within_a_transaction(api: Api, rule: str) -> Answer:
    inside = api.begin(model="common")
    assert edit_rule(inside, rule).status_code == 204
    return inside.end()


def by_script(api: Api, rule: str) -> Answer:
    source = f"Domain.Systems.Bpm.UserBusinessRulesRepository.getById('{rule}').Notes = 'm'; Transaction.commit();"
    return api.post("ExecuteScript", source, Content_Type="text/plain")


def by_import(api: Api, rule: str) -> Answer:
    body = {"@odata.type": "Erp.Systems_Bpm_UserBusinessRule", "@odata.id": f"{RULES}({rule})", "Notes": "m"}
    return api.post("Import", {"objects": [body]})


EDITS = (
    edit_rule, add_child, add_child_to_its_set, remove_condition, change_condition, move_condition_away,
    within_a_transaction, by_script, by_import,
)  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_who_edits_a_rule_stands_behind_it(mallory: Api, alice: Api, edit: Callable[[Api, str], Answer]) -> None:
    never = {"ConditionNo": 10, "AttributeName": "CurrencySign", "ComparisonType": "Like", "Value": "QQ%"}
    rule = save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", Conditions=[never], **script(MAKE_A_ROLE))
    assert RuleState.objects.get(rule_id=rule).author == user_id("alice")
    assert edit(mallory, rule).status_code < 300
    cache_versions.expire()
    assert RuleState.objects.get(rule_id=rule).author == user_id("mallory")
    assert refused_as(alice.post(CURRENCIES, currency("QQA"))) == "RuleLacksAuthority"
    assert not Role.objects.filter(name="Owners").exists()
    # An administrator who saves it again stands behind it as it now is.
    assert alice.patch(f"{RULES}({rule})", {"Notes": "seen"}).status_code == 204
    cache_versions.expire()
    assert alice.post(CURRENCIES, currency("QQB")).status_code == 201
    assert Role.objects.filter(name="Owners").exists()


def test_a_rule_does_not_write_rules_for_its_author(mallory: Api, alice: Api) -> None:
    """A rule of the attacker, set off by an administrator, writes a rule: the administrator is not its author."""
    inner = json.dumps(MAKE_ME_ADMIN)
    source = (
        "const r = Domain.Systems.Bpm.UserBusinessRulesRepository.createNew({Code: 'M2', Name: 'M2', IsActive: true,"
        "RepositoryName: 'General.Currencies.Currencies', ScriptLanguage: 'JavaScript', ScriptText: " + inner + ","
        "Events: [{EventType: 'COMMIT'}]});"
    )
    save_rule(mallory, "M1", "General.Products.ProductGroups", "COMMIT", **script(source))
    answer = alice.post("General_Products_ProductGroups", {"Code": "PG9", "Name": {"EN": "g"}})
    assert answer.status_code == 201, answer.content
    cache_versions.expire()
    assert set(RuleState.objects.values_list("author", flat=True)) == {user_id("mallory")}
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert not is_admin()


def test_a_rule_does_not_edit_an_administrators_rule_in_their_name(mallory: Api, alice: Api) -> None:
    """Also within a Domain transaction of the administrator that lasts several requests."""
    rule = save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", ("WARNING", "x"))
    source = (
        f"const r = Domain.Systems.Bpm.UserBusinessRulesRepository.getById('{rule}');"
        f"r.ScriptLanguage = 'JavaScript'; r.ScriptText = {json.dumps(MAKE_ME_ADMIN)};"
    )
    save_rule(mallory, "M1", "General.Products.ProductGroups", "CREATENEW", **script(source))
    inside = alice.begin(model="common")
    assert inside.post("General_Products_ProductGroups", {"Code": "PG9", "Name": {"EN": "g"}}).status_code == 201
    assert inside.patch(f"{RULES}({rule})", {"Notes": "by alice"}).status_code == 204
    assert inside.end().status_code == 204
    cache_versions.expire()
    assert RuleState.objects.get(rule_id=rule).author == user_id("mallory")
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert not is_admin()


def test_an_administrators_rule_inside_the_attackers_rule_acts_for_the_administrator_alone(
    mallory: Api, alice: Api
) -> None:
    save_rule(alice, "A1", "General.Products.ProductGroups", "COMMIT", ("WARNING", "seen"))
    make = "Domain.General.Products.ProductGroupsRepository.createNew({Code: 'PG9', Name: 'g'});"
    save_rule(mallory, "M1", "General.Currencies.Currencies", "CREATENEW", **script(make + MAKE_ME_ADMIN))
    before = digest()
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert digest() == before


def test_a_rule_of_nobody_has_no_authority(alice: Api) -> None:
    rule = save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", **script(MAKE_A_ROLE))
    RuleState.objects.filter(rule_id=rule).update(author="")
    cache_versions.expire()
    cache_versions.bump("rules")
    cache_versions.expire()
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"


# --- between requests ---------------------------------------------------------------------------------------------


def test_rights_that_are_taken_away_before_the_commit_are_gone(alice: Api) -> None:
    person("bob")
    inside = alice.begin(model="common")
    assert inside.patch(f"{USERS}({user_id('bob')})", {"IsAdmin": True}).status_code == 204
    User.objects.filter(login="alice").update(is_admin=False)
    cache_versions.expire()
    give_role(User.objects.get(login="alice"), {"Systems.Security.*": "crud"})
    assert refused_as(inside.end()) == "AdministratorsOnly"
    assert not is_admin("bob")


def test_what_an_administrators_rule_did_in_a_transaction_is_committed_by_others(mallory: Api, alice: Api) -> None:
    save_rule(alice, "A1", "General.Currencies.Currencies", "CREATENEW", **script(MAKE_A_ROLE))
    inside = mallory.begin(model="common")
    assert inside.post(CURRENCIES, currency()).status_code == 201
    assert inside.end().status_code == 204
    assert Role.objects.filter(name="Owners").exists()


# --- logins -------------------------------------------------------------------------------------------------------


def test_a_login_once_used_is_never_given_to_another_user(alice: Api) -> None:
    first = alice.create(USERS, {"Login": "olga", "Name": {"EN": "O"}})["@odata.id"]
    assert alice.patch(first, {"Login": "olga.new"}).status_code == 204

    def taken(login: str) -> str:
        return refused_as(alice.post(USERS, {"Login": login, "Name": {"EN": "Second"}}))

    assert [taken(login) for login in ("olga", "OLGA", "oLgA")] == ["LoginUsed"] * 3
    assert refused_as(alice.patch(f"{USERS}({user_id('customer')})", {"Login": "Olga"})) == "LoginUsed"
    assert alice.delete(first).status_code == 204
    assert [taken("olga"), taken("Olga.New")] == ["LoginUsed"] * 2
    with pytest.raises(Exception, match="olga"):
        User.objects.create_user("olga")


def test_a_user_may_have_their_own_former_login_again(alice: Api) -> None:
    first = alice.create(USERS, {"Login": "olga", "Name": {"EN": "O"}})["@odata.id"]
    for login in ("olga.new", "OLGA", "Olga.New"):
        assert alice.patch(first, {"Login": login}).status_code == 204


def test_the_page_of_a_user_shows_former_logins(alice: Api) -> None:
    first = alice.create(USERS, {"Login": "olga", "Name": {"EN": "O"}})["@odata.id"]
    alice.patch(first, {"Login": "olga.new"})
    browser = Client()
    browser.force_login(User.objects.get(login="alice"))
    page = browser.get(f"/admin/identity/user/{user_id('olga.new')}/change/").content.decode()
    assert "Former logins" in page
    assert ">olga<" in page
