"""The header Allow of OPTIONS and of 405 has the methods that the resource answers (RFC 9110, 10.2.1)."""

from __future__ import annotations

import pytest

from tests.domain.odata.test_writing import CURRENCIES, GROUPS, PRODUCTS
from tests.support.api import Api

# DELETE is the last: the entity is gone then.
METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "MERGE", "TRACE", "CONNECT", "BREW", "DELETE")
RESOURCES = [
    "",
    "$metadata",
    "$batch",
    CURRENCIES,
    f"{CURRENCIES}/$count",
    f"{CURRENCIES}/$ref",
    "{entity}",
    "{entity}/Name",
    "{entity}/Name/$value",
    PRODUCTS,
    GROUPS,
    "BeginTransaction",
    "Import",
    "WaitForChanges()",
]


@pytest.mark.parametrize("resource", RESOURCES)
def test_allow_has_what_the_resource_answers(api: Api, resource: str) -> None:
    entity = api.create(CURRENCIES, {"CurrencySign": "XTS", "Name": "Test"})["@odata.id"]
    path = resource.format(entity=entity)
    offered = api.request("OPTIONS", path).headers["Allow"].split(", ")
    for method in METHODS:
        answer = api.request(method, path)
        assert (answer.status_code == 405) == (method not in offered), (method, offered, answer.content)
        if answer.status_code == 405:
            assert answer.headers["Allow"].split(", ") == offered, method
