"""POST, PATCH, PUT, DELETE through HTTP (spec 02, 2.3)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from domain.entities.general_products import Product
from domain.model.registry import repositories
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

PRODUCTS = "General_Products_Products"
GROUPS = "General_Products_ProductGroups"
ORDERS = "Crm_Sales_SalesOrders"
LINES = "Crm_Sales_SalesOrderLines"
CURRENCIES = "General_Currencies_Currencies"


def order_body(world: World, *lines: dict[str, Any], **values: Any) -> dict[str, Any]:
    """What a client posts for an order."""
    return {
        "DocumentType@odata.bind": f"Systems_Documents_DocumentTypes({world.document_type})",
        "Customer": {"@odata.id": f"Crm_Sales_Customers({world.customer})"},
        **values,
        "Lines": [{"Product@odata.bind": f"{PRODUCTS}({world.product})", **line} for line in lines],
    }


def test_a_created_entity_is_answered_with_its_address_and_itself(api: Api) -> None:
    response = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    body = response.json()
    assert response.status_code == 201
    assert response["Location"] == f"http://testserver/api/domain/odata/{body['@odata.id']}"
    assert response["OData-EntityId"] == response["Location"]
    assert (body["CurrencySign"], body["Id"]) == ("USD", body["@odata.id"][-37:-1])
    assert response["ETag"] == 'W/"1"'


def test_return_minimal_leaves_the_body_out(api: Api) -> None:
    response = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"}, Prefer="return=minimal")
    assert (response.status_code, response.content) == (204, b"")
    assert response["Preference-Applied"] == "return=minimal"
    assert response["OData-EntityId"].startswith("http://testserver/api/domain/odata/General_Currencies_Currencies(")


def test_a_patch_answers_204_unless_the_entity_is_asked_for(api: Api) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert api.patch(made["@odata.id"], {"Name": "US dollar"}).status_code == 204
    shown = api.patch(made["@odata.id"], {"Name": "American dollar"}, Prefer="return=representation")
    assert shown.status_code == 200
    assert (shown.json()["Name"], shown["ETag"]) == ("American dollar", 'W/"3"')


@pytest.mark.parametrize("preferred, status", [("bogus", 204), ("Minimal", 204), ("REPRESENTATION", 200), ("", 204)])
def test_an_unknown_preference_is_ignored(api: Api, preferred: str, status: int) -> None:
    """RFC 7240, 2."""
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"}, Prefer="return=bogus")
    answer = api.patch(made["@odata.id"], {"Name": "US dollar"}, Prefer=f"return={preferred}")
    assert answer.status_code == status
    known = preferred.lower() in ("minimal", "representation")
    assert answer.get("Preference-Applied") == (f"return={preferred.lower()}" if known else None)


def test_an_order_with_lines_is_made_in_one_request(api: Api, world: World) -> None:
    body = order_body(
        world,
        {"Quantity": {"Value": 3, "Unit": "pcs"}, "UnitPrice": {"Value": 10.5, "Currency": "EUR"}},
        {"Quantity": 1, "UnitPrice": 2},
    )
    made = api.create(f"{ORDERS}?$select=DocumentNo,State,TotalLineAmount&$expand=Lines($orderby=LineNo)", body)
    assert made["State"] == "New"
    assert made["TotalLineAmount"] == {"Value": 33.5, "Currency": "EUR"}
    assert [(line["LineNo"], line["LineAmount"]["Value"]) for line in made["Lines"]] == [(10, 31.5), (20, 2)]


def test_a_deep_insert_of_401_is_answered_with_what_it_inserted(api: Api, world: World) -> None:
    lines: list[dict[str, Any]] = [{"Quantity": 3, "@Core.ContentID": "first"}, {"Quantity": 1}]
    made = api.create(ORDERS, order_body(world, *lines), OData_MaxVersion="4.01")
    assert made["@odata.context"].endswith("$metadata#Crm_Sales_SalesOrders(Lines())/$entity")
    assert [(line["Quantity"]["Value"], line.get("@Core.ContentID")) for line in made["Lines"]] == [
        (3, "first"),
        (1, None),
    ]
    assert set(made["Customer"]) == {"@odata.id"}
    assert "Lines" not in api.create(ORDERS, order_body(world, *lines), OData_MaxVersion="4.0")
    narrow = "$select=DocumentNo&$expand=Lines($select=LineNo)"
    asked = api.create(f"{ORDERS}?{narrow}", order_body(world, *lines), OData_MaxVersion="4.01")
    assert [set(line) for line in asked["Lines"]] == [
        {"@odata.id", "@Core.ContentID", "LineNo"},
        {"@odata.id", "LineNo"},
    ]


def test_an_entity_inserted_for_a_reference_is_answered_and_one_that_was_found_is_not(api: Api, world: World) -> None:
    body = {
        "Code": "DEEP",
        "Name": "Deep",
        "ParentGroup": {"Code": "NEW", "Name": "New", "ParentGroup": {"Code": "G1"}},
    }
    made = api.create(GROUPS, body, OData_MaxVersion="4.01")
    assert made["ParentGroup"]["Code"] == "NEW"
    assert made["ParentGroup"]["ParentGroup"] == {"@odata.id": f"{GROUPS}({world.group})"}


CHANGED = "AggregateLastUpdateTimeUtc"


def change_only_a_line(api: Api, world: World) -> str:
    """The path of an order whose line was changed after it."""
    order = api.create(f"{ORDERS}?$expand=Lines($select=Id)", order_body(world, {"Quantity": 1}))
    assert api.patch(f"{LINES}({order['Lines'][0]['Id']})", {"Notes": "abc"}).status_code == 204
    return str(order["@odata.id"])


def found_by_its_change_time(api: Api, order: str) -> bool:
    """Whether the change time of the order is a date-time that equals itself in a filter."""
    changed = api.read(f"{order}?$select={CHANGED}")[CHANGED]
    found = [api.get(f"{ORDERS}/$count?$filter={CHANGED} {operator} {changed}").content for operator in ("eq", "gt")]
    return re.fullmatch(r"[-\d]{10}T[:.\d]{8,15}Z", changed) is not None and found == [b"1", b"0"]


def test_a_change_of_only_a_line_gives_its_order_a_stamp_that_can_be_compared(api: Api, world: World) -> None:
    assert found_by_its_change_time(api, change_only_a_line(api, world))


def test_an_unknown_property_is_named_and_a_near_one_offered(api: Api) -> None:
    response = api.post(CURRENCIES, {"CurrencySign": "USD", "Nam": "Dollar"})
    error = error_of(response)
    assert response.status_code == 400
    assert (error["type"], error["target"]) == ("UnknownProperty", "Nam")
    assert "Did you mean Name?" in error["message"]


def test_nothing_is_left_of_a_refused_deep_insert(api: Api, world: World) -> None:
    before = api.get(f"{LINES}/$count").content
    response = api.post(
        ORDERS, order_body(world, {"Quantity": 1}, {"LineNo": 10}, {"GuaranteePeriodDays": 99_999_999_999})
    )
    assert response.status_code == 400
    assert error_of(response)["target"] == "Lines/2/GuaranteePeriodDays"
    assert api.get(f"{ORDERS}/$count").content == b"0"
    assert api.get(f"{LINES}/$count").content == before


def test_every_missing_value_is_named_at_once(api: Api) -> None:
    error = error_of(api.post(CURRENCIES, {}))
    assert error["type"] == "RequiredAttributeMissing"
    assert {detail["target"] for detail in error["details"]} == {"CurrencySign", "Name"}


def test_missing_values_of_two_entities_are_two_sentences(api: Api, world: World) -> None:
    error = error_of(api.post(ORDERS, {"Lines": [{}]}))
    assert "; " in error["message"]
    assert ".;" not in error["message"]


BLANKS = [
    (CURRENCIES, {"CurrencySign": "", "Name": "Dollar"}, "CurrencySign"),
    (CURRENCIES, {"CurrencySign": "USD", "Name": " \t\n"}, "Name"),
    (GROUPS, {"Code": "B", "Name": ""}, "Name"),
    (GROUPS, {"Code": "B", "Name": {"EN": "", "DE": " "}}, "Name"),
    (PRODUCTS, {"PartNumber": "   ", "Name": {"EN": "x"}}, "PartNumber"),
    ("Systems_Security_Users", {"Login": "", "Name": {"EN": "x"}, "UserType": "InternalUser"}, "Login"),
    (
        "Systems_Security_TrustedApplications",
        {"ApplicationUri": "", "Name": "x", "ClientType": "Confidential"},
        "ApplicationUri",
    ),
    (
        "Systems_Bpm_CustomProperties",
        {"Code": "", "Name": {"EN": "x"}, "EntityName": "Crm_Sales_SalesOrders", "PropertyType": "Text"},
        "Code",
    ),
    (
        "Systems_Bpm_UserBusinessRules",
        {"Code": " ", "Name": {"EN": "x"}, "RepositoryName": "Crm.Sales.SalesOrders"},
        "Code",
    ),
]


@pytest.mark.parametrize("set_name, body, blank", BLANKS)
def test_a_blank_text_is_no_value_of_a_required_attribute(
    api: Api, world: World, set_name: str, body: dict[str, Any], blank: str
) -> None:
    before = api.get(f"{set_name}/$count").content
    response = api.post(set_name, body)
    assert (response.status_code, error_of(response)["type"]) == (500, "RequiredAttributeMissing"), response.content
    assert error_of(response)["target"] == blank
    entity_type = next(each.entity_type for each in repositories if each.set_name == set_name)
    imported = api.post("Import", {"objects": [{"@odata.type": f"Erp.{entity_type}", **body}]}).json()
    assert imported["objects"][0]["@erpnet.error"]["type"] == "RequiredAttributeMissing"
    assert api.get(f"{set_name}/$count").content == before


def test_a_script_cannot_save_blank_texts_either(api: Api, world: World) -> None:
    source = """
        const groups = Domain.General.Products.ProductGroupsRepository;
        const made = groups.createNew({Code: 'B', Name: ''});
        try { Transaction.commit() } catch (e) { console.log(e.type) }
        made.Name = 'B'; made.Code = ' ';
        try { Transaction.commit() } catch (e) { console.log(e.type) }
    """
    response = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert response.json()["console"] == "RequiredAttributeMissing\nRequiredAttributeMissing", response.content


def test_a_patch_cannot_blank_a_required_text_and_an_optional_one_may_be_empty(api: Api, world: World) -> None:
    path = f"{PRODUCTS}({world.product})"
    for blank in (dict.fromkeys(("EN", "BG", "DE"), ""), {"EN": " ", "BG": None, "DE": None}):
        assert error_of(api.patch(path, {"Name": blank}))["target"] == "Name"
    assert api.patch(path, {"Name": {"EN": "", "DE": "Stuhl"}, "Description": ""}).status_code == 204
    layout = {"Name": "L", "DocumentEntityName": "Crm_Sales_Orders", "LayoutFormat": "html"}
    layouts = "Systems_Documents_PrintoutLayouts"
    assert error_of(api.post(layouts, {**layout, "LayoutFormat": ""}))["target"] == "LayoutFormat"
    printout = {"Name": "P", "ApplicationName": ""}
    made = api.post(f"Systems_Documents_DocumentTypes({world.document_type})/Printouts", printout)
    assert made.status_code == 201, f"the default is empty, too: {made.content.decode()}"


def test_an_entity_that_was_stored_with_a_blank_text_can_be_changed_and_mended(api: Api, world: World) -> None:
    Product.objects.filter(pk=world.product).update(name={"EN": ""})
    path = f"{PRODUCTS}({world.product})"
    assert api.patch(path, {"GuaranteePeriodDays": 5}).status_code == 204
    assert api.patch(path, {"Name": {"EN": "Chair"}}).status_code == 204
    assert error_of(api.patch(path, {"Name": {"EN": ""}}))["target"] == "Name"


def test_a_duplicate_code_is_error_2129_with_table_field_value_and_index(api: Api) -> None:
    api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    response = api.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Other"})
    error = error_of(response)
    assert (response.status_code, error["code"]) == (500, 2129)
    assert error["parameters"] == [CURRENCIES, "CurrencySign", "USD", "currency_currency_sign_key"]


@pytest.mark.parametrize(
    "reference",
    [
        {"ProductGroup@odata.bind": "General_Products_ProductGroups({group})"},
        {"ProductGroup@odata.bind": "/General_Products_ProductGroups({group})"},
        {"ProductGroup@odata.bind": "http://testserver/api/domain/odata/General_Products_ProductGroups({group})"},
        {"ProductGroup@odata.bind": "General_Products_ProductGroups/{group}"},
        {"ProductGroup@odata.bind": "http://testserver/api/domain/odata/General_Products_ProductGroups/{group}"},
        {"ProductGroup": {"@odata.id": "General_Products_ProductGroups({group})"}},
        {"ProductGroup": {"@odata.id": "General_Products_ProductGroups(Id={group})"}},
        {"ProductGroup": "General_Products_ProductGroups({group})"},
        {"ProductGroup": {"Code": "G1"}},
        {"ProductGroup": {"@erpnet.action": "find", "Code": "G1"}},
    ],
    ids=lambda reference: str(reference)[:60],
)
def test_a_reference_may_be_written_in_many_ways(api: Api, world: World, reference: dict[str, Any]) -> None:
    filled = {
        name: value.replace("{group}", world.group)
        if isinstance(value, str)
        else {key: str(inner).replace("{group}", world.group) for key, inner in value.items()}
        for name, value in reference.items()
    }
    stored = api.read(f"{PRODUCTS}({world.product})")
    body = {
        "Name": {"EN": "Table"},
        "PartNumber": "T1",
        **{name: stored[name] for name in ("BaseMeasurementCategory", "MeasurementUnit", "ProductType")},
        **filled,
    }
    made = api.create(PRODUCTS, body)
    assert made["ProductGroup"] == {"@odata.id": f"{GROUPS}({world.group})"}


def test_a_reference_to_nothing_is_refused_with_its_name(api: Api, world: World) -> None:
    missing = "00000000-0000-0000-0000-000000000000"
    response = api.patch(f"{PRODUCTS}({world.product})", {"ProductGroup@odata.bind": f"{GROUPS}({missing})"})
    assert response.status_code == 500
    assert error_of(response)["type"] == "ReferencedEntityNotFound"
    wrong = api.patch(f"{PRODUCTS}({world.product})", {"ProductGroup@odata.bind": f"{CURRENCIES}({world.currency})"})
    assert (wrong.status_code, error_of(wrong)["type"]) == (400, "InvalidReference")


def test_the_code_in_a_quantity_must_be_the_unit_that_applies(api: Api, world: World) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    line = made["Lines"][0]["@odata.id"]
    response = api.patch(line, {"UnitPrice": {"Value": 5, "Currency": "USD"}})
    error = error_of(response)
    assert (response.status_code, error["type"]) == (500, "CurrencyMismatch")
    assert error["parameters"] == ["UnitPrice", "EUR", "USD"]
    assert api.patch(line, {"UnitPrice": {"Value": 5, "Currency": "EUR"}}).status_code == 204


@pytest.mark.parametrize("transaction", [False, True])
def test_a_currency_that_turns_out_to_be_another_is_refused_at_the_commit(
    api: Api, world: World, transaction: bool
) -> None:
    """While the lines are read the order has no currency yet; it has the customer's in the end."""
    caller = api.begin(trackChanges=True) if transaction else api
    body = order_body(world, {"Quantity": 1, "UnitPrice": {"Value": 5, "Currency": "USD"}})
    response = caller.post(ORDERS, body)
    if transaction:
        assert response.status_code == 201, response.content
        response = caller.end()
    error = error_of(response)
    assert (response.status_code, error["type"]) == (500, "CurrencyMismatch")
    assert error["parameters"] == ["UnitPrice", "EUR", "USD"]
    if transaction:
        (line,) = caller.read("GetChanges")["insert"][LINES]
        assert caller.patch(f"{LINES}({line})", {"UnitPrice": 5}).status_code == 204
        assert caller.end().status_code == 204
    assert api.get(f"{ORDERS}/$count").content == (b"1" if transaction else b"0")


def test_no_text_holds_nul(api: Api, world: World) -> None:
    """PostgreSQL cannot store it: what is written is refused, and nothing that is asked for has it."""
    refused = api.patch(f"{PRODUCTS}({world.product})", {"Name": {"EN": "a\0b"}})
    assert (refused.status_code, error_of(refused)["target"]) == (400, "Name")
    for option in ("$filter=Name eq 'a%00b'", "$filter=contains(Name,'%00')", "$search=%00"):
        assert api.get(f"{CURRENCIES}?{option}").status_code in (200, 400), option
    assert api.post(GROUPS, {"@erpnet.action": "find", "Code": "a\0b"}).status_code in (400, 500)


def test_a_deep_update_changes_adds_and_removes_parts(api: Api, world: World) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines($orderby=LineNo)", order_body(world, {"Quantity": 1}, {"Quantity": 2}))
    first, second = (id_of(line) for line in made["Lines"])
    response = api.patch(
        made["@odata.id"],
        {
            "DocumentNotes": "changed",
            "Lines@odata.delta": [
                {"@odata.id": f"{LINES}({first})", "Quantity": 5},
                {"@removed": {"reason": "deleted"}, "@odata.id": f"{LINES}({second})"},
                {"Product@odata.bind": f"{PRODUCTS}({world.product})", "Quantity": 7},
            ],
        },
    )
    assert response.status_code == 204, response.content
    after = api.read(f"{made['@odata.id']}?$select=DocumentNotes,ObjectVersion&$expand=Lines($orderby=LineNo)")
    assert [line["Quantity"]["Value"] for line in after["Lines"]] == [5, 7]
    assert (after["DocumentNotes"], after["ObjectVersion"]) == ("changed", 2)


def test_a_change_of_a_part_moves_the_version_of_the_root(api: Api, world: World) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    assert api.patch(made["Lines"][0]["@odata.id"], {"Notes": "fragile"}).status_code == 204
    assert api.read(f"{made['@odata.id']}?$select=ObjectVersion")["ObjectVersion"] == 2


def test_an_old_version_is_a_conflict(api: Api) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    path = made["@odata.id"]
    assert api.patch(path, {"Name": "A"}, If_Match='W/"1"').status_code == 204
    for attempt in (
        api.patch(path, {"Name": "B"}, If_Match='W/"1"'),
        api.patch(path, {"ObjectVersion": 1, "Name": "B"}),
        api.delete(path, If_Match='W/"1"'),
    ):
        assert attempt.status_code == 412
    assert api.read(path)["Name"] == "A"


def test_if_none_match_answers_304(api: Api) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert api.get(made["@odata.id"], If_None_Match='W/"1"').status_code == 304
    assert api.get(made["@odata.id"], If_None_Match='W/"2"').status_code == 200


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
def test_if_none_match_changes_nothing_that_is_there(api: Api, method: str) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    body = None if method == "DELETE" else {"CurrencySign": "USD", "Name": "Another"}
    for tag in ("*", made["@odata.etag"], f'"99", {made["@odata.etag"]}'):
        refused = api.request(method, made["@odata.id"], body, If_None_Match=tag)
        assert (refused.status_code, error_of(refused)["type"]) == (412, "PreconditionFailed")
    assert api.read(made["@odata.id"])["Name"] == "Dollar"
    assert api.request(method, made["@odata.id"], body, If_None_Match='"99"').status_code in (200, 204)


def test_with_if_none_match_what_is_not_there_is_made_once(api: Api) -> None:
    inside, path = api.begin(), f"{CURRENCIES}(11111111-2222-3333-4444-555555555555)"
    for caller in (inside, api):
        made = caller.patch(path, {"CurrencySign": "USD", "Name": "Dollar"}, If_None_Match="*")
        assert made.status_code == 201, made.content
        assert caller.patch(path, {"Name": "Another"}, If_None_Match="*").status_code == 412
        assert inside.end(commit=False).status_code == 204 if caller is inside else True


def test_put_gives_what_it_leaves_out_its_default(api: Api) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar", "ShowOrder": 7})
    assert api.request("PUT", made["@odata.id"], {"CurrencySign": "USD", "Name": "Dollar"}).status_code == 204
    assert api.read(made["@odata.id"])["ShowOrder"] == 0


def test_patch_to_a_new_key_creates_there(api: Api) -> None:
    key = "11111111-2222-3333-4444-555555555555"
    response = api.patch(f"{CURRENCIES}({key})", {"CurrencySign": "USD", "Name": "Dollar"})
    assert response.status_code == 201, response.content
    assert api.read(f"{CURRENCIES}({key})")["CurrencySign"] == "USD"
    assert api.patch(f"{CURRENCIES}({key.replace('1', '9')})", {"Name": "x"}, If_Match="*").status_code == 404


def test_what_others_refer_to_is_not_deleted(api: Api, world: World) -> None:
    response = api.delete(f"{PRODUCTS}({world.product})")
    assert response.status_code == 204
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert api.delete(made["@odata.id"]).status_code == 204
    assert api.get(made["@odata.id"]).status_code == 404
    refused = api.delete(f"{CURRENCIES}({world.currency})")
    assert (refused.status_code, error_of(refused)["type"]) == (500, "ReferenceInUse")
    assert error_of(refused)["parameters"][0] == f"General_Currencies_Currency({world.currency})"
    assert api.get(f"{CURRENCIES}({world.currency})").status_code == 200


def test_deleting_a_root_deletes_its_parts(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}, {"Quantity": 1}))
    assert api.delete(made["@odata.id"]).status_code == 204
    assert api.get(f"{LINES}/$count").content == b"0"


def test_a_property_and_a_reference_can_be_written_alone(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    assert api.request("PUT", f"{product}/PartNumber", {"value": "P9"}).status_code in (200, 204)
    assert api.read(f"{product}?$select=PartNumber")["PartNumber"] == "P9"
    group = api.create(GROUPS, {"Name": {"EN": "Tables"}, "Code": "G2"})
    assert api.request("PUT", f"{product}/ProductGroup/$ref", {"@odata.id": group["@odata.id"]}).status_code == 204
    assert api.read(f"{product}?$select=ProductGroup")["ProductGroup"] == {"@odata.id": group["@odata.id"]}


def test_a_child_is_added_below_its_parent(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world))
    line = api.create(f"{made['@odata.id']}/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})"})
    assert line["SalesOrder"] == {"@odata.id": made["@odata.id"]}
    assert api.get(f"{made['@odata.id']}/Lines/$count").content == b"1"


@pytest.mark.parametrize(
    "body,status,kind",
    [
        (b"{", 400, "InvalidJson"),
        (b"", 400, "InvalidJson"),
        (b"[]", 400, "InvalidBody"),
        (b'{"Name":"a","Name":"b"}', 400, "InvalidJson"),
        (b'{"Name":"\xff"}', 400, "InvalidJson"),
        (b'{"ShowOrder":1' + b"0" * 5000 + b"}", 400, "InvalidJson"),
        (b'{"ShowOrder":"many"}', 400, "InvalidLiteral"),
        (b'{"ShowOrder":NaN}', 400, "InvalidJson"),
        (b"[" * 5000 + b"]" * 5000, 400, "InvalidJson"),
        (b'{"Id":"x"}', 400, "InvalidKey"),
        (b'{"ObjectVersion":{}}', 400, "InvalidLiteral"),
        (b'{"@erpnet.action":"explode"}', 400, "InvalidBody"),
        (b'{"Name":5}', 400, "InvalidLiteral"),
        (b'{"Name":5.5}', 400, "InvalidLiteral"),
        (b'{"Name":true}', 400, "InvalidLiteral"),
        (b'{"Name":"a\\u0000b"}', 400, "NulCharacter"),
    ],
)
def test_a_bad_body_is_the_callers_fault(api: Api, body: bytes, status: int, kind: str) -> None:
    response = api.post(CURRENCIES, body)
    assert (response.status_code, error_of(response)["type"]) == (status, kind), response.content


def test_a_body_of_another_kind_is_415(api: Api) -> None:
    response = api.post(CURRENCIES, "a=b", Content_Type="application/x-www-form-urlencoded")
    assert response.status_code == 415


def test_read_only_attributes_are_refused(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world))
    response = api.patch(made["@odata.id"], {"State": "Released"})
    assert (response.status_code, error_of(response)["type"]) == (400, "ReadOnlyProperty")


def test_who_writes_back_what_was_read_changes_nothing(api: Api, world: World) -> None:
    """Clients send whole entities, read-only attributes included."""
    order = api.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"]
    shown = api.read(f"{order}?$select=default,TotalLineAmount,FullState,UserStatus")
    assert api.patch(order, shown).status_code == 204
    assert api.get(order)["ETag"] == 'W/"1"'
    for name, other in (("FullState", "Closed"), ("TotalLineAmount", 5), ("CreationUser", "me"), ("Void", True)):
        refused = api.patch(order, {**shown, name: other})
        assert (refused.status_code, error_of(refused)["target"]) == (400, name)


def test_decimals_stay_exact(api: Api, world: World) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 0.1, "UnitPrice": 0.3}))
    line = made["Lines"][0]
    assert Decimal(str(line["UnitPrice"]["Value"])) == Decimal("0.3")
    assert b'"Value":0.1,' in api.get(f"{line['@odata.id']}?$select=Quantity").content


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_token_without_update_cannot_write(api: Api, world: World, method: str) -> None:
    from tests.support.api import service_api

    reader = service_api(api.client, scope="read")
    response = reader.request(
        method, CURRENCIES if method == "POST" else f"{CURRENCIES}({world.currency})", {"Name": "x"}
    )
    assert response.status_code == 403
    assert error_of(response)["parameters"] == ["update"]


def test_the_wrong_method_says_which_are_allowed(api: Api) -> None:
    response = api.delete(CURRENCIES)
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD, POST, OPTIONS"


# --- annotations of the platform ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, near",
    [
        ({"@erpnet.action": "merge", "@erpnet.findby": {"CurrencySign": "EUR"}}, "@erpnet.findBy"),
        ({"@erpnet.Action": "merge"}, "@erpnet.action"),
        ({"@ERPNET.action": "merge"}, "@erpnet.action"),
        ({"Name@erpnet.foo": 1}, ""),
    ],
)
def test_an_unknown_annotation_of_the_platform_is_refused(
    api: Api, world: World, given: dict[str, Any], near: str
) -> None:
    """Ignored, it would create a duplicate."""
    body = {"CurrencySign": "USD", "Name": "Dollar", **given}
    refusals = [
        api.post(CURRENCIES, body),
        api.patch(f"{CURRENCIES}({world.currency})", body),
        api.post("Crm_Sales_Customers", {"Number": "C9", "DefaultCurrency": {"CurrencySign": "EUR", **given}}),
    ]
    for refused in refusals:
        error = error_of(refused)
        assert (refused.status_code, error["type"], error["target"]) == (400, "InvalidBody", list(given)[-1]), error
        assert "@erpnet.action, @erpnet.findBy" in error["message"]
        assert not near or f"Did you mean {near}" in error["message"]
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_other_annotations_are_ignored(api: Api) -> None:
    """OData JSON Format 4.01, 4.6; and what an answer had may be sent back."""
    body = {
        "CurrencySign": "USD",
        "Name": "Dollar",
        "@my.note": "x",
        "Name@erpnet.warning": "w",
        "@erpnet.warnings": [],
    }
    api.create(CURRENCIES, body)
