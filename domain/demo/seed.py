"""Loads the demo data: the small company through a dataset, mass data of larger sizes by bulk statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, get_args

from domain.dataset.dataset import Dataset
from domain.dataset.tables.row_storage import row_storage_of
from domain.demo import configuration, master_data, orders
from domain.demo.items import Item
from domain.demo.mass_data import Progress, load_mass_data
from domain.demo.recent_work import do_recent_work
from domain.model.registry import repositories
from identity.context import system_context
from identity.demo import seed_identity

Size = Literal["small", "medium", "large"]
SIZES: tuple[Size, ...] = get_args(Size)

#: Size → (products, orders) beyond those of the small company.
MASS: dict[Size, tuple[int, int]] = {"small": (0, 0), "medium": (10_000, 5_000), "large": (1_000_000, 200_000)}

#: One commit for each stream, in order. Later streams refer to entities of earlier ones.
STEPS: tuple[tuple[str, Callable[[], Iterator[Item]]], ...] = (
    ("company", master_data.foundations),
    ("exchange rates", master_data.exchange_rates),
    ("products", master_data.products),
    ("customers", master_data.people_and_customers),
    ("orders", orders.orders),
    ("offers", orders.offers),
    ("tools", configuration.tools),
    ("rules", configuration.rules),
    ("active rules", configuration.active_rules),
)


def seed(size: Size, progress: Progress) -> None:
    """Load the missing demo data; existing data is not changed."""
    seed_identity()
    for name, items in STEPS:
        progress(name, 0, 1)
        _load(items())
        progress(name, 1, 1)
    progress("recent work", 0, 1)
    do_recent_work()
    progress("recent work", 1, 1)
    products, order_count = MASS[size]
    if products:
        load_mass_data(products, order_count, progress)


def _load(items: Iterable[Item]) -> None:
    """Load a stream in one commit, unless its first entity exists: streams are loaded completely or not at all."""
    pending = list(items)
    first = pending[0]
    if row_storage_of(repositories[first.repository]).existing([first.id]):
        return
    dataset = Dataset(system_context(company_id=master_data.ENTERPRISE_COMPANY))
    for item in pending:
        dataset.create(item.repository, item.values, id=item.id)
    dataset.commit()
