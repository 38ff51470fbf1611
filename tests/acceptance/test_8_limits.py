"""8 Limits"""

from __future__ import annotations

import pytest

from tests.acceptance.caller import Caller, error_of
from tests.acceptance.licence import Licence
from tests.acceptance.objects import ORDERS, RULES, Maker, fail
from tests.acceptance.people import Browser, Person
from tests.acceptance.statements import statement


@statement("8", "The time until a licence slot frees is at most the 20 minutes of an inactive session")
def test_inactivity(anyone: Caller, licence: Licence) -> None:
    with Person.signed_in(anyone, "demo") as person, licence.changed(sessions="1"):
        refused = person.api.get(f"{ORDERS}?$top=1")
    error_of(refused, 503)
    assert int(refused.headers["Retry-After"]) <= 20 * 60


@pytest.mark.parametrize("number, valid", [(9, False), (10, True), (50, True), (51, False)])
@statement("8", "Document state numbers from 10 to 50 are valid parameters of STATECHANGING and STATECHANGED; {number}")
def test_state_numbers(make: Maker, number: int, valid: bool) -> None:
    for event in ("STATECHANGING", "STATECHANGED"):
        body = {
            "Code": f"R-{make.mark}-{event[-3:]}",
            "Name": {"EN": "x"},
            "RepositoryName": "Crm.Sales.SalesOrders",
            "IsActive": False,
            "Events": [{"EventType": event, "EventParameter": str(number)}],
            "Actions": [fail("x")],
        }
        if valid:
            make.new(RULES, body)
        else:
            error_of(make.caller.post(RULES, body), 500)


@pytest.mark.parametrize(
    "limit, source",
    [("time", "for (;;) {}"), ("memory", "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length);")],
)
@statement("8", "A script that exceeds its {limit} fails, and the error names the limit")
def test_script_limits(service: Caller, limit: str, source: str) -> None:
    error = error_of(service.script(source), 500)
    assert error["type"] == "ScriptLimitExceeded"


@statement("8", "The number of users connected at once is bounded by licences: beyond it requests are refused with 503")
def test_sessions(anyone: Caller, licence: Licence) -> None:
    with Person.signed_in(anyone, "demo") as person:
        with licence.changed(sessions="1"):
            assert error_of(person.api.get(f"{ORDERS}?$top=1"), 503)["code"] == 8
        assert Browser(anyone).get("/sys/auto-discovery").status_code == 200
