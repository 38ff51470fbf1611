"""Entities, collections and value types as scripts see them (spec 04, 4.2)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.dataset.dataset import Dataset
from scripts.bridge.bridge import PRELUDE
from tests.rules.cast import World, dataset, new_line, new_order
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of

ORDERS = "const orders = Domain.Crm.Sales.SalesOrdersRepository;\n"


def make_orders(world: World, count: int, lines: int = 2) -> None:
    ds = dataset(world.context)
    for number in range(count):
        order = new_order(ds, world, DocumentNo=f"{number:04d}")
        for line in range(lines):
            new_line(ds, world, order, Quantity=Decimal(line + 1), UnitPrice=Decimal(10))
    ds.commit()


def queries(api: Api, source: str) -> tuple[int, str]:
    """How many queries read entities, and the console."""
    console(api, source)  # plans and sessions are cached from now on
    with CaptureQueriesContext(connection) as captured:
        said = console(api, source)
    return sum(query["sql"].startswith("SELECT") for query in captured.captured_queries), said


def test_names_are_case_insensitive_and_entities_identical(api: Api, world: World) -> None:
    make_orders(world, 1)
    source = (
        ORDERS
        + """
        const a = orders.query()[0], b = orders.getById(a.Id), c = a.Lines[0].SalesOrder;
        console.log(a === b, a === c, a.documentno === a.DocumentNo, a.LINES.Count === a.lines.length, 'State' in a);
        console.log(a.ObjectState, a.State, a.Customer.Party === b.customer.party, a.Customer === null);
        a.documentnotes = 'x';
        console.log(b.DocumentNotes, b.ObjectState);
    """
    )
    assert console(api, source).split("\n") == ["true true true true true", "Unchanged New true false", "x Modified"]


def test_unknown_attributes_throw(api: Api, world: World) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew();
        try { book.Titel } catch (e) { console.log(e.message, e.code) }
        try { book.Titel = 1 } catch (e) { console.log(e.message, e.code) }
        try { book.ObjectVersion2 = 1 } catch (e) { console.log(e.code) }
        try { book.DisplayText = 'x' } catch (e) { console.log(e.code) }
        try { book.Chapters = [] } catch (e) { console.log(e.code) }
    """
    lines = console(api, source).split("\n")
    assert lines[0] == "Library.Books has no attribute 'Titel' 203"
    assert "Title" in lines[1]
    assert lines[2:] == ["203", "218", "218"]


def test_values_convert(api: Api, world: World) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 7, title: 'Tea', Pages: '12'});
        console.log(typeof book.Code, book.Code, book.Pages + 1, book.Title.EN, `${book.Title}`, book.Title.BG);
        book.Title = {BG: 'Чай', en: 'Tea!'};
        console.log(book.Title, book.Title.Get('bg'), book.Title.de === undefined);
        book.Title = book.Title.With('DE', 'Tee');
        console.log(book.Title);
        book.Title = 'Milk';
        console.log(book.Title.EN, book.Title.BG);
        book.Title = {FR: 'lait'};
        console.log(book.Title);
        book.Pages = null;
        console.log(book.Pages, book.Publisher, book.ObjectState);
    """
    assert console(api, source).split("\n") == [
        "string 7 13 Tea Tea undefined",
        '{"BG":"Чай","EN":"Tea!"} Чай true',
        '{"BG":"Чай","EN":"Tea!","DE":"Tee"}',
        "Milk Чай",
        '{"FR":"lait"}',
        "null null Added",
    ]


def test_collections(api: Api, world: World) -> None:
    source = """
        const books = Domain.Library.BooksRepository, chapters = Domain.Library.ChaptersRepository;
        const book = books.createNew({Code: 'B1', Title: 'Tea', Chapters: [{Heading: 'One'}]});
        chapters.createNew({Book: book, Heading: 'Two'});
        const three = book.Chapters.createNew({Heading: 'Three'});
        console.log(book.Chapters.Count, book.Chapters.length, book.Chapters[1].Heading, book.Chapters[9]);
        console.log(book.Chapters.map(c => c.Heading).join(' '), [...book.Chapters].length);
        for (const chapter of book.Chapters) chapter.Heading += '.';
        const seen = []; book.Chapters.forEach((c, i) => seen.push(i + c.Heading)); console.log(seen.join(' '));
        book.Chapters.Delete(three);
        console.log(book.Chapters.filter(c => c.Heading !== 'One.').map(c => c.Heading), three.ObjectState);
        Transaction.commit();
        console.log(book.ObjectState, book.Chapters.Count, books.getById(book.Id) === book);
        book.Chapters[0].Delete();
        console.log(book.Chapters.Count);
        book.Chapters.DeleteAll();
        Transaction.commit();
        console.log(book.Chapters.Count, chapters.query().length);
        book.Delete();
        console.log(book.ObjectState, books.query().length);
        Transaction.commit();
        try { book.Code = 'x' } catch (e) { console.log(e.code) }
        try { book.Chapters.push(1) } catch (e) { console.log(e instanceof TypeError) }
    """
    assert console(api, source).split("\n") == [
        "3 3 Two undefined",
        "One Two Three 3",
        "0One. 1Two. 2Three.",
        '["Two."] Deleted',
        "Unchanged 2 true",
        "1",
        "0 0",
        "Deleted 0",
        "231",
        "true",
    ]


def test_references_are_prefetched_for_whole_lists(api: Api, world: World) -> None:
    source = (
        ORDERS + "for (const o of orders.query()) { o.DocumentNo; o.Customer.Party.PartyName.EN; o.DocumentType.Code }"
    )
    make_orders(world, 2)
    few, _ = queries(api, source)
    make_orders(world, 0)
    ds = dataset(world.context)
    for number in range(30):
        new_order(ds, world, DocumentNo=f"X{number}")
    ds.commit()
    many, _ = queries(api, source)
    assert many == few


def test_children_and_measures_are_prefetched_for_whole_lists(api: Api, world: World) -> None:
    source = (
        ORDERS
        + """
        let text = '';
        for (const o of orders.query()) for (const l of o.Lines)
            text = `${l.Quantity} ${l.Product.PartNumber} ${l.UnitPrice}`;
        console.log(text)
    """
    )
    make_orders(world, 2)
    few, said = queries(api, source)
    assert said == "2 pcs P1 10 EUR"
    ds = dataset(world.context)
    for number in range(20):
        order = new_order(ds, world, DocumentNo=f"X{number}")
        new_line(ds, world, order, Quantity=Decimal(2), UnitPrice=Decimal(10))
    ds.commit()
    many, _ = queries(api, source)
    assert many == few


def test_long_lists_are_prefetched_in_parts(api: Api, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer for ten thousand orders' lines would be a burden to everybody."""
    monkeypatch.setattr("scripts.services.PRELUDE", PRELUDE.replace("PREFETCHED = 1000;", "PREFETCHED = 4;"))
    ds = Dataset(world.context)
    for number in range(12):
        book = ds.create("Library.Books", {"Code": f"B{number:02d}", "Title": {"EN": "Tea"}, "Publisher": world.party})
        ds.create("Library.Chapters", {"Heading": "h"}, parent=book)
    ds.commit()
    source = """
        const found = Domain.Library.BooksRepository.query(null, {fetch: %d, orderBy: 'Code'});
        let count = found[found.length - 1].Chapters.length; // its part begins with it and goes on at the list's start
        for (const book of found) count += book.Chapters.length;
        console.log(count, found[0].Publisher === found[found.length - 1].Publisher);
    """
    one_part, said = queries(api, source % 4)
    assert said == "5 true"
    two_parts, _ = queries(api, source % 8)
    three_parts, said = queries(api, source % 12)
    assert said == "13 true"
    assert three_parts - two_parts == two_parts - one_part > 0


def test_display_texts_are_read_together(api: Api, world: World) -> None:
    ds = Dataset(world.context)
    for number in range(20):
        ds.create("Library.Books", {"Code": f"B{number:02d}", "Title": {"EN": "Tea"}})
    ds.commit()
    source = """
        const found = Domain.Library.BooksRepository.query(null, {orderBy: 'Code', fetch: %d});
        console.log(found.map(book => book.DisplayText)[1], `${found[0]}`);
        found[0].Title = 'Milk';
        console.log(found[0].DisplayText);
    """
    few, said = queries(api, source % 2)
    assert said == "B01: Tea B00: Tea\nB00: Milk"
    many, _ = queries(api, source % 20)
    assert many == few


def test_amounts_and_quantities(api: Api, world: World) -> None:
    make_orders(world, 1, lines=1)
    source = (
        ORDERS
        + """
        const line = orders.query()[0].Lines[0];
        console.log(line.UnitPrice, `${line.Quantity}`, line.UnitPrice.Currency, line.UnitPrice.Value);
        line.UnitPrice = 12.5;
        console.log(`${line.UnitPrice}`);
        line.UnitPrice = {Value: 13, Currency: 'EUR'};
        line.Quantity = Domain.Types.Quantity.Multiply(line.Quantity, 3);
        console.log(`${line.UnitPrice} ${line.Quantity}`);
        try { line.UnitPrice = new Domain.Types.Amount(1, 'USD') } catch (e) { console.log(e.type) }
        Transaction.commit();
        console.log(`${line.LineAmount}`);
    """
    )
    lines = console(api, source).split("\n")
    assert lines[0] == '{"Value":10,"Currency":"EUR"} 1 pcs EUR 10'
    assert lines[1:3] == ["12.5 EUR", "13 EUR 3 pcs"]
    assert lines[3] == "CurrencyMismatch"
    assert lines[4] == "39 EUR"


def test_arithmetic(api: Api) -> None:
    source = """
        const {Amount, Quantity, MultilanguageString} = Domain.Types;
        const a = new Amount(0.1, 'EUR'), b = Amount(0.2, 'EUR');
        console.log(`${Amount.Add(a, b)}`, `${a.Subtract(b)}`, `${Amount.Multiply(a, 3)}`, `${Amount.Divide(b, 4)}`);
        console.log(Quantity.Divide(new Quantity(6, 'kg'), new Quantity(4, 'kg')), a < b, Amount.Compare(a, b));
        console.log(`${Amount.Sum([a, b, a])}`, `${Amount.Round(new Amount(1.005, 'EUR'), 2)}`,
            Amount.Equals(a, {Value: 0.1, Currency: 'EUR'}));
        a.Value = 5;
        console.log(a.Value, Object.isFrozen(a), Object.isFrozen(new MultilanguageString('x')));
        try { Amount.Add(a, new Amount(1, 'USD')) } catch (e) { console.log(e.message) }
        try { Quantity.Add(new Quantity(1, 'kg'), new Quantity(1, 'm')) } catch (e) { console.log(e.message) }
        console.log(`${Amount.Add(a, new Amount(1, 'eur'))}`, Amount.Equals(a, new Amount(0.1, 'Eur')));
        try { Amount.Divide(a, 0) } catch (e) { console.log(e.message) }
        try { new Amount('x') } catch (e) { console.log(e.message) }
    """
    assert console(api, source).split("\n") == [
        "0.3 EUR -0.1 EUR 0.3 EUR 0.05 EUR",
        "1.5 true -1",
        "0.4 EUR 1.01 EUR true",
        "0.1 true true",
        "Amounts in EUR and USD cannot be combined",
        "Quantities in kg and m cannot be combined",
        "1.1 EUR true",
        "Amount divided by zero",
        "Amount needs a number, not x",
    ]


def test_operations_are_methods(api: Api, world: World) -> None:
    make_orders(world, 1)
    source = (
        ORDERS
        + """
        const order = orders.query()[0];
        order.ChangeState('Released');
        console.log(order.State, order.ObjectState);
        try { order.ChangeState('Nowhere') } catch (e) { console.log(e.code) }
        const copy = order.CreateCopy();
        console.log(copy.ObjectState, copy.Lines.Count, copy === order);
        order.MakeVoid({reason: 'wrong'});
        console.log(order.Void, order.VoidReason);
        try { order.ChangeState() } catch (e) { console.log(e.code, e.message) }
    """
    )
    lines = console(api, source).split("\n")
    assert lines[:4] == ["Released Modified", "209", "Added 2 false", "true wrong"]
    assert lines[4].startswith("208")


def test_entities_can_be_looked_through(api: Api, world: World) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'});
        console.log(JSON.parse(JSON.stringify(book)).Code, Object.keys(book).includes('Title'), 'Nope' in book);
        const {Code, Pages} = book;
        console.log(Code, Pages, {...book}.Code);
        Promise.resolve(book).then(each => console.log(each === book));
    """
    assert console(api, source).split("\n") == ["B1 true false", "B1 null B1", "true"]


def test_initial_values_are_all_or_nothing(api: Api, world: World) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        try { books.createNew({Code: 'B1', Title: 'Tea', Pages: 'x'}) } catch (e) { console.log(e.code) }
        Transaction.commit();
        console.log(books.query().length);
    """
    assert console(api, source) == "209\n0"


def test_a_refused_commit_leaves_what_was_pending(api: Api, world: World) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 'B1'});
        try { Transaction.commit() } catch (e) { console.log(e.code, e.type) }
        console.log(book.ObjectState);
        book.Title = 'Tea';
        Transaction.commit();
        console.log(book.ObjectState, book.ObjectVersion);
    """
    assert console(api, source).split("\n")[1:] == ["Added", "Unchanged 1"]


def test_after_a_rollback_entities_are_as_stored(api: Api, world: World) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        const book = books.createNew({Code: 'B1', Title: 'Tea', Chapters: [{Heading: 'One'}]});
        Transaction.commit();
        book.Title = 'Milk';
        book.Chapters.createNew({Heading: 'Two'});
        Transaction.rollback();
        console.log(book.Title.EN, book.Chapters.Count, book.ObjectState, book === books.getById(book.Id));
        book.Title = 'Water';
        Transaction.commit();
        console.log(book.Title.EN);
    """
    assert console(api, source).split("\n") == ["Tea 1 Unchanged true", "Water"]


def test_in_the_frontend_model_dependents_follow_at_once(api: Api, world: World) -> None:
    make_orders(world, 1, lines=1)
    inside = api.begin(model="frontend")
    source = (
        ORDERS
        + """
        const line = orders.query()[0].Lines[0];
        line.UnitPrice = 4;
        console.log(`${line.LineAmount}`);
    """
    )
    assert console(inside, source) == "4 EUR"


@pytest.mark.parametrize(
    "source",
    [
        "Domain.Library.BooksRepository.createNew('x')",
        "Domain.Library.BooksRepository.createNew({'@odata.id': 'x'})",
        "Domain.Library.BooksRepository.createNew({Id: 'x'})",
        "Domain.Library.BooksRepository.createNew({Publisher: 'x'})",
        "Domain.Library.ChaptersRepository.createNew({Book: 'x'})",
        "Domain.General.Contacts.PartiesRepository.createNew()",
        "Domain.Library.BooksRepository.getByIdList([null])",
        "Domain.Library.BooksRepository.createNew({Code: {deep: [1]}})",
        "Action.notify.user('x', 'hello')",
        "Domain.Library.BooksRepository.createNew().CreateCopy(1, 2)",
        "Action.http.get('http://x', 'y')",
    ],
)
def test_nonsense_is_refused_cleanly(api: Api, source: str) -> None:
    error = error_of(execute(api, source))
    assert error["type"] != "InternalError", error


def test_after_a_rollback_lists_do_without_what_was_never_stored(api: Api, world: World) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        books.createNew({Code: 'B1', Title: 'Tea', Chapters: [{Heading: 'One'}]});
        Transaction.commit();
        books.createNew({Code: 'B2', Title: 'Tea'});
        const [stored, lost] = books.query(null, {orderBy: 'Code'});
        Transaction.rollback();
        console.log(stored.DisplayText, stored.Chapters.Count, stored.Publisher, stored.Code);
        console.log(lost.ObjectState, lost.Code, lost.Chapters.Count);
        try { lost.Code = 'x' } catch (e) { console.log(e.code) }
    """
    assert console(api, source).split("\n") == ["B1: Tea 1 null B1", "Deleted B2 0", "231"]
