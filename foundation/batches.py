"""Batches of an iterable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` values, the last one shorter, computed lazily."""
    left = iter(values)
    while batch := list(islice(left, size)):
        yield batch
