"""$batch, multipart and JSON (spec 02, 2.5)."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from tests.domain.odata.test_writing import CURRENCIES, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of


def json_batch(api: Api, *requests: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """The answers to a JSON batch."""
    numbered = [{"id": str(number), **request} for number, request in enumerate(requests, 1)]
    response = api.post("$batch", {"requests": numbered}, **headers)
    assert response.status_code == 200, response.content
    answers: list[dict[str, Any]] = response.json()["responses"]
    return answers


def multipart(api: Api, *parts: str, newline: str = "\r\n", **headers: str) -> Any:
    """A multipart batch of parts, each with its headers."""
    body = "".join(f"--b\n{part}\n" for part in parts) + "--b--\n"
    return api.post(
        "$batch", body.replace("\n", newline).encode(), Content_Type="multipart/mixed; boundary=b", **headers
    )


def part(method: str, url: str, body: Any = None, content_id: str = "") -> str:
    """An application/http part."""
    head = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n"
    head += f"Content-ID: {content_id}\n" if content_id else ""
    if body is None:
        return f"{head}\n{method} {url} HTTP/1.1\nHost: testserver\n\n"
    text = json.dumps(body)
    return f"{head}\n{method} {url} HTTP/1.1\nContent-Type: application/json\nContent-Length: {len(text)}\n\n{text}"


def changeset(*parts: str) -> str:
    """Parts in a changeset of their own."""
    inner = "".join(f"--c\n{entry}\n" for entry in parts)
    return f"Content-Type: multipart/mixed; boundary=c\n\n{inner}--c--"


def dollar(sign: str = "USD") -> dict[str, str]:
    """A currency's body."""
    return {"CurrencySign": sign, "Name": sign}


def test_a_json_batch_answers_each_request(api: Api) -> None:
    answers = json_batch(
        api,
        {"method": "get", "url": f"{CURRENCIES}?$select=Name"},
        {"method": "POST", "url": CURRENCIES, "body": dollar()},
        {"method": "GET", "url": "/api/domain/odata/GetVersion()"},
        {"method": "GET", "url": f"http://testserver/api/domain/odata/{CURRENCIES}/$count"},
    )
    assert [answer["status"] for answer in answers] == [200, 201, 200, 200]
    assert answers[0]["body"]["value"] == [{**answers[0]["body"]["value"][0], "Name": "Euro"}]
    assert answers[3]["body"] == "2"


def test_an_atomicity_group_is_all_or_nothing(api: Api) -> None:
    answers = json_batch(
        api,
        {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g", "body": dollar()},
        {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g", "body": {"CurrencySign": "X"}},
    )
    assert {answer["status"] for answer in answers} >= {500}
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_references_to_earlier_parts_work_in_url_and_body(api: Api, world: World) -> None:
    answers = json_batch(
        api,
        {"id": "order", "method": "POST", "url": ORDERS, "atomicityGroup": "g", "body": order_body(world)},
        {
            "id": "line",
            "method": "POST",
            "url": "$order/Lines",
            "atomicityGroup": "g",
            "body": {"Product@odata.bind": f"{PRODUCTS}({world.product})"},
        },
        {
            "id": "line2",
            "method": "POST",
            "url": LINES,
            "atomicityGroup": "g",
            "body": {"SalesOrder@odata.bind": "$order", "Product@odata.bind": f"{PRODUCTS}({world.product})"},
        },
    )
    assert [answer["status"] for answer in answers] == [201, 201, 201], answers
    assert api.get(f"{LINES}/$count").content == b"2"


def test_links_behind_a_referenced_entity_hold_outside_of_the_batch(api: Api, world: World) -> None:
    _, lines = json_batch(
        api,
        {"method": "POST", "url": ORDERS, "body": order_body(world, {"Quantity": 1}, {"Quantity": 2})},
        {"method": "GET", "url": "$1/Lines", "headers": {"Prefer": "maxpagesize=1"}},
    )
    link = lines["body"]["@odata.nextLink"].partition("/odata/")[2]
    (line,) = api.read(link)["value"]
    assert line != lines["body"]["value"][0]


@pytest.mark.parametrize(
    "prefer,goes_on", [("", True), ("continue-on-error", True), ("continue-on-error=false", False)]
)
def test_a_json_batch_goes_on_behind_an_error_unless_told_to_stop(api: Api, prefer: str, goes_on: bool) -> None:
    requests: list[dict[str, Any]] = [
        {"method": "GET", "url": "Nothing"},
        {"method": "POST", "url": CURRENCIES, "body": dollar()},
    ]
    answers = json_batch(api, *requests, **({"Prefer": prefer} if prefer else {}))
    assert [answer["status"] for answer in answers] == ([400, 201] if goes_on else [400])
    assert api.get(f"{CURRENCIES}/$count").content == (b"2" if goes_on else b"1")


@pytest.mark.parametrize("prefer,goes_on", [("", False), ("odata.continue-on-error", True)])
def test_a_multipart_batch_stops_at_an_error_unless_told_to_go_on(api: Api, prefer: str, goes_on: bool) -> None:
    headers = {"Prefer": prefer} if prefer else {}
    text = multipart(api, part("GET", "Nothing"), part("POST", CURRENCIES, dollar()), **headers).content.decode()
    assert ("HTTP/1.1 201 Created" in text) is goes_on
    assert api.get(f"{CURRENCIES}/$count").content == (b"2" if goes_on else b"1")


@pytest.mark.parametrize(
    "prefer,applied",
    [("continue-on-error", "true"), ("odata.continue-on-error=true", "true"), ("continue-on-error=false", "false")],
)
def test_a_batch_says_whether_it_goes_on(api: Api, prefer: str, applied: str) -> None:
    """OData Protocol 4.01, 8.2.8.3."""
    body = {"requests": [{"id": "1", "method": "GET", "url": "Nothing"}]}
    for response in (api.post("$batch", body, Prefer=prefer), multipart(api, part("GET", "Nothing"), Prefer=prefer)):
        assert response["Preference-Applied"] == f"odata.continue-on-error={applied}"
    assert "Preference-Applied" not in api.post("$batch", body).headers


@pytest.mark.parametrize(
    "accept,json_status,multipart_status",
    [
        ("*/*", 200, 200),
        ("application/json, text/plain, */*", 200, 200),
        ("application/json;odata.metadata=full", 200, 406),
        ("multipart/mixed", 406, 200),
        ("text/html", 406, 406),
    ],
)
def test_a_batch_is_not_answered_in_a_format_that_the_caller_does_not_accept(
    api: Api, accept: str, json_status: int, multipart_status: int
) -> None:
    """OData Protocol 4.01, 11.7.1."""
    body = {"requests": [{"id": "1", "method": "POST", "url": CURRENCIES, "body": dollar()}]}
    assert api.post("$batch", body, Accept=accept).status_code == json_status
    assert multipart(api, part("POST", CURRENCIES, dollar("GBP")), Accept=accept).status_code == multipart_status
    made = [json_status, multipart_status].count(200)
    assert api.get(f"{CURRENCIES}/$count").content == str(1 + made).encode()


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_conditions_belong_to_the_requests_of_a_batch(api: Api, header: str) -> None:
    """OData Protocol 4.01, 8.2.4 and 8.2.5."""
    body = {"requests": [{"id": "1", "method": "POST", "url": CURRENCIES, "body": dollar()}]}
    response = api.post("$batch", body, **{header: "*"})
    assert (response.status_code, error_of(response)["parameters"][0]) == (400, header)
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_what_stands_behind_a_number_sign_is_not_dropped(api: Api) -> None:
    (refused,) = json_batch(api, {"method": "GET", "url": f"{CURRENCIES}?$select=Name#x&$filter=false"})
    assert (refused["status"], refused["body"]["error"]["type"]) == (400, "InvalidBody")


@pytest.mark.parametrize("name, value", [
    ("Prefer", "CurrentEnterpriseCompanyId=0187d2a0-0000-7000-8000-000000000001"),
    ("ErpContextParameters", "CurrentRoleId=0187d2a0-0000-7000-8000-000000000001"), ("X-Change-Reason", "because"),
])  # fmt: skip
def test_a_part_has_the_context_of_its_batch(api: Api, name: str, value: str) -> None:
    create = {"method": "POST", "url": CURRENCIES, "headers": {name: value}, "body": dollar()}
    grouped = {**create, "atomicityGroup": "g"}
    alone, of_group = json_batch(api, create, grouped)
    for refused in (alone, of_group):
        assert (refused["status"], refused["body"]["error"]["type"]) == (400, "InvalidHeader"), refused
        assert refused["body"]["error"]["target"] == name
    assert [answer["status"] for answer in json_batch(api, create, **{name: value})] == [201]


def test_what_depends_on_a_failure_is_not_done(api: Api) -> None:
    answers = json_batch(
        api,
        {"method": "GET", "url": "Nothing"},
        {"method": "POST", "url": CURRENCIES, "dependsOn": ["1"], "body": dollar()},
        Prefer="continue-on-error",
    )
    assert [answer["status"] for answer in answers] == [400, 424]
    assert answers[1]["body"]["error"]["type"] == "DependencyFailed"
    assert answers[1]["headers"]["content-language"] == "en"


@pytest.mark.parametrize("condition,first,done", [
    ("$1/$succeeded", "GetVersion()", True), ("$1/$succeeded", "Nothing", False),
    ("not $1/$succeeded", "Nothing", True), ("not $1/$succeeded", "GetVersion()", False),
    ("false or not ($1/$succeeded and true)", "Nothing", True),
])  # fmt: skip
def test_a_condition_decides_instead_of_what_is_depended_on(api: Api, condition: str, first: str, done: bool) -> None:
    answers = json_batch(
        api,
        {"method": "GET", "url": first},
        {"method": "POST", "url": CURRENCIES, "dependsOn": ["1"], "if": condition, "body": dollar()},
        {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g", "if": condition, "body": dollar("GBP")},
        {"method": "GET", "url": f"{CURRENCIES}/$count", "if": "$g/$succeeded"},
    )
    assert [answer["status"] for answer in answers[1:]] == ([201, 201, 200] if done else [424, 424, 424])
    assert api.get(f"{CURRENCIES}/$count").content == (b"3" if done else b"1")


@pytest.mark.parametrize("condition", [
    "$c/CurrencySign eq 'USD'", "$c/Name eq 'USD' and $c/CurrencySign ne 'GBP'", "$c/Id ne null", "$c ne null",
    "not ($c/CurrencySign lt 'USD') and $c/CurrencySign le 'USD'", "$n eq 2 and $n gt 1.5", "$f eq 'USD'",
    "$t/AggregateLastUpdateTimeUtc gt 2020-01-01T00:00:00Z", "$d/Day lt 2030-01-01T00:00:00Z", "not ($n lt NaN)",
    "$none eq null and $none/CurrencySign eq null",
    "not $bad/$succeeded or $bad/Name eq 'x'", "$c/CurrencySign eq 'it''s $9' or $c/Id ne null",
])  # fmt: skip
def test_a_condition_may_ask_for_what_earlier_requests_have_answered(api: Api, condition: str) -> None:
    requests: list[dict[str, Any]] = [
        {"id": "c", "method": "POST", "url": CURRENCIES, "body": dollar()},
        {"id": "n", "method": "GET", "url": f"{CURRENCIES}/$count"},
        {"id": "f", "method": "GET", "url": "$c/CurrencySign"},
        {"id": "none", "method": "PATCH", "url": "$c", "body": {"Name": "Dollar"}},
        {"id": "t", "method": "GET", "url": "$c?$select=AggregateLastUpdateTimeUtc"},
        {"id": "d", "method": "GET", "url": "$c?$compute=date(AggregateLastUpdateTimeUtc) as Day&$select=Day"},
        {"id": "bad", "method": "GET", "url": "Nothing"},
    ]
    both = [{"method": "GET", "url": "GetVersion()", "if": text} for text in (condition, f"not ({condition})")]
    answers = json_batch(api, *requests, *both)
    assert [answer["status"] for answer in answers] == [201, 200, 200, 204, 200, 200, 400, 200, 424], answers


@pytest.mark.parametrize("condition,status", [
    ("$9/$succeeded", 400), ("$2/$succeeded", 400), ("$1/$succeeded and", 400), ("($1/$succeeded", 400), ("", 400),
    ("not " * 500 + "true", 400), ("true true", 400), ("$1/Name eq 'x'", 400), ("Name eq 'x'", 501), ("5", 400),
    ("$1 eq 5", 400), ("$1/version eq 1", 400), ("@r0 eq null", 400), ("@x", 400), ("$1/version/x eq 1", 400),
    ("length($1/version) eq 3", 501), ("null", 424), ("$1/value/$count eq 1", 501), ("$1/version gt null", 424),
])  # fmt: skip
def test_a_condition_that_cannot_be_decided_is_not_carried_out(api: Api, condition: str, status: int) -> None:
    answers = json_batch(
        api,
        {"method": "GET", "url": "GetVersion()"},
        {"method": "POST", "url": CURRENCIES, "if": condition, "body": dollar()},
    )
    assert [answer["status"] for answer in answers] == [200, status], answers
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_parts_of_a_group_may_depend_on_one_another_and_others_on_the_group(api: Api) -> None:
    grouped: dict[str, Any] = {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g"}
    counted: dict[str, Any] = {"method": "GET", "url": f"{CURRENCIES}/$count", "dependsOn": ["g"]}
    asked = [{**grouped, "body": dollar()}, {**grouped, "dependsOn": ["1"], "body": dollar("GBP")}, counted]
    assert [answer["status"] for answer in json_batch(api, *asked)] == [201, 201, 200]
    again = json_batch(api, *asked)
    # Refused at the commit, for what the first created.
    assert [answer["status"] for answer in again] == [500, 424, 424]


def test_an_etag_may_be_that_of_an_earlier_answer(api: Api, world: World) -> None:
    euro = f"{CURRENCIES}({world.currency})"
    changed = {"method": "PATCH", "url": euro, "headers": {"If-Match": "$1"}, "body": {"Name": "E"}}
    answers = json_batch(api, {"method": "GET", "url": euro}, {**changed, "dependsOn": ["1"]}, changed)
    assert [answer["status"] for answer in answers] == [200, 204, 412]


def test_a_reference_is_to_what_the_part_made_and_not_to_what_came_with_it(api: Api, world: World) -> None:
    party = {"@erpnet.action": "create", "@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": "New"}}
    customer = {"@erpnet.action": "create", "Number": "C9", "Party": party}
    answers = json_batch(
        api,
        {"method": "POST", "url": ORDERS, "atomicityGroup": "g", "body": order_body(world, Customer=customer)},
        {"method": "PATCH", "url": "$1", "atomicityGroup": "g", "body": {"DocumentNotes": "mine"}},
        {"method": "GET", "url": "$1/DocumentNotes/$value"},
        {"id": "read", "method": "GET", "url": f"{CURRENCIES}({world.currency})"},
        {"method": "GET", "url": "$read/Name/$value"},
    )
    assert [answer["status"] for answer in answers] == [201, 204, 200, 200, 200], answers
    assert [answers[2]["body"], answers[4]["body"]] == ["mine", "Euro"]


def test_numbers_of_a_body_arrive_as_the_numbers_that_they_are(api: Api, world: World) -> None:
    order = order_body(world, {"Quantity": 0.1, "UnitPrice": 123456789.12345})
    wrong: list[dict[str, Any]] = [{"CurrencySign": 5.5, "Name": "x"}, {**dollar(), "ShowOrder": 10**30}]
    answers = json_batch(
        api,
        {"method": "POST", "url": f"{ORDERS}?$expand=Lines($select=Quantity,UnitPrice)", "body": order},
        *({"method": "POST", "url": CURRENCIES, "body": body} for body in wrong),
    )
    assert [answer["status"] for answer in answers] == [201, 400, 400], answers
    assert [answer["body"]["error"]["type"] for answer in answers[1:]] == ["InvalidLiteral", "InvalidLiteral"]
    line = answers[0]["body"]["Lines"][0]
    assert (line["Quantity"]["Value"], line["UnitPrice"]["Value"]) == (0.1, 123456789.12345)


@pytest.mark.parametrize("url", ["http://elsewhere/x", "http://[bad", "/other/x", "//elsewhere/x"])
def test_an_address_that_leads_elsewhere_fails_its_part_only(api: Api, url: str) -> None:
    """What ran before it is committed, and the caller has to be told."""
    answers = json_batch(api, {"method": "POST", "url": CURRENCIES, "body": dollar()}, {"method": "GET", "url": url})
    assert [answer["status"] for answer in answers] == [201, 400]


@pytest.mark.parametrize("format", ["json", "multipart"])
def test_a_changeset_of_a_transaction_is_kept_with_it(api: Api, format: str) -> None:
    inside = api.begin()

    def post(*bodies: dict[str, str]) -> int:
        if format == "multipart":
            text: str = multipart(
                inside, changeset(*(part("POST", CURRENCIES, body) for body in bodies))
            ).content.decode()
            return text.count("HTTP/1.1 201 Created")
        grouped = {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g"}
        answers = json_batch(inside, *({**grouped, "body": body} for body in bodies))
        return sum(answer["status"] == 201 for answer in answers)

    assert post(dollar(), dollar("GBP")) == 2
    assert post(dollar("CHF"), {**dollar("SEK"), "Mood": "good"}) == 0
    assert (api.get(f"{CURRENCIES}/$count").content, inside.get(f"{CURRENCIES}/$count").content) == (b"1", b"3")
    assert inside.end().status_code == 204
    assert api.get(f"{CURRENCIES}/$count").content == b"3"


def test_a_group_works_in_one_transaction(api: Api) -> None:
    ids = [api.begin().headers["TransactionId"] for _ in range(2)]
    grouped = {"method": "POST", "url": CURRENCIES, "atomicityGroup": "g"}
    asked = [{**grouped, "headers": {"TransactionId": id}, "body": dollar(f"A{id[:2]}")} for id in ids]
    answers = json_batch(api, *asked)
    assert [answer["status"] for answer in answers] == [400, 400]
    assert json_batch(api, {**asked[0], "headers": {"TransactionId": "0" * 32}})[0]["status"] == 400


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_a_multipart_batch_with_a_changeset(api: Api, world: World, newline: str) -> None:
    response = multipart(
        api,
        part("GET", f"{CURRENCIES}/$count"),
        changeset(
            part("POST", ORDERS, order_body(world), "1"),
            part("POST", "$1/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})"}, "2"),
        ),
        part("GET", f"{LINES}/$count"),
        newline=newline,
    )
    text = response.content.decode()
    assert response.status_code == 200
    assert response["Content-Type"].startswith("multipart/mixed; boundary=batchresponse_")
    assert text.count("HTTP/1.1 201 Created") == 2, text
    assert text.count("HTTP/1.1 200 OK") == 2
    assert "Content-ID: 1" in text
    assert api.get(f"{LINES}/$count").content == b"1"


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("blank_lines", [0, 1, 2])
@pytest.mark.parametrize("header", ["", "Accept: text/plain\n"])
def test_blank_lines_of_a_part_without_a_body(api: Api, newline: str, blank_lines: int, header: str) -> None:
    asked = "Content-Type: application/http\n\n" + f"GET {CURRENCIES}/$count HTTP/1.1\n{header}" + "\n" * blank_lines
    text = multipart(api, asked.removesuffix("\n"), asked.removesuffix("\n"), newline=newline).content.decode()
    assert text.count("HTTP/1.1 200 OK") == 2, text


def test_a_failed_changeset_answers_once_and_leaves_nothing(api: Api) -> None:
    response = multipart(
        api, changeset(part("POST", CURRENCIES, dollar(), "1"), part("POST", CURRENCIES, {"Nam": 1}, "2"))
    )
    text = response.content.decode()
    assert text.count("HTTP/1.1 400 Bad Request") == 1
    assert "changesetresponse" not in text
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_parts_inherit_the_transaction(api: Api) -> None:
    inside = api.begin()
    answers = json_batch(inside, {"method": "POST", "url": CURRENCIES, "body": dollar()})
    assert answers[0]["status"] == 201
    assert api.get(f"{CURRENCIES}/$count").content == b"1"
    assert inside.end().status_code == 204
    assert api.get(f"{CURRENCIES}/$count").content == b"2"


@pytest.mark.parametrize(
    "body,content_type",
    [
        (b"", "multipart/mixed; boundary=b"),
        (b"--b\r\nno header\r\n\r\n--b--", "multipart/mixed; boundary=b"),
        (b"--b\r\nContent-Type: application/http\r\n\r\nGET\r\n--b--", "multipart/mixed; boundary=b"),
        (b"--b\r\nContent-Type: application/http\r\n\r\nGET X HTTP/1.1\r\n\r\n", "multipart/mixed; boundary=b"),
        (b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--", "multipart/mixed; boundary=b"),
        *(
            (
                b"--b\r\nContent-Type: application/http\r\n\r\nPOST X HTTP/1.1\r\nContent-Length: "
                + length
                + b"\r\n\r\n{}\r\n--b--",
                "multipart/mixed; boundary=b",
            )
            for length in (b"\xb2", b"1" * 5000, b"-1")
        ),
        (b"x", "multipart/mixed"),
        (b"{}", "application/json"),
        (b'{"requests":[{}]}', "application/json"),
        (b'{"requests":[1]}', "application/json"),
        (b'{"requests":[{"id":"1","method":"GET","url":"A"},{"id":"1","method":"GET","url":"A"}]}', "application/json"),
        (b'{"requests":[{"id":"1","method":"PUT","url":"A","atomicityGroup":"1"}]}', "application/json"),
        (b'{"requests":[{"id":"1","method":"GET","url":"A","atomicityGroup":"g"}]}', "application/json"),
        (
            b'{"requests":[{"id":"1","method":"PUT","url":"A","atomicityGroup":"g"},{"id":"2","method":"GET","url":"A"},'
            b'{"id":"3","method":"PUT","url":"A","atomicityGroup":"g"}]}',
            "application/json",
        ),
        (
            b'{"requests":[{"id":"1","method":"PUT","url":"A","headers":{"Content-Type":"image/png"},"body":"\xc3\xa4!"}]}',
            "application/json",
        ),
        (
            b'{"requests":[{"id":"1","method":"PUT","url":"A","headers":{"Content-Type":"image/png"},"body":{}}]}',
            "application/json",
        ),
    ],
)
def test_a_malformed_batch_is_400(api: Api, body: bytes, content_type: str) -> None:
    response = api.post("$batch", body or b" ", Content_Type=content_type)
    assert response.status_code == 400, response.content
    assert error_of(response)["type"] in ("InvalidBody", "InvalidHeader", "InvalidJson")


def test_a_malformed_batch_is_told_what_it_lacks(api: Api) -> None:
    numbered = {"requests": [{"id": 1, "method": "get", "url": CURRENCIES}]}
    assert "needs a text for id" in error_of(api.post("$batch", numbered))["message"]
    empty = api.post("$batch", "--b\r\n\r\n--b--", Content_Type="multipart/mixed; boundary=b")
    assert "a part of a batch is application/http, not nothing" in error_of(empty)["message"]


def test_a_batch_in_a_batch_is_refused(api: Api) -> None:
    answers = json_batch(api, {"method": "POST", "url": "$batch", "body": {"requests": []}})
    assert answers[0]["status"] == 400


def test_each_part_is_authorised_by_itself(api: Api) -> None:
    from tests.support.api import service_api

    reader = service_api(api.client, scope="read")
    answers = json_batch(
        reader,
        {"method": "POST", "url": CURRENCIES, "body": dollar()},
        {"method": "GET", "url": CURRENCIES},
        Prefer="continue-on-error",
    )
    assert [answer["status"] for answer in answers] == [403, 200]


def test_a_part_is_compressed_with_the_batch_and_not_by_itself(api: Api) -> None:
    asked = {"requests": [{"id": "1", "method": "GET", "url": "$metadata"}]}
    answer = api.post("$batch", asked, Accept_Encoding="gzip")
    assert answer["Content-Encoding"] == "gzip"
    (part,) = json.loads(gzip.decompress(answer.content))["responses"]
    assert "content-encoding" not in part["headers"]
    text = base64.urlsafe_b64decode(part["body"] + "==")
    assert text.startswith(b"<?xml"), text[:20]


# --- the request that failed --------------------------------------------------------------------------------------

CONTENT_ID = "@Org.OData.Core.V1.ContentID"


def refusal(api: Api, *parts: str) -> dict[str, Any]:
    """The error of a changeset of these parts."""
    text = multipart(api, changeset(*parts)).content.decode()
    error: dict[str, Any] = json.loads(text[text.index('{"error"') : text.rindex("}") + 1])["error"]
    return error


def test_a_failed_changeset_names_the_request_whose_entity_was_refused(api: Api) -> None:
    api.create(CURRENCIES, dollar("BBB"))
    new = [part("POST", CURRENCIES, dollar(sign), str(number)) for number, sign in enumerate(("AAA", "BBB", "CCC"), 1)]
    error = refusal(api, *new)
    assert (error["type"], error["parameters"][2], error[CONTENT_ID]) == ("DuplicateValue", "BBB", "2")
    error = refusal(api, new[0], part("POST", CURRENCIES, {"CurrencySign": "DDD", "NoSuchMember": 1}, "other"))
    assert (error["type"], error[CONTENT_ID]) == ("UnknownProperty", "other")
    made = api.create(CURRENCIES, dollar("EEE"))["@odata.id"]
    error = refusal(api, new[2], part("PATCH", made, {"CurrencySign": "BBB"}, "change"))
    assert (error["type"], error[CONTENT_ID]) == ("DuplicateValue", "change")


def test_details_of_a_failed_changeset_name_their_requests(api: Api, world: World) -> None:
    lacking = [part("POST", PRODUCTS, {"PartNumber": f"P{number}"}, str(number)) for number in (1, 2)]
    error = refusal(api, part("POST", CURRENCIES, dollar("AAA"), "0"), *lacking)
    assert CONTENT_ID not in error
    assert {(detail["target"], detail[CONTENT_ID]) for detail in error["details"]} >= {("Name", "1"), ("Name", "2")}
    assert {detail[CONTENT_ID] for detail in error["details"]} == {"1", "2"}


def test_a_refused_part_is_its_owners_request(api: Api, world: World) -> None:
    order = order_body(world, {"Product@odata.bind": None})
    error = refusal(api, part("POST", CURRENCIES, dollar("AAA"), "0"), part("POST", ORDERS, order, "order"))
    assert error[CONTENT_ID] == "order", error


def test_a_request_outside_of_changesets_is_not_named(api: Api) -> None:
    api.create(CURRENCIES, dollar("BBB"))
    text = multipart(api, part("POST", CURRENCIES, dollar("BBB"), "1")).content.decode()
    assert "DuplicateValue" in text
    assert CONTENT_ID not in text
