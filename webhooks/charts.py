"""Renders charts of a template's deliveries as SVG, without scripts, style attributes or external images.

The pages' Content-Security-Policy allows none of these (spec 09, 9.5); webhooks.css sets the colours by class, for
light and dark pages. A chart has a name for screen readers, and each bar a title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from webhooks.selectors import DayOfTemplate

#: A format of Django: localized, and short enough below a bar.
_DAY = "j M"
WIDTH, HEIGHT = 640, 160
_LEFT, _BOTTOM, _TOP = 44, 22, 10
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - _LEFT - 6, HEIGHT - _BOTTOM - _TOP


@dataclass(frozen=True, slots=True)
class _Bar:
    """A stack of parts over one label, from the bottom up: (CSS class, value)."""

    label: str
    title: str
    parts: tuple[tuple[str, float], ...]


def deliveries_chart(days: Sequence[DayOfTemplate]) -> SafeString:
    """Delivered and failed deliveries by day."""
    bars = [
        _Bar(
            date_format(day.day, _DAY),
            gettext("%(day)s: %(delivered)d delivered, %(failed)d failed")
            % {"day": date_format(day.day, _DAY), "delivered": day.delivered, "failed": day.failed},
            (("delivered", day.delivered), ("failed", day.failed)),
        )
        for day in days
    ]
    return _chart(gettext("Delivered and failed by day"), bars, "")


def latency_chart(days: Sequence[DayOfTemplate]) -> SafeString:
    """Average time of an attempt by day."""
    bars = [
        _Bar(
            date_format(day.day, _DAY),
            gettext("%(day)s: %(ms).0f ms on average") % {"day": date_format(day.day, _DAY), "ms": day.average_ms or 0},
            (("latency", day.average_ms or 0.0),),
        )
        for day in days
    ]
    return _chart(gettext("Average time of an attempt by day, in milliseconds"), bars, " ms")


def _chart(name: str, bars: Sequence[_Bar], unit: str) -> SafeString:
    most = _round_up(max((sum(value for _, value in bar.parts) for bar in bars), default=0))
    step = _PLOT_WIDTH / max(1, len(bars))
    drawn = format_html_join("", "{}", ((_drawn(bar, index, step, most),) for index, bar in enumerate(bars)))
    return format_html(
        '<svg class="webhook-chart" role="img" aria-label="{}" viewBox="0 0 {} {}">'
        '<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}"/>'
        '<text class="scale" x="{}" y="{}">{}{}</text><text class="scale" x="{}" y="{}">0</text>{}</svg>',
        name, WIDTH, HEIGHT,
        _LEFT, _TOP + _PLOT_HEIGHT, WIDTH, _TOP + _PLOT_HEIGHT,
        _LEFT - 6, _TOP + 8, f"{most:g}", unit, _LEFT - 6, _TOP + _PLOT_HEIGHT, drawn,
    )  # fmt: skip


def _drawn(bar: _Bar, index: int, step: float, most: float) -> SafeString:
    left, bottom = _LEFT + index * step, float(_TOP + _PLOT_HEIGHT)
    parts: list[tuple[str, str, str, str, str]] = []
    for css_class, value in bar.parts:
        height = value / most * _PLOT_HEIGHT
        bottom -= height
        if value:
            parts.append(
                (css_class, f"{left + step * 0.15:.1f}", f"{bottom:.1f}", f"{step * 0.7:.1f}", f"{height:.1f}")
            )
    return format_html(
        '<g><title>{}</title><rect class="hit" x="{}" y="{}" width="{}" height="{}"/>{}'
        '<text class="label" x="{}" y="{}">{}</text></g>',
        bar.title, f"{left:.1f}", _TOP, f"{step:.1f}", _PLOT_HEIGHT,
        format_html_join("", '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>', parts),
        f"{left + step / 2:.1f}", HEIGHT - 6, bar.label,
    )  # fmt: skip


def _round_up(value: float) -> float:
    """The end of a scale: the next of 1, 2, 5, 10, 20 …"""
    limit = 1.0
    while True:
        for factor in (1, 2, 5):
            if limit * factor >= value:
                return limit * factor
        limit *= 10
