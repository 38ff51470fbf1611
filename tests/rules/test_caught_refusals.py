"""A script that catches the refusal of a call goes on as if it had not made the call (spec 05, 5.3)."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from domain.entities.crm_sales import SalesOrder, SalesOrderLine
from domain.entities.general_products import Product
from tests.rules.cast import LINES, ORDERS, World, dataset, fail, new_line, new_order, set_value, write_rule
from tests.scripts.cast import console, execute, make_script
from tests.support.api import Api, error_of
from tests.webhooks.cast import new_web_hook
from webhooks.models import WebHookDelivery

ORDER_SET = "Crm_Sales_SalesOrders"
RELEASED = ("STATECHANGED", "RELEASED")
HOOK = ("WEBHOOK", ("Constant", "HOOK"))


def stored_order(world: World) -> str:
    """The guid of a saved order with one line."""
    ds = dataset(world.context)
    order = new_order(ds, world, DocumentNo="7")
    new_line(ds, world, order)
    ds.commit()
    return order.id


def orders(source: str, id: str) -> str:
    """A script that has `order` and commits at its end."""
    return f"""
        const order = Domain.Crm.Sales.SalesOrdersRepository.getById('{id}');
        {source}
        Transaction.commit();
    """


RELEASE = "try { order.ChangeState('Released'); } catch (e) { console.log(e.message, order.State); }"


def assert_not_released(api: Api, id: str) -> None:
    shown = api.read(f"{ORDER_SET}({id})?$expand=StateChanges")
    assert (shown["State"], shown["ReleaseTime"], shown["StateChanges"]) == ("New", None, [])


def test_a_refused_change_of_state_is_undone(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, ORDERS, [RELEASED], actions=[fail("no release")])
    assert console(api, orders(RELEASE, id)) == "no release New"
    assert_not_released(api, id)


def test_what_the_script_has_changed_before_and_after_remains(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, ORDERS, [RELEASED], actions=[set_value("DocumentNotes", "by the rule"), fail("no release")])
    source = f"""
        order.DocumentNotes = 'before';
        order.Lines.createNew({{ Product: '{world.product}', QuantityUnit: '{world.unit}' }});
        {RELEASE}
        console.log(order.DocumentNotes, order.Lines.length);
        order.ReferenceDocumentNo = 'after';
    """
    assert console(api, orders(source, id)) == "no release New\nbefore 2"
    assert_not_released(api, id)
    shown = api.read(f"{ORDER_SET}({id})")
    assert (shown["DocumentNotes"], shown["ReferenceDocumentNo"]) == ("before", "after")


def test_what_a_transaction_has_pending_remains(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, ORDERS, [RELEASED], actions=[fail("no release")])
    inside = api.begin()
    assert inside.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "pending"}).status_code in (200, 204)
    inside.create("Crm_Sales_SalesOrderLines", {
        "SalesOrder": f"{ORDER_SET}({id})", "Product": f"General_Products_Products({world.product})",
        "QuantityUnit": f"General_Products_MeasurementUnits({world.unit})",
    })  # fmt: skip
    source = orders(RELEASE, id).replace("Transaction.commit();", "")
    answer = inside.post("ExecuteScript", source, Content_Type="text/plain", Accept="application/json")
    assert answer.status_code == 200, answer.content
    assert inside.end().status_code == 204
    assert_not_released(api, id)
    assert api.read(f"{ORDER_SET}({id})")["DocumentNotes"] == "pending"
    assert SalesOrderLine.objects.filter(sales_order_id=id).count() == 2


def test_a_refused_copy_leaves_no_half_of_it(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, LINES, [("ATTRIBUTECHANGING", "Product")], actions=[fail("no lines")])
    source = "try { order.CreateCopy(); } catch (e) { console.log(e.message); }"
    assert console(api, orders(source, id)) == "no lines"
    assert SalesOrder.objects.count() == 1


def test_a_refused_call_sends_no_webhook(api: Api, world: World, settings: Settings) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    id = stored_order(world)
    new_web_hook("http://127.0.0.1:9/", RepositoryName=ORDERS, Body='{"no": "{DocumentNo}"}')
    event = {"EventType": "STATECHANGING", "EventParameter": "RELEASED"}
    write_rule(world, ORDERS, [{**event, "ExecutionPriority": "Early"}], actions=[HOOK])
    write_rule(world, ORDERS, [event], actions=[fail("no release")])
    changing = {"EventType": "ATTRIBUTECHANGING", "EventParameter": "DocumentNotes"}
    write_rule(world, ORDERS, [{**changing, "ExecutionPriority": "Early"}], actions=[HOOK])
    write_rule(world, ORDERS, [changing], actions=[fail("no notes")])
    source = f"""
        {RELEASE}
        try {{ order.DocumentNotes = 'bad'; }} catch (e) {{ console.log(e.message); }}
        order.ReferenceDocumentNo = 'after';
    """
    assert console(api, orders(source, id)) == "no release New\nno notes"
    assert not WebHookDelivery.objects.exists()


def test_a_commit_rule_that_catches_a_refusal_in_each_round_is_no_loop(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, ORDERS, [RELEASED], actions=[fail("no release")])
    release = "try { subject.ChangeState('Released'); } catch (e) { console.log(e.message); }"
    write_rule(world, ORDERS, ["COMMIT"], ScriptLanguage="JavaScript", ScriptText=release)
    answer = api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "kept"})
    assert answer.status_code in (200, 204), answer.content
    assert_not_released(api, id)
    assert api.read(f"{ORDER_SET}({id})")["DocumentNotes"] == "kept"


@pytest.mark.parametrize("commits", [False, True])
def test_of_a_managed_script_that_fails_only_what_it_has_committed_remains(
    api: Api, world: World, commits: bool
) -> None:
    notes = "p.CatalogDescriptionHtml = 'inner';"
    inner = f"""
        const p = Domain.General.Products.ProductsRepository.getById('{world.product}');
        {notes} {"Transaction.commit();" if commits else ""}
        p.PlanningHorizonDays = 5;
        throw new Error('stop');
    """
    make_script(api, inner, Code="INNER")
    source = f"""
        const [script] = Domain.Systems.Core.ScriptsRepository.query({{ Code: 'INNER' }});
        const p = Domain.General.Products.ProductsRepository.getById('{world.product}');
        p.ExpiryPeriodDays = 9;
        try {{ script.Execute({{}}); }} catch (e) {{ console.log(e.message.includes('stop')); }}
        Transaction.commit();
    """
    assert console(api, source) == "true"
    product = Product.objects.get(pk=world.product)
    stored: tuple[Any, ...] = (
        product.catalog_description_html,
        product.planning_horizon_days or None,
        product.expiry_period_days,
    )
    assert stored == ("inner" if commits else None, None, 9)


def test_without_catch_the_script_fails(api: Api, world: World) -> None:
    id = stored_order(world)
    write_rule(world, ORDERS, [RELEASED], actions=[fail("no release")])
    answer = execute(api, orders("order.ChangeState('Released');", id))
    assert (answer.status_code, error_of(answer)["message"]) == (500, "no release")
    assert_not_released(api, id)
