"""Charts of firings by day: of a rule, and of all rules."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.formats import date_format
from django.utils.translation import gettext

from foundation.charts import Chart, Series
from rules.statistics import DayOfRule


def firings_chart(title: str, days: Sequence[DayOfRule]) -> Chart:
    """How often rules acted and failed on each day."""
    return Chart(
        title,
        gettext("Day"),
        [date_format(day.day, "j M") for day in days],
        (
            Series(gettext("Fired"), [day.fired for day in days], "good"),
            Series(gettext("Failed"), [day.failed for day in days], "bad"),
        ),
        is_stacked=True,
    )
