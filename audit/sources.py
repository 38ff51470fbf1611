"""Sources of entries: tables of the apps above whose rows get their entries seconds after their commit, not in it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from foundation.catalogue import Catalogue


class EntrySource:
    """Rows that the chain covers, each by one entry. The kind of the entries compares them with their rows."""

    def write(self) -> int:
        """Write the entries of some committed rows that have none; returns their number.

        0 where there are none, or where another process writes them (audit.chain.alone).
        """
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """What is wrong with rows that no entry tells of."""
        raise NotImplementedError

    def oldest_waiting(self) -> datetime.datetime | str | None:
        """The time of the oldest row without an entry, as the database driver gives it."""
        raise NotImplementedError


entry_sources: Catalogue[EntrySource] = Catalogue("source of audit entries", pattern=r"[a-z]+(?:_[a-z]+)*")
