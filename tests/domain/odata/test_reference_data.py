"""Rows of reference data are cached: a write sees each committed change of them, and no other."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.models import F

from domain.dataset.commit.retries import ConcurrentUpdate, RetryState
from domain.dataset.tables.row_storage import RowStorage
from domain.dataset.unit.autoflush import rolled_back
from domain.entities.general_product_groups import ProductGroup
from domain.model.reference_data import CACHE_VERSION
from foundation import cache_versions, errors
from foundation.guids import new_guid
from platform_site.middleware import QueryCounter
from tests.domain.odata.test_writing import GROUPS, PRODUCTS
from tests.rules.cast import World, dataset
from tests.support.api import Api, id_of

UNITS = "General_Products_MeasurementUnits"
LOCATIONS = "General_Contacts_CompanyLocations"
GROUP_REPOSITORY = "General.Products.ProductGroups"


def unit_of_new_product(api: Api, world: World, number: str) -> str:
    """The unit that a new product takes from its group."""
    return id_of(api.create(PRODUCTS, new_product(world, number))["MeasurementUnit"])


def new_product(world: World, number: str) -> dict[str, Any]:
    return {
        "PartNumber": number, "Name": {"EN": number}, "ProductGroup@odata.bind": f"{GROUPS}({world.group})",
    }  # fmt: skip


@pytest.fixture
def units(api: Api, world: World) -> tuple[str, str]:
    """The unit of the group, which the process knows, and another one."""
    category = api.read(f"{UNITS}({world.unit})?$select=MeasurementCategory")["MeasurementCategory"]
    other = api.create(UNITS, {"Name": {"EN": "box"}, "Code": "box", "MeasurementCategory": category})
    assert api.patch(f"{GROUPS}({world.group})", bound(world.unit)).status_code == 204
    assert unit_of_new_product(api, world, "NEW-1") == world.unit
    return world.unit, id_of(other)


def bound(unit: str) -> dict[str, str]:
    return {"DefaultMeasurementUnit@odata.bind": f"{UNITS}({unit})"}


def test_a_committed_change_holds_for_the_next_write(api: Api, world: World, units: tuple[str, str]) -> None:
    assert api.patch(f"{GROUPS}({world.group})", bound(units[1])).status_code == 204
    assert unit_of_new_product(api, world, "NEW-2") == units[1]


def test_a_change_of_a_failed_change_set_holds_nowhere(api: Api, world: World, units: tuple[str, str]) -> None:
    parts: list[dict[str, Any]] = [
        {"method": "PATCH", "url": f"{GROUPS}({world.group})", "body": bound(units[1])},
        {"method": "POST", "url": PRODUCTS, "body": new_product(world, "NEW-2")},
        {"method": "POST", "url": PRODUCTS, "body": {**new_product(world, "NEW-3"), "Name": None}},
    ]
    requests = [
        {"id": str(number), "atomicityGroup": "g", "headers": {"Content-Type": "application/json"}, **part}
        for number, part in enumerate(parts)
    ]
    answers = api.post("$batch", {"requests": requests}).json()["responses"]
    assert answers[-1]["status"] >= 400
    assert unit_of_new_product(api, world, "NEW-4") == units[0]


def test_a_dry_run_leaves_nothing(api: Api, world: World, units: tuple[str, str]) -> None:
    answer = api.patch(f"{GROUPS}({world.group})", bound(units[1]), Prefer="erpnet.dry-run")
    assert answer.status_code < 300
    assert unit_of_new_product(api, world, "NEW-2") == units[0]


def test_a_pending_change_is_seen_by_its_transaction_only(api: Api, world: World, units: tuple[str, str]) -> None:
    inside = api.begin()
    assert inside.patch(f"{GROUPS}({world.group})", bound(units[1])).status_code < 300
    made = inside.create(PRODUCTS, new_product(world, "NEW-2"))
    assert id_of(inside.read(f"{PRODUCTS}({made['Id']})?$select=MeasurementUnit")["MeasurementUnit"]) == units[1]
    assert unit_of_new_product(api, world, "NEW-3") == units[0]
    assert inside.end().status_code < 300
    assert unit_of_new_product(api, world, "NEW-4") == units[1]


def test_what_a_caller_changes_in_one_request_stays_out_of_the_next(
    api: Api, world: World, units: tuple[str, str]
) -> None:
    """A refused request has changed the record, not the cached row."""
    body = {**new_product(world, "NEW-2"), "Name": None}
    body["ProductGroup"] = {"@erpnet.action": "merge", "Id": world.group, **bound(units[1])}
    del body["ProductGroup@odata.bind"]
    assert api.post(PRODUCTS, body).status_code >= 400
    assert unit_of_new_product(api, world, "NEW-3") == units[0]


def test_a_cached_row_costs_no_statement(api: Api, world: World, units: tuple[str, str]) -> None:
    counter = QueryCounter()
    with connection.execute_wrapper(counter):
        unit_of_new_product(api, world, "NEW-2")
    known = counter.count
    assert api.patch(f"{GROUPS}({world.group})", bound(units[1])).status_code == 204
    counter = QueryCounter()
    with connection.execute_wrapper(counter):
        unit_of_new_product(api, world, "NEW-3")
    # The group, its company's and its unit's rows are read anew.
    assert known < counter.count


def test_rows_that_are_rolled_back_are_not_cached(world: World) -> None:
    """Queries on pending changes write them, and take them back without a commit."""

    with rolled_back() as begin:
        begin()
        ProductGroup.objects.update(code="PENDING")
        assert code_of_group(world) == "PENDING"
    assert code_of_group(world) == "G1"


def test_a_part_gives_its_cached_root_a_new_version(api: Api, world: World) -> None:
    """The owner of a bank account may be any party, so the account itself is no reference data."""
    company = api.read("General_EnterpriseCompanies?$select=Company&$top=1")["value"][0]["Company"]
    location = api.create(LOCATIONS, {"LocationName": {"EN": "Shop"}, "Company": company})
    path = f"{LOCATIONS}({location['Id']})"
    assert api.patch(path, {"WorkingTime": "9-17"}).status_code == 204
    assert api.patch(path, {"WorkingTime": "9-17"}).status_code == 204  # caches the row
    api.create("General_Contacts_PartyBankAccounts", {"Party": {"@odata.id": path}, "BankAccountCode": "BG1"})
    assert api.patch(path, {"WorkingTime": "9-18"}).status_code == 204
    assert api.read(path)["WorkingTime"] == "9-18"


def test_a_repeated_write_sees_what_others_wrote_before_it_had_the_lock(
    transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would have the wrong version again, and at last refuse the caller."""
    if not connection.features.has_select_for_update:
        pytest.skip("On SQLite a repeated write takes the lock before it reads the cache versions.")
    first = dataset(world.context).load(GROUP_REPOSITORY, world.group)
    assert first is not None
    retry = RetryState()
    assert retry.should_repeat(ConcurrentUpdate(errors.VERSION_CONFLICT, "", "", "", record=first))
    lock_versions = RowStorage.lock_versions

    def lock_after_another_node(storage: RowStorage, ids: Sequence[str]) -> dict[str, int]:
        in_another_connection(lambda: commit_of_another_node(world))
        return lock_versions(storage, ids)

    monkeypatch.setattr(RowStorage, "lock_versions", lock_after_another_node)
    with retry.transaction():
        again = dataset(world.context).load(GROUP_REPOSITORY, world.group)
        assert again is not None
        assert (again.code, again.version) == ("OTHER", first.version + 1)


def test_what_runs_after_a_commit_sees_all_of_it(
    transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was to run before the transaction had changed the row."""
    # As outside of tests: only the hook of a bump, which runs later, expires what the process knows.
    monkeypatch.setattr(cache_versions, "bump", inspect.unwrap(cache_versions.bump))
    assert code_of_group(world) == "G1"
    seen: list[str] = []
    with transaction.atomic():
        transaction.on_commit(lambda: seen.append(code_of_group(world)))
        ds = dataset(world.context)
        group = ds.load(GROUP_REPOSITORY, world.group)
        assert group is not None
        ds.assign(group, "Code", "G2")
        ds.commit()
    assert seen == ["G2"]


def code_of_group(world: World) -> str:
    group = dataset(world.context).load(GROUP_REPOSITORY, world.group)
    assert group is not None
    return str(group.code)


def commit_of_another_node(world: World) -> None:
    """A change of the group, which this process is not told of."""
    with transaction.atomic(), connection.cursor() as cursor:
        ProductGroup.objects.filter(pk=world.group).update(code="OTHER", object_version=F("object_version") + 1)
        cursor.execute("UPDATE foundation_cacheversion SET value = value + 1 WHERE name = %s", [CACHE_VERSION])


def in_another_connection(work: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failures == []


@pytest.mark.parametrize("unknown, statements", [(5, 0), (50, 1)])
def test_a_result_is_cached_for_few_keys_only(world: World, unknown: int, statements: int) -> None:
    """Otherwise a caller could fill the memory with lists of unknown keys."""
    keys = [world.unit, *(new_guid() for _ in range(unknown))]

    def load() -> None:
        assert list(dataset(world.context).load_many("General.Products.MeasurementUnits", keys)) == [world.unit]

    load()
    counter = QueryCounter()
    with connection.execute_wrapper(counter):
        load()
    assert counter.count == statements
