"""Sources of entries: tables of other apps whose rows get their entries seconds after their commit, not in it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from foundation.catalogue import Catalogue


class EntrySource:
    """Rows of a table, each covered by one entry. The kind of the entries compares them with the rows."""

    def write(self) -> int:
        """Write the entries of some committed rows that have none; returns their number.

        0 if there are none, or if another process has audit.chain.chain_lock.
        """
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """Problems of rows without an entry."""
        raise NotImplementedError

    def oldest_waiting(self) -> datetime.datetime | str | None:
        """The time of the oldest row without an entry, as the database driver gives it."""
        raise NotImplementedError


entry_sources: Catalogue[EntrySource] = Catalogue("source of audit entries", pattern=r"[a-z]+(?:_[a-z]+)*")
