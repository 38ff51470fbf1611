"""Calculated attributes in metadata and queries (spec 10.1)."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.domain.calculations.conftest import ORDER_SET, Orders, refused

NAME = "CalculatedAttribute_Total"
TOTAL = "10: SUM CHILD:Lines EXP:20\n20: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue"


@pytest.fixture
def total(orders: Orders) -> Orders:
    """Orders with their total: 121 and 0."""
    orders.define(TOTAL, name="Total", Caption={"EN": "Total value", "BG": "Стойност"}, Hint={"EN": "Of all lines"})
    return orders


def numbers(orders: Orders, options: str) -> list[str]:
    return [row["DocumentNo"] for row in orders.api.read(f"{ORDER_SET}?$select=DocumentNo&{options}")["value"]]


def test_it_is_in_no_answer_unless_it_is_selected(total: Orders) -> None:
    assert NAME not in total.api.read(f"{ORDER_SET}({total.full})")
    assert total.api.read(f"{ORDER_SET}({total.full})?$select=Total")[NAME] == 121
    assert total.api.read(f"{ORDER_SET}({total.full})?$select=default,{NAME.lower()}")[NAME] == 121
    assert total.api.read(f"{ORDER_SET}({total.full})/{NAME}")["value"] == 121
    assert total.api.get(f"{ORDER_SET}({total.full})/Total/$value").content == b"121"


def test_filter_order_compute_and_apply_run_in_the_database(total: Orders) -> None:
    assert numbers(total, f"$filter={NAME} gt 100") == ["A-009"]
    assert numbers(total, "$filter=Total eq 0") == ["none"]
    assert numbers(total, f"$orderby={NAME}") == ["none", "A-009"]
    assert numbers(total, "$orderby=Total desc") == ["A-009", "none"]
    rows = total.api.read(f"{ORDER_SET}?$compute=Total mul 2 as Twice&$select=Twice&$orderby=Twice desc")["value"]
    assert [row["Twice"] for row in rows] == [242, 0]
    applied = total.api.read(f"{ORDER_SET}?$apply=aggregate({NAME} with sum as S)")["value"]
    assert applied[0]["S"] == 121
    grouped = total.api.read(f"{ORDER_SET}?$apply=groupby(({NAME}),aggregate($count as N))&$orderby={NAME}")["value"]
    assert [(row[NAME], row["N"]) for row in grouped] == [(0, 1), (121, 1)]


def test_pages_of_an_order_by_it_continue(total: Orders) -> None:
    first = total.api.read(f"{ORDER_SET}?$select=DocumentNo&$orderby=Total desc", Prefer="odata.maxpagesize=1")
    link = first["@odata.nextLink"].partition("/odata/")[2] or first["@odata.nextLink"]
    assert [row["DocumentNo"] for row in total.api.read(link)["value"]] == ["none"]


def test_it_is_reached_over_references_and_expansions(total: Orders) -> None:
    line = total.api.read(f"Crm_Sales_SalesOrderLines?$filter=SalesOrder/{NAME} eq 121&$top=1"
                          f"&$expand=SalesOrder($select={NAME})")["value"][0]  # fmt: skip
    assert line["SalesOrder"][NAME] == 121


def test_metadata_says_what_it_is(total: Orders) -> None:
    xml = total.api.get("$metadata").content.decode()
    found = xml[xml.index(f'Name="{NAME}"') :][:400]
    assert 'Type="Edm.Decimal"' in found
    assert "Core.Computed" in found
    assert "Total value" in found
    shown = json.loads(
        total.api.client.get(
            f"/api/domain/currentmodel/{ORDER_SET}?details=true",
            headers={"Authorization": f"Bearer {total.api.token}", "Accept-Language": "bg"},
        ).content
    )
    members = shown["Attributes"] if isinstance(shown, dict) else shown[0]["Attributes"]
    (member,) = [each for each in members if each["Name"] == NAME]
    assert member["IsCalculatedDataAttribute"] is True
    assert member["ReadOnly"] is True
    assert (member["Type"], member["LocalizedName"]) == ("Edm.Decimal", "Стойност")
    assert NAME.encode() in total.api.client.get(
        "/api/openapi.json", headers={"Authorization": f"Bearer {total.api.token}"}
    ).content  # fmt: skip


def test_it_cannot_be_written(total: Orders) -> None:
    refused(total.api.patch(f"{ORDER_SET}({total.full})", {NAME: 5}), 400)


def test_a_failure_is_null_with_a_warning_in_lists_and_an_error_alone(orders: Orders) -> None:
    name = orders.define("10: ADD EXP:20 CONST:1\n20: DIVIDE CONST:6 EXP:30\n30: COUNT CHILD:Lines")
    row = orders.api.read(f"{ORDER_SET}({orders.empty})?$select={name}")
    assert row[name] is None
    assert row[f"{name}@erpnet.warning"] == {
        "row": 20,
        "message": f"{name} has no value: row 20 of its definition failed.",
    }
    assert f"{name}@erpnet.warning" not in orders.api.read(f"{ORDER_SET}({orders.full})?$select={name}")
    error = refused(orders.api.get(f"{ORDER_SET}({orders.empty})/{name}"), 500)
    assert error["type"] == "CalculationFailed"
    assert "row 20" in error["message"]
    assert numbers(orders, f"$filter={name} eq 3") == ["A-009"]


@pytest.mark.parametrize(
    "options",
    ["$filter={0} eq 'A-010'", "$orderby={0}", "$apply=groupby(({0}))", "$compute=length({0}) as L",
     "$apply=aggregate({0} with countdistinct as N)", "$apply=filter(startswith({0},'A'))"],
)  # fmt: skip
def test_what_the_database_lacks_cannot_be_queried(orders: Orders, options: str) -> None:
    name = orders.define("10: INCNUM ATTRIB:DocumentNo")
    assert orders.api.read(f"{ORDER_SET}({orders.full})?$select={name}")[name] == "A-010"
    error = refused(orders.api.get(f"{ORDER_SET}?{options.format(name)}"), 400)
    assert error["type"] == "CalculatedAttributeNotQueryable"
    assert "INCNUM" in error["message"]
    assert name in error["message"]


def test_the_model_says_what_the_database_lacks(orders: Orders) -> None:
    name = orders.define("10: INCNUM ATTRIB:DocumentNo")
    number = orders.define("10: ADD CONST:1 CONST:2", name="Number")
    document = orders.api.get("$metadata", OData_MaxVersion="4.01", Accept="application/json").json()
    entity_set = document["Erp"]["Container"][ORDER_SET]
    assert entity_set["@Capabilities.FilterRestrictions"] == {"NonFilterableProperties": [name]}
    assert entity_set["@Capabilities.SortRestrictions"] == {"NonSortableProperties": [name]}
    xml = orders.api.get("$metadata").content.decode()
    assert f"<PropertyPath>{name}</PropertyPath>" in xml
    model = orders.api.client.get(
        f"/api/domain/currentmodel/{ORDER_SET}", headers={"Authorization": f"Bearer {orders.api.token}"}
    ).json()
    attributes = {each["Name"]: each["BaseInfo"] for each in model["Attributes"]}
    assert (attributes[name]["SupportedFilters"], attributes[name]["Orderable"]) == ("NotFilterable", False)
    assert attributes[number]["SupportedFilters"] == "Equals, GreaterThanOrLessThan, EqualsIn"


def queries(orders: Orders, path: str) -> int:
    orders.api.read(path)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        orders.api.read(path)
    return len([each for each in captured if each["sql"].lstrip().startswith("SELECT")])


def test_the_number_of_queries_does_not_depend_on_the_rows(total: Orders) -> None:
    plain = queries(total, f"{ORDER_SET}?$select=DocumentNo")
    assert queries(total, f"{ORDER_SET}?$select=DocumentNo,{NAME}") == plain
    one = total.define("10: INCNUM ATTRIB:DocumentNo", name="Next")
    two = total.define("10: FORMATSTRING ATTRIB:DocumentDate CONST:'d'", name="Day")
    assert queries(total, f"{ORDER_SET}?$select=DocumentNo,{one},{two}") == plain + 1
    lines = total.define("10: LIST CHILD:Lines EXP:20\n20: FORMATSTRING ATTRIB:UnitPriceValue CONST:'N1'", name="L")
    assert queries(total, f"{ORDER_SET}?$select=DocumentNo,{lines}") == plain + 2
