"""Owned collections in a dataset."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from tests.rules.cast import World


def make_books(world: World, count: int) -> list[str]:
    ds = Dataset(world.context)
    made: list[Record] = []
    for number in range(count):
        book = ds.create("Library.Books", {"Code": f"B{number}", "Title": {"EN": "Tea"}})
        for heading in ("One", "Two"):
            ds.create("Library.Chapters", {"Heading": heading}, parent=book)
        made.append(book)
    ds.commit()
    return [book.id for book in made]


def test_a_member_whose_deletion_was_committed_is_gone(world: World) -> None:
    (id,) = make_books(world, 1)
    ds = Dataset(world.context)
    book = ds.load("Library.Books", id)
    assert book is not None
    ds.delete(book.children("Chapters")[0])
    ds.commit()
    assert [chapter.heading for chapter in book.children("Chapters")] == ["Two"]


def test_the_collections_of_many_parents_are_loaded_together(world: World) -> None:
    ids = make_books(world, 5)
    ds = Dataset(world.context)
    books = list(ds.load_many("Library.Books", ids).values())
    new = ds.create("Library.Chapters", {"Heading": "Three"}, parent=books[0])
    with CaptureQueriesContext(connection) as captured:
        ds.load_children(books, "chapters")
        found = [[chapter.heading for chapter in book.children("Chapters")] for book in books]
    assert found == [["One", "Two", "Three"], *[["One", "Two"]] * 4]
    assert len(captured) == 1
    ds.delete(new)
    assert [chapter.heading for chapter in books[0].children("Chapters")] == ["One", "Two"]
