"""spec 02 The Domain API as OData: reading"""

from __future__ import annotations

import base64
import re
import secrets
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest

from tests.acceptance.caller import ODATA, Caller, answered, error_of, id_of
from tests.acceptance.objects import COMPANY, CUSTOMER, GROUPS, LINES, ORDERS, PRODUCT, PRODUCTS, Maker
from tests.acceptance.statements import statement

PARTIES = "General_Contacts_Parties"
GUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"


@pytest.fixture(scope="module")
def order(service: Caller) -> Iterator[str]:
    """An order with two lines, read by all tests and changed by none."""
    mark = secrets.token_hex(4).upper()
    with Maker.of(service, mark) as make:
        product = {"Product@odata.bind": PRODUCT, "UnitPrice": {"Value": 10.10, "Currency": "EUR"}}
        yield make.order(
            DocumentDate="2026-02-03",
            DocumentNotes=f"order {mark}",
            Lines=[{**product, "Quantity": {"Value": value, "Unit": "pcs"}} for value in (1, 2.5)],
        )


@pytest.fixture(scope="module")
def named(service: Caller) -> Iterator[str]:
    """The mark of three groups with names to search for."""
    mark = secrets.token_hex(4).upper()
    with Maker.of(service, mark) as make:
        for letter, words in (("A", "red oak"), ("B", "blue oak"), ("C", "oak red")):
            make.new(GROUPS, {"Code": f"{letter}-{mark}", "Name": {"EN": f"{words} {mark}", "BG": f"дъб{letter}"}})
        yield mark


class TestPaths:
    @pytest.mark.parametrize(
        "path, key",
        [("Set(key)", "({guid})"), ("Set(Id=key)", "(Id={guid})"), ("Set('key'), quoted", "('{guid}')")],
    )
    @statement("spec 2.2", "{path} is the entity")
    def test_key(self, service: Caller, path: str, key: str) -> None:
        found = service.read(f"{PRODUCTS}{key.format(guid=id_of({'@odata.id': PRODUCT}))}")
        assert found["@odata.id"] == PRODUCT

    @statement("spec 2.2", "Set is a collection: @odata.context and value, an array")
    def test_set(self, service: Caller) -> None:
        answer = service.read(f"{PRODUCTS}?$top=2")
        assert answer["@odata.context"].endswith(f"{ODATA}$metadata#{PRODUCTS}")
        assert len(answer["value"]) == 2

    @statement("spec 2.2", "Set/$count and Nav/$count are plain numbers, with $filter too")
    def test_count(self, service: Caller, order: str) -> None:
        answer = answered(service.get(f"{order}/Lines/$count"), 200)
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert service.count(f"{order}/Lines") == 2
        assert answered(service.get(f"{order}/Lines/$count?$filter=LineNo eq 10"), 200).text.endswith("1")
        assert service.count(PRODUCTS) > 0

    @statement("spec 2.2", "Set(key)/Prop is the value with its context, Set(key)/Prop/$value the bare value")
    def test_property(self, service: Caller) -> None:
        answer = service.read(f"{PRODUCT}/PartNumber")
        assert answer["value"] == "CH-0001"
        assert answer["@odata.context"].endswith(f"$metadata#{PRODUCT}/PartNumber")
        raw = answered(service.get(f"{PRODUCT}/PartNumber/$value"), 200)
        assert raw.headers["Content-Type"].startswith("text/plain")
        assert raw.content.decode("utf-8-sig") == "CH-0001"

    @statement("spec 2.2", "Set(key)/Nav is the entity referred to; a collection's Nav its members")
    def test_navigation(self, service: Caller, order: str) -> None:
        assert service.read(f"{order}/Customer")["@odata.id"] == CUSTOMER
        assert len(service.rows(f"{order}/Lines")) == 2

    @statement("spec 2.2", "Set(key)/Nav/$ref is the reference alone, of a collection the references")
    def test_ref(self, service: Caller, order: str) -> None:
        one = service.read(f"{order}/Customer/$ref")
        assert one["@odata.id"] == CUSTOMER
        assert set(one) == {"@odata.context", "@odata.id"}
        for member in service.rows(f"{order}/Lines/$ref"):
            assert list(member) == ["@odata.id"]

    @statement("spec 2.2", "Navigation chains: Set(key)/Nav/Nav/Prop, and to a member of a collection by its key")
    def test_chained(self, service: Caller, order: str) -> None:
        assert service.read(f"{order}/Customer/DefaultCurrency/CurrencySign")["value"] == "EUR"
        line = service.rows(f"{order}/Lines?$top=1")[0]
        assert service.read(f"{order}/Lines({id_of(line)})/Product")["@odata.id"] == PRODUCT

    @statement("spec 2.2", "A type-cast segment narrows a collection to a derived type, and types an entity")
    def test_cast(self, service: Caller) -> None:
        companies = service.count(f"{PARTIES}/Erp.General_Contacts_Company")
        assert 0 < companies < service.count(PARTIES)
        party = service.rows(f"{PARTIES}/Erp.General_Contacts_Company?$top=1")[0]
        path = f"{PARTIES}({id_of(party)})/Erp.General_Contacts_Company"
        assert "RegistrationNumber" in service.read(path)
        assert service.get(f"{PARTIES}({id_of(party)})/Erp.General_Contacts_Person").status_code == 404

    @statement("spec 2.2", "An unknown key is a 404; one that is no guid a 400 or 404, never a 500")
    def test_unknown_key(self, service: Caller) -> None:
        error_of(service.get(f"{PRODUCTS}(00000000-0000-0000-0000-0000000000ff)"), 404)
        error_of(service.get(f"{PRODUCTS}(x)"), 400, 404)

    @statement("spec 2.2", "A path through a null reference is 204")
    def test_null(self, service: Caller, order: str) -> None:
        assert answered(service.get(f"{order}/ReturnForSalesOrder"), 204).content == b""


class TestRepresentation:
    @statement("spec 2.2", "An entity has @odata.context and its relative @odata.id, Set(guid)")
    def test_id(self, service: Caller, order: str) -> None:
        answer = service.read(order)
        assert answer["@odata.context"].endswith(f"{ODATA}$metadata#{ORDERS}/$entity")
        assert re.fullmatch(rf"{ORDERS}\({GUID}\)", answer["@odata.id"])

    @statement("spec 2.2", "@odata.etag is there for aggregate roots and not for children")
    def test_etag(self, service: Caller, order: str) -> None:
        assert re.fullmatch(r'W/".+"', service.read(order)["@odata.etag"])
        (line, *_) = service.rows(f"{order}/Lines")
        assert "@odata.etag" not in line

    @statement("spec 2.2", "By default there are no Id, calculated attributes, custom properties, child collections")
    def test_defaults(self, make: Maker) -> None:
        make.text_property(PRODUCTS)
        found = make.caller.read(PRODUCT)
        assert not {"Id", "DisplayText", "Prices", "Codes"} & set(found)
        assert not [name for name in found if name.startswith("CustomProperty_")]

    @statement("spec 2.2", "By default a reference is {'@odata.id': 'Set(guid)'}, or null")
    def test_references(self, service: Caller, order: str) -> None:
        found = service.read(order)
        assert found["Customer"] == {"@odata.id": CUSTOMER}
        assert found["EnterpriseCompany"] == {"@odata.id": COMPANY}
        assert found["ReturnForSalesOrder"] is None

    @pytest.mark.parametrize("name", ["Id", "DisplayText"])
    @statement("spec 2.2", "What is left out by default comes when named in $select: {name}")
    def test_named(self, service: Caller, name: str) -> None:
        found = service.read(f"{PRODUCT}?$select={name}")
        assert {each for each in found if not each.startswith("@")} == {name}

    @statement("spec 2.2", "A custom property comes when it is named in $select")
    def test_custom_property(self, make: Maker) -> None:
        name = f"CustomProperty_{make.text_property(PRODUCTS)}"
        assert make.caller.read(f"{PRODUCT}?$select={name}")[name] is None

    @pytest.mark.parametrize("select", ["default,Id", "Default, Id", "DEFAULT , Id"])
    @statement("spec 2.2", "$select={select} adds to the defaults")
    def test_default(self, service: Caller, select: str) -> None:
        usual = set(service.read(PRODUCT))
        assert set(service.read(f"{PRODUCT}?$select={select}")) == usual | {"Id"}

    @statement("spec 2.2", "options=skipnulls leaves null members out and no others")
    def test_skipnulls(self, service: Caller) -> None:
        usual = service.read(PRODUCT)
        brief = service.read(f"{PRODUCT}?options=skipnulls")
        assert {n for n, v in usual.items() if v is not None} - {"@odata.context"} == set(brief) - {"@odata.context"}

    @pytest.mark.parametrize(
        "level, present, absent",
        [
            ("none", set(), {"@odata.context", "@odata.id", "@odata.etag"}),
            ("minimal", {"@odata.context", "@odata.id"}, {"@odata.type"}),
            ("full", {"@odata.context", "@odata.id", "@odata.type", "@odata.editLink"}, set()),
        ],
    )
    @statement("spec 2.2", "odata.metadata={level} is honoured, in Accept and in $format, and named in Content-Type")
    def test_metadata(self, service: Caller, level: str, present: set[str], absent: set[str]) -> None:
        kind = f"application/json;odata.metadata={level}"
        for answer in (service.get(PRODUCT, Accept=kind), service.get(f"{PRODUCT}?$format={quote(kind)}")):
            found = answered(answer, 200).json()
            assert f"odata.metadata={level}" in answer.headers["Content-Type"]
            assert present <= set(found)
            assert not absent & set(found)

    @statement("spec 2.2", "Numbers are JSON numbers; with IEEE754Compatible=true decimals are strings")
    def test_ieee754(self, service: Caller) -> None:
        path = f"{PRODUCT}?$select=StandardPricePerLot,ScrapRate"
        assert type(service.read(path)["StandardPricePerLot"]["Value"]) in (int, float)
        strings = service.read(path, Accept="application/json;IEEE754Compatible=true")
        assert isinstance(strings["StandardPricePerLot"]["Value"], str)
        assert isinstance(strings["ScrapRate"], str)

    @statement("spec 2.2", "Decimals are exact, without float noise")
    def test_exact(self, service: Caller, order: str) -> None:
        text = service.get(f"{order}/Lines?$select=UnitPrice,Quantity&$orderby=LineNo").text
        assert [float(found) for found in re.findall(r'"UnitPrice":\{"Value":([^,]+),', text)] == [10.1, 10.1]
        assert re.findall(r'"Quantity":\{"Value":([^,]+),', text) == ["1", "2.5"]


class TestTypes:
    @pytest.mark.parametrize(
        "kind, path, pattern",
        [
            ("Edm.Guid", f"{PRODUCT}/Id", GUID),
            ("Edm.String", f"{PRODUCT}/PartNumber", ".+"),
            ("Edm.Date", f"{ORDERS}?$top=1&$select=DocumentDate", r"\d{4}-\d\d-\d\d"),
            ("Edm.DateTimeOffset, UTC with Z", f"{PRODUCT}/CreationTime", MOMENT),
            ("an enum, its member's name", f"{PRODUCT}/ABCClass", "A"),
        ],
    )
    @statement("spec 2.2", "{kind} is a JSON string of its form")
    def test_strings(self, service: Caller, kind: str, path: str, pattern: str) -> None:
        value = service.read(path)["value"]
        text = value if isinstance(value, str) else value[0]["DocumentDate"]
        assert re.fullmatch(pattern, text)

    @pytest.mark.parametrize("kind, name, python", [("Int32", "GuaranteePeriodDays", int), ("Boolean", "Active", bool)])
    @statement("spec 2.2", "Edm.{kind} is a JSON number or boolean")
    def test_plain(self, service: Caller, kind: str, name: str, python: type) -> None:
        assert type(service.read(f"{PRODUCT}/{name}")["value"]) is python

    @statement("spec 2.2", "Edm.Binary is base64url and comes back as it went in")
    def test_binary(self, make: Maker) -> None:
        # A small picture with a text in it, whose base64url differs from base64.
        content = _png(b"\xfb\xff\xfe" * 5)
        given = base64.urlsafe_b64encode(content).decode()
        assert "-" in given or "_" in given
        group = make.group(Picture=given)
        accept = {"OData_MaxVersion": "4.01"}
        found = make.caller.read(f"{group}?$select=Picture", **accept)["Picture"]
        assert "+" not in found
        assert "/" not in found
        assert base64.urlsafe_b64decode(found + "=" * (-len(found) % 4)) == content

    @statement("spec 2.2", "MultilanguageString is an object by language; any case goes in, upper case comes out")
    def test_multilanguage(self, make: Maker) -> None:
        group = make.group(Name={"en": "One", "Bg": "Едно"})
        assert make.caller.read(f"{group}?$select=Name")["Name"] == {"EN": "One", "BG": "Едно"}

    @statement("spec 2.2", "An Amount is Value and Currency, a Quantity Value and Unit")
    def test_measures(self, service: Caller, order: str) -> None:
        line = service.rows(f"{order}/Lines?$orderby=LineNo")[0]
        assert line["UnitPrice"] == {"Value": 10.1, "Currency": "EUR"}
        assert line["Quantity"] == {"Value": 1, "Unit": "pcs"}


class TestOptions:
    @pytest.mark.parametrize(
        "orderby, expected",
        [
            ("LineNo", [10, 20]),
            ("LineNo desc", [20, 10]),
            ("Product/PartNumber,LineNo desc", [20, 10]),
            ("QuantityValue desc", [20, 10]),
            ("length(Notes),LineNo asc", [10, 20]),
            ("-LineNo", [20, 10]),
        ],
    )
    @statement("spec 2.2", "$orderby={orderby}")
    def test_orderby(self, service: Caller, order: str, orderby: str, expected: list[int]) -> None:
        assert [row["LineNo"] for row in service.rows(f"{order}/Lines?$orderby={orderby}")] == expected

    @statement("spec 2.2", "Ties of $orderby are broken by Id")
    def test_ties(self, service: Caller) -> None:
        rows = service.rows(f"{PRODUCTS}?$orderby=ABCClass&$select=ABCClass,Id&$top=40")
        keys = [(row["ABCClass"], row["Id"]) for row in rows]
        for one, two in pairwise(keys):
            assert one[0] != two[0] or one < two

    @statement("spec 2.2", "$top, $skip and $count=true; the count heeds the filter and neither $top nor $skip")
    def test_top_skip(self, service: Caller, order: str) -> None:
        answer = service.read(f"{order}/Lines?$top=1&$skip=1&$count=true&$orderby=LineNo")
        assert answer["@odata.count"] == 2
        assert [row["LineNo"] for row in answer["value"]] == [20]

    @pytest.mark.parametrize("option", ["$top=-1", "$top=x", "$skip=-1", "$count=maybe", "$orderby=Nothing"])
    @statement("spec 02", "A wrong value of an option is a 400: {option}")
    def test_wrong(self, service: Caller, option: str) -> None:
        error_of(service.get(f"{PRODUCTS}?{option}"), 400)

    @pytest.mark.parametrize("query", ["filter=LineNo eq 20", "$FILTER=LineNo eq 20", "Filter=LineNo eq 20"])
    @statement("spec 2.2", "Options are accepted without $ and in any case: {query}")
    def test_names(self, service: Caller, order: str, query: str) -> None:
        assert [row["LineNo"] for row in service.rows(f"{order}/Lines?{query}")] == [20]

    @statement("spec 2.2", "$schemaversion is ignored")
    def test_schemaversion(self, service: Caller) -> None:
        assert service.read(f"{PRODUCT}?$schemaversion=7")["@odata.id"] == PRODUCT

    @statement("spec 2.2", "$format=json")
    def test_format(self, service: Caller) -> None:
        answer = answered(service.get(f"{PRODUCT}?$format=json", Accept="text/html"), 200)
        assert answer.headers["Content-Type"].startswith("application/json")

    @statement("spec 2.2", "$compute adds values that $select and $orderby name")
    def test_compute(self, service: Caller, order: str) -> None:
        query = "$compute=LineNo mul 2 as Twice&$select=Twice&$orderby=Twice desc"
        assert [row["Twice"] for row in service.rows(f"{order}/Lines?{query}")] == [40, 20]


class TestSearch:
    @pytest.mark.parametrize(
        "search, expected",
        [
            ("red", "AC"),
            ("red oak", "AC"),
            ("red AND oak", "AC"),
            ("red OR blue", "ABC"),
            ("oak NOT red", "B"),
            ('"red oak"', "A"),
            ("(red OR blue) AND oak", "ABC"),
            ("ДЪБB", "B"),
        ],
    )
    @statement("spec 2.2", "$search={search}: words, phrases, AND, OR, NOT, all languages")
    def test_search(self, service: Caller, named: str, search: str, expected: str) -> None:
        path = f"{GROUPS}?$search={search}&$filter=endswith(Code,'{named}')&$orderby=Code"
        assert "".join(row["Code"][0] for row in service.rows(path)) == expected

    @statement("spec 2.2", "$search finds by the code, a member of the display text")
    def test_code(self, service: Caller, named: str) -> None:
        assert [row["Code"] for row in service.rows(f'{GROUPS}?$search="A-{named}"')] == [f"A-{named}"]


EXPANDED: list[tuple[str, Any]] = [
    ("Lines", [10, 20]),
    ("Lines($select=LineNo)", [10, 20]),
    ("Lines($filter=LineNo eq 20)", [20]),
    ("Lines($orderby=LineNo desc)", [20, 10]),
    ("Lines($orderby=LineNo;$top=1)", [10]),
    ("Lines($orderby=LineNo;$skip=1)", [20]),
    ("Lines($count=true)", [10, 20]),
    ("Lines($expand=Product($select=PartNumber))", [10, 20]),
    ("Lines($compute=LineNo add 1 as Next;$select=LineNo,Next)", [10, 20]),
    ("Lines($search=nowhere)", []),
    ("Lines(filter=LineNo eq 20)", [20]),
    ("*", [10, 20]),
]


class TestExpand:
    @pytest.mark.parametrize("expand, expected", EXPANDED, ids=[text for text, _ in EXPANDED])
    @statement("spec 2.2", "$expand={expand}")
    def test_collection(self, service: Caller, order: str, expand: str, expected: list[int]) -> None:
        found = service.read(f"{order}?$expand={expand}")
        assert [line["LineNo"] for line in found["Lines"]] == expected
        assert found.get("Lines@odata.count") == (2 if "$count" in expand else None)
        if "Product(" in expand:
            assert {line["Product"]["PartNumber"] for line in found["Lines"]} == {"CH-0001"}
        if "Next" in expand:
            assert [line["Next"] for line in found["Lines"]] == [11, 21]

    @statement("spec 2.2", "$expand of a reference, nested at any depth")
    def test_reference(self, service: Caller, order: str) -> None:
        expand = "Customer($select=Number;$expand=Party($select=PartyName),DefaultCurrency($select=CurrencySign))"
        found = service.read(f"{order}?$expand={expand}&$select=DocumentNo")
        assert set(found["Customer"]) >= {"Number", "Party", "DefaultCurrency"}
        assert found["Customer"]["DefaultCurrency"]["CurrencySign"] == "EUR"
        assert "Customer" in found
        assert "State" not in found

    @statement("spec 2.2", "$expand=Nav/$ref gives references alone")
    def test_ref(self, service: Caller, order: str) -> None:
        for line in service.read(f"{order}?$expand=Lines/$ref")["Lines"]:
            assert list(line) == ["@odata.id"]

    @statement("spec 2.2", "$expand=Nav/$count gives the number alone")
    def test_count(self, service: Caller, order: str) -> None:
        found = service.read(f"{order}?$expand=Lines/$count")
        assert found["Lines@odata.count"] == 2
        assert "Lines" not in found

    @statement("spec 2.2", "$levels expands a reference to the same type again and again")
    def test_levels(self, make: Maker) -> None:
        top = make.group()
        middle = make.new(GROUPS, {"Code": f"M{make.mark}", "Name": {"EN": "m"}, "ParentGroup@odata.bind": top})
        leaf = make.new(
            GROUPS,
            {"Code": f"L{make.mark}", "Name": {"EN": "l"}, "ParentGroup@odata.bind": middle["@odata.id"]},
        )
        for levels in ("2", "max"):
            found = make.caller.read(f"{leaf['@odata.id']}?$expand=ParentGroup($levels={levels})")
            assert found["ParentGroup"]["ParentGroup"]["@odata.id"] == top

    @statement("spec 2.2", "An unknown name in $expand or $select is a 400 that names it")
    def test_unknown(self, service: Caller) -> None:
        for option in ("$expand=Nowhere", "$select=Nowhere"):
            assert "Nowhere" in error_of(service.get(f"{PRODUCTS}?{option}"), 400)["message"]


class TestConditions:
    @statement("spec 2.2", "If-None-Match with the entity's etag is 304 without a body")
    def test_not_modified(self, service: Caller) -> None:
        etag = answered(service.get(PRODUCT), 200).headers["ETag"]
        assert answered(service.get(PRODUCT, If_None_Match=etag), 304).content == b""
        answered(service.get(PRODUCT, If_None_Match='W/"0"'), 200)

    @pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
    @statement("spec 2.2", "If-Match on {method} is 412 when the ObjectVersion moved on")
    def test_if_match(self, make: Maker, method: str) -> None:
        group = make.group()
        etag = make.caller.read(group)["@odata.etag"]
        make.caller.change(group, {"Notes": "moved"})
        body = None if method == "DELETE" else {"Code": f"G-{make.mark}", "Name": {"EN": "x"}}
        error_of(make.caller.send(method, group, body, If_Match=etag), 412)
        fresh = make.caller.read(group)["@odata.etag"]
        assert make.caller.send(method, group, body, If_Match=fresh).status_code in (200, 204)

    @statement("spec 2.2", "If-Match on a bound action is 412 when the ObjectVersion moved on")
    def test_action(self, make: Maker) -> None:
        order = make.order()
        etag = make.caller.read(order)["@odata.etag"]
        make.caller.change(order, {"DocumentNotes": "moved"})
        error_of(make.caller.post(f"{order}/ChangeState", {"newState": "Planned"}, If_Match=etag), 412)

    @statement("spec 2.2", "ObjectVersion inside a PATCH body does the same as If-Match")
    def test_version(self, make: Maker) -> None:
        group = make.group()
        version = make.caller.read(f"{group}?$select=ObjectVersion")["ObjectVersion"]
        make.caller.change(group, {"ObjectVersion": version, "Notes": "one"})
        error_of(make.caller.patch(group, {"ObjectVersion": version, "Notes": "two"}), 412)

    @statement("spec 2.2", "A change of a child moves the version of its root")
    def test_children(self, make: Maker) -> None:
        order = make.order()
        before = make.caller.read(f"{order}?$select=ObjectVersion")["ObjectVersion"]
        make.caller.change(make.line_of(order), {"Notes": "moved"})
        assert make.caller.read(f"{order}?$select=ObjectVersion")["ObjectVersion"] == before + 1


def _png(content: bytes) -> bytes:
    """A file with the signature of a PNG picture."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"tEXt", b"x\0" + content) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IEND", b"")


@statement("spec 2.2", "Lines of an order are a set of their own too")
def test_child_set(service: Caller, order: str) -> None:
    assert len(service.rows(f"{LINES}?$filter=SalesOrder eq '{order}'")) == 2
