"""An API whose commits are real: definitions of entities change tables, which are dropped again after the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from domain.entities.custom_entities import definitions, live, tables
from domain.entities.systems_custom_entities import CustomEntity, CustomEntityAttribute
from domain.model import model_version
from domain.model.model_version import CACHE_VERSION
from foundation import cache_versions
from tests.support.api import Api


@pytest.fixture(autouse=True)
def no_model_of_an_emptied_database() -> Iterator[None]:
    """Empty the tables of cache versions and definitions after the test; this process then serves what they say."""
    yield
    model_version.set_served(0)
    cache_versions.expire()


@pytest.fixture
def admin(transactional_db: None, api: Api) -> Iterator[Api]:
    """The API as an administrator; the custom entities that the test defines are removed afterwards."""
    yield api
    drop_all()


def drop_all() -> None:
    """Remove every custom entity with its table."""
    on_sqlite = connection.vendor == "sqlite"
    if on_sqlite:
        connection.disable_constraint_checking()
    with transaction.atomic():
        for definition in definitions.stored().values():
            tables.execute(f"DROP TABLE {tables.quote(definition.table)}{'' if on_sqlite else ' CASCADE'}")
        CustomEntityAttribute.objects.all().delete()
        CustomEntity.objects.all().delete()
        cache_versions.bump(CACHE_VERSION)
    if on_sqlite:
        connection.enable_constraint_checking()
    live.follow()
