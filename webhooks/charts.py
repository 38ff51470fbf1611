"""Charts of deliveries: of a template by day, and of all templates by hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext

from foundation.charts import Chart, Series
from webhooks.selectors import DayOfTemplate, Ended

_DAY, _HOUR = "j M", "H:i"


def deliveries_chart(days: Sequence[DayOfTemplate]) -> Chart:
    """Delivered and failed deliveries by day."""
    return Chart(
        gettext("Delivered and failed by day"),
        gettext("Day"),
        [date_format(day.day, _DAY) for day in days],
        _series([day.delivered for day in days], [day.failed for day in days]),
        is_stacked=True,
    )


def latency_chart(days: Sequence[DayOfTemplate]) -> Chart:
    """Average time of an attempt by day."""
    return Chart(
        gettext("Average time of an attempt by day, in milliseconds"),
        gettext("Day"),
        [date_format(day.day, _DAY) for day in days],
        (Series(gettext("Average time"), [day.average_ms for day in days]),),
        unit=" ms",
    )


def hours_chart(hours: Sequence[Ended]) -> Chart:
    """Deliveries of all templates that ended in each hour (UTC), with links to them."""
    return Chart(
        gettext("Delivered and failed by hour (UTC)"),
        gettext("Hour"),
        [date_format(hour.begin, _HOUR) for hour in hours],
        _series([hour.delivered for hour in hours], [hour.failed for hour in hours]),
        links=[_list_of(hour) for hour in hours],
        is_stacked=True,
    )


def _series(delivered: Sequence[int], failed: Sequence[int]) -> tuple[Series, ...]:
    return Series(gettext("Delivered"), delivered, "good"), Series(gettext("Failed"), failed, "bad")


def _list_of(hour: Ended) -> str:
    ended = {"finish_time_utc__gte": hour.begin, "finish_time_utc__lt": hour.begin + timedelta(hours=1)}
    query = urlencode({name: moment.isoformat() for name, moment in ended.items()})
    return f"{reverse('admin:webhooks_webhookdelivery_changelist')}?{query}"
