"""What is drawn of the rows of a response."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from domain.api_site.query_charts import MOST_SERIES, ChartChoice, cell_text, chart_of_rows
from foundation.charts import Chart


def drawn(rows: list[dict[str, Any]], label: str, *values: str, split: str = "") -> Chart:
    choice: ChartChoice = {"kind": "bar", "label": label, "split": split, "values": list(values)}
    return chart_of_rows(rows, choice, "en")


def figures(chart: Chart) -> dict[str, list[Any]]:
    return {each.name: list(each.figures) for each in chart.series}


def test_each_value_column_is_a_series() -> None:
    chart = drawn([{"S": "New", "N": 1, "T": Decimal("2.5")}, {"S": None, "N": 3, "T": None}], "S", "N", "T")
    assert list(chart.categories) == ["New", "–"]
    assert figures(chart) == {"N": [1, 3], "T": [Decimal("2.5"), None]}
    assert (chart.title, chart.by, chart.digits) == ("N, T by S", "S", 2)


def test_a_second_label_makes_the_series() -> None:
    rows = [{"M": "01", "S": "New", "N": 1}, {"M": "01", "S": "Old", "N": 2}, {"M": "02", "S": "Old", "N": 3}]
    chart = drawn(rows, "M", "N", split="S")
    assert (figures(chart), chart.digits) == ({"New": [1, None], "Old": [2, 3]}, 0)


def test_currencies_are_never_added_up() -> None:
    rows = [
        {"S": "New", "T": {"Value": Decimal(value), "Currency": sign}} for value, sign in (("1", "EUR"), ("2", "USD"))
    ]
    assert figures(drawn(rows, "S", "T")) == {"T · EUR": [1], "T · USD": [2]}


def test_a_column_that_no_row_has_is_named() -> None:
    with pytest.raises(LookupError, match="X"):
        drawn([{"S": "New", "N": 1}], "S", "X")
    assert drawn([], "S", "X").is_empty


def posted(rows: str, **choice: Any) -> Any:
    chart = {"kind": "bar", "label": "S", "values": ["N"], **choice}
    return Client().post("/api/chart", {"rows": rows, "chart": json.dumps(chart)})


@pytest.mark.django_db
def test_the_tab_gets_the_chart_and_its_figures_as_a_table() -> None:
    html = posted('[{"S": "New", "N": 0.10}, {"S": "New", "N": 0.20}]').content.decode()
    assert json.loads(re.findall(r'<script type="application/json">(.*?)</script>', html)[0])["series"][0][
        "figures"
    ] == [0.3]
    assert re.search(r'<th scope="row">New</th><td>0.30</td>', html)
    assert "&lt;b&gt;" in posted('[{"S": "<b>", "N": 1}]').content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rows",
    [
        "",
        "{}",
        "[1]",
        "[" * 5000,
        '[{"S": "a", "N": 1e999999999}]',
        f'[{{"S": "a", "N": {"9" * 400}}}]',
        '[{"S": "a"}]',
    ],
)
def test_what_is_no_chart_of_rows_is_refused(rows: str) -> None:
    assert posted(rows).status_code == 400
    assert posted("[]", kind="cake").status_code == 400


@pytest.mark.parametrize(
    "value,text",
    [
        (None, ""), (True, "true"), (Decimal("10.50"), "10.50"), ([1, 2], "[2]"), ({"Value": 3, "Unit": "kg"}, "3 kg"),
        ({"EN": "Order", "DE": "Auftrag"}, "Order"), ({"DE": "Auftrag"}, "Auftrag"),
        ({"Id": 7, "Name": {"EN": "Oak"}}, "Oak"),
        ({"A": 1, "@odata.id": "x", "B": None, "C": "c"}, "1 · c"), ({}, ""),
    ],
    ids=["null", "boolean", "decimal", "list", "quantity", "language", "other language", "entity", "object", "empty"],
)  # fmt: skip
def test_a_cell_is_told_as_the_grid_tells_it(value: object, text: str) -> None:
    assert cell_text(value, "en") == text


_CELLS = (
    st.none()
    | st.integers(-100, 100)
    | st.builds(
        lambda value, sign: {"Value": value, "Currency": sign}, st.integers(-9, 9), st.sampled_from(["EUR", "USD"])
    )
)
_ROWS = st.lists(
    st.fixed_dictionaries({"L": st.sampled_from("abc"), "S": st.sampled_from("xyz"), "N": _CELLS}), max_size=40
)


@given(rows=_ROWS, split=st.sampled_from(["", "S"]))
def test_no_figure_is_lost_or_counted_twice(rows: list[dict[str, Any]], split: str) -> None:
    chart = drawn(rows, "L", "N", split=split)
    assert len(chart.series) <= MOST_SERIES
    assert all(len(each.figures) == len(chart.categories) for each in chart.series)
    if len({(row["S"] if split else "", row["N"]["Currency"] if isinstance(row["N"], dict) else "")
            for row in rows if row["N"] is not None}) <= MOST_SERIES:  # fmt: skip
        numbers = [row["N"]["Value"] if isinstance(row["N"], dict) else row["N"] or 0 for row in rows]
        assert sum(figure or 0 for each in chart.series for figure in each.figures) == sum(numbers)
