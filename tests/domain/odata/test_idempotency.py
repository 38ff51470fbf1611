"""A repeated write gets the first answer: Idempotency-Key and Repeatability-Request-ID (spec 13, 13.4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client

from domain.dataset.tables.models import IdempotentResponse, PendingChange
from domain.dataset.transactions import stored_responses
from domain.dataset.transactions.stored_responses import responses_prune
from domain.odata.write import writer
from foundation.fields import utc_now
from tests.domain.odata.test_concurrent_writes import at_once
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of, service_api

DOLLAR = {"CurrencySign": "USD", "Name": "Dollar"}
KEY = {"Idempotency_Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
#: Each answer has its own.
OWN_HEADERS = {"X-Request-Id", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy"}


@pytest.fixture(autouse=True)
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process just started: it has counted nobody's answers."""
    monkeypatch.setattr(stored_responses, "_usages", {})


def seen(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """What a client sees of an answer, without what belongs to the single request."""
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    return answer.status_code, headers, answer.content


def twice(send: Callable[[], Answer]) -> Answer:
    """The answer to a request that is sent twice, which is the same."""
    first, second = send(), send()
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true", (second.status_code, second.content)
    assert seen(second) == seen(first)
    return first


def first_sent(**ago: float) -> str:
    """A value of Repeatability-First-Sent."""
    return format_datetime(utc_now() - timedelta(**ago), usegmt=True)


def test_a_repeated_creation_creates_one_entity(api: Api) -> None:
    answer = twice(lambda: api.post(CURRENCIES, DOLLAR, **KEY))
    assert answer.status_code == 201
    assert {"Location", "ETag", "OData-Version", "Content-Type"} <= set(answer.headers)
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"1"


@pytest.mark.parametrize("method, path, body, status", [
    ("PATCH", "{currency}", {"Name": "Changed"}, 204),
    ("PUT", "{currency}", {"CurrencySign": "EUR", "Name": "Changed"}, 204),
    ("DELETE", f"{PRODUCTS}({{product}})", None, 204),
    ("POST", "BeginTransaction", {}, 200),
    ("POST", "ExecuteScript", "1 + 1", 200),
    ("POST", "$batch", {"requests": [{"id": "1", "method": "POST", "url": CURRENCIES, "body": DOLLAR}]}, 200),
])  # fmt: skip
def test_every_kind_of_write_can_be_repeated(
    api: Api, world: World, method: str, path: str, body: Any, status: int
) -> None:
    path = path.format(currency=f"{CURRENCIES}({world.currency})", product=world.product)
    headers = {**KEY, "Content_Type": "text/plain" if path == "ExecuteScript" else "application/json"}
    assert twice(lambda: api.request(method, path, body, **headers)).status_code == status


def test_a_form_is_the_same_request_with_another_boundary(api: Api) -> None:
    """As clients send a file again: each request has a boundary of its own."""

    def send(boundary: str, sign: str = "USD") -> Answer:
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="repository"\r\n\r\n'
            f"General.Currencies.Currencies\r\n"
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n'
            f"Content-Type: text/csv\r\n\r\nCurrencySign,Name\r\n{sign},Dollar\r\n--{boundary}--\r\n"
        ).encode()
        return api.post("Import", body, **KEY, Content_Type=f"multipart/form-data; boundary={boundary}")

    first, second = send("one"), send("another")
    assert (first.status_code, first.content) == (200, second.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert error_of(send("third", "US2"))["type"] == "IdempotencyKeyReused"


def test_a_read_by_post_is_done_each_time(api: Api, world: World) -> None:
    """It would hold the lock of SQLite's only writer for as long as the query takes."""
    for query in ("$select=Name", "$select=Id"):
        answer = api.post(f"{CURRENCIES}/$query", query, **KEY, Content_Type="text/plain")
        assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (200, False)


def test_a_deep_insert_is_repeated_with_its_children(api: Api, world: World) -> None:
    answer = twice(lambda: api.post(ORDERS, order_body(world), **KEY, Prefer="return=representation"))
    assert answer.status_code == 201
    assert api.get(f"{ORDERS}/$count").content == b"1"


def test_a_key_belongs_to_one_request(api: Api) -> None:
    assert api.post(CURRENCIES, DOLLAR, **KEY).status_code == 201
    for method, path, body in (
        ("POST", CURRENCIES, {**DOLLAR, "Name": "Other"}),
        ("POST", f"{CURRENCIES}?$select=Name", DOLLAR),
        ("PATCH", CURRENCIES, DOLLAR),
        ("POST", "General_Products_CodingSystems", DOLLAR),
    ):
        refused = api.request(method, path, body, **KEY)
        assert (refused.status_code, error_of(refused)["type"]) == (422, "IdempotencyKeyReused"), path
    assert api.post(CURRENCIES, {**DOLLAR, "CurrencySign": "US2"}, Idempotency_Key="another").status_code == 201


def test_keys_of_other_callers_are_others(api: Api, client: Client) -> None:
    assert api.post(CURRENCIES, DOLLAR, **KEY).status_code == 201
    other = service_api(client, application="DualDemoClient-service", scope="read update")
    answer = other.post(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"}, **KEY)
    assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (201, False)


def test_a_token_that_may_not_write_gets_no_stored_answer(api: Api, client: Client) -> None:
    assert api.post(CURRENCIES, DOLLAR, **KEY).status_code == 201
    assert service_api(client, scope="read").post(CURRENCIES, DOLLAR, **KEY).status_code == 403


def test_a_refusal_is_repeated_too(api: Api, world: World) -> None:
    taken = {"CurrencySign": "EUR", "Name": "Euro again"}
    refused = twice(lambda: api.post(CURRENCIES, taken, **KEY))
    assert error_of(refused)["type"] == "DuplicateValue"
    api.patch(f"{CURRENCIES}({world.currency})", {"CurrencySign": "OLD"})
    assert error_of(api.post(CURRENCIES, taken, **KEY))["type"] == "DuplicateValue"
    assert api.post(CURRENCIES, taken, Idempotency_Key="another").status_code == 201


def test_a_failure_of_the_platform_is_not_stored(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(writer, "apply", fail)
        assert error_of(api.post(CURRENCIES, DOLLAR, **KEY))["type"] == "InternalError"
    assert not IdempotentResponse.objects.exists()
    assert twice(lambda: api.post(CURRENCIES, DOLLAR, **KEY)).status_code == 201


def test_reads_have_no_keys(api: Api) -> None:
    for _ in range(2):
        assert "Idempotent-Replayed" not in api.get(CURRENCIES, **KEY).headers
    assert not IdempotentResponse.objects.exists()


@pytest.mark.parametrize("key", ["", '""', '"' + "x" * 256 + '"', "x" * 256, "two words", 'a"b', '"ä"'])
def test_an_invalid_key_is_refused(api: Api, key: str) -> None:
    refused = api.post(CURRENCIES, DOLLAR, Idempotency_Key=key)
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidHeader")
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"0"


# --- OData's headers ----------------------------------------------------------------------------------------------


def test_odata_s_headers_do_the_same(api: Api) -> None:
    headers = {"Repeatability_Request_ID": "3d6a", "Repeatability_First_Sent": first_sent(hours=1)}
    answer = twice(lambda: api.post(CURRENCIES, DOLLAR, **headers))
    assert (answer.status_code, answer.headers["Repeatability-Result"]) == (201, "accepted")
    # The same text as another header's value is another key.
    other = api.post(CURRENCIES, {**DOLLAR, "CurrencySign": "US2"}, Idempotency_Key="3d6a")
    assert (other.status_code, "Repeatability-Result" in other.headers) == (201, False)
    reused = api.post(CURRENCIES, {"Name": "Other"}, **headers)
    assert (reused.status_code, reused.headers["Repeatability-Result"]) == (422, "rejected")


@pytest.mark.parametrize("headers, status, kind", [
    ({"Repeatability_Request_ID": "3d6a"}, 400, "InvalidHeader"),
    ({"Repeatability_First_Sent": first_sent(hours=1)}, 400, "InvalidHeader"),
    ({"Repeatability_Request_ID": "3d6a", "Repeatability_First_Sent": "yesterday"}, 400, "InvalidHeader"),
    (
        {
            "Repeatability_Request_ID": "3d6a",
            "Repeatability_First_Sent": f"Mon, 01 Jan 2026 00:00:00 +{'9' * 20}",
        },
        400,
        "InvalidHeader",
    ),
    ({"Repeatability_Request_ID": "3d", "Repeatability_First_Sent": first_sent(hours=25)}, 412, "RepeatabilityExpired"),
    ({"Repeatability_Request_ID": "3d", "Repeatability_First_Sent": first_sent(hours=-1)}, 412, "RepeatabilityExpired"),
])  # fmt: skip
def test_a_request_that_cannot_be_repeated_is_rejected(
    api: Api, headers: dict[str, str], status: int, kind: str
) -> None:
    refused = api.post(CURRENCIES, DOLLAR, **headers)
    assert (refused.status_code, error_of(refused)["type"]) == (status, kind)
    assert refused.headers["Repeatability-Result"] == "rejected"
    assert not IdempotentResponse.objects.exists()


def test_a_request_has_one_kind_of_key(api: Api) -> None:
    both = {**KEY, "Repeatability_Request_ID": "3d6a", "Repeatability_First_Sent": first_sent(hours=1)}
    assert api.post(CURRENCIES, DOLLAR, **both).status_code == 400


# --- transactions, batches, scripts -------------------------------------------------------------------------------


def test_inside_a_domain_transaction_and_at_its_end(api: Api) -> None:
    inside = api.begin()
    assert twice(lambda: inside.post(CURRENCIES, DOLLAR, **KEY)).status_code == 201
    assert PendingChange.objects.count() == 1
    ended = twice(lambda: inside.post("EndTransaction", {"commit": True}, Idempotency_Key="end"))
    assert ended.status_code == 204
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"1"
    # The same request in another transaction is another request.
    assert api.begin().post(CURRENCIES, DOLLAR, **KEY).status_code == 422


def test_parts_of_a_batch_have_keys_of_their_own(api: Api) -> None:
    def part(id: str, **more: Any) -> dict[str, Any]:
        return {"id": id, "method": "POST", "url": CURRENCIES, "body": DOLLAR, **more}

    keyed = {"headers": {"Idempotency-Key": "part"}}
    for _ in range(2):
        answer = api.post("$batch", {"requests": [part("1", **keyed)]}).json()["responses"][0]
        assert answer["status"] == 201
    assert answer["headers"]["idempotent-replayed"] == "true"
    grouped = [part("1", atomicityGroup="g", headers={"Idempotency-Key": "grouped"})]
    refused = api.post("$batch", {"requests": grouped}).json()["responses"][0]
    assert (refused["status"], refused["body"]["error"]["type"]) == (400, "InvalidHeader")


def test_the_key_of_a_batch_is_not_that_of_its_parts(api: Api) -> None:
    parts = [
        {"id": str(number), "method": "POST", "url": CURRENCIES, "body": {"CurrencySign": f"C{number}", "Name": "Same"}}
        for number in range(3)
    ]
    answer = twice(lambda: api.post("$batch", {"requests": parts}, **KEY))
    assert [each["status"] for each in answer.json()["responses"]] == [201, 201, 201]
    assert IdempotentResponse.objects.count() == 1


def test_what_a_script_commits_before_it_fails_happens_once(api: Api) -> None:
    script = f"""
        Domain.General.CurrenciesRepository.createNew({json.dumps(DOLLAR)});
        Transaction.commit();
        throw new Error('too late');
    """
    refused = twice(lambda: api.post("ExecuteScript", script, **KEY, Content_Type="text/plain"))
    assert error_of(refused)["type"] == "ScriptThrew"
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"1"


# --- bounds -------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_too_large_to_store_changes_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MAX_RESPONSE_BYTES", 100)
    refused = api.post(CURRENCIES, DOLLAR, **KEY)
    assert (refused.status_code, error_of(refused)["type"]) == (413, "IdempotentAnswerTooLarge")
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"0"
    assert twice(lambda: api.post(CURRENCIES, DOLLAR, **KEY, Prefer="return=minimal")).status_code == 204


@pytest.mark.parametrize("name", ["MAX_RESPONSES", "MAX_BYTES"])
def test_a_caller_has_a_number_of_keys(api: Api, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert api.post(CURRENCIES, DOLLAR, **KEY).status_code == 201
    stored_responses._usages.clear()
    monkeypatch.setattr(stored_responses, name, 1)
    refused = api.post(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"}, Idempotency_Key="another")
    assert (refused.status_code, error_of(refused)["type"]) == (429, "TooManyIdempotencyKeys")
    assert "Retry-After" in refused.headers
    assert api.post(CURRENCIES, DOLLAR, **KEY).headers["Idempotent-Replayed"] == "true"


def test_a_key_is_forgotten_after_a_day(api: Api, world: World) -> None:
    change = {"Name": "Changed"}
    twice(lambda: api.patch(f"{CURRENCIES}({world.currency})", change, **KEY))
    IdempotentResponse.objects.update(made_at=utc_now() - timedelta(hours=24, seconds=1))
    twice(lambda: api.patch(f"{CURRENCIES}({world.currency})", change, **KEY))
    assert responses_prune() == 0
    IdempotentResponse.objects.update(made_at=utc_now() - timedelta(hours=24, seconds=1))
    assert responses_prune() == 1


def test_answers_are_encrypted_in_the_database(api: Api) -> None:
    api.post(CURRENCIES, DOLLAR, **KEY)
    with connection.cursor() as cursor:
        cursor.execute("SELECT response FROM domain_idempotentresponse")
        (stored,) = cursor.fetchone()
    assert "Dollar" not in stored


# --- several at once ----------------------------------------------------------------------------------------------


def test_repetitions_at_once_wait_for_the_first(transactional_db: None, api: Api) -> None:
    answers = at_once(api, lambda own, number: own.post(CURRENCIES, DOLLAR, **KEY), callers=4)
    assert len({str(seen(answer)) for answer in answers}) == 1
    assert sorted("Idempotent-Replayed" in answer.headers for answer in answers) == [False, True, True, True]
    assert api.get(f"{CURRENCIES}/$count?$filter=Name eq 'Dollar'").content == b"1"


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_repetition_waits_for_a_while(transactional_db: None, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "WAIT_SECONDS", 0.2)
    api.post(CURRENCIES, DOLLAR, **KEY)
    (digest,) = IdempotentResponse.objects.values_list("digest", flat=True)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [digest, stored_responses._SEED])
        (refused,) = at_once(api, lambda own, number: own.post(CURRENCIES, DOLLAR, **KEY), callers=1)
    assert (refused.status_code, error_of(refused)["type"]) == (409, "RequestInProgress")
    assert refused.headers["Retry-After"] == "1"
