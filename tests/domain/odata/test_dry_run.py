"""Dry runs of requests: Prefer: erpnet.dry-run (spec 12, 12.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django_q.models import OrmQ

from domain.dataset.tables.models import ChangeFeedEntry, NumberSequence
from foundation.egress import policy
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, dataset, fail, set_value, warn, write_rule
from tests.support.api import Answer, Api, error_of, id_of
from tests.support.receiver import LoopbackReceiver
from webhooks.models import WebHookDelivery

SALES_ORDERS = "Crm.Sales.SalesOrders"
DRY_RUN = "erpnet.dry-run"


def tried(api: Api, method: str, path: str, body: Any = None, **headers: str) -> tuple[Answer, dict[str, Any]]:
    """The answer to a dry run, and its report from the body or from the link."""
    answer = api.request(method, path, body, Prefer=DRY_RUN, **headers)
    assert DRY_RUN in answer.headers["Preference-Applied"], answer.content
    if "X-Dry-Run-Report" in answer.headers:
        return answer, report_at(api, answer.headers["X-Dry-Run-Report"]).json()
    report: dict[str, Any] = answer.json()["@erpnet.dryRun"]
    return answer, report


def report_at(api: Api, url: str) -> Answer:
    """The answer to a GET of a report."""
    path = url.partition("/api/")[2]
    return api.client.get(f"/api/{path}", headers={"Authorization": f"Bearer {api.token}"})


@pytest.fixture
def order(api: Api, world: World) -> str:
    """A stored order."""
    return id_of(api.create(ORDERS, order_body(world)))


def left_behind() -> tuple[int, ...]:
    """What writes leave in any case."""
    sequences = sum(NumberSequence.objects.values_list("last", flat=True))
    return sequences, ChangeFeedEntry.objects.count(), WebHookDelivery.objects.count(), OrmQ.objects.count()


# --- requests -----------------------------------------------------------------------------------------------------


def test_a_post_answers_as_the_real_one_and_stores_nothing(api: Api, world: World) -> None:
    before = left_behind()
    answer, report = tried(api, "POST", ORDERS, order_body(world))
    assert answer.status_code == 201
    assert api.get(f"{ORDERS}({id_of(answer.json())})").status_code == 404
    assert left_behind() == before
    real = api.create(ORDERS, order_body(world))
    assert answer.json()["DocumentNo"] == real["DocumentNo"]
    created = {change["set"]: change for change in report["changes"]}
    assert created[ORDERS]["operation"] == "create"
    assert created[ORDERS]["attributes"]["DocumentNo"] == {"old": None, "new": real["DocumentNo"]}
    assert report["durationMs"] > 0


def test_a_patch_tells_old_and_new_values_by_a_link(api: Api, order: str) -> None:
    answer, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A1"})
    assert (answer.status_code, answer.content) == (204, b"")
    (change,) = report["changes"]
    assert (change["set"], change["key"], change["operation"]) == (ORDERS, order, "update")
    assert change["attributes"] == {"ReferenceDocumentNo": {"old": None, "new": "A1"}}
    assert api.read(f"{ORDERS}({order})")["ReferenceDocumentNo"] is None


def test_a_delete(api: Api, order: str) -> None:
    answer, report = tried(api, "DELETE", f"{ORDERS}({order})")
    assert answer.status_code == 204
    assert {"set": ORDERS, "key": order, "operation": "delete"} in report["changes"]
    assert api.get(f"{ORDERS}({order})").status_code == 200


def test_an_action(api: Api, order: str) -> None:
    answer, report = tried(api, "POST", f"{ORDERS}({order})/ChangeState", {"newState": "Planned"})
    assert answer.status_code == 204
    changed = next(change for change in report["changes"] if change["key"] == order)
    assert changed["attributes"]["State"] == {"old": "New", "new": "Planned"}
    assert api.read(f"{ORDERS}({order})")["State"] == "New"


def test_a_get_ignores_the_preference(api: Api, order: str) -> None:
    answer = api.get(f"{ORDERS}({order})", Prefer=DRY_RUN)
    assert answer.status_code == 200
    assert DRY_RUN not in answer.headers.get("Preference-Applied", "")
    assert "@erpnet.dryRun" not in answer.json()


def test_a_refused_write_answers_its_error(api: Api, world: World) -> None:
    write_rule(world, SALES_ORDERS, ["COMMIT"], actions=[set_value("ReferenceDocumentNo", "X"), fail("Not today.")])
    answer, report = tried(api, "POST", ORDERS, order_body(world))
    assert answer.status_code == 500
    assert error_of(answer)["message"] == "Not today."
    (entry,) = report["rules"]
    assert (entry["Error"], entry["Fired"]) == ("Not today.", True)
    assert report["changes"] == []


def test_a_request_that_cannot_be_read_answers_an_empty_report(api: Api) -> None:
    answer, report = tried(api, "POST", "Nothing_There", {})
    assert answer.status_code == 400
    assert report["changes"] == []


# --- rules, webhooks, mails ---------------------------------------------------------------------------------------


def test_rules_are_told_with_their_conditions_and_warnings(api: Api, world: World, order: str) -> None:
    write_rule(
        world, SALES_ORDERS, ["COMMIT"], code="ASKED", conditions=[("ReferenceDocumentNo", "Equals", "B")],
        actions=[warn("Never")],
    )  # fmt: skip
    write_rule(
        world, SALES_ORDERS, ["COMMIT"], code="FIRED", conditions=[("ReferenceDocumentNo", "Equals", "A")],
        actions=[warn("Look at {DocumentNo}")],
    )  # fmt: skip
    answer, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"})
    by_code = {entry["Rule"]: entry for entry in report["rules"]}
    assert by_code["ASKED"]["Fired"] is False
    assert by_code["ASKED"]["Conditions"][0]["Actual"] == "A"
    assert by_code["FIRED"]["Actions"] == ["WARNING Look at {DocumentNo}"]
    assert len(report["warnings"]) == 1
    assert answer.headers["X-Warnings"] == report["warnings"][0]


def test_rules_after_the_commit_are_named_and_not_run(api: Api, world: World, order: str) -> None:
    write_rule(world, SALES_ORDERS, ["COMMITTED"], code="LATER", actions=[set_value("ReferenceDocumentNo", "Z")])
    _, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"})
    entity = f"{ORDERS}({order})"
    assert report["notRun"] == [{"kind": "rule", "rule": "LATER", "event": "COMMITTED", "entity": entity}]


def test_webhooks_are_rendered_with_secrets_masked_and_not_sent(api: Api, world: World, order: str) -> None:
    ds = dataset(world.context)
    ds.create(
        "Systems.Config.WebHooks",
        {
            "Code": "HOOK",
            "Name": {"EN": "Hook"},
            "RepositoryName": SALES_ORDERS,
            "URL": "https://example.com/in?token=secret123",
            "Headers": "Authorization: Bearer secret456",
            "Body": '{"no": "{DocumentNo}"}',
            "IsActive": True,
        },
        by_client=True,
    )
    ds.commit()
    write_rule(world, SALES_ORDERS, ["COMMIT"], actions=[("WEBHOOK", ("Constant", "HOOK"))])
    before = left_behind()
    answer, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"})
    assert answer.status_code == 204
    (request,) = report["webhooks"]
    number = api.read(f"{ORDERS}({order})")["DocumentNo"]
    assert json.loads(request["body"]) == {"no": number}
    assert (request["webHook"], request["entity"]) == ("HOOK", f"{ORDERS}({order})")
    assert "secret" not in json.dumps(report)
    assert left_behind() == before


def test_mails_are_told_and_not_sent(api: Api, world: World, order: str, mailoutbox: list[Any], settings: Any) -> None:
    settings.EMAIL_URL = "smtp://localhost"
    write_rule(
        world, SALES_ORDERS, ["COMMIT"], code="MAIL", check=False,
        actions=[("SENDMAIL", ("Constant", "a@example.com"), ("Interpolate", "{DocumentNo}"), ("Constant", "Text"))],
    )  # fmt: skip
    before = left_behind()
    _, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"})
    number = api.read(f"{ORDERS}({order})")["DocumentNo"]
    assert report["mails"] == [{"rule": "MAIL", "to": ["a@example.com"], "subject": number, "body": "Text"}]
    assert mailoutbox == []
    assert left_behind() == before


# --- scripts ------------------------------------------------------------------------------------------------------


def test_a_script_is_run_and_undone_and_its_requests_are_refused(
    api: Api, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = policy.EgressPolicy.parse(["127.0.0.1"])
    monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)
    with LoopbackReceiver().running() as receiver:
        source = f"""
            const order = Domain.Crm.Sales.SalesOrdersRepository.getById('{order}');
            order.ReferenceDocumentNo = 'S1';
            Transaction.commit();
            const answer = Action.http.get('{receiver.url}/asked');
            console.log(answer.isSuccess, answer.errorMessage);
        """
        answer, report = tried(api, "POST", "ExecuteScript", source, Content_Type="text/plain")
        assert answer.status_code == 200, answer.content
        assert "a dry run sends nothing" in answer.json()["console"]
        assert receiver.requests == []
    (change,) = report["changes"]
    assert change["attributes"]["ReferenceDocumentNo"]["new"] == "S1"
    assert [entry["kind"] for entry in report["notRun"]] == ["http"]
    assert api.read(f"{ORDERS}({order})")["ReferenceDocumentNo"] is None


# --- batches, imports, transactions -------------------------------------------------------------------------------


def test_a_batch_is_one_dry_run(api: Api, world: World) -> None:
    requests = [
        {"id": "1", "method": "POST", "url": ORDERS, "body": order_body(world)},
        {"id": "2", "method": "PATCH", "url": "$1", "body": {"ReferenceDocumentNo": "B"}, "dependsOn": ["1"]},
        {"id": "3", "method": "GET", "url": "$1", "dependsOn": ["2"]},
        {"id": "4", "method": "PATCH", "url": f"{PRODUCTS}(0189a1b2-0000-7000-8000-00000000000a)", "body": {}},
    ]
    answer, report = tried(api, "POST", "$batch", {"requests": requests}, OData_MaxVersion="4.01")
    responses = answer.json()["responses"]
    assert [response["status"] for response in responses[:3]] == [201, 204, 200]
    assert responses[2]["body"]["ReferenceDocumentNo"] == "B"
    assert all("@erpnet.dryRun" not in (response.get("body") or {}) for response in responses)
    operations = [(change["set"], change["operation"]) for change in report["changes"]]
    assert operations.count((ORDERS, "create")) == 1
    assert operations.count((ORDERS, "update")) == 1
    assert api.read(f"{ORDERS}?$filter=ReferenceDocumentNo eq 'B'")["value"] == []


def test_a_single_part_of_a_batch_may_be_a_dry_run(api: Api, world: World) -> None:
    part = {"id": "1", "method": "POST", "url": ORDERS, "headers": {"Prefer": DRY_RUN}, "body": order_body(world)}
    answer = api.post("$batch", {"requests": [part, {**part, "id": "2", "headers": {}}]})
    first, second = answer.json()["responses"]
    assert first["body"]["DocumentNo"] == second["body"]["DocumentNo"]
    assert first["body"]["@erpnet.dryRun"]["changes"]
    assert len(api.read(ORDERS)["value"]) == 1


def test_a_request_of_a_group_is_no_dry_run_by_itself(api: Api, world: World) -> None:
    part = {"method": "POST", "url": ORDERS, "atomicityGroup": "g", "body": order_body(world)}
    parts = [{**part, "id": "1"}, {**part, "id": "2", "headers": {"Prefer": DRY_RUN}}]
    answer = api.post("$batch", {"requests": parts})
    assert {response["status"] for response in answer.json()["responses"]} <= {400, 424}
    assert api.read(ORDERS)["value"] == []


@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
def test_an_import(api: Api, world: World, mode: str) -> None:
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign, "Name": sign} for sign in "AB"]
    objects[1] |= {"CurrencySign": "USD"}
    objects[0] |= {"CurrencySign": "GBP"}
    answer, report = tried(api, "POST", "Import", {"transaction": mode, "objects": objects})
    assert [each["@erpnet.state"] for each in answer.json()["objects"]] == ["Added", "Added"]
    assert sum(change["set"] == CURRENCIES for change in report["changes"]) == 2
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_inside_a_domain_transaction_it_tells_what_the_request_changes(api: Api, order: str) -> None:
    inside = api.begin()
    assert inside.patch(f"{ORDERS}({order})", {"ReferenceDocumentNo": "T1"}).status_code == 204
    answer, report = tried(inside, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "T2"})
    assert answer.status_code == 204
    assert report["changes"][0]["attributes"]["ReferenceDocumentNo"]["new"] == "T2"
    assert inside.read(f"{ORDERS}({order})")["ReferenceDocumentNo"] == "T1"


def test_the_end_of_a_domain_transaction_is_tried_without_ending_it(api: Api, world: World, order: str) -> None:
    write_rule(world, SALES_ORDERS, ["COMMIT"], code="END", actions=[warn("Ends")])
    inside = api.begin()
    assert inside.patch(f"{ORDERS}({order})", {"ReferenceDocumentNo": "T1"}).status_code == 204
    answer, report = tried(inside, "POST", "EndTransaction", {"commit": True})
    assert answer.status_code == 204
    assert report["changes"][0]["attributes"]["ReferenceDocumentNo"] == {"old": None, "new": "T1"}
    assert [entry["Rule"] for entry in report["rules"]] == ["END"]
    assert api.read(f"{ORDERS}({order})")["ReferenceDocumentNo"] is None
    assert inside.end().status_code == 204
    assert api.read(f"{ORDERS}({order})")["ReferenceDocumentNo"] == "T1"


def test_what_a_dry_run_has_defined_is_unknown_afterwards(api: Api, world: World, order: str) -> None:
    hook = {"Code": "NEWHOOK", "Name": {"EN": "Hook"}, "RepositoryName": SALES_ORDERS, "URL": "https://example.com/in",
            "Body": "{DocumentNo}", "IsActive": True}  # fmt: skip
    rule = {
        "Code": "USES", "Name": {"EN": "Uses it"}, "RepositoryName": SALES_ORDERS, "IsActive": True,
        "Events": [{"EventType": "COMMIT"}],
        "Actions": [{"ActionNo": 10, "ActionType": "WEBHOOK", "Parameter1Type": "Constant",
                     "Parameter1Value": "NEWHOOK"}],
    }  # fmt: skip
    requests = [
        {"id": "1", "method": "POST", "url": "Systems_Config_WebHooks", "body": hook},
        {"id": "2", "method": "POST", "url": "Systems_Bpm_UserBusinessRules", "body": rule},
        {"id": "3", "method": "PATCH", "url": f"{ORDERS}({order})", "body": {"ReferenceDocumentNo": "A"}},
    ]
    answer, report = tried(api, "POST", "$batch", {"requests": requests})
    assert [response["status"] for response in answer.json()["responses"]] == [201, 201, 204]
    assert [request["webHook"] for request in report["webhooks"]] == ["NEWHOOK"]
    assert error_of(api.post("Systems_Bpm_UserBusinessRules", rule))["type"] == "RuleInvalid"
    _, report = tried(api, "PATCH", f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"})
    assert (report["rules"], report["webhooks"]) == ([], [])


# --- kept reports -------------------------------------------------------------------------------------------------


def test_a_kept_report_is_for_its_caller_only(api: Api, order: str) -> None:
    answer = api.patch(f"{ORDERS}({order})", {"ReferenceDocumentNo": "A"}, Prefer=DRY_RUN)
    link = answer.headers["X-Dry-Run-Report"]
    assert report_at(api, link).json()["changes"][0]["key"] == order
    for wrong in (link[:-1] + ("0" if link[-1] != "0" else "1"), f"{link}0", link.rpartition("-")[0], f"{link}-x"):
        assert report_at(api, wrong).status_code == 404
    assert api.client.get("/api/" + link.partition("/api/")[2]).status_code == 401


def test_a_large_report_is_cut(api: Api, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.dataset.commit.entity_changes.dry_runs.MAX_ENTRIES", 2)
    objects = [
        {"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign, "Name": sign}
        for sign in ("USD", "GBP", "BGN", "CHF")
    ]
    answer, report = tried(api, "POST", "Import", {"objects": objects, "loggingLevel": 0})
    assert len(answer.json()["objects"]) == 4
    assert len(report["changes"]) == 2
    assert report["omitted"] == {"changes": 2}
