"""What a rule or webhook tells others is what its author may read: also of its own entity, of events, and of units.

Who: a person with the right to write rules and webhooks, who is no administrator. What: to be told of entities that a
row policy hides, when they are created, change or move out of sight; of what `$OldValue` refers to; of currencies and
units. What prevents it: rules.read_access checks the entity as it will be stored, and targets of events and formats.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from foundation import cache_versions
from identity.models import RolePermission, RowPolicy, User
from rules.actions import mail as mail_action
from tests.attacks.access import RULES, rule_body, save_rule
from tests.domain.security.conftest import MARK, Library, caller
from tests.domain.security.test_rule_reading import BOOKS, HOOKS, NOT_READABLE, action, author, hook_body, saved_hook
from tests.support.api import Api, error_of
from webhooks.models import WebHookDelivery

NOTIFY = action("NOTIFYUSER", "Constant:mallory", "Interpolate:{Code} {Title}")
LINES = "Crm.Sales.SalesOrderLines"

pytestmark = pytest.mark.usefixtures("library")


def hide_from_author(repository: str, filter: str) -> None:
    """A row policy of the author's role."""
    permission = RolePermission.objects.filter(role__role_users__user__login="mallory").first()
    assert permission is not None
    RowPolicy.objects.create(role=permission.role, repository=repository, filter=filter, on_read=True)
    cache_versions.bump("permissions")
    cache_versions.expire()


def told(administrator: Api) -> str:
    """Subjects of all notifications."""
    rows = administrator.read("Systems_Core_Notifications?$select=Subject")["value"]
    return " ".join(str(row["Subject"]) for row in rows)


@pytest.fixture
def blind_author(library: Library) -> Api:
    """May read books, except confidential ones, and write rules."""
    api = author("Library.*", "General.*")
    hide_from_author("Library.Books", f"not contains(Title/EN,'{MARK}')")
    return api


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "changed": ("A3", {"Pages": 7}),
    "moved out of sight": ("A1", {"Title": {"EN": f"{MARK} now"}}),
}


@pytest.mark.parametrize("code, values", CHANGES.values(), ids=CHANGES)
def test_nobody_is_told_of_an_entity_that_is_hidden_from_the_author(
    library: Library, administrator: Api, blind_author: Api, code: str, values: dict[str, Any]
) -> None:
    save_rule(blind_author, "M1", "Library.Books", "COMMIT", **NOTIFY)
    assert administrator.patch(f"{BOOKS}({library.books[code]})", values).status_code == 204
    assert MARK not in told(administrator)


def test_nobody_is_told_of_a_new_entity_that_is_hidden_from_the_author(administrator: Api, blind_author: Api) -> None:
    save_rule(blind_author, "M1", "Library.Books", "COMMIT", **NOTIFY)
    for code, title in (("N1", f"{MARK} new"), ("N2", "Open")):
        assert administrator.post(BOOKS, {"Code": code, "Title": {"EN": title}}).status_code == 201
    assert told(administrator) == "N2 Open"


def test_nor_of_a_deleted_one(library: Library, administrator: Api, blind_author: Api) -> None:
    save_rule(blind_author, "M1", "Library.Books", "COMMIT", **NOTIFY)
    for code in ("A4", "A3"):
        assert administrator.delete(f"{BOOKS}({library.books[code]})").status_code == 204
    assert told(administrator) == "A4 Delta"


def test_a_mail_is_not_sent_either(
    library: Library, administrator: Api, blind_author: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = action("SENDMAIL", "Constant:mallory@example.com", "Interpolate:{Code}", "Interpolate:{Title}")
    save_rule(blind_author, "M1", "Library.Books", "COMMIT", **mail)
    queued: list[Any] = []
    monkeypatch.setattr(mail_action, "enqueue_mail", lambda *message: queued.append(message))
    answer = administrator.patch(f"{BOOKS}({library.books['A3']})", {"Pages": 7}, Prefer="return=representation")
    assert "its author may not read Library.Books" in str(answer.headers) + answer.content.decode()
    assert queued == []


def test_a_webhook_does_not_send_a_new_entity_that_is_hidden_from_its_author(
    administrator: Api, blind_author: Api
) -> None:
    saved_hook(blind_author, Body='{{"is": "{Code} {Title}"}}')
    save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WEBHOOK", "M"))
    for code, title in (("N1", f"{MARK} new"), ("N2", "Open")):
        assert administrator.post(BOOKS, {"Code": code, "Title": {"EN": title}}).status_code == 201
    assert list(WebHookDelivery.objects.values_list("request_body", flat=True)) == ['{"is": "N2 Open"}']


def test_nor_what_a_reference_leads_to_that_is_created_with_it(
    library: Library, administrator: Api, blind_author: Api
) -> None:
    hide_from_author(NOT_READABLE, f"not contains(PartyName/EN,'{MARK}')")
    save_rule(
        blind_author, "M1", "Library.Books", "COMMIT",
        **action("NOTIFYUSER", "Constant:mallory", "Interpolate:{Publisher.PartyName}"),
    )  # fmt: skip
    for code, name in (("N1", f"{MARK} new"), ("N2", "Openly")):
        dataset = Dataset(library.world.context)
        publisher = dataset.create(NOT_READABLE, {"PartyName": {"EN": name}})
        dataset.create("Library.Books", {"Code": code, "Title": {"EN": "t"}, "Publisher": publisher.id})
        dataset.commit()
    assert told(administrator) == "Openly"


@pytest.mark.parametrize("name", ["$OldValue", "$NewValue"])
def test_what_an_event_refers_to_is_read_by_the_author(library: Library, administrator: Api, name: str) -> None:
    """As text it is the display text of the company."""
    values = action("NOTIFYUSER", "Constant:mallory", f"Interpolate:{{{name}}}")
    body = rule_body("M1", "Library.Books", "ATTRIBUTECHANGING:Publisher", **values)
    error = error_of(author("Library.*").post(RULES, body))
    assert f"{NOT_READABLE}, which its author may not read" in error["message"], error


@pytest.mark.parametrize("name, before, after", [("$OldValue", "A2", "open"), ("$NewValue", "A1", "hidden")])
def test_a_row_that_an_event_refers_to_is_one_that_the_author_may_see(
    library: Library, administrator: Api, name: str, before: str, after: str
) -> None:
    api = author("Library.*", "General.*")
    hide_from_author(NOT_READABLE, f"not contains(PartyName/EN,'{MARK}')")
    values = action("NOTIFYUSER", "Constant:mallory", f"Interpolate:is {{{name}}}")
    save_rule(api, "M1", "Library.Books", "ATTRIBUTECHANGING:Publisher", **values)
    change = {"Publisher@odata.bind": f"General_Contacts_Companies({library.companies[after]})"}
    assert administrator.patch(f"{BOOKS}({library.books[before]})", change).status_code == 204
    assert MARK not in told(administrator)


def test_the_unit_of_a_quantity_is_read_by_the_author(library: Library) -> None:
    measure = repositories[LINES].attributes["Quantity"].measure
    target = repositories[repositories[LINES].references[measure[0]].target].name
    values = action("NOTIFYUSER", "Constant:mallory", "Interpolate:{Quantity:Q}")
    error = error_of(author("Crm.*").post(RULES, rule_body("M1", LINES, "COMMIT", **values)))
    assert f"{target}, which its author may not read" in error["message"], error
    plain = action("NOTIFYUSER", "Constant:mallory", "Interpolate:{Quantity}")
    api = caller(User.objects.get(login="mallory"))
    assert api.post(RULES, rule_body("M2", LINES, "COMMIT", **plain)).status_code == 201


@pytest.mark.parametrize("kind", ["rule", "webhook"])
def test_the_address_of_the_caller_is_read_from_users(kind: str) -> None:
    api = author("Library.*")
    if kind == "rule":
        values = action("NOTIFYUSER", "Constant:mallory", "Interpolate:{$user.Login} {$User.EMAIL}")
        answer = api.post(RULES, rule_body("M1", "Library.Books", "COMMIT", **values))
    else:
        answer = api.post(HOOKS, hook_body(Body='{{"by": "{$user.Email}"}}'))
    assert "Systems.Security.Users, which" in error_of(answer)["message"]
