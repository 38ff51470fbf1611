"""A process killed while it changes a definition leaves the old or the new state, whole (spec 10, 10.3)."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections

from domain.dataset.dataset import Dataset
from domain.entities.custom_entities import definitions, live
from foundation import cache_versions
from identity.context import system_context
from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.support.api import Api
from tests.support.waiting import eventually

# A process that is killed announces nothing.
pytestmark = pytest.mark.cache_versions_by_the_clock

NAME = "Custom.Fleet.Cars"
#: More statements than one change has.
MOST = 200
FUZZ_KILLS = 200


def test_killed_at_each_statement(admin: Api) -> None:
    _define(admin)
    outcomes = set()
    for number in range(MOST):
        status = _in_child(partial(_kill_at_statement, number))
        outcomes.add(_state(admin))
        if status == 0:
            break
    else:
        pytest.fail(f"the change has more than {MOST} statements")
    assert len(outcomes) == 2


@pytest.mark.fuzz
def test_killed_at_any_moment(admin: Api) -> None:
    _define(admin)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _ in range(FUZZ_KILLS):
        _in_child(lambda: None, after=chance.uniform(0, 0.15))
        assert _state(admin), seed


def _define(admin: Api) -> None:
    brand = attribute("Brand", MaxLength=30, IsIndexed=True)
    admin.create(ENTITIES, entity(NAME, attribute("Code"), brand, attribute("Doors", "Integer")))
    for number in range(50):
        admin.create(CARS, {"Code": f"C{number}", "Brand": f"B{number}"})


def _in_child(prepare: Callable[[], Any], after: float | None = None) -> int:
    """Change the definition in a process of its own, killed after so many seconds; the exit status, -9 if killed."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            prepare()
            _change()
        finally:
            os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_at_statement(number: int) -> None:
    """Make this process die before its statement of this number."""
    left = number

    def count(execute: Callable[..., Any], *rest: Any) -> Any:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return execute(*rest)

    connection.execute_wrappers.append(count)


def _change() -> None:
    """Add, rename and drop attributes with their indexes, or the other way round."""
    dataset = Dataset(system_context())
    record = dataset.find_one(definitions.ENTITIES, name=NAME)
    assert record is not None
    rows = {row.name: row for row in record.children("Attributes")}
    if "Brand" in rows:
        rows["Brand"].name, rows["Brand"].is_unique = "Make", True
        dataset.delete(rows["Doors"])
    else:
        rows["Make"].name, rows["Make"].is_unique = "Brand", False
        values = {"Name": "Doors", "AttributeType": "Integer"}
        dataset.create(definitions.ATTRIBUTES, values, parent=record, collection="Attributes")
    dataset.commit()


def _is_alone() -> bool:
    """Whether the server has ended the session of the process that was killed: it completes a COMMIT that it got."""
    others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with connection.cursor() as cursor:
        cursor.execute(f"{others} AND backend_type = 'client backend'")
        return bool(cursor.fetchone() == (0,))


def _state(admin: Api) -> tuple[str, ...]:
    """Names of the attributes, after a check that the table and what is served agree with them."""
    if connection.vendor == "postgresql":
        assert eventually(_is_alone)
    # A process that died between commit and announcement has not told this one.
    cache_versions.expire()
    live.follow()
    definition = definitions.stored()[NAME]
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, definition.table)
    columns = {column.name for column in described}
    assert {each.column for each in definition.attributes} == columns & {"code", "brand", "make", "doors"}
    names = tuple(sorted(each.name for each in definition.attributes))
    rows = admin.read(f"{CARS}?$select={','.join(names)}&$orderby=Code")["value"]
    assert len(rows) == 50
    assert all(row.get("Brand") or row.get("Make") for row in rows)
    return names
