"""$expand: what it gives, and that it costs one query for each collection level."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from foundation import errors
from tests.domain.query.conftest import Ask, english, reads
from tests.domain.query.reference import Row

SET = "General_Products_Products"


@pytest.mark.parametrize(
    "expand, queries",
    [
        ("ProductGroup", 1),
        ("ProductGroup($expand=ParentGroup($expand=ParentGroup))", 1),
        ("Prices", 2),
        ("Prices,Codes", 3),
        ("Prices($expand=Currency,Product($expand=ProductGroup))", 2),
        ("Prices($expand=Product($expand=Codes))", 3),
        ("Prices($count=true)", 3),
        ("Prices($top=1;$skip=1)", 2),
        ("Prices/$count", 2),
        ("Prices/$ref", 2),
        ("ProductGroup($levels=3)", 1),
        ("ProductGroup/$ref", 1),
    ],
)
def test_each_level_costs_one_query_whatever_the_rows(products: list[Row], ask: Ask, expand: str, queries: int) -> None:
    ask(SET, f"$expand={expand}")  # the plan, and what the dialect asks once
    for top in (1, len(products)):
        with CaptureQueriesContext(connection) as captured:
            ask(SET, f"$expand={expand}&$top={top}")
        assert len(reads(captured)) == queries, reads(captured)


def test_collections_hang_on_their_owners(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$select=Id&$expand=Prices($select=Id;$expand=Currency($select=CurrencySign)),Codes($select=Id)")
    for row, expected in zip(body["value"], products, strict=True):
        assert [price["Id"] for price in row["Prices"]] == [price["Id"] for price in expected["Prices"]]
        assert [price["Currency"]["CurrencySign"] for price in row["Prices"]] == [
            price["Currency"]["CurrencySign"] for price in expected["Prices"]
        ]
        assert [code["Id"] for code in row["Codes"]] == [code["Id"] for code in expected["Codes"]]


def test_nested_options_apply_to_each_parent_by_itself(products: list[Row], ask: Ask) -> None:
    nested = "$filter=Price gt 1;$orderby=Price desc,Id;$skip=1;$top=1;$count=true;$select=Id;$compute=Price mul 2 as D"
    body = ask(SET, f"$select=Id&$expand=Prices({nested})")
    for row, expected in zip(body["value"], products, strict=True):
        found = sorted((p for p in expected["Prices"] if p["Price"] > 1), key=lambda p: (-p["Price"], p["Id"]))
        assert [price["Id"] for price in row["Prices"]] == [price["Id"] for price in found[1:2]]
        assert row["Prices@odata.count"] == len(found)


def test_counts_and_references_of_a_collection(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$select=Id&$expand=Prices/$count($filter=IsActive),Codes/$ref")
    for row, expected in zip(body["value"], products, strict=True):
        assert row["Prices@odata.count"] == sum(price["IsActive"] for price in expected["Prices"])
        assert row["Codes"] == [
            {"@odata.id": f"General_Products_ProductCodes({code['Id']})"} for code in expected["Codes"]
        ]


def test_a_reference_that_is_null_expands_to_null(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$select=Id&$expand=CostingCurrency($select=CurrencySign)")
    for row, expected in zip(body["value"], products, strict=True):
        currency = expected["CostingCurrency"]
        assert (row["CostingCurrency"] or {}).get("CurrencySign") == (currency["CurrencySign"] if currency else None)


def test_levels_go_up_the_parents(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_ProductGroups", "$select=Code&$expand=ParentGroup($select=Code;$levels=max)")
    chains = {row["Code"]: _chain(row) for row in body["value"]}
    assert chains["G5"] == ["G5", "G2", "G1"]
    assert chains["G0"] == ["G0"]


def _chain(row: dict[str, object]) -> list[object]:
    parent = row.get("ParentGroup")
    return [row["Code"], *(_chain(parent) if isinstance(parent, dict) else [])]


def test_a_path_in_select_expands_what_it_leads_to(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$select=Id,ProductGroup/Code,ProductGroup/ParentGroup/Code")
    for row, expected in zip(body["value"], products, strict=True):
        group = row["ProductGroup"]
        parent = expected["ProductGroup"]["ParentGroup"]
        assert group["Code"] == expected["ProductGroup"]["Code"]
        assert (group["ParentGroup"] or {}).get("Code") == (parent["Code"] if parent is not None else None)
        assert "Name" not in group


def test_a_reference_can_be_expanded_as_a_derived_type(db: None, ask: Ask) -> None:
    from domain.entities.crm_sales import Customer
    from domain.entities.general_contacts import Company, Person

    company = Company.objects.create(
        party_code="1", party_name=english("C"), name=english("C"), concrete_repository="General.Contacts.Companies"
    )
    person = Person.objects.create(
        party_code="2",
        party_name=english("P"),
        first_name=english("F"),
        last_name=english("L"),
        concrete_repository="General.Contacts.Persons",
    )
    for number, party in (("1", company), ("2", person)):
        Customer.objects.create(number=number, party_id=party.pk)
    expand = "Party/Erp.General_Contacts_Person($select=FirstName)"
    rows = ask("Crm_Sales_Customers", f"$select=Number&$expand={expand}&$orderby=Number")["value"]
    assert rows[0]["Party"] is None
    assert rows[1]["Party"]["FirstName"] == {"EN": "F"}


def test_everything_can_be_expanded_at_once(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$expand=*&$top=2")
    assert body["value"][0]["ProductGroup"]["Code"] == products[0]["ProductGroup"]["Code"]
    assert len(body["value"][0]["Prices"]) == len(products[0]["Prices"])


@pytest.mark.parametrize(
    "expand", ["Nothing", "PartNumber", "Prices($expand=Nothing)", "ProductGroup($filter=Active)", "Codes,codes"]
)
def test_what_cannot_be_expanded_is_named(products: list[Row], ask: Ask, expand: str) -> None:
    with pytest.raises(errors.BadRequest):
        ask(SET, f"$expand={expand}")


@pytest.mark.parametrize(
    "row_of_it", ["$it/PartNumber eq '{0}'", "contains($it/ProductGroup/Code,'G') and $it/Id eq {1}"]
)
def test_it_is_the_row_of_the_addressed_set(products: list[Row], ask: Ask, row_of_it: str) -> None:
    """OData URL Conventions 4.01, 5.1.1.14.4; the expanded row is $this."""
    chosen = next(product for product in products if len(product["Prices"]) > 1)
    condition = row_of_it.format(chosen["PartNumber"], chosen["Id"])
    expand = (
        f"Prices($filter={condition};$count=true;$select=Id),Codes/$count($filter=$this/Id ne null and {condition})"
    )
    for row, expected in zip(ask(SET, f"$select=Id&$expand={expand}")["value"], products, strict=True):
        prices = expected["Prices"] if expected is chosen else []
        assert [price["Id"] for price in row["Prices"]] == [price["Id"] for price in prices]
        assert row["Prices@odata.count"] == len(prices)
        assert row["Codes@odata.count"] == (len(expected["Codes"]) if expected is chosen else 0)


def test_it_is_the_row_of_the_addressed_set_in_an_expanded_reference(products: list[Row], ask: Ask) -> None:
    expand = "ProductGroup($compute=$it/PartNumber as Of;$select=Of)"
    for row, expected in zip(ask(SET, f"$select=Id&$expand={expand}")["value"], products, strict=True):
        assert row["ProductGroup"]["Of"] == expected["PartNumber"]


def test_it_that_an_expanded_row_does_not_lead_to_is_refused(products: list[Row], ask: Ask) -> None:
    with pytest.raises(errors.NotSupported):
        ask("Crm_Pricing_ProductPrices", "$expand=Product($expand=Codes($filter=$it/Price gt 1))")
