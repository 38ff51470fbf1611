"""Gap-free number sequences (spec 03, 3.5): a number is taken in the transaction that uses it."""

from __future__ import annotations

from django.db import connection

from domain.database.cursor import fetch
from domain.dataset.tables.models import NumberSequence


def next_number(sequence: str, *, width: int = 6, start: int = 1) -> str:
    """The next number of the sequence as text, zero-padded to `width`.

    The sequence's row stays locked until the surrounding database transaction ends, so a rolled back number is used
    again and no two commits can take the same. SQLite needs no row lock: the statement takes that of the only writer.
    """
    table = connection.ops.quote_name(NumberSequence._meta.db_table)
    ((last,),) = fetch(
        f"INSERT INTO {table} (name, last) VALUES (%s, %s) "
        f"ON CONFLICT (name) DO UPDATE SET last = {table}.last + 1 RETURNING last",
        [sequence, start],
    )
    return str(last).zfill(width)
