"""Another caller commits in the middle of a write: after it has read, before it writes. Neither waits for the other.

On SQLite a write waits for the lock of the only writer only when it has computed what it writes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client

from domain.model.registry import repositories
from foundation import cache_versions
from tests.domain.odata.test_writing import GROUPS, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, dataset, write_rule
from tests.support.api import Api, error_of, id_of

SYSTEMS = "General_Products_CodingSystems"
PRODUCT = "General.Products.Products"
CURRENCY = "General.Currencies.Currencies"
#: Much more than a commit takes, less than a writer waits for SQLite's lock.
PATIENCE_SECONDS = 10


@pytest.fixture
def committed(transactional_db: None, api: Api) -> Api:
    """A caller whose entities other connections see."""
    return api


@contextmanager
def meanwhile(api: Api, work: Callable[[Api], Any], *, after: str = "") -> Iterator[list[Any]]:
    """In the next database transaction another caller does the work; what it gave.

    after   when the transaction has read from this repository; as soon as it has begun without one
    """
    given: list[Any] = []
    threads: list[threading.Thread] = []
    table = f'"{repositories[after].model._meta.db_table}"' if after else "foundation_cacheversion"

    def run() -> None:
        try:
            given.append(work(Api(Client(), api.token)))
        finally:
            connections.close_all()

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if not threads and connection.in_atomic_block and sql.startswith("SELECT") and table in sql:
            threads.append(threading.Thread(target=run))
            threads[0].start()
            threads[0].join(PATIENCE_SECONDS)
            assert not threads[0].is_alive(), "the other caller waits for this one"
        return result

    with connection.execute_wrapper(wrapper):
        yield given
    assert given, f"nothing was read from {table}"


def test_two_who_change_one_entity_both_hold(committed: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    version = committed.read(f"{product}?$select=ObjectVersion")["ObjectVersion"]
    with meanwhile(committed, lambda own: own.patch(product, {"PartNumber": "B"}), after=PRODUCT) as other:
        answer = committed.patch(product, {"ExternalId": "A"})
    assert (answer.status_code, other[0].status_code) == (204, 204)
    stored = committed.read(f"{product}?$select=PartNumber,ExternalId,ObjectVersion")
    assert (stored["PartNumber"], stored["ExternalId"]) == ("B", "A")
    assert stored["ObjectVersion"] == version + 2


def test_who_names_a_version_that_is_overtaken_is_refused(committed: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    tag = committed.get(product)["ETag"]
    with meanwhile(committed, lambda own: own.patch(product, {"PartNumber": "B"}), after=PRODUCT):
        answer = committed.patch(product, {"PartNumber": "A"}, If_Match=tag)
    assert answer.status_code == 412
    assert committed.read(product)["PartNumber"] == "B"


def test_an_order_is_made_beside_another(committed: Api, world: World) -> None:
    def post(own: Api) -> Any:
        return own.create(ORDERS, order_body(world, {"Quantity": 1}))["DocumentNo"]

    with meanwhile(committed, post, after=PRODUCT) as other:
        number = post(committed)
    assert [*other, number] == sorted({*other, number})


def test_a_value_that_another_has_taken_is_a_duplicate_as_if_it_came_first(committed: Api, world: World) -> None:
    def post(own: Api) -> Any:
        return own.post(GROUPS, {"Code": "SAME", "Name": {"EN": "Group"}})

    with meanwhile(committed, post) as other:
        answer = post(committed)
    again = post(committed)
    assert (other[0].status_code, answer.status_code) == (201, again.status_code)
    assert error_of(answer)["type"] == "DuplicateValue"
    assert error_of(answer)["message"] == error_of(again)["message"]


def test_what_two_look_for_is_made_once(committed: Api) -> None:
    def post(own: Api) -> Any:
        return own.post(SYSTEMS, {"@erpnet.action": "merge", "ExternalId": "X", "Name": {"EN": "System"}})

    with meanwhile(committed, post) as other:
        answer = post(committed)
    assert {answer.status_code, other[0].status_code} == {200, 201}
    assert id_of(answer.json()) == id_of(other[0].json())


def test_a_rule_that_comes_meanwhile_holds(committed: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"

    def forbid(own: Api) -> str:
        return write_rule(world, PRODUCT, ["COMMIT"], actions=[("FAIL", ("Constant", "No more"))])

    with meanwhile(committed, forbid, after=PRODUCT):
        answer = committed.patch(product, {"PartNumber": "A"})
    assert error_of(answer)["message"].endswith("No more")
    assert committed.read(product)["PartNumber"] != "A"


def read_currencies_in_the_commit(world: World) -> None:
    """A rule of products, whose script does."""
    write_rule(
        world, PRODUCT, ["COMMIT"], ScriptLanguage="JavaScript", Layer="Common",
        ScriptText="Domain.General.Currencies.CurrenciesRepository.query({});",
    )  # fmt: skip


def test_others_write_while_a_script_runs(committed: Api, world: World) -> None:
    read_currencies_in_the_commit(world)
    product = f"{PRODUCTS}({world.product})"

    def post(own: Api) -> Any:
        return own.post(GROUPS, {"Code": "NEW", "Name": {"EN": "Group"}})

    with meanwhile(committed, post, after=CURRENCY) as other:
        answer = committed.patch(product, {"PartNumber": "A"})
    assert (answer.status_code, other[0].status_code) == (204, 201)


def test_what_refers_to_an_entity_that_is_deleted_meanwhile_is_refused(committed: Api, world: World) -> None:
    group = committed.create(GROUPS, {"Code": "GONE", "Name": {"EN": "Group"}})["@odata.id"]
    body = {
        "PartNumber": "N1", "Name": {"EN": "New"}, "ProductGroup@odata.bind": group,
        "MeasurementUnit@odata.bind": f"General_MeasurementUnits({world.unit})",
    }  # fmt: skip
    with meanwhile(committed, lambda own: own.delete(group), after="General.Products.ProductGroups") as other:
        answer = committed.post(PRODUCTS, body)
    assert other[0].status_code == 204
    again = committed.post(PRODUCTS, body)
    assert (answer.status_code, error_of(answer)["type"]) == (again.status_code, error_of(again)["type"])
    assert answer.status_code != 201
    assert committed.read(f"{PRODUCTS}?$filter=PartNumber eq 'N1'")["value"] == []


def test_a_change_set_is_made_beside_another_write(committed: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    parts = [
        {"id": "1", "atomicityGroup": "g", "method": "PATCH", "url": product, "body": {"ExternalId": "A"}},
        {"id": "2", "atomicityGroup": "g", "method": "POST", "url": SYSTEMS, "body": {"Name": {"EN": "System"}}},
    ]
    with meanwhile(committed, lambda own: own.patch(product, {"PartNumber": "B"}), after=PRODUCT) as other:
        answers = committed.post("$batch", {"requests": parts}).json()["responses"]
    assert ([answer["status"] for answer in answers], other[0].status_code) == ([204, 201], 204)
    stored = committed.read(f"{product}?$select=PartNumber,ExternalId")
    assert (stored["PartNumber"], stored["ExternalId"]) == ("B", "A")
    assert len(committed.read(SYSTEMS)["value"]) == 1


def test_a_refused_write_leaves_nothing_to_the_next_one_of_its_thread(committed: Api, world: World) -> None:
    """Whose commit is a part of somebody else's transaction, such as that of a page."""
    assert committed.patch(f"{PRODUCTS}({world.product})", {"ObjectVersion": 999}).status_code == 412
    with transaction.atomic():
        cache_versions.bump("any")
    ds = dataset(world.context)
    record = ds.load(PRODUCT, world.product)
    assert record is not None
    ds.set(record, "PartNumber", "B")
    with transaction.atomic():
        ds.commit()
    assert committed.read(f"{PRODUCTS}({world.product})?$select=PartNumber")["PartNumber"] == "B"


@pytest.mark.parametrize("by_post", [False, True], ids=["GET", "$query"])
def test_a_read_in_a_transaction_without_changes_keeps_nobody_waiting(
    committed: Api, world: World, by_post: bool
) -> None:
    product, begun = f"{PRODUCTS}({world.product})", committed.begin()
    with meanwhile(committed, lambda own: own.patch(product, {"PartNumber": "B"}), after=PRODUCT) as other:
        if by_post:
            answer = begun.post(f"{PRODUCTS}/$query", "$select=PartNumber", Content_Type="text/plain")
        else:
            answer = begun.get(product)
    assert (answer.status_code, other[0].status_code) == (200, 204)


def test_a_batch_in_a_transaction_without_changes_keeps_nobody_waiting(committed: Api, world: World) -> None:
    product, begun = f"{PRODUCTS}({world.product})", committed.begin()
    reads = {"requests": [{"id": str(each), "method": "GET", "url": product} for each in range(2)]}
    with meanwhile(committed, lambda own: own.patch(product, {"PartNumber": "B"}), after=PRODUCT) as other:
        answers = json.loads(begun.post("$batch", reads).content)["responses"]
    assert ([answer["status"] for answer in answers], other[0].status_code) == ([200, 200], 204)


def test_a_batch_in_an_unknown_transaction_is_refused_as_a_whole(committed: Api) -> None:
    refused = committed.within("0" * 32).post("$batch", {"requests": [{"id": "1", "method": "GET", "url": PRODUCTS}]})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidTransactionId")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="writers of PostgreSQL do not wait for one another")
def test_times_of_changes_are_in_the_order_of_commits(committed: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    read_currencies_in_the_commit(world)
    changed, new = "AggregateLastUpdateTimeUtc", {"Name": {"EN": "System"}}
    with meanwhile(committed, lambda own: own.create(SYSTEMS, new), after=CURRENCY) as other:
        assert committed.patch(product, {"PartNumber": "A"}).status_code == 204
    first = committed.read(f"{other[0]['@odata.id']}?$select={changed}")[changed]
    second = committed.read(f"{product}?$select={changed}")[changed]
    assert first < second
