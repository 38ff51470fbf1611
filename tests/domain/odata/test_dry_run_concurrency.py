"""Dry runs beside real writes, each on a database connection of its own (spec 12, 12.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.custom_entities.cars import CARS, ENTITIES
from tests.domain.custom_entities.conftest import admin, no_model_of_an_emptied_database
from tests.domain.odata.test_concurrent_writes import at_once
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, order_body
from tests.rules.cast import World
from tests.support.api import Api, id_of

__all__ = ["admin", "no_model_of_an_emptied_database"]

DRY_RUN = "erpnet.dry-run"
TURNS = 6


@pytest.fixture
def committed(transactional_db: None, api: Api) -> Api:
    """A caller whose entities other connections see."""
    return api


def test_dry_runs_and_writes_of_the_same_rows_do_not_disturb_each_other(committed: Api, world: World) -> None:
    order = f"{ORDERS}({id_of(committed.create(ORDERS, order_body(world)))})"

    def work(api: Api, number: int) -> list[Any]:
        answers = []
        for turn in range(TURNS):
            prefer = {"Prefer": DRY_RUN} if number % 2 else {}
            text = f"{'dry' if number % 2 else 'real'} {number} {turn}"
            answers.append(api.patch(order, {"ReferenceDocumentNo": text}, **prefer))
            answers.append(api.post(ORDERS, order_body(world, ReferenceDocumentNo=text), **prefer))
        return answers

    given = at_once(committed, work, callers=4)
    assert {answer.status_code for answers in given for answer in answers} == {201, 204}
    stored = committed.read(f"{ORDERS}?$select=DocumentNo,ReferenceDocumentNo")["value"]
    assert len(stored) == 1 + 2 * TURNS
    assert not any(row["ReferenceDocumentNo"].startswith("dry") for row in stored)
    # Without gaps: a dry run has taken no number.
    numbers = sorted(int(row["DocumentNo"]) for row in stored)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_dry_batches_that_lock_rows_in_opposite_order_all_answer(committed: Api, world: World) -> None:
    paths = [
        f"{CURRENCIES}({id_of(committed.create(CURRENCIES, {'CurrencySign': s, 'Name': s}))})" for s in ("USD", "GBP")
    ]

    def work(api: Api, number: int) -> list[Any]:
        order = paths if number % 2 else paths[::-1]
        parts = [
            {"id": str(n), "method": "PATCH", "url": url, "body": {"Name": f"n{number}"}} for n, url in enumerate(order)
        ]
        prefer = {"Prefer": DRY_RUN} if number < 3 else {}
        return [api.post("$batch", {"requests": parts}, **prefer) for _ in range(TURNS)]

    given = at_once(committed, work, callers=4)
    statuses = {part["status"] for answers in given for answer in answers for part in answer.json()["responses"]}
    assert statuses == {204}
    assert {row["Name"] for row in committed.read(CURRENCIES)["value"]} == {"Euro", "n3"}


def test_a_definition_that_a_dry_run_changes_is_served_to_nobody(admin: Api) -> None:
    body = {"Name": "Custom.Fleet.Cars", "Attributes": [{"Name": "Code", "AttributeType": "Text", "MaxLength": 10}]}
    parts = [
        {"id": "1", "method": "POST", "url": ENTITIES, "body": body},
        {"id": "2", "method": "POST", "url": CARS, "body": {"Code": "A"}},
        {"id": "3", "method": "POST", "url": CARS, "body": {"Code": "A"}, "atomicityGroup": "g"},
    ]
    answer = admin.post("$batch", {"requests": parts}, Prefer=f"{DRY_RUN}, continue-on-error")
    created, *later = answer.json()["responses"]
    assert created["status"] == 201
    # A real batch would serve the cars to its later parts; a dry run says that it cannot.
    for part in later:
        assert part["status"] == 501
        assert "definition" in part["body"]["error"]["message"]
    assert admin.get(CARS).status_code == 400
    assert admin.post(ENTITIES, body).status_code == 201
    assert admin.post(CARS, {"Code": "A"}, Prefer=DRY_RUN).status_code == 201
    assert admin.get(f"{CARS}/$count").content == b"0"
