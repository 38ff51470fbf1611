"""Exchange rates from the currency directories (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from django.db import connection

from domain.dataset.tables.row_storage import row_storage_of
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
    ways = ((source, target), (target, source))
    parameters = [value for way in ways for value in (*way, on, *reversed(way))]
    rows = row_storage_of(lines).load_where(_directory_line_sql(), parameters)
    # The inverse rate counts only without a direct one.
    found = sorted(dataset.load_rows(lines, rows).values(), key=lambda line: line.from_currency_id != source)
    return found[0] if found else None


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
    """A condition of lines. Raw SQL, since each order runs it, and the ORM took longer to build it than to run it.

    Reads from the newest directory backwards, by the index `currency_directory_date`. SQLite keeps the order of a CROSS
    JOIN; without the plus sign it would scan all lines of the currency.
    """
    line, directory, document = (
        repositories[name].model._meta.db_table for name in (_LINES, _DIRECTORIES, "General.Documents.Documents")
    )
    source = "+l.from_currency_id" if connection.vendor == "sqlite" else "l.from_currency_id"
    newest = (
        f'SELECT l.id FROM "{document}" h CROSS JOIN "{directory}" d CROSS JOIN "{line}" l '  # noqa: S608  (names are the model's)
        f"WHERE {source} = %s AND d.to_currency_id = %s AND h.document_date <= %s AND NOT h.void "
        f"AND h.concrete_repository = '{_DIRECTORIES}' AND d.document_ptr_id = h.id AND l.currency_directory_id = h.id "
        "ORDER BY h.document_date DESC, l.id LIMIT 1"
    )
    # Checked first: a direction without rates, mostly the inverse one, would scan the directories of all days.
    has_rates = (
        f'EXISTS (SELECT 1 FROM "{directory}" WHERE to_currency_id = %s) '  # noqa: S608  (as above)
        f'AND EXISTS (SELECT 1 FROM "{line}" WHERE from_currency_id = %s)'
    )
    way = f"SELECT ({newest}) WHERE {has_rates}"
    return f'"{line}"."id" IN ({way} UNION ALL {way})'
