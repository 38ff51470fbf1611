"""A chart is a drawing for those who see it and a table for everybody."""

from __future__ import annotations

import json
import re
from decimal import Decimal

from django.template import Context, Template
from django.utils import translation

from foundation.charts import Chart, Series


def printed(chart: Chart) -> str:
    """What a page has of it."""
    return Template("{{ chart }}").render(Context({"chart": chart}))


def test_the_table_says_what_the_drawing_shows() -> None:
    amounts = Series("EUR", [Decimal("1234.5"), None], "good"), Series("Limit", [2000, 2000], "bad", is_line=True)
    chart = Chart("Sales", "Month", ["Jan", "Feb"], amounts, links=["/a?x=1&y=2", "/b"], unit=" EUR", digits=2)
    page = printed(chart)
    assert '<div class="chart-drawing" role="img" aria-label="Sales" hidden></div>' in page
    assert '<th scope="row"><a href="/a?x=1&amp;y=2">Jan</a></th><td>1,234.50 EUR</td><td>2,000.00 EUR</td>' in page
    assert '<th scope="row"><a href="/b">Feb</a></th><td>–</td>' in page
    data = json.loads(re.findall(r'<script type="application/json">(.*)</script>', page)[0])
    assert data["categories"] == ["Jan", "Feb"]
    assert data["series"] == [
        {"name": "EUR", "colour": "good", "line": False, "figures": [1234.5, None]},
        {"name": "Limit", "colour": "bad", "line": True, "figures": [2000.0, 2000.0]},
    ]
    with translation.override("de"):
        assert "1.234,50 EUR" in printed(chart)


def test_names_stay_text() -> None:
    name = "</script><b>"
    page = printed(Chart(name, name, [name], [Series(name, [1])], unit=name))
    assert page.count("</script>") == 1
    assert "<b>" not in page


def test_without_figures_there_is_neither() -> None:
    for figures in ([], [0], [None, 0]):
        limit = Series("Limit", [9] * len(figures), is_line=True)
        page = printed(Chart("Sales", "Month", ["Jan", "Feb"][: len(figures)], [Series("EUR", figures), limit]))
        assert "No figures yet." in page
        assert "chart-drawing" not in page
        assert "<table" not in page
