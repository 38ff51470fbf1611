"""What SQLite and PostgreSQL write differently: functions, parameters, output columns (storage: foundation.fields).

Function templates are keyed by the engine's name for the function, or by name and sort of the first argument
(`hour:TIME`). Both dialects give the same answers: strings compare by code point, lower and upper case follow Unicode,
nulls sort first.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any

from django.db import connections

from domain.database import postgresql, time_limit
from domain.database.cursor import Row, fetch_natively, native
from domain.model.interpolation import format_date
from domain.query.base import patterns
from domain.query.base.bound import STRING, Sort, ValueType
from domain.query.sql.fragments import Param, Sql, Static, compose
from domain.query.sql.reals import LIMIT, PLACES, real_text, rounded

#: What Unicode counts as white space (trim).
_WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())

#: Characters that no text has.
_LONGEST = 1 << 30
_NUMBER_PATTERN = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)$"
#: A real date: a cast of one that is none would be an error, not null.
_DATE_PATTERN = (
    "^([0-9]{4,4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    "|([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)

_COMMON: dict[str, str] = {
    "length": "length({0})",
    "concat": "({0} || {1})",
    "or_empty": "coalesce({0}, '')",
    "or_zero": "coalesce({0}, 0)",
    "is_true": "({0} IS TRUE)",
    "negate": "(- {0})",
    "duration_add": "({0} + {1})",
    "duration_sub": "({0} - {1})",
    "to_text:STRING": "{0}",
    "to_text:ENUM": "{0}",
}


class Dialect:
    """The common part; see the two subclasses."""

    vendor = ""
    scaled_decimals = False
    templates: Mapping[str, str] = {}

    def function(self, name: str, sort: Sort, *arguments: Sql) -> Sql:
        """A call of an engine function. Raises KeyError for one that has no template."""
        template = self.templates.get(f"{name}:{sort.name}") or self.templates[name]
        if "{9}" in template:
            arguments = (*arguments, *(Sql(""),) * (9 - len(arguments)), Sql("%s", (Static(_WHITE_SPACE),)))
        return compose(template, *arguments)

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        """From the canonical value to the driver's."""
        raise NotImplementedError

    def placeholder(self, value_type: ValueType) -> str:
        """How a parameter of the type is written."""
        return "%s"

    def seek_placeholder(self, value_type: ValueType) -> str:
        """How an order key that came out as `plan` writes it goes back in."""
        return "%s"

    def null(self, value_type: ValueType) -> str:
        """A null of the type."""
        return "NULL"

    def output(self, value: Sql, value_type: ValueType) -> Sql:
        """An output column in the form that shapers know (shape)."""
        raise NotImplementedError

    def order(self, value: Sql, *, is_descending: bool, nullable: bool, sort: Sort) -> Sql:
        """One key of ORDER BY; null is the least value (11.2.6.2)."""
        raise NotImplementedError

    def collated(self, value: Sql, sort: Sort) -> Sql:
        """A value that is compared by order."""
        return value

    def among_keys(self, column: Sql, keys: Param) -> Sql:
        """Whether a key is among those of a batch, which are one parameter whatever their number."""
        raise NotImplementedError

    def encode_keys(self, keys: list[str]) -> Any:
        """The value of that parameter."""
        raise NotImplementedError

    def pattern(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The conversion of the operand of matchesPattern, and then to what the database takes as a pattern."""
        return convert

    def text_parameter(self, value: str) -> Sql:
        """A constant text."""
        return Sql(self.placeholder(STRING), (Static(value),))

    def same(self, left: Sql, right: Sql) -> Sql:
        """Equality in which null equals null, never null itself."""
        raise NotImplementedError

    def different(self, left: Sql, right: Sql) -> Sql:
        """The opposite of `same`."""
        raise NotImplementedError

    def texts_of(self, texts: Sql, alias: str) -> Sql:
        """A table with a column `value` of the texts of a multilanguage value."""
        raise NotImplementedError

    def prepare(self, connection: Any) -> None:
        """Make the connection ready: functions that SQL needs and the database lacks."""

    def native(self, text: str) -> str:
        """The statement as the driver itself takes it."""
        return text

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], *, by_key: bool) -> list[Row]:
        """Every row of such a statement, past Django's cursor. by_key: one plan is good for all parameters."""
        raise NotImplementedError


def _seconds(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def _same(value: Any) -> Any:
    return value


def _sqlite_datetime(value: datetime.datetime | None) -> str | None:
    if value is None:
        return None
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ")


def _sqlite_scaled(scale: int) -> Callable[[Any], Any]:
    def encode(value: Any) -> int | float | None:
        if value is None:
            return None
        if isinstance(value, int):
            scaled = value * 10**scale
        else:
            exact = value.scaleb(scale)
            whole = int(exact.to_integral_value(rounding="ROUND_FLOOR"))
            # A number between two stored ones equals neither and lies between them.
            scaled = whole if whole == exact else whole + 0.5
        # What no 64-bit integer holds is larger, or smaller, than every stored number.
        return scaled if -(2**63) <= scaled < 2**63 else float(scaled)

    return encode


class Sqlite(Dialect):
    """SQLite 3.35 and later."""

    vendor = "sqlite"
    scaled_decimals = True
    templates = _COMMON | {
        "contains": "(instr({0}, {1}) > 0)",
        "startswith": "(substr({0}, 1, length({1})) = {1})",
        "endswith": "(substr({0}, length({0}) - length({1}) + 1) = {1})",
        "matchesPattern": "pattern_matches({0}, {1})",
        "indexof": "(instr({0}, {1}) - 1)",
        # Beyond 31 bits, substr would count from the end.
        "substring": f"substr({{0}}, min(max({{1}}, 0), {_LONGEST}) + 1)",
        "substring_of": f"substr({{0}}, min(max({{1}}, 0), {_LONGEST}) + 1, min(max({{2}}, 0), {_LONGEST}))",
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
        "datetime_add": "datetime_moved({0}, {1})",
        "datetime_sub": "datetime_moved({0}, - {1})",
        "totalseconds": "{0}",
        "zero_for": "CASE WHEN {0} IS NOT NULL THEN 0 END",
        "text": "coalesce(json_extract({0}, '$.\"' || {1} || '\"'), json_extract({0}, '$.EN'),"
        " (SELECT e.value FROM json_each({0}) e LIMIT 1))",
        "text_in": "json_extract({0}, '$.\"' || {1} || '\"')",
        "text_to_number": f"CASE WHEN {{0}} REGEXP '{_NUMBER_PATTERN}' THEN CAST({{0}} AS REAL) END",
        "text_to_date": "CASE WHEN date(substr({0}, 1, 10)) = substr({0}, 1, 10) THEN substr({0}, 1, 10) END",
        "custom": "json_extract({0}, '$.\"' || {1} || '\".' || {2})",
        "custom_is": "(json_extract({0}, '$.\"' || {1} || '\".Value') = {2})",
        "custom_object": "json_extract({0}, '$.\"' || {1} || '\"')",
        # A path finds no key with characters that JSON escapes. Reading all keys is slower, and such codes are rare.
        "custom_escaped": "(SELECT json_extract(e.value, '$.' || {2}) FROM json_each({0}) e WHERE e.key = {1})",
        "custom_is_escaped": "EXISTS (SELECT 1 FROM json_each({0}) e"
        " WHERE e.key = {1} AND json_extract(e.value, '$.Value') = {2})",
        "custom_object_escaped": "(SELECT e.value FROM json_each({0}) e WHERE e.key = {1})",
        "to_text": "CAST({0} AS TEXT)",
        "to_text:BOOL": "CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END",
        "to_text:DATE": "{0}",
        "to_text:DATETIME": "(replace({0}, ' ', 'T') || 'Z')",
        "decimal_text": "decimal_text({0}, {1})",
        "real": "real_rounded({0})",
        "real_text": "real_text({0})",
        "format_date": "format_date({0}, {1})",
        "format_number": "format_number({0}, {1}, {2})",
    }

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        sort = value_type.sort
        if sort is Sort.NUMBER:
            return (
                _sqlite_scaled(scale) if scale is not None else (lambda value: None if value is None else float(value))
            )
        if sort is Sort.DATETIME:
            return _sqlite_datetime
        if sort in (Sort.DATE, Sort.TIME):
            return lambda value: None if value is None else value.isoformat()
        if sort is Sort.DURATION:
            return lambda value: None if value is None else _seconds(value)
        if sort is Sort.BOOL:
            return lambda value: None if value is None else int(value)
        return _same

    def output(self, value: Sql, value_type: ValueType) -> Sql:
        if value_type.sort in (Sort.BOOL, Sort.DATE, Sort.DATETIME, Sort.TIME):
            # A unary plus makes it an expression, and so keeps Django's converters for declared types away.
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
            for name, count, function in _SQLITE_FUNCTIONS:
                raw.create_function(name, count, function, deterministic=True)
            time_limit.watch(raw)
            connection._query_functions_on = raw

    def native(self, text: str) -> str:
        return native(text)

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], *, by_key: bool) -> list[Row]:
        return fetch_natively(connection, native, parameters)


def _length(text: str) -> str:
    """A number of characters as PostgreSQL's integer; one that is larger than any text is as good as the largest."""
    return f"(CASE WHEN {text} < 0 THEN 0 WHEN {text} > {_LONGEST} THEN {_LONGEST} ELSE {text} END)::int"


def _moved(sign: str) -> str:
    """A moment and a duration; null where the two leave the years that PostgreSQL can hold, which would be an error."""
    within = "abs({1}) < 315576000000000000 AND abs(extract(year FROM {0})) < 100000"
    return f"CASE WHEN {within} THEN {{0}} {sign} {{1}} * interval '1 microsecond' END"


#: As reals has them: a double becomes a decimal of 15 digits, and must not be too small for one.
_REAL = (
    f"(CASE WHEN abs(({{0}})::numeric) < {LIMIT}"
    f" THEN round(round(({{0}})::numeric, 40)::float8::numeric, {PLACES}) END)"
)


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
    templates = _COMMON | {
        "contains": "(strpos({0}, {1}) > 0)",
        "startswith": "starts_with({0}, {1})",
        "endswith": "(right({0}, length({1})) = {1})",
        "matchesPattern": "({0} ~ {1})",
        "indexof": "(strpos({0}, {1}) - 1)",
        "substring": f"substr({{0}}, {_length('{1}')} + 1)",
        "substring_of": f"substr({{0}}, {_length('{1}')} + 1, {_length('{2}')})",
        # By Unicode's full mapping whatever the database's locale says, and ordered by code point again.
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
        "text_to_number": f"CASE WHEN {{0}} ~ '{_NUMBER_PATTERN}' THEN {{0}}::numeric END",
        "text_to_date": f"CASE WHEN {{0}} ~ '{_DATE_PATTERN}' THEN substr({{0}}, 1, 10)::date END",
        "custom": "({0}::json -> {1} ->> {2})",
        # As the index has it (domain.migrations._tables).
        "custom_is": "({0}::jsonb @> jsonb_build_object({1}, jsonb_build_object('Value', ({2})::text)))",
        "custom_object": "({0}::json -> {1})::text",
        "to_text": "({0})::text",
        "to_text:NUMBER": "trim_scale(({0})::numeric)::text",
        "to_text:DATETIME": "(to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') || CASE"
        " WHEN mod(extract(second FROM {0}), 1) <> 0 THEN to_char({0} AT TIME ZONE 'UTC', '.US') ELSE '' END || 'Z')",
        "format_date": "to_char({0} AT TIME ZONE 'UTC', {1})",
        "format_date:DATE": "to_char({0}, {1})",
        "format_number": "round({0}, {1}::int)::text",
        "real": _REAL,
        "real_text": f"trim_scale({_REAL})::text",
    }

    def __init__(self) -> None:
        self._plain_collation: bool | None = None

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        if value_type.sort is Sort.DURATION:
            return lambda value: None if value is None else _seconds(value)
        if value_type.sort is Sort.STRING:
            # PostgreSQL stores no NUL, so a text with one equals nothing stored; U+FFFF stands for it.
            return lambda value: value.replace("\x00", "\uffff") if isinstance(value, str) else value
        return _same

    def pattern(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return patterns.for_postgresql(convert)

    def placeholder(self, value_type: ValueType) -> str:
        # A number without a cast keeps the column's type in a comparison, and so its index.
        return "%s" if value_type.sort is Sort.NUMBER else self.seek_placeholder(value_type)

    def seek_placeholder(self, value_type: ValueType) -> str:
        if value_type.integer:
            return "%s::bigint"
        return f"%s::{self._types.get(value_type.sort, 'text')}"

    def null(self, value_type: ValueType) -> str:
        return f"NULL::{self._types.get(value_type.sort, 'text')}"

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
            # A number alone would be the position of a column.
            value = Sql("%s::numeric", value.params)
        collated = self.collated(value, sort)
        nulls = (" NULLS LAST" if is_descending else " NULLS FIRST") if nullable else ""
        return collated + Sql((" DESC" if is_descending else "") + nulls)

    def collated(self, value: Sql, sort: Sort) -> Sql:
        if sort not in (Sort.STRING, Sort.TEXTS, Sort.ENUM) or self._is_plain():
            return value
        return compose('{0} COLLATE "C"', value)

    def _is_plain(self) -> bool:
        """Whether the database's own order is by code point already: then its ordinary indexes serve."""
        if self._plain_collation is None:
            with connections["default"].cursor() as cursor:
                cursor.execute("SELECT datcollate, datctype FROM pg_database WHERE datname = current_database()")
                row = cursor.fetchone()
            collate = str(row[0]) if row else ""
            self._plain_collation = collate.upper().replace("-", "") in ("C", "POSIX", "C.UTF8")
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

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], *, by_key: bool) -> list[Row]:
        # The driver is installed everywhere, and loaded where it is used.
        return postgresql.fetch(connection, native, parameters, prepared=by_key)


# --- functions of ours on SQLite ----------------------------------------------------------------------------------


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


def _udf_decimal_text(value: int | None, scale: int) -> str | None:
    if value is None:
        return None
    text = f"{Decimal(value).scaleb(-scale):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _udf_format_date(value: str | None, pattern: str) -> str | None:
    return None if value is None else format_date(datetime.datetime.fromisoformat(value), pattern)


def _udf_format_number(value: int | None, digits: int, scale: int) -> str | None:
    if value is None:
        return None
    return f"{Decimal(value).scaleb(-scale).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


_SQLITE_FUNCTIONS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("unicode_lower", 1, _udf_lower),
    ("unicode_upper", 1, _udf_upper),
    ("datetime_moved", 2, _udf_datetime_moved),
    ("decimal_text", 2, _udf_decimal_text),
    ("real_rounded", 1, rounded),
    ("real_text", 1, real_text),
    ("format_date", 2, _udf_format_date),
    ("format_number", 3, _udf_format_number),
    ("pattern_matches", 2, patterns.matches),
)

_DIALECTS: dict[str, Dialect] = {"sqlite": Sqlite(), "postgresql": Postgresql()}


@cache
def current() -> Dialect:
    """The dialect of the default database; it is one and the same for the life of the process."""
    return _DIALECTS[connections["default"].vendor]
