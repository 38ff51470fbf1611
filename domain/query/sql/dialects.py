"""Selects the SQL dialect of the default database."""

from __future__ import annotations

from functools import cache

from django.db import connections

from domain.query.sql.dialect import Dialect
from domain.query.sql.postgresql import Postgresql
from domain.query.sql.sqlite import Sqlite

_DIALECTS: dict[str, Dialect] = {"sqlite": Sqlite(), "postgresql": Postgresql()}


@cache
def current() -> Dialect:
    """The dialect of the default database, constant for the life of the process."""
    return _DIALECTS[connections["default"].vendor]
