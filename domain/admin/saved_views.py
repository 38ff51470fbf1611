"""Saved views of lists. Opening a view leaves out columns and filters that the user may not see."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import ORDER_VAR, SEARCH_VAR
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext

from domain.admin.context import is_administrator
from domain.admin.list_address import COLUMNS, SORT, VIEW, filters_of, sort_of_order, wanted_columns
from domain.model.saved_settings import (
    NAME_CHARACTERS,
    QUERY_CHARACTERS,
    SavedView,
    setting_save,
    settings_list,
    usable_by,
)
from foundation import errors
from foundation.guids import is_guid


def views_of(page: Any, request: HttpRequest) -> list[SavedView]:
    """The views of the list that the user may open."""
    return settings_list(_of_list(page), request.user.pk)


def find_view(page: Any, request: HttpRequest, view_id: str) -> SavedView | None:
    """The user's own or shared view of the list with this id, or None."""
    if not is_guid(view_id):
        return None
    return _of_list(page).filter(usable_by(request.user.pk), pk=view_id).first()


def default_view(page: Any, request: HttpRequest) -> SavedView | None:
    """The user's default view, for a list without a query string."""
    return _of_list(page).filter(user_id=request.user.pk, is_default=True).first()


def opened(page: Any, request: HttpRequest, view: SavedView) -> tuple[QueryDict, list[str]]:
    """(the view's query for this user, names of columns and filters left out because the user may not see them)."""
    stored = QueryDict(view.query)
    known, wanted = page.known_columns(request), wanted_columns(stored)
    columns = [name for name in wanted if name in known] or page.standard_columns(request)
    filters = filters_of(page, request, stored)
    result = QueryDict(mutable=True)
    result.update({COLUMNS: ",".join(columns), SORT: stored.get(SORT, ""), VIEW: str(view.pk)})
    if SEARCH_VAR in stored:
        result[SEARCH_VAR] = stored[SEARCH_VAR]
    for name, values in filters.items():
        result.setlist(name, values)
    left_out = [name for name in wanted if name not in known]
    left_out += [name for name in stored if name not in (COLUMNS, SORT, SEARCH_VAR, *filters)]
    return result, left_out


def save_view(
    page: Any, request: HttpRequest, name: str, query: str, *, is_shared: bool, is_default: bool
) -> SavedView:
    """Save the list with this query string as the user's view of this name; replaces an earlier one.

    Raises Refused.
    """
    name = " ".join(name.split())
    if not name:
        raise _refused(gettext("A view needs a name."))
    stored = _stored(page, request, QueryDict(query))
    if len(name) > NAME_CHARACTERS or len(stored) > QUERY_CHARACTERS:
        raise _refused(gettext("The name, the filters or the search are too long for a view."))
    values = {"query": stored, "is_shared": is_shared, "is_default": False}
    with transaction.atomic():
        view = setting_save(SavedView, request.user.pk, values, repository=page.repository.name, name=name)
        if is_default:
            _of_list(page).filter(user_id=request.user.pk, is_default=True).update(is_default=False)
            SavedView.objects.filter(pk=view.pk).update(is_default=True)
    return view


def _refused(reason: str) -> errors.Refused:
    return errors.Refused(errors.VALIDATION_FAILED, reason)


def delete_view(page: Any, request: HttpRequest, view_id: str) -> SavedView | None:
    """Delete a view of the user; administrators may also delete shared ones of others. None if there is no such."""
    view = find_view(page, request, view_id)
    if view is None or not may_delete(request, view):
        return None
    view.delete()
    return view


def may_delete(request: HttpRequest, view: SavedView) -> bool:
    """Whether the view is the user's, or the user is an administrator."""
    return str(view.user_id) == str(request.user.pk) or is_administrator(request)


def _stored(page: Any, request: HttpRequest, query: QueryDict) -> str:
    """The part of a list's query string that a view stores: columns, order by names, search and filters."""
    known = page.known_columns(request)
    columns = [name for name in wanted_columns(query) if name in known]
    shown = columns or page.standard_columns(request)
    sort = query.get(SORT) or sort_of_order(query.get(ORDER_VAR, ""), shown, page.first_column(request))
    result = QueryDict(mutable=True)
    for name, value in ((COLUMNS, ",".join(columns)), (SORT, sort), (SEARCH_VAR, query.get(SEARCH_VAR, ""))):
        if value:
            result[name] = value
    for name, values in sorted(filters_of(page, request, query).items()):
        result.setlist(name, values)
    return result.urlencode(safe=",")


def _of_list(page: Any) -> QuerySet[SavedView]:
    return SavedView.objects.filter(repository=page.repository.name)
