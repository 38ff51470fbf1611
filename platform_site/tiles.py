"""Saved queries as cards of the home page.

The home page has a placeholder for each tile, which the browser loads separately: a slow or broken query affects only
its tile. The query runs with the rights and row policies of the user who views the page, also if another user saved it.

A query that returns one number shows it; one with a chart shows the chart; others show their first rows. QUERY_SECONDS
limits the time as for any read, MOST_ROWS the rows. A process caches a tile, also a failed one, for LIFETIME_SECONDS by
query, rights and language: changes of these are visible at once, changed data after that time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Hashable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from domain.admin.context import admin_context
from domain.api_site.query_charts import MOST_CATEGORIES, Row, cell_number, cell_text, chart_of_rows, has_fraction
from domain.api_site.saved_queries import home_queries
from domain.model.registry import repositories
from domain.model.saved_settings import SavedQuery
from domain.odata.http.views import service_root
from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service import handler
from identity.context import CallContext
from identity.lru import GenerationalCache
from platform_site.cards import Card, Line, Table, number_text

LIFETIME_SECONDS = 60
#: Maximum rows that a tile reads; maximum rows that a table shows.
MOST_ROWS, TABLE_ROWS = MOST_CATEGORIES, 5
_TABLE_COLUMNS, _CELL_CHARACTERS = 6, 80
#: The service root before a path, if the user saved a whole URL; a lookahead that matches outside of quotes.
_ROOT, _OUTSIDE_QUOTES = re.compile(r"^/*(?:[\w:./-]*/)?domain/odata/?|^/+"), r"(?=(?:[^']*'[^']*')*[^']*$)"
#: (query, rights, language) → (expiry by time.monotonic, card).
_kept: GenerationalCache[Hashable, tuple[float, Card]] = GenerationalCache(500)


def tiles_list(request: HttpRequest) -> list[Card]:
    """A placeholder card for each tile of the user; the browser loads the tile."""
    return [
        replace(_card(query), said="…", load=reverse("admin:tile", args=[query.pk]))
        for query in home_queries(request.user.pk)
    ]


@require_safe
def tile_page(request: HttpRequest, query_id: UUID) -> HttpResponse:
    """The card of one query on the user's home page."""
    query = get_object_or_404(home_queries(request.user.pk), pk=query_id)
    most = TABLE_ROWS + 1 if query.chart is None else MOST_ROWS
    context = admin_context(request).with_(scopes=frozenset({"read"}), prefer={"odata.maxpagesize": str(most)})
    return render(request, "site/_card.html", {"card": _kept_tile(query, context, service_root(request))})


def _kept_tile(query: SavedQuery, context: CallContext, root: str) -> Card:
    assert context.user is not None
    rights = (context.user.id, context.permissions.key, repositories.generation)
    key = (query.pk, query.name, query.path, json.dumps(query.chart), *rights, context.language)
    known = _kept.get(key)
    if known is None or known[0] < time.monotonic():
        known = (time.monotonic() + LIFETIME_SECONDS, _tile(query, context, root))
        _kept.put(key, known)
    return known[1]


def _tile(query: SavedQuery, context: CallContext, root: str) -> Card:
    headers = {"accept": "application/json;odata.metadata=none"}
    response = handler.handle(ReceivedRequest("GET", *_url(query.path), headers, b"", context, root))
    card = _card(query)
    if response.status >= 400:
        return replace(card, said=_refusal(response))
    try:
        rows = _rows(response)
    except ValueError:
        return replace(card, said=gettext("This query reads no rows, so there is nothing to show here."))
    if query.chart is None:
        return _of_rows(card, rows, context.language)
    try:
        return replace(card, chart=chart_of_rows(rows, query.chart, context.language), lines=_more(rows, MOST_ROWS))
    except LookupError as missing:
        said = gettext("The rows have no column %(name)s any more; save the query with another chart.")
        return replace(card, said=said % {"name": missing.args[0]})


def _card(query: SavedQuery) -> Card:
    return Card(f"tile-{query.pk}", query.name, f"{reverse('api-query')}#GET%20{quote(query.path, safe='')}")


def _url(typed: str) -> tuple[str, str]:
    """(path, query) of the typed text, percent-encoded unless it is already, as site.encoded of site_core.js."""
    text = _ROOT.sub("", "".join(line.strip() for line in typed.splitlines()))
    path, *query = re.split(r"\?" + _OUTSIDE_QUOTES, text, maxsplit=1)
    options = re.split("&" + _OUTSIDE_QUOTES, query[0]) if query else []
    return _encoded(path), "&".join(re.sub("[+&#]", lambda sign: quote(sign[0]), _encoded(each)) for each in options)


def _encoded(text: str) -> str:
    return quote(re.sub("%(?![0-9a-fA-F]{2})", "%25", text), safe="%-._~!$&'()*+,;=:@/?")


def _refusal(response: ODataResponse) -> str:
    if response.status in (401, 403):
        return gettext("You may not read what this query asks for.")
    message = json.loads(response.body)["error"]["message"]
    return gettext("This query cannot be shown: %(reason)s") % {"reason": message}


def _rows(response: ODataResponse) -> list[Row]:
    """The rows of a collection; an entity or a value as one row. Raises ValueError for other responses."""
    if response.push is not None or response.status != 200:
        raise ValueError(response.status)
    body: Any = json.loads(response.body, parse_float=Decimal)
    found = body.get("value", body) if isinstance(body, dict) else body
    listed = found if isinstance(found, list) else [found]
    return [each if isinstance(each, dict) else {"value": each} for each in listed]


def _of_rows(card: Card, rows: list[Row], language: str) -> Card:
    """The card with one number, or the first rows as a table."""
    names = list(dict.fromkeys(name for row in rows for name in row if "@" not in name))
    if len(rows) == len(names) == 1 and (number := cell_number(cell := rows[0].get(names[0]))) is not None:
        text = (
            cell_text(cell, language)
            if isinstance(cell, dict)
            else number_text(number, 2 if has_fraction(number) else 0)
        )
        return replace(card, figure=text, said="" if names == ["value"] else names[0])
    if not rows:
        return replace(card, said=gettext("There are no such rows."))
    shown = names[:_TABLE_COLUMNS]
    texts = [
        [Truncator(cell_text(row.get(name), language)).chars(_CELL_CHARACTERS) for name in shown]
        for row in rows[:TABLE_ROWS]
    ]
    return replace(card, table=Table(shown, texts), lines=_more(rows, TABLE_ROWS + 1))


def _more(rows: list[Row], most: int) -> tuple[Line, ...]:
    """A line that says that there are more rows; () if there are none."""
    return (Line(gettext("There are more rows; the query has them all.")),) if len(rows) >= most else ()
