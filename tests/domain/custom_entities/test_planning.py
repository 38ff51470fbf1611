"""A change of a definition can be planned first: its steps, their duration, what is lost (spec 10, 10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.custom_entities.cars import CARS
from tests.domain.custom_entities.test_changes import Cars
from tests.support.api import Api, error_of


@pytest.fixture
def cars(admin: Api) -> Cars:
    return Cars(admin)


def planned(cars: Cars, change: Any = None, api: Api | None = None) -> dict[str, Any]:
    """The plan of a change."""
    response = (api or cars.admin).post(f"{cars.path}/PlanChange", {} if change is None else {"change": change})
    assert response.status_code == 200, response.content
    result: dict[str, Any] = response.json()
    return result


def test_a_plan_tells_its_steps_and_changes_nothing(cars: Cars) -> None:
    change = {
        "Attributes": [
            {"@odata.id": cars.attributes["Brand"], "Name": "Make"},
            {"@odata.id": cars.attributes["Doors"], "@removed": {"reason": "deleted"}},
            {"Name": "Seats", "AttributeType": "Integer", "DefaultValue": "5", "IsIndexed": True},
        ]
    }
    plan = planned(cars, change)

    said = [step["text"] for step in plan["steps"]]
    assert "The attribute Doors is dropped with 3 values." in said
    assert "The attribute Brand is renamed to Make." in said
    assert "The attribute Seats is added." in said
    assert (plan["isPossible"], plan["losesData"]) == (True, True)
    assert [step["lost"] for step in plan["steps"] if step["lost"]] == [3]
    assert plan["seconds"] == 0
    assert cars.column("Brand") == ["Volta", "Ampere", None]

    # Its token confirms the change, in any language.
    change["PlanToken"] = plan["token"]
    assert cars.admin.patch(cars.path, change, Accept_Language="de").status_code < 300
    assert cars.column("Make") == ["Volta", "Ampere", None]


def test_what_is_impossible_is_a_step_with_the_reason(cars: Cars) -> None:
    plan = planned(cars, {"Attributes": [{"@odata.id": cars.attributes["Brand"], "Required": True}]})
    assert plan["isPossible"] is False
    assert "1 rows have no value" in " ".join(step["refusal"] or "" for step in plan["steps"])
    # What is no definition at all is refused as when it is saved.
    refused = cars.admin.post(f"{cars.path}/PlanChange", {"change": {"CodeAttribute": "Nothing"}})
    assert error_of(refused)["type"] == "CustomEntityInvalid"


def test_a_removal_and_no_change(cars: Cars) -> None:
    plan = planned(cars, {"@removed": {"reason": "deleted"}})
    assert [(step["lost"], plan["losesData"]) for step in plan["steps"]] == [(3, True)]
    assert planned(cars)["steps"] == []
    assert len(cars.column("Code")) == 3


def test_the_plan_of_a_domain_transaction(cars: Cars) -> None:
    inside = cars.admin.begin()
    assert inside.delete(cars.attributes["Brand"]).status_code == 204
    plan = planned(cars, api=inside)
    assert [step["lost"] for step in plan["steps"] if step["lost"]] == [2]
    assert error_of(inside.post(f"{cars.path}/PlanChange", {"change": {}}))["type"] == "InvalidBody"
    assert inside.patch(cars.path, {"PlanToken": plan["token"]}).status_code < 300
    assert inside.end().status_code < 300
    assert cars.admin.get(f"{CARS}?$select=Brand").status_code == 400


def test_the_duration_grows_with_the_rows() -> None:
    from domain.entities.custom_entities import tables

    assert tables.write_seconds(10_000_000) > tables.index_seconds(1_000_000) > 0
