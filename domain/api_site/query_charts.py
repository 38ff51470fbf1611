"""Charts of the rows of a response, as configured in a saved query.

For the query tool's Chart tab (domain/static/domain/site_chart.js) and for tiles of the home page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypedDict, cast

from django.utils.translation import gettext

from foundation.charts import Chart, Colour, Kind, Series

KINDS: tuple[Kind, ...] = ("bar", "line", "pie")
#: Maximum categories and series of a readable chart; the series with the largest figures are kept.
MOST_CATEGORIES, MOST_SERIES = 200, 5
_EMPTY = "–"

Row = Mapping[str, Any]


class ChartChoice(TypedDict):
    """The columns of a chart.

    label   the column of the categories
    split   the column whose values become series; "" for none
    values  the columns with the figures
    """

    kind: Kind
    label: str
    split: str
    values: list[str]


def chart_of_rows(rows: Sequence[Row], choice: ChartChoice, language: str) -> Chart:
    """The chart of the rows. Figures of the same category and series are added up.

    Each currency of amounts becomes a separate series. Raises LookupError for a column that no row has.
    """
    label, split, values = choice["label"], choice["split"], choice["values"]
    for name in (label, *values, *([split] if split else [])):
        if rows and not any(name in row for row in rows):
            raise LookupError(name)
    figures: dict[str, dict[str, Decimal]] = {}
    for row in rows:
        category = cell_text(row.get(label), language) or _EMPTY
        for name in values:
            figure = cell_number(cell := row.get(name))
            if figure is None:
                continue
            parts = [cell_text(row.get(split), language) or _EMPTY] if split else []
            parts += [name] if len(values) > 1 or not split else []
            parts += [measure] if (measure := _measure(cell)) else []
            series = figures.setdefault(" · ".join(parts), {})
            series[category] = series.get(category, Decimal(0)) + figure
    categories = list(dict.fromkeys(cell_text(row.get(label), language) or _EMPTY for row in rows))[:MOST_CATEGORIES]
    largest = sorted(figures, key=lambda name: -sum(map(abs, figures[name].values())))[:MOST_SERIES]
    return Chart(
        chart_title(choice),
        label,
        categories,
        [
            Series(name, [figures[name].get(category) for category in categories], cast(Colour, str(at)))
            for at, name in enumerate((name for name in figures if name in largest), start=1)
        ],
        digits=2 if any(has_fraction(each) for series in figures.values() for each in series.values()) else 0,
        kind=choice["kind"],
    )


def chart_title(choice: ChartChoice) -> str:
    """The title of the chart."""
    by = [name for name in (choice["label"], choice["split"]) if name]
    return gettext("{values} by {labels}").format(values=", ".join(choice["values"]), labels=", ".join(by))


def cell_number(value: object) -> Decimal | None:
    """The number of a cell, an amount or a quantity; None for any other value."""
    if isinstance(value, dict):
        return cell_number(value.get("Value"))
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def has_fraction(number: Decimal) -> bool:
    """Whether the number has a fraction. Works for any size, unlike a division, which fails beyond 28 digits."""
    return number != number.to_integral_value()


def cell_text(value: object, language: str) -> str:
    """The text of a cell: the display text of an entity, an amount with its currency, a text in the language."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{len(value)}]"
        case dict():
            return _text_of_object(value, language)
    return str(value)


def _text_of_object(value: dict[str, Any], language: str) -> str:
    name = value.get("DisplayText") or value.get("Name") or value.get("Code")
    if "Value" in value and (measure := _measure(value)):
        return f"{cell_text(value['Value'], language)} {measure}"
    if name:
        return cell_text(name, language)
    members = {key: inner for key, inner in value.items() if "@" not in key}
    if members and all(len(key) == 2 and key.isupper() and isinstance(text, str) for key, text in members.items()):
        return str(members.get(language.upper(), next(iter(members.values()))))
    return " · ".join(filter(None, (cell_text(inner, language) for inner in members.values())))


def _measure(value: object) -> str:
    """The currency of an amount, the unit of a quantity; "" for other values."""
    return str(value.get("Currency") or value.get("Unit") or "") if isinstance(value, dict) else ""
