"""A managed script changes who may do what only if its author is an administrator, whoever runs it.

Who: somebody who may write scripts and is no administrator. What: administrators run what they wrote: by Execute, in a
transaction or a batch, from a script of their own, from a rule's script, on the script's admin page. What prevents it:
behind each change stand the caller and the authors of all managed scripts that run (domain.dataset.checks.authority).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from identity.models import Role, User
from scripts.models import ScriptAuthor
from tests.attacks.access import CURRENCIES, attacker, digest, refused_as, save_rule, script
from tests.attacks.test_access import JOIN_A_ROLE, MAKE_A_ROLE, MAKE_ME_ADMIN, currency, user_id
from tests.domain.security.conftest import caller, person
from tests.scripts.cast import make_script
from tests.support.api import Answer, Api, error_of

TEXT = {"Content_Type": "text/plain"}
SCRIPTS = "Systems_Core_Scripts"
OPEN_AN_APPLICATION = (
    "Domain.Systems.Security.TrustedApplicationsRepository.query({}).forEach(a => a.ApplicationSecretHash ="
    " 'pbkdf2_sha256$1$x$y');"
)
TAKE_THE_PASSWORD = (
    "Domain.Systems.Security.UsersRepository.query({Login: 'admin'}).forEach(u => u.Email = 'm@example.com');"
)
LEAVE_A_MEMBER_OUT = "Domain.Systems.Security.RoleUsersRepository.query({}).forEach(member => member.Delete());"
ATTACKS = (
    MAKE_ME_ADMIN, JOIN_A_ROLE, MAKE_A_ROLE, OPEN_AN_APPLICATION, TAKE_THE_PASSWORD, LEAVE_A_MEMBER_OUT,
)  # fmt: skip


@pytest.fixture
def mallory(demo: None) -> Api:
    return attacker()


@pytest.fixture
def alice(demo: None) -> Api:
    """An administrator."""
    return caller(person("alice", is_admin=True))


def committing(source: str) -> str:
    return f"{source} Transaction.commit();"


def named(path: str) -> str:
    """A script's expression for a managed script."""
    return f"Domain.Systems.Core.ScriptsRepository.getById('{path.partition('(')[2][:-1]}')"


def run(api: Api, path: str) -> Answer:
    return api.post(f"{path}/Execute", {})


def run_in_a_transaction(api: Api, path: str) -> Answer:
    inside = api.begin(model="common")
    answer = run(inside, path)
    inside.end()
    return answer


def run_from_a_script(api: Api, path: str) -> Answer:
    return api.post("ExecuteScript", committing(f"{named(path)}.Execute({{}});"), **TEXT)


def run_from_a_managed_script(api: Api, path: str) -> Answer:
    outer = make_script(api, committing(f"{named(path)}.Execute({{}});"), Code="OUTER")
    return run(api, outer)


def run_from_a_rule(api: Api, path: str) -> Answer:
    save_rule(api, "A1", "General.Currencies.Currencies", "COMMIT", **script(f"{named(path)}.Execute({{}});"))
    return api.post(CURRENCIES, currency())


WAYS = (run, run_in_a_transaction, run_from_a_script, run_from_a_managed_script, run_from_a_rule)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_an_administrator_runs_it_and_nothing_changes(
    mallory: Api, alice: Api, way: Callable[[Api, str], Answer], number: int
) -> None:
    end = "" if way is run_from_a_rule else "Transaction.commit();"  # a rule's script cannot
    path = make_script(mallory, ATTACKS[number] + end, Code="EVIL")
    before = digest()
    answer = way(alice, path)
    assert digest() == before
    assert refused_as(answer) == "ScriptLacksAuthority", answer.content
    error = error_of(answer)
    assert error["parameters"][0] == "EVIL"
    assert "administrator has saved the script last" in error["message"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_catches_the_refusal_has_changed_nothing(
    mallory: Api, alice: Api, way: Callable[[Api, str], Answer]
) -> None:
    source = "".join(f"try {{ {each} }} catch (e) {{}}" for each in ATTACKS)
    end = "" if way is run_from_a_rule else "Transaction.commit();"
    path = make_script(mallory, source + end)
    before = digest()
    assert way(alice, path).status_code < 300
    assert digest() == before


def test_an_administrators_script_called_by_the_attackers_has_no_more(mallory: Api, alice: Api) -> None:
    inner = make_script(alice, MAKE_A_ROLE, Code="INNER")
    outer = make_script(mallory, committing(f"{named(inner)}.Execute({{}});"), Code="EVIL")
    answer = run(alice, outer)
    assert (refused_as(answer), error_of(answer)["parameters"][0]) == ("ScriptLacksAuthority", "EVIL")
    assert not Role.objects.filter(name="Owners").exists()


def test_an_administrators_script_does_it_for_administrators_alone(mallory: Api, alice: Api) -> None:
    path = make_script(alice, committing(MAKE_A_ROLE))
    assert ScriptAuthor.objects.get().author == user_id("alice")
    assert refused_as(run(mallory, path)) == "AdministratorsOnly"
    assert not Role.objects.filter(name="Owners").exists()
    assert run(alice, path).status_code == 200
    assert Role.objects.filter(name="Owners").exists()


def test_an_administrators_rule_acts_by_an_administrators_script_for_everybody(mallory: Api, alice: Api) -> None:
    path = make_script(alice, MAKE_A_ROLE)
    save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", **script(f"{named(path)}.Execute({{}});"))
    assert mallory.post(CURRENCIES, currency()).status_code == 201
    assert Role.objects.filter(name="Owners").exists()


def test_the_attackers_rule_does_not_act_by_an_administrators_script(mallory: Api, alice: Api) -> None:
    path = make_script(alice, MAKE_A_ROLE)
    save_rule(mallory, "M1", "General.Currencies.Currencies", "COMMIT", **script(f"{named(path)}.Execute({{}});"))
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert not Role.objects.filter(name="Owners").exists()


def test_a_script_loses_its_authority_with_its_author(mallory: Api, alice: Api) -> None:
    path = make_script(alice, committing(MAKE_A_ROLE))
    bob = caller(person("bob", is_admin=True))
    User.objects.filter(login="alice").update(is_admin=False)
    assert refused_as(run(bob, path)) == "ScriptLacksAuthority"
    assert bob.patch(path, {"Notes": "seen"}).status_code == 204
    assert run(bob, path).status_code == 200


def by_request(api: Api, path: str, text: str) -> Answer:
    return api.patch(path, {"ScriptText": text})


def by_import(api: Api, path: str, text: str) -> Answer:
    body = {"@odata.type": "Erp.Systems_Core_Script", "@odata.id": path, "ScriptText": text}
    return api.post("Import", {"objects": [body]})


def by_script(api: Api, path: str, text: str) -> Answer:
    source = f"{named(path)}.ScriptText = {json.dumps(text)};"
    return api.post("ExecuteScript", committing(source), **TEXT)


def by_transaction(api: Api, path: str, text: str) -> Answer:
    inside = api.begin(model="common")
    assert by_request(inside, path, text).status_code == 204
    return inside.end()


@pytest.mark.parametrize("edit", [by_request, by_import, by_script, by_transaction], ids=lambda edit: edit.__name__)
def test_who_edits_a_script_stands_behind_it(mallory: Api, alice: Api, edit: Callable[[Api, str, str], Answer]) -> None:
    path = make_script(alice, "return 1;")
    assert edit(mallory, path, committing(MAKE_ME_ADMIN)).status_code < 300
    assert ScriptAuthor.objects.get().author == user_id("mallory")
    assert refused_as(run(alice, path)) == "ScriptLacksAuthority"
    assert not User.objects.get(login="mallory").is_admin


def test_the_attackers_script_does_not_write_scripts_and_rules_for_an_administrator(mallory: Api, alice: Api) -> None:
    target = make_script(alice, "return 1;", Code="TARGET")
    inner = json.dumps(MAKE_ME_ADMIN)
    source = (
        f"{named(target)}.ScriptText = {inner};"
        f"Domain.Systems.Core.ScriptsRepository.createNew({{Code: 'NEW', Name: 'n', ScriptText: {inner}}});"
        "Domain.Systems.Bpm.UserBusinessRulesRepository.createNew({Code: 'NEW', Name: 'n', IsActive: true,"
        f"RepositoryName: 'General.Currencies.Currencies', ScriptLanguage: 'JavaScript', ScriptText: {inner},"
        "Events: [{EventType: 'COMMIT'}]});"
    )
    assert run(alice, make_script(mallory, committing(source), Code="EVIL")).status_code == 200
    assert set(ScriptAuthor.objects.values_list("author", flat=True)) == {user_id("mallory")}
    assert refused_as(run(alice, target)) == "ScriptLacksAuthority"
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"


def test_a_script_changed_in_a_transaction_is_its_changers_before_the_commit(mallory: Api, alice: Api) -> None:
    """The attacker's script, run in an administrator's transaction, rewrites a script that they run next."""
    target = make_script(alice, "return 1;", Code="TARGET")
    evil = make_script(mallory, f"{named(target)}.ScriptText = {json.dumps(MAKE_ME_ADMIN)};", Code="EVIL")
    inside = alice.begin(model="common")
    assert run(inside, evil).status_code == 200
    assert refused_as(run(inside, target)) == "ScriptLacksAuthority"
    assert inside.patch(target, {"Notes": "by alice"}).status_code == 204
    assert refused_as(run(inside, target)) == "ScriptLacksAuthority"
    assert inside.end().status_code == 204
    assert refused_as(run(alice, target)) == "ScriptLacksAuthority"


def test_a_rule_that_rewrites_a_script_stands_behind_it(mallory: Api, alice: Api) -> None:
    save_rule(mallory, "M1", "Systems.Core.Scripts", "COMMIT", ("SETVALUE", "ScriptText", MAKE_ME_ADMIN))
    path = make_script(alice, "return 1;")
    assert ScriptAuthor.objects.get().author == user_id("mallory")
    assert refused_as(run(alice, path)) == "ScriptLacksAuthority"


def test_a_script_runs_as_a_change_of_its_caller(mallory: Api, alice: Api) -> None:
    """CLIENT* rules fire for what it changes; business data needs no administrator."""
    save_rule(alice, "A1", "General.Currencies.Currencies", "CLIENTCOMMIT", ("SETVALUE", "Name", "by the rule"))
    source = "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'XXA', Name: 'n'});"
    assert run(alice, make_script(mallory, committing(source))).status_code == 200
    assert alice.read(f"{CURRENCIES}?$filter=CurrencySign eq 'XXA'")["value"][0]["Name"] in (
        "by the rule", {"EN": "by the rule"},
    )  # fmt: skip


def test_the_scripts_page_says_why_and_whose_it_is(mallory: Api, alice: Api) -> None:
    path = make_script(mallory, committing(MAKE_ME_ADMIN), Code="EVIL")
    page = f"/admin/domain/script/{path.partition('(')[2][:-1]}/"
    browser = Client()
    browser.force_login(User.objects.get(login="alice"))
    before = digest()
    for text in (committing(MAKE_ME_ADMIN), f"{committing(MAKE_ME_ADMIN)}\n// edited"):
        shown = unescape(browser.post(f"{page}run/", {"script_text": text}).content.decode())
        assert "ScriptLacksAuthority" in shown
        assert "an administrator has saved the script last" in shown
    assert digest() == before
    author = unescape(browser.get(f"{page}change/").content.decode())
    assert "Mallory (mallory), no administrator" in author
    assert "cannot change who may do what" in author


def test_the_command_runs_it_with_its_authors_authority(mallory: Api, alice: Api) -> None:
    path = make_script(mallory, committing(MAKE_ME_ADMIN), Code="EVIL")
    before = digest()
    with pytest.raises(CommandError, match="an administrator has saved the script last"):
        call_command("run_script", "--code", "EVIL", stdout=StringIO(), stderr=StringIO())
    assert digest() == before
    assert alice.patch(path, {"Notes": "seen"}).status_code == 204


def test_rules_and_scripts_of_nobody_are_saved_again_by_administrators(alice: Api) -> None:
    """Scripts that were saved before authors were kept have none."""
    path = make_script(alice, committing(MAKE_A_ROLE))
    ScriptAuthor.objects.all().delete()
    assert refused_as(run(alice, path)) == "ScriptLacksAuthority"
    assert alice.patch(path, {"Notes": "seen"}).status_code == 204
    assert run(alice, path).status_code == 200
