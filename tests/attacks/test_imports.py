"""An import does no more than its caller may, whatever commands its objects have and however they are nested.

Who: a user with every right that roles can give, or with row policies, who is no administrator. What: to change users,
roles and applications as nested objects that are merged, found or created on the way; to take an entity that a policy
hides, by its key, code or external id. What prevents it: each object is applied through a dataset with the caller's
rights (domain.odata.write), as in every other request.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.odata.invoke import import_operation, importing
from domain.odata.write.search_criteria import FIND_BY
from tests.attacks.access import attacker, digest
from tests.domain.conftest import api, world
from tests.domain.security.conftest import MARK, READ_POLICIES, Library, caller, give_role, library, person
from tests.sample_library.models import Book, Chapter
from tests.support.api import Api, error_of

__all__ = ["api", "library", "world"]

COMMANDS = ("create", "update", "delete", "merge", "findOrCreate")
PRIVILEGES: dict[str, dict[str, Any]] = {
    "administrator": {"Login": "mallory", "IsAdmin": True},
    "address": {"Login": "alice", "Email": "mallory@example.com"},
    "disabled": {"Login": "alice", "Active": False},
    "role": {"Login": "mallory", "RoleUsers": [{"Role": {"@erpnet.action": "merge", "Name": "root"}}]},
    "new": {"Login": "eve", "Name": {"EN": "Eve"}},
}


def imported(api: Api, *objects: Any, **options: Any) -> list[dict[str, Any]]:
    answer = api.post("Import", {"objects": list(objects), **options})
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["objects"]
    return found


@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("values", PRIVILEGES.values(), ids=PRIVILEGES)
def test_no_nested_object_changes_who_may_do_what(
    library: Library, values: dict[str, Any], command: str, mode: str
) -> None:
    person("alice", is_admin=True)
    mallory = attacker()
    user = {"@erpnet.action": command, "@erpnet.findBy": {"Code": values.get("Login", "admin")}, **values}
    before = digest()
    answers = imported(
        mallory,
        {"@odata.type": "Erp.Systems_Core_Notification", "Subject": "x", "NotificationClass": "c", "User": user},
        {"@odata.type": "Erp.Systems_Security_User", **user},
        transaction=mode,
    )
    if answers[-1]["@erpnet.result"] == "success":
        assert answers[-1]["@erpnet.state"] == "Unchanged"
    assert digest() == before


@pytest.mark.parametrize("command", ["update", "delete", "merge", "find", "findOrCreate", "findSingle"])
@pytest.mark.parametrize("criterion", FIND_BY)
def test_a_hidden_entity_is_neither_found_nor_changed(library: Library, criterion: str, command: str) -> None:
    Book._default_manager.filter(code="A3").update(external_id="X1", external_system="erp")
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "crud", "General.*": "r"}, READ_POLICIES)
    before = Book._default_manager.filter(code="A3").values().get()
    given: dict[str, dict[str, Any]] = {
        "ExternalId": {"ExternalId": "X1", "ExternalSystem": "erp"},
        "Id": {"Id": library.books["A3"]},
        "Code": {"Code": "A3"},
        "Name": {"Name": f"{MARK} plan"},
        "DisplayText": {"DisplayText": MARK},
    }
    body: dict[str, Any] = {
        "@odata.type": "Erp.Library_Book",
        "@erpnet.action": command,
        "@erpnet.findBy": given[criterion],
        "Pages": 7,
    }
    (answer,) = imported(caller(mallory), body)
    assert answer["@odata.id"] is None or library.books["A3"] not in answer["@odata.id"]
    assert Book._default_manager.filter(code="A3").values().get() == before
    chapter = {"@odata.type": "Erp.Library_Chapter", "Heading": "mine", "@erpnet.action": "create"}
    imported(
        caller(mallory),
        {**chapter, "Book": {"@erpnet.action": "find", "@erpnet.findBy": given[criterion]}},
    )
    assert not Chapter._default_manager.filter(book=library.books["A3"], heading="mine").exists()


@pytest.mark.parametrize("criterion", ["ExternalId", "Id", "Code"])
def test_a_visible_one_is(library: Library, criterion: str) -> None:
    Book._default_manager.filter(code="A1").update(external_id="X1", external_system="erp")
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "crud", "General.*": "r"}, READ_POLICIES)
    given: dict[str, dict[str, Any]] = {
        "ExternalId": {"ExternalId": "X1", "ExternalSystem": "erp"},
        "Id": {"Id": library.books["A1"]},
        "Code": {"Code": "A1"},
    }
    body = {
        "@odata.type": "Erp.Library_Book",
        "@erpnet.action": "update",
        "@erpnet.findBy": given[criterion],
        "Pages": 7,
    }
    (answer,) = imported(caller(mallory), body)
    assert answer["@odata.id"] == f"Library_Books({library.books['A1']})"
    assert Book._default_manager.get(code="A1").pages == 7


@pytest.mark.parametrize("transaction", ["per-object", "all-objects"])
def test_an_import_of_too_many_objects_is_refused_before_anything_is_changed(
    api: Api, monkeypatch: pytest.MonkeyPatch, transaction: str
) -> None:
    monkeypatch.setattr(import_operation, "MOST_OBJECTS", 2)
    sign = {"@odata.type": "Erp.General_Currencies_Currency", "Name": "Much"}
    objects: list[Any] = [{**sign, "CurrencySign": "MUA"}, {**sign, "CurrencySign": "MUB"}]
    refused = api.post("Import", {"objects": [*objects, 1], "transaction": transaction})
    assert (refused.status_code, error_of(refused)["type"]) == (413, "TooManyObjects")
    assert api.get("General_Currencies_Currencies/$count?$filter=Name eq 'Much'").content.endswith(b"0")
    assert all(each["@erpnet.result"] == "success" for each in imported(api, *objects, transaction=transaction))


def test_results_beyond_the_limit_have_no_details(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_operation, "MOST_DETAILED", 1000)
    first, *others = imported(api, *[1] * 100)
    assert first["@erpnet.error"]["type"] == "InvalidBody"
    last = others[-1]
    assert (last["@erpnet.result"], last["@odata.id"]) == ("fail", None)
    assert "Import this object again" in last["@erpnet.message"]
    assert "@erpnet.error" not in last


def test_few_large_objects_are_held_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    write = importing._Chunk.write

    def writes(chunk: importing._Chunk, retry: Any) -> list[dict[str, Any]]:
        held.append(len(chunk.bodies))
        return write(chunk, retry)

    monkeypatch.setattr(importing._Chunk, "write", writes)
    monkeypatch.setattr(importing, "CHUNK_SIZE", 100_000)
    notes = {"@odata.type": "Erp.General_Currencies_Currency", "Name": "x" * 40_000}
    imported(api, *[{**notes, "CurrencySign": f"MU{number}"} for number in range(5)], transaction="all-objects")
    assert held[0] == 3
