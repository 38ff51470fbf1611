"""What an entity carries and how values are written (spec 02, 2.2; OData JSON 4.01)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from domain.entities.general_product_groups import ProductGroup
from domain.entities.general_products import Product
from domain.model.registry import repositories
from domain.query import Representation, read_collection, read_entity, read_value
from domain.query.base.representation import MetadataLevel
from domain.syntax import parse_query_options
from foundation import errors
from identity.context import CallContext
from tests.domain.query.conftest import Ask
from tests.domain.query.reference import Row

SET = "General_Products_Products"
PRODUCTS = repositories["General.Products.Products"]


def first(ask: Ask, options: str, **changes: Any) -> dict[str, Any]:
    """The first row."""
    row: dict[str, Any] = ask(SET, f"{options}&$top=1", **changes)["value"][0]
    return row


def test_by_default_an_entity_has_its_default_members(products: list[Row], ask: Ask) -> None:
    row = first(ask, "")
    names = [name for name in row if not name.startswith("@")]
    assert names == [attribute.name for attribute in PRODUCTS.default_members]
    assert "Id" not in names
    assert "DisplayText" not in names
    assert "Prices" not in names
    assert row["@odata.id"] == f"General_Products_Products({products[0]['Id']})"
    assert row["@odata.etag"] == f'W/"{products[0]["ObjectVersion"]}"'
    group = products[0]["ProductGroup"]["Id"]
    assert row["ProductGroup"] == {"@odata.id": f"General_Products_ProductGroups({group})"}


def test_select_names_what_is_wanted(products: list[Row], ask: Ask) -> None:
    assert set(first(ask, "$select=partnumber,ID")) == {"@odata.id", "@odata.etag", "PartNumber", "Id"}
    added = first(ask, "$select=default, DisplayText")
    assert set(added) == {*first(ask, ""), "DisplayText"}
    everything = first(ask, "$select=*")
    assert set(PRODUCTS.attributes) <= set(everything)
    assert "Prices" in first(ask, "$select=Prices")
    assert first(ask, "$select=Name/EN")["Name"] == {"EN": products[0]["Name"].get("EN")}


def test_children_have_no_etag(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_ProductCodes", "$top=1&$select=Id")
    assert set(body["value"][0]) == {"@odata.id", "Id"}


def test_complex_values(products: list[Row], ask: Ask) -> None:
    price = next(price for product in products for price in product["Prices"])
    body = ask("Crm_Pricing_ProductPrices", f"$filter=Id eq {price['Id']}&$select=Price,PriceQuantity,MinQuantity")
    row = body["value"][0]
    assert row["Price"]["Currency"] == price["Currency"]["CurrencySign"]
    assert Decimal(str(row["Price"]["Value"])) == price["Price"]
    assert row["PriceQuantity"] == {"Value": 1, "Unit": "pcs"}
    assert (row["MinQuantity"] is None) == (price["MinQuantity"] is None)
    part = ask("Crm_Pricing_ProductPrices", f"$filter=Id eq {price['Id']}&$select=Price/Currency")["value"][0]
    assert part["Price"] == {"Currency": price["Currency"]["CurrencySign"]}


@pytest.mark.parametrize(
    "stored, written",
    [
        ("0", b"0"),
        ("20", b"20"),
        ("0.1", b"0.1"),
        ("-0.001", b"-0.001"),
        ("99999999.125", b"99999999.125"),
        ("123456.789", b"123456.789"),
        ("-5", b"-5"),
    ],
)
def test_decimals_are_exact_numbers_without_noise(
    products: list[Row], context: CallContext, stored: str, written: bytes
) -> None:
    Product.objects.filter(id=products[0]["Id"]).update(minimal_sales_quantity_base=Decimal(stored))
    options = parse_query_options("$select=MinimalSalesQuantityBase")
    result = read_entity(PRODUCTS, products[0]["Id"], options, context, Representation())
    assert result is not None
    assert b'"MinimalSalesQuantityBase":' + written + b"}" in result.body
    strict = read_entity(PRODUCTS, products[0]["Id"], options, context, Representation(ieee754=True))
    assert strict is not None
    assert orjson.loads(strict.body)["MinimalSalesQuantityBase"] == written.decode()


def test_date_times_are_utc_with_their_fraction(products: list[Row], ask: Ask) -> None:
    for moment, written in (
        (datetime.datetime(2024, 2, 29, 23, 59, 59, tzinfo=datetime.UTC), "2024-02-29T23:59:59Z"),
        (datetime.datetime(2024, 2, 29, 1, 2, 3, 400_000, tzinfo=datetime.UTC), "2024-02-29T01:02:03.400000Z"),
    ):
        Product.objects.filter(id=products[0]["Id"]).update(creation_time=moment)
        assert first(ask, "$select=CreationTime")["CreationTime"] == written
        zone = moment.astimezone(datetime.timezone(datetime.timedelta(hours=2))).isoformat()
        found = ask(SET, f"$select=Id&$filter=CreationTime eq {zone}")["value"]
        assert products[0]["Id"] in [row["Id"] for row in found]


def test_binary_is_base64url(products: list[Row], context: CallContext) -> None:
    group = products[0]["ProductGroup"]["Id"]
    ProductGroup.objects.filter(id=group).update(picture=b"\xff\xfe\x00")
    value = read_value(repositories["General.Products.ProductGroups"], group, ["Picture"], context, Representation())
    assert value is not None
    assert value.raw == b"\xff\xfe\x00"
    assert orjson.loads(value.body)["value"] == "__4A"


def test_metadata_levels_and_skipped_nulls(products: list[Row], ask: Ask) -> None:
    none = ask(SET, "$top=1", representation=Representation(metadata="none"))
    assert set(none) == {"value"}
    assert not [name for name in none["value"][0] if name.startswith("@")]
    full = first(ask, "$select=Id,ProductGroup,ABCClass", representation=Representation(metadata="full"))
    assert full["@odata.type"] == "#Erp.General_Products_Product"
    assert full["Id@odata.type"] == "#Guid"
    assert full["ProductGroup@odata.navigationLink"].endswith(")/ProductGroup")
    short = first(ask, "", representation=Representation(skip_nulls=True))
    assert None not in short.values()


@pytest.mark.parametrize(
    "options, suffix",
    [
        ("$select=Id&$expand=Prices($select=Price)", "(Id,Prices(Price))"),
        ("$select=partnumber,partNumber", "(PartNumber)"),
        ("$select=Erp.*,PartNumber", "(Erp.*,PartNumber)"),
        ("$select=StandardPricePerLot/value,Name($select=EN)", "(StandardPricePerLot/Value,Name/EN)"),
        ("$select=ProductGroup/Code,Codes", "(ProductGroup(Code),Codes())"),
        ("$select=*,Prices&$expand=Prices($expand=Currency)", "(*,Prices(Currency()))"),
        ("$expand=ProductGroup/$ref,Prices/$count", ""),
        ("$expand=ProductGroup($expand=ParentGroup($levels=2;$select=Code))", "(ProductGroup(ParentGroup+(Code)))"),
        ("$compute=1 as One&$select=One", "(One)"),
        ("$apply=filter(Active)&$select=Id", "(Id)"),
        ("$apply=groupby((Active),aggregate($count as N))&$select=N", "(N)"),
    ],
)
def test_context_says_what_the_response_has(products: list[Row], ask: Ask, options: str, suffix: str) -> None:
    root = Representation(service_root="http://host/odata/")
    context = ask(SET, f"{options}&$top=1", representation=root)["@odata.context"]
    assert context == f"http://host/odata/$metadata#General_Products_Products{suffix}"


def test_context_names_each_of_all_expanded_properties(products: list[Row], ask: Ask) -> None:
    context = ask(SET, "$select=Id&$expand=*,Codes($select=Id)&$top=1", representation=Representation())[
        "@odata.context"
    ]
    assert "*" not in context
    assert "ProductGroup()" in context
    assert "Codes(Id)" in context


def test_full_metadata_lead_to_every_navigation_property(products: list[Row], ask: Ask) -> None:
    """OData JSON 4.01, 8.1 and 8.2."""
    full = Representation(metadata="full")
    entity = f"General_Products_Products({products[0]['Id']})"
    links = {
        f"{name}@odata.navigationLink": f"{entity}/{name}" for name in (*PRODUCTS.references, *PRODUCTS.collections)
    }
    links |= {f"{name.partition('@')[0]}@odata.associationLink": f"{link}/$ref" for name, link in links.items()}
    for options in ("", "$expand=ProductGroup,Prices,Codes/$count,Lots/$ref"):
        row = first(ask, options, representation=full)
        assert {name: value for name, value in row.items() if name.endswith("Link") and name[0] != "@"} == links
    row = first(ask, "$select=StandardPricePerLot,ProductGroup,Prices", representation=full)
    named = {name.partition("@")[0] for name in row if name.endswith("@odata.navigationLink")}
    assert named == {"ProductGroup", "Prices"}
    assert row["StandardPricePerLot"] is None or row["StandardPricePerLot"]["Value@odata.type"] == "#Decimal"


VALUES = "$compute=date(CreationTime) as D,Prices/$count as N,GuaranteePeriodDays as G,PartNumber as T,Active as A"
TYPES = {"D@odata.type": "#Date", "N@odata.type": "#Int64", "G@odata.type": "#Int32"}


@pytest.mark.parametrize("level, types", [("none", {}), ("minimal", TYPES), ("full", TYPES)])
def test_computed_values_have_the_types_that_json_does_not_show(
    products: list[Row], ask: Ask, level: MetadataLevel, types: dict[str, str]
) -> None:
    """OData JSON 4.01, 4.6.3."""
    row = first(ask, f"{VALUES}&$select=D,N,G,T,A", representation=Representation(metadata=level))
    assert {name: value for name, value in row.items() if name.partition("@")[0] and "@odata.type" in name} == types


AGGREGATES = (
    "aggregate(CreationTime with max as Last,$count as N,Prices/PriceValue with sum as P,"
    "Active with countdistinct as D)"
)


@pytest.mark.parametrize(
    "level, declared", [("minimal", {}), ("full", {"ABCClass@odata.type": "#Erp.General_Products_Products_ABCClass"})]
)
def test_values_of_apply_have_the_types_that_json_does_not_show(
    products: list[Row], ask: Ask, level: MetadataLevel, declared: dict[str, str]
) -> None:
    row = first(ask, f"$apply=groupby((ABCClass),{AGGREGATES})", representation=Representation(metadata=level))
    types = {name: value for name, value in row.items() if name.endswith("@odata.type")}
    dynamic = {"Last": "#DateTimeOffset", "N": "#Decimal", "P": "#Decimal", "D": "#Decimal"}
    assert types == {**declared, **{f"{name}@odata.type": value for name, value in dynamic.items()}}


def test_counts_are_texts_for_readers_that_hold_numbers_as_doubles(products: list[Row], ask: Ask) -> None:
    """IEEE754Compatible (OData JSON 4.01, 3.2): Edm.Int64 and Edm.Decimal are strings."""
    exact = Representation(ieee754=True)
    row = first(
        ask, "$compute=Codes/$count as N&$select=N&$expand=Codes/$count,Prices($count=true)", representation=exact
    )
    assert [row["N"], row["Codes@odata.count"]] == [str(len(products[0]["Codes"]))] * 2
    assert row["Prices@odata.count"] == str(len(products[0]["Prices"]))
    total = first(ask, "$apply=aggregate($count as N,Prices/$count as P)", representation=exact)
    assert (total["N"], total["P"]) == (str(len(products)), str(sum(len(row["Prices"]) for row in products)))


def test_the_language_of_display_texts(products: list[Row], context: CallContext) -> None:
    Product.objects.filter(id=products[0]["Id"]).update(name={"DE": "Stuhl", "EN": "Chair"})
    Product.objects.filter(id=products[1]["Id"]).update(name={"BG": "Стол"})
    options = parse_query_options("$select=DisplayText&$top=2")
    for language, expected in (("de", ["Stuhl", "Стол"]), ("bg", ["Chair", "Стол"]), ("en", ["Chair", "Стол"])):
        result = read_collection(PRODUCTS, options, context.with_(language=language), Representation(language=language))
        assert [row["DisplayText"] for row in orjson.loads(result.body)["value"]] == expected


def test_single_properties(products: list[Row], context: CallContext) -> None:
    key = products[0]["Id"]
    number = read_value(PRODUCTS, key, ["PartNumber"], context, Representation())
    assert number is not None
    assert number.raw == products[0]["PartNumber"].encode()
    assert orjson.loads(number.body)["value"] == products[0]["PartNumber"]
    Product.objects.filter(id=key).update(expiry_period_days=None)
    null = read_value(PRODUCTS, key, ["ExpiryPeriodDays"], context, Representation())
    assert null is not None
    assert null.is_null
    assert (
        read_value(PRODUCTS, "00000000-0000-0000-0000-000000000000", ["PartNumber"], context, Representation()) is None
    )
    with pytest.raises(errors.BadRequest):
        read_value(PRODUCTS, key, ["Nothing"], context, Representation())


@pytest.mark.parametrize(
    "options, code",
    [
        ("$filter=PartNumbr eq 'x'", errors.UNKNOWN_PROPERTY),
        ("$select=Nothing", errors.UNKNOWN_PROPERTY),
        ("$orderby=Nothing", errors.UNKNOWN_PROPERTY),
        ("$filter=PartNumber/Length eq 1", errors.UNKNOWN_PROPERTY),
        ("$filter=PartNumber eq 5", errors.TYPE_MISMATCH),
        ("$filter=PartNumber", errors.TYPE_MISMATCH),
        ("$filter=Prices eq null", errors.TYPE_MISMATCH),
        ("$filter=Prices/Price gt 1", errors.TYPE_MISMATCH),
        ("$filter=contains(GuaranteePeriodDays,'1')", errors.TYPE_MISMATCH),
        ("$filter=ABCClass eq 'Q'", errors.INVALID_LITERAL),
        ("$filter=Id eq 'x'", errors.INVALID_LITERAL),
        ("$filter=ProductGroup eq 'Crm_Sales_Customers(00000000-0000-0000-0000-000000000000)'", errors.INVALID_LITERAL),
        ("$filter=GuaranteePeriodDays eq 1e400", errors.INVALID_LITERAL),
        ("$filter=matchesPattern(PartNumber,'(a+)+$')", errors.TYPE_MISMATCH),
        ("$compute=1 add 1 as PartNumber", errors.BAD_QUERY_OPTION),
    ],
)
def test_mistakes_are_named(products: list[Row], ask: Ask, options: str, code: errors.ErrorCode) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        ask(SET, options)
    assert failure.value.code is code


def test_near_names_are_offered(products: list[Row], ask: Ask) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        ask(SET, "$filter=PartNumbr eq 'x'")
    assert failure.value.target == "PartNumbr"
    assert "PartNumber" in failure.value.message


@pytest.mark.parametrize(
    "hostile",
    [
        "x' OR '1'='1",
        "'; DROP TABLE domain_product; --",
        '" OR ""="',
        "%s%s%s",
        "{0}{1}",
        "\\'; --",
        "x\x00y",
        "$.EN",
        '"]}',
    ],
)
def test_no_text_reaches_sql(products: list[Row], ask: Ask, hostile: str) -> None:
    quoted = hostile.replace("'", "''").replace("\x00", "%00")
    if "\x00" in hostile:
        return
    for condition in (
        f"PartNumber eq '{quoted}'",
        f"contains(Name,'{quoted}')",
        f"Name eq '{quoted}'",
        f"PartNumber in ('{quoted}','x')",
        f"startswith(tolower(CatalogDescriptionHtml),'{quoted}')",
        f"ProductGroup/Code eq '{quoted}' or Prices/any(p:p/Notes eq '{quoted}')",
    ):
        assert ask(SET, f"$select=Id&$filter={condition}")["value"] == []
    assert len(ask(SET, "$select=Id")["value"]) == len(products)


def test_search_looks_everywhere_in_any_case(products: list[Row], ask: Ask) -> None:
    def found(search: str) -> set[str]:
        return {row["Id"] for row in ask(SET, f"$select=Id&$search={search}")["value"]}

    def holds(word: str, row: Row) -> bool:
        return any(word in text.lower() for text in (row["PartNumber"], *row["Name"].values()))

    assert found("СТОЛ") == {row["Id"] for row in products if holds("стол", row)}
    assert found("NOT стол") == {row["Id"] for row in products if not holds("стол", row)}
    assert found("стол AND zz") == {row["Id"] for row in products if holds("стол", row) and holds("zz", row)}
    assert found("стол OR zz") == {row["Id"] for row in products if holds("стол", row) or holds("zz", row)}
    assert found('"x_y"') == {row["Id"] for row in products if holds("x_y", row)}
