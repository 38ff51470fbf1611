"""Exchange rates from the currency directories (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from django.db import connection

from domain.database.cursor import fetch
from domain.entities.behaviour import find_one, per_commit
from domain.model.registry import repositories

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork

_LINES = "General.Currencies.CurrencyDirectoryLines"
_DIRECTORIES = "General.Currencies.CurrencyDirectories"


def exchange_rate(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> tuple[Decimal, Decimal] | None:
    """(multiplier, divisor) from one currency to another by the newest valid directory; None without one.

    Read once for all lines of a commit.
    """
    return per_commit(dataset, ("rate", source, target, date), lambda: _stored_rate(dataset, source, target, date))


def _stored_rate(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> tuple[Decimal, Decimal] | None:
    line = _directory_line(dataset, source, target, date)
    if line is None:
        return None
    rate = (line.rate_multiplier, line.rate_divisor)
    return rate if line.from_currency_id == source else (rate[1], rate[0])


def _directory_line(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> Record | None:
    """The line of the newest directory that is valid on the date; without one, that of the inverse rate."""
    lines, directories = repositories[_LINES], repositories[_DIRECTORIES]
    for name in (lines, directories):
        dataset.load_pending(name)
    if any(record.repository in (lines, directories) for record in dataset.changed()):
        return _pending_line(dataset, source, target, date) or _pending_line(dataset, target, source, date)
    on = connection.ops.adapt_datefield_value(date)
    result = fetch(_directory_line_sql(), [source, target, on, target, source, on])
    return dataset.load(lines, str(min(result)[1])) if result else None


def _pending_line(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> Record | None:
    return find_one(
        dataset,
        _LINES,
        order_by=("-currency_directory__document_date",),
        from_currency_id=source,
        currency_directory__to_currency_id=target,
        currency_directory__document_date__lte=date,
        currency_directory__void=False,
    )


@lru_cache(maxsize=1)
def _directory_line_sql() -> str:
    """Raw SQL: each order needs it, and building the query with the ORM took longer than running it."""
    line, directory, document = (
        repositories[name].model._meta.db_table for name in (_LINES, _DIRECTORIES, "General.Documents.Documents")
    )
    newest = (
        f'SELECT l.id FROM "{line}" l JOIN "{directory}" d ON d.document_ptr_id = l.currency_directory_id '  # noqa: S608  (names are the model's)
        f'JOIN "{document}" h ON h.id = d.document_ptr_id '
        "WHERE l.from_currency_id = %s AND d.to_currency_id = %s AND h.document_date <= %s AND NOT h.void "
        "ORDER BY h.document_date DESC, l.id LIMIT 1"
    )
    return f"SELECT 0, a.id FROM ({newest}) a UNION ALL SELECT 1, b.id FROM ({newest}) b"  # noqa: S608  (as above)
