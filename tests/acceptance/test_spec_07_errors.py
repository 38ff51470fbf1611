"""spec 07 Errors"""

from __future__ import annotations

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.objects import GROUPS, ORDERS, PRODUCTS, Maker
from tests.acceptance.people import Person
from tests.acceptance.statements import statement

NOBODY = "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    "what, path",
    [
        ("an unknown set", "Nonsense"),
        ("an unknown property", f"{PRODUCTS}?$filter=Nonsense eq 1"),
        ("a malformed query option", f"{PRODUCTS}?$filter=Code eq"),
        ("a malformed literal", f"{PRODUCTS}?$filter=Active eq 17"),
        ("an unknown option", f"{PRODUCTS}?$nonsense=1"),
    ],
)
@statement("spec 07", "400 for {what}")
def test_bad_request(service: Caller, what: str, path: str) -> None:
    error_of(service.get(path), 400)


@statement("spec 07", "400 for a body that is not JSON, and for an unknown property in one, which the error names")
def test_bad_body(service: Caller) -> None:
    error_of(service.post(GROUPS, "{", Content_Type="application/json"), 400)
    assert error_of(service.post(GROUPS, {"Nonsense": 1}), 400)["target"] == "Nonsense"


@statement("spec 07", "400 for an invalid TransactionId")
def test_transaction_id(service: Caller) -> None:
    error_of(service.get(f"{ORDERS}?$top=1", TransactionId="0" * 32), 400)


@statement("spec 07", "401 without a token, with WWW-Authenticate: Bearer; an invalid token has error= in it")
def test_unauthorized(anyone: Caller) -> None:
    assert anyone.get(ORDERS).headers["WWW-Authenticate"].startswith("Bearer")
    refused = anyone.with_token("nonsense").get(ORDERS)
    error_of(refused, 401)
    assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]


@statement("spec 07", "403 for what the caller's roles do not permit")
def test_forbidden(demo: Person, make: Maker) -> None:
    error_of(demo.api.patch(make.group(), {"Notes": "x"}), 403)


@statement("spec 07", "404 for an entity that is not there")
def test_not_found(service: Caller) -> None:
    error_of(service.get(f"{PRODUCTS}({NOBODY})"), 404)


@statement("spec 07", "405 with Allow for a method that the address does not take")
def test_method(service: Caller) -> None:
    refused = service.delete(GROUPS)
    error_of(refused, 405)
    assert "GET" in refused.headers["Allow"]


@statement("spec 07", "406 for a type that cannot be served; 415 for a body of the wrong type")
def test_types(service: Caller) -> None:
    error_of(service.get(f"{PRODUCTS}?$top=1", Accept="image/png"), 406)
    error_of(service.post(GROUPS, "<a/>", Content_Type="application/xml"), 415)


@statement("spec 07", "412 when the version has moved on")
def test_version(make: Maker) -> None:
    group = make.group()
    answered(make.caller.patch(group, {"Notes": "1"}, If_Match='W/"1"'), 204)
    error_of(make.caller.patch(group, {"Notes": "2"}, If_Match='W/"1"'), 412)


@statement("spec 07", "500 for what the model refuses: a missing required attribute is named")
def test_refused(service: Caller, mark: str) -> None:
    assert "Name" in error_of(service.post(GROUPS, {"Code": f"G-{mark}"}), 500)["message"]


@statement("spec 07", "The error's language is named by Content-Language")
@pytest.mark.parametrize("language", ["en", "bg", "de"])
def test_language(service: Caller, language: str) -> None:
    assert service.get("Nonsense", Accept_Language=language).headers["Content-Language"] == language


@statement("spec 07", "info has the request's correlation id, which X-Request-Id has too")
def test_correlation(service: Caller) -> None:
    refused = service.get("Nonsense")
    assert refused.headers["X-Request-Id"] in error_of(refused, 400)["info"]


@statement("spec 07", "In a batch the same object appears in the part that failed")
def test_batch(service: Caller) -> None:
    parts = [{"id": "1", "method": "GET", "url": "Nonsense"}]
    (answer,) = answered(service.post("$batch", {"requests": parts}), 200).json()["responses"]
    assert (answer["status"], answer["body"]["error"]["type"]) == (400, "UnknownEntitySet")
