"""Entity names: EntityName, AllowedValuesEntityName, Erp.EntityName (spec 14.1)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.rules.cast import World
from tests.support.api import Api, error_of

TYPES = "Systems_Documents_DocumentTypes"
PROPERTIES = "Systems_Bpm_CustomProperties"
LAYOUTS = "Systems_Documents_PrintoutLayouts"
NAMES = ["Crm_Sales_Orders", "Crm_Sales_SalesOrders", "Crm.Sales.SalesOrders", "crm_sales_orders"]


@pytest.mark.parametrize("given", NAMES)
def test_a_document_type_stores_the_base_table_whatever_name_it_was_given(api: Api, given: str) -> None:
    made = api.create(TYPES, {"Code": "T1", "TypeName": {"EN": "Type"}, "EntityName": given})
    assert made["EntityName"] == "Crm_Sales_Orders"
    found = api.read(f"{TYPES}?$filter=EntityName eq 'Crm_Sales_Orders' and Code eq 'T1'&$select=Code")["value"]
    assert [row["Code"] for row in found] == ["T1"]


@pytest.mark.parametrize("given", ["Gen_Products", "General_Products_Products", "General.Products.Products"])
def test_custom_properties_store_base_tables_and_work(api: Api, world: World, given: str) -> None:
    body = {"Code": "hue", "Name": {"EN": "Hue"}, "EntityName": given, "PropertyType": "Text"}
    made = api.create(PROPERTIES, {**body, "AllowedValuesEntityName": "General_Currencies_Currencies"})
    assert (made["EntityName"], made["AllowedValuesEntityName"]) == ("Gen_Products", "Gen_Currencies")
    api.patch(made["@odata.id"], {"AllowedValuesEntityName": None})
    assert api.patch(f"General_Products_Products({world.product})", {"CustomProperty_hue": "red"}).status_code == 204
    repeated = api.post(PROPERTIES, {**body, "EntityName": "Gen_Products"})
    assert error_of(repeated)["code"] == 2129


def test_print_layouts_store_base_tables(api: Api) -> None:
    body = {"Name": "L", "DocumentEntityName": "Crm_Invoicing_Invoices", "LayoutFormat": "html"}
    assert api.create(LAYOUTS, body)["DocumentEntityName"] == "Crm_Invoices"


def test_documents_have_the_base_table_of_their_set(api: Api, world: World) -> None:
    made = api.create("Crm_Sales_SalesOrders", {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})"})
    assert made["EntityName"] == "Crm_Sales_Orders"


@pytest.mark.parametrize(
    "set_name,body,status",
    [
        (TYPES, {"Code": "T1", "TypeName": {"EN": "T"}, "EntityName": "Crm_Sales_Order"}, 400),
        (TYPES, {"Code": "T1", "TypeName": {"EN": "T"}, "EntityName": "Gen_Products"}, 400),
        (TYPES, {"Code": "T1", "TypeName": {"EN": "T"}, "EntityName": 7}, 400),
        (PROPERTIES, {"Code": "x", "Name": {"EN": "x"}, "EntityName": "Gen_Product"}, 400),
        (PROPERTIES, {"Code": "x", "Name": {"EN": "x"}, "EntityName": ""}, 500),  # a missing value
    ],
)
def test_unknown_entity_names_are_refused(api: Api, set_name: str, body: dict[str, Any], status: int) -> None:
    refused = api.post(set_name, body)
    assert refused.status_code == status, refused.content
    error = error_of(refused)
    assert "EntityName" in (error.get("target") or error["message"])
    assert error["type"] != "InternalError"


def test_metadata_gives_each_entity_set_its_entity_name(api: Api) -> None:
    root = ElementTree.fromstring(api.get("$metadata").content)
    edm = "{http://docs.oasis-open.org/odata/ns/edm}"
    annotated = {
        entity_set.get("Name"): annotation.get("String")
        for entity_set in root.iter(f"{edm}EntitySet")
        for annotation in entity_set.findall(f"{edm}Annotation")
        if annotation.get("Term") == "Erp.EntityName"
    }
    assert len(annotated) == len(list(root.iter(f"{edm}EntitySet")))
    assert annotated["Crm_Sales_SalesOrders"] == "Crm_Sales_Orders"
    assert annotated["General_Products_Products"] == "Gen_Products"
    as_json = api.read("$metadata?$format=json")["Erp"]
    assert as_json["Container"]["General_Products_Products"]["@Erp.EntityName"] == "Gen_Products"
    assert as_json["EntityName"]["$Kind"] == "Term"
