"""What operations answer in, and how a missing scope is told (spec 02, 2.6; spec 07; RFC 6750, 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client

from domain.odata.operations.catalogue import operations
from foundation.guids import new_guid
from identity.demo import seed_identity
from tests.domain.odata.test_writing import CURRENCIES, order_body
from tests.rules.cast import World
from tests.scripts.cast import make_script
from tests.support.api import Api, error_of, service_api

JSON = "application/json"
TEXT = "text/plain"


@pytest.mark.parametrize(
    "accept, media",
    [
        ("", TEXT), ("*/*", TEXT), (TEXT, TEXT), (JSON, JSON), ("text/*", TEXT), ("application/*", JSON),
        (f"{JSON}, {TEXT}, */*", TEXT), (f"{TEXT};q=0.5, {JSON}", JSON), (f"{JSON};q=0.5, {TEXT}", TEXT),
        (f"{JSON};q=0.5, */*;q=0.1", JSON), (f"{TEXT};q=0, */*", JSON), (f"{JSON};q=0, */*;q=0.1", TEXT),
        ("TEXT/PLAIN;charset=utf-8", TEXT), (f"text/html, {JSON};odata.metadata=minimal", JSON),
        ("text/html", ""), ("application/xml", ""), ("text/csv, image/*", ""), ("*/*;q=0", ""), (f"{JSON};q=0", ""),
        (f"{TEXT};q=0, {JSON};q=0, */*", ""),
    ],
)  # fmt: skip
def test_begin_transaction_answers_in_what_is_accepted(api: Api, accept: str, media: str) -> None:
    response = api.post("BeginTransaction", {}, **({"Accept": accept} if accept else {}))
    if media:
        assert response.status_code == 200, response.content
        assert response["Content-Type"].partition(";")[0] == media
    else:
        assert (response.status_code, error_of(response)["type"]) == (406, "NotAcceptable")


def answering() -> list[str]:
    """The names of the operations that have an answer."""
    return sorted({operation.name for operation in operations.all() if operation.served})


@pytest.fixture
def call_of(api: Api, world: World) -> Callable[..., Any]:
    """Calls an operation by name, with headers."""

    def call(name: str, **headers: str) -> Any:
        entity = f"{CURRENCIES}({world.currency})"
        match name:
            case "ExecuteScript":
                return api.post(name, "console.log(1)", Content_Type=TEXT, **headers)
            case "Execute":
                return api.post(f"{make_script(api, 'return 1;', Code=new_guid())}/Execute", {}, **headers)
            case "Import":
                return api.post(name, {"objects": []}, **headers)
            case "BeginTransaction":
                return api.post(name, {}, **headers)
            case "CreateCopy":
                # A currency's sign is unique, and taken over by nobody: the copy waits for one in a transaction.
                return api.begin().post(f"{entity}/CreateCopy", {}, **headers)
            case "GetAllowedCustomPropertyValues":
                return api.get(f"{entity}/{name}(customPropertyCode='x')", **headers)
            case "GetPropertyAllowedValues":
                return api.get(f"{entity}/{name}(propertyName='Name')", **headers)
            case "GetOrCreateExtensibleDataObject":
                return api.get(f"{entity}/{name}", **headers)
            case "GetAllParentDocuments":
                order = api.create("Crm_Sales_SalesOrders", order_body(world))
                return api.get(f"{order['@odata.id']}/{name}", **headers)
            case "CreateAdjustmentDocuments":
                order = api.create("Crm_Sales_SalesOrders?$expand=Lines", order_body(world, {"UnitPrice": 1}))
                api.post(f"{order['@odata.id']}/ChangeState", {"newState": "Released"})
                inside = api.begin()
                inside.patch(order["Lines"][0]["@odata.id"], {"Quantity": 2})
                return inside.post(name, {}, **headers)
            case "GetRepositoryEvents":
                return api.get(f"{name}(repositoryName='General.Products.Products')", **headers)
            case "PlanChange":
                # In a Domain transaction, which makes no table.
                inside = api.begin()
                made = inside.create("Systems_Bpm_CustomEntities", {"Name": f"Custom.Test{new_guid()[:8]}.Cars"})
                return inside.post(f"{made['@odata.id']}/{name}", {}, **headers)
            case "RunNow" | "GetRuns":
                # A job that waits for a worker is not run again.
                job = api.create("Systems_Config_Jobs", {"Name": new_guid(), "JobType": "RefreshStatistics"})
                path = f"{job['@odata.id']}/{name}"
                return api.get(path, **headers) if name == "GetRuns" else api.post(path, {}, **headers)
            case "StartRule":
                rule = {"Code": new_guid()[-16:], "Name": {"EN": "x"}, "IsActive": True, "UserStartable": True}
                rule["RepositoryName"] = "General.Currencies.Currencies"
                warning = {"ActionType": "WARNING", "Parameter1Type": "Constant", "Parameter1Value": "x"}
                api.create("Systems_Bpm_UserBusinessRules", {**rule, "Actions": [{"ActionNo": 10, **warning}]})
                return api.post(f"{entity}/{name}", {"rule": rule["Code"]}, **headers)
            case "GetChanges" | "WaitForChanges":
                inside = api.begin(trackChanges=True)
                inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
                return inside.get(name, **headers)
        return api.get(name, **headers)

    return call


@pytest.mark.parametrize("name", answering())
def test_every_operation_refuses_what_it_cannot_answer_in(call_of: Callable[..., Any], name: str) -> None:
    for accept in ("text/html", "application/xml", f"{JSON};q=0"):
        if name == "BeginTransaction" and JSON in accept:
            continue
        response = call_of(name, Accept=accept)
        assert response.status_code == 406, (accept, response.content)
        assert error_of(response)["type"] == "NotAcceptable"


@pytest.mark.parametrize("name", [name for name in answering() if name != "GetAllowedCustomPropertyValues"])
def test_every_operation_answers_in_json(call_of: Callable[..., Any], name: str) -> None:
    for accept in (JSON, "*/*", "text/html;q=0.9, application/*;q=0.1"):
        response = call_of(name, Accept=accept)
        assert response.status_code < 300, (accept, response.content)


def test_nothing_is_done_for_an_answer_that_cannot_be_made(api: Api) -> None:
    script = "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'x'}); Transaction.commit()"
    assert api.post("ExecuteScript", script, Content_Type=TEXT, Accept="text/html").status_code == 406
    assert api.get("Library_Books/$count").content == b"0"


def test_an_operation_in_a_batch_answers_in_what_its_part_accepts(api: Api) -> None:
    parts = [
        {"id": "1", "method": "GET", "url": "GetVersion", "headers": {"Accept": "text/html"}},
        {"id": "2", "method": "GET", "url": "GetVersion"},
    ]
    answers = api.post("$batch", {"requests": parts}, Accept=JSON, Prefer="continue-on-error").json()["responses"]
    assert [answer["status"] for answer in answers] == [406, 200]


# -- scopes ----------------------------------------------------------------------------------------------------------

REFUSED = 'Bearer error="insufficient_scope", scope="{0}"'


@pytest.mark.parametrize(
    "method, path, scope",
    [("POST", "ExecuteScript", "exec"), ("POST", "EndTransaction", "update"), ("PATCH", CURRENCIES, "update")],
)
def test_a_missing_scope_is_told_as_oauth_has_it(
    client: Client, api: Api, world: World, method: str, path: str, scope: str
) -> None:
    seed_identity()
    reader = service_api(client, scope="read")
    path = f"{path}({world.currency})" if path == CURRENCIES else path
    response = reader.request(method, path, {})
    assert response.status_code == 403, response.content
    assert response["WWW-Authenticate"] == REFUSED.format(scope)
    assert error_of(response)["parameters"] == [scope]


def test_a_missing_scope_in_a_batch_is_told_in_its_part(client: Client, api: Api, world: World) -> None:
    seed_identity()
    reader = service_api(client, scope="read")
    part = {"id": "1", "method": "POST", "url": "ExecuteScript", "headers": {"content-type": TEXT}, "body": "1"}
    (answer,) = reader.post("$batch", {"requests": [part]}).json()["responses"]
    assert (answer["status"], answer["headers"]["www-authenticate"]) == (403, REFUSED.format("exec"))
    body = (
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "POST ExecuteScript HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n1\r\n--b--\r\n"
    )
    mixed = reader.post("$batch", body, Content_Type="multipart/mixed;boundary=b").content.decode()
    assert f"WWW-Authenticate: {REFUSED.format('exec')}" in mixed


def test_another_refusal_asks_for_no_scope(api: Api) -> None:
    response = api.post("EndTransaction", {})
    assert "WWW-Authenticate" not in response


# -- the type of ExecuteScript's answer --------------------------------------------------------------------------------


def test_the_answer_of_a_script_has_a_type(api: Api, client: Client) -> None:
    xml = ElementTree.fromstring(api.get("$metadata").content)
    (made,) = [node for node in xml.iter() if node.get("Name") == "ExecuteScriptResult"]
    assert {node.get("Name"): node.get("Type") for node in made} == {
        "ok": "Edm.Boolean",
        "sessionId": "Edm.String",
        "transactionId": "Edm.String",
        "durationMs": "Edm.Int32",
        "console": "Edm.String",
    }
    (action,) = [node for node in xml.iter() if node.tag.endswith("Action") and node.get("Name") == "ExecuteScript"]
    assert [node.get("Type") for node in action] == ["Erp.ExecuteScriptResult"]
    document = client.get("/api/openapi.json").json()
    answer = document["components"]["schemas"]["Erp.ExecuteScriptResult"]
    assert answer["properties"]["durationMs"] == {"type": "integer", "format": "int32"}
    assert document["paths"]["/ExecuteScript"]["post"]["responses"]["200"]["content"] == {
        JSON: {"schema": {"$ref": "#/components/schemas/Erp.ExecuteScriptResult"}}
    }
