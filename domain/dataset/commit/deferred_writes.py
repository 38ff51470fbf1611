"""Executes the writes that events deferred to the commit (`Dataset.defer_write`), grouped by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Protocol, Self, runtime_checkable


@runtime_checkable
class BulkWrite(Protocol):
    """A deferred write that its class executes for many instances with few statements."""

    def __call__(self) -> None: ...

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Execute the writes in order."""
        ...


def write_deferred(writes: Iterable[Callable[[], None]]) -> None:
    """Execute writes in order; adjacent bulk writes of one class are executed together."""
    for kind, group in groupby(writes, type):
        write_all = getattr(kind, "write_all", None)
        if write_all is not None:
            write_all(list(group))
        else:
            for write in group:
                write()
