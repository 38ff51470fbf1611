"""Rows and definitions of custom entities that the database cannot hold.

Who: an administrator's helper who may define entities, and whoever writes their rows. What: texts longer than an entry
of an index, more long texts than a row of PostgreSQL has place for. What prevents it: a definition has at most so many
attributes that a row has place for their values, and what an index cannot hold is refused with a reason; it is neither
an internal error nor "the storage is full".
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.attacks.access import refused_as
from tests.domain.conftest import api, fresh_process, world
from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.domain.custom_entities.conftest import admin, no_model_of_an_emptied_database
from tests.support.api import Api, error_of

__all__ = ["admin", "api", "fresh_process", "no_model_of_an_emptied_database", "world"]

NAME = "Custom.Fleet.Cars"


def noise(length: int) -> str:
    """A text that no database makes shorter."""
    return random.Random(length).randbytes(length // 2).hex()


def is_stored_or_refused(answer: Any) -> bool:
    """PostgreSQL refuses what SQLite stores."""
    return answer.status_code < 300 or refused_as(answer) == "ValidationFailed"


@pytest.mark.parametrize("index", [{"IsUnique": True}, {"IsIndexed": True}])
def test_a_text_that_no_index_holds(admin: Api, index: dict[str, Any]) -> None:
    admin.create(ENTITIES, entity(NAME, attribute("Code", **index)))
    assert is_stored_or_refused(admin.post(CARS, {"Code": noise(20_000)}))
    assert admin.post(CARS, {"Code": noise(600)}).status_code == 201


def test_an_index_of_texts_that_are_there(admin: Api) -> None:
    made = admin.create(ENTITIES, entity(NAME, attribute("Code")))
    assert admin.post(CARS, {"Code": noise(20_000)}).status_code == 201
    assert is_stored_or_refused(admin.patch(made["@odata.id"], {"UniqueConstraints": "Code"}))
    assert admin.post(CARS, {"Code": "short"}).status_code == 201


def test_a_row_of_the_most_texts(admin: Api) -> None:
    names = [f"Text{number}" for number in range(400)]
    admin.create(ENTITIES, entity(NAME, *(attribute(name, MaxLength=254) for name in names)))
    assert admin.post(CARS, {name: noise(254) for name in names}).status_code == 201
    assert error_of(admin.post(CARS, {"Text399": noise(256)}))["target"] == "Text399"
