"""Decimals in scripts are doubles: fifteen digits are exact, and texts carry more (docs/decisions.md)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from domain.model.repository import Repository
from tests.rules.cast import World
from tests.scripts.cast import console
from tests.support.api import Api

PRODUCTS = "General.Products.Products"
LONG = Decimal("123456789012345.678")  # eighteen digits


def product(world: World, value: Decimal) -> Dataset:
    ds = Dataset(world.context)
    ds.set(ds.open(ds_repository(), world.product, "update"), "MinimalSalesQuantityBase", value)
    ds.commit()
    return ds


def ds_repository() -> Repository[Any]:
    return repositories[PRODUCTS]


def stored(world: World) -> Decimal:
    found = Dataset(world.context).open(ds_repository(), world.product)
    return Decimal(found.values["MinimalSalesQuantityBase"])


def do(api: Api, world: World, statement: str) -> str:
    return console(
        api,
        f"const p = Domain.{PRODUCTS}Repository.getById('{world.product}'); {statement}; Transaction.commit()",
    )


def test_fifteen_digits_are_exact(api: Api, world: World) -> None:
    product(world, Decimal("123456789012.345"))
    do(api, world, "p.MinimalSalesQuantityBase = p.MinimalSalesQuantityBase * 2")
    assert stored(world) == Decimal("246913578024.69")


def test_more_digits_are_read_as_the_nearest_double_and_stay_as_they_are_stored(api: Api, world: World) -> None:
    product(world, LONG)
    said = do(api, world, "console.log(p.MinimalSalesQuantityBase); p.Name = 'x'")
    assert json.loads(said) == float(LONG)
    assert stored(world) == LONG


def test_a_value_that_passes_through_a_script_keeps_all_its_digits(api: Api, world: World) -> None:
    product(world, LONG)
    do(api, world, "p.MinimalSalesQuantityBase = p.MinimalSalesQuantityBase")
    assert stored(world) == LONG


def test_texts_carry_all_digits(api: Api, world: World) -> None:
    do(api, world, f"p.MinimalSalesQuantityBase = '{LONG}'")
    assert stored(world) == LONG
