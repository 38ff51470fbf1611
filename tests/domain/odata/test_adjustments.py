"""CreateAdjustmentDocuments: corrections of released documents as documents of their own (spec 14.6)."""

from __future__ import annotations

from typing import Any

import pytest

from foundation.guids import new_guid
from tests.domain.odata.test_writing import LINES, ORDERS, PRODUCTS, order_body
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import LINES as LINE_REPOSITORY
from tests.rules.cast import ORDERS as ORDER_REPOSITORY
from tests.rules.cast import World, fail, set_value, write_rule
from tests.support.api import Answer, Api, error_of, id_of

Rows = list[tuple[float, ...]]
CREATE = "CreateAdjustmentDocuments"
DOCUMENTS = "General_Documents_Documents"


class Order:
    """A released order: two chairs at 10.00 with line number 10, three at 20.00 with 20; 80.00 in all."""

    def __init__(self, api: Api, world: World, state: str = "Released") -> None:
        self.api = api
        body = order_body(world, {"Quantity": 2, "UnitPrice": 10}, {"Quantity": 3, "UnitPrice": 20})
        self.path = api.create(ORDERS, body)["@odata.id"]
        self.lines = [line["@odata.id"] for line in self.read()["Lines"]]
        if state != "New":
            move(api, self.path, state)

    def read(self, path: str = "", api: Api | None = None) -> Any:
        return (api or self.api).read(
            f"{path or self.path}?$select=State,TotalLineAmount,AmountToPay,AdjustmentNumber,AdjustmentUser,Void"
            "&$expand=AdjustedDocument($select=Id),Lines($orderby=LineNo;$select=LineNo,Quantity,UnitPrice,LineAmount)"
        )

    def numbers(self, path: str = "", api: Api | None = None) -> Rows:
        """Quantity, unit price and amount of each line."""
        return numbers(self.read(path, api))

    def total(self, path: str = "") -> float:
        return float(self.read(path)["TotalLineAmount"]["Value"])


def numbers(document: Any) -> Rows:
    return [
        tuple(float(line[name]["Value"]) for name in ("Quantity", "UnitPrice", "LineAmount"))
        for line in document["Lines"]
    ]


def pending(order: Order, inside: Api) -> Rows:
    """Quantity and unit price of each line in the transaction; the common model computes amounts at the commit."""
    return [each[:2] for each in order.numbers(api=inside)]


def move(api: Api, path: str, state: str) -> None:
    response = api.post(f"{path}/ChangeState", {"newState": state})
    assert response.status_code == 204, response.content


def refused(response: Answer, error: str, status: int = 500) -> str:
    """The message of a refusal."""
    found = error_of(response)
    assert (response.status_code, found["type"]) == (status, error), response.content
    return str(found["message"])


def corrected(order: Order, *, api: Api | None = None, **begin: Any) -> Api:
    """A transaction with a correction of both lines: seven chairs at 10.00, three at 18.00."""
    inside = (api or order.api).begin(**begin)
    for line, values in zip(order.lines, ({"Quantity": 7}, {"UnitPrice": 18}), strict=True):
        response = inside.patch(line, values)
        assert response.status_code == 204, response.content
    return inside


def created(inside: Api, path: str = CREATE) -> str:
    """The reference of the one adjustment that is created."""
    response = inside.post(path)
    assert response.status_code == 200, response.content
    value = response.json()["value"]
    assert value.startswith(f"{ORDERS}(")
    return str(value)


def adjusted(order: Order) -> str:
    """An adjustment of the order, in state New."""
    inside = corrected(order)
    adjustment = created(inside)
    assert inside.end(commit=False).status_code == 204
    return adjustment


@pytest.fixture
def order(api: Api, world: World) -> Order:
    return Order(api, world)


BEFORE: Rows = [(2, 10, 20), (3, 20, 60)]
DIFFERENCES: Rows = [(5, 0, 50), (0, -2, -6)]
AFTER: Rows = [(7, 10, 70), (3, 18, 54)]
PENDING: Rows = [(7, 10), (3, 18)]


@pytest.mark.parametrize("model", ["common", "frontend"])
@pytest.mark.parametrize("commit", [True, False])
def test_the_sequence_of_clients_of_the_reference(order: Order, model: str, commit: bool) -> None:
    inside = corrected(order, model=model)
    assert pending(order, inside) == PENDING
    adjustment = created(inside)
    assert order.numbers(api=inside) == BEFORE
    assert inside.end(commit=commit).status_code == 204
    assert order.numbers() == BEFORE
    made = order.read(adjustment)
    assert (made["State"], made["AdjustmentNumber"]) == ("New", 1)
    assert id_of(made["AdjustedDocument"]) == id_of({"@odata.id": order.path})
    assert [line["LineNo"] for line in made["Lines"]] == [10, 20]
    assert numbers(made) == DIFFERENCES
    assert order.total(adjustment) == 44
    move(order.api, adjustment, "Released")
    assert order.numbers() == AFTER
    after = order.read()
    assert (after["State"], after["TotalLineAmount"]["Value"], after["AmountToPay"]["Value"]) == ("Released", 124, 124)
    assert after["AdjustmentUser"] == "service"
    assert numbers(order.read(adjustment)) == DIFFERENCES


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_an_adjustment_released_in_a_transaction_is_applied_at_its_end(order: Order, model: str) -> None:
    adjustment = adjusted(order)
    inside = order.api.begin(model=model)
    move(inside, adjustment, "Completed")
    assert pending(order, inside) == PENDING
    assert order.numbers() == BEFORE
    assert inside.end().status_code == 204
    assert order.numbers() == AFTER
    assert order.total() == 124


@pytest.mark.parametrize("entity_set", [ORDERS, DOCUMENTS])
def test_bound_to_a_document_it_leaves_the_others_pending(api: Api, world: World, entity_set: str) -> None:
    one, two = Order(api, world), Order(api, world)
    inside = corrected(one)
    assert inside.patch(two.lines[0], {"Quantity": 9}).status_code == 204
    adjustment = created(inside, f"{entity_set}({id_of({'@odata.id': one.path})})/{CREATE}")
    assert one.numbers(adjustment) == DIFFERENCES
    assert pending(two, inside)[0] == (9, 10)
    refused(inside.end(), "DocumentLocked")
    assert two.numbers(created(inside)) == [(7, 0, 70)]
    assert inside.end().status_code == 204
    assert (one.numbers(), two.numbers()) == (BEFORE, BEFORE)


def test_unbound_it_adjusts_every_document_and_nothing_else(api: Api, world: World) -> None:
    one, two, new = Order(api, world), Order(api, world), Order(api, world, "New")
    inside = api.begin()
    for each in (one, two, new):
        assert inside.patch(each.lines[1], {"Quantity": 1}).status_code == 204
    made = inside.post(CREATE).json()["value"].split(", ")
    assert [id_of(one.read(path)["AdjustedDocument"]) for path in made] == [
        id_of({"@odata.id": each.path}) for each in (one, two)
    ]
    assert inside.end().status_code == 204
    assert [each.numbers()[1][0] for each in (one, two, new)] == [3, 3, 1]


def test_edits_that_nothing_takes_over_are_refused_at_the_commit(order: Order) -> None:
    inside = corrected(order)
    assert "Released" in refused(inside.end(), "DocumentLocked")
    created(inside)
    assert inside.end().status_code == 204
    assert order.numbers() == BEFORE


def test_outside_of_a_transaction_edits_are_refused_at_once(order: Order) -> None:
    refused(order.api.patch(order.lines[0], {"Quantity": 7}), "DocumentLocked")
    refused(order.api.post(CREATE), "TransactionRequired", 400)
    refused(order.api.post(f"{order.path}/{CREATE}"), "TransactionRequired", 400)


def test_other_edits_of_a_released_document_are_refused_at_once(order: Order, world: World) -> None:
    inside = corrected(order)
    for response in (
        inside.patch(order.lines[0], {"Notes": "x"}),
        inside.patch(order.lines[0], {"Quantity": 8, "Notes": "x"}),
        inside.patch(order.lines[0], {"LineCustomDiscountPercent": 0.1}),
        inside.patch(order.path, {"DocumentNotes": "x"}),
        inside.delete(order.lines[0]),
        inside.post(
            LINES, {"SalesOrder": {"@odata.id": order.path}, "Product@odata.bind": f"{PRODUCTS}({world.product})"}
        ),
    ):
        refused(response, "DocumentLocked")
    assert numbers(order.read(created(inside))) == DIFFERENCES


@pytest.mark.parametrize("state", ["New", "Planned", "FirmPlanned", "Completed", "Closed"])
def test_only_released_documents_are_adjusted(api: Api, world: World, state: str) -> None:
    order = Order(api, world, state)
    inside = api.begin()
    response = inside.patch(order.lines[0], {"Quantity": 7})
    assert response.status_code == (500 if state in ("Completed", "Closed") else 204)
    assert state in refused(inside.post(f"{order.path}/{CREATE}"), "AdjustedDocumentNotReleased")
    refused(inside.post(CREATE), "NothingToAdjust")


def test_a_void_document_is_not_adjusted(order: Order) -> None:
    inside = corrected(order)
    assert inside.post(f"{order.path}/MakeVoid", {"reason": "x"}).status_code == 204
    refused(inside.post(CREATE), "DocumentVoid")
    assert order.api.post(f"{order.path}/MakeVoid", {"reason": "x"}).status_code == 204
    later = order.api.begin()
    refused(later.patch(order.lines[0], {"Quantity": 7}), "DocumentVoid")
    refused(later.post(f"{order.path}/{CREATE}"), "DocumentVoid")


def test_a_document_that_goes_on_in_the_transaction_is_not_adjusted(order: Order) -> None:
    inside = corrected(order)
    move(inside, order.path, "Completed")
    assert "Completed" in refused(inside.post(CREATE), "AdjustedDocumentNotReleased")
    refused(inside.end(), "DocumentLocked")
    assert order.read()["State"] == "Released"


def test_without_corrections_there_is_nothing_to_adjust(order: Order) -> None:
    inside = order.api.begin()
    refused(inside.post(CREATE), "NothingToAdjust")
    refused(inside.post(f"{order.path}/{CREATE}"), "NothingToAdjust")
    assert inside.patch(order.lines[0], {"Quantity": 7}).status_code == 204
    assert inside.patch(order.lines[0], {"Quantity": 2}).status_code == 204
    refused(inside.post(CREATE), "NothingToAdjust")
    assert inside.end().status_code == 204
    refused(order.api.begin().post(f"{ORDERS}({new_guid()})/{CREATE}"), "EntityNotFound", 404)
    assert order.api.begin().post(CREATE, {"document": 1}).status_code == 400


def test_an_adjustment_is_not_adjusted(order: Order) -> None:
    adjustment = adjusted(order)
    move(order.api, adjustment, "Released")
    line = order.api.read(f"{adjustment}/Lines")["value"][0]["@odata.id"]
    inside = order.api.begin()
    assert inside.patch(line, {"Quantity": 1}).status_code == 204
    refused(inside.post(CREATE), "AdjustmentOfAdjustment")
    refused(inside.post(f"{adjustment}/{CREATE}"), "AdjustmentOfAdjustment")


def test_one_adjustment_at_a_time(order: Order) -> None:
    first = adjusted(order)
    inside = corrected(order)
    refused(inside.post(CREATE), "AdjustmentPending")
    assert pending(order, inside) == PENDING
    assert len(order.api.read(ORDERS)["value"]) == 2
    assert order.api.post(f"{first}/MakeVoid", {"reason": "wrong"}).status_code == 204
    second = created(inside)
    assert order.read(second)["AdjustmentNumber"] == 2
    refused(order.api.post(f"{first}/ChangeState", {"newState": "Released"}), "DocumentVoid")
    assert order.numbers() == BEFORE
    move(order.api, second, "Released")
    assert order.numbers() == AFTER
    third = corrected(order)
    refused(third.post(CREATE), "NothingToAdjust")
    assert third.patch(order.lines[0], {"Quantity": 6}).status_code == 204
    assert order.numbers(created(third)) == [(-1, 0, -10)]


def test_an_applied_adjustment_is_not_made_void(order: Order) -> None:
    adjustment = adjusted(order)
    move(order.api, adjustment, "Released")
    refused(order.api.post(f"{adjustment}/MakeVoid", {"reason": "x"}), "AdjustmentApplied")
    assert order.read(adjustment)["Void"] is False


def test_a_release_refuses_what_it_cannot_apply(order: Order, world: World) -> None:
    adjustment = adjusted(order)
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    extra = order.api.create(LINES, {"SalesOrder": {"@odata.id": adjustment}, **product, "Quantity": 1})["@odata.id"]
    refused(order.api.post(f"{adjustment}/ChangeState", {"newState": "Released"}), "AdjustmentLineUnmatched")
    assert (order.numbers(), order.read(adjustment)["State"]) == (BEFORE, "New")
    assert order.api.delete(extra).status_code == 204
    move(order.api, order.path, "Completed")
    refused(order.api.post(f"{adjustment}/ChangeState", {"newState": "Released"}), "AdjustedDocumentNotReleased")
    move(order.api, order.path, "Released")
    assert order.api.post(f"{order.path}/MakeVoid", {"reason": "x"}).status_code == 204
    refused(order.api.post(f"{adjustment}/ChangeState", {"newState": "Released"}), "DocumentVoid")


def test_lines_with_one_number_are_not_adjusted(api: Api, world: World) -> None:
    order = Order(api, world, "New")
    assert api.patch(order.lines[1], {"LineNo": 10}).status_code == 204
    move(api, order.path, "Released")
    refused(corrected(order).post(CREATE), "AdjustmentLineUnmatched")
    assert len(api.read(ORDERS)["value"]) == 1


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_new_adjustment_may_be_edited(order: Order, model: str) -> None:
    adjustment = adjusted(order)
    line = order.api.read(f"{adjustment}/Lines?$orderby=LineNo")["value"][0]["@odata.id"]
    inside = order.api.begin(model=model)
    assert inside.patch(line, {"Quantity": 1, "UnitPrice": 5}).status_code == 204
    assert inside.end().status_code == 204
    # Three at 15.00 instead of two at 10.00.
    assert order.numbers(adjustment)[0] == (1, 5, 25)
    assert order.total(adjustment) == 19
    move(order.api, adjustment, "Released")
    assert order.numbers()[0] == (3, 15, 45)


def test_a_client_may_write_an_adjustment_by_itself(order: Order, world: World) -> None:
    link = {"AdjustedDocument@odata.bind": f"{DOCUMENTS}({id_of({'@odata.id': order.path})})"}
    made = order.api.create(ORDERS, order_body(world, {"LineNo": 20, "Quantity": -1}, **link))["@odata.id"]
    assert order.numbers(made) == [(-1, 0, -20)]
    refused(order.api.post(ORDERS, order_body(world, **link)), "AdjustmentPending")
    other = Order(order.api, world, "New")
    link = {"AdjustedDocument@odata.bind": f"{DOCUMENTS}({id_of({'@odata.id': other.path})})"}
    refused(order.api.post(ORDERS, order_body(world, **link)), "AdjustedDocumentNotReleased")
    move(order.api, made, "Released")
    assert order.numbers()[1] == (2, 20, 40)


def test_another_adjustment_meanwhile_is_a_conflict(order: Order) -> None:
    late = corrected(order)
    move(order.api, adjusted(order), "Released")
    refused(late.post(CREATE), "VersionConflict", 412)
    assert len(order.api.read(ORDERS)["value"]) == 2


@pytest.mark.parametrize("bound", [True, False])
def test_it_needs_the_rights_to_update_and_to_create(order: Order, bound: bool) -> None:
    path = f"{order.path}/{CREATE}" if bound else CREATE
    for letters in ("r", "cr", "ru"):
        bob = person(f"bob{letters}")
        give_role(bob, {"*": "r", ORDER_REPOSITORY: letters, LINE_REPOSITORY: "cru"})
        inside = corrected(order, api=caller(bob))
        refused(inside.post(path), "PermissionDenied", 403)
    hidden = person("carol")
    give_role(hidden, {"*": "cru"}, {ORDER_REPOSITORY: "State ne 'Released'"}, "u")
    refused(caller(hidden).begin().patch(order.lines[0], {"Quantity": 7}), "PermissionDenied", 403)
    assert len(order.api.read(ORDERS)["value"]) == 1


def test_releasing_needs_the_right_to_update_the_adjusted_document(order: Order) -> None:
    adjustment = adjusted(order)
    number = order.api.read(f"{order.path}?$select=DocumentNo")["DocumentNo"]
    bob = person("bob")
    give_role(bob, {"*": "cru"}, {ORDER_REPOSITORY: f"DocumentNo ne '{number}'"}, "u")
    refused(caller(bob).post(f"{adjustment}/ChangeState", {"newState": "Released"}), "PermissionDenied", 403)
    eve = person("eve")
    give_role(eve, {"*": "cru"}, {ORDER_REPOSITORY: f"DocumentNo ne '{number}'"})
    refused(caller(eve).post(f"{adjustment}/ChangeState", {"newState": "Released"}), "EntityNotFound", 404)
    assert (order.numbers(), order.read(adjustment)["State"]) == (BEFORE, "New")


def test_the_change_report_takes_the_corrections_back(order: Order) -> None:
    inside = corrected(order, trackChanges=True)
    line = id_of({"@odata.id": order.lines[0]})
    assert inside.read("GetChanges")["update"][LINES][line]["Quantity"]["Value"] == 7
    created(inside)
    report = inside.read("GetChanges")
    assert report["update"][LINES][line]["Quantity"]["Value"] == 2
    assert report["insert"] == {}
    assert inside.end().status_code == 204


def test_rules_see_the_adjustment_and_what_it_changes(
    order: Order, world: World, django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(world, ORDER_REPOSITORY, ["CLIENTCOMMITTED"], actions=[set_value("ReferenceDocumentNo", "committed")])
    inside = corrected(order)
    with django_capture_on_commit_callbacks(execute=True):
        adjustment = created(inside)
    assert order.api.read(f"{adjustment}?$select=ReferenceDocumentNo")["ReferenceDocumentNo"] == "committed"
    with django_capture_on_commit_callbacks(execute=True):
        move(order.api, adjustment, "Released")
    assert order.api.read(f"{order.path}?$select=ReferenceDocumentNo")["ReferenceDocumentNo"] == "committed"


def test_a_rule_that_refuses_leaves_nothing_behind(order: Order, world: World) -> None:
    write_rule(world, LINE_REPOSITORY, ["COMMIT"], conditions=[("Quantity", "LessThan", "0")], actions=[fail("No.")])
    inside = order.api.begin()
    assert inside.patch(order.lines[0], {"Quantity": 1}).status_code == 204
    refused(inside.post(CREATE), "RuleFailed")
    assert pending(order, inside)[0] == (1, 10)
    assert len(order.api.read(ORDERS)["value"]) == 1


def test_offers_are_adjusted_alike(api: Api, world: World) -> None:
    offers = "Crm_Presales_Offers"
    body = {"Code": "OF", "TypeName": {"EN": "Offer"}, "EntityName": offers}
    kind = api.create("Systems_Documents_DocumentTypes", body)["@odata.id"]
    given = order_body(world, {"Quantity": 2, "UnitPrice": 10}, **{"DocumentType@odata.bind": kind})
    offer = api.create(offers, given)["@odata.id"]
    move(api, offer, "Released")
    (line,) = api.read(f"{offer}/Lines")["value"]
    inside = api.begin()
    assert inside.patch(line["@odata.id"], {"Quantity": 3, "UnitPrice": 9}).status_code == 204
    adjustment = inside.post(f"{offer}/{CREATE}").json()["value"]
    link = {"AdjustedDocument@odata.bind": f"{DOCUMENTS}({id_of({'@odata.id': offer})})"}
    refused(api.post(ORDERS, order_body(world, **link)), "AdjustmentKindMismatch")
    move(api, adjustment, "Released")
    (after,) = api.read(f"{offer}/Lines?$select=Quantity,UnitPrice,LineAmount")["value"]
    assert [after[name]["Value"] for name in ("Quantity", "UnitPrice", "LineAmount")] == [3, 9, 27]


def test_analytics_count_a_correction_once_and_only_after_the_release(order: Order) -> None:
    def amount() -> float:
        rows = order.api.read("Crm_Sales_SalesAnalytics?$select=LineAmount")["value"]
        return sum(float(row["LineAmount"]) for row in rows)

    adjustment = adjusted(order)
    assert amount() == 80
    move(order.api, adjustment, "Released")
    assert amount() == 124


def test_scripts_call_it_in_the_transaction(order: Order) -> None:
    inside = corrected(order)
    found = f"Domain.Crm.Sales.SalesOrdersRepository.getById('{id_of({'@odata.id': order.path})}')"
    response = inside.post("ExecuteScript", f"{found}.{CREATE}()", Content_Type="text/plain")
    assert response.status_code == 200, response.content
    assert inside.end().status_code == 204
    (made,) = order.api.read(f"{ORDERS}?$filter=AdjustedDocument ne null&$select=State")["value"]
    assert order.numbers(made["@odata.id"]) == DIFFERENCES
