"""Finding: `@erpnet.findBy`, the order of search criteria, find or merge (spec 14.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of

COMPANIES = "General_EnterpriseCompanies"
CUSTOMERS = "Crm_Sales_Customers"
GROUPS = "General_Products_ProductGroups"
LINES = "Crm_Sales_SalesOrderLines"
PRODUCTS = "General_Products_Products"
TABLES = {"Code": "T-1", "Name": {"EN": "Tables", "BG": "Маси"}, "ExternalId": "7", "ExternalSystem": "shop"}


@pytest.fixture
def tables(api: Api) -> str:
    """A product group."""
    return str(api.create(GROUPS, TABLES)["@odata.id"])


def find(api: Api, find_by: Any, action: str = "find", **values: Any) -> Answer:
    """The answer to a POST that finds a product group."""
    return api.post(GROUPS, {"@erpnet.action": action, "@erpnet.findBy": find_by, **values})


@pytest.mark.parametrize(
    "find_by",
    [
        {"ExternalId": "7"},
        {"ExternalId": "7", "ExternalSystem": "shop"},
        {"ExternalId": "7", "Code": "nothing", "Name": "nothing"},
        {"Code": "T-1"},
        {"Code": "T-1", "Name": "nothing", "DisplayText": "nothing"},
        {"DisplayText": "nothing", "Name": "nothing", "Code": "T-1"},
        {"code": "T-1"},
        {"Name": "Tables"},
        {"Name": "abl"},
        {"Name": "TABLES"},
        {"Name": "маси"},
        {"Name": {"EN": "nothing", "BG": "Маси"}},
        {"Name": "abl", "DisplayText": "nothing"},
        {"DisplayText": "tables"},
        {"DisplayText": "T-1 AND (tables OR chairs)"},
        {"ExternalId": None, "Code": "T-1"},
    ],
)
def test_the_first_criterion_that_is_present_is_used_alone(api: Api, tables: str, find_by: dict[str, Any]) -> None:
    found = find(api, find_by)
    assert (found.status_code, found.json().get("@odata.id")) == (200, tables), found.content


@pytest.mark.parametrize(
    "find_by",
    [
        {"ExternalId": "8", "Code": "T-1"},
        {"ExternalId": "7", "ExternalSystem": "books", "Code": "T-1"},
        {"Id": "11111111-2222-3333-4444-555555555555", "Code": "T-1"},
        {"Code": "T", "Name": "Tables"},
        {"Name": "Tables!", "DisplayText": "tables"},
        {"DisplayText": "tables NOT T-1"},
        {"DisplayText": "(tables"},
    ],
)
def test_a_later_criterion_does_not_help_an_earlier_one(api: Api, tables: str, find_by: dict[str, Any]) -> None:
    refused = find(api, find_by)
    error = error_of(refused)
    assert (refused.status_code, error["type"]) == (500, "FindFailed")
    first = next(str(value) for value in find_by.values())
    assert first in error["message"]
    assert find(api, find_by, "findOrNull").status_code == 204


def test_an_external_id_may_be_as_long_as_the_references(api: Api, tables: str) -> None:
    long = "x" * 254
    assert api.patch(tables, {"ExternalId": long}).status_code == 204
    assert find(api, {"ExternalId": long}).json()["@odata.id"] == tables
    assert error_of(api.patch(tables, {"ExternalId": f"{long}x"}))["type"] == "ValueTooLong"


def test_a_key_in_any_form_of_a_guid_finds(api: Api, tables: str) -> None:
    assert find(api, {"Id": tables[-37:-1].upper()}).json()["@odata.id"] == tables


@pytest.mark.parametrize(
    "find_by",
    [
        "Code", 7, ["Code"], True, {}, {"ExternalSystem": "shop"}, {"Code": None}, {"Colour": "red"}, {"Notes": "x"},
        {"Code": 7}, {"Code": {"EN": "x"}}, {"Code": ""}, {"Name": ""}, {"Name": " "}, {"Name": {}},
        {"Name": {"EN": 7}}, {"DisplayText": ""}, {"DisplayText": ["x"]}, {"Id": "nonsense"}, {"Id": 7},
        {"ExternalId": 7}, {"ExternalId": "7", "ExternalSystem": 7}, {"Code": "T-1", "Colour": "red"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("action", ["find", "findOrCreate", "merge", "delete"])
def test_what_find_by_cannot_be_is_refused_by_name(api: Api, tables: str, find_by: Any, action: str) -> None:
    refused = find(api, find_by, action)
    assert refused.status_code == 400, refused.content
    error = error_of(refused)
    assert error["type"] in ("InvalidBody", "InvalidKey")
    assert "@erpnet.findBy" in error["target"] or error["target"] == "Id"
    assert api.get(f"{GROUPS}/$count").content == b"2"


def test_an_unknown_member_of_find_by_is_named_with_the_known_ones(api: Api) -> None:
    message = error_of(find(api, {"LineNo": "x"}))["message"]
    assert all(name in message for name in ("LineNo", "ExternalId", "Code", "Name", "DisplayText"))
    refused = api.post("Crm_SalesForce_SalesPersons", {"@erpnet.action": "find", "@erpnet.findBy": {"Code": "x"}})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidBody")


@pytest.mark.parametrize("name", ["Code", "Company.RegistrationNumber", "Company/RegistrationNumber"])
def test_a_code_of_another_entity_is_found_by_its_path(api: Api, world: World, name: str) -> None:
    company = api.read(f"{COMPANIES}({world.company})?$expand=Company($select=Id)")
    api.patch(f"General_Contacts_Companies({company['Company']['Id']})", {"RegistrationNumber": "R 7"})
    for nested in ({"@erpnet.findBy": {name: "R 7"}}, {"Company": {"RegistrationNumber": "R 7"}}):
        api.patch(f"{GROUPS}({world.group})", {"EnterpriseCompany": None})
        answer = api.patch(f"{GROUPS}({world.group})", {"EnterpriseCompany": nested})
        assert answer.status_code == 204, answer.content
        stored = api.read(f"{GROUPS}({world.group})?$select=EnterpriseCompany")["EnterpriseCompany"]
        assert stored == {"@odata.id": f"{COMPANIES}({world.company})"}
    refused = api.patch(f"{GROUPS}({world.group})", {"EnterpriseCompany": {"@erpnet.findBy": {name: "R 8"}}})
    assert "R 8" in error_of(refused)["message"]


def test_a_name_behind_a_reference_is_found_too(api: Api, world: World) -> None:
    name = next(iter(api.read(f"{CUSTOMERS}({world.customer})?$expand=Party")["Party"]["PartyName"].values()))
    found = api.post(CUSTOMERS, {"@erpnet.action": "find", "@erpnet.findBy": {"Name": name[1:4].upper()}})
    assert found.json()["@odata.id"] == f"{CUSTOMERS}({world.customer})"


def test_find_takes_the_first_and_the_same_name_before_one_that_contains_it(api: Api) -> None:
    for code, name in (("A", "Red stoves"), ("B", "Stoves"), ("C", "Stoves of iron")):
        api.create(GROUPS, {"Code": code, "Name": {"EN": name}})
    assert find(api, {"Name": "Stoves"}).json()["Code"] == "B"
    merged = api.post(GROUPS, {"@erpnet.action": "merge", "Name": {"EN": "Stoves"}, "Notes": "n"})
    assert merged.json()["Code"] == "B"
    inside = api.begin()
    inside.create(GROUPS, {"Code": "D", "Name": {"EN": "Bar stools"}})
    inside.create(GROUPS, {"Code": "E", "Name": {"EN": "stools"}})
    assert find(inside, {"Name": "stools"}).json()["Code"] == "E"
    assert find(inside, {"DisplayText": "Bar"}).json()["Code"] == "D"
    assert find(inside, {"DisplayText": "stoves iron"}).json()["Code"] == "C"


def test_single_refuses_several_and_says_which(api: Api) -> None:
    made = [api.create(GROUPS, {"Code": code, "Name": {"EN": f"{code} shelf"}})["@odata.id"] for code in ("A", "B")]
    for find_by in ({"Name": "shelf"}, {"DisplayText": "shelf"}):
        refused = find(api, find_by, "findSingle")
        error = error_of(refused)
        assert (refused.status_code, error["type"]) == (500, "FindFailed")
        assert "shelf" in error["message"]
        assert all(path in error["message"] for path in made)
        assert find(api, find_by, "findSingleOrNull").status_code == 204
    assert find(api, {"Name": "A shelf"}, "findSingleOrNull").json()["Code"] == "A"


@pytest.mark.parametrize(
    "nested,action",
    [
        ({"Code": "T-1"}, "find"),
        ({"@erpnet.findBy": {"Name": "Tables"}}, "find"),
        ({"@odata.id": "{tables}"}, "find"),
        ({"ExternalId": "7", "ExternalSystem": "shop"}, "find"),
        ({"Name": {"EN": "Tables"}}, "find"),
        ({"DisplayText": "Tables", "Code": "T-1"}, "find"),
        ({"Code": "T-1", "Name": {"EN": "New"}}, "merge"),
        ({"@erpnet.findBy": {"Code": "T-1"}, "Name": {"EN": "New"}}, "merge"),
        ({"@odata.id": "{tables}", "Name": {"EN": "New"}}, "merge"),
        ({"ExternalId": "7", "Name": {"EN": "New"}}, "merge"),
        ({"Code": "T-1", "Name": {"EN": "New"}, "ParentGroup@odata.bind": None}, "merge"),
    ],
)
def test_a_nested_object_is_found_if_it_has_nothing_but_search_properties(
    api: Api, world: World, tables: str, nested: dict[str, Any], action: str
) -> None:
    nested = {name: tables if value == "{tables}" else value for name, value in nested.items()}
    answer = api.patch(f"{PRODUCTS}({world.product})", {"ProductGroup": nested})
    assert answer.status_code == 204, answer.content
    group = api.read(f"{PRODUCTS}({world.product})?$expand=ProductGroup")["ProductGroup"]
    assert group["@odata.id"] == tables
    assert group["Name"]["EN"] == ("Tables" if action == "find" else "New")
    assert api.get(f"{GROUPS}/$count").content == b"2"


def test_code_and_name_create_what_is_not_there_and_code_alone_does_not(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert error_of(api.patch(product, {"ProductGroup": {"Code": "DATG01"}}))["type"] == "FindFailed"
    group = {"Code": "DATG01", "Name": {"EN": "Group"}}
    for name in ("Group", "Renamed"):
        assert api.patch(product, {"ProductGroup": {**group, "Name": {"EN": name}}}).status_code == 204
        stored = api.read(f"{product}?$expand=ProductGroup")["ProductGroup"]
        assert (stored["Code"], stored["Name"]["EN"]) == ("DATG01", name)
    assert api.get(f"{GROUPS}/$count?$filter=Code eq 'DATG01'").content == b"1"
    # What findBy says is not data: a new group has its own members only.
    body = {"@erpnet.action": "findOrCreate", "@erpnet.findBy": {"Code": "DATG09"}, "Name": {"EN": "Own"}}
    made = api.post(GROUPS, body)
    assert (made.status_code, made.json()["Name"]) == (201, {"EN": "Own"})
    assert made.json()["Code"] != "DATG09"


@pytest.mark.parametrize("value", ["", {}, {"EN": ""}, None])
def test_an_empty_member_of_an_object_is_no_criterion(api: Api, tables: str, value: Any) -> None:
    answer = api.post(GROUPS, {"@erpnet.action": "merge", "Name": value, "Notes": "n"})
    assert answer.status_code in (201, 500), answer.content
    assert api.read(f"{tables}?$select=Notes")["Notes"] is None


@pytest.mark.parametrize("find_by", [{"ExternalId": "7"}, {"Code": "7"}])
def test_parts_without_such_a_member_are_not_found_by_it(api: Api, find_by: dict[str, Any]) -> None:
    refused = api.post(LINES, {"@erpnet.action": "find", "@erpnet.findBy": find_by})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidBody")
    merged = api.post(LINES, {"@erpnet.action": "merge", **find_by})
    assert (merged.status_code, error_of(merged)["type"]) == (400, "UnknownProperty")


def test_imports_find_by_the_same_rules(api: Api, tables: str) -> None:
    typed = {"@odata.type": "Erp.General_Products_ProductGroup"}
    objects = [
        {**typed, "@erpnet.findBy": {"Name": "abl"}, "Notes": "found"},
        {**typed, "@erpnet.findBy": "Name", "Notes": "lost"},
        {**typed, "@erpnet.action": "update", "@erpnet.findBy": {"Code": "none"}, "Notes": "lost"},
    ]
    first, second, third = api.post("Import", {"objects": objects}).json()["objects"]
    assert (first["@odata.id"], first["@erpnet.state"]) == (tables, "Modified")
    assert second["@erpnet.error"]["target"] == "@erpnet.findBy"
    assert "none" in third["@erpnet.message"]
    assert api.read(f"{tables}?$select=Notes")["Notes"] == "found"
