"""Row policies on every way to read there is (spec 01, 1.7): nothing of a hidden row comes through any of them.

Each line is asked twice. The administrator's answer proves that the way leads to the hidden row; the restricted
person's answer must not contain a trace of it.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from domain.model.registry import repositories
from tests.domain.security.conftest import MARK, Library, caller, give_role, person
from tests.support.api import Answer, Api

BOOKS = "Library_Books"
CHAPTERS = "Library_Chapters"
COMPANIES = "General_Contacts_Companies"
PARTIES = "General_Contacts_Parties"

READ_PATHS = {
    "collection": f"{BOOKS}",
    "select": f"{BOOKS}?$select=Title",
    "select along a reference": f"{BOOKS}?$select=Code,Publisher/PartyName",
    "display text": f"{BOOKS}?$select=DisplayText",
    "display text of a reference": f"{BOOKS}?$select=Code&$expand=Publisher($select=DisplayText)",
    "key": f"{BOOKS}({{A3}})",
    "property": f"{BOOKS}({{A3}})/Title",
    "raw value": f"{CHAPTERS}({{chapter}})/Heading/$value",
    "navigation to one": f"{BOOKS}({{A2}})/Publisher",
    "navigation to one from a hidden row": f"{BOOKS}({{A5}})/Publisher",
    "navigation to many": f"{BOOKS}({{A2}})/Chapters",
    "navigation to many from a hidden row": f"{BOOKS}({{A3}})/Chapters",
    "a member of a collection": f"{BOOKS}({{A2}})/Chapters({{chapter}})",
    "navigation to a property": f"{BOOKS}({{A2}})/Publisher/PartyName",
    "expand to one": f"{BOOKS}?$select=Code&$expand=Publisher",
    "expand to many": f"{BOOKS}?$select=Code&$expand=Chapters",
    "nested expand": f"{CHAPTERS}?$select=Id&$expand=Book($expand=Publisher)",
    "expand with options": f"{BOOKS}?$select=Code&$expand=Chapters($filter=Heading ne 'x';$orderby=Heading;$top=9)",
    "order": f"{BOOKS}?$orderby=Publisher/PartyName/EN desc,Title/EN desc&$top=3",
    "order without the key": f"{BOOKS}?$orderby=Publisher/PartyName/EN desc&$select=Code,Title",
    "compute": f"{BOOKS}?$compute=Publisher/PartyName/EN as By&$select=Code,By",
    "compute in an expansion": f"{CHAPTERS}?$expand=Book($compute=Publisher/PartyName/EN as By;$select=Code,By)",
    "several levels": f"{CHAPTERS}?$expand=Book($expand=Chapters($levels=2))",
    "search": f"{BOOKS}?$search={MARK}",
    "search in an expansion": f"{BOOKS}?$expand=Chapters($search={MARK})",
    "apply aggregate": f"{BOOKS}?$apply=groupby((Title))",
    "apply along a reference": f"{BOOKS}?$apply=groupby((Publisher/PartyName))",
    "apply on the owner": f"{CHAPTERS}?$apply=groupby((Book/Title))",
    "apply concat": f"{BOOKS}?$apply=concat(groupby((Title)),aggregate($count as N))",
    "apply compute": f"{BOOKS}?$apply=compute(Publisher/PartyName/EN as By)/groupby((By))",
    "apply expand of a group": (
        f"{BOOKS}?$apply=groupby((Publisher),aggregate($count as N))/expandgroup=Publisher($select=PartyName)"
    ),
    "apply max": f"{CHAPTERS}?$apply=aggregate(Heading with min as Least)",
    "the base set": f"{PARTIES}?$top=100",
    "a derived type in the base set": f"{PARTIES}/Erp.General_Contacts_Company",
    "the base set by key": f"{PARTIES}({{hidden}})",
    "references": f"{BOOKS}?$filter=Publisher/PartyName/EN eq '{MARK} Press'",
}


def filled(library: Library, path: str) -> str:
    """The path with the guids of what it speaks of."""
    known = {**library.books, "chapter": library.chapters["A2"][1], "hidden": library.companies["hidden"]}
    for name, guid in known.items():
        path = path.replace(f"{{{name}}}", guid)
    address, _, query = path.partition("?")
    return f"{address}?{quote(query, safe='=&$,()/;')}" if query else address


def text_of(answer: Answer) -> str:
    """All that an answer says."""
    return str(answer.content.decode())


def guids_of_hidden(library: Library) -> list[str]:
    """What must not be named either, where it was not given in the request."""
    return [library.books["A3"], library.books["A5"], library.companies["hidden"], library.chapters["A2"][1]]


def test_nothing_hidden_comes_through(
    library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests
) -> None:
    for name, asked in READ_PATHS.items():
        path = filled(library, asked)
        with subtests.test(name):
            shown = administrator.get(path)
            assert shown.status_code == 200, shown.content
            assert MARK in text_of(shown), "this way does not lead to a hidden row"
            answer = restricted.get(path)
            assert answer.status_code in {200, 204, 404}, answer.content
            assert MARK not in text_of(answer)
            assert not [guid for guid in guids_of_hidden(library) if guid in text_of(answer) and guid not in path]


def test_nor_through_a_batch(library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests) -> None:
    paths = [filled(library, path) for path in READ_PATHS.values()]
    asked = {"requests": [{"id": str(at), "method": "GET", "url": path} for at, path in enumerate(paths)]}
    for api, hidden in ((administrator, False), (restricted, True)):
        answers = api.post("$batch", asked, Prefer="continue-on-error").json()["responses"]
        assert len(answers) == len(paths)
        for name, part in zip(READ_PATHS, answers, strict=True):
            with subtests.test(name, hidden=hidden):
                assert (MARK not in json.dumps(part)) is hidden


def test_nor_through_a_query_in_a_body(
    library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests
) -> None:
    for name, path in READ_PATHS.items():
        address, _, query = filled(library, path).partition("?")
        for api, hidden in ((administrator, False), (restricted, True)) if query else ():
            with subtests.test(name, hidden=hidden):
                answer = api.post(f"{address}/$query", query, Content_Type="text/plain")
                assert answer.status_code == 200, answer.content
                assert (MARK not in text_of(answer)) is hidden


#: Path → what an administrator and the restricted person count.
COUNTS = {
    f"{BOOKS}/$count": (6, 4),
    f"{CHAPTERS}/$count": (8, 4),
    f"{BOOKS}({{A2}})/Chapters/$count": (2, 1),
    f"{BOOKS}/$count?$filter=Pages gt 100": (4, 2),
    f"{BOOKS}/$count?$filter=Publisher ne null": (5, 2),
    f"{BOOKS}/$count?$filter=contains(Publisher/PartyName/EN,'{MARK}')": (2, 0),
    f"{BOOKS}/$count?$filter=contains(Title/EN,'{MARK}')": (2, 0),
    f"{BOOKS}/$count?$filter=Chapters/any(c:contains(c/Heading,'{MARK}'))": (3, 0),
    f"{BOOKS}/$count?$filter=Chapters/all(c:not contains(c/Heading,'{MARK}'))": (3, 4),
    f"{BOOKS}/$count?$filter=not Chapters/any(c:contains(c/Heading,'{MARK}'))": (3, 4),
    f"{BOOKS}/$count?$filter=Chapters/$count eq 2": (3, 1),
    f"{CHAPTERS}/$count?$filter=contains(Book/Title/EN,'{MARK}')": (3, 0),
    f"{CHAPTERS}/$count?$filter=contains(Book/Publisher/PartyName/EN,'{MARK}')": (3, 0),
    f"{BOOKS}/$count?$search=Alpha": (3, 2),
}


def test_nothing_hidden_is_counted(
    library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests
) -> None:
    for path, expected in COUNTS.items():
        with subtests.test(path):
            answers = [api.get(filled(library, path)) for api in (administrator, restricted)]
            assert tuple(int(answer.content.decode("utf-8-sig")) for answer in answers) == expected


#: $apply → its value for the restricted person.
AGGREGATES = {
    "aggregate($count as Found)": {"Found": 4},
    "aggregate(Pages with sum as Found)": {"Found": 450},
    "aggregate(Pages with max as Found)": {"Found": 200},
    "aggregate(Code with countdistinct as Found)": {"Found": 4},
    "filter(Pages gt 100)/aggregate($count as Found)": {"Found": 2},
    "filter(Chapters/any(c:contains(c/Heading,'" + MARK + "')))/aggregate($count as Found)": {"Found": 0},
}


def test_nothing_hidden_is_aggregated(
    library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests
) -> None:
    for apply, expected in AGGREGATES.items():
        path = f"{BOOKS}?$apply={quote(apply)}"
        with subtests.test(apply):
            (row,) = restricted.read(path)["value"]
            assert {name: value for name, value in row.items() if "@" not in name} == expected
            assert administrator.read(path)["value"] != [row]


def test_pages_lead_past_what_is_hidden(library: Library, restricted: Api) -> None:
    codes: list[str] = []
    path = f"{BOOKS}?$select=Code&$orderby=Title/EN&$count=true"
    while path:
        page = restricted.read(path, Prefer="odata.maxpagesize=1")
        assert page.get("@odata.count", 4) == 4
        codes += [row["Code"] for row in page["value"]]
        path = page.get("@odata.nextLink", "").partition("/odata/")[2]
    assert codes == ["A1", "A6", "A2", "A4"]


def test_a_next_link_of_somebody_else_shows_no_more(library: Library, administrator: Api, restricted: Api) -> None:
    page = administrator.read(f"{BOOKS}?$orderby=Code", Prefer="odata.maxpagesize=2")
    answer = restricted.get(page["@odata.nextLink"].partition("/odata/")[2])
    assert MARK not in text_of(answer)


def test_former_names_of_sets_lead_to_the_same_rights(library: Library) -> None:
    carol = person("carol")
    give_role(carol, {"General.Contacts.*": "r"})
    api = caller(carol)
    former = {name: found[0].set_name for name in repositories.old_set_names() if (found := repositories.for_set(name))}
    assert len(former) > 10
    statuses = {name: (api.get(f"{name}?$top=1").status_code, api.get(f"{new}?$top=1").status_code)
                for name, new in former.items()}  # fmt: skip
    assert {name: found for name, found in statuses.items() if found[0] != found[1]} == {}
    assert {found[0] for found in statuses.values()} >= {403}


#: `BOOKS` and `CHAPTERS` stand for the repositories.
SCRIPTS = (
    "console.log(BOOKS.query().map(b => b.Title.EN + b.Publisher).join())",
    "console.log(BOOKS.getById('{A3}')?.Title.EN)",
    "console.log(BOOKS.getById('{A2}').Publisher?.PartyName.EN)",
    "console.log(BOOKS.getById('{A2}').Chapters.map(c => c.Heading).join())",
    "console.log(CHAPTERS.query().map(c => c.Heading).join())",
    f"""console.log(CHAPTERS.query(null, {{filter: "contains(Heading,'{MARK}')"}}).length)""",
)


def test_scripts_see_no_more(library: Library, administrator: Api, restricted: Api, subtests: pytest.Subtests) -> None:
    for source in SCRIPTS:
        body = source.replace("BOOKS", "Domain.Library.BooksRepository")
        body = body.replace("CHAPTERS", "Domain.Library.ChaptersRepository")
        for name, guid in library.books.items():
            body = body.replace(f"{{{name}}}", guid)
        with subtests.test(source):
            seen = []
            for api in (administrator, restricted):
                answer = api.post("ExecuteScript", body, Content_Type="text/plain")
                assert answer.status_code == 200, answer.content
                seen.append(answer.json()["console"])
            assert seen[0] != seen[1]
            assert MARK not in seen[1]


def test_changes_of_a_transaction_tell_nothing_of_hidden_rows(library: Library, restricted: Api) -> None:
    inside = restricted.begin(trackChanges=True)
    assert inside.patch(f"{BOOKS}({library.books['A2']})", {"Pages": 201}).status_code == 204
    assert inside.patch(f"{BOOKS}({library.books['A3']})", {"Pages": 1}).status_code == 404
    assert MARK not in text_of(inside.get(BOOKS))
    assert MARK not in text_of(inside.get(f"{BOOKS}?$expand=Chapters,Publisher"))
    told = inside.get("GetChanges")
    assert told.status_code == 200, told.content
    assert MARK not in text_of(told)
    assert library.companies["hidden"] not in text_of(told)
    inside.end(commit=False)


def test_what_a_rule_says_is_what_its_caller_may_see(library: Library, administrator: Api, restricted: Api) -> None:
    from tests.rules.cast import write_rule

    write_rule(
        library.world,
        "Library.Books",
        ["COMMIT"],
        actions=[("FAIL", ("Interpolate", "by {Publisher.PartyName:T}"))],
    )
    change: dict[str, Any] = {"Pages": 7}
    said = []
    for api in (administrator, restricted):
        answer = api.patch(f"{BOOKS}({library.books['A2']})", change)
        assert answer.status_code == 500
        said.append(json.loads(answer.content)["error"]["message"])
    assert said[0] == f"by {MARK} Press"
    assert MARK not in said[1]
