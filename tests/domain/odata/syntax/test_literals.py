"""Primitive literals: text → kind and Python value (section 7 of the ABNF)."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from domain.syntax import NotSupportedConstruct, ODataSyntaxError
from domain.syntax.ast import LiteralKind as Kind

from .rules import parse_primitive_literal

GUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

VALUES = [
    ("null", Kind.NULL, None),
    ("true", Kind.BOOLEAN, True),
    ("FALSE", Kind.BOOLEAN, False),
    ("0", Kind.INTEGER, 0),
    ("-42", Kind.INTEGER, -42),
    ("+7", Kind.INTEGER, 7),
    ("9223372036854775808", Kind.INTEGER, 2**63),
    ("1.10", Kind.DECIMAL, Decimal("1.10")),
    ("-1e3", Kind.DECIMAL, Decimal("-1000")),
    ("1.5E-10", Kind.DECIMAL, Decimal("1.5E-10")),
    ("INF", Kind.DECIMAL, Decimal("Infinity")),
    ("-INF", Kind.DECIMAL, Decimal("-Infinity")),
    ("'it''s'", Kind.STRING, "it's"),
    ("''", Kind.STRING, ""),
    ("'жълт %41 \"x\"'", Kind.STRING, 'жълт %41 "x"'),
    (GUID, Kind.GUID, GUID),
    (GUID.upper(), Kind.GUID, GUID),
    ("abcdefab-1234-1234-1234-123456789012", Kind.GUID, "abcdefab-1234-1234-1234-123456789012"),
    ("2024-02-29", Kind.DATE, date(2024, 2, 29)),
    ("2024-02-29T12:30:15.5Z", Kind.DATE_TIME_OFFSET, datetime(2024, 2, 29, 12, 30, 15, 500000, UTC)),
    ("2024-02-29t12:30z", Kind.DATE_TIME_OFFSET, datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
    (
        "2024-01-01T00:00:00-05:30",
        Kind.DATE_TIME_OFFSET,
        datetime(2024, 1, 1, tzinfo=timezone(-timedelta(hours=5, minutes=30))),
    ),
    ("2024-02-29T12:30:15", Kind.DATE_TIME_OFFSET, datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)),
    ("2024-02-29Z", Kind.DATE, date(2024, 2, 29)),
    ("23:59", Kind.TIME_OF_DAY, time(23, 59)),
    ("23:59:58.123456", Kind.TIME_OF_DAY, time(23, 59, 58, 123456)),
    ("duration'P1DT2H3M4.5S'", Kind.DURATION, timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ("DURATION'-PT1M'", Kind.DURATION, timedelta(minutes=-1)),
    ("binary'AQID'", Kind.BINARY, b"\x01\x02\x03"),
    ("binary'AQ=='", Kind.BINARY, b"\x01"),
    ("binary'_-8'", Kind.BINARY, b"\xff\xef"),
    ("binary''", Kind.BINARY, b""),
    ("Erp.General_DocumentState'Released'", Kind.ENUM, ("Released",)),
    ("Ns.Color'Red,4,-1'", Kind.ENUM, ("Red", 4, -1)),
    ("'P1D'", Kind.STRING, "P1D"),
]


@pytest.mark.parametrize("text, kind, value", VALUES)
def test_literal_has_its_typed_value(text: str, kind: Kind, value: object) -> None:
    literal = parse_primitive_literal(text)
    assert (literal.kind, literal.value) == (kind, value)
    assert type(literal.value) is type(value)
    assert literal.text == text


def test_not_a_number_equals_itself_inside_a_tree() -> None:
    assert parse_primitive_literal("NaN") == parse_primitive_literal("NaN")


def test_enumeration_literal_knows_its_type() -> None:
    assert parse_primitive_literal("Erp.State'New'").type_name == "Erp.State"
    assert parse_primitive_literal("State'New'").type_name == "State"


def test_local_time_is_kept() -> None:
    value = parse_primitive_literal("2024-01-01T00:00:00+02:00").value
    assert isinstance(value, datetime)
    assert value.utcoffset() == timedelta(hours=2)


def test_digits_beyond_microseconds_are_marked() -> None:
    assert parse_primitive_literal("12:00:00.123456000").is_exact
    assert not parse_primitive_literal("12:00:00.1234567").is_exact
    assert not parse_primitive_literal("2024-01-01T12:00:00.0000001Z").is_exact


@pytest.mark.parametrize(
    "text",
    [
        "NULL", "2024-02-30", "2023-02-29", "2024-13-01", "24:00", "12:60", "12:00:61", "2024-01-01T",
        "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00X", "2024-01-01+02:00",
        "00012-01-01", "1.", ".5", "1e", "0x1", "1e1000", "1" * 401, "'abc", "'a'b'",
        "duration'P'", "duration'P1DT'", "duration'1D'", "binary'A'", "binary'AB=='", "binary'A+=='",
        f"guid'{GUID}'", "Ns.E''", "Ns.E'a b'", "Ns.E'a,'", f"{GUID}0", GUID[:-1], " 1", "1 ", "(1)",
        "a", "@p", '"x"', "",
    ],
)  # fmt: skip
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(ODataSyntaxError):
        parse_primitive_literal(text)


@pytest.mark.parametrize(
    "text, construct",
    [
        ("geography'SRID=4326;Point(142.1 64.1)'", "Spatial values"),
        ("Geometry'srid=0;MultiPolygon(((1 2,3 4),(5 6,7 8)),((1 2)))'", "Spatial values"),
        (
            "geometry'SRID=1;GeometryCollection(Point(1 2),GeometryCollection(LineString(1 2 3,4 5 6 7)))'",
            "Spatial values",
        ),
        ("geography'SRID=1;MultiPoint()'", "Spatial values"),
        ("-0044-03-15", "Dates outside the years 1 to 9999 ('-0044-03-15')"),
        ("10000-01-01", "Dates outside the years 1 to 9999 ('10000-01-01')"),
        ("0000-01-01T00:00:00Z", "Dates outside the years 1 to 9999 ('0000-01-01')"),
        (
            "9999-12-31T23:59:59-01:00",
            "Dates outside the years 1 to 9999 ('9999-12-31T23:59:59-01:00')",
        ),
        ("23:59:60", "Leap seconds"),
        ("duration'P9999999999D'", "Durations of more than 999,999,999 days"),
    ],
)
def test_literals_without_a_meaning_here_are_named(text: str, construct: str) -> None:
    with pytest.raises(NotSupportedConstruct) as caught:
        parse_primitive_literal(text)
    assert caught.value.construct == construct


@pytest.mark.parametrize(
    "text",
    [
        "geography'Point(1 2)'", "geography'SRID=1;Point(1)'", "geography'SRID=1;Point(1 2'",
        "geography'SRID=1;Blob()'",
        "geography'SRID=1;LineString(1 2)'", "geography'SRID=123456;Point(1 2)'",
    ],
)  # fmt: skip
def test_spatial_literals_are_checked_all_the_same(text: str) -> None:
    with pytest.raises(ODataSyntaxError):
        parse_primitive_literal(text)
