"""Spec 05, 5.2: every comparison on every kind, against a table that was worked out by hand."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.kinds import Kind
from rules.conditions import Operand, comparisons

COLOUR = EnumType("Tests.Rules.Colour", {"Blue": 1, "Red": 2, "Amber": 3})
GUID = "0189a1b2-0000-7000-8000-00000000000a"
OTHER = "0189a1b2-0000-7000-8000-00000000000b"
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)

OPERANDS = {kind: Operand(kind) for kind in Kind}
OPERANDS[Kind.ENUM] = Operand(Kind.ENUM, COLOUR)
OPERANDS[Kind.STATE] = Operand(Kind.STATE, DOCUMENT_STATE)

T, F = True, False
#: kind, value of the entity, value of the condition → ==, !=, >, <, >=, <=, like; "-" where the comparison does not
#: exist. The value of Like is the last column where it differs from the condition's.
ORDERED: list[tuple[Kind, Any, str, str]] = [
    # kind, actual, condition, "eq ne gt lt ge le"
    (Kind.INT, 5, "5", "T F F F T T"),
    (Kind.INT, 6, "5", "F T T F T F"),
    (Kind.INT, -1, "0", "F T F T F T"),
    (Kind.DECIMAL, Decimal("0.25"), "0.25", "T F F F T T"),
    (Kind.DECIMAL, Decimal("0.26"), "0.25", "F T T F T F"),
    (Kind.DECIMAL, Decimal("0.250000"), "0.25", "T F F F T T"),
    (Kind.DECIMAL, Decimal("9"), "10", "F T F T F T"),  # as numbers, not as text
    (Kind.DECIMAL, Decimal("1.00"), "0.999", "F T T F T F"),  # the value is not rounded to the attribute's scale
    (Kind.AMOUNT, Decimal("100.00"), "99.99", "F T T F T F"),
    (Kind.AMOUNT, Decimal("-5"), "-5.0", "T F F F T T"),
    (Kind.QUANTITY, Decimal("2.500"), "2.5", "T F F F T T"),
    (Kind.QUANTITY, Decimal("2.499"), "2.5", "F T F T F T"),
    (Kind.DATE, datetime.date(2026, 3, 1), "2026-03-01", "T F F F T T"),
    (Kind.DATE, datetime.date(2026, 3, 2), "2026-03-01", "F T T F T F"),
    (Kind.DATE, datetime.date(2025, 12, 31), "2026-03-01T00:00:00Z", "F T F T F T"),
    (Kind.DATETIME, NOON, "2026-03-01T12:00:00Z", "T F F F T T"),
    (Kind.DATETIME, NOON, "2026-03-01T14:00:00+02:00", "T F F F T T"),  # the same moment
    (Kind.DATETIME, NOON, "2026-03-01", "F T T F T F"),  # a day begins at midnight UTC
    (Kind.ENUM, "Red", "Red", "T F F F T T"),
    (Kind.ENUM, "Red", "red", "T F F F T T"),
    (Kind.ENUM, "Red", "2", "T F F F T T"),
    (Kind.ENUM, "Amber", "Red", "F T T F T F"),  # by number: by name it would be below
    (Kind.ENUM, "Blue", "2", "F T F T F T"),
    (Kind.STATE, "Released", "Released", "T F F F T T"),
    (Kind.STATE, "Released", "30", "T F F F T T"),
    (Kind.STATE, "FirmPlanned", "FIRM PLANNED", "T F F F T T"),
    (Kind.STATE, "Completed", "30", "F T T F T F"),
    (Kind.STATE, "Planned", "FirmPlanned", "F T F T F T"),
    (Kind.STRING, "b", "b", "T F F F T T"),
    (Kind.STRING, "B", "b", "F T F T F T"),  # equality of text counts case
    (Kind.STRING, "c", "b", "F T T F T F"),
]
NAMES = ("Equals", "Not_Equals", "Greater_Than", "Less_Than", "Greater_Than_Or_Equal", "Less_Than_Or_Equal")

EQUALITY: list[tuple[Kind, Any, str, bool]] = [
    (Kind.GUID, GUID, GUID, T),
    (Kind.GUID, GUID, GUID.upper(), T),
    (Kind.GUID, GUID, OTHER, F),
    (Kind.REFERENCE, GUID, GUID, T),
    (Kind.REFERENCE, GUID, f"Crm_Sales_Customers({GUID})", T),
    (Kind.REFERENCE, OTHER, GUID, F),
    (Kind.BOOL, True, "true", T),
    (Kind.BOOL, True, "True", T),
    (Kind.BOOL, False, "true", F),
    (Kind.BOOL, False, "0", T),
    (Kind.MULTILANGUAGE, {"EN": "Chair", "BG": "Стол"}, "Стол", T),  # in any language
    (Kind.MULTILANGUAGE, {"EN": "Chair"}, "Table", F),
    (Kind.STRING, "", "", T),
]

LIKE: list[tuple[Kind, Any, str, bool]] = [
    (Kind.STRING, "Office chair", "office*", T),
    (Kind.STRING, "Office chair", "*CHAIR", T),
    (Kind.STRING, "Office chair", "*ice ch*", T),
    (Kind.STRING, "Office chair", "office", F),  # the whole text, not a part
    (Kind.STRING, "Office chair", "o*c*r", T),
    (Kind.STRING, "a.b", "a?b", T),
    (Kind.STRING, "a.b", "a_%", T),
    (Kind.STRING, "ab", "a?b", F),
    (Kind.STRING, "a?b", "a\\?b", T),
    (Kind.STRING, "axb", "a\\?b", F),
    (Kind.STRING, "a.b", "A.B", T),
    (Kind.STRING, "axb", "a.b", F),
    (Kind.STRING, "two\nlines", "two*lines", T),
    (Kind.STRING, "aba", "ab*ba", F),  # the two ends must not share a letter
    (Kind.STRING, "abba", "ab*ba", T),
    (Kind.STRING, "abcabc", "*bc*bc", T),
    (Kind.STRING, "abc", "*bc*bc", F),
    (Kind.STRING, "a**b", "a**b", T),
    (Kind.STRING, "STRASSE", "straße", T),
    (Kind.STRING, "100%", "100%", T),
    (Kind.STRING, "", "*", T),
    (Kind.MULTILANGUAGE, {"EN": "Chair", "BG": "Стол"}, "стол", T),
    (Kind.MULTILANGUAGE, {"EN": "Chair"}, "*ta*", F),
    (Kind.ENUM, "Amber", "a*", T),
    (Kind.ENUM, "Red", "a*", F),
]

INVALID = [
    (Kind.INT, "2.5"),
    (Kind.INT, "five"),
    (Kind.DECIMAL, "NaN"),
    (Kind.DECIMAL, "1,5"),
    (Kind.AMOUNT, "12 EUR"),
    (Kind.QUANTITY, ""),
    (Kind.DATE, "01.03.2026"),
    (Kind.DATETIME, "noon"),
    (Kind.BOOL, "yes"),
    (Kind.GUID, "123"),
    (Kind.REFERENCE, "C1"),
    (Kind.ENUM, "Green"),
    (Kind.STATE, "SHIPPED"),
]


def holds(kind: Kind, comparison: str, actual: Any, text: str) -> bool:
    chosen = comparisons.get(comparison)
    assert chosen is not None
    operand = OPERANDS[kind]
    return chosen.holds(operand, actual, chosen.parse(operand, text) if chosen.needs_value else None)


@pytest.mark.parametrize("kind, actual, text, row", ORDERED)
def test_ordered_kinds_compare_by_their_type(kind: Kind, actual: Any, text: str, row: str) -> None:
    expected = dict(zip(NAMES, (word == "T" for word in row.split()), strict=True))
    assert {name: holds(kind, name, actual, text) for name in NAMES} == expected


@pytest.mark.parametrize("kind, actual, text, equal", EQUALITY)
def test_equality_and_its_opposite(kind: Kind, actual: Any, text: str, equal: bool) -> None:
    assert holds(kind, "Equals", actual, text) is equal
    assert holds(kind, "Not_Equals", actual, text) is not equal


@pytest.mark.parametrize("kind, actual, pattern, expected", LIKE)
def test_like_matches_whole_texts_in_any_case(kind: Kind, actual: Any, pattern: str, expected: bool) -> None:
    assert holds(kind, "Like", actual, pattern) is expected


def test_like_takes_no_time_over_texts_that_were_chosen_for_it() -> None:
    assert not holds(Kind.STRING, "Like", "a" * 20_000, "*a" * 120 + "b")


@given(kind=st.sampled_from(Kind), text=st.text(max_size=40) | st.from_regex(r"[-+0-9.eE:TZ]{1,30}", fullmatch=True))
def test_any_text_is_a_value_or_a_value_error(kind: Kind, text: str) -> None:
    for comparison in comparisons:
        if comparison.needs_value and kind in comparison.kinds:
            try:
                expected = comparison.parse(OPERANDS[kind], text)
            except ValueError:
                continue
            comparison.holds(OPERANDS[kind], None, expected)


@pytest.mark.parametrize("kind", Kind)
def test_null_compares_with_nothing_but_is_unequal_to_everything(kind: Kind) -> None:
    example = {
        Kind.BOOL: "true", Kind.GUID: GUID, Kind.REFERENCE: GUID, Kind.DATE: "2026-01-01", Kind.DATETIME: "2026-01-01",
        Kind.ENUM: "Red", Kind.STATE: "30",
    }.get(kind, "1")  # fmt: skip
    assert holds(kind, "IsNull", None, "")
    assert not holds(kind, "Not_IsNull", None, "")
    for name, kinds in ((each.name, each.kinds) for each in comparisons):
        if kind in kinds and name not in ("IsNull", "Not_IsNull"):
            assert holds(kind, name, None, example) is (name == "Not_Equals"), name


@pytest.mark.parametrize(
    "kind, actual, null",
    [(Kind.MULTILANGUAGE, {}, T), (Kind.MULTILANGUAGE, {"EN": "x"}, F), (Kind.STRING, "", F), (Kind.INT, 0, F),
     (Kind.BOOL, False, F), (Kind.BINARY, b"", F)],
)  # fmt: skip
def test_empty_is_not_null(kind: Kind, actual: Any, null: bool) -> None:
    assert holds(kind, "IsNull", actual, "") is null
    assert holds(kind, "Not_IsNull", actual, "") is not null


@pytest.mark.parametrize("kind, text", INVALID)
def test_values_that_do_not_fit_are_refused(kind: Kind, text: str) -> None:
    chosen = comparisons.get("Equals")
    assert chosen is not None
    with pytest.raises(ValueError, match=r".+"):
        chosen.parse(OPERANDS[kind], text)


def test_which_comparison_takes_which_kind() -> None:
    order = {Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY, Kind.DATE, Kind.DATETIME, Kind.ENUM, Kind.STATE}
    expected = {
        "Equals": set(Kind) - {Kind.BINARY},
        "Not_Equals": set(Kind) - {Kind.BINARY},
        "Greater_Than": order | {Kind.STRING},
        "Less_Than": order | {Kind.STRING},
        "Greater_Than_Or_Equal": order | {Kind.STRING},
        "Less_Than_Or_Equal": order | {Kind.STRING},
        "Like": {Kind.STRING, Kind.MULTILANGUAGE, Kind.ENUM},
        "IsNull": set(Kind),
        "Not_IsNull": set(Kind),
    }
    assert {each.name: set(each.kinds) for each in comparisons} == expected


def test_the_catalogue_is_the_model_s_enum() -> None:
    from domain.model.rule_enums import USER_BUSINESS_RULE_CONDITION_COMPARISON_TYPE as stored

    assert {comparison.name for comparison in comparisons} == set(stored.members)
