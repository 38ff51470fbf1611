"""spec 02 The Domain API as OData: $batch and protocol manners"""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest
import requests

from tests.acceptance.caller import ODATA, Caller, answered, error_of, id_of
from tests.acceptance.objects import GROUPS, LINES, ORDERS, PRODUCT, PRODUCTS, Maker, order
from tests.acceptance.people import Person
from tests.acceptance.statements import statement


def json_batch(caller: Caller, *requests: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """The responses of a JSON batch; requests without an id are numbered from 1."""
    body = {"requests": [{"id": str(number), **request} for number, request in enumerate(requests, start=1)]}
    found: list[dict[str, Any]] = answered(caller.post("$batch", body, **headers), 200).json()["responses"]
    return found


def multipart(caller: Caller, *parts: str, newline: str = "\r\n", **headers: str) -> requests.Response:
    """A multipart batch."""
    body = "".join(f"--b\n{part}\n" for part in parts) + "--b--\n"
    return caller.post("$batch", body.replace("\n", newline), Content_Type="multipart/mixed; boundary=b", **headers)


def part(method: str, url: str, body: Any = None, content_id: str = "", headers: str = "") -> str:
    """A part of a multipart batch."""
    head = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n"
    head += f"Content-ID: {content_id}\n" if content_id else ""
    text = "" if body is None else json.dumps(body)
    kind = "" if body is None else "Content-Type: application/json\n"
    return f"{head}\n{method} {url} HTTP/1.1\n{kind}{headers}\n{text}"


def changeset(*parts: str) -> str:
    """A part that is a changeset."""
    inner = "".join(f"--c\n{entry}\n" for entry in parts)
    return f"Content-Type: multipart/mixed; boundary=c\n\n{inner}--c--"


def statuses(answer: requests.Response) -> list[int]:
    """The statuses of the parts of a multipart answer, in order."""
    answered(answer, 200)
    assert answer.headers["Content-Type"].startswith("multipart/mixed")
    return [int(found) for found in re.findall(r"HTTP/1\.1 (\d{3})", answer.text)]


def group(code: str, **values: Any) -> dict[str, Any]:
    """The body of a group."""
    return {"Code": code, "Name": {"EN": code}, **values}


def codes(make: Maker) -> list[str]:
    """First letters of the codes of the groups of the test, which are removed when it ends."""
    rows = make.caller.rows(f"{GROUPS}?$filter=endswith(Code,'{make.mark}')&$orderby=Code")
    for row in rows:
        make.remove_later(row["@odata.id"])
    return [row["Code"][0] for row in rows]


class TestMultipart:
    @pytest.mark.parametrize("name, newline", [("CRLF", "\r\n"), ("LF", "\n")])
    @statement("spec 2.5", "multipart/mixed with lines that end in {name}")
    def test_newlines(self, make: Maker, name: str, newline: str) -> None:
        inside = changeset(part("POST", GROUPS, group(f"A{make.mark}"), "1"))
        answer = multipart(make.caller, part("GET", f"{PRODUCT}/PartNumber"), inside, newline=newline)
        assert statuses(answer) == [200, 201]
        assert "CH-0001" in answer.text
        assert codes(make) == ["A"]

    @pytest.mark.parametrize("form", ["{path}", ODATA + "{path}", "{base}" + ODATA + "{path}"])
    @statement("spec 2.5", "URLs relative to the service, to the host, and absolute: {form}")
    def test_urls(self, service: Caller, form: str) -> None:
        url = form.replace("{path}", f"{PRODUCT}/PartNumber").replace("{base}", service.base_url)
        assert statuses(multipart(service, part("GET", url))) == [200]
        assert json_batch(service, {"method": "GET", "url": url})[0]["body"]["value"] == "CH-0001"

    @statement("spec 2.5", "A changeset is one dataset: all or nothing, and one answer when it fails")
    def test_changeset(self, make: Maker) -> None:
        good, bad = part("POST", GROUPS, group(f"A{make.mark}"), "1"), part("POST", GROUPS, {"Nonsense": 1}, "2")
        assert statuses(multipart(make.caller, changeset(good, bad))) == [400]
        assert codes(make) == []

    @statement("spec 2.5", "Content-ID references in URLs and bodies of a changeset: $1/Lines and {'@odata.id': '$1'}")
    def test_content_id(self, make: Maker) -> None:
        line = {"Product@odata.bind": PRODUCT}
        child = group(f"B{make.mark}", **{"ParentGroup@odata.bind": "$2"})
        inside = changeset(
            part("POST", ORDERS, order(lines=0, ReferenceDocumentNo=make.mark), "1"),
            part("POST", "$1/Lines", line, "3"),
            part("POST", GROUPS, group(f"A{make.mark}"), "2"),
            part("POST", GROUPS, child, "4"),
        )
        assert statuses(multipart(make.caller, inside)) == [201] * 4
        (root,) = make.caller.rows(f"{ORDERS}?$filter=ReferenceDocumentNo eq '{make.mark}'&$expand=Lines")
        make.remove_later(root["@odata.id"])
        assert len(root["Lines"]) == 1
        assert codes(make) == ["A", "B"]
        (found,) = make.caller.rows(f"{GROUPS}?$filter=Code eq 'B{make.mark}'&$expand=ParentGroup($select=Code)")
        assert found["ParentGroup"]["Code"] == f"A{make.mark}"

    @pytest.mark.parametrize("prefer, expected", [("", [400]), ("continue-on-error", [400, 200])])
    @statement("spec 2.5", "A failed part ends a multipart batch unless Prefer: continue-on-error: '{prefer}'")
    def test_errors(self, service: Caller, prefer: str, expected: list[int]) -> None:
        parts = part("GET", "Nonsense"), part("GET", PRODUCT)
        headers = {"Prefer": prefer} if prefer else {}
        assert statuses(multipart(service, *parts, **headers)) == expected


class TestJson:
    @statement("spec 2.5", "A JSON batch answers each request with its id, status, headers and body as JSON")
    def test_answers(self, service: Caller) -> None:
        asked = [{"id": "x", "method": "get", "url": f"{PRODUCT}/PartNumber"}, {"method": "GET", "url": "GetVersion()"}]
        one, two = json_batch(service, *asked)
        assert (one["id"], one["status"], one["body"]["value"]) == ("x", 200, "CH-0001")
        assert one["headers"]["content-type"].startswith("application/json")
        assert (two["id"], two["status"]) == ("2", 200)

    @statement("spec 2.5", "An atomicityGroup is all or nothing")
    def test_group(self, make: Maker) -> None:
        grouped = {"method": "POST", "url": GROUPS, "atomicityGroup": "g"}
        answers = json_batch(
            make.caller, {**grouped, "body": group(f"A{make.mark}")}, {**grouped, "body": {"Nonsense": 1}}
        )
        assert all(answer["status"] >= 400 for answer in answers)
        assert codes(make) == []
        fine = json_batch(make.caller, *({**grouped, "body": group(f"{letter}{make.mark}")} for letter in "AB"))
        assert [answer["status"] for answer in fine] == [201, 201]
        assert codes(make) == ["A", "B"]

    @statement("spec 2.5", "What depends on a failed request is not done: 424")
    def test_depends_on(self, make: Maker) -> None:
        post = {"method": "POST", "url": GROUPS}
        answers = json_batch(
            make.caller,
            {"id": "a", **post, "body": {"Nonsense": 1}},
            {"id": "b", **post, "dependsOn": ["a"], "body": group(f"B{make.mark}")},
            Prefer="continue-on-error",
        )
        assert [answer["status"] for answer in answers] == [400, 424]
        assert codes(make) == []

    @statement("spec 2.5", "References to earlier requests in the URL and in the body: $a")
    def test_references(self, make: Maker) -> None:
        child = group(f"B{make.mark}", **{"ParentGroup@odata.bind": "$a"})
        answers = json_batch(
            make.caller,
            {"id": "a", "method": "POST", "url": GROUPS, "body": group(f"A{make.mark}")},
            {"id": "b", "method": "PATCH", "url": "$a", "dependsOn": ["a"], "body": {"Notes": "later"}},
            {"id": "c", "method": "POST", "url": GROUPS, "dependsOn": ["a"], "body": child},
        )
        assert [answer["status"] for answer in answers] == [201, 204, 201]
        assert codes(make) == ["A", "B"]
        (found,) = make.caller.rows(f"{GROUPS}?$filter=Code eq 'A{make.mark}'")
        assert found["Notes"] == "later"

    @pytest.mark.parametrize("condition, expected", [("$a/$succeeded", 204), ("not $a/$succeeded", 424)])
    @statement("spec 2.5", "if decides whether a request is carried out: {condition}")
    def test_if(self, make: Maker, condition: str, expected: int) -> None:
        answers = json_batch(
            make.caller,
            {"id": "a", "method": "POST", "url": GROUPS, "body": group(f"A{make.mark}")},
            {"id": "b", "method": "PATCH", "url": "$a", "dependsOn": ["a"], "if": condition, "body": {"Notes": "n"}},
        )
        assert [answer["status"] for answer in answers] == [201, expected]
        assert codes(make) == ["A"]

    @statement("spec 2.5", "Each part is authorised as its own request")
    def test_rights(self, anyone: Caller, mark: str) -> None:
        with Person.signed_in(anyone, "demo", scope="openid read") as person:
            answers = json_batch(
                person.api,
                {"method": "POST", "url": GROUPS, "body": group(f"A{mark}")},
                {"method": "GET", "url": f"{PRODUCT}/PartNumber"},
                Prefer="continue-on-error",
            )
        assert [answer["status"] for answer in answers] == [403, 200]

    @statement("spec 2.5", "Parts inherit the TransactionId of the batch unless they carry their own")
    def test_transaction(self, make: Maker) -> None:
        inside, other = make.caller.begin(), make.caller.begin()
        own = {"TransactionId": other.headers["TransactionId"]}
        post = {"method": "POST", "url": GROUPS}
        json_batch(
            inside,
            {**post, "body": group(f"A{make.mark}")},
            {**post, "headers": own, "body": group(f"B{make.mark}")},
        )
        assert codes(make) == []
        inside.end(commit=True)
        assert codes(make) == ["A"]
        other.end(commit=False)

    @statement("spec 2.5", "A batch inside a batch is refused")
    def test_nested(self, service: Caller) -> None:
        (answer,) = json_batch(service, {"method": "POST", "url": "$batch", "body": {"requests": []}})
        assert answer["status"] == 400

    @pytest.mark.parametrize("body", [{}, {"requests": [{}]}, {"requests": [1]}, {"requests": "x"}, []])
    @statement("spec 2.5", "A malformed batch is a 400: {body}")
    def test_malformed(self, service: Caller, body: Any) -> None:
        error_of(service.post("$batch", body), 400)

    @statement("spec 2.5", "The number of parts is limited, with an error that says so")
    def test_limit(self, service: Caller) -> None:
        many = [{"id": str(number), "method": "GET", "url": "x"} for number in range(20_000)]
        error_of(service.post("$batch", {"requests": many}), 400, 413)


class TestManners:
    @pytest.mark.parametrize("highest", ["4.0", "4.01"])
    @statement("spec 2.6", "OData-MaxVersion: {highest} is answered by that OData-Version")
    def test_version(self, service: Caller, highest: str) -> None:
        answer = answered(service.get(PRODUCT, OData_MaxVersion=highest), 200)
        assert answer.headers["OData-Version"] == highest

    @pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png", "application/json;q=0"])
    @statement("spec 2.6", "Accept that cannot be served is 406: {accept}")
    def test_accept(self, service: Caller, accept: str) -> None:
        error_of(service.get(PRODUCT, Accept=accept), 406)

    @pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data"])
    @statement("spec 2.6", "A body of a wrong type is 415: {kind}")
    def test_content_type(self, service: Caller, kind: str) -> None:
        error_of(service.post(GROUPS, "{}", Content_Type=kind), 415)

    @pytest.mark.parametrize(
        "method, path, allowed",
        [
            ("DELETE", PRODUCTS, "GET"),
            ("POST", PRODUCT, "PATCH"),
            ("PATCH", "GetVersion()", "GET"),
            ("POST", "", "GET"),
        ],
    )
    @statement("spec 2.6", "A wrong method is 405 with Allow: {method} {path}")
    def test_method(self, service: Caller, method: str, path: str, allowed: str) -> None:
        answer = service.send(method, path, None if method == "DELETE" else {})
        error_of(answer, 405)
        assert allowed in re.split(", *", answer.headers["Allow"])
        assert method not in re.split(", *", answer.headers["Allow"])

    @statement("spec 2.6", "HEAD is GET without its body")
    def test_head(self, service: Caller) -> None:
        head, get = service.send("HEAD", PRODUCT), service.get(PRODUCT)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["ETag"] == get.headers["ETag"]
        assert head.headers["Content-Type"] == get.headers["Content-Type"]

    @statement("spec 2.6", "OPTIONS says which methods are allowed")
    def test_options(self, service: Caller) -> None:
        answer = answered(service.send("OPTIONS", PRODUCT), 200, 204)
        assert {"GET", "PATCH", "DELETE"} <= set(re.split(", *", answer.headers["Allow"]))

    @statement("spec 2.6", "CORS: the origin of a trusted application is allowed, another is not")
    def test_cors(self, demo: Person) -> None:
        asked = {"Access_Control_Request_Method": "PATCH", "Access_Control_Request_Headers": "Authorization"}
        known, foreign = "http://localhost:5080", "https://evil.example"
        answer = demo.api.send("OPTIONS", PRODUCTS, Origin=known, **asked)
        assert answer.headers["Access-Control-Allow-Origin"] == known
        assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]
        assert demo.api.get(PRODUCT, Origin=known).headers["Access-Control-Allow-Origin"] == known
        for refused in (demo.api.send("OPTIONS", PRODUCTS, Origin=foreign, **asked), demo.api.get("", Origin=foreign)):
            assert "Access-Control-Allow-Origin" not in refused.headers

    @statement("spec 2.6", "A large answer is gzip for who accepts it and plain for who does not")
    def test_gzip(self, service: Caller) -> None:
        zipped = service.http.get(
            service.url("$metadata"), headers={**service.headers, "Accept-Encoding": "gzip"}, stream=True, timeout=60
        )
        assert zipped.headers["Content-Encoding"] == "gzip"
        assert b"Edmx" in gzip.decompress(zipped.raw.read(decode_content=False))
        assert "Content-Encoding" not in service.get("$metadata", Accept_Encoding="identity").headers

    @statement("spec 2.6", "Data is answered with Vary, Content-Language and Cache-Control: no-store")
    def test_headers(self, service: Caller) -> None:
        for path in (PRODUCTS, PRODUCT, f"{PRODUCT}/Name"):
            headers = answered(service.get(path), 200).headers
            assert headers["Cache-Control"] == "no-store"
            assert headers["Content-Language"]
            assert {"Accept", "Accept-Language", "Authorization"} <= set(re.split(", *", headers["Vary"]))

    @statement("spec 2.6", "URLs up to 8 KB are read by GET")
    def test_long_url(self, service: Caller) -> None:
        clause = " or ".join(["PartNumber eq 'CH-0001'"] * 200)
        path = f"{PRODUCTS}?$filter={clause}"[:7000].rpartition(" or ")[0]
        assert len(service.rows(path)) == 1

    @statement("spec 2.6", "Longer queries go by POST Set/$query")
    def test_query(self, service: Caller) -> None:
        clause = " or ".join(["PartNumber eq 'CH-0001'"] * 1000)
        answer = service.post(f"{PRODUCTS}/$query", f"$filter={clause}&$select=Id", Content_Type="text/plain")
        assert [row["@odata.id"] for row in answered(answer, 200).json()["value"]] == [PRODUCT]
        assert len(clause) > 8192

    @statement("spec 2.6", "The language: culture=, else the cookie .AspNetCore.Culture, else Accept-Language")
    def test_language(self, service: Caller) -> None:
        def language(path: str = PRODUCT, **headers: str) -> str:
            return str(service.get(path, **headers).headers["Content-Language"])

        cookie = {"Cookie": ".AspNetCore.Culture=c%3Dde-DE%7Cuic%3Dde-DE"}
        assert language(Accept_Language="bg") == "bg"
        assert language(Accept_Language="bg", **cookie) == "de"
        assert language(f"{PRODUCT}?culture=en", Accept_Language="bg", **cookie) == "en"

    @statement("spec 2.6", "Messages and display texts are in the language of the request")
    def test_texts(self, service: Caller) -> None:
        english = error_of(service.get("Nonsense"), 400)["message"]
        assert error_of(service.get("Nonsense", Accept_Language="bg"), 400)["message"] != english
        path = f"{PRODUCT}?$select=DisplayText"
        texts = {service.read(path, Accept_Language=code)["DisplayText"] for code in ("en", "bg", "de")}
        assert len(texts) == 3


@statement("spec 2.5", "Lines added by a batch belong to their order")
def test_lines(make: Maker) -> None:
    root = make.order()
    json_batch(make.caller, {"method": "POST", "url": f"{root}/Lines", "body": {"Product@odata.bind": PRODUCT}})
    assert len(make.caller.rows(f"{LINES}?$filter=SalesOrder/Id eq {id_of({'@odata.id': root})}")) == 2
