"""Payloads: bodies, binary values, codes, changes, import failures, group keys, states (spec 14.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rules.cast import World
from tests.support.api import ROOT, Answer, Api, error_of

GROUPS = "General_Products_ProductGroups"
LAYOUTS = "Systems_Documents_PrintoutLayouts"
ORDERS = "Crm_Sales_SalesOrders"
PRODUCTS = "General_Products_Products"
UNITS = "General_Products_MeasurementUnits"


def order_of(api: Api, world: World, **values: Any) -> str:
    """A new order; its path."""
    body = {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})", **values}
    return str(api.create(ORDERS, body)["@odata.id"])


# --- bodies without Content-Type ----------------------------------------------------------------------------------


def bare(api: Api, method: str, path: str, body: Any, **headers: str) -> Answer:
    """A request whose body has no Content-Type."""
    sent = {"Authorization": f"Bearer {api.token}", **headers}
    text = body if isinstance(body, str) else json.dumps(body)
    return api.client.generic(method, ROOT + path, text, content_type="", headers=sent)


def test_a_body_without_content_type_is_json(api: Api, world: World) -> None:
    made = bare(api, "POST", GROUPS, {"Code": "B", "Name": {"EN": "Bare"}})
    assert made.status_code == 201, made.content
    path = made.json()["@odata.id"]
    assert bare(api, "PATCH", path, {"Notes": "n"}).status_code == 204
    link = {"@odata.id": f"{GROUPS}({world.group})"}
    assert bare(api, "PUT", f"{path}/ParentGroup/$ref", link).status_code == 204
    assert api.read(f"{path}?$select=Notes,ParentGroup")["ParentGroup"] == link
    objects = {"objects": [{"@odata.type": "Erp.General_Products_ProductGroup", "Code": "I", "Name": {"EN": "I"}}]}
    assert bare(api, "POST", "Import", objects).json()["@erpnet.result"] == "success"
    requests = {"requests": [{"id": "1", "method": "GET", "url": f"{GROUPS}/$count"}]}
    assert bare(api, "POST", "$batch", requests).json()["responses"][0]["status"] == 200


@pytest.mark.parametrize("changeset", [True, False])
def test_a_batch_part_without_content_type_is_json(api: Api, world: World, changeset: bool) -> None:
    parent, child = f"{GROUPS}({world.group})", api.create(GROUPS, {"Code": "C", "Name": {"EN": "C"}})["@odata.id"]
    part = (
        "Content-Type: application/http\r\nContent-ID: 1\r\n\r\n"
        f"PUT {child}/ParentGroup/$ref HTTP/1.1\r\n\r\n" + json.dumps({"@odata.id": parent}) + "\r\n"
    )
    body = f"--b\r\n{part}--b--\r\n"
    if changeset:
        body = f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n{part}--c--\r\n--b--\r\n"
    answer = api.post("$batch", body, Content_Type="multipart/mixed; boundary=b")
    assert b"HTTP/1.1 204" in answer.content, answer.content
    assert api.read(f"{child}?$select=ParentGroup")["ParentGroup"] == {"@odata.id": parent}


@pytest.mark.parametrize("body", ["Code=B", "<Code>B</Code>", "[1]", ""])
def test_a_bare_body_that_is_no_json_object_is_refused_as_such(api: Api, body: str) -> None:
    refused = bare(api, "POST", GROUPS, body)
    assert (refused.status_code, error_of(refused)["type"]) in {(400, "InvalidJson"), (400, "InvalidBody")}


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_a_body_of_another_type_is_still_refused(api: Api, media: str) -> None:
    assert api.post(GROUPS, '{"Code": "B"}', Content_Type=media).status_code == 415


# --- binary values ------------------------------------------------------------------------------------------------

BYTES = b"\xfb\xff\xfe?"
URL_SAFE, STANDARD = "-__-Pw==", "+//+Pw=="


def layout_of(api: Api, text: Any) -> Answer:
    """The answer to a new layout with these bytes."""
    body = {"Name": "L", "DocumentEntityName": "Crm_Invoices", "LayoutFormat": "html", "BinaryLayout": text}
    return api.post(LAYOUTS, body)


@pytest.mark.parametrize("text", [URL_SAFE, STANDARD, "-__-Pw", "+//+Pw"])
@pytest.mark.parametrize(
    "headers,expected",
    [
        ({}, URL_SAFE),
        ({"OData_MaxVersion": "4.0"}, STANDARD),
        ({"OData_MaxVersion": "4.01"}, URL_SAFE),
        ({"OData_MaxVersion": "4.0", "Accept": "application/json;IEEE754Compatible=true"}, STANDARD),
    ],
)
def test_binary_is_base64url_and_base64_for_clients_that_name_version_4_0(
    api: Api, text: str, headers: dict[str, str], expected: str
) -> None:
    path = layout_of(api, text).json()["@odata.id"]
    assert api.read(f"{path}?$select=BinaryLayout", **headers)["BinaryLayout"] == expected
    assert api.read(f"{LAYOUTS}?$select=BinaryLayout", **headers)["value"][0]["BinaryLayout"] == expected
    assert api.read(f"{path}/BinaryLayout", **headers)["value"] == expected
    assert api.get(f"{path}/BinaryLayout/$value", **headers).content == BYTES


def test_batch_parts_and_changes_follow_the_version_of_their_request(api: Api) -> None:
    inside = api.begin(trackChanges=True)
    path = layout_of(inside, STANDARD).json()["@odata.id"]
    changes = inside.read("GetChanges()", OData_MaxVersion="4.0")
    assert [row["BinaryLayout"] for row in changes["insert"][LAYOUTS].values()] == [STANDARD]
    inside.end()
    requests = [{"id": "1", "method": "GET", "url": f"{path}?$select=BinaryLayout"}]
    answer = api.post("$batch", {"requests": requests}, OData_MaxVersion="4.0").json()
    assert answer["responses"][0]["body"]["BinaryLayout"] == STANDARD


@pytest.mark.parametrize("text", ["-__-P", "a b!", 7, [1], {"a": 1}, "Pw=x"])
def test_what_is_no_base64_is_refused(api: Api, text: Any) -> None:
    refused = layout_of(api, text)
    assert (refused.status_code, error_of(refused)["target"]) == (400, "BinaryLayout")


# --- units and currencies -----------------------------------------------------------------------------------------


def line_of(api: Api, world: World, quantity: Any, **values: Any) -> Answer:
    """The answer to a new order line."""
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    return api.post(f"{order_of(api, world)}/Lines", {**product, "Quantity": quantity, **values})


def test_codes_of_units_and_currencies_are_matched_without_regard_to_case(api: Api, world: World) -> None:
    unit = api.read(f"{UNITS}({world.unit})?$select=Code")["Code"]
    for code in (unit.upper(), unit.lower(), unit.title()):
        made = line_of(api, world, {"Value": 2, "Unit": code}, UnitPrice={"Value": 5, "Currency": "eUr"})
        assert made.status_code == 201, made.content
        assert made.json()["Quantity"] == {"Value": 2, "Unit": unit}
        assert made.json()["UnitPrice"]["Currency"] == "EUR"


def test_the_code_in_the_same_case_comes_first_and_others_are_told_apart(api: Api, world: World) -> None:
    category = api.read(f"{UNITS}({world.unit})?$select=MeasurementCategory")["MeasurementCategory"]
    for code in ("Бр", "бР"):
        api.create(UNITS, {"Code": code, "Name": {"EN": code}, "Multiplier": 1, "MeasurementCategory": category})
    assert line_of(api, world, {"Value": 1, "Unit": "бР"}).json()["Quantity"]["Unit"] == "бР"
    refused = line_of(api, world, {"Value": 1, "Unit": "БР"})
    error = error_of(refused)
    assert (refused.status_code, error["type"], error["target"]) == (500, "FindFailed", "Quantity")
    assert "2" in error["parameters"]


@pytest.mark.parametrize("unit,status", [("nothing'", 500), ("", 500), (7, 500), ({"Code": "pcs"}, 500)])
def test_an_unknown_unit_is_refused_by_name(api: Api, world: World, unit: Any, status: int) -> None:
    refused = line_of(api, world, {"Value": 1, "Unit": unit})
    assert (refused.status_code, error_of(refused)["type"]) == (status, "FindFailed")


def test_scripts_make_quantities_of_units_and_amounts_of_currencies(api: Api, world: World) -> None:
    script = f"""
      const unit = Domain.General.Products.MeasurementUnitsRepository.getById('{world.unit}');
      const currency = Domain.General.Currencies.CurrenciesRepository.query({{CurrencySign: 'EUR'}})[0];
      console.log(new Domain.Types.Quantity(1, unit).Unit === unit.Code, new Domain.Types.Amount(2, currency).Currency);
    """
    answer = api.post("ExecuteScript", script, Content_Type="text/plain")
    assert answer.status_code == 200, answer.content
    assert answer.json()["console"].split() == ["true", "EUR"]
    wrong = script.replace("Quantity(1, unit)", "Quantity(1, currency)")
    assert "MeasurementUnits" in error_of(api.post("ExecuteScript", wrong, Content_Type="text/plain"))["message"]


# --- changes of a transaction, failures of an import --------------------------------------------------------------


def test_changes_always_have_the_three_members(api: Api) -> None:
    inside = api.begin(trackChanges=True)
    assert inside.read("GetChanges()") == {}
    made = inside.create(GROUPS, {"Code": "G9", "Name": {"EN": "Nine"}})["@odata.id"]
    changes = inside.read("GetChanges()")
    assert set(changes) == {"insert", "update", "delete"}
    assert (list(changes["insert"]), changes["update"], changes["delete"]) == ([GROUPS], {}, {})
    inside.delete(made)
    assert inside.read("WaitForChanges()") == {"insert": {}, "update": {}, "delete": {GROUPS: {made[-37:-1]: {}}}}
    assert inside.read("GetChanges()") == {}
    inside.end(commit=False)


@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
def test_failures_of_an_import_have_a_message(api: Api, mode: str) -> None:
    group = {"@odata.type": "Erp.General_Products_ProductGroup"}
    objects = [{**group, "Code": "OK", "Name": {"EN": "Right"}}, {**group, "Colour": "red"}]
    answer = api.post("Import", {"transaction": mode, "objects": objects}).json()
    assert answer["@erpnet.result"] == "fail"
    failed = answer["objects"][1]
    assert failed["@erpnet.message"] == failed["@erpnet.error"]["message"]
    assert "Colour" in failed["@erpnet.message"]
    first = answer["objects"][0]
    assert ("@erpnet.message" in first) == (mode == "all-objects")


# --- group keys ---------------------------------------------------------------------------------------------------

DATE_PARTS = ["year", "month", "day", "hour", "minute", "second"]


@pytest.mark.parametrize("function", DATE_PARTS)
def test_group_keys_of_date_parts_are_texts_in_4_0_and_numbers_from_4_01(api: Api, world: World, function: str) -> None:
    order_of(api, world, DocumentDate="2026-03-07")
    date = "DocumentDate" if function in ("year", "month", "day") else "CreationTime"
    path = f"{ORDERS}?$apply=groupby(({function}({date}) as Part),aggregate($count as Orders))"
    (new,) = api.read(path, OData_MaxVersion="4.01")["value"]
    (old,) = api.read(path, OData_MaxVersion="4.0")["value"]
    assert isinstance(new["Part"], int)
    assert old["Part"] == str(new["Part"])
    assert api.read(path)["value"] == [old]
    assert (old["Orders"], new["Orders"]) == (1, 1)


def test_group_keys_follow_through_later_steps_and_named_without_alias(api: Api, world: World) -> None:
    for day in ("2025-01-02", "2026-03-07", "2026-04-08"):
        order_of(api, world, DocumentDate=day)
    grouped = "groupby((year(DocumentDate)),aggregate($count as Orders))"
    later = f"{ORDERS}?$apply={grouped}/filter(Orders gt 1)/topcount(1,Orders)&$orderby=year desc"
    (row,) = api.read(later, OData_MaxVersion="4.0")["value"]
    assert row == {"@odata.id": None, "year": "2026", "Orders@odata.type": "#Decimal", "Orders": 2}
    again = f"{ORDERS}?$apply={grouped}/groupby((year),aggregate(Orders with sum as Sum))&$orderby=Sum"
    assert [row["year"] for row in api.read(again)["value"]] == ["2025", "2026"]
    plain = f"{ORDERS}?$compute=year(DocumentDate) as Y&$select=Y&$orderby=Y&$top=1"
    assert api.read(plain, OData_MaxVersion="4.0")["value"][0]["Y"] == 2025


def test_a_group_key_that_is_null_stays_null(api: Api, world: World) -> None:
    order_of(api, world)
    grouped = f"{ORDERS}?$apply=groupby((year(ToDate) as Y),aggregate($count as Orders))"
    assert api.read(grouped, OData_MaxVersion="4.0")["value"][0]["Y"] is None


# --- states -------------------------------------------------------------------------------------------------------


def test_changing_to_the_present_state_changes_nothing(api: Api, world: World) -> None:
    order = order_of(api, world)
    for state in ("New", "Planned"):
        for body in ({"newState": state}, {"newState": state, "userStatus": None}):
            assert api.post(f"{order}/ChangeState", body).status_code == 204
    assert api.read(f"{order}?$select=State")["State"] == "Planned"
    changes = api.read(f"{order}?$select=Id&$expand=StateChanges($select=NewState)")["StateChanges"]
    assert [row["NewState"] for row in changes] == ["Planned"]
    version = api.get(order)["ETag"]
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    assert api.get(order)["ETag"] == version


@pytest.mark.parametrize("state,status", [("Adjustment", 500), ("Nonsense", 400), (None, 400), (7, 400)])
def test_other_states_are_checked_as_before(api: Api, world: World, state: Any, status: int) -> None:
    refused = api.post(f"{order_of(api, world)}/ChangeState", {"newState": state})
    assert refused.status_code == status, refused.content
    assert error_of(refused)["type"] != "InternalError"
