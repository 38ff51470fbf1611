"""Arithmetic of moments and durations on both databases (OData URL Conventions 4.01, 5.1.1.2)."""

from __future__ import annotations

import pytest

from foundation import errors
from tests.domain.query.conftest import Ask
from tests.domain.query.reference import Row

SET = "General_Products_Products"
LATER = "CreationTime add duration'P1DT2H0.5S'"


@pytest.mark.parametrize(
    "condition",
    [
        f"({LATER}) sub CreationTime eq duration'P1DT2H0.5S'",
        f"CreationTime sub ({LATER}) eq duration'-P1DT2H0.5S'",
        "CreationTime sub CreationTime eq duration'PT0S'",
        f"totalseconds(({LATER}) sub CreationTime) eq 93600.5",
        "now() sub CreationTime gt duration'-P1D'",
        "CreationTime sub duration'PT1H' lt CreationTime",
        "date(CreationTime) sub date(CreationTime) eq duration'PT0S'",
        f"date({LATER}) sub date(CreationTime) ge duration'P1D'",
    ],
)
def test_a_moment_less_a_moment_is_a_duration(products: list[Row], ask: Ask, condition: str) -> None:
    known = [row for row in products if row["CreationTime"] is not None]
    assert ask(SET, f"$filter={condition}&$count=true&$top=0")["@odata.count"] == len(known) > 0
    assert ask(SET, f"$filter=not ({condition})&$count=true&$top=0")["@odata.count"] == len(products) - len(known)


@pytest.mark.parametrize(
    "condition",
    [
        "totalseconds('PT1M0.5S') eq 60.5",
        "now() sub CreationTime gt '-PT1S'",
        "CreationTime add 'P1D' sub 'PT24H1S' lt CreationTime",
        "duration'PT1H' add 'PT1H' eq duration'PT2H'",
        "cast('P1D',Edm.Duration) eq duration'P1D'",
        "cast('10:00:00',Edm.TimeOfDay) eq 10:00:00",
        "cast('true',Edm.Boolean) eq true and not cast('false',Edm.Boolean)",
        "cast('AQ==',Edm.Binary) ne null and cast('AQ',Edm.Binary) eq binary'AQ'",
    ],
)
def test_texts_stand_for_the_values_that_they_spell(products: list[Row], ask: Ask, condition: str) -> None:
    """OData Protocol 4.01, 12.2.1: durations without prefix, casts of texts to primitive types."""
    known = [row for row in products if row["CreationTime"] is not None or "CreationTime" not in condition]
    assert ask(SET, f"$filter={condition}&$count=true&$top=0")["@odata.count"] == len(known) > 0


@pytest.mark.parametrize(
    "condition", ["duration'PT1M' mul 2 eq duration'PT2M'", "cast(PartNumber,Edm.Duration) eq duration'P1D'"]
)
def test_what_is_not_offered_of_durations_is_named(products: list[Row], ask: Ask, condition: str) -> None:
    with pytest.raises(errors.NotSupported):
        ask(SET, f"$filter={condition}")


@pytest.mark.parametrize("literal", ["'1 day'", "'P'", "''", "'P99999999999D'"])
def test_a_text_that_spells_no_duration_is_refused(products: list[Row], ask: Ask, literal: str) -> None:
    with pytest.raises(errors.BadRequest):
        ask(SET, f"$filter=totalseconds({literal}) eq 1")


def test_a_percent_sign_of_a_statement_is_one(products: list[Row], ask: Ask) -> None:
    """Texts of statements double theirs, since `%s` is where a value goes."""
    found = ask(SET, "$compute=GuaranteePeriodDays mod 7 as Rest&$select=Rest,GuaranteePeriodDays")["value"]
    known = [row for row in found if row["GuaranteePeriodDays"] is not None]
    assert [row["Rest"] for row in known] == [row["GuaranteePeriodDays"] % 7 for row in known]
    assert known


@pytest.mark.parametrize(
    "condition",
    [
        "year({0}) eq 2025 and month({0}) eq 12 and day({0}) eq 31",
        "hour({0}) eq 23 and minute({0}) eq 45 and second({0}) eq 7 and fractionalseconds({0}) eq 0.5",
        "date({0}) eq 2025-12-31 and time({0}) eq 23:45:07.5",
        "totaloffsetminutes({0}) eq -330",
        "totaloffsetminutes(2025-12-31T00:00:00+02:00) eq 120 and totaloffsetminutes({0}) lt 0",
        "yearmonth({0}) eq '2025-12'",
    ],
)
@pytest.mark.parametrize("literal", ["2025-12-31T23:45:07.5-05:30", "'2025-12-31T23:45:07.5-05:30'"])
def test_the_parts_of_a_literal_are_those_of_its_zone(
    products: list[Row], ask: Ask, condition: str, literal: str
) -> None:
    """OData URL Conventions 4.01, 5.1.1.8."""
    query = f"$filter={condition.format(literal)}&$count=true&$top=0"
    assert ask(SET, query)["@odata.count"] == len(products)
