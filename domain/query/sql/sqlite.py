"""The dialect of SQLite, with the functions that Python adds to it."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from domain.database import sqlite, time_limit
from domain.database.bypass import Row
from domain.model.attributes import Attribute
from domain.model.template_syntax import format_date
from domain.query.base import regex
from domain.query.base.bound import Sort, ValueType, unchanged
from domain.query.base.replacing import replaced
from domain.query.sql.dialect import (
    COMMON_TEMPLATES,
    GUID_PATTERN,
    LONGEST,
    MAX_DAYS,
    NUMBER_PATTERN,
    Dialect,
    PlanValues,
    microseconds,
    states,
)
from domain.query.sql.fragments import Param, Sql, compose
from domain.query.sql.reals import decimal_text, real_scaled, real_text, rounded
from foundation.kinds import Kind


def _stored_datetime(value: datetime.datetime | None) -> str | None:
    if value is None:
        return None
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ")


def _scaled_encoder(scale: int) -> Callable[[Any], Any]:
    def encode(value: Any) -> int | float | None:
        if value is None:
            return None
        if isinstance(value, int):
            scaled = value * 10**scale
        else:
            exact = value.scaleb(scale)
            whole = int(exact.to_integral_value(rounding="ROUND_FLOOR"))
            # A literal with more places equals no stored number, but orders between two.
            scaled = whole if whole == exact else whole + 0.5
        # A float beyond 64-bit integers is larger, or smaller, than every stored number.
        return scaled if -(2**63) <= scaled < 2**63 else float(scaled)

    return encode


class Sqlite(Dialect):
    """SQLite 3.35 and later."""

    vendor = "sqlite"
    scaled_decimals = True
    templates = COMMON_TEMPLATES | {
        "contains": "(instr({0}, {1}) > 0)",
        "startswith": "(substr({0}, 1, length({1})) = {1})",
        "endswith": "(substr({0}, length({0}) - length({1}) + 1) = {1})",
        "matchesPattern": "pattern_matches({0}, {1})",
        "replace": "bounded_replace({0}, {1}, {2})",
        "like": "(unicode_lower({0}) LIKE {1})",
        "indexof": "(instr({0}, {1}) - 1)",
        # For numbers beyond 31 bits, substr counts from the end.
        "substring": f"substr({{0}}, min(max({{1}}, 0), {LONGEST}) + 1)",
        "substring_of": f"substr({{0}}, min(max({{1}}, 0), {LONGEST}) + 1, min(max({{2}}, 0), {LONGEST}))",
        "tolower": "unicode_lower({0})",
        "toupper": "unicode_upper({0})",
        "trim": "trim({0}, {9})",
        "year": "CAST(substr({0}, 1, 4) AS INTEGER)",
        "month": "CAST(substr({0}, 6, 2) AS INTEGER)",
        "day": "CAST(substr({0}, 9, 2) AS INTEGER)",
        "hour": "CAST(substr({0}, 12, 2) AS INTEGER)",
        "minute": "CAST(substr({0}, 15, 2) AS INTEGER)",
        "second": "CAST(substr({0}, 18, 2) AS INTEGER)",
        "fractionalseconds": "CAST(substr({0}, 21, 6) AS INTEGER)",
        "hour:TIME": "CAST(substr({0}, 1, 2) AS INTEGER)",
        "minute:TIME": "CAST(substr({0}, 4, 2) AS INTEGER)",
        "second:TIME": "CAST(substr({0}, 7, 2) AS INTEGER)",
        "fractionalseconds:TIME": "CAST(substr({0}, 10, 6) AS INTEGER)",
        "yearmonth": "substr({0}, 1, 7)",
        "date": "substr({0}, 1, 10)",
        "time": "substr({0}, 12)",
        "date_to_datetime": "({0} || ' 00:00:00')",
        "datetime_difference": "((CAST(strftime('%%s', substr({0}, 1, 19)) AS INTEGER)"
        " - CAST(strftime('%%s', substr({1}, 1, 19)) AS INTEGER))"
        " * 1000000 + CAST(substr({0}, 21, 6) AS INTEGER) - CAST(substr({1}, 21, 6) AS INTEGER))",
        "days_duration": f"(CASE WHEN abs({{0}}) < {MAX_DAYS} THEN {{0}} * 86400000000 END)",
        "datetime_add": "datetime_moved({0}, {1})",
        "datetime_sub": "datetime_moved({0}, - {1})",
        "totalseconds": "{0}",
        "zero_for": "CASE WHEN {0} IS NOT NULL THEN 0 END",
        "text": "coalesce(json_extract({0}, '$.\"' || {1} || '\"'), json_extract({0}, '$.EN'),"
        " (SELECT e.value FROM json_each({0}) e LIMIT 1))",
        "text_in": "json_extract({0}, '$.\"' || {1} || '\"')",
        "text_to_number": f"CASE WHEN {{0}} REGEXP '{NUMBER_PATTERN}' THEN CAST({{0}} AS REAL) END",
        "text_to_date": "CASE WHEN date(substr({0}, 1, 10)) = substr({0}, 1, 10) THEN substr({0}, 1, 10) END",
        "text_to_guid": f"CASE WHEN lower({{0}}) REGEXP '{GUID_PATTERN}' THEN lower({{0}}) END",
        # Stored texts have one form, which sorts as the values do, and indexes cannot use our own SQL functions.
        "custom_number": "CAST({0} AS REAL)",
        "custom_date": "{0}",
        "custom_datetime": "replace(replace({0}, 'T', ' '), 'Z', '')",
        "custom_bool": "CASE {0} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
        "custom": "json_extract({0}, '$.\"{1}\".{2}')",
        "custom_is": "(json_extract({0}, '$.\"{1}\".Value') = {2})",
        "custom_object": "json_extract({0}, '$.\"{1}\"')",
        # JSON paths match no key with characters that JSON escapes. Reading all keys is slower, and such codes are
        # rare.
        "custom_escaped": "(SELECT json_extract(e.value, '$.{2}') FROM json_each({0}) e WHERE e.key = '{1}')",
        "custom_is_escaped": "EXISTS (SELECT 1 FROM json_each({0}) e"
        " WHERE e.key = '{1}' AND json_extract(e.value, '$.Value') = {2})",
        "custom_object_escaped": "(SELECT e.value FROM json_each({0}) e WHERE e.key = '{1}')",
        "to_text": "CAST({0} AS TEXT)",
        "to_text:BOOL": "CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END",
        "to_text:DATETIME": "(replace({0}, ' ', 'T') || 'Z')",
        "decimal_text": "decimal_text({0}, {1})",
        "real": "real_rounded({0})",
        "real_text": "real_text({0})",
        "real_scaled": "real_scaled({0}, {1})",
        "format_date": "format_date({0}, {1})",
        "format_number": "format_number({0}, {1}, {2})",
    }

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        sort = value_type.sort
        if sort is Sort.NUMBER:
            return (
                _scaled_encoder(scale) if scale is not None else (lambda value: None if value is None else float(value))
            )
        if sort is Sort.DATETIME:
            return _stored_datetime
        if sort in (Sort.DATE, Sort.TIME):
            return lambda value: None if value is None else value.isoformat()
        if sort is Sort.DURATION:
            return lambda value: None if value is None else microseconds(value)
        if sort is Sort.BOOL:
            return lambda value: None if value is None else int(value)
        return unchanged

    def without_members(self, stored: Sql, names: Sequence[str]) -> Sql:
        return compose(f"json_remove({{0}}, {', '.join(_path(name) for name in names)})", stored)

    def kept_json(self, stored: str, name: str) -> str:
        return f"json_extract({stored}, {_path(name)})"

    def kept_value(self, stored: str, attribute: Attribute) -> str:
        value = self.kept_json(stored, attribute.name)
        match attribute.kind:
            case Kind.DECIMAL | Kind.AMOUNT | Kind.QUANTITY:
                # The text has as many places as the column's integer is scaled by.
                return f"CAST(replace({value}, '.', '') AS INTEGER)"
            case Kind.DATETIME:
                # 2026-01-31T12:00:00.5Z, stored without zone
                return f"replace(substr({value}, 1, length({value}) - 1), 'T', ' ')"
            case Kind.STATE:
                return states(value)
            case Kind.BINARY:
                return f"from_base64({value})"
            case _:
                return value

    def is_kept(self, stored: str, name: str) -> str:
        return f"json_type({stored}, {_path(name)}) IS NOT NULL"

    def rescaled(self, value: str, before: int, after: int) -> str:
        if before <= after:
            return f"({value} * {10 ** (after - before)})"
        unit = 10 ** (before - after)
        half = f"CASE WHEN {value} < 0 THEN -{unit // 2} ELSE {unit // 2} END"
        return f"(({value} + {half}) / {unit})"

    def output(self, value: Sql, value_type: ValueType) -> Sql:
        if value_type.sort in (Sort.BOOL, Sort.DATE, Sort.DATETIME, Sort.TIME):
            # A unary plus makes it an expression, which bypasses Django's converters for declared types.
            return Sql("+" + value.text, value.params)
        return value

    def order(self, value: Sql, *, is_descending: bool, nullable: bool, sort: Sort) -> Sql:
        return value + Sql(" DESC" if is_descending else "")

    def among_keys(self, column: Sql, keys: Param) -> Sql:
        return Sql(f"{column.text} IN (SELECT value FROM json_each(%s))", (*column.params, keys))  # noqa: S608  (names are the model's, values parameters)

    def encode_keys(self, keys: list[str]) -> Any:
        return '["' + '","'.join(keys) + '"]' if keys else "[]"

    def same(self, left: Sql, right: Sql) -> Sql:
        return compose("({0} IS {1})", left, right)

    def different(self, left: Sql, right: Sql) -> Sql:
        return compose("({0} IS NOT {1})", left, right)

    def texts_of(self, texts: Sql, alias: str) -> Sql:
        return compose(f"json_each({{0}}) {alias}", texts)

    def prepare(self, connection: Any) -> None:
        if connection.connection is None:
            connection.ensure_connection()
        raw = connection.connection
        if getattr(connection, "_query_functions_on", None) is not raw:
            for name, count, function in _FUNCTIONS:
                raw.create_function(name, count, function, deterministic=True)
            time_limit.watch(raw)
            connection._query_functions_on = raw

    def native(self, text: str) -> str:
        return sqlite.native(text)

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], values: PlanValues) -> list[Row]:
        return sqlite.fetch(connection, native, parameters)


def _udf_lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _udf_upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _udf_datetime_moved(value: str | None, microseconds: int | None) -> str | None:
    if value is None or microseconds is None:
        return None
    try:
        moved = datetime.datetime.fromisoformat(value) + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moved.isoformat(" ")


def _udf_from_base64(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


def _udf_format_date(value: str | None, pattern: str) -> str | None:
    return None if value is None else format_date(datetime.datetime.fromisoformat(value), pattern)


def _udf_format_number(value: int | None, digits: int, scale: int) -> str | None:
    if value is None:
        return None
    return f"{Decimal(value).scaleb(-scale).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


_FUNCTIONS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("unicode_lower", 1, _udf_lower),
    ("unicode_upper", 1, _udf_upper),
    ("datetime_moved", 2, _udf_datetime_moved),
    ("decimal_text", 2, decimal_text),
    ("real_rounded", 1, rounded),
    ("real_text", 1, real_text),
    ("real_scaled", 2, real_scaled),
    ("from_base64", 1, _udf_from_base64),
    ("format_date", 2, _udf_format_date),
    ("format_number", 3, _udf_format_number),
    ("pattern_matches", 2, regex.matches),
    ("bounded_replace", 3, replaced),
)


def _path(name: str) -> str:
    """A literal with the JSON path of a member; names of attributes have no quotes."""
    return f"'$.\"{name}\"'"
