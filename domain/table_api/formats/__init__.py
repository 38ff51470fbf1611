"""The formats of the rows of a table: JSON, NDJSON, CSV, Arrow, Parquet. Each has the same values."""

from __future__ import annotations

from domain.table_api.formats.base import Format
from domain.table_api.formats.columnar import ARROW, PARQUET
from domain.table_api.formats.csv_text import CSV
from domain.table_api.formats.json_text import JSON, NDJSON

FORMATS = (JSON, NDJSON, CSV, ARROW, PARQUET)

__all__ = ["FORMATS", "Format"]
