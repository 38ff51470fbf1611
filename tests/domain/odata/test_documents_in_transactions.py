"""Documents that are edited and released within one Domain transaction (spec 03, 3.5)."""

from __future__ import annotations

from tests.domain.odata.test_writing import LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of


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
