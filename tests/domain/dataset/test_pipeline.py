"""The commit pipeline (spec 03, 3.1): order, all or nothing, what is written and how."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.dataset.commit import pipeline
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.tables.models import ChangeFeedEntry
from domain.model.attributes import Calculation
from domain.model.registry import repositories
from foundation import errors
from tests.rules.cast import LINES, ORDERS, PRODUCTS, World, dataset, new_line, new_order, new_product

CURRENCIES = "General.Currencies.Currencies"
PRICES = "Crm.Pricing.ProductPrices"
_WRITES = re.compile(r'^(?:\d+ times: )?(INSERT INTO|UPDATE|DELETE FROM) "(\w+)"')


def writes(captured: CaptureQueriesContext) -> list[tuple[str, str]]:
    """(verb, table) of the statements that wrote, in order."""
    found = (_WRITES.match(query["sql"].replace("\n", " ")) for query in captured.captured_queries)
    return [(match[1].split()[0], match[2]) for match in found if match is not None]


def table(repository: str) -> str:
    """The repository's own table."""
    return repositories[repository].table


def test_the_stages_stand_in_the_order_of_the_specification() -> None:
    assert [stage.__name__ for stage in pipeline.STAGES] == [
        "repeat_lookups", "check_versions", "run_until_stable", "begin_to_write", "plan_writes", "note_before",
        "check_references", "write_deletes", "write_inserts", "write_updates", "touch_roots",
        "write_change_feed", "write_history", "write_audit", "bump_cache_versions", "check_row_policies",
        "check_authorities", "run_deferred", "announce", "note_changes",
    ]  # fmt: skip


def test_deletes_go_first_then_inserts_by_dependency_then_updates(world: World, ds: Dataset) -> None:
    order = new_order(ds, world)
    gone = new_line(ds, world, order)
    ds.commit()
    changed = ds.load(PRODUCTS, world.product)
    assert changed is not None
    # Entered against the order in which they must be written.
    ds.set(changed, "PartNumber", "P9")
    group = ds.create("General.Products.ProductGroups", {"Code": "G9", "Name": {"EN": "New"}})
    product = new_product(ds, world, "P7", ProductGroup=group.id)
    new_line(ds, world, order, Product=product.id)
    ds.delete(gone)
    with CaptureQueriesContext(connection) as captured:
        ds.commit()
    groups, products, lines = (table(name) for name in ("General.Products.ProductGroups", PRODUCTS, LINES))
    assert [entry for entry in writes(captured) if entry[1] in (groups, products, lines)] == [
        ("DELETE", lines), ("INSERT", groups), ("INSERT", products), ("INSERT", lines), ("UPDATE", products),
    ]  # fmt: skip


def test_an_update_writes_changed_columns_only(world: World, ds: Dataset) -> None:
    product = ds.load(PRODUCTS, world.product)
    assert product is not None
    ds.set(product, "PartNumber", "P9")
    with CaptureQueriesContext(connection) as captured:
        ds.commit()
    (update,) = [q["sql"] for q in captured.captured_queries if q["sql"].startswith(f'UPDATE "{table(PRODUCTS)}"')]
    columns = re.findall(r'"(\w+)" = ', update.partition("WHERE")[0])
    assert set(columns) == {
        "part_number", "object_version", "aggregate_last_update_time_utc", "update_time", "update_user",
    }  # fmt: skip


def test_setting_a_value_to_what_it_is_writes_nothing(world: World, ds: Dataset) -> None:
    product = ds.load(PRODUCTS, world.product)
    assert product is not None
    ds.set(product, "PartNumber", "other")
    ds.set(product, "PartNumber", "P1")
    with CaptureQueriesContext(connection) as captured:
        ds.commit()
    assert [entry for entry in writes(captured) if entry[1] == table(PRODUCTS)] == []


def test_statements_do_not_grow_with_the_number_of_rows(world: World) -> None:
    def statements(lines: int) -> int:
        ds = dataset(world.context)
        order = new_order(ds, world)
        for _ in range(lines):
            new_line(ds, world, order)
        with CaptureQueriesContext(connection) as captured:
            ds.commit()
        # Tests look at the change signals at every question; the product at the start of each write.
        return sum("cacheversion" not in query["sql"] for query in captured)

    statements(1)  # after it, rows of reference data are known
    assert statements(40) == statements(4)


def test_versions_and_the_change_feed_follow_what_was_written(world: World, ds: Dataset) -> None:
    order = new_order(ds, world)
    line = new_line(ds, world, order)
    ds.commit()
    assert (order.version, line.version) == (1, 1)
    ChangeFeedEntry.objects.all().delete()
    ds.set(line, "Notes", "fragile")
    ds.commit()
    # The part has changed, so its root's version moves; the root itself has not, so the feed names the part.
    assert (order.version, line.version) == (2, 2)
    assert list(ChangeFeedEntry.objects.values_list("repository", "entity_id", "operation")) == [(LINES, line.id, "U")]
    ds.delete(line)
    ds.commit()
    assert ChangeFeedEntry.objects.latest("id").operation == "D"
    assert order.version == 3


def test_whoever_was_second_is_told_the_versions(world: World) -> None:
    first, second = dataset(world.context), dataset(world.context)
    mine, theirs = first.load(PRODUCTS, world.product), second.load(PRODUCTS, world.product)
    assert mine is not None
    assert theirs is not None
    second.set(theirs, "PartNumber", "B")
    second.commit()
    first.set(mine, "PartNumber", "A")
    with pytest.raises(errors.VersionConflict):
        first.commit()
    # Nothing is lost: the change is still there, to be made again on what is stored now.
    assert mine.values["PartNumber"] == "A"
    assert mine.state == "Modified"


def test_a_failure_at_the_end_leaves_nothing_and_keeps_the_changes(world: World, ds: Dataset) -> None:
    def explode() -> None:
        raise errors.Refused(errors.VALIDATION_FAILED, "no")

    currency = ds.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    ds.defer_write("outbox", explode)
    with pytest.raises(errors.Refused):
        ds.commit()
    assert dataset(world.context).load(CURRENCIES, currency.id) is None
    assert currency.state == "Added"
    ds.deferred.replace_writes({})
    ds.commit()
    assert dataset(world.context).load(CURRENCIES, currency.id) is not None


def test_a_duplicate_of_what_a_late_default_gave_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is made while the default's value is still there, not after the records were put back."""

    def same_sign(record: Any) -> None:
        if record.currency_sign is None:
            record.currency_sign = "EUR"

    monkeypatch.setattr(type(repositories[CURRENCIES]), "late_defaults", (same_sign,))
    ds = dataset(world.context)
    ds.create(CURRENCIES, {"Name": "Another euro"})
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.DUPLICATE_VALUE
    assert caught.value.parameters[1:3] == ("CurrencySign", "EUR")


def test_collections_that_are_not_owned_are_filled_by_their_own_reference(world: World, ds: Dataset) -> None:
    product = ds.load(PRODUCTS, world.product)
    assert product is not None
    values = {"Price": Decimal(5), "Currency": world.currency, "PriceQuantityMeasurementUnit": world.unit}
    price = ds.create(PRICES, values, parent=product, collection="Prices")
    assert price.values["Product"] == product.id
    assert product.children("Prices") == [price]
    ds.commit()
    ds.delete(product)
    assert price.state == "Unchanged"
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.REFERENCE_IN_USE


def test_what_this_commit_lets_refer_elsewhere_is_no_reason_to_refuse(world: World, ds: Dataset) -> None:
    group = ds.create("General.Products.ProductGroups", {"Code": "G9", "Name": {"EN": "New"}})
    others = [new_product(ds, world, f"X{number}") for number in range(2)]
    ds.commit()
    old = ds.load("General.Products.ProductGroups", world.group)
    assert old is not None
    ds.delete(old)
    for product in others:
        ds.set(product, "ProductGroup", group.id)
    with pytest.raises(errors.Refused):
        ds.commit()  # the first product still refers to it
    first = ds.load(PRODUCTS, world.product)
    assert first is not None
    ds.set(first, "ProductGroup", group.id)
    ds.commit()
    assert dataset(world.context).load("General.Products.ProductGroups", world.group) is None


def test_units_and_currencies_are_looked_for_once(world: World, ds: Dataset) -> None:
    from domain.dataset.checks.currencies_and_units import find_measure

    new_order(ds, world)
    attribute = repositories[LINES].attributes["Quantity"]
    with CaptureQueriesContext(connection) as captured:
        found = {find_measure(ds, attribute, "pcs").id for _ in range(10)}
    assert found == {world.unit}
    # Found and loaded; nothing that is pending has been written for it.
    assert len(captured) <= 2
    assert ORDERS


def test_an_error_about_many_missing_values_names_the_first(world: World) -> None:
    """Finding the place of each among its siblings would take the square of their number."""
    ds = dataset(world.context)
    order = new_order(ds, world)
    for _ in range(200):
        ds.create(LINES, parent=order)
    with pytest.raises(errors.Refused) as refused:
        ds.commit()
    named = {detail.row.partition("]")[0] for detail in refused.value.details if detail.row}
    assert 0 < len(named) <= 50


def test_a_calculation_runs_once_for_all_changes_before_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs again only for what a later one has changed."""
    ran: list[str] = []

    def sign_of_name(record: Record) -> None:
        ran.append("sign")
        record.currency_sign = str(record.name)[:3]

    def external_id(record: Record) -> None:
        ran.append("id")
        record.external_id = record.currency_sign

    def active(record: Record) -> None:
        ran.append("active")
        record.external_system = "x"

    calculations = (
        Calculation(active, ("ExternalId",)),
        Calculation(sign_of_name, ("Name",)),
        Calculation(external_id, ("Name", "CurrencySign")),
    )
    monkeypatch.setattr(type(repositories[CURRENCIES]), "calculations", calculations)
    ds = dataset(world.context)
    made = ds.create(CURRENCIES, {"Name": "ABCD"})
    ds.commit()
    assert (made.currency_sign, made.external_id) == ("ABC", "ABC")
    assert ran == ["sign", "id", "active"]
