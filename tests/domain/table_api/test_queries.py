"""Query options as tools of business intelligence write them."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.domain.calculations.conftest import body as calculation
from tests.domain.custom_entities.cars import CAR, CARS, ENTITIES
from tests.domain.custom_entities.conftest import admin, no_model_of_an_emptied_database
from tests.domain.table_api.conftest import Tables, body_of, tables_of
from tests.rules.cast import World, dataset, new_line, new_order, new_product
from tests.support.api import Api, error_of

__all__ = ["admin", "no_model_of_an_emptied_database"]

LINES, ORDERS, DOCUMENTS, PRODUCTS = "Crm_Sales_Order_Lines", "Crm_Sales_Orders", "Gen_Documents", "Gen_Products"


@pytest.fixture
def orders(world: World) -> dict[str, str]:
    """Two orders, of 2022 and 2024, with a line each; the guids of orders and lines."""
    ds, found = dataset(world.context), {}
    for number, year, quantity in (("1", 2022, "1.5"), ("2", 2024, "2.25")):
        order = new_order(ds, world, DocumentNo=number, DocumentDate=datetime.date(year, 5, 1))
        found[f"order {number}"] = order.id
        found[f"line {number}"] = new_line(ds, world, order, Quantity=Decimal(quantity)).id
    ds.commit()
    return found


def ids(rows: list[dict[str, Any]]) -> set[str]:
    return {row["Id"] for row in rows}


def test_filters_lead_over_owners_to_the_base(tables: Tables, orders: dict[str, str]) -> None:
    date = "Sales_Order_Reference/Document_Reference/Document_Date ge 2023-01-01T00:00:00Z"
    rows = tables.rows(f"{LINES}?$filter={date}&$top=500000000")
    assert ids(rows) == {orders["line 2"]}
    void = f"Sales_Order_Reference/Document_Reference/Void eq false and {date.replace('ge', 'lt')}"
    assert ids(tables.rows(f"{LINES}?$filter={void}")) == {orders["line 1"]}
    # A line has its document by this name, too.
    assert ids(tables.rows(f"{LINES}?$filter=Document_Reference/Void eq false and {date}")) == {orders["line 2"]}
    assert ids(tables.rows(f"{LINES}?$filter=Document_Id eq {orders['order 1']}")) == {orders["line 1"]}
    rows = tables.rows(f"{LINES}?$orderby=Document_Id")
    assert [row["Document_Id"] for row in rows] == sorted(row["Sales_Order_Id"] for row in rows)
    assert ids(tables.rows(f"{ORDERS}?$filter=Document_Reference/Document_No in ('2','3')")) == {orders["order 2"]}
    currency = "Sales_Order_Reference/Document_Currency_Reference/Currency_Sign eq 'EUR'"
    assert len(tables.rows(f"{LINES}?$filter={currency}")) == 2


def test_lists_of_or_and_in_and_like(tables: Tables, world: World) -> None:
    ds = dataset(world.context)
    for number in ("A-1", "A-2", "B%1", "B_1"):
        new_product(ds, world, number)
    ds.commit()

    def numbers(condition: str) -> list[str]:
        rows = tables.rows(f"{PRODUCTS}?$select=Part_Number&$orderby=Part_Number&$filter={condition}")
        return [row["Part_Number"] for row in rows]

    assert numbers(" or ".join(f"Part_Number eq 'A-{n}'" for n in range(300))) == ["A-1", "A-2"]
    assert numbers("Part_Number in ('A-1', 'P1')") == ["A-1", "P1"]
    for pattern, expected in (
        ("A%25", ["A-1", "A-2"]), ("%251", ["A-1", "B%1", "B_1", "P1"]), ("%25-%25", ["A-1", "A-2"]), ("P1", ["P1"]),
        ("__2", ["A-2"]), ("B_1", ["B%1", "B_1"]), ("a%25", []), ("%25_-_%25", ["A-1", "A-2"]),
    ):  # fmt: skip
        assert numbers(f"Part_Number like '{pattern}'") == expected, pattern
    assert numbers("not (Part_Number like 'A%25') and Part_Number like 'B%25'") == ["B%1", "B_1"]
    assert numbers("Name_EN like 'Cha%25'") == ["P1"]
    assert error_of(tables.get(f"{PRODUCTS}?$filter=Part_Number like Name_EN"))["type"] == "BadQueryOption"


def test_values_are_those_of_the_domain_api(tables: Tables, api: Api, world: World, orders: dict[str, str]) -> None:
    line = orders["line 2"]
    row = tables.rows(f"{LINES}?$filter=Id eq {line}")[0]
    entity = api.read(f"Crm_Sales_SalesOrderLines({line})?$expand=SalesOrder,QuantityUnit,Product")
    assert row["Sales_Order_Id"] == orders["order 2"]
    assert (row["Quantity_Value"], row["Quantity_Unit_Id"]) == (2.25, world.unit)
    assert (row["Unit_Price_Currency_Id"], row["Product_Id"]) == (world.currency, world.product)
    assert entity["Quantity"] == {"Value": 2.25, "Unit": "pcs"}
    document = tables.rows(f"{DOCUMENTS}?$filter=Id eq {orders['order 2']}")[0]
    assert (document["State"], document["Document_Date"], document["Void"]) == (0, "2024-05-01", False)
    assert api.read(f"Crm_Sales_SalesOrders({orders['order 2']})")["State"] == "New"


def test_states_and_enums_are_numbers(tables: Tables, orders: dict[str, str]) -> None:
    assert len(tables.rows(f"{DOCUMENTS}?$filter=State eq 0")) == 2
    assert tables.rows(f"{DOCUMENTS}?$filter=State ge 30") == []
    assert len(tables.rows(f"{PRODUCTS}?$filter=Use_Lots in (0,1,2)")) == 1
    assert tables.rows(f"{PRODUCTS}?$select=Use_Lots&$orderby=Use_Lots")[0]["Use_Lots"] in (0, 1, 2)


def test_multilanguage_texts_are_json_and_one_column_for_each_language(tables: Tables) -> None:
    row = tables.rows(f"{PRODUCTS}?$select=Part_Number, Name, Name_EN , Name_BG,Name_DE")[0]
    assert json.loads(row["Name"]) == {"EN": "Chair", "BG": "Стол"}
    assert (row["Name_EN"], row["Name_BG"], row["Name_DE"]) == ("Chair", "Стол", None)
    assert len(tables.rows(f"{PRODUCTS}?$filter=Name_BG eq 'Стол'&$orderby=Name_EN")) == 1
    assert "Name_EN" not in tables.rows(PRODUCTS)[0]


def test_calculated_attributes_come_when_they_are_named(tables: Tables, api: Api) -> None:
    api.create("Systems_Bpm_CalculatedAttributes", calculation(
        "10: CONCAT ATTRIB:PartNumber CONST:'!'", name="Loud", repository="General.Products.Products"))  # fmt: skip
    row = tables.rows(f"{PRODUCTS}?$select=Calculated_Attribute_Loud&$filter=Calculated_Attribute_Loud eq 'P1!'")[0]
    assert row == {"Calculated_Attribute_Loud": "P1!"}
    assert "Calculated_Attribute_Loud" not in tables.rows(PRODUCTS)[0]


@pytest.mark.parametrize("query", ["$select=Id,{0}", "$filter={0} eq 'x'", "$orderby={0}"])
def test_a_calculated_attribute_without_sql_says_what_prevents_it(tables: Tables, api: Api, query: str) -> None:
    text = "10: FORMATSTRING ATTRIB:GuaranteePeriodDays CONST:'N1'"
    attribute = calculation(text, name="Shown", repository="General.Products.Products")
    api.create("Systems_Bpm_CalculatedAttributes", attribute)
    error = error_of(tables.get(f"{PRODUCTS}?{query.format('Calculated_Attribute_Shown')}"))
    assert error["type"] == "CalculatedAttributeNotAColumn"
    assert "FORMATSTRING" in error["message"]


def test_custom_entities_have_tables(admin: Api) -> None:
    tables = tables_of(admin)
    admin.create(ENTITIES, CAR)
    admin.create(CARS, {"Code": "VW", "Consumption": 5.25, "Built": "2020-02-03"})
    row = tables.rows(f"{CARS}?$filter=Consumption gt 5")[0]
    assert (row["Code"], row["Consumption"], row["Built"], row["Doors"]) == ("VW", 5.25, "2020-02-03", 4)
    assert CARS in {entry["name"] for entry in tables.read("")["value"]}


def test_values_of_custom_properties_are_rows(tables: Tables, api: Api, world: World) -> None:
    definition = {"Code": "hue", "Name": {"EN": "Hue"}, "EntityName": "Gen_Products", "PropertyType": "Text"}
    hue = api.create("Systems_Bpm_CustomProperties", definition)["@odata.id"].partition("(")[2][:-1]
    assert tables.rows("Gen_Property_Values") == []
    api.patch(f"General_Products_Products({world.product})", {"CustomProperty_hue": "red"})
    row = {"Entity_Item_Id": world.product, "Property_Id": hue, "Property_Value": "red", "Description": None}
    for options in ("", f"?$filter=Property_Id eq {hue}", "?$filter=Property_Value like 'r%25'&$count=true",
                    f"?$filter=Entity_Item_Id in ({world.product})&$orderby=Property_Value desc&$top=3"):  # fmt: skip
        assert tables.rows(f"Gen_Property_Values{options}") == [row], options
    assert tables.rows("Gen_Property_Values?$filter=Property_Value eq 'blue'") == []
    assert body_of(tables.get("Gen_Property_Values/$count")) == b"1"


def test_nothing_is_paged_unless_a_page_is_asked_for(tables: Tables, world: World) -> None:
    ds = dataset(world.context)
    for number in range(24):
        new_product(ds, world, f"N{number:02}")
    ds.commit()
    assert len(tables.rows(PRODUCTS)) == 25
    expected = [row["Part_Number"] for row in tables.rows(f"{PRODUCTS}?$orderby=Part_Number desc")]
    found, path, pages = [], f"{PRODUCTS}?$orderby=Part_Number desc&$select=Part_Number&$count=true&$top=20&$skip=2", 0
    while path:
        answer = tables.read(path, Prefer="odata.maxpagesize=7")
        assert answer["@odata.count"] == 25
        found += [row["Part_Number"] for row in answer["value"]]
        path = answer.get("@odata.nextLink", "").partition("/odata/")[2]
        pages += 1
    assert (found, pages) == (expected[2:22], 3)


def test_pages_neither_skip_nor_repeat_rows_of_equal_or_null_keys(tables: Tables, world: World) -> None:
    ds = dataset(world.context)
    for number in range(6):
        new_product(ds, world, f"N{number}", **({"Description": {"EN": "same"}} if number % 2 else {}))
    ds.commit()
    for order in ("Description", "Description desc", "Description desc,Part_Number", "Name_DE"):
        expected = [row["Id"] for row in tables.rows(f"{PRODUCTS}?$orderby={order}")]
        found, path = [], f"{PRODUCTS}?$orderby={order}"
        while path:
            answer = tables.read(path, Prefer="maxpagesize=2")
            found += [row["Id"] for row in answer["value"]]
            path = answer.get("@odata.nextLink", "").partition("/odata/")[2]
        assert found == expected, order


@pytest.mark.parametrize(
    "path, status, kind",
    [
        ("No_Such_Table", 404, "ResourceNotFound"),
        ("Gen_Products/Id", 404, "ResourceNotFound"),
        ("Gen_Products?$filter=PartNumber eq 'x'", 400, "UnknownProperty"),
        ("Gen_Products?$filter=Part_Numbr eq 'x'", 400, "UnknownProperty"),
        ("Gen_Products?$select=Part_Numbr", 400, "UnknownProperty"),
        ("Gen_Products?$filter=Nowhere_Reference/Name eq 'x'", 400, "UnknownProperty"),
        ("Gen_Products?$orderby=Product_Group_Reference/Code", 501, "NotSupported"),
        ("Gen_Products?$select=Product_Group_Reference/Code", 501, "NotSupported"),
        ("Gen_Products?$filter=Codes/any(c:c/Id ne null)", 400, "UnknownProperty"),
        ("Gen_Products?$filter=$it/Part_Number eq 'x'", 501, "NotSupported"),
        ("Gen_Products?$expand=Codes", 501, "NotSupported"),
        ("Gen_Products?$apply=aggregate($count as N)", 501, "NotSupported"),
        ("Gen_Products?$search=x", 501, "NotSupported"),
        ("Gen_Products?$format=application/pdf", 406, "NotAcceptable"),
        ("Gen_Products?$skiptoken=x", 400, "InvalidSkipToken"),
        ("Gen_Products?$top=-1", 400, "BadQueryOption"),
    ],
)  # fmt: skip
def test_errors_are_those_of_odata(tables: Tables, path: str, status: int, kind: str) -> None:
    answer = tables.get(path)
    assert (answer.status_code, error_of(answer)["type"]) == (status, kind)


def test_an_error_names_near_columns(tables: Tables) -> None:
    assert "Part_Number" in str(error_of(tables.get("Gen_Products?$select=Part_Numbr"))["message"])


def test_reading_is_all_that_can_be_done(tables: Tables) -> None:
    headers = {"Authorization": f"Bearer {tables.token}"}
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        answer = tables.client.generic(method, "/tableapi/odata/Gen_Products", "{}", headers=headers)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
    answer = tables.client.head("/tableapi/odata/Gen_Products", headers=headers)
    assert (answer.status_code, body_of(answer)) == (200, b"")


@pytest.mark.parametrize("path", ["", "$metadata", "Gen_Products", "Gen_Products/$count"])
def test_options_tells_the_methods_to_who_may_read(tables: Tables, path: str) -> None:
    url = f"/tableapi/odata/{path}"
    answer = tables.client.options(url, headers={"Authorization": f"Bearer {tables.token}"})
    assert (answer.status_code, answer.headers["Allow"], body_of(answer)) == (204, "GET, HEAD, OPTIONS", b"")
    assert tables.client.options(url).status_code == 401


def test_options_of_an_unknown_table_is_the_error_of_a_get(tables: Tables) -> None:
    headers = {"Authorization": f"Bearer {tables.token}"}
    answer = tables.client.options("/tableapi/odata/Gen_Nothing", headers=headers)
    assert (answer.status_code, error_of(answer)["type"]) == (404, "ResourceNotFound")


def test_rows_come_in_the_format_that_is_asked_for(tables: Tables) -> None:
    path = f"{PRODUCTS}?$select=Part_Number,Name_EN"
    csv, line = b'"Part_Number","Name_EN"\r\n"P1","Chair"\r\n', b'{"Part_Number":"P1","Name_EN":"Chair"}\n'
    json_type, csv_type = "application/json;odata.metadata=minimal", "text/csv;charset=utf-8;header=present"
    for asked, accepted, media_type, body in (
        ("", "*/*", json_type, None),
        ("&$format=json", "text/csv", json_type, None),
        ("&$format=csv", "application/json", csv_type, csv),
        ("", "text/csv", csv_type, csv),
        ("&$format=NDJSON", "*/*", "application/x-ndjson", line),
        ("&$format=application/x-ndjson", "*/*", "application/x-ndjson", line),
        ("&$format=arrow", "*/*", "application/vnd.apache.arrow.stream", None),
        ("&$format=parquet", "*/*", "application/vnd.apache.parquet", None),
    ):
        answer = tables.get(path + asked, Accept=accepted)
        given = body_of(answer)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, media_type), (asked, accepted)
        assert given == body if body else b"P1" in given, (asked, accepted)
    saved = tables.get(f"{path}&$format=csv")
    assert saved.headers["Content-Disposition"] == 'attachment; filename="Gen_Products.csv"'
    assert body_of(saved) == csv
    assert "@odata.context" not in tables.read(f"{path}&$format=application/json;odata.metadata=none")


def test_a_query_that_the_database_refuses_is_an_error(tables: Tables) -> None:
    """And no answer of 200 that breaks off."""
    too_long = "Part_Number"
    for _ in range(30):
        too_long = f"replace({too_long},'P','{'P' * 32}')"
    answer = tables.get(f"{PRODUCTS}?$filter={too_long} ne 'x'")
    assert (answer.status_code, error_of(answer)["type"]) == (400, "BadQueryOption")


def test_the_alias_answers_alike(tables: Tables) -> None:
    headers = {"Authorization": f"Bearer {tables.token}"}
    answer = json.loads(body_of(tables.client.get("/tableapi/data/Gen_Products?$select=Part_Number", headers=headers)))
    assert answer["value"] == [{"Part_Number": "P1"}]
    assert answer["@odata.context"].endswith("/tableapi/data/$metadata#Gen_Products(Part_Number)")
