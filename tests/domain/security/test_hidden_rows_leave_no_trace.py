"""Attempts to learn one bit about a row that the caller may not see (spec 01, 1.7), by other ways than reading it.

Each compares what a restricted person is answered about a hidden row with what they are answered where there is none.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from domain.dataset.dataset import Dataset
from foundation import cache_versions
from identity.models import RowPolicy
from tests.domain.security.conftest import BOOKS as BOOKS_NAME
from tests.domain.security.conftest import CHAPTERS as CHAPTERS_NAME
from tests.domain.security.conftest import COMPANIES, MARK, Library, caller, give_role, person
from tests.domain.security.test_read_paths import text_of
from tests.support.api import Answer, Api, error_of, id_of

BOOKS = "Library_Books"
CHAPTERS = "Library_Chapters"
PUBLISHERS = "General_Contacts_Companies"
NOBODY = "00000000-0000-4000-8000-000000000001"


def stored(library: Library, repository: str, id: str) -> dict[str, Any]:
    """What the database holds of an entity."""
    record = Dataset(library.world.context).load(repository, id)
    assert record is not None
    return record.values


def told(answer: Answer, *guids: str) -> tuple[int, str]:
    """Status and message of an answer, without the guids that the question named."""
    text = (
        json.dumps({**error_of(answer), "info": None})
        if answer.status_code >= 400 and answer.content
        else text_of(answer)
    )
    for guid in guids:
        text = text.replace(guid, "…")
    return answer.status_code, text


# --- questions about a hidden row and about none --------------------------------------------------------------------

#: (method, path, body); {id} is a hidden row's guid or one that nothing has, {A1} a visible book.
SAME_ANSWERS: dict[str, tuple[str, str, str, Any]] = {
    "get": ("book", "GET", BOOKS + "({id})", None),
    "head": ("book", "HEAD", BOOKS + "({id})", None),
    "property": ("book", "GET", BOOKS + "({id})/Title", None),
    "raw value": ("book", "GET", BOOKS + "({id})/Code/$value", None),
    "navigation": ("book", "GET", BOOKS + "({id})/Publisher", None),
    "link": ("book", "GET", BOOKS + "({id})/Publisher/$ref", None),
    "children": ("book", "GET", BOOKS + "({id})/Chapters", None),
    "number of children": ("book", "GET", BOOKS + "({id})/Chapters/$count", None),
    "a child of a visible owner": ("chapter", "GET", BOOKS + "({A2})/Chapters({id})", None),
    "bound function": (
        "book", "GET", BOOKS + "({id})/Default.GetAllowedCustomPropertyValues(customPropertyCode='x')", None,
    ),
    "options": ("book", "OPTIONS", BOOKS + "({id})/Publisher/PartyName", None),
    "query": ("book", "GET", BOOKS + "?$filter=Id eq {id}", None),
    "reference in a filter": ("company", "GET", BOOKS + "?$filter=Publisher eq '" + PUBLISHERS + "({id})'", None),
    "key of a reference": ("company", "GET", BOOKS + "?$filter=Publisher/Id eq {id}", None),
    "reference in a list": ("company", "GET", BOOKS + "?$filter=Publisher in ('" + PUBLISHERS + "({id})')", None),
    "another entity in a filter": ("book", "GET", BOOKS + "?$filter=$root/" + BOOKS + "({id})/Code eq 'A3'", None),
    "another entity in a computation": (
        "company", "GET", BOOKS + "?$select=Code,X&$compute=$root/" + PUBLISHERS + "({id})/PartyName/EN as X", None,
    ),
    "a list through a collection": ("chapter", "GET", BOOKS + "?$filter={id} in Chapters/Id", None),
    "type of a reference": ("company", "GET", BOOKS + "?$filter=isof(Publisher,Erp.General_Contacts_Company)", None),
    "delete": ("book", "DELETE", BOOKS + "({id})", None),
    "copy": ("book", "POST", BOOKS + "({id})/Default.CreateCopy", {}),
    "bind": ("company", "PATCH", BOOKS + "({A1})", {"Publisher@odata.bind": PUBLISHERS + "({id})"}),
    "bind the hidden one that is there": (
        "company", "PATCH", BOOKS + "({A2})", {"Publisher@odata.bind": PUBLISHERS + "({id})"},
    ),
    "bind by object": ("company", "PATCH", BOOKS + "({A1})", {"Publisher": {"@odata.id": PUBLISHERS + "({id})"}}),
    "bind by link": (
        "company", "PUT", BOOKS + "({A1})/Publisher/$ref", {"@odata.id": PUBLISHERS + "({id})"},
    ),
    "bind a child": ("chapter", "PATCH", BOOKS + "({A1})", {"Chapters@odata.bind": [CHAPTERS + "({id})"]}),
    "find a child": (
        "chapter", "PATCH", BOOKS + "({A2})", {"Chapters": [{"@erpnet.action": "update", "Id": "{id}"}]},
    ),
    "remove a child": ("chapter", "PATCH", BOOKS + "({A2})", {"Chapters": [{"@removed": {}, "Id": "{id}"}]}),
    "new child": ("book", "POST", CHAPTERS, {"Heading": "x", "Book@odata.bind": BOOKS + "({id})"}),
    "new child below": ("book", "POST", BOOKS + "({id})/Chapters", {"Heading": "x"}),
    "find by key": ("company", "PATCH", BOOKS + "({A1})", {"Publisher": {"@erpnet.action": "find", "Id": "{id}"}}),
    "find or null": (
        "company", "PATCH", BOOKS + "({A1})", {"Publisher": {"@erpnet.action": "findOrNull", "Id": "{id}"}},
    ),
    "old version": ("book", "PATCH", BOOKS + "({id})", {"ObjectVersion": 99, "@odata.etag": "x"}),
}  # fmt: skip


def test_a_hidden_row_is_answered_like_none(library: Library, restricted: Api, subtests: pytest.Subtests) -> None:
    hidden = {"book": library.books["A3"], "company": library.companies["hidden"], "chapter": library.chapters["A2"][1]}
    for name, (kind, method, path, body) in SAME_ANSWERS.items():
        with subtests.test(name):
            answers = [answered(library, restricted, method, path, body, guid) for guid in (hidden[kind], NOBODY)]
            assert answers[0] == answers[1]
    assert stored(library, BOOKS_NAME, library.books["A3"])["Pages"] == 300


def answered(library: Library, api: Api, method: str, path: str, body: Any, guid: str) -> tuple[int, str]:
    """What is told when {id} is this guid."""
    sent = json.dumps(body)
    for word, value in {**library.books, "id": guid}.items():
        path, sent = path.replace(f"{{{word}}}", value), sent.replace(f"{{{word}}}", value)
    where, _, asked = path.partition("?")
    address = f"{where}?{quote(asked, safe='=&$,()/;')}" if asked else where
    # If-Match: a PATCH of what does not exist would make it.
    match = {"If_Match": "*"} if method == "PATCH" and guid in where else {}
    return told(api.request(method, address, None if body is None else json.loads(sent), **match), guid)


#: (method, what lies behind the reference, body)
BEHIND_NOTHING: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/PartyName", None),
    ("GET", "/PartyName/EN", None),
    ("GET", "/PartyCode/$value", None),
    ("GET", "/ContactMechanisms", None),
    ("GET", "/ContactMechanisms/$count", None),
    ("GET", "/$ref", None),
    ("PATCH", "", {"PartyCode": "x"}),
    ("PATCH", "/PartyCode", {"value": "x"}),
    ("DELETE", "", None),
    ("DELETE", "/PartyCode", None),
]


def test_behind_a_hidden_reference_is_what_is_behind_none(
    library: Library, restricted: Api, subtests: pytest.Subtests
) -> None:
    """A2 is published by whom the caller may not see, A4 by nobody."""
    for method, behind, body in BEHIND_NOTHING:
        with subtests.test(method, behind=behind):
            answers = [
                told(restricted.request(method, f"{BOOKS}({library.books[code]})/Publisher{behind}", body))
                for code in ("A2", "A4")
            ]
            assert answers[0][0] in (204, 404), answers
            assert answers[0][0] == answers[1][0]
            assert MARK not in answers[0][1]


def test_conditional_reading_tells_no_version(library: Library, restricted: Api) -> None:
    for etag in ('W/"1"', "*"):
        answer = restricted.get(f"{BOOKS}({library.books['A3']})", If_None_Match=etag)
        assert answer.status_code == 404
        answer = restricted.request("DELETE", f"{BOOKS}({library.books['A3']})", If_Match=etag)
        assert answer.status_code == 404


# --- what other entities would tell --------------------------------------------------------------------------------


def test_a_copy_takes_nothing_hidden_with_it_and_tells_nothing_of_it(library: Library, restricted: Api) -> None:
    source = library.books["A2"]
    answer = restricted.post(f"{BOOKS}({source})/Default.CreateCopy", {})
    # The copy has no code yet; what matters is that nothing hidden is named.
    assert library.companies["hidden"] not in text_of(answer)
    inside = restricted.begin()
    copied = inside.post(f"{BOOKS}({source})/Default.CreateCopy", {})
    assert copied.status_code == 201, copied.content
    guid = id_of(copied.json())
    assert inside.patch(f"{BOOKS}({guid})", {"Code": "COPY"}).status_code == 204
    assert inside.end().status_code == 204
    assert stored(library, BOOKS_NAME, guid)["Publisher"] is None
    copies = Dataset(library.world.context).find_all(CHAPTERS_NAME, book_id=guid)
    assert [chapter.values["Heading"] for chapter in copies] == ["One"]


def test_what_is_in_use_by_a_hidden_row_is_refused_without_naming_it(library: Library) -> None:
    somebody = person("bob")
    give_role(somebody, {"Library.*": "crud", "General.*": "crud"}, {BOOKS_NAME: "Code ne 'A1'"})
    api = caller(somebody)
    assert api.patch(f"{BOOKS}({library.books['A3']})", {"Publisher": None}).status_code == 204
    assert api.patch(f"{BOOKS}({library.books['A6']})", {"Publisher": None}).status_code == 204
    answer = api.delete(f"{PUBLISHERS}({library.companies['open']})")
    assert answer.status_code == 500
    assert error_of(answer)["type"] == "ReferenceInUse"
    assert library.books["A1"] not in text_of(answer)
    assert "Library" not in text_of(answer)


def test_a_duplicate_names_only_what_the_caller_gave(library: Library, restricted: Api) -> None:
    """That a code is taken cannot be hidden: two entities cannot have it. Whose it is can."""
    answer = restricted.post(BOOKS, {"Code": "A3", "Title": {"EN": "Mine"}})
    assert error_of(answer)["type"] == "DuplicateValue"
    assert MARK not in text_of(answer)
    assert library.books["A3"] not in text_of(answer)


def test_a_delta_tells_nothing_of_what_was_never_seen(library: Library, administrator: Api, restricted: Api) -> None:
    link = restricted.read(BOOKS, Prefer="odata.track-changes")["@odata.deltaLink"]
    hidden, seen = library.books["A3"], library.books["A1"]
    assert administrator.patch(f"{BOOKS}({hidden})", {"Pages": 5}).status_code == 204
    assert administrator.delete(f"{BOOKS}({library.books['A5']})").status_code == 204
    link = delta(restricted, link, {})
    # What they saw is reported as removed when it is deleted or hidden, once.
    assert administrator.patch(f"{BOOKS}({seen})", {"Title": {"EN": f"{MARK} now"}}).status_code == 204
    assert administrator.delete(f"{BOOKS}({library.books['A4']})").status_code == 204
    link = delta(restricted, link, {seen: "changed", library.books["A4"]: "deleted"})
    assert administrator.patch(f"{BOOKS}({seen})", {"Pages": 6}).status_code == 204
    delta(restricted, link, {})


def delta(api: Api, link: str, removed: dict[str, str]) -> str:
    """Follow a delta link; nothing but these must be told as removed. The next link."""
    answer = api.read(link.partition("/odata/")[2], OData_MaxVersion="4.01")
    rows = answer["value"]
    # Inside one database transaction, as here, PostgreSQL tells of what is visible once more.
    assert {id_of(row): row["@removed"]["reason"] for row in rows if "@removed" in row} == removed
    assert MARK not in json.dumps([row for row in rows if "@removed" not in row])
    return str(answer["@odata.deltaLink"])


def test_more_than_a_token_can_hold_is_not_tracked_for_who_sees_a_part(
    library: Library, administrator: Api, restricted: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.odata.read.deltas.SEEN_MAX", 3)
    answer = restricted.get(BOOKS, Prefer="odata.track-changes")
    assert "@odata.deltaLink" not in answer.json()
    assert "Preference-Applied" not in answer.headers
    assert "@odata.deltaLink" in administrator.read(BOOKS, Prefer="odata.track-changes")


def test_changes_by_rules_to_what_the_caller_does_not_see_are_not_told(library: Library) -> None:
    somebody = person("bob")
    give_role(
        somebody,
        {"Library.*": "crud", "Systems.Core.Notifications": "r", "Systems.Security.Users": "r"},
        {"Systems.Core.Notifications": "User/Id eq $user.Id"},
    )
    api = caller(somebody).begin(trackChanges=True)
    other = person("carol")
    for user in (somebody, other):
        body = {"user": f"Systems_Security_Users({user.pk})", "notificationClass": "x", "subject": user.login}
        answer = api.post(f"{BOOKS}({library.books['A1']})/Default.CreateNotification", body)
        assert answer.status_code == 204, answer.content
    changes = api.read("GetChanges()")
    subjects = [values["Subject"] for values in changes["insert"]["Systems_Core_Notifications"].values()]
    assert subjects == ["bob"]


# --- errors of the database as an oracle ---------------------------------------------------------------------------

#: Conditions that a database could refuse for the hidden book of 300 pages and for none of the visible ones.
RAISING = [
    "1 div (Pages sub 300) ge 0",
    "Pages mod (Pages sub 300) ge 0",
    "Pages mul 10000000 gt 0",
    "Pages add 2147483400 gt 0",
    "substring(Code,Pages mul 8000000) ne 'x'",
    "substring(Code,0,Pages sub 300) ne 'x'",
    "length(substring(Code,1,Pages sub 301)) ge 0",
    "cast(Title/EN,Edm.Int32) gt 0",
    "cast(Title/EN,Edm.Guid) ne null",
    "cast(Title/EN,Edm.Date) ne null",
    "cast(cast(Pages mul 10000000,Edm.Int32),Edm.String) ne 'x'",
    "cast(Code,Edm.Decimal) gt 0",
    "matchesPattern(Code,Title/EN)",
    "CreationTimeUtc add duration'P106751000D' gt now()",
    "CreationTimeUtc sub duration'P2800000D' lt now()",
    "totalseconds(CreationTimeUtc sub 2000-01-01T00:00:00Z add duration'P106751000D') gt 0",
    "- Pages lt 0",
    "round(Pages divby 0) ge 0",
    "concat(Code,Title/EN) gt 'a'",
    "case(Pages eq 300:1 div 0,true:1) ge 0",
]


def test_no_condition_fails_because_of_a_hidden_row(
    library: Library, restricted: Api, subtests: pytest.Subtests
) -> None:
    """Whatever is asked of the hidden rows by the way, the answer is the one without them."""
    paths = [f"{BOOKS}/$count?$filter={quote(condition)}" for condition in RAISING]
    paths += [f"{CHAPTERS}?$select=Id&$filter={quote(_behind_book(condition))}" for condition in RAISING]
    before = {path: told(restricted.get(path)) for path in paths}
    ds = Dataset(library.world.context)
    for code in ("A3", "A5"):
        record = ds.load(BOOKS_NAME, library.books[code])
        assert record is not None
        ds.delete(record)
    ds.commit()
    for path in paths:
        with subtests.test(path):
            assert told(restricted.get(path)) == before[path]


def _behind_book(condition: str) -> str:
    for name in ("Pages", "Code", "Title/EN", "CreationTimeUtc"):
        condition = condition.replace(name, f"Book/{name}")
    return condition


# --- kin ----------------------------------------------------------------------------------------------------------


def only(library: Library, repository: str, text: str, operations: str = "r") -> Api:
    """Somebody who may do everything, but for one policy."""
    somebody = person("bob")
    give_role(somebody, {"*": "crud"}, {repository: text}, operations)
    return caller(somebody)


def test_parts_of_a_hidden_entity_are_hidden(library: Library) -> None:
    api = only(library, BOOKS_NAME, f"not contains(Title/EN,'{MARK}')")
    hidden = library.chapters["A3"][0]
    assert len(api.read(CHAPTERS)["value"]) == 5
    assert int(api.get(f"{CHAPTERS}/$count").content) == 5
    assert int(api.get(f"{CHAPTERS}/$count?$filter=Book%20eq%20null").content) == 0
    for method in ("GET", "DELETE"):
        assert api.request(method, f"{CHAPTERS}({hidden})").status_code == 404
    assert api.patch(f"{CHAPTERS}({hidden})", {"Heading": "x"}).status_code == 404
    source = f"console.log(Domain.Library.ChaptersRepository.getById('{hidden}'))"
    assert api.post("ExecuteScript", source, Content_Type="text/plain").json()["console"] == "null"


def test_parts_of_what_may_not_be_changed_may_not_be_changed(library: Library) -> None:
    api = only(library, BOOKS_NAME, "Pages le 200", "cud")
    chapter = library.chapters["A3"][0]
    assert api.get(f"{CHAPTERS}({chapter})").status_code == 200
    answers = [
        api.patch(f"{CHAPTERS}({chapter})", {"Heading": "x"}),
        api.delete(f"{CHAPTERS}({chapter})"),
        api.post(f"{BOOKS}({library.books['A3']})/Chapters", {"Heading": "x"}),
        api.post(CHAPTERS, {"Heading": "x", "Book@odata.bind": f"{BOOKS}({library.books['A3']})"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert api.patch(f"{CHAPTERS}({library.chapters['A1'][0]})", {"Heading": "x"}).status_code == 204


def test_a_policy_on_a_base_holds_for_what_is_derived_from_it(library: Library) -> None:
    api = only(library, "General.Contacts.Parties", f"not contains(PartyName/EN,'{MARK}')")
    hidden = library.companies["hidden"]
    for path in (PUBLISHERS, "General_Contacts_Parties", f"{BOOKS}?$expand=Publisher"):
        assert MARK not in text_of(api.get(path)).replace(f"{MARK} plan", "").replace(f"{MARK} Alpha", ""), path
    for path in (f"{PUBLISHERS}({hidden})", f"General_Contacts_Parties({hidden})"):
        assert api.get(path).status_code == 404
        assert api.patch(path, {"PartyName": {"EN": "x"}}, If_Match="*").status_code == 404


def test_what_is_hidden_in_its_own_set_cannot_be_reached_through_the_base(library: Library) -> None:
    somebody = person("bob")
    give_role(somebody, {"General.*": "crud", COMPANIES: "", "Library.*": "crud"})
    api = caller(somebody)
    company = library.companies["open"]
    for method, path, body in (
        ("GET", f"General_Contacts_Parties({company})", None),
        ("PATCH", f"General_Contacts_Parties({company})", {"PartyName": {"EN": "x"}}),
        ("DELETE", f"General_Contacts_Parties({company})", None),
    ):
        assert api.request(method, path, body, **({"If_Match": "*"} if body else {})).status_code == 404
    bound = {"Publisher@odata.bind": f"General_Contacts_Parties({company})"}
    assert error_of(api.patch(f"{BOOKS}({library.books['A4']})", bound))["type"] == "ReferencedEntityNotFound"


def test_another_role_takes_nothing_away(library: Library) -> None:
    """Roles add up also for parts: who is given chapters by one role keeps them whatever another says of books."""
    somebody = person("bob")
    give_role(somebody, {"Library.*": "r"}, {BOOKS_NAME: "Code eq 'A1'"})
    api = caller(somebody)
    assert int(api.get(f"{CHAPTERS}/$count").content) == 2
    give_role(somebody, {CHAPTERS_NAME: "r"})
    assert int(api.get(f"{CHAPTERS}/$count").content) == 8


def test_the_variables_of_a_policy_are_not_those_of_the_query(library: Library) -> None:
    """Both number their lambda variables; a policy that looks at its row's neighbours must look at its own."""
    api = only(library, CHAPTERS_NAME, "Book/Chapters/any(c:contains(c/Heading,'Three'))")
    assert int(api.get(f"{CHAPTERS}/$count").content) == 1
    for condition, number in (
        ("Chapters/any(c:c/Heading ne 'x')", 1),
        ("Chapters/any(c:c/Book/Chapters/any(d:d/Heading ne 'x'))", 1),
        ("Chapters/$count gt 0", 1),
        ("Chapters/all(c:c/Heading eq 'Three')", 6),
    ):
        assert int(api.get(f"{BOOKS}/$count?$filter={quote(condition)}").content) == number, condition


def test_a_policy_may_ask_what_the_caller_may_not(library: Library) -> None:
    api = only(library, BOOKS_NAME, f"contains(Publisher/PartyName/EN,'{MARK}')")
    RowPolicy.objects.create(
        role=RowPolicy.objects.get().role, repository=COMPANIES, filter=f"not contains(PartyName/EN,'{MARK}')"
    )
    cache_versions.expire()
    rows = api.read(f"{BOOKS}?$expand=Publisher&$orderby=Code")["value"]
    assert [(row["Code"], row["Publisher"]) for row in rows] == [("A2", None), ("A5", None)]
