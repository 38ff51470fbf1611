"""`repository.query` with each operator and option (spec 04, 4.2), against real rows."""

from __future__ import annotations

import json

import pytest

from domain.dataset.dataset import Dataset
from tests.rules.cast import World
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of

BOOKS = (
    ("A1", {"EN": "Green tea", "BG": "Зелен чай"}, 100),
    ("A2", {"EN": "Black tea"}, 200),
    ("B1", {"EN": "Coffee"}, None),
    ("B2", {"EN": "100% milk*"}, 50),
)


@pytest.fixture
def books(world: World) -> list[str]:
    """Four books; the first is published by the world's party."""
    ds = Dataset(world.context)
    made = [ds.create("Library.Books", {"Code": code, "Title": title, "Pages": pages}) for code, title, pages in BOOKS]
    ds.set(made[0], "Publisher", world.party)
    ds.commit()
    return [record.id for record in made]


@pytest.mark.parametrize(
    "filter, codes",
    [
        ("{}", "A1 A2 B1 B2"),
        ("undefined", "A1 A2 B1 B2"),
        ("{Code: 'A1'}", "A1"),
        ("{code: 'A1'}", "A1"),
        ("{CODE: {equals: 'A1'}}", "A1"),
        ("{Pages: 100}", "A1"),
        ("{Pages: '100'}", "A1"),
        ("{Pages: null}", "B1"),
        ("{Code: {in: ['A1', 'B2', 'ZZ']}}", "A1 B2"),
        ("{Code: {in: []}}", ""),
        ("{Pages: {in: [100, null]}}", "A1 B1"),
        ("{Pages: {greaterthanorequal: 100}}", "A1 A2"),
        ("{Pages: {lessthanorequal: 100}}", "A1 B2"),
        ("{Pages: {greaterThanOrEqual: 60, lessThanOrEqual: 150}}", "A1"),
        ("{Pages: [{greaterthanorequal: 60}, {lessthanorequal: 150}]}", "A1"),
        ("{Pages: [{greaterthanorequal: 150}, {includeNulls: true}]}", "A2 B1"),
        ("{Pages: {lessthanorequal: 60, includeNulls: true}}", "B1 B2"),
        ("{Code: {startswith: 'A'}}", "A1 A2"),
        ("{Code: {endswith: '1'}}", "A1 B1"),
        ("{Title: {contains: 'tea'}}", "A1 A2"),
        ("{Title: {contains: 'чай'}}", "A1"),
        ("{Title: 'Coffee'}", "B1"),
        ("{Title: {like: '*TEA'}}", "A1 A2"),
        ("{Title: {like: 'bl%tea'}}", "A2"),
        ("{Title: {like: '*b*l*a*c*k*t*a*'}}", "A2"),
        ("{Title: {like: '*t*e*a*b*l*'}}", ""),
        ("{Title: {like: '%_lack tea'}}", "A2"),
        ("{Code: {like: '?1'}}", "A1 B1"),
        ("{Code: {like: '_'}}", ""),
        (r"{Code: {like: '\\\\_1'}}", ""),
        ("{Code: {like: 'a1'}}", "A1"),
        ("{Code: {like: '*'}}", "A1 A2 B1 B2"),
        ("{Code: 'A1', Pages: 200}", ""),
        ("{Publisher: null, Code: {startswith: 'A'}}", "A2"),
        ('{Code: "it\'s"}', ""),
    ],
)
def test_filters(api: Api, books: list[str], filter: str, codes: str) -> None:
    source = f"""
        const found = Domain.Library.BooksRepository.query({filter}, {{orderBy: 'Code'}});
        console.log(found.map(book => book.Code).join(' '))
    """
    assert console(api, source) == codes


def test_entities_and_guids_stand_for_references(api: Api, books: list[str], world: World) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        const publisher = books.query({Code: 'A1'})[0].Publisher;
        const codes = (filter) => books.query(filter).map(book => book.Code).join(' ');
        console.log(codes({Publisher: publisher}), codes({Publisher: {in: [publisher]}}),
            codes({Publisher: publisher.Id}))
    """
    assert console(api, source) == "A1 A1 A1"


def test_dates_are_given_as_date_or_text(api: Api, world: World) -> None:
    source = """
        const orders = Domain.Crm.Sales.SalesOrdersRepository;
        const type = Domain.Systems.Documents.DocumentTypesRepository.query({Code: 'SO'})[0];
        const customer = Domain.Crm.Sales.CustomersRepository.query()[0];
        const company = Domain.General.EnterpriseCompaniesRepository.query()[0];
        const order = orders.createNew({DocumentType: type, EnterpriseCompany: company, Customer: customer,
            DocumentDate: new Date('2024-05-17')});
        Transaction.commit();
        const count = (filter) => orders.query(filter).length;
        console.log(order.DocumentDate.toISOString(), count({DocumentDate: '2024-05-17'}),
            count({DocumentDate: new Date('2024-05-17')}), count({DocumentDate: {greaterthanorequal: '2024-05-18'}}),
            count({State: 'New'}), count({State: 0}), count({State: 'Released'}), count({Void: false}));
    """
    assert console(api, source) == "2024-05-17T00:00:00.000Z 1 1 0 1 1 0 1"


def test_custom_properties_are_found_by_their_api_name(api: Api, world: World) -> None:
    api.create(
        "Systems_Bpm_CustomProperties",
        {"Code": "shelf no", "Name": {"EN": "Shelf"}, "EntityName": "Library_Books", "PropertyType": "Text"},
    )
    source = """
        const books = Domain.Library.BooksRepository;
        const book = books.createNew({Code: 'C1', Title: 'Cake'});
        book.CustomProperties['shelf no'] = 'K 7';
        books.createNew({Code: 'C2', Title: 'Cake'});
        Transaction.commit();
        const found = books.query({CustomProperty_shelf_u0020no: 'K 7'});
        console.log(found.length, found[0] === book, book.CustomProperties['shelf no'].Value,
            `${book.CustomProperty_shelf_u0020no}`, book.CustomProperties['none']);
        book.CustomProperties['shelf no'] = new Domain.Types.CustomPropertyValue('L 8');
        console.log(book.CustomProperties['shelf no'].Value, Object.keys(book.CustomProperties));
        book.CustomProperties['shelf no'] = null;
        console.log(book.CustomProperties['shelf no']);
        try { book.CustomProperties['shelv'] = 1 } catch (e) { console.log(e.code) }
    """
    from foundation import cache_versions

    cache_versions.expire()
    assert console(api, source).split("\n") == ["1 true K 7 K 7 null", 'L 8 ["shelf no"]', "null", "203"]


CUSTOM_TYPES: list[tuple[str, dict[str, str], str, str, dict[str, str]]] = [
    (
        "Date",
        {},
        "'2024-02-29'",
        "'2024-03-01'",
        {
            "'2024-02-29'": "D1",
            "new Date('2024-02-29')": "D1",
            "{greaterthanorequal: new Date('2024-03-01T00:00:00Z')}": "D2",
            "{lessthanorequal: '2024-02-29'}": "D1",
            "{in: ['2024-02-29', '2024-03-01']}": "D1 D2",
            "{lessthanorequal: '2024-02-29', includeNulls: true}": "D1 D3",
            "null": "D3",
        },
    ),
    (
        "DateTime",
        {},
        "'2024-02-29T10:00:00Z'",
        "'2024-02-29T10:00:00.5Z'",
        {
            "'2024-02-29T12:00:00+02:00'": "D1",
            "new Date('2024-02-29T10:00:00Z')": "D1",
            "{greaterthanorequal: new Date('2024-02-29T10:00:00.250Z')}": "D2",
        },
    ),
    ("Boolean", {}, "true", "false", {"true": "D1", "false": "D2", "'true'": "D1", "{in: [true, false]}": "D1 D2"}),
    (
        "Number",
        {},
        "5",
        "10.50",
        {"5": "D1", "5.0": "D1", "'5.00'": "D1", "{greaterthanorequal: 9}": "D2", "{in: [10.5, null]}": "D2 D3"},
    ),
    ("Text", {}, "'5'", "'true'", {"5": "D1", "'5'": "D1", "'true'": "D2", "{contains: 'ru'}": "D2"}),
    (
        "Reference",
        {"AllowedValuesEntityName": "Library_Books"},
        "'A1'",
        "'A2'",
        {
            "'A1'": "D1",
            "books.query({Code: 'A1'})[0]": "D1",
            "books.query({Code: 'A2'})[0].Id": "D2",
            "books.query({Code: 'D1'})[0].CustomProperties['p']": "D1",
            "{in: [books.query({Code: 'A1'})[0], 'A2']}": "D1 D2",
            "{equals: null}": "A1 A2 B1 B2 D3",
        },
    ),
]


@pytest.mark.parametrize("kind, others, first, second, found", CUSTOM_TYPES, ids=[each[0] for each in CUSTOM_TYPES])
def test_custom_properties_of_each_type(
    api: Api,
    books: list[str],
    kind: str,
    others: dict[str, str],
    first: str,
    second: str,
    found: dict[str, str],
) -> None:
    from foundation import cache_versions

    definition = {"Code": "p", "Name": {"EN": "P"}, "EntityName": "Library_Books", "PropertyType": kind, **others}
    api.create("Systems_Bpm_CustomProperties", definition)
    cache_versions.expire()
    make = f"""
        const books = Domain.Library.BooksRepository;
        const made = ['D1', 'D2', 'D3'].map(code => books.createNew({{Code: code, Title: 'T'}}));
        made[0].CustomProperties['p'] = {first};
        made[1].CustomProperties['p'] = {second};
        Transaction.commit();
    """
    console(api, make)
    listed = ", ".join(found)
    source = f"""
        const books = Domain.Library.BooksRepository;
        for (const value of [{listed}]) {{
            let codes;
            try {{
                const rows = books.query({{CustomProperty_p: value}}, {{orderBy: 'Code'}});
                codes = rows.map(book => book.Code).filter(code => {json.dumps(kind)} == 'Reference' || code >= 'D');
                console.log(codes.join(' '));
            }} catch (error) {{ console.log(error.message) }}
        }}
    """
    assert dict(zip(found, console(api, source).split("\n"), strict=True)) == found


def test_options(api: Api, books: list[str]) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        const codes = (filter, options) => books.query(filter, options).map(book => book.Code).join(' ');
        console.log(codes(null, {orderBy: 'Code desc', fetch: 2}));
        console.log(codes({Code: {startswith: 'A'}}, {filter: "Pages gt 100 or Pages eq null"}));
        console.log(codes(null, {filter: "contains(Title,'milk')", orderBy: ['Pages', 'Code']}));
        console.log(codes(null, {fetch: 0}) === '');
    """
    assert console(api, source).split("\n") == ["B2 B1", "A2", "B2", "true"]


@pytest.mark.parametrize(
    "call, code",
    [
        ("query({Nope: 1})", 203),
        ("query({Pages: {near: 1}})", 201),
        ("query({Pages: 'many'})", 209),
        ("query(5)", 201),
        ("query(null, {top: 5})", 201),
        ("query(null, {fetch: 'x'})", 201),
        ("query(null, {filter: 'Pages gt'})", 201),
        ("query(null, {filter: 'Nope eq 1'})", 203),
        ("query(null, {orderBy: 'Nope'})", 203),
        ("query({Publisher: 'x'})", 209),
        ("getById('x')", 213),
        ("getByIdList(['x'])", 213),
    ],
)
def test_what_means_nothing_is_said(api: Api, call: str, code: int) -> None:
    error = error_of(execute(api, f"Domain.Library.BooksRepository.{call}"))
    assert error["code"] == code, error
    assert "line 1" in error["info"]


def test_an_unknown_repository_is_answered_with_near_names(api: Api) -> None:
    error = error_of(execute(api, "Domain.Library.BoksRepository.query()"))
    assert error["code"] == 205
    assert "Library.Books" in error["message"]


def test_by_id(api: Api, books: list[str]) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    source = f"""
        const books = Domain.Library.BooksRepository;
        const ids = {json.dumps(books)};
        console.log(books.getById(ids[1]).Code, books.getById(ids[1].toUpperCase()).Code, books.getById('{missing}'));
        console.log(books.getByIdList(ids[2] + ', ' + ids[0]).map(b => b.Code),
            books.getByIdList([ids[1], '{missing}']).length);
    """
    assert console(api, source).split("\n") == ["A2 A2 null", '["B1","A1"] 1']


def test_at_most_ten_thousand_rows_come(
    api: Api, world: World, monkeypatch: pytest.MonkeyPatch, books: list[str]
) -> None:
    monkeypatch.setattr("scripts.bridge.queries.MAX_ROWS", 3)
    error = error_of(execute(api, "Domain.Library.BooksRepository.query(null, {fetch: 5})"))
    assert error["type"] == "ScriptLimitExceeded"
    assert "rows" in error["message"]


def test_a_query_that_the_database_refuses_leaves_the_transaction_usable(api: Api, books: list[str]) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        try { books.query(null, {filter: 'Pages div 0 eq 1'}) } catch (e) { }
        try { books.query(null, {filter: "Pages add 2147483647 mul 2147483647 mul 2147483647 gt 1"}) } catch (e) { }
        console.log(books.query().length);
    """
    assert console(api.begin(), source) == "4"
