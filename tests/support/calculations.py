"""Reads the rows of calculated attributes in the notation of spec 10.1: `No: OPERATOR Type:Value Type:Value`.

    10: IIF EXP:20 CONST:'late' CONST:NULL
    20: LT ATTRIB:RequiredDeliveryDate SYS:Today

The platform stores a row as an entity and has no such text; tests are shorter with it.
"""

from __future__ import annotations

import re

from domain.syntax.calculations import SHORT_NAMES, ExpressionRow, Parameter

_ROW = re.compile(r"\s*(\d+)\s*:\s*([A-Za-z]+)(?=\s|$)")
_PARAMETER = re.compile(r"\s+([A-Za-z]+):((?:'(?:[^']|'')*'(?:\s*,\s*(?=')|)|[^'\s])*)")


def parse_rows(text: str) -> tuple[ExpressionRow, ...]:
    """The rows of a text, one in each line; empty lines do not count."""
    return tuple(_parse_row(line.rstrip()) for line in text.splitlines() if line.strip())


def _parse_row(text: str) -> ExpressionRow:
    head = _ROW.match(text)
    assert head is not None, text
    parameters: list[Parameter] = []
    at = head.end()
    while at < len(text):
        found = _PARAMETER.match(text, at)
        assert found is not None, text
        parameters.append(Parameter(SHORT_NAMES.get(found[1], found[1]), found[2]))
        at = found.end()
    return ExpressionRow(int(head[1]), head[2], tuple(parameters))
