"""A script may do what its caller may do, and sees what its caller sees (spec 01, 1.7; 04, 4.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from foundation import errors
from identity.context import CallContext, Lineage, Operation
from scripts.services import script_run
from tests.rules.cast import World

BOOKS = "Library.Books"
CHAPTERS = "Library.Chapters"
COMPANIES = "General.Contacts.Companies"


@dataclass(frozen=True)
class Rights:
    """Operations by repository (letters of create, read, update, delete), and read and write policies."""

    letters: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    write: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return repr((self.letters, self.read, self.write))

    def allows(self, repository: str, operation: Operation) -> bool:
        return operation[0] in self.letters.get(repository, "")

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        found = (self.read if operation == "read" else self.write).get(repository)
        return (found,) if found else ()

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """As of one role."""
        found = tuple(self.policies(*member) for member in lineage)
        return (found,) if any(found) else ()


def caller(world: World, rights: Rights) -> CallContext:
    user = world.context.user
    assert user is not None
    return dataclasses.replace(world.context, permissions=rights, user=dataclasses.replace(user, is_admin=False))


def run(world: World, rights: Rights, source: str) -> str:
    return script_run(source, Dataset(caller(world, rights)), kind="Command").console


@pytest.fixture
def library(world: World) -> World:
    ds = Dataset(world.context)
    for code, pages, publisher in (("A1", 100, world.party), ("A2", 200, None), ("A3", 300, world.party)):
        book = ds.create(BOOKS, {"Code": code, "Title": {"EN": code}, "Pages": pages, "Publisher": publisher})
        for heading in ("One", "Secret"):
            ds.create(CHAPTERS, {"Heading": heading}, parent=book)
    ds.commit()
    return world


ALL = {BOOKS: "crud", CHAPTERS: "crud", COMPANIES: "r"}


def test_row_policies_narrow_queries_and_keys(library: World, fresh_process: None) -> None:
    rights = Rights(ALL, read={BOOKS: "Pages le 200"})
    hidden = Dataset(library.context).find_one(BOOKS, code="A3")
    assert hidden is not None
    source = f"""
        const books = Domain.Library.BooksRepository;
        console.log(books.query().map(b => b.Code).sort(), books.query({{Code: 'A3'}}).length,
            books.query(null, {{filter: "Pages gt 0"}}).length);
        console.log(books.getById('{hidden.id}'), books.getByIdList(['{hidden.id}']).length);
        console.log(Domain.Library.ChaptersRepository.query({{Book: '{hidden.id}'}}).length);
    """
    assert run(library, rights, source).split("\n") == ['["A1","A2"] 0 2', "null 0", "0"]


def test_row_policies_hold_for_pending_changes(library: World, fresh_process: None) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        books.createNew({Code: 'B1', Title: 'x', Pages: 10});
        books.createNew({Code: 'B2', Title: 'x', Pages: 1000});
        console.log(books.query().map(b => b.Code).sort());
    """
    assert run(library, Rights(ALL, read={BOOKS: "Pages le 200"}), source) == '["A1","A2","B1"]'


def test_row_policies_narrow_collections(library: World, fresh_process: None) -> None:
    source = """
        const books = Domain.Library.BooksRepository.query();
        console.log(books.map(b => b.Chapters.map(c => c.Heading).join('+')).join(' '));
    """
    rights = Rights(ALL, read={CHAPTERS: "Heading ne 'Secret'"})
    assert run(library, rights, source) == "One One One"


def test_row_policies_hide_what_references_lead_to(library: World, fresh_process: None) -> None:
    source = "console.log(Domain.Library.BooksRepository.query({Code: 'A1'})[0].Publisher)"
    for rights in (Rights(ALL, read={COMPANIES: "PartyCode eq 'none'"}), Rights({BOOKS: "r"})):
        assert run(library, rights, source) == "null"


@pytest.mark.parametrize(
    "letters, source",
    [
        ({}, "Domain.Library.BooksRepository.query()"),
        ({}, "Domain.Library.BooksRepository.getById('00000000-0000-4000-8000-000000000000')"),
        ({BOOKS: "r"}, "Domain.Library.BooksRepository.createNew()"),
        ({BOOKS: "r"}, "Domain.Library.BooksRepository.query()[0].Pages = 1"),
        ({BOOKS: "r"}, "Domain.Library.BooksRepository.query()[0].Delete()"),
        ({BOOKS: "ru"}, "Domain.Library.BooksRepository.query()[0].Chapters.length"),
        ({BOOKS: "ru", CHAPTERS: "r"}, "Domain.Library.BooksRepository.query()[0].Chapters[0].Heading = 'x'"),
        ({BOOKS: "ru", CHAPTERS: "r"}, "Domain.Library.BooksRepository.query()[0].Chapters.DeleteAll()"),
        ({BOOKS: "ru", CHAPTERS: "r"}, "Domain.Library.BooksRepository.query()[0].Chapters.createNew()"),
        ({BOOKS: "r"}, "Domain.Library.BooksRepository.query()[0].CreateCopy()"),
    ],
)
def test_what_the_caller_may_not_do_is_forbidden(
    library: World, fresh_process: None, letters: dict[str, str], source: str
) -> None:
    with pytest.raises(errors.Forbidden):
        run(library, Rights(letters), source)


def test_row_policies_hold_for_writing(library: World, fresh_process: None) -> None:
    rights = Rights(ALL, write={BOOKS: "Pages le 200"})
    source = """
        const book = (code) => Domain.Library.BooksRepository.query({Code: code})[0];
        book('A1').Title = 'new';
        try { book('A3').Title = 'new' } catch (e) { console.log(e.code) }
        try { book('A3').Delete() } catch (e) { console.log(e.code) }
        Transaction.commit();
        console.log(book('A1').Title.EN, book('A3').Title.EN);
    """
    assert run(library, rights, source).split("\n") == ["111", "111", "new A3"]


def test_forged_handles_lead_nowhere(library: World) -> None:
    """Should a script ever get at the bridge's calls, it can name nothing that it was not shown."""
    from scripts.bridge.bridge import Bridge, Refusal

    bridge = Bridge(Dataset(caller(library, Rights(ALL))), deadline=0)
    forged: tuple[Any, ...] = (0, -1, 10**9, "x", None, True, 1.5, [], {})
    for handle in forged:
        for method in ("set", "delete", "deleteChild"):
            with pytest.raises(Refusal):
                bridge.call(method, [handle, "Code", "x"][: 1 if method == "delete" else 3])
        for method in ("refresh", "display"):
            with pytest.raises(Refusal):
                bridge.call(method, [[handle]])
