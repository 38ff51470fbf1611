"""The rows of calculated attributes (spec 10.1): `No: OPERATOR Type:Value Type:Value Type:Value`.

    10: IIF EXP:20 CONST:'late' CONST:NULL
    20: LT ATTRIB:RequiredDeliveryDate SYS:Today

A definition is stored as one entity for each row. Constants are parsed here; names are bound by
domain.query.bind.calculations.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from domain.syntax.ast import Literal, LiteralKind
from foundation.guids import is_guid, parse_guid

#: Short name of the notation → member of the model's enum of parameter types.
SHORT_NAMES: Mapping[str, str] = {
    "CONST": "Constant",
    "ATTRIB": "Attribute",
    "REF": "Reference",
    "CHILD": "ChildList",
    "EXP": "Expression",
    "INPUT": "Input",
    "REPO": "Repository",
    "QUERY": "Repository",
    "SYS": "System",
}
_WRITTEN = {member: short for short, member in SHORT_NAMES.items() if short != "QUERY"}
#: Other names of operators.
OPERATOR_ALIASES: Mapping[str, str] = {"EQUALS": "EQUAL"}

_QUOTED = re.compile(r"\s*'((?:[^']|'')*)'\s*(,|$)")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`Type:Value`; the type is a member of the model's enum."""

    type: str
    value: str

    def __str__(self) -> str:
        return f"{_WRITTEN.get(self.type, self.type)}:{self.value}"


@dataclass(frozen=True, slots=True)
class ExpressionRow:
    """One row of a definition."""

    number: int
    operator: str
    parameters: tuple[Parameter, ...] = ()


def constants(text: str) -> tuple[Literal, ...]:
    """The values of a constant: one, or several quoted ones separated by commas."""
    stripped = text.strip()
    if stripped.startswith("'"):
        quoted = _quoted(stripped)
        if quoted is not None:
            return tuple(Literal(LiteralKind.STRING, value) for value in quoted)
    return (_plain(stripped),)


def _quoted(text: str) -> list[str] | None:
    """The quoted strings of a list; None if the text has something else."""
    values: list[str] = []
    at = 0
    while True:
        found = _QUOTED.match(text, at)
        if found is None:
            return None
        values.append(found[1].replace("''", "'"))
        at = found.end()
        if found[2] != ",":
            return values


def _plain(text: str) -> Literal:
    if text.upper() == "NULL":
        return Literal(LiteralKind.NULL, None)
    if text.lower() in ("true", "false"):
        return Literal(LiteralKind.BOOLEAN, text.lower() == "true")
    if _INTEGER.fullmatch(text):
        return Literal(LiteralKind.INTEGER, int(text))
    if _DECIMAL.fullmatch(text):
        return Literal(LiteralKind.DECIMAL, Decimal(text))
    if _DATE.fullmatch(text):
        try:
            return Literal(LiteralKind.DATE, datetime.date.fromisoformat(text))
        except ValueError:
            return Literal(LiteralKind.STRING, text)
    if is_guid(text):
        return Literal(LiteralKind.GUID, parse_guid(text))
    return Literal(LiteralKind.STRING, text)
