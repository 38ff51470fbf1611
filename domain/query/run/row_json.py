"""Shapers: Python functions, generated once per plan, that render database rows as JSON (OData JSON 4.01).

`RowCode` collects the output columns of one SELECT and generates Python expressions over `r`, the row's tuple; `shaper`
compiles the function. Names of the model are inserted by repr(); values never enter the source. Stored JSON
(multilanguage texts, custom properties) is included unparsed by orjson.Fragment; decimals become exact JSON numbers:
SQLite's scaled integers of up to 15 digits by a division whose shortest decimal form is exact, others as text.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson

from domain.query.base.bound import Bound, Sort, ValueType
from domain.query.base.representation import ShapeKey
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Sql
from domain.query.sql.reals import DIGITS, decimal_text, real_text, rounded
from foundation import errors
from foundation.encryption import decrypt
from foundation.enums import DOCUMENT_STATE
from foundation.execution_slot import in_slices
from foundation.messages import TranslatableMessage as Message

#: (rows as tuples, one dict per batch: key → its rows as JSON) → JSON-ready values
Shaper = Callable[[Sequence[tuple[Any, ...]], Sequence[Mapping[str, Any]]], list[Any]]

DUMP_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_SUBCLASS
#: Maximum size of one response; a page that would exceed it has fewer rows.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
#: Decimal digits that a double preserves when written and read.
_EXACT_IN_DOUBLE = 10**15


@lru_cache(maxsize=64)
def scaled_number(scale: int) -> Callable[[Any], Any]:
    """SQLite's scaled integer → int, float with the exact decimal form, or Fragment."""
    unit = 10**scale

    def convert(value: Any) -> Any:
        if value is None:
            return None
        whole, rest = divmod(value, unit)
        if not rest:
            return int(whole)
        if -_EXACT_IN_DOUBLE < value < _EXACT_IN_DOUBLE:
            return value / unit
        if isinstance(value, float):
            # SQLite computes integers beyond 64 bits as doubles.
            return float(f"{value / unit:.{DIGITS}g}")
        return orjson.Fragment(decimal_text(value, scale) or "null")

    return convert


@lru_cache(maxsize=64)
def scaled_text(scale: int) -> Callable[[Any], str | None]:
    """SQLite's scaled integer → decimal text, for IEEE754Compatible."""
    return lambda value: decimal_text(value, scale)


def real_number(value: Any) -> Any:
    """A number without a fixed scale."""
    number = rounded(value)
    return int(number) if number is not None and number.is_integer() and abs(number) < _EXACT_IN_DOUBLE else number


def base64url(value: Any) -> str | None:
    """Edm.Binary in JSON."""
    return None if value is None else base64.urlsafe_b64encode(bytes(value)).decode()


def standard_base64(value: Any) -> str | None:
    """Edm.Binary for clients of OData 4.0."""
    return None if value is None else base64.b64encode(bytes(value)).decode()


def duration_text(value: int | None) -> str | None:
    """Edm.Duration of microseconds: ISO 8601 with days and a time."""
    if value is None:
        return None
    sign, rest = ("-", -value) if value < 0 else ("", value)
    days, rest = divmod(rest, 86_400_000_000)
    hours, rest = divmod(rest, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds = f"{Decimal(rest).scaleb(-6).normalize():f}"
    date = f"{days}D" if days else ""
    parts = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if seconds != "0" or not (date or parts):
        parts += f"{seconds}S"
    return f"{sign}P{date}{'T' + parts if parts else ''}"


_CELL = re.compile(r"\br\[(\d+)\]")

_NAMES: dict[str, Any] = {
    "F": orjson.Fragment,
    "B": {None: None, 0: False, 1: True},
    "ST": dict(DOCUMENT_STATE.by_number),
    "Y": base64url,
    "D": duration_text,
    "R": real_number,
    "RT": real_text,
    "U": lambda value: str(decrypt(value)),
    "E": {},
    "L": [],
}


class _Links(dict[Any, Any]):
    """Key → JSON of the link to the entity, created on first use; null for null."""

    def __init__(self, start: str) -> None:
        super().__init__({None: None})
        self._start = start

    def __missing__(self, key: str) -> orjson.Fragment:
        result = self[key] = orjson.Fragment(f'{self._start}{key})"}}')
        return result


class LinkBuilder:
    """Creates the links to a set for one run of a shaper."""

    def __init__(self, target_set: str) -> None:
        self._start = f'{{"@odata.id":"{target_set}('

    def fresh(self) -> _Links:
        """An empty _Links."""
        return _Links(self._start)


class RowCode:
    """The columns of one SELECT and the expressions over its rows."""

    def __init__(self, dialect: Dialect, shape: ShapeKey) -> None:
        self.columns: list[Sql] = []
        self.names: dict[str, Any] = dict(_NAMES)
        self._dialect = dialect
        self._ieee754 = shape.ieee754
        if shape.standard_base64:
            self.names["Y"] = standard_base64
        self._positions: dict[Sql, int] = {}

    def column(self, value: Sql, value_type: ValueType) -> int:
        """The position of an output column, the same for the same SQL."""
        return self.raw(self._dialect.output(value, value_type))

    def raw(self, output: Sql) -> int:
        """The position of a column without conversion."""
        known = self._positions.get(output)
        if known is None:
            known = self._positions[output] = len(self.columns)
            self.columns.append(output)
        return known

    def constant(self, value: Any) -> str:
        """A name for a constant in the expressions."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def links(self, target_set: str) -> str:
        """A name for the links to a set; rows of a page share them, and each run starts with none."""
        self.names[f"build_{target_set}"] = LinkBuilder(target_set)
        return f"to_{target_set}"

    def value(self, position: int, value_type: ValueType, *, target_set: str = "") -> str:
        """The expression of a column's JSON value."""
        cell, sort = f"r[{position}]", value_type.sort
        if sort is Sort.NUMBER:
            return self._number(cell, value_type)
        if sort is Sort.REFERENCE:
            return f"{self.links(target_set)}[{cell}]"
        if sort in (Sort.TEXTS, Sort.CUSTOM):
            return f"(None if {cell} is None else F({cell}))"
        if sort is Sort.STATE:
            return f"ST.get({cell})"
        if sort is Sort.BINARY:
            return f"Y({cell})"
        if sort is Sort.SECRET:
            return f"(None if {cell} is None else U({cell}))"
        if sort is Sort.DURATION:
            return f"D({cell})"
        if self._dialect.vendor == "sqlite":
            if sort is Sort.DATETIME:
                return f'(None if {cell} is None else {cell}.replace(" ", "T") + "Z")'
            if sort is Sort.BOOL:
                return f"B[{cell}]"
        return cell

    def _number(self, cell: str, value_type: ValueType) -> str:
        if value_type.integer:
            return cell
        if value_type.scale is None:
            return f"RT({cell})" if self._ieee754 else f"R({cell})"
        if not self._dialect.scaled_decimals:
            return cell if self._ieee754 else f"(None if {cell} is None else F({cell}))"
        if value_type.scale == 0 and not self._ieee754:
            return cell
        make = scaled_text if self._ieee754 else scaled_number
        return f"{self.constant(make(value_type.scale))}({cell})"


def shaper(expression: str, names: Mapping[str, Any], width: int) -> Shaper:
    """The function that renders rows of `width` columns. `g` in the expression is the list of batches."""
    # Local variables are faster than subscripts.
    body = _CELL.sub(r"v\1", expression)
    cells = "".join(f"v{index}, " for index in range(width))
    builders = [name for name, value in names.items() if isinstance(value, LinkBuilder)]
    fresh = "".join(f"    to_{name.removeprefix('build_')} = {name}.fresh()\n" for name in builders)
    source = f"def shape(rows, g):\n{fresh}    return [{body} for {cells}in rows]\n"
    namespace: dict[str, Any] = dict(names)
    exec(compile(source, "<shaper>", "exec"), namespace)  # noqa: S102  (text of our own making, see module docstring)
    result: Shaper = namespace["shape"]
    return result


def drop_nulls(value: Any) -> Any:
    """options=skipnulls for one object: its properties that are null are left out, in nested objects too."""
    if isinstance(value, dict):
        return {name: drop_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [drop_nulls(inner) for inner in value]
    return value


def dump(value: Any) -> bytes:
    """JSON bytes."""
    return orjson.dumps(value, option=DUMP_OPTIONS)


class AnswerSize:
    """Serializes JSON up to MAX_ANSWER_BYTES. Each method raises PayloadTooLarge beyond."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ANSWER_BYTES

    def fragment(self, value: Any) -> orjson.Fragment:
        """A value."""
        return orjson.Fragment(self._dump(value))

    def array(self, values: Sequence[Any]) -> orjson.Fragment:
        """An array, one value after the other: each may be as large as the whole response."""
        parts = [self._dump(value) for part in in_slices(values) for value in part]
        return orjson.Fragment(b"[" + b",".join(parts) + b"]")

    def _dump(self, value: Any) -> bytes:
        encoded = dump(value)
        self._left -= len(encoded)
        if self._left < 0:
            raise errors.PayloadTooLarge(errors.ANSWER_TOO_LARGE, Message("{0} bytes", MAX_ANSWER_BYTES))
        return encoded


# --- canonical values (select_rows) -------------------------------------------------------------------------------


def canonical_decoder(bound: Bound, dialect: Dialect) -> Callable[[Any], Any]:
    """The conversion from an output column to the canonical Python value (foundation.kinds); not called for null."""
    sort = bound.type.sort
    if sort is Sort.NUMBER and not bound.type.integer:
        if bound.type.scale is None:
            return lambda value: None if (text := real_text(value)) is None else Decimal(text)
        if not dialect.scaled_decimals:
            return lambda value: Decimal(str(value))
        scale = bound.type.scale
        return lambda value: Decimal(value).scaleb(-scale)
    if sort in (Sort.TEXTS, Sort.CUSTOM):
        return orjson.loads
    if sort is Sort.STATE:
        return DOCUMENT_STATE.by_number.__getitem__
    if sort is Sort.BINARY:
        return bytes
    if sort is Sort.SECRET:
        return decrypt
    if sort is Sort.DURATION:
        return lambda value: datetime.timedelta(microseconds=value)
    if dialect.vendor == "sqlite":
        if sort is Sort.BOOL:
            return bool
        if sort is Sort.DATE:
            return datetime.date.fromisoformat
        if sort is Sort.TIME:
            return datetime.time.fromisoformat
        if sort is Sort.DATETIME:
            return lambda value: datetime.datetime.fromisoformat(value).replace(tzinfo=datetime.UTC)
    elif sort is Sort.DATETIME:
        return lambda value: value.astimezone(datetime.UTC)
    return lambda value: value
