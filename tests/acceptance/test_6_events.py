"""6 Events"""

from __future__ import annotations

import pytest

from tests.acceptance.caller import error_of, id_of
from tests.acceptance.objects import ORDERS, Maker, change_state, condition, fail, order, state_of, webhook
from tests.acceptance.receiving import Hooks
from tests.acceptance.statements import statement
from tests.support.receiver import ReceivedRequest

ORDER_RULES, LINE_RULES = "Crm.Sales.SalesOrders", "Crm.Sales.SalesOrderLines"
GROUP_RULES = "General.Products.ProductGroups"


class TestStateChanging:
    @pytest.fixture
    def status(self, make: Maker) -> str:
        """The id of a user status that the rule's first condition asks for; the second asks for an empty property."""
        status, code = make.user_status(), make.text_property(ORDERS)
        conditions = [condition("$ToUserStatusId", "Equals", status), condition(f"@{code}", "IsNull", number=20)]
        make.rule(ORDER_RULES, "STATECHANGING", fail(make.mark), parameter="RELEASED", conditions=conditions)
        return status

    @staticmethod
    def parameters(status: str) -> dict[str, object]:
        return {"userStatus": {"@odata.id": f"Systems_Documents_DocumentTypeUserStatuses({status})"}}

    @statement("6.1", "When a STATECHANGING rule's conditions hold, FAIL cancels the state change with its message")
    def test_cancelled(self, make: Maker, status: str) -> None:
        reference = make.order()
        body = {"newState": "Released", **self.parameters(status)}
        assert error_of(make.caller.post(f"{reference}/ChangeState", body), 500)["message"] == make.mark
        assert state_of(make.caller, reference) == "New"

    @statement("6.1", "When the first condition does not hold, the state changes")
    def test_other_status(self, make: Maker, status: str) -> None:
        reference = make.order()
        change_state(make.caller, reference, "Released")
        assert state_of(make.caller, reference) == "Released"

    @statement("6.1", "When the custom property has a value, the state changes")
    def test_property_given(self, make: Maker, status: str) -> None:
        reference = make.order(**{f"CustomProperty_p{make.mark}": "given"})
        change_state(make.caller, reference, "Released", **self.parameters(status))
        assert state_of(make.caller, reference) == "Released"

    @statement("6.1", "The rule is not asked for another state than its parameter")
    def test_other_state(self, make: Maker, status: str) -> None:
        reference = make.order()
        change_state(make.caller, reference, "FirmPlanned")
        assert state_of(make.caller, reference) == "FirmPlanned"


@statement("6.1", "A rule ATTRIBUTECHANGING of lines, $NewValue Greater_Than a decimal, rejects the value")
def test_attribute_changing(make: Maker) -> None:
    line = make.line_of(make.order())
    make.rule(
        LINE_RULES,
        "ATTRIBUTECHANGING",
        fail(make.mark),
        parameter="LineCustomDiscountPercent",
        conditions=[condition("$NewValue", "Greater_Than", "0.25")],
    )
    refused = make.caller.patch(line, {"LineCustomDiscountPercent": 0.26})
    assert error_of(refused, 500)["message"] == make.mark
    make.caller.change(line, {"LineCustomDiscountPercent": 0.25})
    assert make.caller.read(line)["LineCustomDiscountPercent"] == 0.25


class TestWebhooks:
    @pytest.fixture
    def path(self, make: Maker) -> str:
        return f"/events/{make.mark}"

    @pytest.fixture
    def template(self, make: Maker, hooks: Hooks, path: str) -> str:
        """The code of a template and rule for orders whose notes are the test's mark."""
        code = make.webhook(
            ORDER_RULES,
            f"{hooks.url}{path}/{{Id}}",
            Headers=f"User-Agent: Acceptance/1.0\nX-Auth: {make.mark}\nContent-Type: application/json",
            RetryLogic="Retry",
            Body='{{"Id": "{Id}", "Number": "{DocumentNo}", "Date": "{DocumentDate}", "Subject": "{DocumentNotes}", '
            '"State": "{State}"}}',
        )
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.rule(ORDER_RULES, "AGGREGATECLIENTCOMMIT", webhook(code), conditions=conditions)
        return code

    @pytest.fixture
    def sent(self, make: Maker, hooks: Hooks, path: str, template: str) -> ReceivedRequest:
        make.order(DocumentNotes=make.mark)
        return hooks.wait(path)[0]

    @statement("6.2", "A commit in the aggregate sends one HTTP POST to the template's interpolated URL")
    def test_post(self, make: Maker, hooks: Hooks, path: str, sent: ReceivedRequest) -> None:
        (found,) = make.caller.rows(f"{ORDERS}?$filter=DocumentNotes eq '{make.mark}'&$select=DocumentNo")
        assert (sent.method, sent.path) == ("POST", f"{path}/{id_of(found)}")
        assert len(hooks.at(path)) == 1

    @statement("6.2", "The message has the Host of the URL, and the template's headers")
    def test_headers(self, make: Maker, hooks: Hooks, sent: ReceivedRequest) -> None:
        assert sent.headers["Host"] == hooks.url.removeprefix("http://")
        assert sent.headers["User-Agent"] == "Acceptance/1.0"
        assert sent.headers["X-Auth"] == make.mark
        assert sent.headers["Content-Type"] == "application/json"

    @statement("6.2", "Content-Length is the length of the body in bytes")
    def test_content_length(self, sent: ReceivedRequest) -> None:
        assert sent.headers["Content-Length"] == str(len(sent.body))
        assert "Transfer-Encoding" not in sent.headers

    @statement("6.2", "The body is the interpolated template: JSON of Id, Number, Date, Subject and State, strings")
    def test_body(self, make: Maker, sent: ReceivedRequest) -> None:
        names = "DocumentNo,DocumentDate,State"
        (found,) = make.caller.rows(f"{ORDERS}?$filter=DocumentNotes eq '{make.mark}'&$select={names}")
        assert sent.json() == {
            "Id": id_of(found),
            "Number": found["DocumentNo"],
            "Date": found["DocumentDate"],
            "Subject": make.mark,
            "State": found["State"],
        }

    @statement("6.2", "A commit of a line in the aggregate sends, too")
    def test_line(self, make: Maker, hooks: Hooks, path: str, sent: ReceivedRequest) -> None:
        line = make.line_of(f"{ORDERS}({sent.json()['Id']})")
        make.caller.change(line, {"Notes": "changed"})
        assert hooks.wait(path, 2)[1].json() == sent.json()

    @statement("6.2", "A commit of an object for which the conditions do not hold sends nothing")
    def test_conditions(self, make: Maker, hooks: Hooks, path: str, template: str) -> None:
        make.order(DocumentNotes="another")
        make.order(DocumentNotes=make.mark)
        hooks.wait(path)
        assert len(hooks.at(path)) == 1

    @statement("6.2", "A failed delivery is sent again, up to 3 times")
    def test_retried(self, make: Maker, hooks: Hooks, path: str, template: str) -> None:
        hooks.answer(path, [500])
        make.order(DocumentNotes=make.mark)
        first, second = hooks.wait(path, 2)
        assert first.body == second.body

    @statement("6.2", "What is rolled back sends nothing")
    def test_rolled_back(self, make: Maker, hooks: Hooks, path: str, template: str) -> None:
        inside = make.caller.begin()
        inside.create(ORDERS, order(DocumentNotes=make.mark))
        inside.end(commit=False)
        kept = make.order(DocumentNotes=make.mark)
        (request,) = hooks.wait(path)
        assert request.path == f"{path}/{kept[-37:-1]}"
        assert len(hooks.at(path)) == 1
