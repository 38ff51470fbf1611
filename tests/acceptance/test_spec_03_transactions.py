"""spec 03 Datasets, Domain transactions, writes"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import GROUPS, LINES, ORDERS, PRODUCT, Maker, condition, fail, order
from tests.acceptance.people import Person
from tests.acceptance.statements import statement


def group(code: str, **values: Any) -> dict[str, Any]:
    """The body of a group."""
    return {"Code": code, "Name": {"EN": f"Group {code}"}, **values}


def codes(caller: Caller, mark: str) -> list[str]:
    """First letters of the codes of the groups that have the mark as their notes."""
    return [row["Code"][0] for row in caller.rows(f"{GROUPS}?$filter=Notes eq '{mark}'&$orderby=Code")]


@pytest.fixture
def inside(service: Caller) -> Iterator[Caller]:
    """A caller in a Domain transaction that is discarded when the test ends."""
    caller = service.begin(trackChanges=True)
    yield caller
    caller.post("EndTransaction", {"commit": False})


class TestBegin:
    @statement("spec 3.2", "BeginTransaction answers 200 text/plain, an id of 32 hex digits")
    def test_text(self, service: Caller) -> None:
        answer = answered(service.post("BeginTransaction", {}), 200)
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert re.fullmatch("[0-9a-f]{32}", answer.text)
        service.with_headers(TransactionId=answer.text).end(commit=False)

    @statement("spec 3.2", "BeginTransaction answers JSON with value when Accept asks for JSON only")
    def test_json(self, service: Caller) -> None:
        answer = answered(service.post("BeginTransaction", {}, Accept="application/json"), 200)
        assert answer.headers["Content-Type"].startswith("application/json")
        assert re.fullmatch("[0-9a-f]{32}", answer.json()["value"])
        service.with_headers(TransactionId=answer.json()["value"]).end(commit=False)

    @pytest.mark.parametrize(
        "body",
        [{"model": "common"}, {"model": "frontend"}, {"trackChanges": True}, {"trackChanges": False}],
    )
    @statement("spec 3.2", "BeginTransaction takes {body}")
    def test_parameters(self, service: Caller, body: dict[str, Any]) -> None:
        service.begin(**body).end(commit=False)

    @pytest.mark.parametrize("body", [{"model": "x"}, {"model": 1}, {"trackChanges": "yes"}, {"odd": 1}])
    @statement("spec 3.2", "BeginTransaction refuses {body} with a 400")
    def test_wrong(self, service: Caller, body: dict[str, Any]) -> None:
        error_of(service.post("BeginTransaction", body), 400)

    @statement("spec 3.2", "A session has at most 10 open transactions, a clear error says so")
    def test_limit(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            for _ in range(10):
                person.api.begin()
            assert "10" in error_of(person.api.post("BeginTransaction", {}), 400, 429, 500)["message"]


class TestHeader:
    @statement("spec 3.2", "The header TransactionId and the query option tr name the transaction")
    def test_both(self, inside: Caller, service: Caller, mark: str) -> None:
        id = inside.headers["TransactionId"]
        made = service.create(f"{GROUPS}?tr={id}", group(f"A{mark}"))
        assert inside.read(made["@odata.id"])["Code"] == f"A{mark}"
        assert service.read(f"{made['@odata.id']}?tr={id}")["Code"] == f"A{mark}"
        assert inside.read(f"{made['@odata.id']}?tr={id}")["Code"] == f"A{mark}"

    @statement("spec 3.2", "Header and tr that differ are a 400")
    def test_different(self, inside: Caller) -> None:
        error_of(inside.get(f"{GROUPS}?tr={'0' * 32}"), 400)

    @statement("spec 3.2", "An unknown id is the error Invalid TransactionId <id>, for reads, writes and operations")
    def test_unknown(self, service: Caller, mark: str) -> None:
        id = secrets.token_hex(16)
        other = service.with_headers(TransactionId=id)
        answers = (other.get(GROUPS), other.post(GROUPS, group(mark)), other.post("EndTransaction", {}))
        assert {error_of(answer, 400)["message"] for answer in answers} == {f"Invalid TransactionId {id}"}

    @statement("spec 3.2", "Another caller's id is the same error as an unknown one")
    def test_foreign(self, inside: Caller, demo: Person) -> None:
        id = inside.headers["TransactionId"]
        answer = demo.api.with_headers(TransactionId=id).get(GROUPS)
        unknown = demo.api.with_headers(TransactionId="0" * 32).get(GROUPS)
        error, expected = error_of(answer, 400), error_of(unknown, 400)
        assert error["message"] == f"Invalid TransactionId {id}"
        assert (error["code"], error["type"]) == (expected["code"], expected["type"])


class TestEnd:
    @pytest.mark.parametrize("body, kept", [({"commit": True}, True), ({}, True), ({"commit": False}, False)])
    @statement("spec 3.2", "EndTransaction {body} answers 204; afterwards the id is invalid")
    def test_end(self, make: Maker, body: dict[str, Any], kept: bool) -> None:
        caller = make.caller.begin()
        made = caller.create(GROUPS, group(f"A{make.mark}", Notes=make.mark))
        make.remove_later(made["@odata.id"])
        assert answered(caller.post("EndTransaction", body), 204).content == b""
        assert codes(make.caller, make.mark) == (["A"] if kept else [])
        message = error_of(caller.get(GROUPS), 400)["message"]
        assert message == f"Invalid TransactionId {caller.headers['TransactionId']}"

    @statement("spec 3.2", "A failed commit says why and leaves the transaction open with its changes")
    def test_failure(self, make: Maker) -> None:
        caller = self.refused(make)
        assert codes(make.caller, make.mark) == []
        made = caller.rows(f"{GROUPS}?$filter=Code eq 'B{make.mark}'")[0]["@odata.id"]
        caller.change(made, {"Name": {"EN": "allowed"}})
        assert codes(caller, make.mark) == ["A", "B"]
        caller.end(commit=True)
        assert codes(make.caller, make.mark) == ["A", "B"]

    @statement("spec 3.1", "A failure of one change leaves nothing of the others behind")
    def test_nothing(self, make: Maker) -> None:
        caller = self.refused(make)
        assert codes(make.caller, make.mark) == []
        caller.end(commit=False)
        assert codes(make.caller, make.mark) == []

    def refused(self, make: Maker) -> Caller:
        """A caller in a transaction whose commit a rule refused: the group A is fine, B must change its name."""
        conditions = [condition("Notes", "Equals", make.mark), condition("Code", "Equals", f"B{make.mark}", 20)]
        conditions.append(condition("Name", "Equals", f"Group B{make.mark}", 30))
        make.rule("General.Products.ProductGroups", "COMMIT", fail("refused"), conditions=conditions)
        caller = make.caller.begin()
        for letter in "AB":
            make.remove_later(caller.create(GROUPS, group(f"{letter}{make.mark}", Notes=make.mark))["@odata.id"])
        assert error_of(caller.post("EndTransaction", {}), 500)["message"] == "refused"
        return caller

    @statement("spec 3.2", "EndTransaction without a transaction is an error")
    def test_without(self, service: Caller) -> None:
        assert error_of(service.post("EndTransaction", {}), 400, 500)["target"] == "TransactionId"


class TestPending:
    @pytest.fixture
    def pending(self, make: Maker) -> Iterator[tuple[Caller, str, str]]:
        """(a caller in a transaction, the mark, a group that is there before); A and C are pending, B was D before."""
        there = make.new(GROUPS, group(f"D{make.mark}", Notes=make.mark))["@odata.id"]
        gone = make.new(GROUPS, group(f"E{make.mark}", Notes=make.mark))["@odata.id"]
        caller = make.caller.begin()
        caller.create(GROUPS, group(f"A{make.mark}", Notes=make.mark))
        caller.create(GROUPS, group(f"C{make.mark}", Notes=make.mark, **{"ParentGroup@odata.bind": there}))
        caller.change(there, {"Code": f"B{make.mark}"})
        answered(caller.delete(gone), 204)
        yield caller, make.mark, there
        caller.end(commit=False)

    @pytest.mark.parametrize(
        "what, query, expected",
        [
            ("filter and order", "$filter=Notes eq '{mark}'&$orderby=Code desc", ["C", "B", "A"]),
            ("a filter by a changed value", "$filter=Code eq 'B{mark}'", ["B"]),
            ("a filter by the old value", "$filter=Code eq 'D{mark}'", []),
            ("paging", "$filter=Notes eq '{mark}'&$orderby=Code&$top=1&$skip=1", ["B"]),
            ("search", '$search="Group C{mark}"', ["C"]),
            ("a filter by a pending parent", "$filter=ParentGroup/Code eq 'B{mark}'", ["C"]),
        ],
    )
    @statement("spec 3.2", "Reads in the transaction see pending changes as if committed: {what}")
    def test_rows(self, pending: tuple[Caller, str, str], what: str, query: str, expected: list[str]) -> None:
        caller, mark, _ = pending
        found = caller.rows(f"{GROUPS}?{query.format(mark=mark)}")
        assert [row["Code"][0] for row in found] == expected

    @statement("spec 3.2", "… also $count, $apply, $expand and by key; others do not see them")
    def test_others(self, pending: tuple[Caller, str, str], service: Caller) -> None:
        caller, mark, there = pending
        chosen = f"Notes eq '{mark}'"
        assert caller.read(f"{GROUPS}?$filter={chosen}&$count=true&$top=0")["@odata.count"] == 3
        (row,) = caller.rows(f"{GROUPS}?$apply=filter({chosen})/aggregate($count as N)")
        assert row["N"] == 3
        (child,) = caller.rows(f"{GROUPS}?$filter=Code eq 'C{mark}'&$expand=ParentGroup($select=Code)")
        assert child["ParentGroup"]["Code"] == f"B{mark}"
        assert caller.read(child["@odata.id"])["Code"] == f"C{mark}"
        assert codes(service, mark) == ["D", "E"]
        error_of(service.get(child["@odata.id"]), 404)
        assert service.read(there)["Code"] == f"D{mark}"

    @statement("spec 3.2", "A pending entity that lacks required values is not in set queries and is found by key")
    def test_incomplete(self, inside: Caller, mark: str) -> None:
        made = inside.create(GROUPS, {"Notes": mark, "Code": f"A{mark}"})["@odata.id"]
        assert codes(inside, mark) == []
        assert inside.read(made)["Notes"] == mark
        inside.change(made, {"Name": {"EN": "complete"}})
        assert codes(inside, mark) == ["A"]

    @statement("spec 3.2", "Requests at once in one transaction are serialised: each of them has its effect")
    def test_serialised(self, inside: Caller, mark: str) -> None:
        def create(number: int) -> int:
            own = Caller(inside.base_url, inside.headers)
            return own.post(GROUPS, group(f"{number}{mark}", Notes=mark)).status_code

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(create, range(8))) == {201}
        assert codes(inside, mark) == list("01234567")

    @statement("spec 3.1", "Another's commit in between is 412 with a code of its own; the transaction stays open")
    def test_conflict(self, make: Maker) -> None:
        there = make.group(Notes=make.mark)
        caller = make.caller.begin()
        caller.change(there, {"Code": f"M{make.mark}"})
        make.caller.change(there, {"Name": {"EN": "theirs"}})
        conflict = error_of(caller.post("EndTransaction", {}), 412)
        stale = make.caller.patch(there, {"Notes": "x"}, If_Match='W/"1"')
        assert conflict["code"] != error_of(stale, 412)["code"]
        assert caller.read(there)["Code"] == f"M{make.mark}"
        caller.end(commit=False)
        assert make.caller.read(there)["Code"] == f"G-{make.mark}"


class TestGetChanges:
    @statement("spec 3.2", "GetChanges answers insert, update, delete by set, id and attribute, and clears them")
    def test_changes(self, inside: Caller, mark: str) -> None:
        made = inside.create(GROUPS, group(f"A{mark}"))["@odata.id"]
        id = id_of({"@odata.id": made})
        inserted = inside.read("GetChanges()")["insert"][GROUPS][id]
        assert inserted["Code"] == f"A{mark}"
        assert inside.read("GetChanges()") == {}
        inside.change(made, {"Notes": "new"})
        assert inside.read("GetChanges()")["update"] == {GROUPS: {id: {"Notes": "new"}}}
        answered(inside.delete(made), 204)
        assert list(inside.read("GetChanges()")["delete"][GROUPS]) == [id]
        assert inside.read("GetChanges()") == {}

    @statement("spec 3.2", "WaitForChanges answers what has changed")
    def test_wait(self, inside: Caller, mark: str) -> None:
        made = inside.create(GROUPS, group(f"A{mark}"))
        assert list(inside.read("WaitForChanges()")["insert"][GROUPS]) == [id_of(made)]

    @pytest.mark.parametrize("name", ["GetChanges", "WaitForChanges"])
    @statement("spec 3.2", "{name} without trackChanges, or without a transaction, is an error")
    def test_untracked(self, service: Caller, name: str) -> None:
        caller = service.begin()
        assert "trackChanges" in error_of(caller.get(f"{name}()"), 400, 500)["message"]
        caller.end(commit=False)
        error_of(service.get(f"{name}()"), 400, 500)


class TestFrontend:
    @pytest.fixture
    def screen(self, service: Caller) -> Iterator[tuple[Caller, str]]:
        """(a caller in a transaction of the frontend model, a new order with one line)"""
        caller = service.begin(model="frontend", trackChanges=True)
        body = order(DocumentNo=f"F{secrets.token_hex(5)}", Lines=[{"Product@odata.bind": PRODUCT}])
        yield caller, caller.create(ORDERS, body)["@odata.id"]
        caller.post("EndTransaction", {"commit": False})

    def line(self, screen: tuple[Caller, str]) -> dict[str, Any]:
        """The order's line."""
        caller, root = screen
        (found,) = caller.rows(f"{root}/Lines")
        return found

    @statement("spec 3.2", "Frontend model: a product gives its line description, unit, quantity 1 and price at once")
    def test_product(self, screen: tuple[Caller, str], service: Caller) -> None:
        found = self.line(screen)
        assert found["ProductDescription"] == service.read(PRODUCT)["Name"]
        assert found["Quantity"] == {"Value": 1, "Unit": "pcs"}
        assert found["UnitPrice"]["Value"] > 0

    @statement("spec 3.2", "Frontend model: line amount = quantity × unit price × (1 − discount); totals follow")
    def test_amount(self, screen: tuple[Caller, str]) -> None:
        caller, root = screen
        changes: dict[str, Any] = {
            "Quantity": {"Value": 3, "Unit": "pcs"},
            "UnitPrice": {"Value": 10, "Currency": "EUR"},
            "LineStandardDiscountPercent": 0,
            "LineCustomDiscountPercent": 0.1,
        }
        caller.change(self.line(screen)["@odata.id"], changes)
        assert self.line(screen)["LineAmount"] == {"Value": 27, "Currency": "EUR"}
        found = caller.read(f"{root}?$select=TotalLineAmount,AmountToPay")
        assert found["TotalLineAmount"] == {"Value": 27, "Currency": "EUR"}

    @statement("spec 3.2", "Frontend model: dates of the header go to its lines")
    def test_dates(self, screen: tuple[Caller, str]) -> None:
        caller, root = screen
        caller.change(root, {"RequiredDeliveryDate": "2030-01-02"})
        assert self.line(screen)["RequiredDeliveryDate"] == "2030-01-02"

    @statement("spec 3.2", "Frontend model: attribute events fire for each attribute of the body")
    def test_events(self, make: Maker) -> None:
        rule = fail("changed")
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule("General.Products.ProductGroups", "ATTRIBUTECHANGED", rule, parameter="Notes", conditions=conditions)
        caller = make.caller.begin(model="frontend")
        answer = caller.post(GROUPS, group(f"A{make.mark}", Notes=make.mark))
        caller.end(commit=False)
        assert error_of(answer, 500)["message"] == "changed"

    @statement("spec 3.2", "The same calculations fill missing values when a common transaction commits")
    def test_common(self, make: Maker) -> None:
        root = make.order(Lines=[{"Product@odata.bind": PRODUCT}])
        (found,) = make.caller.rows(f"{LINES}?$filter=SalesOrder eq '{root}'")
        assert found["UnitPrice"]["Value"] > 0
        assert found["LineAmount"] == found["UnitPrice"]


class TestScripts:
    @statement("spec 3.3", "A standalone script's changes are discarded unless it calls Transaction.commit()")
    def test_commit(self, make: Maker) -> None:
        source = "const g = Domain.General.Products.ProductGroupsRepository.createNew();"
        for letter, end in (("A", ""), ("B", "Transaction.commit();")):
            code = f"{letter}{make.mark}"
            script = f"{source} g.Code = '{code}'; g.Name = {{EN: 'x'}}; g.Notes = '{make.mark}'; {end}"
            answered(make.caller.script(script), 200)
        rows = make.caller.rows(f"{GROUPS}?$filter=Notes eq '{make.mark}'")
        for row in rows:
            make.remove_later(row["@odata.id"])
        assert [row["Code"][0] for row in rows] == ["B"]
