"""Random queries: a restricted person sees what an administrator would see if the hidden rows were not there.

Each query is asked twice. The second time by the administrator, after the hidden rows have been taken out of the tables
by hand and the references to them emptied; then they are put back. The two answers must be equal: not one
row, count or aggregate more, nor less, and the same order and pages (spec 01, 1.7).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction
from django.db.models import Q
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.entities.general_contacts import Company
from tests.domain.security.conftest import MARK, Library
from tests.sample_library.models import Book, Chapter
from tests.support.api import Api

BOOKS = "Library_Books"
CHAPTERS = "Library_Chapters"

TEXTS = ["Alpha", "again", MARK, "One", "Press", "Open", "", "a", "A1", "A3", "T"]
_text = st.sampled_from([f"'{text}'" for text in TEXTS])
_number = st.sampled_from(["100", "150", "200", "300", "0", "null"])
_test = st.sampled_from(["contains", "startswith", "endswith"])
_compare = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])


def _members(strings: list[str], numbers: list[str]) -> st.SearchStrategy[str]:
    words = st.sampled_from(strings)
    number = st.sampled_from(numbers) if numbers else st.just("1")
    return st.one_of(
        st.tuples(words, _compare, _text).map(" ".join),
        st.tuples(st.sampled_from(["contains", "startswith", "endswith"]), words, _text).map(
            "{0[0]}({0[1]},{0[2]})".format
        ),
        st.tuples(number, _compare, _number).map(" ".join),
        st.tuples(words, st.sampled_from(["eq null", "ne null"])).map(" ".join),
        st.tuples(words, _compare, words).map(" ".join),
        st.tuples(words, _compare, _number.filter("null".__ne__)).map("length({0[0]}) {0[1]} {0[2]}".format),
    )


def _logic(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map("({0[0]} {0[1]} {0[2]})".format),
            inner.map("not ({})".format),
        ),
        max_leaves=3,
    )


_chapter_names = ["Heading", "Book/Title/EN", "Book/Code", "Book/Publisher/PartyName/EN"]
_in_lambda = _logic(_members(["c/Heading"], []))
_book_atoms = st.one_of(
    _members(["Title/EN", "Code", "Publisher/PartyName/EN"], ["Pages", "Chapters/$count"]),
    _in_lambda.map("Chapters/any(c:{})".format),
    _in_lambda.map("Chapters/all(c:{})".format),
    st.sampled_from(["Chapters/any()", "Publisher eq null", "Publisher ne null", "contains(DisplayText,'Al')"]),
)
_book_filter = _logic(_book_atoms)
_chapter_atoms = st.one_of(
    _members(_chapter_names, ["Book/Pages", "Book/Chapters/$count"]),
    _in_lambda.map("Book/Chapters/any(c:{})".format),
    st.sampled_from(["Book eq null", "Book/Publisher ne null"]),
)
_chapter_filter = _logic(_chapter_atoms)

_order = st.sampled_from(
    ["Code", "Title/EN desc,Code", "Pages desc,Code", "Publisher/PartyName/EN,Code", "Chapters/$count desc,Code"]
)
_expands = st.one_of(
    st.sampled_from(
        [
            "Publisher",
            "Chapters",
            "Chapters($orderby=Heading desc;$top=1)",
            "Chapters($count=true;$select=Heading)",
            "Chapters($expand=Book($expand=Publisher))",
            "Chapters/$count",
        ]
    ),
    _in_lambda.map(lambda text: f"Chapters($filter={text.replace('c/', '')};$count=true)"),
)
_aggregates = st.sampled_from(
    [
        "aggregate($count as N)",
        "aggregate(Pages with sum as S,Pages with max as M,$count as N)",
        "aggregate(Code with countdistinct as N)",
        "groupby((Publisher/PartyName/EN),aggregate($count as N,Pages with average as A))",
        "groupby((Title/EN),aggregate($count as N))",
        "groupby((Pages))",
    ]
)


@st.composite
def book_queries(draw: st.DrawFn) -> str:
    """A GET on books."""
    options: list[str] = []
    kind = draw(st.sampled_from(["rows", "rows", "rows", "count", "apply", "search"]))
    if draw(st.booleans()):
        options.append(f"$filter={draw(_book_filter)}")
    if kind == "count":
        return _address(f"{BOOKS}/$count", options)
    if kind == "apply":
        chain = f"filter({draw(_book_filter)})/" if draw(st.booleans()) else ""
        return _address(BOOKS, [f"$apply={chain}{draw(_aggregates)}"])
    if kind == "search":
        options.append(f"$search={draw(st.sampled_from(['Alpha', MARK, 'Beta OR Delta', 'NOT Alpha']))}")
    options.append(f"$orderby={draw(_order)}")
    if draw(st.booleans()):
        options.append(f"$expand={draw(_expands)}")
    if draw(st.booleans()):
        options.append(f"$top={draw(st.integers(1, 4))}&$skip={draw(st.integers(0, 2))}")
    if draw(st.booleans()):
        options.append("$count=true")
    return _address(BOOKS, options)


@st.composite
def chapter_queries(draw: st.DrawFn) -> str:
    """A GET on chapters."""
    options = [f"$filter={draw(_chapter_filter)}"]
    kind = draw(st.sampled_from(["rows", "count", "apply"]))
    if kind == "count":
        return _address(f"{CHAPTERS}/$count", options)
    if kind == "apply":
        grouped = draw(st.sampled_from(["Book/Title/EN", "Book/Publisher/PartyName/EN", "Heading"]))
        return _address(CHAPTERS, [f"$apply=groupby(({grouped}),aggregate($count as N))"])
    return _address(CHAPTERS, [*options, "$orderby=Heading,Id", "$expand=Book($expand=Publisher)"])


def _address(path: str, options: list[str]) -> str:
    return path + ("?" + quote("&".join(options), safe="=&$,()/;:'") if options else "")


def answers(api: Api, path: str, page_size: int | None) -> list[tuple[int, Any]]:
    """Status and body of the answer, and of all its further pages."""
    found: list[tuple[int, Any]] = []
    preferred = {"Prefer": f"odata.maxpagesize={page_size}"} if page_size else {}
    while path and len(found) < 12:
        answer = api.get(path, **preferred)
        body: Any = answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.content
        found.append((answer.status_code, _comparable(body)))
        path = body.get("@odata.nextLink", "").partition("/odata/")[2] if isinstance(body, dict) else ""
    return found


def _comparable(body: Any) -> Any:
    """Errors carry the request's id, and tokens of further pages a mark of the caller's rights."""
    if isinstance(body, dict) and "error" in body:
        return {name: value for name, value in body["error"].items() if name != "info"}
    if isinstance(body, dict) and "@odata.nextLink" in body:
        return {**body, "@odata.nextLink": "there is more"}
    return body


@pytest.fixture
def both(library: Library, administrator: Api, restricted: Api) -> tuple[Library, Api, Api]:
    """The library and its two callers."""
    return library, administrator, restricted


@given(query=st.one_of(book_queries(), book_queries(), chapter_queries()), page_size=st.sampled_from([None, 1, 2]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_restricted_person_sees_what_is_left_without_the_hidden_rows(
    both: tuple[Library, Api, Api], query: str, page_size: int | None
) -> None:
    _, administrator, restricted = both
    seen = answers(restricted, query, page_size)
    with transaction.atomic():
        # By hand: what the policies say, in the ORM's words.
        hidden = Company.objects.filter(party_name__contains=MARK)
        Book._default_manager.filter(publisher__in=hidden).update(publisher=None)
        gone = Book._default_manager.filter(title__contains=MARK)
        Chapter._default_manager.filter(Q(heading__contains=MARK) | Q(book__in=gone)).delete()
        gone.delete()
        expected = answers(administrator, query, page_size)
        transaction.set_rollback(True)
    assert seen == expected
