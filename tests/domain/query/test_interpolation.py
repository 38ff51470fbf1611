"""Templates: how they are read, and how values are written (spec 05, 5.4)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from domain.model.template_syntax import Placeholder, TemplateError, format_value, parse, pick_text, postgresql_pattern

NAME = {"EN": "Chair", "BG": "Стол"}
MOMENT = datetime.datetime(2024, 2, 9, 3, 4, 5, tzinfo=datetime.UTC)


def _read(template: str) -> list[Any]:
    return [(p.sigil, p.path, p.format) if isinstance(p, Placeholder) else p for p in parse(template)]


@pytest.mark.parametrize(
    "template, parts",
    [
        ("", []),
        ("plain", ["plain"]),
        ("{Name}", [("", ("Name",), "")]),
        ("a{Name:T}b", ["a", ("", ("Name",), "T"), "b"]),
        ("{Customer.Party.PartyName}", [("", ("Customer", "Party", "PartyName"), "")]),
        ("{@color code:T}", [("@", ("color code",), "T")]),
        ("{@color}", [("@", ("color",), "")]),
        ("{$user.Name}", [("$", ("user", "Name"), "")]),
        ("{{x}} {{", ["{x} {"]),
        ("{DocumentDate:dd-MM-yyyy HH:mm}", [("", ("DocumentDate",), "dd-MM-yyyy HH:mm")]),
        ("{", None),
        ("}", None),
        ("{}", None),
        ("{a..b}", None),
    ],
)
def test_templates_are_read(template: str, parts: list[Any] | None) -> None:
    if parts is None:
        with pytest.raises(TemplateError):
            parse(template)
    else:
        assert _read(template) == parts


@pytest.mark.parametrize(
    "value, format, written",
    [
        (None, "", ""),
        ("x", "", "x"),
        (True, "", "true"),
        (7, "", "7"),
        (Decimal("1.500"), "", "1.5"),
        (Decimal("1E+3"), "", "1000"),
        (Decimal("2.345"), "N2", "2.35"),
        (Decimal("2"), "N2", "2.00"),
        (Decimal("2.50"), "Q", "2.5 pcs"),
        (NAME, "", "Стол"),
        (NAME, "T", "Стол"),
        (NAME, "EN", "Chair"),
        (NAME, "DE", ""),
        (MOMENT.date(), "", "2024-02-09"),
        (MOMENT, "", "2024-02-09T03:04:05Z"),
        (MOMENT, "dd-MM-yyyy", "09-02-2024"),
        (MOMENT, "d.M.yy H:mm:ss", "9.2.24 3:04:05"),
    ],
)
def test_values_are_written(value: Any, format: str, written: str) -> None:
    assert format_value(value, format, language="bg", measure="pcs") == written


def test_the_text_for_a_language() -> None:
    assert pick_text(NAME, "bg") == "Стол"
    assert pick_text(NAME, "de") == "Chair"
    assert pick_text({"BG": "Стол"}, "de") == "Стол"
    assert pick_text({}, "de") is None


def test_the_same_pattern_for_the_database() -> None:
    assert postgresql_pattern("dd-MM-yyyy HH:mm") == 'DD"-"MM"-"YYYY" "HH24":"MI'
