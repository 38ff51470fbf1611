"""Checks the text inside ``geography'...'`` and ``geometry'...'`` (section 7 of the ABNF: full...Literal).

No model here has a spatial type, so the text is checked and not stored.
"""

import re
from typing import Final

from domain.syntax.cursor import Cursor
from foundation.messages import TranslatableMessage as Message

_ANY_CASE: Final = re.ASCII | re.IGNORECASE
_NUMBER: Final = r"(?:[+-]?+[0-9]++(?:\.[0-9]++)?+(?:e[+-]?+[0-9]++)?+|(?-i:NaN|-INF|INF))"
_POSITION: Final = rf"{_NUMBER} {_NUMBER}(?: {_NUMBER}){{0,2}}+"
_POINT: Final = rf"\({_POSITION}\)"
_RING: Final = rf"\({_POSITION}(?:,{_POSITION})*+\)"
_LINE: Final = rf"\({_POSITION}(?:,{_POSITION})++\)"
_POLYGON: Final = rf"\({_RING}(?:,{_RING})*+\)"

_PREFIX: Final = re.compile(r"SRID=[0-9]{1,5};", _ANY_CASE)
_COLLECTION: Final = re.compile(r"GeometryCollection\(", _ANY_CASE)
_SHAPE: Final = re.compile(
    rf"Point{_POINT}|LineString{_LINE}|Polygon{_POLYGON}"
    rf"|MultiPoint\((?:{_POINT}(?:,{_POINT})*+)?+\)"
    rf"|MultiLineString\((?:{_LINE}(?:,{_LINE})*+)?+\)"
    rf"|MultiPolygon\((?:{_POLYGON}(?:,{_POLYGON})*+)?+\)",
    _ANY_CASE,
)


def skip_geo_literal(cursor: Cursor) -> None:
    """Skip the text between the quotes."""
    if not cursor.take_match(_PREFIX):
        cursor.fail(Message("'SRID=' with a number and ';'"))
    _skip_shape(cursor)


def _skip_shape(cursor: Cursor) -> None:
    if not cursor.take_match(_COLLECTION):
        if not cursor.take_match(_SHAPE):
            cursor.fail(Message("a spatial value such as Point(1 2)"))
        return
    cursor.enter()
    _skip_shape(cursor)
    while cursor.take(","):
        _skip_shape(cursor)
    cursor.expect(")")
    cursor.leave()
