"""What is hidden from a caller in the Domain API is hidden in the Table API (spec 01, 1.7).

The random queries ask twice: a restricted person, and an administrator after the hidden rows have been taken out of the
tables. Values, counts, orders, pages and errors must be equal.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.dataset.dataset import Dataset
from domain.entities.general_contacts import Company
from domain.model.registry import repositories
from domain.table_api.catalogue import table_of
from tests.domain.security.conftest import MARK, Library, administrator, caller, give_role, library, person, restricted
from tests.domain.table_api.conftest import Tables, body_of, tables_of
from tests.sample_library.models import Book, Chapter
from tests.support.api import Api

__all__ = ["administrator", "library", "restricted"]

BOOKS, CHAPTERS, VALUES = "Library_Books", "Library_Chapters", "Gen_Property_Values"
_PUBLISHER = "Publisher_Reference/Party_Reference"
_compare = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
_text = st.sampled_from([f"'{text}'" for text in ("Alpha", "again", MARK, "One", "Press", "", "A1", "A3", "%25a%25")])
_number = st.sampled_from(["100", "150", "300", "null"])
_policy = st.sampled_from(
    ["Pages le 150", "Pages ge 200", "Publisher eq null", "contains(Code,'A1')", f"not contains(Title/EN,'{MARK}')",
     f"not contains(Publisher/PartyName/EN,'{MARK}')", "Chapters/any(c:c/Heading eq 'One')"]
)  # fmt: skip


def _atoms(texts: list[str], numbers: list[str], keys: list[str]) -> st.SearchStrategy[str]:
    text = st.sampled_from(texts)
    return st.one_of(
        st.tuples(text, _compare, _text).map(" ".join),
        st.tuples(st.sampled_from(["contains", "startswith"]), text, _text).map("{0[0]}({0[1]},{0[2]})".format),
        st.tuples(text, _text).map("{0[0]} like {0[1]}".format),
        st.tuples(text, _text, _text).map("{0[0]} in ({0[1]},{0[2]})".format),
        st.tuples(st.sampled_from(numbers), _compare, _number).map(" ".join),
        st.tuples(st.sampled_from([*keys, *texts]), st.sampled_from(["eq null", "ne null"])).map(" ".join),
        st.sampled_from(numbers).map("1 div ({} sub 300) ge 0".format),
    )


def _filters(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map("({0[0]} {0[1]} {0[2]})".format),
            inner.map("not ({})".format),
        ),
        max_leaves=3,
    )


_by_table = {
    BOOKS: (
        _filters(_atoms(["Title_EN", "Code", f"{_PUBLISHER}/Party_Name_EN"], ["Pages"], ["Publisher_Id"])),
        ["Code", "Title_EN desc, Code", "Publisher_Id, Code", "Pages desc"],
        ["Code, Title, Pages", "Publisher_Id,Title_EN", "*"],
    ),
    CHAPTERS: (
        _filters(
            _atoms(
                ["Heading", "Book_Reference/Title_EN", f"Book_Reference/{_PUBLISHER}/Party_Name_EN"],
                ["Book_Reference/Pages"],
                ["Book_Id", "Book_Reference/Publisher_Id"],
            )
        ),
        ["Heading", "Book_Id desc", "Heading desc,Book_Id"],
        ["Heading, Book_Id", "*"],
    ),
    VALUES: (
        _filters(_atoms(["Property_Value"], ["length(Property_Value)"], ["Entity_Item_Id"])),
        ["Property_Value", "Entity_Item_Id desc"],
        ["Property_Value", "*"],
    ),
}


@st.composite
def table_queries(draw: st.DrawFn) -> str:
    """A GET of rows or of their number."""
    table = draw(st.sampled_from(sorted(_by_table)))
    conditions, orders, selects = _by_table[table]
    options = [f"$filter={draw(conditions)}"] if draw(st.booleans()) else []
    if draw(st.integers(0, 4)) == 0:
        return f"{table}/$count?{'&'.join(options)}"
    options += [f"$orderby={draw(st.sampled_from(orders))}", f"$select={draw(st.sampled_from(selects))}"]
    if draw(st.booleans()):
        options.append(f"$top={draw(st.integers(0, 4))}&$skip={draw(st.integers(0, 2))}")
    if draw(st.booleans()):
        options.append("$count=true")
    return f"{table}?{'&'.join(options)}"


def answers(tables: Tables, path: str, page_size: int | None) -> list[tuple[int, Any]]:
    """Status and body of the answer, and of its further pages."""
    found: list[tuple[int, Any]] = []
    preferred = {"Prefer": f"odata.maxpagesize={page_size}"} if page_size else {}
    while path and len(found) < 12:
        answer = tables.get(path, **preferred)
        body = json.loads(body_of(answer))
        link = body.pop("@odata.nextLink", "") if isinstance(body, dict) else ""
        if isinstance(body, dict) and "error" in body:
            del body["error"]["info"]
        found.append((answer.status_code, body))
        path = link.partition("/odata/")[2]
    return found


@pytest.fixture
def both(library: Library, administrator: Api, restricted: Api) -> tuple[Library, Tables, Tables]:
    """The library with a custom property, and its two callers."""
    definition = {"Code": "hue", "Name": {"EN": "Hue"}, "EntityName": BOOKS, "PropertyType": "Text"}
    administrator.create("Systems_Bpm_CustomProperties", definition)
    for code, book in library.books.items():
        hidden = code in ("A3", "A5")
        body = {"CustomProperty_hue": MARK if hidden else f"hue {code}"}
        assert administrator.patch(f"{BOOKS}({book})", body).status_code == 204
    return library, tables_of(administrator), tables_of(restricted)


@given(query=table_queries(), page_size=st.sampled_from([None, 1, 2]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_restricted_person_reads_what_is_left_without_the_hidden_rows(
    both: tuple[Library, Tables, Tables], query: str, page_size: int | None
) -> None:
    _, administrator, restricted = both
    seen = answers(restricted, query, page_size)
    assert MARK not in json.dumps(seen).replace(f"'{MARK}'", "")
    with transaction.atomic():
        hidden = Company.objects.filter(party_name__contains=MARK)
        Book._default_manager.filter(publisher__in=hidden).update(publisher=None)
        gone = Book._default_manager.filter(title__contains=MARK)
        Chapter._default_manager.filter(Q(heading__contains=MARK) | Q(book__in=gone)).delete()
        gone.delete()
        expected = answers(administrator, query, page_size)
        transaction.set_rollback(True)
    assert seen == expected


@given(policies=st.lists(_policy, min_size=1, max_size=2), letters=st.sampled_from(["r", ""]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_tables_show_the_rows_that_the_domain_api_shows(library: Library, policies: list[str], letters: str) -> None:
    with transaction.atomic():
        bob = person("bob")
        for text in policies:
            rights = {"Library.*": "r", "General.Contacts.*": "r", "General.Contacts.Companies": letters}
            give_role(bob, rights, {"Library.Books": text})
        api = caller(bob)
        tables = tables_of(api)
        for table, entities in ((BOOKS, BOOKS), (CHAPTERS, CHAPTERS), ("Cm_Companies", "General_Contacts_Companies")):
            answer = api.get(f"{entities}?$select=Id&$orderby=Id")
            rows = tables.get(f"{table}?$select=Id&$orderby=Id")
            if answer.status_code != 200:
                assert rows.status_code == 404
                continue
            expected = [row["Id"] for row in answer.json()["value"]]
            assert [row["Id"] for row in json.loads(body_of(rows))["value"]] == expected
            assert body_of(tables.get(f"{table}/$count")) == str(len(expected)).encode()
        shown = {row["Code"]: row["Publisher"] for row in api.read(f"{BOOKS}?$select=Code,Publisher")["value"]}
        rows = {row["Code"]: row["Publisher_Id"] for row in tables.rows(f"{BOOKS}?$select=Code, Publisher_Id")}
        assert {code: id and f"General_Contacts_Companies({id})" for code, id in rows.items()} == {
            code: link and link["@odata.id"] for code, link in shown.items()
        }
        transaction.set_rollback(True)


def test_a_table_that_may_not_be_read_does_not_exist(library: Library) -> None:
    bob = person("bob")
    give_role(bob, {"Library.Books": "r"})
    tables = tables_of(caller(bob))
    for path in ("{}", "{}/$count", "{}?$filter=nonsense eq 1", "{}?$select=Id&$orderby=Id"):
        for table in ("Gen_Products", "Sec_Users", "Nothing"):
            assert tables.get(path.format(table)).status_code == 404, (path, table)
    # References lead to nothing that is hidden, and say nothing of it.
    for condition in (f"{_PUBLISHER}/Party_Name_EN ne null", "Publisher_Id ne null", f"{_PUBLISHER}/Party_Code ge ''"):
        assert tables.rows(f"{BOOKS}?$filter={condition}") == [], condition
    assert {row["Publisher_Id"] for row in tables.rows(BOOKS)} == {None}


def test_administrators_alone_read_what_is_theirs(library: Library) -> None:
    bob = person("bob")
    give_role(bob, {"*": "r"})
    tables = tables_of(caller(bob))
    theirs = [table_of(repository).name for repository in repositories if repository.admin_only]
    assert theirs
    for name in theirs:
        assert tables.get(name).status_code == 404, name


def test_encrypted_texts_can_neither_be_read_nor_asked_for(administrator: Api) -> None:
    tables = tables_of(administrator)
    secret = [(table_of(r).name, a.name) for r in repositories for a in r.attributes.values() if a.secret]
    for table, name in secret:
        for option in (f"$select={name}", f"$filter={name} ne null", f"$orderby={name}"):
            assert tables.get(f"{table}?{option}").status_code == 400


def test_values_of_properties_of_hidden_entities_have_no_row(both: tuple[Library, Tables, Tables]) -> None:
    library, administrator, restricted = both
    assert len(administrator.rows(VALUES)) == 6
    shown = {row["Entity_Item_Id"] for row in restricted.rows(VALUES)}
    assert shown == {id for code, id in library.books.items() if code not in ("A3", "A5")}
    stored = Dataset(library.world.context).load("Library.Books", library.books["A3"])
    assert stored is not None
    assert restricted.rows(f"{VALUES}?$filter=Entity_Item_Id eq {stored.id}") == []
