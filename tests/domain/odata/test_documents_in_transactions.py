"""Documents that are edited and released within one Domain transaction (spec 03, 3.5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from domain.dataset.tables.models import NumberSequence, PendingChange
from tests.domain.odata.test_batch import json_batch
from tests.domain.odata.test_writing import LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, dataset, fail, set_value, write_rule
from tests.support.api import Api, error_of, id_of


def _order(api: Api, world: World) -> tuple[str, str]:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1, "UnitPrice": 1}))
    return made["@odata.id"], made["Lines"][0]["@odata.id"]


def test_edits_before_a_pending_release_are_saved_with_it(api: Api, world: World) -> None:
    order, line = _order(api, world)
    inside = api.begin()
    assert inside.patch(order, {"DocumentNotes": "before"}).status_code == 204
    assert inside.patch(line, {"Quantity": 5}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    assert inside.end().status_code == 204
    stored = api.read(f"{order}?$select=DocumentNotes,State&$expand=Lines($select=Quantity)")
    assert (stored["DocumentNotes"], stored["State"]) == ("before", "Released")
    assert stored["Lines"][0]["Quantity"]["Value"] == 5


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_void_document_is_not_recalculated(api: Api, world: World, model: str) -> None:
    order, _ = _order(api, world)
    assert api.post(f"{order}/MakeVoid", {"reason": "a mistake"}).status_code == 204
    inside = api.begin(model=model)
    answer = inside.post(f"{order}/Recalculate")
    assert error_of(answer)["type"] == "DocumentVoid"
    assert inside.end().status_code == 204


def test_a_part_of_a_group_after_its_end_of_the_transaction_fails_the_group(api: Api, world: World) -> None:
    order, _ = _order(api, world)
    inside = api.begin()
    answers = json_batch(
        inside,
        {"id": "1", "atomicityGroup": "g", "method": "PATCH", "url": order, "body": {"DocumentNotes": "one"}},
        {"id": "2", "atomicityGroup": "g", "method": "POST", "url": "EndTransaction", "body": {"commit": True}},
        {"id": "3", "atomicityGroup": "g", "method": "PATCH", "url": order, "body": {"DocumentNotes": "two"}},
    )
    assert {answer["status"] for answer in answers} == {400}, answers
    assert api.read(f"{order}?$select=DocumentNotes")["DocumentNotes"] is None


def test_edits_after_a_pending_release_are_refused(api: Api, world: World) -> None:
    order, line = _order(api, world)
    other, _ = _order(api, world)
    inside = api.begin()
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    attempts = [
        inside.patch(order, {"DocumentNotes": "after"}),
        inside.patch(line, {"Quantity": 5}),
        inside.delete(line),
        inside.delete(order),
        inside.post(f"{order}/Lines", product),
        inside.post(LINES, {**product, "SalesOrder": {"@odata.id": order}}),
        inside.patch(line, {"SalesOrder": {"@odata.id": other}}),
        inside.patch(order, {"CustomProperty_x": "y", "DocumentNotes": "z"}),
    ]
    for attempt in attempts[:-1]:
        assert (attempt.status_code, error_of(attempt)["type"]) == (500, "DocumentLocked"), attempt.content
    assert inside.end().status_code == 204
    assert api.read(f"{order}?$select=State,DocumentNotes")["DocumentNotes"] is None


def test_a_line_cannot_be_moved_into_a_document_that_is_released_meanwhile(api: Api, world: World) -> None:
    order, _ = _order(api, world)
    _, line = _order(api, world)
    inside = api.begin()
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    refused = inside.patch(line, {"SalesOrder": {"@odata.id": order}})
    assert error_of(refused)["type"] == "DocumentLocked"


# --- operations on what is not committed yet ----------------------------------------------------------------------

STATUSES = "Systems_Documents_DocumentTypeUserStatuses"
TOO_MUCH = [("TotalLineAmount", "Greater_Than", "1000")]


def _status(world: World, name: str, state: str, **values: object) -> str:
    """A user status of the orders' type; its reference."""
    ds = dataset(world.context)
    document_type = ds.load("Systems.Documents.DocumentTypes", world.document_type)
    given = {"UserStatusName": {"EN": name}, "State": state, **values}
    made = ds.create("Systems.Documents.DocumentTypeUserStatuses", given, parent=document_type)
    ds.commit()
    return f"{STATUSES}({made.id})"


def _incomplete(world: World, **line: object) -> dict[str, object]:
    """An order of which the platform fills in the type, the number and the amounts."""
    return {**order_body(world, {"Quantity": 1, "UnitPrice": 1, **line}), "DocumentType@odata.bind": None}


def _new_in_batch(api: Api, body: object, *operations: tuple[str, object]) -> list[dict[str, Any]]:
    """The answers to one change set of the order's creation and operations on it."""
    group = {"method": "POST", "atomicityGroup": "g"}
    calls = [{**group, "url": f"$1/{name}", "body": given} for name, given in operations]
    return json_batch(api, {**group, "url": ORDERS, "body": body}, *calls)


def _new_in_transaction(model: str) -> Callable[..., list[dict[str, Any]]]:
    def run(api: Api, body: object, *operations: tuple[str, object]) -> list[dict[str, Any]]:
        inside = api.begin(model=model)
        made = inside.post(ORDERS, body)
        answers = [inside.post(f"{made.json()['@odata.id']}/{name}", given) for name, given in operations]
        answers += [inside.end()] if all(each.status_code == 204 for each in answers) else []
        return [{"status": each.status_code, "body": each.content and each.json()} for each in (made, *answers)]

    return run


WAYS = pytest.mark.parametrize(
    "new",
    [_new_in_batch, _new_in_transaction("common"), _new_in_transaction("frontend")],
    ids=["batch", "common", "frontend"],
)


@WAYS
@pytest.mark.parametrize(
    "event,operation",
    [
        (("STATECHANGING", "RELEASED"), ("ChangeState", {"newState": "Released"})),
        (("VOIDING",), ("MakeVoid", {"reason": "wrong"})),
    ],
)
def test_a_rule_judges_what_the_commit_would_store(
    api: Api, world: World, new: Any, event: Any, operation: Any
) -> None:
    """Spec 05, 5.2: a FAIL rule holds wherever a change comes from."""
    write_rule(world, "Crm.Sales.SalesOrders", [event], conditions=TOO_MUCH, actions=[fail("too much")])
    refused = new(api, _incomplete(world, Quantity=1001), operation)[-1]
    assert (refused["status"], refused["body"]["error"]["message"]) == (500, "too much")
    assert new(api, _incomplete(world, Quantity=1000), operation)[-1]["status"] == 204


def test_a_rule_judges_pending_edits_of_a_stored_document(api: Api, world: World) -> None:
    write_rule(
        world, "Crm.Sales.SalesOrders", [("STATECHANGING", "RELEASED")], conditions=TOO_MUCH, actions=[fail("too much")]
    )
    order, line = _order(api, world)
    inside = api.begin()
    assert inside.patch(line, {"Quantity": 1001}).status_code == 204
    assert error_of(inside.post(f"{order}/ChangeState", {"newState": "Released"}))["message"] == "too much"


def test_a_rule_judges_the_total_after_a_line_has_gone(api: Api, world: World) -> None:
    write_rule(
        world, "Crm.Sales.SalesOrders", [("STATECHANGING", "RELEASED")], conditions=TOO_MUCH, actions=[fail("too much")]
    )
    order = api.create(ORDERS, order_body(world, *2 * [{"Quantity": 1, "UnitPrice": 600}]))["@odata.id"]
    first, second = (each["@odata.id"] for each in api.read(f"{order}/Lines")["value"])
    other, _ = _order(api, world)
    inside = api.begin()
    assert error_of(inside.post(f"{order}/ChangeState", {"newState": "Released"}))["message"] == "too much"
    assert inside.delete(first).status_code == 204
    assert inside.patch(second, {"SalesOrder": {"@odata.id": other}}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    assert inside.end().status_code == 204
    totals = [api.read(f"{each}?$select=TotalLineAmount")["TotalLineAmount"]["Value"] for each in (order, other)]
    assert totals == [0, 601]


def test_a_rule_judges_the_order_that_a_script_has_made(api: Api, world: World) -> None:
    write_rule(
        world, "Crm.Sales.SalesOrders", [("STATECHANGING", "RELEASED")], conditions=TOO_MUCH, actions=[fail("too much")]
    )
    script = f"""
    const order = Domain.Crm.Sales.SalesOrdersRepository.createNew({{Customer: '{world.customer}'}});
    Domain.Crm.Sales.SalesOrderLinesRepository.createNew(
        {{SalesOrder: order, Product: '{world.product}', Quantity: 1001, UnitPrice: 1}});
    order.ChangeState('Released');
    Transaction.commit();"""
    refused = api.post("ExecuteScript", script, Content_Type="text/plain")
    assert "too much" in error_of(refused)["message"]
    assert api.get(f"{ORDERS}/$count").content == b"0"


def test_a_rule_copies_what_the_commit_stores(api: Api, world: World) -> None:
    interpolated = set_value("DocumentNotes", "{DocumentType.Code} {TotalLineAmount:V}", "Interpolate")
    write_rule(world, "Crm.Sales.SalesOrders", [("STATECHANGED", "RELEASED")], actions=[interpolated])
    _new_in_batch(api, _incomplete(world, Quantity=7), ("ChangeState", {"newState": "Released"}))
    assert api.read(ORDERS)["value"][0]["DocumentNotes"] == "SO 7.00"


@WAYS
def test_a_new_document_takes_a_user_status_of_its_type(api: Api, world: World, new: Any) -> None:
    status = _status(world, "Picking", "Released")
    answers = new(
        api, _incomplete(world), ("ChangeState", {"newState": "Released", "userStatus": {"@odata.id": status}})
    )
    assert [answer["status"] for answer in answers[:2]] == [201, 204], answers
    assert api.read(f"{ORDERS}?$expand=UserStatus")["value"][0]["UserStatus"]["@odata.id"] == status


@WAYS
def test_a_new_document_leaves_a_state_from_its_exit_status_only(api: Api, world: World, new: Any) -> None:
    _status(world, "Waiting", "FirmPlanned", IsExitStatus=False)
    _status(world, "Confirmed", "FirmPlanned", IsExitStatus=True)
    states = [("ChangeState", {"newState": state}) for state in ("FirmPlanned", "Released")]
    refused = new(api, _incomplete(world), *states)[-1]
    assert refused["body"]["error"]["type"] == "ExitUserStatusRequired", refused
    # The number comes with the commit; the message says what it can (spec 07).
    assert refused["body"]["error"]["parameters"][0] == "Sales order"


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_pending_edit_makes_a_plan_firm_before_an_operation(api: Api, world: World, model: str) -> None:
    order, _ = _order(api, world)
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    inside = api.begin(model=model)
    assert inside.patch(order, {"DocumentNotes": "edited"}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    assert inside.end().status_code == 204
    assert _states(api, order) == ["Planned", "FirmPlanned", "Released"]


def test_an_edit_makes_a_plan_firm_once(api: Api, world: World) -> None:
    """The operation after the edit moves the document back: the commit does not follow the same edit again."""
    order, _ = _order(api, world)
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    inside = api.begin()
    assert inside.patch(order, {"DocumentNotes": "edited"}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    assert inside.end().status_code == 204
    assert _states(api, order) == ["Planned", "FirmPlanned", "Planned"]


@pytest.mark.parametrize("model", ["common", "frontend"])
@pytest.mark.parametrize("is_line", [False, True])
def test_an_edit_makes_a_plan_of_the_same_transaction_firm(api: Api, world: World, model: str, is_line: bool) -> None:
    inside = api.begin(model=model)
    new = inside.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    stored = _order(api, world)
    for order, line in ((new["@odata.id"], new["Lines"][0]["@odata.id"]), stored):
        assert inside.patch(order, {"DocumentNotes": "before"}).status_code == 204
        assert inside.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
        if is_line:
            assert inside.patch(line, {"Quantity": 2}).status_code == 204
        else:
            assert inside.patch(order, {"DocumentNotes": "after"}).status_code == 204
        assert inside.read(f"{order}?$select=State")["State"] == "FirmPlanned"
    assert inside.end().status_code == 204
    assert _states(api, stored[0]) == _states(api, new["@odata.id"]) == ["Planned", "FirmPlanned"]


def test_a_rule_that_edits_what_it_sees_planned_leaves_it_planned(api: Api, world: World) -> None:
    write_rule(
        world, "Crm.Sales.SalesOrders", [("STATECHANGED", "PLANNED")], Layer="Common",
        ScriptLanguage="JavaScript", ScriptText="subject.DocumentNotes = 'planned';",
    )  # fmt: skip
    order, _ = _order(api, world)
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    assert api.read(f"{order}?$select=State,DocumentNotes")["DocumentNotes"] == "planned"
    assert _states(api, order) == ["Planned"]


def _states(api: Api, order: str) -> list[str]:
    return [each["NewState"] for each in api.read(f"{order}/StateChanges?$orderby=Id")["value"]]


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_document_that_is_new_and_released_in_one_transaction_is_closed_to_edits(
    api: Api, world: World, model: str
) -> None:
    inside = api.begin(model=model)
    order = inside.create(ORDERS, _incomplete(world))["@odata.id"]
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    for attempt in (
        inside.patch(order, {"DocumentNotes": "after"}),
        inside.post(f"{order}/Lines", product),
        inside.post(LINES, {**product, "SalesOrder": {"@odata.id": order}}),
    ):
        assert error_of(attempt)["type"] == "DocumentLocked", attempt.content
    assert inside.post(f"{order}/MakeVoid", {"reason": "wrong"}).status_code == 204
    void = error_of(inside.patch(order, {"DocumentNotes": "after"}))
    assert (void["type"], void["parameters"][0].partition(" [")[0].strip()) == ("DocumentVoid", "Sales order")
    assert inside.end().status_code == 204
    assert api.read(f"{order}/Lines/$count") == 1


def test_what_an_operation_has_calculated_follows_later_edits(api: Api, world: World) -> None:
    """A common transaction goes on after the operation as if the commit were the first to calculate."""
    order, line = _order(api, world)
    inside = api.begin()
    more = {"Product@odata.bind": f"{PRODUCTS}({world.product})", "Quantity": 1, "UnitPrice": 10}
    removed = inside.create(f"{order}/Lines", more)["@odata.id"]
    kept = inside.create(f"{order}/Lines", more)["@odata.id"]
    assert inside.patch(line, {"Quantity": 5}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "FirmPlanned"}).status_code == 204
    assert inside.delete(removed).status_code == 204
    assert inside.patch(kept, {"Quantity": 3}).status_code == 204
    assert inside.patch(line, {"Quantity": 1}).status_code == 204
    assert inside.end().status_code == 204
    shown = api.read(f"{order}?$select=TotalLineAmount&$expand=Lines($select=LineAmount,QuantityBase;$orderby=Id)")
    amounts = [(each["LineAmount"]["Value"], each["QuantityBase"]["Value"]) for each in shown["Lines"]]
    assert (amounts, shown["TotalLineAmount"]["Value"]) == ([(1, 1), (30, 3)], 31)


def test_an_operation_completes_its_own_document_only(api: Api, world: World) -> None:
    """The others are filled in by the commit, from what callers gave by then."""
    sequences = list(NumberSequence.objects.values_list("name", "last"))
    inside = api.begin()
    other = inside.create(ORDERS, _incomplete(world))["@odata.id"]
    order = inside.create(ORDERS, _incomplete(world))["@odata.id"]
    assert inside.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    kept = PendingChange.objects.get(entity_id=id_of({"@odata.id": other})).current
    assert (kept["DocumentType"], kept["TotalLineAmount"]) == (None, None)
    assert list(NumberSequence.objects.values_list("name", "last")) == sequences
    assert inside.end().status_code == 204
    assert {each["DocumentNo"] for each in api.read(ORDERS)["value"]} == {"0000000001", "0000000002"}


def test_a_message_about_a_document_without_type_and_number_names_its_kind(api: Api, world: World) -> None:
    """Spec 07: for people. Its display text is empty, for scripts too."""
    status = _status(world, "Picking", "Released")
    other = {"Code": "SX", "TypeName": {"EN": "Other order"}, "EntityName": "Crm_Sales_SalesOrders"}
    api.create("Systems_Documents_DocumentTypes", other)
    inside = api.begin()
    order = inside.create(ORDERS, _incomplete(world))["@odata.id"]
    refused = inside.post(f"{order}/ChangeState", {"newState": "Released", "userStatus": {"@odata.id": status}})
    assert error_of(refused)["parameters"] == ["Picking", "Released", "Sales order"]
    script = f"console.log(`<${{Domain.Crm.Sales.SalesOrdersRepository.getById('{id_of({'@odata.id': order})}')}}>`);"
    shown = inside.post("ExecuteScript", script, Content_Type="text/plain")
    assert shown.json()["console"] == "<>"


# --- lines of a new order that several requests make --------------------------------------------------------------


def _totals_of(api: Api, order: str) -> tuple[list[int], float, float]:
    """The line numbers, by descending prices, and the totals."""
    shown = api.read(f"{order}?$select=TotalLineAmount,AmountToPay&$expand=Lines($select=LineNo,UnitPrice)")
    lines = sorted(shown["Lines"], key=lambda line: -line["UnitPrice"]["Value"])
    totals = shown["TotalLineAmount"]["Value"], shown["AmountToPay"]["Value"]
    return [line["LineNo"] for line in lines], *totals


def _line(world: World, **values: object) -> dict[str, object]:
    return {"Product@odata.bind": f"{PRODUCTS}({world.product})", **values}


@pytest.mark.parametrize("model", ["common", "frontend"])
@pytest.mark.parametrize("by_patch", [False, True])
def test_a_line_that_a_later_request_adds_joins_the_others(api: Api, world: World, model: str, by_patch: bool) -> None:
    lines = [{"Quantity": 2, "UnitPrice": 100}, {"Quantity": 1, "UnitPrice": 10}]
    inside = api.begin(model=model)
    order = inside.create(ORDERS, order_body(world, *lines))["@odata.id"]
    line = _line(world, Quantity=3, UnitPrice=1)
    made = inside.patch(order, {"Lines": [line]}) if by_patch else inside.post(f"{order}/Lines", line)
    assert made.status_code in (201, 204), made.content
    assert inside.read(f"{order}?$select=TotalLineAmount")["TotalLineAmount"]["Value"] == 213
    assert inside.end().status_code == 204
    assert _totals_of(api, order) == ([10, 20, 30], 213, 213)


@pytest.mark.parametrize("operation", ["ChangeState", "EndTransaction"])
def test_a_line_that_a_changeset_adds_is_counted_in_the_same_changeset(api: Api, world: World, operation: str) -> None:
    lines = [{"Quantity": 2, "UnitPrice": 100}, {"Quantity": 1, "UnitPrice": 10}]
    inside = api.begin()
    order = inside.create(ORDERS, order_body(world, *lines))["@odata.id"]
    if operation == "ChangeState":
        write_rule(
            world, "Crm.Sales.SalesOrders", [("STATECHANGING", "FIRMPLANNED")],
            conditions=[("TotalLineAmount", "Less_Than", "213")], actions=[fail("too little")],
        )  # fmt: skip
    calls = {
        "ChangeState": {"url": f"{order}/ChangeState", "body": {"newState": "FirmPlanned"}},
        "EndTransaction": {"url": "EndTransaction", "body": {"commit": True}},
    }
    group = {"method": "POST", "atomicityGroup": "g"}
    added = {**group, "url": f"{order}/Lines", "body": _line(world, Quantity=3, UnitPrice=1)}
    answers = json_batch(inside, added, {**group, **calls[operation]})
    assert [each["status"] for each in answers] == [201, 204], answers
    if operation == "ChangeState":
        assert inside.end().status_code == 204
    assert _totals_of(api, order) == ([10, 20, 30], 213, 213)


def test_a_script_that_adds_a_line_sees_the_lines_of_earlier_requests(api: Api, world: World) -> None:
    inside = api.begin()
    order = inside.create(ORDERS, order_body(world, {"Quantity": 2, "UnitPrice": 100}))["@odata.id"]
    script = f"""
        const o = Domain.Crm.Sales.SalesOrdersRepository.getById('{id_of({"@odata.id": order})}');
        const p = Domain.General.Products.ProductsRepository.getById('{world.product}');
        Domain.Crm.Sales.SalesOrderLinesRepository.createNew({{SalesOrder: o, Product: p, Quantity: 3, UnitPrice: 1}});
        const seen = o.Lines.length;
        o.ChangeState('FirmPlanned');
        console.log(seen, o.TotalLineAmount.Value);
    """
    assert inside.post("ExecuteScript", script, Content_Type="text/plain").json()["console"] == "2 203"
    assert inside.end().status_code == 204
    assert _totals_of(api, order) == ([10, 20], 203, 203)


def test_an_order_is_deleted_with_all_lines_in_the_request_that_adds_one(api: Api, world: World) -> None:
    inside = api.begin()
    order = inside.create(ORDERS, order_body(world, {"Quantity": 2, "UnitPrice": 100}))["@odata.id"]
    group = {"atomicityGroup": "g"}
    added = {**group, "method": "POST", "url": f"{order}/Lines", "body": _line(world)}
    answers = json_batch(inside, added, {**group, "method": "DELETE", "url": order})
    assert [each["status"] for each in answers] == [201, 204], answers
    assert inside.end().status_code == 204
    assert api.read(f"{LINES}/$count") == 0


@pytest.mark.parametrize("operation", [("Recalculate", None), ("ChangeState", {"newState": "FirmPlanned"})])
def test_an_operation_loads_and_calculates_its_own_document_only(
    api: Api, world: World, operation: tuple[str, Any]
) -> None:
    order, _ = _order(api, world)
    other, _ = _order(api, world)
    inside = api.begin(trackChanges=True)
    line = inside.create(f"{other}/Lines", _line(world, Quantity=2, UnitPrice=3))
    assert inside.patch(order, {"DocumentNotes": "changed"}).status_code == 204
    inside.get("GetChanges()")
    pending = PendingChange.objects.get(entity_id=id_of(line))
    assert inside.post(f"{order}/{operation[0]}", operation[1]).status_code == 204
    changed = json.dumps(inside.read("GetChanges()"))
    assert id_of(line) not in changed
    assert id_of({"@odata.id": other}) not in changed
    assert PendingChange.objects.get(entity_id=id_of(line)).current == pending.current
    assert inside.end().status_code == 204
    assert api.read(f"{other}?$select=TotalLineAmount")["TotalLineAmount"]["Value"] == 7


def test_a_recalculation_leaves_other_documents_of_its_script_to_the_commit(api: Api, world: World) -> None:
    order, _ = _order(api, world)
    _, other_line = _order(api, world)
    inside = api.begin()
    script = f"""
        const other = Domain.Crm.Sales.SalesOrderLinesRepository.getById('{id_of({"@odata.id": other_line})}');
        other.Quantity = 7;
        Domain.Crm.Sales.SalesOrdersRepository.getById('{id_of({"@odata.id": order})}').Recalculate();
        console.log(other.LineAmount.Value);
    """
    answer = inside.post("ExecuteScript", script, Content_Type="text/plain").json()
    assert answer["console"] == "1", answer
    assert inside.end().status_code == 204
    assert api.read(f"{other_line}?$select=LineAmount")["LineAmount"]["Value"] == 7
