"""The board of a document list: a column for each state, a card for each document. Moving a card changes the state.

The move posts to the same URL as the button of the document's page, so that rules, exit statuses and the history apply.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from domain.admin.entity_pages import EntityAdmin
from domain.admin.list_address import COLUMNS, PASSING
from domain.admin.measures import ValueColumn, attribute_name
from domain.admin.post_actions import PostActions
from domain.admin.visible_rows import rows_of
from domain.entities.document_states import FORWARD, transition_allowed
from domain.entities.general_documents import Document
from foundation.enums import label

#: Maximum cards of a column; maximum documents counted beyond them; maximum values of a card besides its title.
CARDS, _COUNTED, _VALUES = 20, 1000, 3
_STATE = "state"
#: The column of void documents, as the list's filter names it.
VOID = "Void"


@dataclass(frozen=True, slots=True)
class Card:
    """A document; `moves`: state → label, of the states to which the user may change it."""

    document: Document
    values: list[str]
    moves: dict[str, str]


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """The documents of a state, or the void ones: the first cards, the number of others (with a plus: at least), and
    the query string of their list."""

    state: str
    title: str
    cards: list[Card]
    more: str
    list_query: str


class BoardPage(PostActions, EntityAdmin):
    """The pages of documents, with a board in addition to the list."""

    def get_urls(self) -> list[URLPattern]:
        """Adds the URL of the board."""
        board = self.admin_site.admin_view(never_cache(require_GET(self._board)))
        return [path("board/", board), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Adds a link to the board with the same filters."""
        return super().changelist_view(
            request, {"board_query": _board_query(request).urlencode(), **(extra_context or {})}
        )

    def after_post(self, request: HttpRequest, obj: Any) -> str:
        """After a move of a card, the URL of its board."""
        board = request.POST.get("board")
        return super().after_post(request, obj) if board is None else f"../../board/?{QueryDict(board).urlencode()}"

    def _board(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = _board_query(request)
        request.GET = query  # type: ignore[assignment]  # the list's filters without that of the state
        try:
            changelist = self.filtered_list(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect("../?e=1")
        context = {
            **self.admin_site.each_context(request),
            "title": capfirst(str(self.opts.verbose_name_plural)),
            "opts": self.opts,
            "columns": self._columns(request, changelist),
            "board_query": query.urlencode(),
        }
        return TemplateResponse(request, "domain/board.html", context)

    def _columns(self, request: HttpRequest, changelist: Any) -> list[BoardColumn]:
        found = {state: changelist.queryset.filter(void=False, state=state) for state in FORWARD}
        found[VOID] = changelist.queryset.filter(void=True)
        keys = {state: list(documents.values_list("pk", flat=True)[: CARDS + 1]) for state, documents in found.items()}
        if not keys[VOID]:
            del keys[VOID]
        shown = [key for some in keys.values() for key in some[:CARDS]]
        documents = {document.pk: document for document in changelist.rows_by_key(request, shown)}
        self.prepare_rows(request, list(documents.values()), changelist.list_display)
        movable = self._movable(request, shown)
        values = [column for column in changelist.list_display if attribute_name(column) in self._card_names()]
        result = []
        for state, some in keys.items():
            more = ""
            if len(some) > CARDS:
                count = found[state].order_by()[: CARDS + _COUNTED].count()
                more = f"{count - CARDS}{'+' if count == CARDS + _COUNTED else ''}"
            cards = [
                Card(
                    document,
                    list(islice(filter(None, (_text(document, column) for column in values)), _VALUES)),
                    _moves(document) if document.pk in movable else {},
                )
                for document in map(documents.__getitem__, some[:CARDS])
            ]
            query: str = changelist.get_query_string({_STATE: state})
            title = gettext("Void") if state == VOID else label(state)
            result.append(BoardColumn(state, title, cards, more, query))
        return result

    def _movable(self, request: HttpRequest, keys: Sequence[Any]) -> set[Any]:
        """The keys of the documents that the user may change, by one query."""
        if not keys or not self.may(request, "update"):
            return set()
        all_of_them = self.model._default_manager.filter(pk__in=keys)
        return set(rows_of(request, all_of_them, "update").values_list("pk", flat=True))

    def _card_names(self) -> list[str]:
        """The attributes on a card besides the document's number: the list's declared columns, without the state."""
        declared = self.repository.admin_options.columns
        return [name for name in declared if isinstance(name, str) and name != _STATE]


def _board_query(request: HttpRequest) -> QueryDict:
    """Filters and search of the list, without the state and parameters that only the list has."""
    result = request.GET.copy()
    for name in (*PASSING, COLUMNS, ORDER_VAR, _STATE):
        result.pop(name, None)
    return result


def _moves(document: Document) -> dict[str, str]:
    """State → label of the next states, as for the button of the document's page, without user statuses."""
    if document.void:
        return {}
    planning_only = document.planning_only
    moves = (state for state in FORWARD if transition_allowed(document.state, state, planning_only=planning_only))
    return {state: label(state) for state in moves}


def _text(document: Document, column: Any) -> str:
    if isinstance(column, ValueColumn):
        return column(document) or ""
    value = getattr(document, attribute_name(column), None)
    if isinstance(value, datetime.date):
        return date_format(value)
    return "" if value is None else str(value)
