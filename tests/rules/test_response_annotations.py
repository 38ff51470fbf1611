"""What a caller is told of rules beside the answer: warnings and traces (spec 05, 5.3 and 5.5)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest

from domain.odata.invoke import importing
from domain.odata.message.response_annotations import MAX_TRACE_HEADER_BYTES, trace_header
from foundation import cache_versions
from identity.models import User
from rules import trace_log
from rules.models import RuleTrace
from rules.trace_switches import switch_trace
from tests.rules.cast import World, write_rule
from tests.rules.cast import fail as fail_action
from tests.rules.cast import warn as warn_action
from tests.support.api import Api, id_of

CURRENCIES = "General.Currencies.Currencies"
SET = "General_Currencies_Currencies"
TRACE = "erpnet.trace-rules"
DOLLAR = {"CurrencySign": "USD", "Name": "Dollar"}


@pytest.fixture
def warned(world: World) -> None:
    write_rule(world, CURRENCIES, ["CLIENTCOMMIT"], code="W", actions=[warn_action("Rates for {CurrencySign}?")])


def body_of(response: Any) -> dict[str, Any]:
    return dict(json.loads(response.content))


# --- warnings -----------------------------------------------------------------------------------------------------


def test_warnings_stand_in_the_header_and_in_the_body(api: Api, warned: None) -> None:
    response = api.post(SET, DOLLAR)
    assert response.status_code == 201
    assert response["X-Warnings"] == "Rates for USD?"
    assert body_of(response)["@erpnet.warnings"] == ["Rates for USD?"]


def test_an_answer_without_a_body_has_them_in_the_header_alone(api: Api, warned: None) -> None:
    response = api.post(SET, DOLLAR, Prefer="return=minimal")
    assert (response.status_code, response.content) == (204, b"")
    assert response["X-Warnings"] == "Rates for USD?"


def test_the_header_is_percent_encoded_and_the_body_is_not(api: Api, world: World) -> None:
    said = "Preisänderung: 10 % – Ж"
    write_rule(world, CURRENCIES, ["CLIENTCOMMIT"], code="W", actions=[warn_action(said)])
    response = api.post(SET, DOLLAR)
    assert response["X-Warnings"] == "Preis%C3%A4nderung: 10 %25 %E2%80%93 %D0%96"
    assert unquote(response["X-Warnings"]) == said
    assert body_of(response)["@erpnet.warnings"] == [said]


def test_an_answer_without_warnings_has_neither(api: Api) -> None:
    response = api.post(SET, DOLLAR)
    assert "X-Warnings" not in response
    assert "@erpnet.warnings" not in body_of(response)


def test_parts_of_a_batch_have_their_own(api: Api, warned: None) -> None:
    requests = [
        {"id": "1", "method": "POST", "url": SET, "body": DOLLAR, "atomicityGroup": "g"},
        {"id": "2", "method": "GET", "url": f"{SET}?$top=1"},
    ]
    first, second = body_of(api.post("$batch", {"requests": requests}))["responses"]
    assert first["body"]["@erpnet.warnings"] == ["Rates for USD?"]
    assert "@erpnet.warnings" not in second["body"]


# --- traces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_the_batch", [True, False])
@pytest.mark.parametrize("group", [{}, {"atomicityGroup": "g"}])
def test_parts_of_a_batch_are_traced_for_the_batch_or_for_themselves(
    api: Api, warned: None, group: dict[str, str], of_the_batch: bool
) -> None:
    own = {} if of_the_batch else {"headers": {"Prefer": TRACE}}
    requests = [{"id": "1", "method": "POST", "url": SET, "body": DOLLAR, **group, **own}]
    headers = {"Prefer": TRACE} if of_the_batch else {}
    (part,) = body_of(api.post("$batch", {"requests": requests}, **headers))["responses"]
    assert [entry["Rule"] for entry in part["body"]["@erpnet.trace"]] == ["W"]
    assert part["headers"]["preference-applied"] == TRACE


def test_an_import_of_all_objects_tells_warnings_and_traces_of_its_commits(api: Api, warned: None) -> None:
    objects = [
        {"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign, "Name": "n"} for sign in ("USD", "GBP")
    ]
    response = api.post("Import", {"transaction": "all-objects", "objects": objects}, Prefer=TRACE)
    body = body_of(response)
    assert body["@erpnet.warnings"] == ["Rates for USD?", "Rates for GBP?"]
    assert response["X-Warnings"] == "Rates for USD? | Rates for GBP?"
    assert [entry["Rule"] for entry in body["@erpnet.trace"]] == ["W", "W"]


@pytest.mark.parametrize("transaction", ["per-object", "all-objects"])
def test_a_dry_run_of_an_import_reports_warnings(api: Api, warned: None, transaction: str) -> None:
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", **DOLLAR}]
    response = api.post("Import", {"transaction": transaction, "objects": objects}, Prefer="erpnet.dry-run")
    assert body_of(response)["@erpnet.dryRun"]["warnings"] == ["Rates for USD?"]


def test_an_import_that_is_undone_tells_traces_and_no_warnings(api: Api, world: World, warned: None) -> None:
    write_rule(world, CURRENCIES, ["CLIENTCOMMIT"], code="X", actions=[fail_action("No.")])
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", **DOLLAR}]
    response = api.post("Import", {"transaction": "all-objects", "objects": objects}, Prefer=TRACE)
    assert "X-Warnings" not in response
    assert "X" in [entry["Rule"] for entry in body_of(response)["@erpnet.trace"]]


def test_the_header_has_room_for_some_warnings(api: Api, world: World) -> None:
    for number in range(10):
        write_rule(
            world, CURRENCIES, ["CLIENTCOMMIT"], code=f"W{number}", actions=[warn_action("Ж" * 50 + str(number))]
        )
    response = api.post(SET, DOLLAR)
    assert len(body_of(response)["@erpnet.warnings"]) == 10
    shown = unquote(response["X-Warnings"]).split(" | ")
    assert shown == [*body_of(response)["@erpnet.warnings"][:6], "…"]


def test_an_administrator_sees_what_rules_did(api: Api, world: World, warned: None) -> None:
    write_rule(world, CURRENCIES, ["COMMIT"], code="C", conditions=[("CurrencySign", "Equals", "GBP")])
    response = api.post(SET, DOLLAR, Prefer=f"return=representation, {TRACE}")
    assert response["Preference-Applied"] == f"return=representation, {TRACE}"
    commit, client_commit = body_of(response)["@erpnet.trace"]
    assert (commit["Rule"], commit["Event"], commit["Actions"]) == ("C", "COMMIT", [])
    assert commit["Conditions"] == [
        {
            "AttributeName": "CurrencySign",
            "ComparisonType": "Equals",
            "Actual": "USD",
            "Value": "GBP",
            "Holds": False,
        }
    ]
    assert (client_commit["Rule"], client_commit["Actions"]) == ("W", ["WARNING Rates for {CurrencySign}?"])
    assert client_commit["Milliseconds"] >= 0
    assert "X-Rule-Trace" not in response


def test_a_refusal_is_traced_too(api: Api, world: World) -> None:
    write_rule(world, CURRENCIES, ["COMMIT"], code="NO", actions=[fail_action("No dollars.")])
    response = api.post(SET, DOLLAR, Prefer=TRACE)
    assert response.status_code == 500
    body = body_of(response)
    assert body["error"]["message"] == "No dollars."
    (entry,) = body["@erpnet.trace"]
    assert (entry["Rule"], entry["Error"]) == ("NO", "No dollars.")
    # Who reads the header of what succeeds without a body reads it of what is refused, too.
    assert json.loads(response["X-Rule-Trace"]) == [entry]


def refused_post(api: Api, world: World) -> Any:
    return api.post(SET, DOLLAR, Prefer=TRACE)


def refused_commit(api: Api, world: World) -> Any:
    inside = api.begin()
    inside.create(SET, DOLLAR)
    return inside.request("POST", "EndTransaction", {"commit": True}, Prefer=TRACE)


CREATES = (
    "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'USD', Name: 'n'}); Transaction.commit();"
)


def refused_script(api: Api, world: World) -> Any:
    return api.post("ExecuteScript", CREATES, Content_Type="text/plain", Prefer=TRACE)


def refused_managed_script(api: Api, world: World) -> Any:
    body = {"Code": "S", "Name": {"EN": "s"}, "IsActive": True, "ScriptText": CREATES}
    return api.post(f"{api.create('Systems_Core_Scripts', body)['@odata.id']}/Execute", {}, Prefer=TRACE)


@pytest.mark.parametrize(
    "way", [refused_post, refused_commit, refused_script, refused_managed_script], ids=lambda way: way.__name__
)
def test_each_way_of_being_refused_is_traced(api: Api, world: World, way: Any) -> None:
    write_rule(world, CURRENCIES, ["COMMIT"], code="NO", actions=[fail_action("No dollars.")])
    response = way(api, world)
    assert response.status_code == 500
    traces = body_of(response)["@erpnet.trace"]
    assert [(entry["Rule"], entry["Error"]) for entry in traces] == [("NO", "No dollars.")]
    assert json.loads(response["X-Rule-Trace"]) == traces
    assert response["Preference-Applied"] == TRACE


@pytest.mark.parametrize("way", [refused_script, refused_managed_script], ids=lambda way: way.__name__)
def test_what_rules_told_of_a_scripts_changes_is_told(api: Api, warned: None, world: World, way: Any) -> None:
    response = way(api, world)
    assert response.status_code == 200
    assert response["X-Warnings"] == "Rates for USD?"
    assert [entry["Rule"] for entry in body_of(response)["@erpnet.trace"]] == ["W"]


def test_an_answer_without_a_body_has_the_trace_in_a_header(api: Api, warned: None) -> None:
    response = api.post(SET, DOLLAR, Prefer=f"return=minimal, {TRACE}")
    assert response.status_code == 204
    (entry,) = json.loads(response["X-Rule-Trace"])
    assert entry["Rule"] == "W"


def test_a_transaction_tells_of_each_request(api: Api, world: World, warned: None) -> None:
    inside = api.begin()
    created = inside.create(SET, DOLLAR, Prefer=TRACE)
    assert created["@erpnet.trace"] == []
    assert id_of(created)
    response = inside.request("POST", "EndTransaction", {"commit": True}, Prefer=TRACE)
    assert response.status_code == 204
    assert [entry["Rule"] for entry in json.loads(response["X-Rule-Trace"])] == ["W"]
    assert response["X-Warnings"] == "Rates for USD?"


def test_imported_objects_have_theirs(api: Api, world: World, warned: None) -> None:
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", **DOLLAR}]
    answer = body_of(api.post("Import", {"objects": objects}, Prefer=TRACE))
    (told,) = answer["objects"]
    assert told["@erpnet.message"] == "Rates for USD?"
    assert [entry["Rule"] for entry in told["@erpnet.trace"]] == ["W"]


def test_who_is_no_administrator_is_told_nothing(api: Api, warned: None) -> None:
    User.objects.update(is_admin=False)
    cache_versions.expire()
    response = api.post(SET, DOLLAR, Prefer=TRACE)
    if response.status_code == 201:
        assert "@erpnet.trace" not in body_of(response)
    assert "X-Rule-Trace" not in response
    assert TRACE not in response.get("Preference-Applied", "")


def test_the_header_has_a_bound_and_says_what_it_leaves_out() -> None:
    entries = [{"Rule": f"R{number}", "Error": "Грешка" * 20} for number in range(100)]
    header = trace_header(entries)
    assert len(header) <= MAX_TRACE_HEADER_BYTES
    assert header.isascii()
    *shown, last = json.loads(header)
    assert shown[0] == entries[0]
    assert last == {"LeftOut": 100 - len(shown)}
    assert json.loads(trace_header([])) == []


# --- the switch of a rule -----------------------------------------------------------------------------------------


def test_a_rule_s_switch_keeps_traces_whoever_sets_it_off(api: Api, world: World) -> None:
    rule_id = write_rule(world, CURRENCIES, ["COMMIT"], code="SW", actions=[fail_action("No.")])
    api.post(SET, DOLLAR)
    switch_trace(rule_id, True)
    cache_versions.expire()
    assert api.post(SET, DOLLAR).status_code == 500
    trace_log.pending.flush()
    ((at, entry),) = trace_log.newest(rule_id)
    assert at.tzinfo is not None
    assert (entry["Rule"], entry["Actions"], entry["Error"]) == ("SW", ["FAIL No."], "No.")
    switch_trace(rule_id, False)
    cache_versions.expire()
    api.post(SET, DOLLAR)
    trace_log.pending.flush()
    assert RuleTrace.objects.count() == 1


def test_of_each_rule_the_newest_stay(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_log, "MAX_ENTRIES", 3)
    one, other = "0189a1b2-0000-7000-8000-000000000001", "0189a1b2-0000-7000-8000-000000000002"
    trace_log.keep(other, {"Rule": "other"})
    for number in range(5):
        trace_log.keep(one, {"Rule": number})
    trace_log.pending.flush()
    assert [entry["Rule"] for _, entry in trace_log.newest(one)] == [4, 3, 2]
    assert len(trace_log.newest(other)) == 1


def test_an_import_of_all_objects_keeps_a_bounded_number_of_traces(
    api: Api, warned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", 2)
    monkeypatch.setattr(importing, "TRACES_KEPT", 3)
    objects = [{"@odata.type": "Erp.General_Currencies_Currency", **DOLLAR, "CurrencySign": f"U{n}"} for n in range(8)]
    answer = api.post("Import", {"transaction": "all-objects", "objects": objects}, Prefer=TRACE)
    body = body_of(answer)
    assert (body["@erpnet.result"], len(body["@erpnet.trace"])) == ("success", 3)
