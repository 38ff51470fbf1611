"""Positions in the change feed, and reading the entries after a position, in commit order.

A position is the id of an entry. A commit takes the ids of its entries just before it ends, holding the locks on the
rows that it changed: so for an entity that two commits change, the ids are in commit order. On PostgreSQL an entry may
become visible after one with a higher id. So entries are read without gap check only up to the settled id: the highest
id up to which no open transaction can still have an entry. Beyond it they are read up to the first missing id.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Max, QuerySet

from domain.dataset.tables.models import ChangeFeedEntry
from foundation import errors
from foundation.execution_slot import release_slot

_CURSOR = re.compile(r"(?P<last>\d{1,18})-(?P<issued>\d{1,11})", re.ASCII)
_DAY_SECONDS = 86_400
#: How long `position_now` waits for open transactions to end, and its polling interval.
_SETTLE_SECONDS = 2.0
_TRY_SECONDS = 0.02
#: After this time without settled entries, only transactions of this database are waited for: asking costs more.
_STALL_SECONDS = 0.2
#: While a transaction stays open, a process that has just started treats this many entries as unsettled.
_IN_FLIGHT_ENTRIES = 1_000
#: The cursor before the first entry that is kept.
BEGINNING = "beginning"


class Entry(NamedTuple):
    """One change: operation is I, U or D."""

    id: int
    repository: str
    entity_id: str
    operation: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Entries after a position, the position after them, and whether more may be there already."""

    entries: tuple[Entry, ...]
    last: int
    is_full: bool


@dataclass(slots=True)
class _Horizon:
    """What this process has observed of open transactions.

    settled    every entry with an id up to it is visible, or its transaction was rolled back
    newest     the highest id that `poll` has found
    polls      number of `poll` calls whose results are included
    observed   (number of the next transaction, newest id) of earlier `poll` calls, whose transactions may be open
    moved_at   when `settled` last moved or reached `newest` (monotonic clock)
    """

    settled: int = 0
    newest: int = 0
    polls: int = 0
    observed: deque[tuple[int, int]] | None = None
    moved_at: float = 0.0


_lock = threading.Lock()
_horizon = _Horizon()


def cursor_of(last: int) -> str:
    """The text of a position."""
    return f"{last}-{int(time.time())}"


def read_cursor(text: str) -> int:
    """The position of a cursor's text. Raises BadRequest, and Gone for one after which entries may be missing."""
    if text == BEGINNING:
        return 0
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise errors.BadRequest(errors.INVALID_CURSOR, text, target="since")
    last, issued = int(match["last"]), int(match["issued"])
    # After a restore from a backup the feed may end before the position.
    if time.time() - issued > settings.DELTA_RETENTION_DAYS * _DAY_SECONDS or last > _newest_id():
        raise errors.Gone(errors.CURSOR_EXPIRED)
    return last


def poll() -> None:
    """Determine the settled entries, by one query."""
    if connection.vendor != "postgresql":
        with _lock:
            _horizon.newest = _horizon.settled = _newest_id()
        return
    polls = _horizon.polls
    with connection.cursor() as cursor:
        # One statement, so that the newest id and the open transactions are of one snapshot.
        cursor.execute(
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " COALESCE((SELECT max(id) FROM domain_changefeedentry), 0)"
        )
        oldest_open, next_number, newest = cursor.fetchone()
        if time.monotonic() - _horizon.moved_at > _STALL_SECONDS:
            oldest_open = max(oldest_open, _oldest_open_here(cursor, next_number))
    with _lock:
        observed = _horizon.observed
        if observed is None or newest < _horizon.newest:
            if _horizon.polls != polls:
                return  # another thread's newer call has ended during this one
            observed = _horizon.observed = deque()  # a process has just begun, or the database was restored
            _horizon.settled = 0
        _horizon.newest = newest
        _horizon.polls += 1
        if not observed or observed[-1][1] != newest:
            observed.append((next_number, newest))
        while observed and observed[0][0] <= oldest_open:
            _horizon.settled = observed.popleft()[1]
            _horizon.moved_at = time.monotonic()
        if not observed:
            _horizon.moved_at = time.monotonic()
        if len(observed) > 1000:  # during a long transaction: intermediate observations add little
            del observed[500]


def _oldest_open_here(cursor: CursorWrapper, next_number: int) -> int:
    """The number of the oldest open transaction of this database or prepared one; `next_number` if there is none.

    Snapshots include the transactions of all databases of the server. Each holds the lock of its own number until it
    ends, from before it takes ids of entries. The lock's number lacks the upper 32 bits.
    """
    cursor.execute(
        "SELECT transactionid::text::bigint FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted"
        " AND (pid IS NULL OR datname = current_database())"
    )
    ages = [(next_number - number) % (1 << 32) for (number,) in cursor.fetchall()]
    # A later transaction than the snapshot has a negative age.
    return next_number - max((age for age in ages if age < 1 << 31), default=0)


def position_now() -> tuple[int, frozenset[int]]:
    """A position before every later commit, and the ids of earlier entries after it.

    Waits for the transactions that were open when the newest entry was written, mostly milliseconds. Earlier entries
    follow the position only if such a transaction stays open for long.
    """
    poll()
    newest, deadline = _horizon.newest, time.monotonic() + _SETTLE_SECONDS
    while _horizon.settled < newest and time.monotonic() < deadline:
        release_slot()
        time.sleep(_TRY_SECONDS)
        poll()
    with _lock:
        settled = _horizon.settled
    if settled >= newest:
        return newest, frozenset()
    last = max(settled, newest - _IN_FLIGHT_ENTRIES)
    return last, frozenset(ChangeFeedEntry.objects.filter(id__gt=last, id__lte=newest).values_list("id", flat=True))


def newest_seen() -> int:
    """The highest id that the last `poll` has found."""
    return _horizon.newest


def has_newer(last: int) -> bool:
    """Whether the last `poll` has found entries after the position."""
    return _horizon.newest > last


def read(last: int, limit: int, names: Collection[str] | None = None) -> Page:
    """At most `limit` entries after the position, as of the last `poll`. names: of repositories; None for all."""
    with _lock:
        settled, newest = _horizon.settled, _horizon.newest
    if newest <= last:
        return Page((), last, is_full=False)
    entries = ChangeFeedEntry.objects.filter(id__gt=last, id__lte=newest)
    if names is not None and settled > last:
        # Only up to the settled id: beyond it, entries of other repositories are needed to detect missing ids.
        rows = _rows(entries.filter(id__lte=settled, repository__in=list(names)), limit)
        is_full = len(rows) == limit
        return Page(tuple(rows), rows[-1].id if is_full else settled, is_full=is_full or newest > settled)
    rows = _rows(entries, limit)
    upto, kept = last, 0
    for row in rows:
        if row.id > settled and row.id != upto + 1:
            break
        upto, kept = row.id, kept + 1
    if kept < limit:
        upto = max(upto, settled)
    given = (row for row in rows[:kept] if names is None or row.repository in names)
    return Page(tuple(given), upto, is_full=kept == limit)


def _rows(entries: QuerySet[ChangeFeedEntry], limit: int) -> list[Entry]:
    return [Entry(*row) for row in entries.order_by("id").values_list(*Entry._fields)[:limit]]


def _newest_id() -> int:
    return ChangeFeedEntry.objects.aggregate(newest=Max("id"))["newest"] or 0
