"""The database's clock, so that nodes with different clocks agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import connection

from foundation.fields import utc_now

Clock = Callable[[], datetime]


def database_now() -> datetime:
    """The current time of the database server; with SQLite that of the machine."""
    if connection.vendor != "postgresql":
        return utc_now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        result: datetime = cursor.fetchone()[0]
        return result
