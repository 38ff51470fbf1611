"""The rules that lead from Python names to API names."""

from __future__ import annotations

import pytest

from domain.model.naming import near, pascal_case, set_name
from domain.model.registry import repositories
from foundation import errors


@pytest.mark.parametrize(
    "snake,pascal",
    [("part_number", "PartNumber"), ("id", "Id"), ("level_1_discount", "Level1Discount"), ("url", "Url")],
)
def test_snake_case_becomes_pascal_case(snake: str, pascal: str) -> None:
    assert pascal_case(snake) == pascal


def test_entity_sets_have_underscores() -> None:
    assert set_name("General.Products.Products") == "General_Products_Products"


def test_similar_names_are_offered() -> None:
    assert near("Crm.Sales.SalesOrder", ["Crm.Sales.SalesOrders", "General.Files"]) == (
        " Did you mean Crm.Sales.SalesOrders?"
    )
    assert near("Zebra", ["Crm.Sales.SalesOrders"]) == ""


def test_an_unknown_repository_names_similar_ones() -> None:
    with pytest.raises(errors.BadRequest) as caught:
        repositories.get("Crm.Sales.SaleOrders")
    assert "Crm.Sales.SalesOrders" in str(caught.value)


def test_sets_and_types_are_found_in_any_case_and_by_former_names() -> None:
    orders = repositories["Crm.Sales.SalesOrders"]
    assert repositories.for_set("crm_sales_salesorders") == (orders, False)
    assert repositories.for_type("#Erp.Crm_Sales_SalesOrder") is orders
    assert repositories.for_set("Crm_Customers") == (repositories["Crm.Sales.Customers"], True)
    assert repositories.for_set("Crm_Nobody") is None


def test_heirs_show_the_keys_of_their_bases() -> None:
    activity = repositories["Applications.Service.ServiceActivities"]
    assert {"DocumentId", "ActivityId"} <= activity.attributes.keys()
    assert activity.attributes["DocumentId"].key_alias


def test_references_to_a_base_reach_every_heir() -> None:
    parties = repositories["General.Contacts.Parties"]
    assert parties.abstract
    assert {subtype.name for subtype in parties.subtypes} == {
        "General.Contacts.Companies",
        "General.Contacts.CompanyLocations",
        "General.Contacts.Persons",
        "Logistics.Inventory.Stores",
    }
    assert "StateChanges" in repositories["Crm.Sales.SalesOrders"].collections
