"""Cards about the orders of a year, by state and by month, for users who may read orders (spec 09, 9.5).

Both use the read engine, so they count the rows that the user's row policies allow. The time of a query grows with the
orders of one year, not with all.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from domain.admin.context import admin_context, permitted
from domain.model.registry import repositories
from domain.query import Representation, read_collection, select_rows
from domain.syntax import parse_query_options
from foundation.charts import Chart, Colour, Series
from foundation.enums import DOCUMENT_STATE, label
from foundation.fields import utc_now
from platform_site.cards import Card, Line, number_text

_ORDERS = repositories["Crm.Sales.SalesOrders"]
_MONTHS = 12
#: The states from which on an order is a sale.
_SOLD = ("Released", "Completed", "Closed")
_COLOURS: tuple[Colour, ...] = ("1", "2", "3", "4", "5")


def may_read_sales(request: HttpRequest) -> bool:
    """Whether the user may read orders."""
    return permitted(request, "read", _ORDERS)


def orders_card(request: HttpRequest) -> Card:
    """Orders by state."""
    months = _year(request)
    rows = _grouped(request, months, "State", "$count as N")
    counts = {row["State"]: int(row["N"]) for row in rows}
    states = [state for state in DOCUMENT_STATE.members if state in counts or state != "Adjustment"]
    total = sum(counts.values())
    return Card(
        "orders",
        gettext("Orders by state"),
        _list_of(months[0], months[-1]),
        figure=number_text(total),
        said=ngettext("order in twelve months", "orders in twelve months", total),
        chart=Chart(
            gettext("Orders by state, %(first)s to %(last)s") % {"first": _name(months[0]), "last": _name(months[-1])},
            gettext("State"),
            [label(state) for state in states],
            (Series(gettext("Orders"), [counts.get(state, 0) for state in states]),),
            links=[_list_of(months[0], months[-1], state=state) for state in states],
        ),
    )


def sales_card(request: HttpRequest) -> Card:
    """Totals of the released orders by month and currency."""
    months = _year(request)
    sold = " or ".join(f"State eq '{state}'" for state in _SOLD)
    rows = _grouped(request, months, "yearmonth(DocumentDate)", "TotalLineAmount with sum as Total,$count as N", sold)
    totals: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for row in rows:
        if row["Total"] is not None and (sign := row["Total"]["Currency"]):
            totals[sign][row["yearmonth"]] = Decimal(row["Total"]["Value"])
            counts[sign] += int(row["N"])
    signs = [sign for sign, _ in counts.most_common()]
    shown, further = signs[: len(_COLOURS)], len(signs[len(_COLOURS) :])
    states = ",".join(_SOLD)
    return Card(
        "sales",
        gettext("Sales by month"),
        _list_of(months[0], months[-1], state__in=states),
        figure=f"{number_text(sum(totals[signs[0]].values()), 2)} {signs[0]}" if signs else "0",
        said=gettext("in twelve months"),
        lines=(Line(_others(further)),) if further else (),
        chart=Chart(
            gettext("Totals of released orders by month"),
            gettext("Month"),
            [_name(month) for month in months],
            [
                Series(sign, [totals[sign].get(f"{month:%Y-%m}", Decimal(0)) for month in months], colour)
                for sign, colour in zip(shown, _COLOURS, strict=False)
            ],
            links=[_list_of(month, month, state__in=states) for month in months],
            digits=2,
        ),
    )


def _others(count: int) -> str:
    return ngettext("%(count)s further currency", "%(count)s further currencies", count) % {"count": count}


def _name(month: datetime.date) -> str:
    return date_format(month, "M Y")


def _year(request: HttpRequest) -> list[datetime.date]:
    """The first days of twelve months: up to the newest order's, and not beyond the current one."""
    today = utc_now().date()
    end = f"Void eq false and DocumentDate lt {_after(today)}"
    newest = select_rows(
        _ORDERS, ("DocumentDate",), ctx=admin_context(request), filter=end, orderby="DocumentDate desc", limit=1
    )
    last: datetime.date = newest[0][0] if newest else today
    numbers = range(last.year * 12 + last.month - _MONTHS, last.year * 12 + last.month)
    return [datetime.date(number // 12, number % 12 + 1, 1) for number in numbers]


def _after(day: datetime.date) -> datetime.date:
    """The first day of the month after the day's."""
    return (day.replace(day=1) + datetime.timedelta(days=32)).replace(day=1)


def _grouped(
    request: HttpRequest, months: list[datetime.date], by: str, aggregates: str, condition: str = ""
) -> list[dict[str, Any]]:
    """The orders of the months in groups, without void ones."""
    context = admin_context(request)
    within = f"Void eq false and DocumentDate ge {months[0]} and DocumentDate lt {_after(months[-1])}"
    chosen = f"{within} and ({condition})" if condition else within
    text = f"$apply=filter({chosen})/groupby(({by}),aggregate({aggregates}))"
    page = read_collection(
        _ORDERS, parse_query_options(quote(text, safe="$=(),/ ")), context, Representation("none", ieee754=True)
    )
    rows: list[dict[str, Any]] = orjson.loads(page.body)["value"]
    return rows


def _list_of(first: datetime.date, last: datetime.date, **conditions: str) -> str:
    """The URL of the list of the orders of those months."""
    dates = {"document_date__gte": str(first), "document_date__lt": str(_after(last))}
    return f"{reverse('admin:domain_salesorder_changelist')}?{urlencode({**dates, 'void__exact': '0', **conditions})}"
