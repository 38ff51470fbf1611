"""Import through HTTP (spec 03, 3.4)."""

from __future__ import annotations

import io
import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.odata.message.json_stream import JsonObjectFile
from foundation import execution_slot
from foundation.errors import BadRequest
from tests.domain.odata.test_writing import CURRENCIES, PRODUCTS
from tests.rules.cast import World
from tests.support.api import Api, error_of

CURRENCY = "Erp.General_Currencies_Currency"


def run(api: Api, *objects: Any, **options: Any) -> dict[str, Any]:
    """The answer to an import."""
    response = api.post("Import", {**options, "objects": list(objects)})
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    return body


def currency(sign: str, **values: Any) -> dict[str, Any]:
    """An object to import."""
    return {"@odata.type": CURRENCY, "CurrencySign": sign, "Name": sign, **values}


def test_each_object_stands_for_itself(api: Api) -> None:
    body = run(api, currency("USD"), {"@odata.type": CURRENCY, "CurrencySign": "X"}, currency("GBP"))
    assert body["@erpnet.result"] == "fail"
    assert [answer["@erpnet.result"] for answer in body["objects"]] == ["success", "fail", "success"]
    assert body["objects"][0]["@erpnet.state"] == "Added"
    assert body["objects"][1]["@erpnet.error"]["type"] == "RequiredAttributeMissing"
    assert api.get(f"{CURRENCIES}/$count").content == b"3"


def test_all_objects_together_are_all_or_nothing(api: Api) -> None:
    body = run(api, currency("USD"), {"@odata.type": CURRENCY, "CurrencySign": "X"}, transaction="all-objects")
    assert body["@erpnet.result"] == "fail"
    assert api.get(f"{CURRENCIES}/$count").content == b"1"
    assert run(api, currency("USD"), currency("GBP"), transaction="all-objects")["@erpnet.result"] == "success"
    assert api.get(f"{CURRENCIES}/$count").content == b"3"


@pytest.mark.parametrize(
    "second, told",
    [
        ({"Nope": 1}, ["Undone", "UnknownProperty", "Undone"]),
        # Found only when both are committed, and then the fault of either.
        ({"CurrencySign": "USD", "@erpnet.action": "create"}, ["DuplicateValue", "DuplicateValue", "DuplicateValue"]),
    ],
)
def test_a_failure_of_all_objects_stands_where_the_object_stood(
    api: Api, second: dict[str, Any], told: list[str]
) -> None:
    body = run(api, currency("USD"), {**currency("GBP"), **second}, currency("BGN"), transaction="all-objects")
    answers = body["objects"]
    assert [answer.get("@erpnet.error", {"type": "Undone"})["type"] for answer in answers] == told
    assert all(answer["@erpnet.result"] == "fail" and answer["@odata.id"] is None for answer in answers)
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_what_is_there_already_is_merged(api: Api, world: World) -> None:
    body = run(api, currency("EUR", Name="The euro"), currency("EUR", Name="The euro"))
    assert [answer["@erpnet.state"] for answer in body["objects"]] == ["Modified", "Unchanged"]
    assert api.read(f"{CURRENCIES}({world.currency})")["Name"] == "The euro"


@pytest.mark.parametrize(
    "action,state",
    [
        ("create", None),
        ("update", "Modified"),
        ("merge", "Modified"),
        ("find", "Unchanged"),
        ("findOrCreate", "Unchanged"),
        ("findOrNull", "Unchanged"),
        ("findSingle", "Unchanged"),
        ("findSingleOrNull", "Unchanged"),
        ("delete", "Deleted"),
    ],
)
def test_every_action(api: Api, action: str, state: str | None) -> None:
    api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    (answer,) = run(api, currency("USD", **{"@erpnet.action": action}))["objects"]
    if state is None:
        assert answer["@erpnet.error"]["code"] == 2129
    else:
        assert (answer["@erpnet.result"], answer["@erpnet.state"]) == ("success", state)


@pytest.mark.parametrize(
    "action,result",
    [("update", "fail"), ("find", "fail"), ("findSingle", "fail"), ("delete", "fail"),
     ("findOrNull", "success"), ("findSingleOrNull", "success"), ("merge", "success"), ("findOrCreate", "success")],
)  # fmt: skip
def test_every_action_where_nothing_is_found(api: Api, action: str, result: str) -> None:
    (answer,) = run(api, currency("USD", **{"@erpnet.action": action}))["objects"]
    assert answer["@erpnet.result"] == result


def test_the_log_says_what_was_done(api: Api) -> None:
    body = run(api, currency("USD"), {"@odata.type": CURRENCY, "CurrencySign": "X"})
    log = api.read(f"{body['data-exchange']}?$expand=Objects")
    assert (log["Mode"], log["State"]) == ("Import", "FinishedFail")
    assert sorted(entry["ExchangeResult"] for entry in log["Objects"]) == ["Fail", "Success"]
    assert "data-exchange" not in run(api, currency("GBP"), loggingLevel=0)
    assert api.read(f"{run(api, currency('CHF'), loggingLevel=1)['data-exchange']}?$expand=Objects")["Objects"] == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"objects":5}',
        b'{"objects":{}}',
        b'{"objects":null}',
        b'{"transaction":{},"objects":[]}',
        b'{"model":"","objects":[]}',
        b'{"loggingLevel":"2","objects":[]}',
        b'{"objects":[{},',
        b"[]",
        b'{"objects":[]} x',
        b'{"objects":[],"mood":"good"}',
        b'{"transaction":"none","objects":[]}',
        b'{"loggingLevel":9,"objects":[]}',
        b"{}",
        b'{"objects":[{"a":1,"a":2}]}',
        b'{"objects":[' + b"[" * 300 + b"]" * 300 + b"]}",
    ],
)
def test_a_bad_import_does_nothing(api: Api, body: bytes) -> None:
    response = api.post("Import", body)
    assert response.status_code == 400, response.content
    assert error_of(response)["type"] in (
        "InvalidBody",
        "InvalidJson",
        "InvalidLiteral",
        "UnknownParameter",
        "MissingParameter",
    )
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_objects_of_other_kinds_fail_alone(api: Api) -> None:
    body = run(api, 1, {"@odata.type": "Erp.Nothing"}, {"Name": "x"}, currency("USD"))
    assert [answer["@erpnet.result"] for answer in body["objects"]] == ["fail", "fail", "fail", "success"]


def test_parts_and_references_come_along(api: Api, world: World) -> None:
    stored = api.read(f"{PRODUCTS}({world.product})")
    body = run(
        api,
        {
            "@odata.type": "Erp.General_Products_Product",
            "PartNumber": "T1",
            "Name": {"EN": "Table"},
            "ProductGroup": {"Code": "G1"},
            "ProductType": {"Code": "T1"},
            "MeasurementUnit": {"Code": "pcs"},
            "BaseMeasurementCategory": stored["BaseMeasurementCategory"],
        },
    )
    assert body["@erpnet.result"] == "success", body


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OTHERS = st.dictionaries(st.text().filter(lambda name: name != "objects"), st.integers() | st.text(), max_size=3)


@given(st.lists(JSON, max_size=8), OTHERS, st.sampled_from([None, 2]))
def test_streaming_reads_what_json_reads(objects: list[Any], others: dict[str, Any], indent: int | None) -> None:
    text = json.dumps({**others, "objects": objects}, ensure_ascii=False, indent=indent)
    source = JsonObjectFile(io.BytesIO(text.encode(errors="surrogatepass")), "objects")
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(BadRequest):
            source.members()
        return
    assert source.members() == {**others, "objects": len(objects)}
    assert list(source.elements()) == objects


def test_an_import_lets_others_go_first_between_its_objects(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep its web process busy for minutes."""
    slot = Mock()
    monkeypatch.setattr(execution_slot, "_slot", slot)
    for transaction in ("per-object", "all-objects"):
        slot.reset_mock()
        run(api, currency(f"USD{transaction[0]}"), currency(f"GBP{transaction[0]}"), transaction=transaction)
        assert slot.defer.call_count >= 2


def test_an_error_of_an_object_can_be_found_in_the_log(api: Api) -> None:
    response = api.post("Import", {"objects": [{"@odata.type": CURRENCY, "CurrencySign": "X"}]})
    (answer,) = response.json()["objects"]
    assert answer["@erpnet.error"]["info"] == f"correlation id {response.headers['X-Request-Id']}"


def test_a_set_in_the_place_of_a_type_is_told_the_type(api: Api) -> None:
    (answer,) = run(api, {"@odata.type": CURRENCIES, "CurrencySign": "USD"})["objects"]
    assert f"must name an entity type, {CURRENCY}, not the set {CURRENCIES}" in answer["@erpnet.error"]["message"]
