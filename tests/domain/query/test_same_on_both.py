"""What databases do differently by themselves has one answer here: case, lengths, quotients, moments, constants."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from domain.query.sql import reals
from foundation import errors
from tests.domain.query.conftest import Ask
from tests.domain.query.reference import Row
from tests.support.measuring import slowness

SET = "General_Products_Products"


VALUES = (
    # Unicode's full mapping, which PostgreSQL has only with ICU
    ("toupper('Straße ŉ ﬁ ǰ')", "STRASSE ʼN FI J̌"),
    ("tolower('İSTANBUL ΟΔΟΣ')", "i̇stanbul οδος"),
    ("tolower(toupper('ЩЪя'))", "щъя"),
    ("concat(toupper('ß'),tolower('Σ'))", "SSσ"),
    # null is not a number, and no text is as long as the greatest
    ("substring('abc',null)", None),
    ("substring('abc',1,null)", None),
    ("substring('abc',1,2147483647)", "bc"),
    ("substring('abc',2147483647)", ""),
    ("substring('abc',2147483647,2147483647)", ""),
    # doubles and decimals
    ("1 divby 3", 0.333333333333),
    ("2147483647 divby 7", 306783378.142857),
    ("(7 divby 6) mul 6", 7),
    ("floor((7 divby 100) mul 100)", 7),
    ("ceiling((3 divby 7) mul 7)", 3),
    ("cast((3 divby 7) mul 7,Edm.Int32)", 3),
    ("(1 divby 3) mul 6 mod 2", 0),
    ("cast(1 divby 8,Edm.String)", "0.125"),
    ("cast(4 divby 2,Edm.String)", "2"),
    ("cast(cast('-3',Edm.Decimal),Edm.String)", "-3"),
    ("(7 divby 6) mul 6 eq 7", True),
    ("(6 divby 7) mul 7 gt 6", False),
    ("(1 divby 7) mul 7 ge 1", True),
    ("1 divby 3 eq 0.333333333333", True),
    ("((1 divby 7) mul 7) in (2,1)", True),
    # a fraction that is nearly a second
    ("2024-03-01T00:00:00Z sub 2024-02-29T23:59:59.9999Z", "PT0.0001S"),
    ("2024-02-29T23:59:59.999999Z sub 2024-03-01T00:00:00Z", "-PT0.000001S"),
)


def test_a_value_is_the_same_on_both(products: list[Row], ask: Ask, subtests: pytest.Subtests) -> None:
    for written, expected in VALUES:
        with subtests.test(written):
            assert ask(SET, f"$top=1&$select=X&$compute={written} as X")["value"][0]["X"] == expected


def test_what_is_computed_of_columns_is_the_same_on_both(products: list[Row], ask: Ask) -> None:
    """As above, where no database can compute it before it looks at rows."""
    found = ask(SET, "$select=Id&$filter=(GuaranteePeriodDays divby 7) mul 7 eq GuaranteePeriodDays")["value"]
    assert [row["Id"] for row in found] == sorted(row["Id"] for row in products)
    groups = ask(SET, "$apply=compute((GuaranteePeriodDays divby 7) mul 7 as K)/groupby((K),aggregate($count as N))")
    assert len(groups["value"]) == len({row["GuaranteePeriodDays"] for row in products})
    rates = [row for row in products if row["ScrapRate"]]
    keys = "$select=Id&$filter=ScrapRate gt 0&$orderby=(ScrapRate divby 7) mul 7 sub ScrapRate desc"
    assert [row["Id"] for row in ask(SET, keys)["value"]] == sorted(row["Id"] for row in rates)
    shorter = ask(SET, "$select=Id&$filter=substring(PartNumber,GuaranteePeriodDays) eq null")["value"]
    assert {row["Id"] for row in shorter} == {row["Id"] for row in products if row["GuaranteePeriodDays"] is None}


def test_a_constant_orders_nothing(products: list[Row], ask: Ask, subtests: pytest.Subtests) -> None:
    by_number = ask(SET, "$select=Id&$orderby=PartNumber")["value"]
    for constant in ("1", "-1", "2.5", "3 desc", "'a'", "null", "2024-02-29", "1 add 1"):
        with subtests.test(constant):
            seen = []
            token = ""
            for _ in range(3):
                body = ask(SET, f"$select=Id&$orderby={constant}{token}", max_page_size=15, base_path="x")
                seen += [row["Id"] for row in body["value"]]
                token = "&$skiptoken=" + body.get("@odata.nextLink", "").partition("$skiptoken=")[2]
            assert seen == sorted(row["Id"] for row in products)
            assert ask(SET, f"$select=Id&$orderby=PartNumber,{constant}")["value"] == by_number


@pytest.mark.parametrize("step", ["round({} add ScrapRate)", "round({} mul 1.5)", "case({} ge ScrapRate:1,true:0)"])
def test_what_grows_with_each_level_of_nesting_is_refused_in_time(products: list[Row], ask: Ask, step: str) -> None:
    """On SQLite, whose rounding names its argument three times; PostgreSQL answers."""
    expression = "ScrapRate"
    for _ in range(30):
        expression = step.format(expression)
    begun = time.process_time()
    with suppress(errors.BadRequest, errors.NotSupported):
        assert "value" in ask(SET, f"$filter={expression} eq 1")
    assert time.process_time() - begun < 5 * slowness()


@pytest.mark.parametrize(
    "value, shown, text",
    [
        (None, None, None),
        (0.1 + 0.2, 0.3, "0.3"),
        ("0.33333333333333333333", 0.333333333333, "0.333333333333"),
        (1 / 3e9, 3.33e-10, "0.000000000333"),
        (4.5000045000045, 4.500004500005, "4.500004500005"),
        (1e22, 1e22, "10000000000000000000000"),
        (1e200, None, None),
        ("9" * 500, None, None),
        (float("nan"), None, None),
    ],
)
def test_numbers_without_a_scale_have_fifteen_digits_and_twelve_places(
    value: float | str | None, shown: float | None, text: str | None
) -> None:
    assert reals.rounded(value) == shown
    assert reals.real_text(value) == text
