"""The dialect of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

from domain.database import postgresql
from domain.database.bypass import Row
from domain.database.prepared_statements import numbers_written
from domain.model.attributes import Attribute
from domain.query.base import regex
from domain.query.base.bound import Sort, ValueType, unchanged
from domain.query.base.replacing import MAX_REPLACED
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
from domain.query.sql.reals import LIMIT, PLACES
from foundation.kinds import Kind

#: Valid dates: casting an invalid one would raise an error instead of giving null.
_DATE_PATTERN = (
    "^([0-9]{4,4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    "|([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_TIME_PATTERN = "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?Z$"
_DATE_PARTS = "substr({0}, 1, 4)::int, substr({0}, 6, 2)::int, substr({0}, 9, 2)::int"


def _length(text: str) -> str:
    """A number of characters as PostgreSQL's integer; larger numbers have the same effect as the largest."""
    return f"(CASE WHEN {text} < 0 THEN 0 WHEN {text} > {LONGEST} THEN {LONGEST} ELSE {text} END)::int"


def _moved(sign: str) -> str:
    """A date-time ± a duration; null if the result exceeds PostgreSQL's range of years, which would raise an error."""
    within = "abs({1}) < 315576000000000000 AND abs(extract(year FROM {0})) < 100000"
    return f"CASE WHEN {within} THEN {{0}} {sign} {{1}} * interval '1 microsecond' END"


#: As in reals: rounds to 15 digits by a double. Rounding to 40 places before avoids an underflow of the double.
_REAL = (
    f"(CASE WHEN abs(({{0}})::numeric) < {LIMIT}"
    f" THEN round(round(({{0}})::numeric, 40)::float8::numeric, {PLACES}) END)"
)


#: Kind → type of the column, for values that are text in JSON.
_COLUMN_TYPES = {
    Kind.GUID: "uuid",
    Kind.REFERENCE: "uuid",
    Kind.INT: "integer",
    Kind.BOOL: "boolean",
    Kind.DECIMAL: "numeric",
    Kind.AMOUNT: "numeric",
    Kind.QUANTITY: "numeric",
    Kind.DATE: "date",
    Kind.DATETIME: "timestamptz",
}


#: The provider of the database's collation, which PostgreSQL 13 and 14 do not have, and its name for libc.
COLLATION = "SELECT to_jsonb(d) ->> 'datlocprovider', datcollate FROM pg_database d WHERE datname = current_database()"


def orders_by_code_point(provider: str | None, collate: str) -> bool:
    """Whether the collation orders by code point: PostgreSQL's builtin provider does, and libc with the locale C."""
    if provider in ("b", "i"):  # builtin, ICU
        return provider == "b"
    return collate.upper().replace("-", "") in ("C", "POSIX", "C.UTF8")


class Postgresql(Dialect):
    """PostgreSQL 13 and later, with ICU."""

    vendor = "postgresql"
    _types = {
        Sort.GUID: "uuid",
        Sort.REFERENCE: "uuid",
        Sort.STRING: "text",
        Sort.TEXTS: "text",
        Sort.ENUM: "text",
        Sort.NUMBER: "numeric",
        Sort.BOOL: "boolean",
        Sort.DATE: "date",
        Sort.DATETIME: "timestamptz",
        Sort.TIME: "time",
        Sort.DURATION: "bigint",
        Sort.STATE: "smallint",
        Sort.BINARY: "bytea",
        Sort.SECRET: "text",
    }
    templates = COMMON_TEMPLATES | {
        "contains": "(strpos({0}, {1}) > 0)",
        "startswith": "starts_with({0}, {1})",
        "endswith": "(right({0}, length({1})) = {1})",
        "matchesPattern": "({0} ~ {1})",
        # Nested replacements could grow without bound: beyond MAX_REPLACED an integer overflow raises an error.
        "replace": f"(SELECT CASE WHEN length(v) > {MAX_REPLACED} THEN (length(v) * 2147483647)::text ELSE v END"  # noqa: S608  (a constant)
        " FROM (SELECT replace({0}, {1}, {2}) AS v OFFSET 0) AS replacing)",
        "like": """((lower(({0}) COLLATE "und-x-icu") COLLATE "C") LIKE {1} ESCAPE '')""",
        "indexof": "(strpos({0}, {1}) - 1)",
        "substring": f"substr({{0}}, {_length('{1}')} + 1)",
        "substring_of": f"substr({{0}}, {_length('{1}')} + 1, {_length('{2}')})",
        # Unicode's full case mapping, independent of the database's locale; the result is ordered by code point.
        "tolower": '(lower(({0}) COLLATE "und-x-icu") COLLATE "C")',
        "toupper": '(upper(({0}) COLLATE "und-x-icu") COLLATE "C")',
        "trim": "btrim({0}, {9})",
        **{
            name: f"extract({name} FROM {{0}} AT TIME ZONE 'UTC')::int"
            for name in ("year", "month", "day", "hour", "minute")
        },
        **{f"{name}:DATE": f"extract({name} FROM {{0}})::int" for name in ("year", "month", "day")},
        **{f"{name}:TIME": f"extract({name} FROM {{0}})::int" for name in ("hour", "minute")},
        "second": "floor(extract(second FROM {0}))::int",
        "fractionalseconds": "mod(extract(second FROM {0}), 1)",
        "yearmonth": "to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM')",
        "yearmonth:DATE": "to_char({0}, 'YYYY-MM')",
        "date": "({0} AT TIME ZONE 'UTC')::date",
        "time": "({0} AT TIME ZONE 'UTC')::time",
        "date_to_datetime": "({0}::timestamp AT TIME ZONE 'UTC')",
        "datetime_difference": "(extract(epoch FROM ({0} - {1})) * 1000000)::bigint",
        "days_duration": f"(CASE WHEN abs(({{0}})::numeric) < {MAX_DAYS}"
        " THEN (({0})::numeric * 86400000000)::bigint END)",
        "datetime_add": _moved("+"),
        "datetime_sub": _moved("-"),
        "duration_add": "({0}::numeric + {1})",
        "duration_sub": "({0}::numeric - {1})",
        "negate:NUMBER": "(- {0}::numeric)",
        "totalseconds": "({0}::numeric / 1000000)",
        "zero_for": "CASE WHEN {0} IS NOT NULL THEN 0 END",
        "text": "coalesce({0}::json ->> {1}, {0}::json ->> 'EN',"
        " (SELECT e.v FROM json_each_text({0}::json) e(k, v) LIMIT 1))",
        "text_in": "({0}::json ->> {1})",
        "text_to_number": f"CASE WHEN {{0}} ~ '{NUMBER_PATTERN}' THEN {{0}}::numeric END",
        "text_to_date": f"CASE WHEN {{0}} ~ '{_DATE_PATTERN}' THEN substr({{0}}, 1, 10)::date END",
        "text_to_guid": f"CASE WHEN {{0}} ~* '{GUID_PATTERN}' THEN ({{0}})::uuid END",
        # Without casts to dates, which depend on session settings and so are not allowed in an index.
        "custom_number": f"CASE WHEN {{0}} ~ '{NUMBER_PATTERN}' THEN {{0}}::numeric END",
        "custom_date": f"CASE WHEN {{0}} ~ '{_DATE_PATTERN}' THEN make_date({_DATE_PARTS}) END",
        "custom_datetime": f"CASE WHEN {{0}} ~ '{_DATE_PATTERN}{_TIME_PATTERN}' THEN make_timestamp({_DATE_PARTS},"
        " substr({0}, 12, 2)::int, substr({0}, 15, 2)::int, rtrim(substr({0}, 18), 'Z')::double precision)"
        " AT TIME ZONE 'UTC' END",
        "custom_bool": "CASE {0} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END",
        "custom": "({0}::json -> '{1}' ->> '{2}')",
        # The expression of the index (domain.migrations._custom_properties).
        "custom_is": "({0}::jsonb @> jsonb_build_object('{1}'::text, jsonb_build_object('Value', ({2})::text)))",
        "custom_object": "({0}::json -> '{1}')::text",
        "to_text": "({0})::text",
        "to_text:NUMBER": "trim_scale(({0})::numeric)::text",
        "to_text:DATETIME": "(to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') || CASE"
        " WHEN mod(extract(second FROM {0}), 1) <> 0 THEN to_char({0} AT TIME ZONE 'UTC', '.US') ELSE '' END || 'Z')",
        "format_date": "to_char({0} AT TIME ZONE 'UTC', {1})",
        "format_date:DATE": "to_char({0}, {1})",
        "format_number": "round({0}, {1}::int)::text",
        "real": _REAL,
        "real_scaled": f"round({_REAL}, {{1}})",
        "real_text": f"trim_scale({_REAL})::text",
    }

    def __init__(self) -> None:
        self._plain_collation: bool | None = None

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        if value_type.sort is Sort.DURATION:
            return lambda value: None if value is None else microseconds(value)
        if value_type.sort is Sort.STRING:
            # PostgreSQL stores no NUL, so a text with one equals no stored text; U+FFFF replaces it.
            return lambda value: value.replace("\x00", "\uffff") if isinstance(value, str) else value
        return unchanged

    def pattern(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return regex.for_postgresql(convert)

    def placeholder(self, value_type: ValueType) -> str:
        # A number without a cast keeps the column's type in a comparison, and so uses its index.
        return "%s" if value_type.sort is Sort.NUMBER else self.seek_placeholder(value_type)

    def seek_placeholder(self, value_type: ValueType) -> str:
        if value_type.integer:
            return "%s::bigint"
        return f"%s::{self._types.get(value_type.sort, 'text')}"

    def null(self, value_type: ValueType) -> str:
        return f"NULL::{self._types.get(value_type.sort, 'text')}"

    def without_members(self, stored: Sql, names: Sequence[str]) -> Sql:
        listed = ", ".join(f"'{name}'" for name in names)
        return compose(f"({{0}}::jsonb - ARRAY[{listed}])::text", stored)

    def kept_json(self, stored: str, name: str) -> str:
        return f"({stored}::json -> '{name}')::text"

    def kept_value(self, stored: str, attribute: Attribute) -> str:
        if attribute.kind is Kind.MULTILANGUAGE:
            return self.kept_json(stored, attribute.name)
        value = f"({stored}::json ->> '{attribute.name}')"
        if attribute.kind is Kind.STATE:
            return states(value)
        if attribute.kind is Kind.BINARY:
            return f"decode({value}, 'base64')"
        return f"{value}::{_COLUMN_TYPES[attribute.kind]}" if attribute.kind in _COLUMN_TYPES else value

    def is_kept(self, stored: str, name: str) -> str:
        return f"({stored}::json -> '{name}') IS NOT NULL"

    def rescaled(self, value: str, before: int, after: int) -> str:
        return f"ROUND({value}, {after})"

    def output(self, value: Sql, value_type: ValueType) -> Sql:
        if value_type.sort in (Sort.GUID, Sort.REFERENCE):
            return compose("({0})::text", value)
        if value_type.sort is Sort.NUMBER and not value_type.integer:
            exact = "trim_scale(({0})::numeric)" if value_type.scale is not None else _REAL
            return compose(f"{exact}::text", value)
        if value_type.sort is Sort.NUMBER:
            return compose("({0})::bigint", value)
        return value

    def order(self, value: Sql, *, is_descending: bool, nullable: bool, sort: Sort) -> Sql:
        if value.text == "%s":
            # ORDER BY would read a bare number as the position of a column.
            value = Sql("%s::numeric", value.params)
        collated = self.collated(value, sort)
        # NULLS only if nullable, as an index would need it, too. ASC is written because missing_values inserts there.
        nulls = (" NULLS LAST" if is_descending else " NULLS FIRST") if nullable else ""
        return collated + Sql((" DESC" if is_descending else " ASC") + nulls)

    def collated(self, value: Sql, sort: Sort) -> Sql:
        if sort not in (Sort.STRING, Sort.TEXTS, Sort.ENUM) or self.indexes_by_code_point():
            return value
        return compose('{0} COLLATE "C"', value)

    def indexes_by_code_point(self) -> bool:
        """Whether the database's own collation orders by code point, so that ordinary indexes can be used."""
        if self._plain_collation is None:
            with connections["default"].cursor() as cursor:
                cursor.execute(COLLATION)
                self._plain_collation = orders_by_code_point(*cursor.fetchone())
        return self._plain_collation

    def among_keys(self, column: Sql, keys: Param) -> Sql:
        return Sql(f"{column.text} = ANY(%s::uuid[])", (*column.params, keys))

    def encode_keys(self, keys: list[str]) -> Any:
        return keys

    def same(self, left: Sql, right: Sql) -> Sql:
        return compose("({0} IS NOT DISTINCT FROM {1})", left, right)

    def different(self, left: Sql, right: Sql) -> Sql:
        return compose("({0} IS DISTINCT FROM {1})", left, right)

    def texts_of(self, texts: Sql, alias: str) -> Sql:
        return compose(f"json_each_text({{0}}::json) {alias}(key, value)", texts)

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], values: PlanValues) -> list[Row]:
        if values is PlanValues.KEYS:
            return postgresql.fetch(connection, native, parameters, prepared_after=0)
        if values is PlanValues.BOUNDS:
            # With a parameter as LIMIT the server would plan for a tenth of all rows.
            text = numbers_written(native, parameters)
            return postgresql.fetch(connection, text, (), prepared_after=postgresql.PREPARED_AFTER)
        return postgresql.fetch(connection, native, parameters, prepared_after=None)
