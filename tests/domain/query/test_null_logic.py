"""Null in comparisons, logic and functions, as a table (Part 2, 5.1.1.1)."""

from __future__ import annotations

import re

import pytest

from tests.domain.query.conftest import Ask
from tests.domain.query.reference import Row

# N is CatalogDescriptionHtml, null in about a third of the rows; behind each filter, for which rows it holds.
CASES = (
    ("N eq null", "null"),
    ("null eq N", "null"),
    ("N ne null", "text"),
    ("not (N eq null)", "text"),
    ("not (N ne null)", "null"),
    ("N gt null", "none"),
    ("N lt null", "none"),
    ("N ge null", "null"),
    ("N le null", "null"),
    ("N eq 'no such text'", "none"),
    ("N ne 'no such text'", "all"),
    ("not (N eq 'no such text')", "all"),
    ("N lt '🙂🙂'", "text"),
    ("not (N lt '🙂🙂')", "null"),
    ("N eq N", "all"),
    ("N ne N", "none"),
    ("N ge N", "all"),
    ("N gt N", "none"),
    ("N in (null)", "null"),
    ("N in ('no such text',null)", "null"),
    ("not (N in ('no such text'))", "all"),
    ("contains(N,'')", "text"),
    ("not contains(N,'')", "none"),
    ("contains(N,'') eq null", "null"),
    ("contains(N,'') ne true", "null"),
    ("contains(N,null) eq null", "all"),
    ("N eq 'no such text' or N eq null", "null"),
    ("N eq null or N eq 'no such text' or N eq 'nor this'", "null"),
    ("not (N eq 'no such text' or N eq 'nor this')", "all"),
    ("(N eq 'no such text' or N eq 'nor this') eq false", "all"),
    ("contains(N,'') or true", "all"),
    ("contains(N,'') and false", "none"),
    ("not (contains(N,'') and false)", "all"),
    ("not (contains(N,'') or false)", "none"),
    ("length(N) ge 0", "text"),
    ("length(N) eq null", "null"),
    ("concat(N,'x') eq null", "null"),
    ("null eq null", "all"),
    ("null ne null", "none"),
    ("null ge null", "all"),
    ("null gt null", "none"),
    ("case(contains(N,''):1,true:2) eq 2", "null"),
    ("case(contains(N,''):1) eq null", "null"),
    ("equalnull(N,'no such text')", "null"),
    ("lessequalnull(N,'🙂🙂')", "all"),
    ("greaterequalnull(N,'🙂🙂')", "null"),
    ("CostingCurrency eq null and CostingCurrency/CurrencySign ne null", "none"),
    ("CostingCurrency/CurrencySign eq null and CostingCurrency/Id ne null", "none"),
    ("GuaranteePeriodDays div 0 eq null", "all"),
)


@pytest.mark.parametrize("written, holds_for", CASES, ids=[case[0] for case in CASES])
def test_null_behaves_as_the_specification_says(products: list[Row], ask: Ask, written: str, holds_for: str) -> None:
    filter_text = re.sub(r"\bN\b", "CatalogDescriptionHtml", written)
    found = {row["Id"] for row in ask("General_Products_Products", f"$select=Id&$filter={filter_text}")["value"]}
    null = {row["Id"] for row in products if row["CatalogDescriptionHtml"] is None}
    everything = {row["Id"] for row in products}
    assert found == {"null": null, "text": everything - null, "none": set(), "all": everything}[holds_for]
