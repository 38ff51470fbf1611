"""Writes that events leave for the commit (`Dataset.defer_write`), carried out: those of one kind together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Protocol, Self, runtime_checkable


@runtime_checkable
class BulkWrite(Protocol):
    """A deferred write of which a commit may have many: its class writes them all with as few statements as one."""

    def __call__(self) -> None:
        """Write this one."""
        ...

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Write these, in their order."""
        ...


def write_deferred(writes: Iterable[Callable[[], None]]) -> None:
    """Carry out writes in their order; neighbours of one kind that knows how are written together."""
    for kind, group in groupby(writes, type):
        write_all = getattr(kind, "write_all", None)
        if write_all is not None:
            write_all(list(group))
        else:
            for write in group:
                write()
