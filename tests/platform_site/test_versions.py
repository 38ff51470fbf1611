"""Versions of rules, scripts and webhooks: every save keeps one, and a person with the right restores one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from audit.actors import OPERATOR
from domain.admin.version_pages import text_of
from domain.dataset.commit.retention import history_prune
from domain.dataset.commit.versions import Version, documents_at, versions_of
from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import ObjectChange, ObjectChangeset, RepositoryTracking
from domain.entities.document_states import document_change_state
from domain.entities.systems_bpm import UserBusinessRule
from domain.entities.systems_config import WebHook
from domain.entities.systems_core import Script
from domain.model.registry import repositories
from foundation import cache_versions
from foundation.fields import utc_now
from identity.context import system_context
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from platform_site.configuration import dump, export
from rules.authors import AUTHORS
from tests.rules.cast import dataset, new_order, prepared_world
from tests.scripts.cast import make_script
from tests.support.api import Api, id_of, prepared_token
from webhooks.services import signing_secret_rotate

pytestmark = pytest.mark.django_db
CURRENCIES = "General.Currencies.Currencies"
RULES, SCRIPTS, WEB_HOOKS = "Systems.Bpm.UserBusinessRules", "Systems.Core.Scripts", "Systems.Config.WebHooks"
PARTS = tuple(f"Systems.Bpm.UserBusinessRule{part}" for part in ("Events", "Conditions", "Actions"))
PAGES = {RULES: "userbusinessrule", SCRIPTS: "script", WEB_HOOKS: "webhook"}


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client, prepared_token())


@pytest.fixture
def admin(api: Api) -> Client:
    return signed_in(User.objects.create(login="root", name={"EN": "Root"}, is_admin=True))  # type: ignore[misc]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def person(login: str, *permissions: tuple[str, str]) -> Client:
    """A user whose role has these permissions: (repository, letters of read, create, update, delete)."""
    user = User.objects.create(login=login, name={"EN": login})  # type: ignore[misc]
    role = Role.objects.create(name=login)
    RoleUser.objects.create(user=user, role=role)
    for repository, letters in permissions:
        rights = {f"can_{name}": name[0] in letters for name in ("read", "create", "update", "delete")}
        RolePermission.objects.create(role=role, repository=repository, **rights)
    cache_versions.expire()
    return signed_in(user)


def make_rule(api: Api, **values: Any) -> str:
    body = {
        "Code": "VERSIONED", "Name": {"EN": "A rule"}, "RepositoryName": CURRENCIES, "IsActive": False,
        "Events": [{"EventType": "COMMIT"}],
        "Conditions": [{"ConditionNo": 10, "AttributeName": "CurrencySign", "ComparisonType": "Like", "Value": "XXA"}],
        "Actions": [{"ActionNo": 10, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "No."}],
    }  # fmt: skip
    return id_of(api.create("Systems_Bpm_UserBusinessRules", body | values))


def make_web_hook(api: Api, **values: Any) -> str:
    body = {
        "Code": "HOOK", "Name": {"EN": "A webhook"}, "RepositoryName": CURRENCIES, "Body": "one",
        "URL": "https://hooks.example/in?token=t0psecretvalue", "Headers": "Authorization: Bearer s3cretheader",
    }  # fmt: skip
    return id_of(api.create("Systems_Config_WebHooks", body | values))


def patch(api: Api, path: str, body: dict[str, Any]) -> None:
    response = api.patch(path, body)
    assert response.status_code in (200, 204), response.content


def versions(id: str) -> list[Version]:
    """Oldest first; none of a deleted entity."""
    name = ObjectChange.objects.filter(entity_item_id=id).values_list("repository_name", flat=True).first()
    found = versions_of(repositories[name], id, 1000)[::-1] if name else []
    return [] if found and found[-1].operation == "Delete" else found


def page(repository: str, id: str, query: str = "") -> str:
    return f"/admin/domain/{PAGES[repository]}/{id}/versions/{query}"


def restore(client: Client, repository: str, id: str, number: int, **fields: Any) -> Any:
    newest = versions(id)[-1].number
    given = {"version": number, "newest": newest, "confirmed": 1, **fields}
    response = client.post(page(repository, id), given, follow=True)
    cache_versions.expire()
    return response


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_saves_by_api_page_and_command_are_kept_with_who_and_what(api: Api, admin: Client, tmp_path: Any) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": "return 2;", "Notes": "by the API"})
    form = {"code": "S1", "name_en": "A script", "script_text": "return 3;", "language": "JavaScript"}
    response = admin.post(f"/admin/domain/script/{id}/change/", form)
    assert response.status_code == 302, response.content
    document = export()
    document["scripts"]["S1"]["ScriptText"] = "return 4;"
    (tmp_path / "configuration.yaml").write_text(dump(document))
    call_command("import_config", str(tmp_path / "configuration.yaml"), "--apply")
    kept = versions(id)
    assert [(each.number, each.user_login, each.application) for each in kept] == [
        (1, "service", "ServiceDemoClient"), (2, "service", "ServiceDemoClient"), (3, "root", ""), (4, "", ""),
    ]  # fmt: skip
    assert [each.changes for each in kept] == [
        (), ("ScriptText", "Notes"), ("IsActive", "ScriptText", "Notes"), ("ScriptText",),
    ]  # fmt: skip
    html = admin.get(page(SCRIPTS, id)).content.decode()
    assert "-  return 3;" not in html
    assert "-ScriptText: return 3;" in html
    assert "+ScriptText: return 4;" in html
    assert "the platform" in html
    between = admin.get(page(SCRIPTS, id, "?from=1&to=2")).content.decode()
    assert "+Notes: by the API" in between


def test_a_change_of_one_line_is_a_version_of_its_rule(api: Api, admin: Client) -> None:
    id = make_rule(api)
    (condition,) = api.read(f"Systems_Bpm_UserBusinessRules({id})/Conditions")["value"]
    patch(api, condition["@odata.id"], {"Value": "XXB"})
    kept = versions(id)
    assert [each.changes for each in kept] == [(), ("Conditions",)]
    html = admin.get(page(RULES, id)).content.decode()
    assert "-    Value: XXA" in html
    assert "+    Value: XXB" in html
    assert (
        'href="/admin/domain/userbusinessrule/' + id + '/versions/"'
        in admin.get(f"/admin/domain/userbusinessrule/{id}/change/").content.decode()
    )


def test_what_is_not_committed_keeps_no_version(api: Api) -> None:
    id = make_rule(api)
    inside = api.begin()
    patch(inside, f"Systems_Bpm_UserBusinessRules({id})", {"Notes": "pending"})
    assert len(versions(id)) == 1
    inside.end(commit=False)
    assert len(versions(id)) == 1
    inside = api.begin()
    patch(inside, f"Systems_Bpm_UserBusinessRules({id})", {"Notes": "pending"})
    inside.end(commit=True)
    assert [each.changes for each in versions(id)] == [(), ("Notes",)]
    assert api.delete(f"Systems_Bpm_UserBusinessRules({id})").status_code == 204
    assert versions(id) == []


def test_secrets_are_in_no_version(api: Api, admin: Client) -> None:
    id = make_web_hook(api)
    signing_secret_rotate(id, scheme="", by=OPERATOR)
    patch(api, f"Systems_Config_WebHooks({id})", {"Headers": "X-Key: an0thersecret", "Notes": "new key"})
    patch(api, f"Systems_Config_WebHooks({id})", {"Headers": "X-Key: y3tanother"})
    stored = json.dumps(list(ObjectChange.objects.values_list("changes", "old_values")))
    secret = WebHook.objects.get(pk=id).signing_secret
    assert secret
    for text in ("s3cretheader", "an0thersecret", "y3tanother", "t0psecretvalue", "Headers", "igning", secret):
        assert text not in stored
    html = admin.get(page(WEB_HOOKS, id)).content.decode()
    assert "Nothing that versions show" in html
    assert "token=***" in html


def test_versions_are_kept_as_long_as_the_setting_says(api: Api, settings: Any) -> None:
    id = id_of({"@odata.id": make_script(api, "return 0;")})
    other = make_rule(api)
    for number in range(1, 5):
        patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": f"return {number};"})
    assert history_prune() == 0
    long_ago = utc_now() - timedelta(days=40)
    old = ObjectChange.objects.filter(entity_item_id=id, item_version__lte=3)
    old.update(change_time_utc=long_ago)
    ObjectChangeset.objects.filter(pk__in=old.values("changeset")).update(aggregate_last_update_time_utc=long_ago)
    RepositoryTracking.objects.update(tracked_since=long_ago)
    api.create("Systems_Core_RepositoryTracking", {"RepositoryName": SCRIPTS, "RetentionDays": 30})
    changesets = ObjectChangeset.objects.count()
    assert history_prune() == 3
    assert ObjectChangeset.objects.count() == changesets - 3
    assert [each.number for each in versions(id)] == [4, 5]
    assert len(versions(other)) == 1
    since = RepositoryTracking.objects.get(repository_name=SCRIPTS).tracked_since
    assert since is not None
    assert since > long_ago + timedelta(days=9)
    assert RepositoryTracking.objects.get(repository_name="*").tracked_since == long_ago
    patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": "return 9;"})
    assert [each.number for each in versions(id)] == [4, 5, 6]
    record = Dataset(system_context()).load(SCRIPTS, id)
    assert record is not None
    documents = documents_at(record, [3, 4, 6])
    assert [documents[number]["ScriptText"] for number in (3, 4, 6)] == ["return 2;", "return 3;", "return 9;"]


# --- restoring --------------------------------------------------------------------------------------------------------


def test_a_rule_is_restored_with_its_lines_and_by_its_new_author(api: Api, admin: Client) -> None:
    id = make_rule(api)
    root = f"Systems_Bpm_UserBusinessRules({id})"
    (condition,) = api.read(f"{root}/Conditions")["value"]
    (action,) = api.read(f"{root}/Actions")["value"]
    assert api.delete(condition["@odata.id"]).status_code == 204
    patch(api, action["@odata.id"], {"Parameter1Value": "Never."})
    api.create(f"{root}/Events", {"EventType": "CLIENTCOMMIT"})
    asked = admin.post(page(RULES, id), {"version": 1})
    assert "Restore version 1?" in asked.content.decode()
    assert len(versions(id)) == 4
    response = restore(admin, RULES, id, 1)
    assert "Version 1 is restored." in response.content.decode()
    assert [len(api.read(f"{root}/{name}")["value"]) for name in ("Events", "Conditions", "Actions")] == [1, 1, 1]
    assert api.read(f"{root}/Actions")["value"][0]["Parameter1Value"] == "No."
    assert api.read(f"{root}/Conditions")["value"][0]["Value"] == "XXA"
    assert (versions(id)[-1].number, versions(id)[-1].user_login) == (5, "root")
    assert AUTHORS.of([id])[id] == str(User.objects.get(login="root").pk)
    assert "as in version 1" in admin.get(f"/admin/domain/userbusinessrule/{id}/history/").content.decode()


def test_a_web_hook_keeps_its_secrets(api: Api, admin: Client) -> None:
    id = make_web_hook(api)
    patch(api, f"Systems_Config_WebHooks({id})", {"Body": "two", "Headers": "X-Key: an0thersecret"})
    restore(admin, WEB_HOOKS, id, 1)
    hook = WebHook.objects.get(pk=id)
    assert (hook.body, hook.headers) == ("one", "X-Key: an0thersecret")
    assert hook.url == "https://hooks.example/in?token=t0psecretvalue"
    patch(api, f"Systems_Config_WebHooks({id})", {"URL": "https://other.example/in"})
    answer = restore(admin, WEB_HOOKS, id, 1).content.decode()
    assert "URL of this version had a secret" in answer
    assert WebHook.objects.get(pk=id).url == "https://other.example/in"


def test_a_version_that_no_longer_holds_is_refused_as_a_save_is(api: Api, admin: Client) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;", Code="FORMER")})
    patch(api, f"Systems_Core_Scripts({id})", {"Code": "LATTER"})
    make_script(api, "return 2;", Code="FORMER")
    answer = restore(admin, SCRIPTS, id, 1).content.decode()
    assert "FORMER" in answer
    assert Script.objects.get(pk=id).code == "LATTER"
    assert len(versions(id)) == 2


def test_a_save_between_question_and_answer_is_not_lost(api: Api, admin: Client) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": "return 2;"})
    patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": "return 3;"})
    assert "saved again meanwhile" in restore(admin, SCRIPTS, id, 1, newest=2).content.decode()
    assert Script.objects.get(pk=id).script_text == "return 3;"
    assert "already" in restore(admin, SCRIPTS, id, 3).content.decode()


def test_what_restoring_does_not_set_is_neither_promised_nor_reported(admin: Client) -> None:
    world = prepared_world()
    ds = dataset(world.context)
    order = new_order(ds, world, DocumentNotes="one")
    ds.commit()
    ds.set(order, "DocumentNotes", "two")
    ds.commit()
    document_change_state(order, "FirmPlanned")
    ds.commit()
    path = f"/admin/domain/salesorder/{order.id}/versions/"
    asked = admin.post(path, {"version": 1}).content.decode()
    assert "+DocumentNotes: one" in asked
    assert "State: " not in asked.partition('id="differences"')[2]
    not_set = "Restoring does not set the state and other computed values."
    assert not_set in asked

    def restored() -> str:
        newest = versions(order.id)[-1].number
        given = {"version": 1, "newest": newest, "confirmed": 1}
        return str(admin.post(path, given, follow=True).content.decode())

    assert f"Version 1 is restored. {not_set}" in restored()
    assert f"It is as in version 1 already. {not_set}" in restored()


# --- rights -----------------------------------------------------------------------------------------------------------


def test_who_may_not_change_may_not_restore(api: Api) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": "return 2;"})
    reader = person("reader", (SCRIPTS, "r"))
    html = reader.get(page(SCRIPTS, id)).content.decode()
    assert "-ScriptText: return 1;" in html
    assert "Restore" not in html
    assert restore(reader, SCRIPTS, id, 1).status_code == 403
    assert reader.post(page(SCRIPTS, id), {"version": 1}).status_code == 403
    assert Script.objects.get(pk=id).script_text == "return 2;"
    writer = person("writer", (SCRIPTS, "ru"))
    assert restore(writer, SCRIPTS, id, 1).status_code == 200
    assert Script.objects.get(pk=id).script_text == "return 1;"


def test_who_may_not_read_sees_no_versions(api: Api) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    stranger = person("stranger", (RULES, "r"))
    assert stranger.get(page(SCRIPTS, id)).status_code in (403, 404)
    # Nor of rows that a policy hides.
    limited = person("limited", (SCRIPTS, "ru"))
    RowPolicy.objects.create(role=Role.objects.get(name="limited"), repository=SCRIPTS, filter="Code eq 'OTHER'")
    cache_versions.expire()
    assert limited.get(page(SCRIPTS, id)).status_code == 404
    assert restore(limited, SCRIPTS, id, 1).status_code == 404
    assert Client().get(page(SCRIPTS, id)).status_code == 302


def test_hidden_collections_stay_hidden_and_as_they_are(api: Api) -> None:
    id = make_rule(api)
    (action,) = api.read(f"Systems_Bpm_UserBusinessRules({id})/Actions")["value"]
    patch(api, action["@odata.id"], {"Parameter1Value": "Confidential."})
    patch(api, f"Systems_Bpm_UserBusinessRules({id})", {"Notes": "seen"})
    clerk = person("clerk", (RULES, "ru"), *((part, "rcud") for part in PARTS if not part.endswith("Actions")))
    html = clerk.get(page(RULES, id, "?from=1&to=3")).content.decode()
    assert "+Notes: seen" in html
    for text in ("Confidential", "Actions:", "<td>Actions"):
        assert text not in html
    restore(clerk, RULES, id, 1)
    rule = UserBusinessRule.objects.get(pk=id)
    assert not rule.notes
    assert api.read(f"Systems_Bpm_UserBusinessRules({id})/Actions")["value"][0]["Parameter1Value"] == "Confidential."


@pytest.mark.parametrize("query", ["?to=9", "?from=9&to=1", "?to=x", "?from=-1", "?to=99999999999999", "?to=²"])
def test_bad_numbers_are_no_internal_error(api: Api, admin: Client, query: str) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    assert admin.get(page(SCRIPTS, id, query)).status_code in (200, 404)
    assert admin.post(page(SCRIPTS, id), {"version": query}).status_code == 404


def test_the_page_of_many_versions_needs_as_many_queries(
    api: Api, admin: Client, django_assert_max_num_queries: Any
) -> None:
    id = id_of({"@odata.id": make_script(api, "return 1;")})
    for number in range(20):
        patch(api, f"Systems_Core_Scripts({id})", {"ScriptText": f"return {number};"})
    admin.get(page(SCRIPTS, id))
    with django_assert_max_num_queries(12):
        admin.get(page(SCRIPTS, id))


def test_texts_are_written_for_people() -> None:
    document = {
        "Name": {"EN": "A"}, "IsActive": True, "ScriptText": "one\r\n\r\n two", "Number": 3,
        "Lines": [{"Id": "x", "No": 10, "Value": "a\nb"}, {"Id": "y"}], "Empty": [],
    }  # fmt: skip
    assert text_of(document, frozenset({"Hidden"})) == (
        "Name:\n  EN: A\nIsActive: true\nScriptText:\n  one\n\n   two\nNumber: 3\nLines:\n  - No: 10\n"
        "    Value:\n      a\n      b\n"
    )
