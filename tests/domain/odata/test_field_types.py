"""The domain's own types and their shapes over the API (spec 02, 2.2; spec 08, 8.1 and 8.3)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.domain.odata.test_writing import GROUPS, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

PARTIES = "General_Contacts_Parties"
PERSONS = "General_Contacts_Persons"
COMPANIES = "General_Contacts_Companies"
DOCUMENTS = "General_Documents_Documents"


@pytest.fixture
def order(api: Api, world: World) -> dict[str, Any]:
    """An order with a line."""
    found: dict[str, Any] = api.create(
        f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1.5, "UnitPrice": 12.34})
    )
    return found


def test_texts_by_language_are_upper_case_out_and_any_case_in(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"Name": {"en": "Stool", "De": "Hocker"}}).status_code == 204
    texts = api.read(f"{product}?$select=Name")["Name"]
    assert (texts["EN"], texts["DE"]) == ("Stool", "Hocker")


@pytest.mark.parametrize("address", ["", "/Name"])
def test_a_patch_of_texts_changes_the_languages_that_it_names(api: Api, world: World, address: str) -> None:
    product = f"{PRODUCTS}({world.product})"

    def name_after(method: str, texts: dict[str, Any]) -> Any:
        sent = texts if address else {"Name": texts}
        assert api.request(method, product + address, sent).status_code == 204
        return api.read(f"{product}?$select=Name")["Name"]

    before = api.read(f"{product}?$select=Name")["Name"]
    assert name_after("PATCH", {"de": "Stuhl", "BG": "Стол"}) == {**before, "DE": "Stuhl", "BG": "Стол"}
    assert name_after("PATCH", {"EN": "Seat", "bg": None}) == {"EN": "Seat", "DE": "Stuhl"}
    if address:
        assert name_after("PUT", {"FR": "chaise"}) == {"FR": "chaise"}


def test_a_put_replaces_all_texts(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"Name": {"DE": "Stuhl"}}).status_code == 204
    body = {**api.read(product), "Name": {"FR": "chaise"}}
    assert api.request("PUT", product, body).status_code == 204
    assert api.read(f"{product}?$select=Name")["Name"] == {"FR": "chaise"}


def test_a_nested_patch_and_an_import_change_the_languages_that_they_name(api: Api, world: World) -> None:
    product, group = f"{PRODUCTS}({world.product})", f"{GROUPS}({world.group})"
    before = api.read(f"{group}?$select=Name")["Name"]
    nested = {"ProductGroup": {"@erpnet.findBy": {"Code": "G1"}, "@erpnet.action": "update", "Name": {"DE": "Gruppe"}}}
    assert api.patch(product, nested).status_code == 204
    imported = {"@odata.type": "Erp.General_Products_ProductGroup", "Code": "G1", "Name": {"FR": "groupe"}}
    assert api.post("Import", {"objects": [imported]}).json()["@erpnet.result"] == "success"
    assert api.read(f"{group}?$select=Name")["Name"] == {**before, "DE": "Gruppe", "FR": "groupe"}


def test_a_currency_alone_keeps_the_value(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    api.create("General_Currencies_Currencies", {"CurrencySign": "BGN", "Name": "Lev"})
    assert api.patch(product, {"StandardPricePerLot": {"Value": 7.5, "Currency": "EUR"}}).status_code == 204
    assert api.patch(product, {"StandardPricePerLot": {"Currency": "BGN"}}).status_code == 204
    shown = api.read(f"{product}?$select=StandardPricePerLot")
    assert shown["StandardPricePerLot"] == {"Value": 7.5, "Currency": "BGN"}
    assert api.patch(product, {"StandardPricePerLot": {"Value": 8}}).status_code == 204
    shown = api.read(f"{product}?$select=StandardPricePerLot")
    assert shown["StandardPricePerLot"] == {"Value": 8, "Currency": "BGN"}


def test_a_plain_text_speaks_the_callers_language(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"Name": "Стул"}, Accept_Language="bg").status_code == 204
    assert api.read(f"{product}?$select=Name")["Name"] == {"EN": "Chair", "BG": "Стул"}


@pytest.mark.parametrize("value", [{"": "x"}, {"english": "x"}, {"EN": 1}, 5, ["x"]])
def test_what_is_no_text_by_language_is_refused(api: Api, world: World, value: Any) -> None:
    response = api.patch(f"{PRODUCTS}({world.product})", {"Name": value})
    assert (response.status_code, error_of(response)["target"]) == (400, "Name")


def test_amounts_and_quantities_carry_their_code(api: Api, order: dict[str, Any]) -> None:
    line = api.read(f"{LINES}({id_of(order['Lines'][0])})")
    assert line["Quantity"] == {"Value": 1.5, "Unit": "pcs"}
    assert line["UnitPrice"] == {"Value": 12.34, "Currency": "EUR"}
    assert line["LineAmount"] == {"Value": 18.51, "Currency": "EUR"}


def test_the_unit_in_a_quantity_sets_the_unit_beside_it(api: Api, world: World, order: dict[str, Any]) -> None:
    stored = api.read(f"{PRODUCTS}({world.product})")
    dozen = api.create(
        "General_Products_MeasurementUnits",
        {"Code": "dz", "Name": {"EN": "dozen"}, "MeasurementCategory": stored["BaseMeasurementCategory"]},
    )
    line = f"{LINES}({id_of(order['Lines'][0])})"
    response = api.patch(line, {"Quantity": {"Value": 2, "Unit": "dz"}})
    assert response.status_code == 204, response.content
    after = api.read(f"{line}?$select=Quantity,QuantityUnit")
    assert after["Quantity"] == {"Value": 2, "Unit": "dz"}
    assert after["QuantityUnit"] == {"@odata.id": dozen["@odata.id"]}
    unknown = api.patch(line, {"Quantity": {"Value": 2, "Unit": "ell"}})
    assert (unknown.status_code, error_of(unknown)["target"]) == (500, "Quantity")


def test_states_are_names_and_compare_by_number(api: Api, order: dict[str, Any]) -> None:
    assert order["State"] == "New"
    assert api.get(f"{ORDERS}/$count?$filter=State lt 'Released'").content == b"1"
    assert api.get(f"{ORDERS}/$count?$filter=State ge Erp.General_DocumentState'Released'").content == b"0"
    assert api.post(f"{order['@odata.id']}/ChangeState", {"newState": "Released"}).status_code == 204
    assert api.get(f"{ORDERS}/$count?$filter=State ge 'Released'").content == b"1"
    changes = api.read(f"{order['@odata.id']}?$expand=StateChanges($select=NewState)")["StateChanges"]
    assert [change["NewState"] for change in changes] == ["Released"]


def test_enums_are_member_names_in_any_case_or_numbers(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"ABCClass": "b"}).status_code == 204
    assert api.read(f"{product}?$select=ABCClass")["ABCClass"] == "B"
    refused = api.patch(product, {"ABCClass": "Z"})
    assert refused.status_code == 400
    assert "A | B | C" in error_of(refused)["message"]


def test_a_party_is_a_person_or_a_company(api: Api, world: World) -> None:
    person = api.create(PERSONS, {"FirstName": {"EN": "Ada"}, "LastName": {"EN": "Byron"}})
    company = api.create(PARTIES, {"@odata.type": "#Erp.General_Contacts_Company", "Name": {"EN": "Engines"}})
    assert company["@odata.id"].startswith(COMPANIES)
    both = api.read(f"{PARTIES}?$filter=PartyId in ({id_of(person)},{id_of(company)})&$select=PartyName,PartyId")
    types = {row["@odata.type"].rpartition(".")[2]: row["PartyId"] for row in both["value"]}
    assert types == {"General_Contacts_Person": id_of(person), "General_Contacts_Company": id_of(company)}
    for reference in (f"{PARTIES}({id_of(person)})", f"{PERSONS}({id_of(person)})"):
        customer = f"Crm_Sales_Customers({world.customer})"
        assert api.patch(customer, {"Party@odata.bind": reference}).status_code == 204
        assert api.read(f"{customer}?$select=Party")["Party"] == {"@odata.id": f"{PARTIES}({id_of(person)})"}
        assert api.get(f"Crm_Sales_Customers/$count?$filter=Party eq '{reference}'").content == b"1"


def test_the_abstract_base_is_not_created_itself(api: Api) -> None:
    response = api.post(PARTIES, {"PartyName": {"EN": "Nobody"}})
    assert response.status_code == 400
    assert "@odata.type" in error_of(response)["message"]


def test_a_document_is_read_through_its_base_and_a_cast(api: Api, order: dict[str, Any]) -> None:
    key = id_of(order)
    (row,) = api.read(f"{DOCUMENTS}?$filter=DocumentId eq {key}&$select=DocumentId,DocumentNo")["value"]
    assert (row["DocumentId"], row["DocumentNo"]) == (key, order["DocumentNo"])
    assert row["@odata.type"] == "#Erp.Crm_Sales_SalesOrder"
    through = api.read(f"{DOCUMENTS}({key})/Erp.Crm_Sales_SalesOrder?$select=Customer")
    assert through["Customer"] == order["Customer"]


def test_keys_and_calculated_members_come_when_they_are_named(api: Api, order: dict[str, Any]) -> None:
    assert not {"Id", "DocumentId", "DisplayText", "TotalLineAmount", "Lines"} & set(api.read(order["@odata.id"]))
    named = api.read(f"{order['@odata.id']}?$select=Default, Id,DisplayText,TotalLineAmount")
    assert named["Id"] == id_of(order)
    assert named["DisplayText"] == f"Sales order {order['DocumentNo']}"
    assert named["TotalLineAmount"]["Value"] == 18.51
    assert named["DocumentNo"] == order["DocumentNo"]


@pytest.mark.parametrize("wrong", ["2026-13-01", "99999-01-01", "2026-01-01T25:00:00Z", "2026-01-01Tnoon", "2026-01"])
def test_a_wrong_date_is_named_beside_a_right_one(api: Api, order: dict[str, Any], wrong: str) -> None:
    path = f"Crm_Sales_SalesOrders({id_of(order)})"
    for name, kind, right in (
        ("DocumentDate", "Edm.Date", "2026-01-31"),
        ("ReferenceDate", "Edm.DateTimeOffset", "2026-01-31T10:00:00Z"),
    ):
        refused = api.patch(path, {name: wrong})
        error = error_of(refused)
        assert (refused.status_code, error["type"], error["target"]) == (400, "InvalidLiteral", name)
        assert error["message"] == f"'{wrong}' is not a valid {kind} (such as {right}) for {name}."


def test_a_wrong_date_of_a_query_is_named(api: Api) -> None:
    for path in (f"Crm_Sales_SalesOrders?$filter={quote('DocumentDate eq ')}{{}}", "Crm_Sales_SalesOrders({})"):
        refused = api.get(path.format("2026-13-01"))
        assert refused.status_code == 400
        assert "'2026-13-01' is not a date of the calendar, such as 2026-01-31." in error_of(refused)["message"]
        outside = api.get(path.format("99999-01-01"))
        assert outside.status_code == 501
        assert "outside the years 1 to 9999 ('99999-01-01')" in error_of(outside)["message"]


def test_dates_times_switches_and_bytes(api: Api, order: dict[str, Any]) -> None:
    path = order["@odata.id"]
    body = {"DocumentDate": "2026-02-28", "ReferenceDate": "2026-02-28T23:30:00+02:00", "CreditLimitOverride": True}
    assert api.patch(path, body).status_code == 204
    after = api.read(f"{path}?$select=DocumentDate,ReferenceDate,CreditLimitOverride")
    assert after["DocumentDate"] == "2026-02-28"
    assert after["ReferenceDate"] == "2026-02-28T21:30:00Z"
    assert after["CreditLimitOverride"] is True
    for wrong in ({"DocumentDate": "2026-02-30"}, {"ReferenceDate": "noon"}, {"CreditLimitOverride": "maybe"}):
        assert api.patch(path, wrong).status_code == 400
