"""Records the position that a PostgreSQL replica must have replayed for a session's reads (spec 13, 13.2).

A position is an offset in the primary's write-ahead log (pg_lsn as an integer). Everything that is visible on the
primary is before its next record.

Positions can only be compared within one history: another cluster, and a standby that does not follow a promoted
server, have other data at the same positions. So each timeline of the primary has a stamp, a row that is written on it
(timeline_stamp); a server that lacks the row has not replayed this timeline.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)

#: The position of the primary's next record.
POSITION_NOW = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
#: The stamp that a server has: the timeline in the upper 32 bits, a random number in the lower ones. Both are needed,
#: since two servers that are promoted at the same position begin timelines of the same number.
STAMP = "(SELECT value FROM foundation_cacheversion WHERE name = 'wal_timeline')"
_TIMELINE_NOW = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint"
#: The stamp of the timeline that the primary writes; NULL if it has none yet.
STAMP_NOW = f"(SELECT value FROM foundation_cacheversion WHERE name = 'wal_timeline' AND value >> 32 = {_TIMELINE_NOW})"  # noqa: S608  constants
_WRITE_STAMP = f"""
INSERT INTO foundation_cacheversion (name, value)
VALUES ('wal_timeline', {_TIMELINE_NOW} << 32 | (random() * 2147483647)::bigint)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
 WHERE foundation_cacheversion.value >> 32 <> excluded.value >> 32
"""  # noqa: S608  constants

# The rows are locked in one order, against deadlocks. The position need not survive the primary: its successor has all
# of the log that any replica has.
_NOTE = f"""
BEGIN;
SET LOCAL synchronous_commit = off;
UPDATE identity_session SET database_position = GREATEST(database_position, {POSITION_NOW})
 WHERE id IN (SELECT id FROM identity_session WHERE id = ANY(%s::uuid[]) ORDER BY id FOR UPDATE);
COMMIT
"""  # noqa: S608  a constant
_READ = f"SELECT (SELECT database_position FROM identity_session WHERE id = %s), {STAMP_NOW}"  # noqa: S608  constants


def position_note(session_ids: Iterable[str | None]) -> None:
    """Record the primary's current position for these sessions. Does nothing without replicas.

    Not within a transaction, whose own writes would not be included.
    """
    if not settings.DATABASE_REPLICAS:
        return
    ids = sorted({each for each in session_ids if each is not None})
    if ids and not connection.in_atomic_block:
        try:
            with connection.cursor() as cursor:
                cursor.execute(_NOTE, [ids])
        except (DatabaseError, InterfaceError):
            # The request has succeeded and must not fail now.
            logger.exception("Could not note what sessions have seen; a replica may answer them with older data.")


@dataclass(frozen=True, slots=True)
class Needed:
    """What a replica must have replayed.

    stamp  of the primary's timeline; None if that has none yet, so that no replica can have it
    """

    position: int
    stamp: int | None


def needed_read(session_id: str) -> Needed:
    """The position that the session's reads need, on the timeline of the primary."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [session_id])
        position, stamp = cursor.fetchone()
    return Needed(position or 0, stamp)


def timeline_stamp(primary: BaseDatabaseWrapper) -> None:
    """Write the stamp of the primary's timeline, unless it has one."""
    with primary.cursor() as cursor:
        cursor.execute(_WRITE_STAMP)
