"""spec 03 Datasets, Domain transactions, writes: import and documents"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.objects import GROUPS, ORDER_TYPE, ORDERS, PRODUCT, Maker, change_state, order, state_of
from tests.acceptance.statements import statement

GROUP = "Erp.General_Products_ProductGroup"
STATES = ["New", "Planned", "FirmPlanned", "Released", "Completed", "Closed"]
BACK = [("Planned", "New"), ("FirmPlanned", "Planned"), ("Completed", "Released"), ("Closed", "Completed")]
FORWARD = [(one, two) for index, one in enumerate(STATES) for two in STATES[index + 1 :]]
# The exit statuses of sales orders in the demo data, which must be reached before an order moves on.
EXITS = {
    state: {"@odata.id": f"Systems_Documents_DocumentTypeUserStatuses(0187d2a0-001a-7000-8000-{number:012d})"}
    for state, number in (("FirmPlanned", 1), ("Released", 3), ("Completed", 4))
}


def at(make: Maker, state: str) -> str:
    """A new order in a state, ready to move on."""
    root = make.order()
    if state != "New":
        status = {"userStatus": EXITS[state]} if state in EXITS else {}
        change_state(make.caller, root, state, **status)
    return root


class TestStates:
    @pytest.mark.parametrize("one, two", FORWARD + BACK)
    @statement("spec 3.5", "ChangeState goes from {one} to {two}")
    def test_allowed(self, make: Maker, one: str, two: str) -> None:
        root = at(make, one)
        change_state(make.caller, root, two)
        assert state_of(make.caller, root) == two

    @pytest.mark.parametrize("one", STATES)
    @statement("spec 3.5", "From {one} ChangeState refuses every other state and those that are none")
    def test_refused(self, make: Maker, one: str) -> None:
        root = at(make, one)
        others = [two for two in STATES if two != one and (one, two) not in FORWARD + BACK]
        for two in [*others, "Adjustment"]:
            message = error_of(make.caller.post(f"{root}/ChangeState", {"newState": two}), 500)["message"]
            assert one in message
            assert two in message
        error_of(make.caller.post(f"{root}/ChangeState", {"newState": "Draft"}), 400)
        assert state_of(make.caller, root) == one

    @statement("spec 3.5", "State is read-only for PATCH and POST")
    def test_read_only(self, make: Maker) -> None:
        root = make.order()
        for answer in (make.caller.patch(root, {"State": "Planned"}), make.caller.post(ORDERS, order(State="Planned"))):
            assert "State" in error_of(answer, 400)["message"]

    @statement("spec 3.5", "ChangeState keeps a StateChanges record: state, user status, user and time")
    def test_record(self, make: Maker) -> None:
        root = make.order()
        change_state(make.caller, root, "FirmPlanned", userStatus=EXITS["FirmPlanned"])
        (found,) = make.caller.rows(f"{root}/StateChanges")
        assert found["NewState"] == "FirmPlanned"
        assert found["UserStatus"] == EXITS["FirmPlanned"]
        assert found["UpdateUser"] == "service"
        assert found["UpdateTime"].endswith("Z")

    @statement("spec 3.5", "Releasing and completing stamp ReleaseTime and CompleteTime")
    def test_times(self, make: Maker) -> None:
        root = make.order()
        path = f"{root}?$select=ReleaseTime,CompleteTime"
        assert make.caller.read(path)["ReleaseTime"] is None
        change_state(make.caller, root, "Released", userStatus=EXITS["Released"])
        assert make.caller.read(path)["ReleaseTime"].endswith("Z")
        assert make.caller.read(path)["CompleteTime"] is None
        change_state(make.caller, root, "Completed")
        assert make.caller.read(path)["CompleteTime"].endswith("Z")

    @statement("spec 3.5", "The exit status of a state must be reached before moving on; the error names it")
    def test_exit_status(self, make: Maker) -> None:
        root = make.order()
        change_state(make.caller, root, "Released")
        assert "Shipped" in error_of(make.caller.post(f"{root}/ChangeState", {"newState": "Completed"}), 500)["message"]
        change_state(make.caller, root, "Released", userStatus=EXITS["Released"])
        change_state(make.caller, root, "Completed")

    @statement("spec 3.5", "A user status belongs to a document type and a state: another state's is refused")
    def test_foreign_status(self, make: Maker) -> None:
        root = make.order()
        body = {"newState": "Planned", "userStatus": EXITS["Released"]}
        error_of(make.caller.post(f"{root}/ChangeState", body), 400, 500)
        assert state_of(make.caller, root) == "New"

    @pytest.mark.parametrize("state", ["Released", "Completed", "Closed"])
    @statement("spec 3.5", "A {state} document and its lines cannot be edited or deleted; the error names the state")
    def test_locked(self, make: Maker, state: str) -> None:
        root = at(make, state)
        line = make.line_of(root)
        answers = [
            make.caller.patch(root, {"DocumentNotes": "x"}),
            make.caller.delete(root),
            make.caller.patch(line, {"Notes": "x"}),
            make.caller.delete(line),
            make.caller.post(f"{root}/Lines", {"Product@odata.bind": PRODUCT}),
        ]
        for answer in answers:
            assert state in error_of(answer, 500)["message"]

    @pytest.mark.parametrize("state", ["New", "Planned", "FirmPlanned"])
    @statement("spec 3.5", "A {state} document is edited and deleted freely")
    def test_free(self, make: Maker, state: str) -> None:
        root = at(make, state)
        make.caller.change(root, {"DocumentNotes": "x"})
        answered(make.caller.delete(root), 204)

    @statement("spec 3.5", "Editing a Planned document makes it FirmPlanned")
    def test_firm(self, make: Maker) -> None:
        root = at(make, "Planned")
        make.caller.change(root, {"DocumentNotes": "x"})
        assert state_of(make.caller, root) == "FirmPlanned"

    @statement("spec 3.5", "MakeVoid needs a reason; a void document keeps it and cannot change any more")
    def test_void(self, make: Maker) -> None:
        root = make.order()
        error_of(make.caller.post(f"{root}/MakeVoid", {}), 400)
        error_of(make.caller.post(f"{root}/MakeVoid", {"reason": ""}), 400, 500)
        answered(make.caller.post(f"{root}/MakeVoid", {"reason": "gone"}), 204)
        found = make.caller.read(root)
        assert (found["Void"], found["VoidReason"], found["VoidUser"]) == (True, "gone", "service")
        assert found["VoidTime"].endswith("Z")
        error_of(make.caller.patch(root, {"DocumentNotes": "x"}), 500)
        error_of(make.caller.post(f"{root}/ChangeState", {"newState": "Planned"}), 500)
        error_of(make.caller.post(f"{root}/MakeVoid", {"reason": "again"}), 500)

    @statement("spec 3.5", "ChangeState commits on its own unless a transaction is given")
    def test_transaction(self, make: Maker) -> None:
        root = make.order()
        inside = make.caller.begin()
        change_state(inside, root, "Planned")
        assert (state_of(inside, root), state_of(make.caller, root)) == ("Planned", "New")
        inside.end(commit=True)
        assert state_of(make.caller, root) == "Planned"


class TestNumbers:
    @statement("spec 3.5", "Document numbers are gap-free and each is given once, also to requests at once")
    def test_concurrent(self, make: Maker) -> None:
        def create(_: int) -> dict[str, Any]:
            own = Caller(make.caller.base_url, make.caller.headers)
            return own.create(ORDERS, order(lines=0))

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(create, range(8)))
        for each in made:
            make.remove_later(each["@odata.id"])
        numbers = sorted(int(each["DocumentNo"]) for each in made)
        assert numbers == list(range(numbers[0], numbers[0] + 8))

    @statement("spec 3.5", "A refused document uses no number up")
    def test_gap(self, make: Maker) -> None:
        first = make.caller.read(make.order())["DocumentNo"]
        error_of(make.caller.post(ORDERS, order(Lines=[{"LineNo": 10}])), 500)
        assert int(make.caller.read(make.order())["DocumentNo"]) == int(first) + 1

    @statement("spec 3.5", "A number that is given is kept, and given once for a document type")
    def test_given(self, make: Maker) -> None:
        root = make.order(DocumentNo=f"N{make.mark}")
        assert make.caller.read(root)["DocumentNo"] == f"N{make.mark}"
        again = make.caller.post(ORDERS, order(DocumentNo=f"N{make.mark}"))
        assert error_of(again, 500)["code"] == 2129
        assert make.caller.read(root)["DocumentType"] == {"@odata.id": ORDER_TYPE}


def imported(caller: Caller, *objects: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The answer of an import of product groups."""
    body = {**options, "objects": [{"@odata.type": GROUP, **each} for each in objects]}
    found: dict[str, Any] = answered(caller.post("Import", body), 200).json()
    return found


class TestImport:
    @statement("spec 3.4", "Import answers results in input order: result, id and state of each object")
    def test_results(self, make: Maker) -> None:
        there = make.group()
        answer = imported(
            make.caller,
            {"Code": f"A{make.mark}", "Name": {"EN": "a"}},
            {"@erpnet.action": "merge", "Code": f"G-{make.mark}", "Notes": "merged"},
            {"@erpnet.action": "find", "Code": f"G-{make.mark}"},
            {"@erpnet.action": "delete", "Code": f"A{make.mark}"},
        )
        assert answer["@erpnet.result"] == "success"
        assert [each["@erpnet.result"] for each in answer["objects"]] == ["success"] * 4
        assert [each["@erpnet.state"] for each in answer["objects"]] == ["Added", "Modified", "Unchanged", "Deleted"]
        assert [each["@odata.id"] for each in answer["objects"][1:3]] == [there, there]
        assert make.caller.read(there)["Notes"] == "merged"

    @statement("spec 3.4", "per-object: what fails says why and the other objects are saved")
    def test_per_object(self, make: Maker) -> None:
        answer = imported(
            make.caller,
            {"Code": f"A{make.mark}", "Name": {"EN": "a"}},
            {"Nonsense": 1},
            {"Code": f"B{make.mark}", "Name": {"EN": "b"}},
        )
        one, two, three = answer["objects"]
        for each in (one, three):
            make.remove_later(each["@odata.id"])
            assert make.caller.get(each["@odata.id"]).status_code == 200
        assert (answer["@erpnet.result"], two["@erpnet.result"]) == ("fail", "fail")
        assert "Nonsense" in two["@erpnet.error"]["message"]

    @statement("spec 3.4", "all-objects: one failure and nothing is saved")
    def test_all_objects(self, make: Maker) -> None:
        answer = imported(
            make.caller, {"Code": f"A{make.mark}", "Name": {"EN": "a"}}, {"Nonsense": 1}, transaction="all-objects"
        )
        assert answer["@erpnet.result"] == "fail"
        assert make.caller.rows(f"{GROUPS}?$filter=Code eq 'A{make.mark}'") == []

    @pytest.mark.parametrize("model", ["frontend", "common", "backend"])
    @statement("spec 3.4", "Import takes the model {model}")
    def test_model(self, make: Maker, model: str) -> None:
        answer = imported(make.caller, {"Code": f"A{make.mark}", "Name": {"EN": "a"}}, model=model)
        make.remove_later(answer["objects"][0]["@odata.id"])
        assert answer["@erpnet.result"] == "success"

    @pytest.mark.parametrize("level, logged, objects", [(None, 1, 1), (2, 1, 1), (1, 1, 0), (0, 0, 0)])
    @statement("spec 3.4", "loggingLevel {level}: exchanges logged {logged}, of its one object {objects} (default 2)")
    def test_logging(self, make: Maker, level: int | None, logged: int, objects: int) -> None:
        options = {} if level is None else {"loggingLevel": level}
        answer = imported(make.caller, {"Code": f"A{make.mark}", "Name": {"EN": "a"}}, **options)
        make.remove_later(answer["objects"][0]["@odata.id"])
        assert ("data-exchange" in answer) == bool(logged)
        if logged:
            assert make.caller.get(answer["data-exchange"]).status_code == 200
            assert make.caller.count(f"{answer['data-exchange']}/Objects") == objects

    @pytest.mark.parametrize(
        "body", [{}, {"objects": {}}, {"transaction": "x", "objects": []}, {"model": "x", "objects": []}]
    )
    @statement("spec 3.4", "Import refuses {body} with a 400")
    def test_wrong(self, service: Caller, body: dict[str, Any]) -> None:
        error_of(service.post("Import", body), 400)

    @statement("spec 3.4", "A page for imports stands at /api/domain/import")
    def test_page(self, anyone: Caller) -> None:
        answer = anyone.get("/api/domain/import")
        assert answer.status_code in (200, 302)
        assert answer.headers.get("Content-Type", "text/html").startswith("text/html")
