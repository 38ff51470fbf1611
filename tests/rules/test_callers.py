"""Spec 05, 5.1 and 5.2: what counts as a caller's change, and that rules on it hold whichever way a caller goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.dataset.records import dispatch
from domain.entities.crm_sales import SalesOrderLine
from domain.entities.general_products import Product
from foundation import errors
from identity.models import User
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    fail,
    make_property,
    new_line,
    new_order,
    set_value,
    warn,
    write_rule,
)
from tests.rules.test_http import order_body
from tests.support.api import Answer, Api, error_of

ORDER_SET, LINE_SET, PRODUCT_SET = "Crm_Sales_SalesOrders", "Crm_Sales_SalesOrderLines", "General_Products_Products"
DISCOUNT = "LineCustomDiscountPercent"


def stored_line(world: World) -> tuple[str, str]:
    """Guids of a saved order and of its line."""
    ds = dataset(world.context)
    order = new_order(ds, world, DocumentNo="7")
    line = new_line(ds, world, order, Quantity=Decimal(1))
    ds.commit()
    return order.id, line.id


def warnings_of(answer: Answer) -> list[str]:
    assert answer.status_code < 300, answer.content
    return str(answer["X-Warnings"]).split(" | ") if "X-Warnings" in answer else []


# --- CLIENT* events follow from what operations do ----------------------------------------------------------------

OPERATIONS: dict[str, Any] = {
    "ChangeState": {"newState": "Planned"},
    "MakeVoid": {"reason": "a mistake"},
    "Recalculate": None,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_raises_the_client_events_of_what_it_changes(api: Api, world: World, name: str) -> None:
    order, line = stored_line(world)
    # Something to be calculated anew, in the line alone.
    SalesOrderLine.objects.filter(pk=line).update(line_amount=Decimal(5))
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[warn("aggregate {DocumentNo}")])
    write_rule(world, ORDERS if OPERATIONS[name] else LINES, ["CLIENTCOMMIT"], actions=[warn("client")])
    answer = api.post(f"{ORDER_SET}({order})/{name}", OPERATIONS[name])
    assert sorted(warnings_of(answer)) == ["aggregate 7", "client"]


def test_an_operation_inside_a_transaction_raises_them_at_its_end(api: Api, world: World) -> None:
    order, _ = stored_line(world)
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[warn("aggregate")])
    inside = api.begin()
    assert warnings_of(inside.post(f"{ORDER_SET}({order})/ChangeState", {"newState": "Planned"})) == []
    assert warnings_of(inside.end()) == ["aggregate"]


def test_an_operation_called_by_a_script_raises_them(api: Api, world: World) -> None:
    order, _ = stored_line(world)
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[set_value("DocumentNotes", "heard of")])
    source = f"Domain.Crm.Sales.SalesOrdersRepository.getById('{order}').ChangeState('Planned'); Transaction.commit();"
    assert api.post("ExecuteScript", source, Content_Type="text/plain").status_code == 200
    assert api.read(f"{ORDER_SET}({order})?$select=DocumentNotes")["DocumentNotes"] == "heard of"


def test_a_step_on_a_document_s_page_raises_them(world: World) -> None:
    order, _ = stored_line(world)
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[warn("aggregate")])
    admin = Client()
    admin.force_login(User.objects.get(login="anna"))
    url = reverse("admin:domain_salesorder_change_state", args=[order])
    page = admin.post(url, {"state": "Planned"}, follow=True)
    assert "aggregate" in [str(message) for message in page.context["messages"]]


def test_what_an_operation_makes_beside_its_entity_is_the_caller_s_too(api: Api, world: World) -> None:
    write_rule(world, "Systems.Core.Notifications", ["AGGREGATECLIENTCOMMIT"], actions=[warn("made")])
    body = {"user": f"Systems_Security_Users({world.user})", "notificationClass": "c", "subject": "s"}
    assert warnings_of(api.post(f"{PRODUCT_SET}({world.product})/CreateNotification", body)) == ["made"]


def test_the_events_after_the_commit_are_raised_alike(
    api: Api, world: World, django_capture_on_commit_callbacks: Any
) -> None:
    order, _ = stored_line(world)
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMITTED"], actions=[set_value("DocumentNotes", "after")])
    write_rule(world, ORDERS, ["CLIENTCOMMITTED"], actions=[set_value("ReferenceDocumentNo", "after")])
    with django_capture_on_commit_callbacks(execute=True):
        warnings_of(api.post(f"{ORDER_SET}({order})/ChangeState", {"newState": "Planned"}))
    found = api.read(f"{ORDER_SET}({order})?$select=DocumentNotes,ReferenceDocumentNo")
    assert (found["DocumentNotes"], found["ReferenceDocumentNo"]) == ("after", "after")


def test_what_a_rule_changes_is_not_the_caller_s_and_the_caller_s_aggregate_fires_once(api: Api, world: World) -> None:
    order, _ = stored_line(world)
    script = (
        "Domain.General.Products.ProductsRepository.query({}).forEach(p => p.ShortName = 'by a rule');"
        "subject.Lines[0].Notes = 'by a rule';"
    )
    write_rule(world, ORDERS, [("STATECHANGED", "PLANNED")], ScriptLanguage="JavaScript", ScriptText=script)
    write_rule(world, PRODUCTS, ["CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT"], actions=[warn("client")])
    write_rule(world, LINES, ["CLIENTCOMMIT"], actions=[warn("client")])
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("any")])
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[warn("aggregate")])
    answer = api.post(f"{ORDER_SET}({order})/ChangeState", {"newState": "Planned"})
    assert sorted(warnings_of(answer)) == ["aggregate", "any"]


def test_a_job_s_operation_raises_no_client_event(world: World) -> None:
    order, _ = stored_line(world)
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT", "CLIENTCOMMIT"], actions=[fail()])
    job = dataset(world.context.with_(client_initiated=False))
    record = job.load(ORDERS, order)
    assert record is not None
    with job.operating():
        job.assign(record, "DocumentNotes", "by a job")
    job.commit()


def test_what_goes_with_a_deleted_entity_is_deleted_by_the_caller(api: Api, world: World) -> None:
    order, _ = stored_line(world)
    write_rule(world, LINES, ["CLIENTCOMMIT"], actions=[fail("No line goes.")])
    answer = api.delete(f"{ORDER_SET}({order})")
    assert error_of(answer)["message"] == "No line goes."


# --- attribute events are raised wherever a caller sets an attribute ----------------------------------------------


def patch(api: Api, world: World, line: str) -> Answer:
    return api.patch(f"{LINE_SET}({line})", {DISCOUNT: 0.5})


def put(api: Api, world: World, line: str) -> Answer:
    body = {DISCOUNT: 0.5, "Product@odata.bind": f"{PRODUCT_SET}({world.product})", "Quantity": {"Value": 1}}
    return api.request("PUT", f"{LINE_SET}({line})", body)


def patch_property(api: Api, world: World, line: str) -> Answer:
    return api.patch(f"{LINE_SET}({line})/{DISCOUNT}", {"value": 0.5})


def deep_insert(api: Api, world: World, line: str) -> Answer:
    return api.post(ORDER_SET, order_body(world, 0.1, 0.5))


def deep_update(api: Api, world: World, line: str) -> Answer:
    order = SalesOrderLine.objects.get(pk=line).sales_order_id
    return api.patch(f"{ORDER_SET}({order})", {"Lines": [{"@odata.id": f"{LINE_SET}({line})", DISCOUNT: 0.5}]})


def merge(api: Api, world: World, line: str) -> Answer:
    body = {"@erpnet.action": "merge", "Id": line, DISCOUNT: 0.5}
    return api.post(LINE_SET, body)


def in_common(api: Api, world: World, line: str) -> Answer:
    return patch(api.begin(model="common"), world, line)


def in_frontend(api: Api, world: World, line: str) -> Answer:
    return patch(api.begin(model="frontend"), world, line)


def by_script(api: Api, world: World, line: str) -> Answer:
    source = f"Domain.Crm.Sales.SalesOrderLinesRepository.getById('{line}').{DISCOUNT} = 0.5; Transaction.commit();"
    return api.post("ExecuteScript", source, Content_Type="text/plain")


def by_import(api: Api, world: World, line: str) -> Answer:
    entry = {"@odata.type": "Erp.Crm_Sales_SalesOrderLine", "@odata.id": f"{LINE_SET}({line})", DISCOUNT: 0.5}
    return api.post("Import", {"model": "common", "loggingLevel": 0, "objects": [entry]})


def in_a_batch(api: Api, world: World, line: str) -> Answer:
    part = {"id": "1", "method": "PATCH", "url": f"{LINE_SET}({line})", "atomicityGroup": "g", "body": {DISCOUNT: 0.5}}
    return api.post("$batch", {"requests": [part]})


def by_copy(api: Api, world: World, line: str) -> Answer:
    SalesOrderLine.objects.filter(pk=line).update(line_custom_discount_percent=Decimal("0.5"))
    return api.post(f"{LINE_SET}({line})/CreateCopy")


WAYS = (
    patch, put, patch_property, deep_insert, deep_update, merge, in_common, in_frontend, by_script, by_import,
    in_a_batch, by_copy,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_on_an_attribute_holds_whichever_way_a_caller_sets_it(
    api: Api, world: World, way: Callable[[Api, World, str], Answer]
) -> None:
    _, line = stored_line(world)
    write_rule(
        world, LINES, [("ATTRIBUTECHANGING", DISCOUNT)], conditions=[("$NewValue", "Greater_Than", "0.25")],
        actions=[fail("Too much.")],
    )  # fmt: skip
    assert "Too much." in way(api, world, line).content.decode()
    expected = None if way is not by_copy else Decimal("0.5")
    assert SalesOrderLine.objects.get().line_custom_discount_percent in (expected, 0 if expected is None else expected)


@pytest.mark.parametrize("layer", ["FrontEnd", "BackEnd", "Common"])
def test_a_rule_on_an_attribute_holds_in_both_models_whatever_its_layer(world: World, layer: str) -> None:
    event = {"EventType": "ATTRIBUTECHANGED", "EventParameter": "ShortName", "Layer": layer}
    write_rule(world, PRODUCTS, [event], Layer=layer, actions=[warn("changed")])
    for model in ("common", "frontend"):
        ds = dataset(world.context, model)
        record = ds.load(PRODUCTS, world.product)
        assert record is not None
        ds.set(record, "ShortName", {"EN": model})
        assert ds.warnings == ["changed"]


def test_a_rule_on_an_attribute_holds_in_the_admin(world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", [("ATTRIBUTECHANGING", "Name")], actions=[fail("Not so.")])
    admin = Client()
    admin.force_login(User.objects.get(login="anna"))
    page = admin.post(reverse("admin:domain_currency_add"), {"currency_sign": "XXX", "name_en": "x", "name": "x"})
    assert "Not so." in page.content.decode()


def test_events_come_in_body_order_before_the_value_applies(api: Api, world: World) -> None:
    for name in ("ShortName", "CatalogDescriptionHtml"):
        text = f"{name}: {{ShortName}}, {{CatalogDescriptionHtml}} -> {{$NewValue}}"
        write_rule(world, PRODUCTS, [("ATTRIBUTECHANGING", name)], actions=[warn(text)])
    Product.objects.update(short_name={"EN": "s"}, catalog_description_html="c")
    body = {"CatalogDescriptionHtml": "C", "ShortName": "S"}
    assert warnings_of(api.patch(f"{PRODUCT_SET}({world.product})", body)) == [
        "CatalogDescriptionHtml: s, c -> C",
        "ShortName: s, C -> S",
    ]
    # What stays as it is does not change.
    assert warnings_of(api.patch(f"{PRODUCT_SET}({world.product})", body)) == []


def test_a_rule_on_a_custom_property_holds(api: Api, world: World) -> None:
    make_property(world, "height", "Number")
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGING", "@height")], conditions=[("$NewValue", "Greater_Than", "2")],
        actions=[("FAIL", ("Interpolate", "{$NewValue} is higher than {$OldValue}."))],
    )  # fmt: skip
    path = f"{PRODUCT_SET}({world.product})"
    assert api.patch(path, {"CustomProperty_height": "2"}).status_code == 204
    answer = error_of(api.patch(path, {"CustomProperty_height": {"Value": "10"}}))
    assert (answer["message"], answer["target"]) == ("10 is higher than 2.", "@height")


def test_what_a_rule_sets_raises_attribute_events_in_the_frontend_model_only(world: World) -> None:
    write_rule(world, PRODUCTS, [("ATTRIBUTECHANGED", "PartNumber")], actions=[set_value("ShortName", "by a rule")])
    write_rule(world, PRODUCTS, [("ATTRIBUTECHANGED", "ShortName")], actions=[warn("followed")])
    for model, expected in (("common", []), ("frontend", ["followed"])):
        ds = dataset(world.context, model)  # type: ignore[arg-type]
        record = ds.load(PRODUCTS, world.product)
        assert record is not None
        ds.set(record, "PartNumber", "P9")
        assert (record.values["ShortName"], ds.warnings) == ({"EN": "by a rule"}, expected)


@pytest.mark.parametrize("event", ["ATTRIBUTECHANGING", "ATTRIBUTECHANGED"])
@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_script_that_catches_the_refusal_has_the_old_value(world: World, api: Api, event: str, model: str) -> None:
    write_rule(world, PRODUCTS, [(event, "ShortName"), (event, "ProductGroup")], actions=[fail()])
    Product.objects.update(short_name={"EN": "old"})
    source = (
        f"const p = Domain.General.Products.ProductsRepository.getById('{world.product}');"
        "for (const [name, value] of [['ShortName', 'new'], ['ProductGroup', null]])"
        " try { p[name] = value; } catch (e) { console.log(name); }"
        "console.log(p.ShortName.EN, p.ProductGroup.Code, p.ObjectState);"
    )
    inside = api.begin(model=model)
    answer = inside.post("ExecuteScript", source, Content_Type="text/plain")
    assert json.loads(answer.content)["console"] == "ShortName\nProductGroup\nold G1 Unchanged"


@pytest.mark.parametrize("event", ["ATTRIBUTECHANGING", "ATTRIBUTECHANGED"])
def test_a_script_that_catches_the_refusal_has_the_old_custom_value(world: World, api: Api, event: str) -> None:
    make_property(world, "height", "Number")
    assert api.patch(f"{PRODUCT_SET}({world.product})", {"CustomProperty_height": "2"}).status_code == 204
    write_rule(world, PRODUCTS, [(event, "@height")], actions=[fail()])
    source = (
        f"const p = Domain.General.Products.ProductsRepository.getById('{world.product}');"
        "try { p.CustomProperty_height = 3; } catch (e) { console.log('refused'); }"
        "console.log(`${p.CustomProperty_height}`, p.ObjectState);"
    )
    answer = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert json.loads(answer.content)["console"] == "refused\n2 Unchanged"


@pytest.mark.parametrize("attribute", ["ShortName", "@height"])
def test_a_rule_that_deletes_and_refuses_leaves_a_deleted_record(world: World, attribute: str) -> None:
    make_property(world, "height", "Number")
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGED", attribute)], Layer="Common", ScriptLanguage="JavaScript",
        ScriptText="subject.Delete(); throw new Error('refused');",
    )  # fmt: skip
    ds = dataset(world.context)
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    change = ds.set_custom if attribute.startswith("@") else ds.set
    with pytest.raises(errors.PlatformError, match="refused"):
        change(record, attribute.removeprefix("@"), {"EN": "new", "Value": "1"})
    assert record.is_deleted


def test_nothing_of_a_deleted_entity_is_set(world: World) -> None:
    make_property(world, "height", "Number")
    ds = dataset(world.context)
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.delete(record)
    with pytest.raises(errors.NotFound):
        ds.set(record, "ShortName", {"EN": "new"})
    with pytest.raises(errors.NotFound):
        ds.set_custom(record, "height", {"Value": "1"})


def test_what_nobody_watches_is_asked_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    watched = dispatch.watched

    def counted(repository: str, event: str) -> Any:
        asked.append((repository, event))
        return watched(repository, event)

    monkeypatch.setattr(dispatch, "watched", counted)
    ds = dataset(world.context)
    order = new_order(ds, world)
    for _ in range(3):
        new_line(ds, world, order, Notes="n")
    for name in ("CREATENEW", "ATTRIBUTECHANGING", "ATTRIBUTECHANGED"):
        assert asked.count((LINES, name)) == 1
        assert asked.count((ORDERS, name)) == 1


# --- CREATENEW ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["FrontEnd", "BackEnd", "Common"])
def test_a_new_object_begins_with_custom_defaults_and_the_caller_s_values_win(
    api: Api, world: World, layer: str
) -> None:
    write_rule(
        world, ORDERS, [{"EventType": "CREATENEW", "Layer": layer}], Layer=layer,
        actions=[set_value("DocumentNotes", "default"), set_value("ReferenceDocumentNo", "default")],
    )  # fmt: skip
    write_rule(world, LINES, ["CREATENEW"], actions=[set_value("Notes", "of a line")])
    made = api.create(f"{ORDER_SET}?$select=DocumentNotes,ReferenceDocumentNo&$expand=Lines($select=Notes)",
                      {**order_body(world, 0.1), "DocumentNotes": "mine"})  # fmt: skip
    assert (made["DocumentNotes"], made["ReferenceDocumentNo"]) == ("mine", "default")
    assert made["Lines"][0]["Notes"] == "of a line"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_upsert_keeps_custom_defaults(api: Api, world: World, method: str) -> None:
    currency = "General.Currencies.Currencies"
    write_rule(world, currency, ["CREATENEW"], actions=[set_value("ExternalSystem", "default")])
    path = "General_Currencies_Currencies(0189a1b2-0000-7000-8000-0000000000cc)?$select=ExternalSystem"
    answer = api.request(method, path, {"CurrencySign": "XXX", "Name": "x"}, Prefer="return=representation")
    assert answer.status_code == 201, answer.content
    assert json.loads(answer.content)["ExternalSystem"] == "default"


def test_nothing_is_left_of_a_creation_that_a_script_saw_refused(api: Api, world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", ["CREATENEW"], actions=[fail("Not that one.")])
    source = (
        "try { Domain.General.Currencies.CurrenciesRepository.createNew({ CurrencySign: 'XXX', Name: 'x' }); }"
        "catch (e) { console.log(e.message); } Transaction.commit();"
    )
    answer = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert json.loads(answer.content)["console"] == "Not that one."
    assert api.read("General_Currencies_Currencies?$filter=CurrencySign eq 'XXX'")["value"] == []
