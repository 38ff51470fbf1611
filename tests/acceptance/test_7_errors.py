"""7 Errors"""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.acceptance.caller import Caller, error_of
from tests.acceptance.licence import Licence
from tests.acceptance.objects import GROUPS, ORDERS, Maker, change_state, condition, fail, order, state_of
from tests.acceptance.people import DUAL, Person, token_request
from tests.acceptance.statements import statement


class TestBody:
    @pytest.fixture(scope="class")
    @classmethod
    def duplicate(cls, service: Caller) -> dict[str, Any]:
        (known,) = service.rows(f"{GROUPS}?$top=1&$select=Code")
        return error_of(service.post(GROUPS, {"Code": known["Code"], "Name": {"EN": "x"}}), 500)

    @pytest.mark.parametrize(
        "name, kind", [("message", "a string"), ("code", "an integer"), ("type", "a string"), ("info", "a string")]
    )
    @statement("7.1", "{name} of an error is {kind} and always there")
    def test_always(self, service: Caller, duplicate: dict[str, Any], name: str, kind: str) -> None:
        for error in (duplicate, error_of(service.get("Nonsense"), 400), error_of(service.get("Nonsense(1)"), 400)):
            assert type(error[name]) is (int if kind == "an integer" else str)

    @statement("7.1", "message is for people and localized by the language that the caller accepts")
    def test_localized(self, service: Caller) -> None:
        texts = {
            language: error_of(service.get("Nonsense", Accept_Language=language), 400)["message"]
            for language in ("en", "bg", "de")
        }
        assert len(set(texts.values())) == 3

    @statement("7.1", "code and type are the same in every language")
    def test_stable(self, service: Caller) -> None:
        found = {
            (error["code"], error["type"])
            for error in (error_of(service.get("Nonsense", Accept_Language=name), 400) for name in ("en", "bg", "de"))
        }
        assert len(found) == 1

    @statement("7.1", "messageFormat is a template with the placeholders {{0}}, {{1}}, … where values are inserted")
    @pytest.mark.parametrize("once", [True])
    def test_format(self, duplicate: dict[str, Any], once: bool) -> None:
        assert "{0}" in duplicate["messageFormat"]

    @statement("7.1", "parameters is an array of strings, the values of messageFormat")
    def test_parameters(self, duplicate: dict[str, Any]) -> None:
        assert all(type(value) is str for value in duplicate["parameters"])
        assert duplicate["messageFormat"].format(*duplicate["parameters"]) == duplicate["message"]

    @statement("7.1", "messageFormat and parameters are left out where no values are inserted")
    def test_left_out(self, service: Caller) -> None:
        error = error_of(service.script(""), 400)
        assert not {"messageFormat", "parameters"} & set(error)

    @statement("7.1", "info holds no stack trace outside of development")
    def test_no_stack_trace(self, duplicate: dict[str, Any]) -> None:
        assert "Traceback" not in duplicate["info"]
        assert ".py" not in duplicate["info"]


class TestStatus:
    @statement("7.2", "A duplicate value in a unique index is 500 with code 2129, messageFormat and parameters")
    def test_duplicate(self, make: Maker) -> None:
        make.group()
        body = {"Code": f"G-{make.mark}", "Name": {"EN": "again"}}
        error = error_of(make.caller.post(GROUPS, body), 500)
        assert error["code"] == 2129
        assert error["messageFormat"]
        assert f"G-{make.mark}" in error["parameters"]

    @statement("7.2", "The same request fails again, in the same way")
    def test_again(self, make: Maker) -> None:
        make.group()
        body = {"Code": f"G-{make.mark}", "Name": {"EN": "again"}}
        first, second = (error_of(make.caller.post(GROUPS, body), 500) for _ in range(2))
        assert {**first, "info": ""} == {**second, "info": ""}

    @statement("7.2", "A rate limit that is exceeded is 429 with the error body and Retry-After")
    def test_rate_limit(self, make: Maker, anyone: Caller) -> None:
        (known,) = make.caller.rows(f"Systems_Security_TrustedApplications?$filter=ApplicationUri eq '{DUAL}'")
        uri = f"limited-{make.mark}"
        make.new(
            "Systems_Security_TrustedApplications",
            {
                "ApplicationUri": uri,
                "Name": uri,
                "ApplicationSecretHash": "T/AGymuI51LwjLeIFxRQXOs9IHnupDKs/ajhWODR2C4=",
                "SystemUserAllowed": True,
                "SystemUser": known["SystemUser"],
                "Scope": "read",
                "RateLimitPerMinute": 1,
            },
        )
        form = {"grant_type": "client_credentials", "client_id": uri}
        caller = anyone.with_token(token_request(anyone, **form).json()["access_token"])
        answers = [caller.get("") for _ in range(4)]
        refused = next(answer for answer in answers if answer.status_code == 429)
        error_of(refused, 429)
        assert 1 <= int(refused.headers["Retry-After"]) <= 60


class TestNoLicence:
    @pytest.fixture(scope="class")
    @classmethod
    def person(cls, anyone: Caller) -> Any:
        with Person.signed_in(anyone, "demo") as person:
            yield person

    @pytest.fixture(scope="class")
    @classmethod
    def refused(cls, person: Person, licence: Licence) -> requests.Response:
        """A write by somebody for whom no slot is left."""
        with licence.changed(sessions="1"):
            return person.api.post(ORDERS, order(DocumentNotes="without a licence"))

    @statement("7.3", "Without a licence the response is 503")
    def test_status(self, refused: requests.Response) -> None:
        error_of(refused, 503)

    @statement("7.3", "Its Retry-After gives seconds, from 1 to the 20 minutes of an inactive session")
    def test_retry_after(self, refused: requests.Response) -> None:
        assert refused.headers["Retry-After"].isdigit()
        assert 1 <= int(refused.headers["Retry-After"]) <= 1200

    @statement("7.3", "Its Content-Type is application/json")
    def test_content_type(self, refused: requests.Response) -> None:
        assert refused.headers["Content-Type"].partition(";")[0] == "application/json"

    @statement("7.3", "Its Cache-Control is no-store")
    def test_cache_control(self, refused: requests.Response) -> None:
        assert refused.headers["Cache-Control"] == "no-store"

    @statement("7.3", "Its error has code 8")
    def test_code(self, refused: requests.Response) -> None:
        assert error_of(refused, 503)["code"] == 8

    @statement("7.3", "Nothing was written")
    def test_nothing_written(self, refused: requests.Response, service: Caller) -> None:
        assert refused.status_code == 503
        assert not service.rows(f"{ORDERS}?$filter=DocumentNotes eq 'without a licence'&$select=DocumentNo")

    @statement("7.3", "A repeated request is refused again while no licence is free, and succeeds once one is")
    def test_repeated(self, person: Person, licence: Licence) -> None:
        with licence.changed(sessions="1"):
            for _ in range(2):
                assert error_of(person.api.get(f"{ORDERS}?$top=1"), 503)["code"] == 8
        assert person.api.rows(f"{ORDERS}?$top=1")


class TestScriptsAndRules:
    @pytest.mark.parametrize("source", ["", "throw new Error('stop');", "for (;;) {}"])
    @statement("7.4", "ExecuteScript that fails answers an OData error and commits nothing pending")
    def test_script(self, make: Maker, source: str) -> None:
        group = make.group()
        change = f"Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}').Notes = 'x';"
        error_of(make.caller.script(change + source if source else ""), 400, 500)
        assert make.caller.read(group)["Notes"] is None

    @statement("7.4", "A FAIL action raises an error with its constant message and cancels the operation")
    def test_fail(self, make: Maker) -> None:
        reference = make.order(DocumentNotes=make.mark)
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.rule("Crm.Sales.SalesOrders", "STATECHANGING", fail("no"), parameter="RELEASED", conditions=conditions)
        refused = make.caller.post(f"{reference}/ChangeState", {"newState": "Released"})
        assert error_of(refused, 500)["message"] == "no"
        assert state_of(make.caller, reference) == "New"
        change_state(make.caller, reference, "Planned")
