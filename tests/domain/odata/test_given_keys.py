"""Keys that the caller gives: two entities never share one, whoever wrote the first (spec 02, 2.3; spec 07)."""

from __future__ import annotations

import uuid

import pytest

from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of

CURRENCIES = "General_Currencies_Currencies"


def _currency(key: str, sign: str) -> dict[str, str]:
    return {"Id": key, "CurrencySign": sign, "Name": sign}


def _assert_taken(response: Answer, key: str) -> None:
    error = error_of(response)
    assert (response.status_code, error["code"], error["type"]) == (500, 2129, "DuplicateValue"), error
    assert error["parameters"][:3] == [CURRENCIES, "Id", key]


def test_a_stored_key_is_taken(api: Api) -> None:
    key = str(uuid.uuid4())
    api.create(CURRENCIES, _currency(key, "USD"))
    _assert_taken(api.post(CURRENCIES, _currency(key, "GBP")), key)
    assert api.read(f"{CURRENCIES}({key})")["CurrencySign"] == "USD"


def test_a_pending_key_is_taken_and_its_entity_stays(api: Api) -> None:
    key = str(uuid.uuid4())
    inside = api.begin()
    inside.create(CURRENCIES, _currency(key, "USD"))
    _assert_taken(inside.post(CURRENCIES, _currency(key, "GBP")), key)
    assert inside.end().status_code == 204
    assert api.read(f"{CURRENCIES}({key})")["CurrencySign"] == "USD"


def test_a_key_that_somebody_else_took_meanwhile_is_told_at_each_read_and_at_the_commit(api: Api) -> None:
    key = str(uuid.uuid4())
    inside = api.begin()
    inside.create(CURRENCIES, _currency(key, "USD"))
    api.create(CURRENCIES, _currency(key, "GBP"))
    _assert_taken(inside.get(f"{CURRENCIES}?$filter=Id eq {key}"), key)
    _assert_taken(inside.end(), key)
    assert inside.end(commit=False).status_code == 204


@pytest.mark.parametrize("action", ["create", "merge"])
def test_two_parts_of_a_changeset_cannot_share_a_key(api: Api, action: str) -> None:
    key = str(uuid.uuid4())
    requests = [
        {
            "id": str(number),
            "atomicityGroup": "g",
            "method": "POST",
            "url": CURRENCIES,
            "body": {**_currency(key, sign), "@erpnet.action": action, "@erpnet.findBy": {"Code": sign}},
        }
        for number, sign in enumerate(("USD", "GBP"))
    ]
    answers = api.post("$batch", {"requests": requests}).json()["responses"]
    assert {answer["status"] for answer in answers} <= {424, 500}
    assert answers[-1]["body"]["error"]["code"] == 2129
    assert api.get(f"{CURRENCIES}({key})").status_code == 404


def test_the_key_of_a_person_is_not_that_of_a_company(api: Api, world: World) -> None:
    key = str(uuid.uuid4())
    person = api.post("General_Contacts_Persons", {"Id": key, "FirstName": {"EN": "A"}, "LastName": {"EN": "B"}})
    assert person.status_code == 201, person.content
    company = api.post("General_Contacts_Companies", {"Id": key, "Name": {"EN": "C"}})
    assert error_of(company)["type"] == "DuplicateValue", company.content


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_an_entity_deleted_in_the_transaction_is_not_created_again(api: Api, method: str) -> None:
    made = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})["@odata.id"]
    inside = api.begin()
    assert inside.delete(made).status_code == 204
    for attempt in (inside.request(method, made, {"CurrencySign": "USD", "Name": "Again"}), inside.delete(made)):
        assert (attempt.status_code, error_of(attempt)["type"]) == (404, "EntityNotFound"), attempt.content
    inside.end()
    assert api.get(made).status_code == 404
