"""spec 02 The Domain API as OData: filters"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, id_of
from tests.acceptance.objects import CUSTOMER, GROUPS, ORDERS, PRODUCT, PRODUCTS, Maker
from tests.acceptance.statements import statement

UNITS = "General_Products_MeasurementUnits"


@dataclass(frozen=True, slots=True)
class Shelf:
    """Products Alpha, Beta and Gamma in a group of their own, and two orders, 1 and 2, with lines."""

    caller: Caller
    mark: str
    group: str
    #: Letter of a product → its reference.
    products: dict[str, str]

    def found(self, filter: str, **headers: str) -> str:
        """The letters of the products that a filter lets through. Alternative aliases come after a &."""
        filter, ampersand, more = filter.partition("&")
        text = f"ProductGroup eq '{self.group}' and ({filter}){ampersand}{more}"
        rows = self.caller.rows(f"{PRODUCTS}?$filter={text}&$orderby=PartNumber&$select=PartNumber", **headers)
        return "".join(row["PartNumber"][0] for row in rows)

    def orders(self, filter: str) -> str:
        """The numbers of the orders that a filter lets through."""
        text = f"ReferenceDocumentNo eq '{self.mark}' and ({filter})"
        rows = self.caller.rows(f"{ORDERS}?$filter={text}&$orderby=DocumentNotes&$select=DocumentNotes")
        return "".join(row["DocumentNotes"] for row in rows)

    def filled(self, text: str) -> str:
        """The text with references and the mark in the places of $A, $group and $mark."""
        for letter, reference in self.products.items():
            text = text.replace(f"${letter}", id_of({"@odata.id": reference}))
        return text.replace("$group", id_of({"@odata.id": self.group})).replace("$mark", self.mark)


@pytest.fixture(scope="module")
def shelf(service: Caller) -> Iterator[Shelf]:
    mark = secrets.token_hex(4).upper()
    with Maker.of(service, mark) as make:
        group = make.group()
        inside: dict[str, Any] = {"ProductGroup@odata.bind": group}
        products = {
            "A": make.product(
                **inside,
                PartNumber=f"A-{mark}",
                Name={"EN": f"Alpha {mark}", "BG": "Алфа"},
                ABCClass="A",
                GuaranteePeriodDays=10,
                ScrapRate=0.25,
                StandardPricePerLot={"Value": 20.5, "Currency": "EUR"},
                ManufacturingPolicy="MTS",
                IsFeatured=True,
            ),
            "B": make.product(
                **inside,
                PartNumber=f"B-{mark}",
                Name={"EN": f"Beta {mark}"},
                ABCClass="B",
                GuaranteePeriodDays=21,
                ScrapRate=-0.5,
                StandardPricePerLot={"Value": 30, "Currency": "EUR"},
                ManufacturingPolicy="ato",
                CatalogDescriptionHtml=" it's ",
            ),
            "C": make.product(
                **inside,
                PartNumber=f"C-{mark}",
                Name={"EN": f"Gamma {mark}"},
                ABCClass="C",
                StandardPricePerLot={"Value": 30.01, "Currency": "EUR"},
            ),
        }
        shelf = Shelf(service, mark, group, products)
        _orders(make, products)
        yield shelf


def _orders(make: Maker, products: dict[str, str]) -> None:
    for number, date, quantities in ((1, "2026-02-03", (1, 5)), (2, "2025-12-31", (3,))):
        lines = [
            {
                "Product@odata.bind": products["AB"[index]],
                "Quantity": {"Value": quantity, "Unit": "pcs"},
                "UnitPrice": {"Value": 10, "Currency": "EUR"},
            }
            for index, quantity in enumerate(quantities)
        ]
        make.order(
            DocumentNotes=str(number),
            DocumentDate=date,
            ReferenceDate=f"{date}T04:05:06.5Z",
            ReferenceDocumentNo=make.mark,
            Lines=lines,
        )


PRODUCTS_FOUND = [
    # Comparison and logic.
    ("eq", "GuaranteePeriodDays eq 10", "A"),
    ("ne", "GuaranteePeriodDays ne 10", "BC"),
    ("gt", "GuaranteePeriodDays gt 10", "B"),
    ("ge", "GuaranteePeriodDays ge 10", "AB"),
    ("lt", "GuaranteePeriodDays lt 21", "A"),
    ("le", "GuaranteePeriodDays le 21", "AB"),
    ("in", "GuaranteePeriodDays in (10,21)", "AB"),
    ("in, texts", "PartNumber in ('A-$mark','C-$mark')", "AC"),
    ("and", "GuaranteePeriodDays ge 10 and ABCClass eq 'B'", "B"),
    ("or", "ABCClass eq 'A' or ABCClass eq 'C'", "AC"),
    ("not", "not (ABCClass eq 'A')", "BC"),
    ("parentheses", "(ABCClass eq 'A' or ABCClass eq 'B') and IsFeatured", "A"),
    ("and binds tighter than or", "ABCClass eq 'C' or ABCClass eq 'A' and IsFeatured eq false", "C"),
    ("has", "ABCClass has 'B'", "B"),
    # Arithmetic.
    ("add", "GuaranteePeriodDays add 1 eq 11", "A"),
    ("sub", "GuaranteePeriodDays sub 1 eq 20", "B"),
    ("mul", "GuaranteePeriodDays mul 2 eq 42", "B"),
    ("div of integers is an integer", "GuaranteePeriodDays div 2 eq 10", "B"),
    ("divby is exact", "GuaranteePeriodDays divby 2 eq 10.5", "B"),
    ("mod", "GuaranteePeriodDays mod 2 eq 1", "B"),
    ("negation", "-GuaranteePeriodDays eq -10", "A"),
    ("mul binds tighter than add", "GuaranteePeriodDays add 1 mul 2 eq 12", "A"),
    ("decimals are exact", "StandardPricePerLotValue sub 30 eq 0.01", "C"),
    # Text.
    ("contains", "contains(PartNumber,'-$mark')", "ABC"),
    ("startswith", "startswith(PartNumber,'B')", "B"),
    ("endswith", "endswith(PartNumber,'$mark')", "ABC"),
    ("length", "length(PartNumber) eq 10", "ABC"),
    ("indexof counts from 0", "indexof(PartNumber,'-') eq 1", "ABC"),
    ("indexof of what is not there is -1", "indexof(PartNumber,'C-') eq -1", "AB"),
    ("substring from", "substring(PartNumber,1) eq '-$mark'", "ABC"),
    ("substring from, length", "substring(PartNumber,0,2) eq 'C-'", "C"),
    ("tolower", "tolower(PartNumber) eq tolower('A-$mark')", "A"),
    ("toupper", "toupper(ManufacturingPolicy) eq 'ATO'", "B"),
    ("trim", "trim(CatalogDescriptionHtml) eq 'it''s'", "B"),
    ("concat", "concat(ManufacturingPolicy,PartNumber) eq 'atoB-$mark'", "B"),
    ("matchesPattern", "matchesPattern(PartNumber,'^[AC]-')", "AC"),
    # Numbers.
    ("round", "round(StandardPricePerLotValue) eq 30", "BC"),
    ("round away from zero at a half", "round(StandardPricePerLotValue) eq 21", "A"),
    ("floor", "floor(StandardPricePerLotValue) eq 20", "A"),
    ("floor of what is negative", "floor(ScrapRate) eq -1", "B"),
    ("ceiling", "ceiling(StandardPricePerLotValue) eq 31", "C"),
    # Casts and cases.
    ("cast to text", "cast(GuaranteePeriodDays,Edm.String) eq '10'", "A"),
    ("cast to a number", "cast(GuaranteePeriodDays,Edm.Decimal) divby 4 eq 2.5", "A"),
    ("isof", "isof(GuaranteePeriodDays,Edm.Int32)", "AB"),
    ("case", "case(GuaranteePeriodDays gt 20:'many',GuaranteePeriodDays gt 5:'some',true:'none') eq 'some'", "A"),
    # Literals and aliases.
    ("an alias", "GuaranteePeriodDays eq @p&@p=21", "B"),
    ("an alias for a collection", "PartNumber in @p&@p=['A-$mark','B-$mark']", "AB"),
    ("a quote is doubled inside quotes", "CatalogDescriptionHtml eq ' it''s '", "B"),
    ("a JSON-style collection", 'PartNumber in ["A-$mark","C-$mark"]', "AC"),
    ("an enum member as a plain string", "ABCClass eq 'A'", "A"),
    ("an enum member with a type prefix", "ABCClass eq Erp.General_Products_Products_ABCClass'C'", "C"),
    ("a number for a numbered enum", "ABCClass eq 1", "B"),
    ("a guid", "Id eq $B", "B"),
    # Paths.
    ("a navigation path", "ProductGroup/Code eq 'G-$mark' and MeasurementUnit/Code eq 'pcs'", "ABC"),
    ("a navigation path two deep", "MeasurementUnit/MeasurementCategory/IsDefault eq true", "ABC"),
    # Extensions of the platform.
    ("contains on a MultilanguageString matches any language", "contains(Name,'Алфа')", "A"),
    ("Reference eq 'Set(guid)'", f"ProductGroup eq '{GROUPS}($group)'", "ABC"),
    ("Reference ne 'Set(guid)'", f"not (ProductGroup ne '{GROUPS}($group)')", "ABC"),
    ("Reference in ('Set(guid)')", f"ProductGroup in ('{GROUPS}($group)')", "ABC"),
    ("Reference/Id eq guid", "ProductGroup/Id eq $group", "ABC"),
    ("contains(Reference,'x') matches the reference's display text", "contains(ProductGroup,'$mark')", "ABC"),
    ("equalnull: equal or null", "equalnull(GuaranteePeriodDays,10)", "AC"),
    ("lessequalnull: at most or null", "lessequalnull(GuaranteePeriodDays,20)", "AC"),
    ("greaterequalnull: at least or null", "greaterequalnull(GuaranteePeriodDays,20)", "BC"),
    ("the value of a complex amount by …Value", "StandardPricePerLotValue ge 30", "BC"),
    ("the value of a complex amount by a path", "StandardPricePerLot/Value lt 30", "A"),
    # Null.
    ("eq null", "GuaranteePeriodDays eq null", "C"),
    ("ne null", "GuaranteePeriodDays ne null", "AB"),
    ("null gt a number is false", "GuaranteePeriodDays gt 0 or GuaranteePeriodDays le 0", "AB"),
    ("arithmetic with null is null", "(GuaranteePeriodDays add 1) eq null", "C"),
    ("a path behind a null reference is null", "PurchaseMeasurementUnit/Code eq null", "ABC"),
]


@pytest.mark.parametrize("what, filter, expected", PRODUCTS_FOUND, ids=[what for what, *_ in PRODUCTS_FOUND])
@statement("spec 2.2", "$filter: {what}")
def test_products(shelf: Shelf, what: str, filter: str, expected: str) -> None:
    assert shelf.found(shelf.filled(filter)) == expected


ORDERS_FOUND = [
    ("any", "Lines/any(l:l/QuantityValue eq 5)", "1"),
    ("any without a condition", "Lines/any()", "12"),
    ("all", "Lines/all(l:l/QuantityValue eq 3)", "2"),
    ("any inside any", "Lines/any(l:l/Product/Prices/any(p:p/IsActive)) or Lines/any(l:l/LineNo eq 20)", "1"),
    ("the outer row inside any", "Lines/any(l:l/QuantityValue eq 3 and $it/DocumentNotes eq '2')", "2"),
    ("…/$count", "Lines/$count eq 2", "1"),
    ("…/$count with $filter", "Lines/$count($filter=QuantityValue gt 2) eq 1", "12"),
    ("year", "year(DocumentDate) eq 2025", "2"),
    ("month", "month(DocumentDate) eq 2", "1"),
    ("day", "day(DocumentDate) eq 31", "2"),
    ("hour", "hour(ReferenceDate) eq 4", "12"),
    ("minute", "minute(ReferenceDate) eq 5", "12"),
    ("second", "second(ReferenceDate) eq 6", "12"),
    ("fractionalseconds", "fractionalseconds(ReferenceDate) eq 0.5", "12"),
    ("date", "date(ReferenceDate) eq 2026-02-03", "1"),
    ("time", "time(ReferenceDate) eq 04:05:06.5", "12"),
    ("now", "ReferenceDate lt now()", "12"),
    ("maxdatetime", "ReferenceDate lt maxdatetime()", "12"),
    ("mindatetime", "ReferenceDate gt mindatetime()", "12"),
    ("totaloffsetminutes", "totaloffsetminutes(ReferenceDate) eq 0", "12"),
    ("totalseconds", "totalseconds(duration'PT1M30S') eq 90", "12"),
    ("date-times compare exactly", "ReferenceDate eq 2026-02-03T04:05:06.5Z", "1"),
    ("date-times of other zones compare as moments", "ReferenceDate eq 2026-02-03T06:05:06.500%2B02:00", "1"),
    ("a difference below a second counts", "ReferenceDate ge 2026-02-03T04:05:06.5001Z", ""),
    ("State ge 'Released' compares by number", "State ge 'Released'", ""),
    ("State lt 'Released' compares by number", "State lt 'Released'", "12"),
    ("State eq a number", "State eq 0", "12"),
    ("an enum member with the type's name", "State eq Erp.General_DocumentState'New'", "12"),
    ("QuantityValue of a complex quantity", "Lines/any(l:l/QuantityValue ge 5)", "1"),
    ("LineAmountValue of a complex amount", "Lines/any(l:l/LineAmountValue eq 50)", "1"),
    ("a path two references deep", "Customer/Party/PartyId ne null and Customer/CustomerType/Id ne null", "12"),
    ("Reference eq 'Set(guid)' of the declared set", f"Customer eq '{CUSTOMER}'", "12"),
    ("a reference by its base set's name", "MasterDocument eq 'General_Documents_Documents($1)'", "1"),
    ("a reference by a derived set's name", "MasterDocument eq 'Crm_Sales_SalesOrders($1)'", "1"),
    ("in with references of a derived set", "MasterDocument in ('Crm_Sales_SalesOrders($1)')", "1"),
    ("a cast inside a path", "ToParty/Erp.General_Contacts_Company/RegistrationNumber ne 'x'", "12"),
    ("isof of a reference", "isof(ToParty,Erp.General_Contacts_Company)", "12"),
]


@pytest.mark.parametrize("what, filter, expected", ORDERS_FOUND, ids=[what for what, *_ in ORDERS_FOUND])
@statement("spec 2.2", "$filter of orders: {what}")
def test_orders(shelf: Shelf, what: str, filter: str, expected: str) -> None:
    if "$1" in filter:
        (first,) = shelf.caller.rows(
            f"{ORDERS}?$filter=ReferenceDocumentNo eq '{shelf.mark}' and DocumentNotes eq '1'&$select=Id"
        )
        filter = filter.replace("$1", first["Id"])
    assert shelf.orders(filter) == expected


@statement("spec 2.2", "$filter: CustomProperty_x eq 'v'")
def test_custom_property(make: Maker) -> None:
    name = f"CustomProperty_{make.text_property(PRODUCTS)}"
    product = make.product(**{name: "v"})
    assert [row["@odata.id"] for row in make.caller.rows(f"{PRODUCTS}?$filter={name} eq 'v'")] == [product]


@pytest.mark.parametrize(
    "filter",
    [
        "Nothing eq 1",
        "GuaranteePeriodDays eq",
        "GuaranteePeriodDays eq 'x'",
        "(ABCClass eq 'A'",
        "ABCClass eq 'Z'",
        "nofunction(PartNumber)",
        "ProductGroup eq 'Nonsense(x)'",
        "length(PartNumber,1) eq 1",
    ],
)
@statement("spec 02", "A filter that makes no sense is a 400: {filter}")
def test_senseless(service: Caller, filter: str) -> None:
    answered(service.get(f"{PRODUCTS}?$filter={filter}"), 400)


@pytest.mark.parametrize(
    "named, query",
    [
        ("geo.length", f"{PRODUCTS}?$filter=geo.length(PartNumber) eq 1"),
        ("hassubset", f"{PRODUCTS}?$filter=hassubset([1,2],[1])"),
        ("$index", f"{PRODUCTS}?$index=1"),
        ("join", f"{ORDERS}?$apply=join(Lines as L)"),
        ("$crossjoin", f"$crossjoin({ORDERS},{PRODUCTS})"),
        ("$all", "$all"),
    ],
)
@statement("spec 02", "What the grammar has and the platform has not is a 501 that names it: {named}")
def test_not_offered(service: Caller, named: str, query: str) -> None:
    message = answered(service.get(query), 501).json()["error"]["message"].lower()
    assert named.lstrip("$") in message or "spatial" in message


@statement("spec 2.2", "$filter compares references of the demo product by guid, quoted guid and path")
def test_product_reference(service: Caller) -> None:
    guid = id_of({"@odata.id": PRODUCT})
    for expression in (f"Id eq {guid}", f"Id eq '{guid}'"):
        assert [row["@odata.id"] for row in service.rows(f"{PRODUCTS}?$filter={expression}")] == [PRODUCT]
