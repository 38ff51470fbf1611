"""The life of documents (spec 03, 3.5): every pair of states, user statuses, immutability, voiding, numbers."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from domain.dataset.dataset import Dataset
from domain.entities.document_states import document_change_state, transition_allowed
from domain.model.registry import repositories
from foundation import errors
from foundation.enums import DOCUMENT_STATE
from tests.domain.odata.test_writing import LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, dataset, make_world, new_order
from tests.support.api import Api, error_of

STATES = tuple(DOCUMENT_STATE.members)
FORWARD = ("New", "Planned", "FirmPlanned", "Released", "Completed", "Closed")
BACK = {("Planned", "New"), ("FirmPlanned", "Planned"), ("Completed", "Released"), ("Closed", "Completed")}


def expected(old: str, new: str) -> bool:
    """The table of the specification, written down a second time."""
    if old not in FORWARD or new not in FORWARD:
        return False
    return FORWARD.index(new) > FORWARD.index(old) or (old, new) in BACK


@pytest.mark.parametrize("old", STATES)
@pytest.mark.parametrize("new", STATES)
def test_every_pair_of_states(old: str, new: str) -> None:
    assert transition_allowed(old, new) is expected(old, new)
    planning = expected(old, new) and new in ("New", "Planned")
    assert transition_allowed(old, new, planning_only=True) is planning


def test_every_pair_of_states_on_documents(world: World) -> None:
    for old in FORWARD:
        for new in FORWARD:
            ds = dataset(world.context)
            order = new_order(ds, world)
            order.values["State"] = old
            if old == new or expected(old, new):
                document_change_state(order, new)
                assert order.values["State"] == new
            else:
                with pytest.raises(errors.Refused) as caught:
                    document_change_state(order, new)
                assert caught.value.code is errors.STATE_TRANSITION


def test_the_number_is_taken_when_all_else_is_known(api: Api, world: World) -> None:
    """Its sequence stays locked until the commit ends: who creates at the same time waits."""
    with CaptureQueriesContext(connections["default"]) as captured:
        api.create(ORDERS, order_body(world))
    texts = [query["sql"] for query in captured]
    (taken,) = [number for number, text in enumerate(texts) if "domain_numbersequence" in text]
    assert [text for text in texts[:taken] if text.startswith('INSERT INTO "domain_')] == []
    # What is left: is the number free, do the references exist, the writes, and the answer.
    later = [text for text in texts[taken + 1 :] if text.startswith("SELECT")]
    assert [text.startswith(("SELECT 1 FROM", "SELECT 0,")) for text in later[:-1]] == [True] * (len(later) - 1), later


def test_each_step_is_recorded_and_stamped(api: Api, world: World) -> None:
    order = api.create(ORDERS, order_body(world))["@odata.id"]
    for state in ("Planned", "FirmPlanned", "Released", "Completed", "Released", "Completed", "Closed"):
        assert api.post(f"{order}/ChangeState", {"newState": state}).status_code == 204, state
    stored = api.read(f"{order}?$select=State,ReleaseTime,CompleteTime&$expand=StateChanges($orderby=Id)")
    assert [change["NewState"] for change in stored["StateChanges"]] == [
        "Planned", "FirmPlanned", "Released", "Completed", "Released", "Completed", "Closed",
    ]  # fmt: skip
    assert all(change["UpdateUser"] for change in stored["StateChanges"])
    assert stored["ReleaseTime"]
    assert stored["CompleteTime"]
    refused = api.post(f"{order}/ChangeState", {"newState": "Planned"})
    assert (refused.status_code, error_of(refused)["type"]) == (500, "StateTransitionNotAllowed")
    assert api.post(f"{order}/ChangeState", {"newState": "Nowhere"}).status_code == 400


def test_a_planned_document_that_is_edited_becomes_a_firm_plan(api: Api, world: World) -> None:
    order = api.create(ORDERS, order_body(world))["@odata.id"]
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    assert api.patch(order, {"DocumentNotes": "edited"}).status_code == 204
    assert api.read(f"{order}?$select=State")["State"] == "FirmPlanned"
    assert api.patch(order, {"DocumentNotes": "again"}).status_code == 204
    assert api.read(f"{order}?$select=State")["State"] == "FirmPlanned"


@pytest.mark.parametrize("edit", ["change a line", "add a line", "delete a line", "move a line in"])
def test_a_planned_document_whose_lines_are_edited_becomes_a_firm_plan(api: Api, world: World, edit: str) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    other = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    order, line = made["@odata.id"], made["Lines"][0]["@odata.id"]
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    match edit:
        case "change a line":
            response = api.patch(line, {"Notes": "fragile"})
        case "add a line":
            response = api.post(f"{order}/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})"})
        case "delete a line":
            response = api.delete(line)
        case _:
            response = api.patch(other["Lines"][0]["@odata.id"], {"SalesOrder": {"@odata.id": order}})
    assert response.status_code in (201, 204), response.content
    stored = api.read(f"{order}?$select=State,FullState&$expand=StateChanges($orderby=Id)")
    assert (stored["State"], stored["FullState"]) == ("FirmPlanned", "FirmPlanned")
    kept = [(change["NewState"], change["SystemInitiated"]) for change in stored["StateChanges"]]
    assert kept == [("Planned", False), ("FirmPlanned", True)]


def test_a_document_for_planning_only_stays_planned_when_it_is_edited(api: Api, world: World) -> None:
    ds = dataset(world.context)
    order = new_order(ds, world)
    ds.assign(order, "PlanningOnly", True)
    ds.assign(order, "State", "Planned")
    ds.commit()
    assert api.patch(f"{ORDERS}({order.id})", {"DocumentNotes": "edited"}).status_code == 204
    assert api.read(f"{ORDERS}({order.id})?$select=State")["State"] == "Planned"


@pytest.mark.parametrize("state", ["Released", "Completed", "Closed"])
def test_what_is_released_or_later_stays_as_it_is(api: Api, world: World, state: str) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1, "UnitPrice": 1}))
    order, line = made["@odata.id"], made["Lines"][0]["@odata.id"]
    assert api.post(f"{order}/ChangeState", {"newState": state}).status_code == 204
    for attempt in (
        api.patch(order, {"DocumentNotes": "x"}),
        api.patch(line, {"Quantity": 2}),
        api.delete(line),
        api.delete(order),
        api.post(f"{order}/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})"}),
    ):
        assert (attempt.status_code, error_of(attempt)["type"]) == (500, "DocumentLocked")
        assert state in error_of(attempt)["message"]
    assert api.get(f"{LINES}/$count").content == b"1"


def test_voiding_needs_a_reason_and_is_final(api: Api, world: World) -> None:
    order = api.create(ORDERS, order_body(world))["@odata.id"]
    assert error_of(api.post(f"{order}/MakeVoid", {"reason": " "}))["type"] == "VoidReasonRequired"
    assert api.post(f"{order}/MakeVoid", {"reason": "mistake"}).status_code == 204
    stored = api.read(f"{order}?$select=Void,VoidReason,VoidTime&$expand=StateChanges")
    assert (stored["Void"], stored["VoidReason"]) == (True, "mistake")
    assert [change["Void"] for change in stored["StateChanges"]] == [True]
    for attempt in (
        api.patch(order, {"DocumentNotes": "x"}),
        api.post(f"{order}/ChangeState", {"newState": "Released"}),
        api.post(f"{order}/MakeVoid", {"reason": "again"}),
        api.delete(order),
    ):
        assert (attempt.status_code, error_of(attempt)["type"]) == (500, "DocumentVoid")


def _status(ds: Dataset, world: World, name: str, state: str, **values: Any) -> str:
    document_type = ds.load("Systems.Documents.DocumentTypes", world.document_type)
    given = {"UserStatusName": {"EN": name}, "State": state, "StatusNumber": len(ds.records), **values}
    members = repositories["Systems.Documents.DocumentTypeUserStatuses"].attributes
    kept = {key: value for key, value in given.items() if key in members}
    return ds.create("Systems.Documents.DocumentTypeUserStatuses", kept, parent=document_type).id


def test_a_state_with_an_exit_status_is_left_only_from_there(api: Api, world: World, ds_of_admin: Dataset) -> None:
    waiting = _status(ds_of_admin, world, "Waiting", "Planned", IsExitStatus=False)
    agreed = _status(ds_of_admin, world, "Agreed", "Planned", IsExitStatus=True)
    shipped = _status(ds_of_admin, world, "Shipped", "Completed")
    ds_of_admin.commit()
    statuses = "Systems_Documents_DocumentTypeUserStatuses"
    order = api.create(ORDERS, order_body(world))["@odata.id"]

    def change(state: str, status: str | None = None) -> Any:
        user_status = {"@odata.id": f"{statuses}({status})"} if status else None
        return api.post(f"{order}/ChangeState", {"newState": state, "userStatus": user_status})

    assert error_of(change("Planned", shipped))["type"] == "UserStatusInvalid"
    assert change("Planned", waiting).status_code == 204
    assert error_of(change("Released"))["type"] == "ExitUserStatusRequired"
    assert change("Planned", agreed).status_code == 204
    assert change("Released").status_code == 204
    recorded = api.read(f"{order}?$expand=StateChanges($orderby=Id;$expand=UserStatus($select=UserStatusName))")
    names = [entry["UserStatus"] and entry["UserStatus"]["UserStatusName"]["EN"] for entry in recorded["StateChanges"]]
    assert names == ["Waiting", "Agreed", None]


@pytest.mark.parametrize("state", ["New", "Planned", "Released"])
def test_only_a_change_of_state_moves_the_user_status(api: Api, world: World, ds_of_admin: Dataset, state: str) -> None:
    """Set by hand it would reach documents that cannot be edited, leave no record, and pass by the exit status."""
    status = _status(ds_of_admin, world, "Waiting", "Planned")
    ds_of_admin.commit()
    given = {"UserStatus": {"@odata.id": f"Systems_Documents_DocumentTypeUserStatuses({status})"}}
    refused = api.post(ORDERS, order_body(world, **given))
    assert (refused.status_code, error_of(refused)["type"]) == (400, "ReadOnlyProperty")
    order = api.create(ORDERS, order_body(world))["@odata.id"]
    if state != "New":
        assert api.post(f"{order}/ChangeState", {"newState": state}).status_code == 204
    refused = api.patch(order, given)
    assert (refused.status_code, error_of(refused)["target"]) == (400, "UserStatus")
    assert api.read(f"{order}?$select=FullState")["FullState"] == state


@pytest.fixture
def ds_of_admin(world: World) -> Dataset:
    """A dataset of the administrator."""
    return dataset(world.context)


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gaps_under_eight_creators(fresh_process: None) -> None:
    world = make_world()
    failures: list[BaseException] = []

    def create(creator: int) -> None:
        try:
            for turn in range(5):
                while True:
                    ds = dataset(world.context)
                    order = new_order(ds, world)
                    # Every third one fails late, with its number taken: the number must be given again.
                    fails = (creator + turn) % 3 == 0
                    if fails:
                        ds.defer_write("outbox", _refuse)
                    try:
                        ds.commit()
                    except errors.Unavailable:
                        continue  # the database was busy: try again, as the answer 503 asks to
                    except errors.Refused:
                        assert fails
                        ds.deferred.replace_writes({})
                        ds.discard()
                        del order
                    break
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    numbers = sorted(int(no) for no in repositories["Crm.Sales.SalesOrders"].model._default_manager.values_list(
        "document_no", flat=True))  # fmt: skip
    failed = sum((creator + turn) % 3 == 0 for creator in range(8) for turn in range(5))
    assert numbers == list(range(1, 40 - failed + 1))


def _refuse() -> None:
    raise errors.Refused(errors.VALIDATION_FAILED, "no")
