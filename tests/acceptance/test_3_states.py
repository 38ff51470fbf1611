"""3 States and transitions"""

from __future__ import annotations

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.objects import ORDERS, Maker, change_state, state_of
from tests.acceptance.people import Person
from tests.acceptance.statements import statement

STATES = {10: "Planned", 20: "FirmPlanned", 30: "Released", 40: "Completed", 50: "Closed"}


@pytest.mark.parametrize("number, name", STATES.items())
@statement("3", "Document state {number} is {name}")
def test_states(make: Maker, number: int, name: str) -> None:
    order = make.order()
    answered(make.caller.post(f"{order}/ChangeState", {"newState": name}), 204)
    assert state_of(make.caller, order) == name
    assert make.caller.rows(f"{ORDERS}?$filter=Id eq {order[-37:-1]} and State eq {number}&$select=State")


@statement("3", "A document has a user status, identified by its id")
def test_user_status(make: Maker) -> None:
    order, status = make.order(), make.user_status()
    reference = f"Systems_Documents_DocumentTypeUserStatuses({status})"
    change_state(make.caller, order, "Released", userStatus={"@odata.id": reference})
    assert make.caller.read(f"{order}?$select=UserStatus")["UserStatus"] == {"@odata.id": reference}


@statement("3", "BeginTransaction opens a transaction that has a TransactionId")
def test_begin(service: Caller) -> None:
    inside = service.begin()
    assert len(inside.headers["TransactionId"]) > 16
    inside.end(commit=False)


@statement("3", "EndTransaction with commit true: the changes persist")
def test_commit(make: Maker) -> None:
    group = make.group()
    inside = make.caller.begin()
    inside.change(group, {"Notes": "pending"})
    assert inside.read(group)["Notes"] == "pending"
    assert make.caller.read(group)["Notes"] is None
    inside.end(commit=True)
    assert make.caller.read(group)["Notes"] == "pending"


@statement("3", "EndTransaction with commit false: the changes are discarded")
def test_discard(make: Maker) -> None:
    group = make.group()
    inside = make.caller.begin()
    inside.change(group, {"Notes": "pending"})
    inside.end(commit=False)
    assert make.caller.read(group)["Notes"] is None


@statement("3", "An ended transaction is no longer valid")
def test_ended(service: Caller) -> None:
    inside = service.begin()
    inside.end(commit=False)
    assert inside.headers["TransactionId"] in error_of(inside.get(f"{ORDERS}?$top=1"), 400)["message"]


def _changing(group: str, then: str) -> str:
    return f"const g = Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}'); {then}"


@pytest.mark.parametrize("call", ["rollback", "begin"])
@statement("3", "Transaction.{call}() in a script rolls back what is open")
def test_roll_back(make: Maker, call: str) -> None:
    group = make.group()
    script = _changing(group, f"g.Notes = 'x'; Transaction.{call}(); Transaction.commit();")
    make.caller.run(script)
    assert make.caller.read(group)["Notes"] is None


@statement("3", "Transaction.begin() does not nest")
def test_begin_does_not_nest(make: Maker) -> None:
    group = make.group()
    steps = "Transaction.begin(); g.Notes = 'x'; Transaction.begin(); Transaction.commit(); Transaction.commit();"
    make.caller.run(_changing(group, steps))
    assert make.caller.read(group)["Notes"] is None


@statement("3", "Transaction.commit() in a standalone script commits")
def test_script_commits(make: Maker) -> None:
    group = make.group()
    make.caller.run(_changing(group, "g.Notes = 'x'; Transaction.commit();"))
    assert make.caller.read(group)["Notes"] == "x"


@statement("3", "Without Transaction.commit() a standalone script commits nothing")
def test_script_without_commit(make: Maker) -> None:
    group = make.group()
    make.caller.run(_changing(group, "g.Notes = 'x'; console.log(g.Notes);"))
    assert make.caller.read(group)["Notes"] is None


@statement("3", "A managed script never commits by itself")
def test_managed_script_without_commit(make: Maker) -> None:
    group = make.group()
    script = make.script(_changing(group, "g.Notes = 'x'; return g.Notes;"))
    answer = answered(make.caller.post(f"{script}/Execute", {}), 200).json()
    assert answer["returnValue"] == "x"
    assert make.caller.read(group)["Notes"] is None


@statement("3", "A script's error does not commit what is pending, and does not undo an earlier explicit commit")
def test_error_after_commit(make: Maker) -> None:
    group = make.group()
    steps = "g.Notes = 'kept'; Transaction.commit(); g.Notes = 'lost'; throw new Error('stop');"
    error_of(make.caller.script(_changing(group, steps)), 500)
    assert make.caller.read(group)["Notes"] == "kept"


@statement("3", "A session closes at sign-out, which frees its licence slot")
def test_sign_out(anyone: Caller, service: Caller) -> None:
    with Person.signed_in(anyone, "demo") as person:
        caller = person.api
        caller.rows(f"{ORDERS}?$top=1")
        person.sign_out()
        assert caller.is_refused()
