"""Spec 05, 5.2 "A rule saved is live at once on every node": what one process sees of another's changes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import F

from domain.entities import systems_bpm as bpm
from foundation import cache_versions
from foundation.models import CacheVersion
from rules.engine import engine
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, fail, warn, write_rule


class Queries:
    """Counts queries on the default connection."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: object, sql: str, *args: object) -> object:
        self.seen.append(sql)
        return execute(sql, *args)  # type: ignore[operator]


def another_node_deactivates_every_rule() -> None:
    """What another process's commit leaves in the database; this process is told nothing."""
    bpm.UserBusinessRule.objects.update(is_active=False)
    CacheVersion.objects.filter(name="rules").update(value=F("value") + 1)


@pytest.mark.cache_versions_by_the_clock
def test_another_node_s_change_acts_within_the_check_interval(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[fail()])
    monkeypatch.setattr(cache_versions._own, "bumps", ())  # as after the commit that this test never comes to
    clock = [1000.0]
    monkeypatch.setattr("foundation.cache_versions.time.monotonic", lambda: clock[0])
    cache_versions.expire()
    assert engine.watches(PRODUCTS, "COMMIT")
    another_node_deactivates_every_rule()
    clock[0] += cache_versions.CHECK_SECONDS - 0.1
    assert engine.watches(PRODUCTS, "COMMIT")
    clock[0] += 0.2
    assert not engine.watches(PRODUCTS, "COMMIT")
    assert cache_versions.CHECK_SECONDS <= 1


def test_what_no_rule_wants_costs_no_query_and_no_occurrence(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rule(world, ORDERS, ["COMMIT"], actions=[warn("w")])
    write_rule(world, PRODUCTS, ["CREATENEW"], actions=[warn("w")])
    clock = [1000.0]
    monkeypatch.setattr("foundation.cache_versions.time.monotonic", lambda: clock[0])
    cache_versions.expire()
    engine.watches(PRODUCTS, "COMMIT")
    handled: list[object] = []
    monkeypatch.setattr(type(engine), "handle", lambda self, occurrence: handled.append(occurrence))
    queries = Queries()
    with connection.execute_wrapper(queries):
        for event in ("COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT", "COMMITTED"):
            assert not engine.watches(PRODUCTS, event)
    assert queries.seen == []
    ds = dataset(world.context)
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, "CatalogDescriptionHtml", "x")
    ds.commit()
    assert handled == []
