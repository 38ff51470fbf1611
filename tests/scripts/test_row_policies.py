"""Row policies hold inside scripts: whatever a restricted caller asks, never one row more (spec 01, 1.7)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.domain.security.conftest import MARK, Library, administrator, library, restricted
from tests.scripts.cast import console
from tests.support.api import Api

__all__ = ["administrator", "library", "restricted"]

#: Each as in a script: attribute → comparison. What is hidden is a value like any other to compare with.
_TEXTS = st.sampled_from(["Alpha", "A", MARK, "plan", "", "e", "One"])
_CODES = st.sampled_from(["A1", "A2", "A3", "A5", "a3", "ZZ"])
_PAGES = st.sampled_from([0, 100, 150, 200, 300])
_CONDITIONS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["Code", "Pages", "Title"]), st.none(), max_size=3
).flatmap(
    lambda names: st.fixed_dictionaries(
        {
            name: {
                "Code": st.one_of(
                    _CODES, st.fixed_dictionaries({"in": st.lists(_CODES, min_size=1)}), st.just({"startswith": "A"})
                ),
                "Pages": st.one_of(
                    _PAGES,
                    st.fixed_dictionaries({"greaterthanorequal": _PAGES}),
                    st.fixed_dictionaries({"lessthanorequal": _PAGES, "includeNulls": st.booleans()}),
                ),
                "Title": st.fixed_dictionaries({"contains": _TEXTS}),
            }[name]
            for name in names
        }
    )
)
_FILTERS = st.sampled_from(
    [
        "",
        "Pages gt 100 or Pages eq null",
        f"contains(Title/EN,'{MARK}')",
        f"not contains(Title/EN,'{MARK}') or true",
        "Publisher ne null",
        f"contains(Publisher/PartyName/EN,'{MARK}')",
        f"Chapters/any(c:contains(c/Heading,'{MARK}'))",
        "Chapters/any() or not Chapters/any()",
        "Chapters/$count gt 1",
    ]
)
_OPTIONS = st.fixed_dictionaries(
    {}, optional={"fetch": st.sampled_from([1, 3, 100]), "orderBy": st.sampled_from(["Code", "Pages desc", "Title"])}
)

#: What one caller is shown of the answer, by every way there is from a book to something else.
_SHOW = """
const said = [];
for (const book of Domain.Library.BooksRepository.query(%s, %s)) {
  const publisher = book.Publisher;
  said.push({ id: book.Id, code: book.Code, title: String(book.Title), text: book.DisplayText,
    publisher: publisher === null ? null : publisher.Id + ' ' + publisher.DisplayText,
    chapters: book.Chapters.map(chapter => chapter.Id + ' ' + chapter.Heading) });
}
console.log(said);
"""


def shown(api: Api, conditions: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(console(api, _SHOW % (json.dumps(conditions), json.dumps(options))))
    return found


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(conditions=_CONDITIONS, filter=_FILTERS, options=_OPTIONS)
def test_never_one_row_more_than_the_administrators_filtered_by_hand(
    administrator: Api,
    restricted: Api,
    library: Library,
    conditions: dict[str, Any],
    filter: str,
    options: dict[str, Any],
) -> None:
    asked = {**options, **({"filter": filter} if filter else {})}
    seen = shown(restricted, conditions, asked)
    assert MARK not in json.dumps(seen)
    everything = {each["id"]: each for each in shown(administrator, None, {})}
    visible = {id: each for id, each in everything.items() if MARK not in each["title"]}
    for each in seen:
        whole = visible[each["id"]]
        assert each["chapters"] == [text for text in whole["chapters"] if MARK not in text]
        hidden = whole["publisher"] is not None and MARK in whole["publisher"]
        assert each["publisher"] == (None if hidden else whole["publisher"])
    # Conditions on hidden neighbours may find less for one who does not see them; those on the book itself may not.
    if "fetch" not in options and not any(word in filter for word in ("Chapters", "Publisher")):
        matching = {each["id"] for each in shown(administrator, conditions, asked)}
        assert {each["id"] for each in seen} == matching & set(visible)


@pytest.mark.parametrize("way", ["getById('{id}')", "getByIdList('{id}')[0]", "query({{Id: '{id}'}})[0]"])
def test_hidden_rows_cannot_be_named(restricted: Api, library: Library, way: str) -> None:
    ways = {
        "Books": [library.books["A3"], library.books["A5"]],
        "Chapters": [chapters[-1] for code, chapters in library.chapters.items() if code in ("A2", "A3", "A5")],
    }
    for name, ids in ways.items():
        for id in ids:
            source = f"console.log(Domain.Library.{name}Repository.{way.format(id=id)} == null)"
            assert console(restricted, source) == "true", source


def test_a_hidden_reference_is_null_in_every_form(library: Library, administrator: Api, restricted: Api) -> None:
    source = """
    const said = [];
    for (const book of Domain.Library.BooksRepository.query({Code: {in: ['A1', 'A2']}}, {orderBy: 'Code'}))
      said.push([book.Publisher && book.Publisher.Id, book.PublisherId, book.toJSON().Publisher]);
    const one = Domain.Library.BooksRepository.getById('%s');
    said.push([one.PublisherId]);
    one.Pages = 7;
    said.push([one.PublisherId]);
    console.log(said);
    """
    open_press, hidden = library.companies["open"], library.companies["hidden"]
    for api, second in ((administrator, hidden), (restricted, None)):
        told = json.loads(console(api, source % library.books["A2"]))
        assert told == [[open_press] * 3, [second] * 3, [second], [second]]
