"""Records the position that a PostgreSQL replica must have replayed for a session's reads (spec 13, 13.2).

A position is an offset in the primary's write-ahead log (pg_lsn as an integer). Everything that is visible on the
primary is before its next record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

logger = logging.getLogger(__name__)

#: The position of the primary's next record.
POSITION_NOW = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"

# The rows are locked in one order, against deadlocks. The position need not survive the primary: its successor has all
# of the log that any replica has.
_NOTE = f"""
BEGIN;
SET LOCAL synchronous_commit = off;
UPDATE identity_session SET database_position = GREATEST(database_position, {POSITION_NOW})
 WHERE id IN (SELECT id FROM identity_session WHERE id = ANY(%s::uuid[]) ORDER BY id FOR UPDATE);
COMMIT
"""  # noqa: S608  a constant


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


def position_read(session_id: str) -> int:
    """The position that the session's reads need."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT database_position FROM identity_session WHERE id = %s", [session_id])
        row = cursor.fetchone()
    return int(row[0]) if row else 0
