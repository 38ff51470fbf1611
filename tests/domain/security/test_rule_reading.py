"""A rule, or a webhook that it sends, shows its author nothing that the author may not read (spec 05, 5.2).

Who: a person with the right to write rules and webhooks, who is no administrator. What: to copy values from behind a
reference into their own entity by SETVALUE, messages and requests, or to learn them by conditions, when somebody with
more rights triggers the rule. What prevents it: rules.read_access checks the author's rights when the rule is saved
and when it runs, and those of the author of a webhook when that is saved and when it is sent.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.model.registry import repositories
from foundation import cache_versions, errors
from identity.context import system_context
from identity.models import RolePermission, RowPolicy, User
from tests.attacks.access import RULES, rule_body, save_rule
from tests.domain.security.conftest import MARK, Library, caller, give_role, person
from tests.support.api import Api, error_of
from webhooks.models import TemplateAuthor, WebHookDelivery
from webhooks.services import send_test

BOOKS = "Library_Books"
HOOKS = "Systems_Config_WebHooks"
NOT_READABLE = "General.Contacts.Companies"
SECRET = "Publisher.PartyName"

pytestmark = pytest.mark.usefixtures("library")


def author(*readable: str) -> Api:
    """Writes rules and webhooks, and reads these repositories."""
    user = person("mallory")
    rights = {"Systems.Bpm.*": "crud", "Systems.Config.*": "crud", "Systems.Core.*": "r"}
    give_role(user, {**rights, **dict.fromkeys(readable, "r")})
    return caller(user)


def condition(name: str) -> dict[str, Any]:
    return {"Conditions": [{"ConditionNo": 10, "AttributeName": name, "ComparisonType": "Like", "Value": "S%"}]}


def action(kind: str, *parameters: str) -> dict[str, Any]:
    """An action with parameters of the form "Type:value"."""
    given: dict[str, str] = {}
    for number, (type, _, value) in enumerate((parameter.partition(":") for parameter in parameters), 1):
        given |= {f"Parameter{number}Type": type, f"Parameter{number}Value": value}
    return {"Actions": [{"ActionNo": 10, "ActionType": kind, **given}]}


READING: dict[str, dict[str, Any]] = {
    "condition": {**condition(SECRET), **action("WARNING", "Constant:x")},
    "SETVALUE": action("SETVALUE", "Attribute:Title", f"Attribute:{SECRET}"),
    "SETVALUE of a template": action("SETVALUE", "Attribute:Title", f"Interpolate:{{{SECRET}}}"),
    "message": action("WARNING", f"Interpolate:{{{SECRET}}}"),
    "text of a reference": action("WARNING", "Interpolate:{Publisher}"),
    "notification": action("NOTIFYUSER", "Constant:mallory", f"Interpolate:{{{SECRET}}}"),
    "mail": action("SENDMAIL", "Constant:mallory@example.com", "Constant:s", f"Interpolate:{{{SECRET}}}"),
}


@pytest.mark.parametrize("values", READING.values(), ids=READING)
def test_what_the_author_may_not_read_is_refused_when_the_rule_is_saved(values: dict[str, Any]) -> None:
    body = {**rule_body("M1", "Library.Books", "COMMIT"), **values}
    answer = author("Library.*").post(RULES, body)
    error = error_of(answer)
    assert error["type"] == "RuleInvalid", error
    assert f"{NOT_READABLE}, which its author may not read" in error["message"]


def test_nor_may_a_rule_watch_what_its_author_may_not_read() -> None:
    answer = author().post(RULES, rule_body("M1", "Library.Books", "COMMIT", ("NOTIFYUSER", "mallory", "a book")))
    assert "Library.Books, which its author may not read" in error_of(answer)["message"]


@pytest.mark.parametrize("values", READING.values(), ids=READING)
def test_rights_that_were_taken_away_since_stop_the_rule(
    library: Library, administrator: Api, values: dict[str, Any]
) -> None:
    api = author("Library.*", "General.*")
    save_rule(api, "M1", "Library.Books", "COMMIT", **values)
    RolePermission.objects.filter(repository="General.*", role__role_users__user__login="mallory").delete()
    cache_versions.bump("permissions")
    cache_versions.expire()
    answer = administrator.patch(f"{BOOKS}({library.books['A2']})", {"Pages": 7}, Prefer="return=representation")
    assert MARK not in answer.content.decode()
    assert "may not read" in str(answer.headers) + answer.content.decode()
    assert all(MARK not in str(row) for row in api.read("Systems_Core_Notifications")["value"])


def test_a_rule_that_may_refuse_fails_closed(library: Library, administrator: Api) -> None:
    api = author("Library.*", "General.*")
    save_rule(api, "M1", "Library.Books", "COMMIT", ("FAIL", "no"), **condition(SECRET))
    RolePermission.objects.filter(repository="General.*", role__role_users__user__login="mallory").delete()
    cache_versions.bump("permissions")
    cache_versions.expire()
    answer = administrator.patch(f"{BOOKS}({library.books['A2']})", {"Pages": 7})
    assert error_of(answer)["type"] == "RuleBroken"


def test_a_row_that_a_policy_hides_from_the_author_is_not_read(library: Library, administrator: Api) -> None:
    """A2 is published by a company that the policy hides."""
    api = author("Library.*", "General.*")
    save_rule(api, "M1", "Library.Books", "COMMIT", **READING["SETVALUE"])
    role = RolePermission.objects.filter(role__role_users__user__login="mallory").first()
    assert role is not None
    RowPolicy.objects.create(
        role=role.role, repository=NOT_READABLE, filter=f"not contains(PartyName/EN,'{MARK}')", on_read=True
    )
    cache_versions.bump("permissions")
    cache_versions.expire()
    administrator.patch(f"{BOOKS}({library.books['A2']})", {"Pages": 7})
    assert MARK not in str(administrator.read(f"{BOOKS}({library.books['A2']})?$select=Title"))


def by_key(library: Library) -> dict[str, Any]:
    """A message with an entity that the template names by its key."""
    entity = f"General_Contacts_Companies({library.companies['hidden']})"
    return action("WARNING", f"Interpolate:<{{{entity}.PartyName:EN}}>")


def test_an_entity_by_key_that_the_author_may_not_read_is_refused(library: Library) -> None:
    body = {**rule_body("M1", "Library.Books", "COMMIT"), **by_key(library)}
    error = error_of(author("Library.*").post(RULES, body))
    assert f"{NOT_READABLE}, which its author may not read" in error["message"]


def test_an_entity_by_key_is_read_with_the_author_s_rights(library: Library, administrator: Api) -> None:
    api = author("Library.*", "General.*")
    save_rule(api, "M1", "Library.Books", "COMMIT", **by_key(library))
    path = f"{BOOKS}({library.books['A2']})"
    assert f"<{MARK} Press>" in administrator.patch(path, {"Pages": 7})["X-Warnings"]
    RolePermission.objects.filter(repository="General.*", role__role_users__user__login="mallory").delete()
    cache_versions.bump("permissions")
    cache_versions.expire()
    answer = administrator.patch(path, {"Pages": 8})
    assert MARK not in str(answer.headers)
    assert "may not read" in answer["X-Warnings"]


def test_an_entity_by_key_that_the_caller_may_not_read_is_empty(library: Library, administrator: Api) -> None:
    save_rule(administrator, "A1", "Library.Books", "COMMIT", **by_key(library))
    user = person("carol")
    give_role(user, {"Library.*": "crud"})
    answer = caller(user).patch(f"{BOOKS}({library.books['A2']})", {"Pages": 7})
    assert answer.status_code == 204, answer.content
    assert answer["X-Warnings"] == "<>"


def test_a_webhook_sends_nothing_that_whoever_saves_it_may_not_read() -> None:
    body = {"Code": "M", "RepositoryName": "Library.Books", "URL": "https://example.com/", "Name": {"EN": "m"},
            "Body": f'{{"by": "{{{SECRET}}}"}}', "IsActive": True}  # fmt: skip
    error = error_of(author("Library.*").post(HOOKS, body))
    assert f"{NOT_READABLE}, which you may not read" in error["message"], error


def test_an_administrators_rule_reads_everything(library: Library, administrator: Api) -> None:
    save_rule(administrator, "A1", "Library.Books", "COMMIT", **READING["message"])
    answer = administrator.patch(f"{BOOKS}({library.books['A2']})", {"Pages": 7})
    assert answer.status_code == 204


def hook_body(**values: Any) -> dict[str, Any]:
    return {"Code": "M", "RepositoryName": "Library.Books", "URL": "https://example.com/", "Name": {"EN": "m"},
            "Body": f'{{"by": "{{{SECRET}}}"}}', "IsActive": True, **values}  # fmt: skip


def saved_hook(api: Api, **values: Any) -> str:
    """Save a webhook; its guid."""
    answer = api.post(HOOKS, hook_body(**values))
    assert answer.status_code == 201, answer.content
    cache_versions.expire()
    return str(answer.json()["@odata.id"].partition("(")[2][:-1])


def sent(library: Library, administrator: Api) -> str:
    """What the webhook sends of the books that an administrator changes, with the warnings; empty for nothing."""
    for code in ("A1", "A2"):
        answer = administrator.patch(f"{BOOKS}({library.books[code]})", {"Pages": 7}, Prefer="return=representation")
        assert answer.status_code == 200, answer.content
    return " ".join(WebHookDelivery.objects.values_list("request_body", flat=True))


def take_away(repository: str) -> None:
    RolePermission.objects.filter(repository=repository, role__role_users__user__login="mallory").delete()
    cache_versions.bump("permissions")
    cache_versions.expire()


def test_an_administrators_rule_sends_what_the_author_of_its_webhook_may_read(
    library: Library, administrator: Api
) -> None:
    saved_hook(author("Library.*", "General.*"))
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    assert MARK in sent(library, administrator)


def test_a_webhook_stops_when_its_author_loses_the_rights(library: Library, administrator: Api) -> None:
    saved_hook(author("Library.*", "General.*"))
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    take_away("General.*")
    assert sent(library, administrator) == ""


def test_a_webhook_sends_no_row_that_a_policy_hides_from_its_author(library: Library, administrator: Api) -> None:
    """Neither behind a reference nor the entity itself."""
    saved_hook(author("Library.*", "General.*"), Body='{{"is": "{Code}", "by": "{Publisher.PartyName}"}}')
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    role = RolePermission.objects.filter(role__role_users__user__login="mallory")[0].role
    RowPolicy.objects.create(role=role, repository=NOT_READABLE, filter=f"not contains(PartyName/EN,'{MARK}')")
    cache_versions.bump("permissions")
    cache_versions.expire()
    assert "A1" in sent(library, administrator)
    assert MARK not in sent(library, administrator)
    RowPolicy.objects.create(role=role, repository="Library.Books", filter="Code ne 'A1'")
    WebHookDelivery.objects.all().delete()
    cache_versions.bump("permissions")
    cache_versions.expire()
    assert sent(library, administrator) == ""


def test_a_webhook_of_a_new_entity_is_checked_when_it_is_rendered(library: Library, administrator: Api) -> None:
    """At the event a new book has no publisher yet."""
    saved_hook(author("Library.*", "General.*"), Body='{{"is": "{Code}", "by": "{Publisher.PartyName}"}}')
    save_rule(administrator, "A1", "Library.Books", "CREATENEW", ("WEBHOOK", "M"))
    role = RolePermission.objects.filter(role__role_users__user__login="mallory")[0].role
    RowPolicy.objects.create(role=role, repository=NOT_READABLE, filter=f"not contains(PartyName/EN,'{MARK}')")
    cache_versions.bump("permissions")
    cache_versions.expire()
    for code in ("A1", "A2"):
        publisher = administrator.read(f"{BOOKS}({library.books[code]})?$expand=Publisher")["Publisher"]
        reference = publisher and {"Publisher@odata.bind": publisher["@odata.id"]}
        administrator.create(BOOKS, {"Code": f"N{code}", "Title": {"EN": "new"}, **(reference or {})})
    bodies = list(WebHookDelivery.objects.values_list("request_body", flat=True))
    assert len(bodies) == 1, bodies
    assert "NA" in bodies[0]
    assert MARK not in bodies[0]


def test_a_webhook_of_a_new_entity_asks_the_policies_of_its_author(library: Library, administrator: Api) -> None:
    """After the commit has written the entity, which is not written once more to be asked for."""
    saved_hook(author("Library.*", "General.*"), Body='{{"is": "{Code}"}}')
    save_rule(administrator, "A1", "Library.Books", "ATTRIBUTECHANGED:Pages", ("WEBHOOK", "M"))
    role = RolePermission.objects.filter(role__role_users__user__login="mallory")[0].role
    RowPolicy.objects.create(role=role, repository="Library.Books", filter="Code ne 'HIDDEN'")
    cache_versions.bump("permissions")
    cache_versions.expire()
    for code in ("SHOWN", "HIDDEN"):
        administrator.create(BOOKS, {"Code": code, "Title": {"EN": "new"}, "Pages": 7})
    bodies = list(WebHookDelivery.objects.values_list("request_body", flat=True))
    assert bodies == ['{"is": "SHOWN"}']


def test_who_edits_an_administrators_webhook_becomes_its_author(library: Library, administrator: Api) -> None:
    key = saved_hook(administrator)
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    error = error_of(author("Library.*").patch(f"{HOOKS}({key})", {"URL": "https://mallory.example/"}))
    assert f"{NOT_READABLE}, which you may not read" in error["message"]
    mallory = User.objects.get(login="mallory")
    give_role(mallory, {"General.*": "r"})
    cache_versions.bump("permissions")
    cache_versions.expire()
    assert caller(mallory).patch(f"{HOOKS}({key})", {"URL": "https://mallory.example/"}).status_code == 204
    cache_versions.expire()
    take_away("General.*")
    assert sent(library, administrator) == ""


def test_a_test_sends_no_more_than_the_author_may_read(library: Library, administrator: Api) -> None:
    saved_hook(author("Library.*", "General.*"))
    take_away("General.*")
    with pytest.raises(errors.Refused, match="may not read"):
        send_test(context=system_context(), web_hook="M", entity=library.books["A2"])


def test_a_webhook_whose_author_is_deleted_sends_nothing(library: Library, administrator: Api) -> None:
    saved_hook(author("Library.*", "General.*"))
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    TemplateAuthor.objects.update(author="00000000-0000-4000-8000-000000000001")
    cache_versions.bump("webhooks")
    cache_versions.expire()
    assert sent(library, administrator) == ""


@pytest.mark.parametrize("text", ["{DisplayText}", "{Book}", "{Book.DisplayText}"])
def test_a_display_text_is_checked_for_what_it_reads(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entity's own, and those behind references."""
    for name in ("Library.Books", "Library.Chapters"):
        monkeypatch.setitem(vars(repositories[name]), "display_format", f"{{{SECRET}}}")
    monkeypatch.setitem(vars(repositories["Library.Chapters"]), "display_format", "{Book}")
    body = rule_body("M1", "Library.Chapters", "COMMIT", **action("WARNING", f"Interpolate:{text}"))
    api = author("Library.*")
    error = error_of(api.post(RULES, body))
    assert f"{NOT_READABLE}, which its author may not read" in error["message"], error
    bodied = hook_body(RepositoryName="Library.Chapters", Body=f'{{{{"x": "{text}"}}}}')
    error = error_of(api.post(HOOKS, bodied))
    assert f"{NOT_READABLE}, which you may not read" in error["message"], error
