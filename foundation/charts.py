"""Charts of pages: figures to draw, and the same figures as a table.

A page prints a Chart ({{ chart }}) and loads CSS and JS. templates/foundation/chart.html has the figures as JSON and as
a table, which needs no script; platform_site/shell/charts.js draws them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from django.forms import Script
from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.safestring import SafeString

#: The names of the custom properties --chart-… of charts.css.
Colour = Literal["1", "2", "3", "4", "5", "good", "bad"]
Figure = Decimal | float | None
Kind = Literal["bar", "line", "pie"]

CSS, JS = "platform_site/charts.css", Script("platform_site/charts.js", defer=True)


@dataclass(frozen=True, slots=True)
class Series:
    """One figure (or None) for each category: bars, or a line for a limit."""

    name: str
    figures: Sequence[Figure]
    colour: Colour = "1"
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures by category.

    by          column heading of the categories
    links       for each category the page that lists the counted objects; () without
    unit        shown after each figure
    digits      decimal places
    is_stacked  the bars of a category stand on each other
    kind        of a pie only the first series is drawn; Series.is_line is for bars
    """

    title: str
    by: str
    categories: Sequence[str]
    series: Sequence[Series]
    links: Sequence[str] = ()
    unit: str = ""
    digits: int = 0
    is_stacked: bool = False
    kind: Kind = "bar"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw: no bar would have a height."""
        return not any(figure for each in self.series if not each.is_line for figure in each.figures)

    @property
    def drawing(self) -> dict[str, Any]:
        """The input of charts.js."""
        return {
            "categories": self.categories,
            "links": self.links,
            "unit": self.unit,
            "digits": self.digits,
            "stacked": self.is_stacked,
            "kind": self.kind,
            "series": [
                {
                    "name": each.name,
                    "colour": each.colour,
                    "line": each.is_line,
                    "figures": [None if figure is None else float(figure) for figure in each.figures],
                }
                for each in self.series
            ],
        }

    def rows(self) -> Iterator[tuple[str, str, list[str]]]:
        """(category, link or "", figures as text) of the table."""
        for at, category in enumerate(self.categories):
            texts = [self._text(each.figures[at]) for each in self.series]
            yield category, self.links[at] if self.links else "", texts

    def _text(self, figure: Figure) -> str:
        if figure is None:
            return "–"
        return f"{number_format(figure, self.digits, use_l10n=True, force_grouping=True)}{self.unit}"

    def render(self) -> SafeString:
        """The figure element."""
        return render_to_string("foundation/chart.html", {"chart": self})

    __str__ = __html__ = render
