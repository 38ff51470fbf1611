"""Tools above a list: saved views, column chooser, exports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import label_for_field
from django.contrib.admin.views.main import ORDER_VAR
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext

from domain.admin.list_address import (
    COLUMNS,
    PASSING,
    SORT,
    VIEW,
    sort_of_order,
    wanted_columns,
    with_place,
)
from domain.admin.saved_views import (
    default_view,
    delete_view,
    find_view,
    may_delete,
    opened,
    save_view,
    views_of,
)
from domain.model.saved_settings import SavedView
from foundation.errors import Refused

_LONGEST_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """A column that can be chosen."""

    name: str
    title: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ListTools:
    """Context of templates/domain/list_tools.html.

    choices     the chosen columns in their order, then the others
    kept        parameters that a change of the columns keeps
    sort        the order, by names of columns
    query       the list's query string, to save as a view
    exported    the query string of exports
    views       that the user may open
    view        the view in the query string
    is_own      whether the view is the user's
    may_delete  whether the user may delete the view
    """

    choices: list[Choice]
    kept: list[tuple[str, str]]
    sort: str
    query: str
    exported: str
    views: list[SavedView]
    view: SavedView | None
    is_own: bool
    may_delete: bool


def list_tools(page: Any, request: HttpRequest) -> ListTools:
    """The tools of the requested list."""
    chosen, known = page.chosen_columns(request), page.known_columns(request)
    others = [_choice(page, known[name], name, False) for name in known if name not in chosen]
    views = views_of(page, request)
    view = next((each for each in views if str(each.pk) == request.GET.get(VIEW)), None)
    kept = request.GET.copy()
    for name in (COLUMNS, SORT, ORDER_VAR, *(each for each in PASSING if each != VIEW)):
        kept.pop(name, None)
    exported = request.GET.copy()
    for name in PASSING:
        exported.pop(name, None)
    return ListTools(
        choices=[
            *(_choice(page, known[name], name, True) for name in chosen),
            *sorted(others, key=lambda choice: choice.title),
        ],
        kept=[(name, str(value)) for name, values in kept.lists() for value in values],
        sort=sort_of_order(request.GET.get(ORDER_VAR, ""), chosen, page.first_column(request)),
        query=request.GET.urlencode(),
        exported=exported.urlencode(),
        views=views,
        view=view,
        is_own=view is not None and str(view.user_id) == str(request.user.pk),
        may_delete=view is not None and may_delete(request, view),
    )


def _choice(page: Any, column: Any, name: str, is_chosen: bool) -> Choice:
    return Choice(name, capfirst(str(label_for_field(column, page.model, page))), is_chosen)


def full_address(page: Any, request: HttpRequest) -> str | None:
    """The query string to show instead of the request's; None if it is complete.

    Replaces a view alone by its columns, order, filters and search, and an empty query string by those of the user's
    default view. Replaces an order by names of columns by Django's, by indexes.
    """
    query: QueryDict = request.GET
    is_opened = False
    if not query or [*query] == [VIEW]:
        view_id = query.get(VIEW, "")
        view = find_view(page, request, view_id) if query else default_view(page, request)
        if view is not None:
            query, left_out = opened(page, request, view)
            is_opened = True
            if left_out:
                say_left_out(request, left_out)
        elif view_id:
            messages.warning(request, gettext("There is no such view any more."))
            return f"{VIEW}="
    if not (is_opened or SORT in query or len(query.getlist(COLUMNS)) > 1):
        return None
    known = page.known_columns(request)
    names = [name for name in wanted_columns(query) if name in known] or page.standard_columns(request)
    return with_place(query, names, page.first_column(request))


def say_left_out(request: HttpRequest, names: Iterable[str]) -> None:
    """Warn the user about columns and filters that do not exist or that the user may not see."""
    shown = Truncator(", ".join(names)).chars(_LONGEST_MESSAGE)
    messages.warning(
        request, gettext("Left out, as you have no such columns or filters: %(names)s.") % {"names": shown}
    )


def changed_views(page: Any, request: HttpRequest) -> HttpResponseRedirect:
    """Save or delete a view (form of templates/domain/list_tools.html), then redirect to the list."""
    posted = request.POST
    if view_id := posted.get("delete"):
        deleted = delete_view(page, request, view_id)
        if deleted is not None:
            messages.success(request, gettext("The view %(name)s is deleted.") % {"name": deleted.name})
        else:
            messages.error(request, gettext("There is no such view any more."))
        return HttpResponseRedirect(f"../?{VIEW}=")
    query = posted.get("query", "")
    try:
        view = save_view(
            page,
            request,
            posted.get("name", ""),
            query,
            is_shared="is_shared" in posted,
            is_default="is_default" in posted,
        )
    except Refused as refused:
        messages.error(request, refused.parameters[0])  # the reason, without the API's wording
        return HttpResponseRedirect(f"../?{QueryDict(query).urlencode()}")
    messages.success(request, gettext("The view %(name)s is saved.") % {"name": view.name})
    return HttpResponseRedirect(f"../?{VIEW}={view.pk}")
