"""Permissions by repository and operation, and row policies on writes (spec 01, 1.7), through HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from foundation import cache_versions
from tests.domain.security.conftest import BOOKS as BOOKS_NAME
from tests.domain.security.conftest import Library, caller, give_role, person
from tests.support.api import Api, error_of

BOOKS = "Library_Books"
CHAPTERS = "Library_Chapters"
NEW = {"Code": "N1", "Title": {"EN": "New"}, "Pages": 10}


def stored(library: Library, code: str) -> dict[str, Any] | None:
    """What the database holds of a book."""
    record = Dataset(library.world.context).find_one(BOOKS_NAME, code=code)
    return None if record is None else dict(record.values)


# --- permissions by repository and operation ----------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["c", "r", "u", "d"])
@pytest.mark.parametrize("granted", ["", "r", "cr", "ru", "rd", "crud"])
def test_roles_grant_operation_by_operation(library: Library, granted: str, operation: str) -> None:
    somebody = person("bob")
    give_role(somebody, {BOOKS_NAME: granted, "Library.Chapters": "r"} if granted else {})
    api = caller(somebody)
    address = f"{BOOKS}({library.books['A4']})"
    asked = {
        "c": lambda: api.post(BOOKS, NEW),
        "r": lambda: api.get(address),
        "u": lambda: api.patch(address, {"Pages": 11}),
        "d": lambda: api.delete(address),
    }
    answer = asked[operation]()
    if operation in granted:
        assert answer.status_code in {200, 201, 204}, answer.content
    else:
        # What one may read and not change answers 403, what one may not read 404 or 403; in no case is it done.
        assert answer.status_code in ({403} if granted else {403, 404}), answer.content
        assert stored(library, "N1") is None
        assert (stored(library, "A4") or {})["Pages"] is None


# --- row policies -------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(library: Library) -> Api:
    """Sees all books, and may write those of at most 200 pages."""
    somebody = person("bob")
    give_role(somebody, {"Library.*": "crud"}, {BOOKS_NAME: "Pages le 200"}, "cud")
    return caller(somebody)


def refused(answer: Any, status: int = 403) -> None:
    """The answer is a refusal in the API's form."""
    assert answer.status_code == status, answer.content
    assert error_of(answer)["message"]


def test_creating_outside_the_policy(library: Library, writer: Api) -> None:
    assert writer.post(BOOKS, NEW).status_code == 201
    refused(writer.post(BOOKS, {**NEW, "Code": "N2", "Pages": 201}))
    assert stored(library, "N2") is None


def test_updating_what_lies_outside(library: Library, writer: Api) -> None:
    for body in ({"Pages": 100}, {"Code": "Z"}):
        refused(writer.patch(f"{BOOKS}({library.books['A3']})", body))
    refused(writer.request("PUT", f"{BOOKS}({library.books['A3']})", {**NEW, "Code": "A3"}))
    assert (stored(library, "A3") or {})["Pages"] == 300


def test_updating_out_of_the_policy(library: Library, writer: Api) -> None:
    assert writer.patch(f"{BOOKS}({library.books['A1']})", {"Pages": 200}).status_code == 204
    refused(writer.patch(f"{BOOKS}({library.books['A1']})", {"Pages": 201}))
    assert (stored(library, "A1") or {})["Pages"] == 200


def test_deleting_what_lies_outside(library: Library, writer: Api) -> None:
    refused(writer.delete(f"{BOOKS}({library.books['A3']})"))
    assert stored(library, "A3") is not None
    assert writer.delete(f"{BOOKS}({library.books['A1']})").status_code == 204


def test_a_batch_can_do_no_more(library: Library, writer: Api) -> None:
    requests: list[dict[str, Any]] = [
        {"id": "1", "method": "PATCH", "url": f"{BOOKS}({library.books['A1']})", "body": {"Pages": 999}},
        {"id": "2", "method": "DELETE", "url": f"{BOOKS}({library.books['A3']})"},
        {"id": "3", "method": "POST", "url": BOOKS, "body": {**NEW, "Pages": 999}},
    ]
    for request in requests:
        request["headers"] = {"Content-Type": "application/json"}
    answer = writer.post("$batch", {"requests": requests}, Prefer="continue-on-error")
    assert [part["status"] for part in answer.json()["responses"]] == [403, 403, 403]
    grouped = [{**request, "atomicityGroup": "g"} for request in requests]
    answer = writer.post("$batch", {"requests": grouped})
    assert 403 in [part["status"] for part in answer.json()["responses"]]
    assert (stored(library, "A1") or {})["Pages"] == 100
    assert stored(library, "A3") is not None


def test_a_domain_transaction_can_do_no_more(library: Library, writer: Api) -> None:
    inside = writer.begin()
    inside.patch(f"{BOOKS}({library.books['A1']})", {"Pages": 999})
    refused(inside.end())
    assert (stored(library, "A1") or {})["Pages"] == 100


@pytest.mark.parametrize("operation", ["create", "update", "delete"])
def test_a_right_that_is_revoked_before_the_commit_is_missing_there(library: Library, operation: str) -> None:
    user = person("carla")
    role = give_role(user, {"Library.*": "crud", "General.*": "r"})
    inside = caller(user).begin()
    book = f"{BOOKS}({library.books['A1']})"
    answers = {
        "update": lambda: inside.patch(book, {"Pages": 7}),
        "create": lambda: inside.post(BOOKS, {**NEW, "Pages": 7}),
        "delete": lambda: inside.delete(f"{BOOKS}({library.books['A3']})"),
    }
    assert answers[operation]().status_code < 300
    permission = role.permissions.get(repository="Library.*")
    setattr(permission, f"can_{operation}", False)
    permission.save()
    cache_versions.expire()
    refused(inside.end())
    assert (stored(library, "A1") or {})["Pages"] == 100
    assert stored(library, "N1") is None
    assert stored(library, "A3") is not None
    setattr(permission, f"can_{operation}", True)
    permission.save()
    cache_versions.expire()
    assert inside.end().status_code < 300


def test_an_import_can_do_no_more(library: Library, writer: Api, world: Any) -> None:
    answer = writer.post("Import", [{"@odata.type": "Library_Books", **NEW, "Pages": 999}])
    assert stored(library, "N1") is None, answer.content


def test_scripts_can_do_no_more(library: Library, writer: Api) -> None:
    source = "Domain.Library.BooksRepository.createNew({Code: 'N1', Title: 'x', Pages: 999}); Transaction.commit();"
    assert writer.post("ExecuteScript", source, Content_Type="text/plain").status_code in {403, 500}
    assert stored(library, "N1") is None


# --- what one may not see ---------------------------------------------------------------------------------------


def test_what_one_may_not_see_cannot_be_written_and_answers_as_if_it_did_not_exist(
    library: Library, restricted: Api
) -> None:
    missing = "00000000-0000-4000-8000-000000000001"
    for method, body in (("DELETE", None), ("GET", None)):
        answers = [restricted.request(method, f"{BOOKS}({guid})", body) for guid in (library.books["A3"], missing)]
        assert [answer.status_code for answer in answers] == [404, 404], method
        texts = [error_of(answer)["messageFormat"] for answer in answers]
        assert texts[0] == texts[1]
    # A PATCH to a key that does not exist would create the entity (OData Protocol 4.01, 11.4.4).
    assert restricted.patch(f"{BOOKS}({library.books['A3']})", {"Pages": 1}).status_code == 404
    assert (stored(library, "A3") or {})["Pages"] == 300


def test_a_hidden_row_cannot_be_referred_to(library: Library, restricted: Api) -> None:
    missing = "00000000-0000-4000-8000-000000000001"
    answers = []
    for guid in (library.companies["hidden"], missing):
        body = {"Publisher@odata.bind": f"General_Contacts_Companies({guid})"}
        answers.append(restricted.patch(f"{BOOKS}({library.books['A1']})", body))
    assert answers[0].status_code >= 400, "a hidden row was bound"
    assert answers[0].status_code == answers[1].status_code
    assert error_of(answers[0])["messageFormat"] == error_of(answers[1])["messageFormat"]


def test_children_of_a_hidden_row_cannot_be_made(library: Library, restricted: Api) -> None:
    for path, body in (
        (f"{BOOKS}({library.books['A3']})/Chapters", {"Heading": "x"}),
        (CHAPTERS, {"Heading": "x", "Book@odata.bind": f"{BOOKS}({library.books['A3']})"}),
    ):
        answer = restricted.post(path, body)
        assert answer.status_code >= 400, answer.content
