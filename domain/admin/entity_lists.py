"""Lists of entities: rows that the user may read; search and filters reveal nothing about other rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IS_POPUP_VAR, IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.text import smart_split, unescape_string_literal
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from unfold.templatetags import unfold_list

from domain.admin.calculated_columns import CalculatedColumn, calculated_columns, load_calculated
from domain.admin.columns import Column, FirstOfCollection, listable, load_collections, may_list
from domain.admin.context import once
from domain.admin.custom_properties import CustomColumn, custom_columns
from domain.admin.entity_fields import EntityFields
from domain.admin.exports import FORMATS, exported
from domain.admin.list_address import COLUMNS, VIEW, wanted_columns
from domain.admin.list_tools import changed_views, full_address, list_tools, say_left_out
from domain.admin.lists import PATTERNS
from domain.admin.measures import attribute_name, readable
from domain.admin.visible_rows import restricts, rows_of, text_paths, with_visible_references
from domain.model.registry import repositories
from identity.admin_bases import PageAdmin

if TYPE_CHECKING:
    # django-unfold has no types.
    from django.contrib.admin.views.main import ChangeList
else:
    from unfold.views import ChangeList

ListColumn = Column | CustomColumn | CalculatedColumn

_made_headers = unfold_list.result_headers


def _headers_once(changelist: Any) -> list[Any]:
    """The headings of a list, computed once: Unfold computes them for every row, a fifth of the page's time."""
    if not hasattr(changelist, "made_headers"):
        changelist.made_headers = list(_made_headers(changelist))
    result: list[Any] = changelist.made_headers
    return result


unfold_list.result_headers = _headers_once


class EntityChangeList(ChangeList):
    """A list whose query string may also name its columns and its saved view."""

    def find_rows(self, request: HttpRequest) -> list[Any]:
        """The rows of the page. Of a filtered or sorted list, selects the keys first, then the rows by key.

        Databases sort whole joined rows: for 10,000 orders that took 20 ms, and 3 ms for keys only.
        """
        if self.queryset.query.where or self.get_ordering_field_columns():
            self.result_list = self.rows_by_key(request, list(self.result_list.values_list("pk", flat=True)))
        return list(self.result_list)

    def rows_by_key(self, request: HttpRequest, keys: Sequence[Any]) -> QuerySet[Any]:
        """The rows with these keys, with the references that the columns need, in the list's order."""
        rows = self.apply_select_related(self.root_queryset.filter(pk__in=keys))
        return rows.order_by(*self.get_ordering(request, rows))

    def get_filters_params(self, params: Any = None) -> Any:
        """The parameters that are filters."""
        result = super().get_filters_params(params)
        for name in (COLUMNS, VIEW):
            result.pop(name, None)
        return result


class EntityLists(EntityFields, PageAdmin):
    """The list of one repository."""

    def get_urls(self) -> list[URLPattern]:
        """Adds the URLs of exports."""
        view = self.admin_site.admin_view(never_cache(require_GET(self._export)))
        exports = [path(f"export/{name}/", view, {"name": name}) for name in FORMATS]
        views = self.admin_site.admin_view(never_cache(require_POST(self._change_views)))
        return [*exports, path("views/", views), *super().get_urls()]

    def _export(self, request: HttpRequest, name: str) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            changelist = self.filtered_list(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(f"../../?{ERROR_FLAG}=1")
        return exported(self, request, changelist, name)

    def filtered_list(self, request: HttpRequest) -> Any:
        """The list of the request, without loading rows."""
        return super().get_changelist_instance(request)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list; references to hidden entities are null in its rows."""
        changelist = self.filtered_list(request)
        self.prepare_rows(request, changelist.find_rows(request), changelist.list_display)
        return changelist

    # --- columns ------------------------------------------------------------------------------------------------------

    def known_columns(self, request: HttpRequest) -> dict[str, ListColumn]:
        """Name → column, of all columns that the list can show to the user; the standard ones first."""
        return once(request, ("columns", self.repository.name), lambda: self._find_columns(request))

    def _find_columns(self, request: HttpRequest) -> dict[str, ListColumn]:
        columns: dict[str, Any] = {attribute_name(column): column for column in super().get_list_display(request)}
        for name in listable(self.repository):
            columns.setdefault(name, readable(self.repository, name))
        extended: list[Any] = [*custom_columns(self.repository), *calculated_columns(request, self.repository)]
        columns |= {column.attribute_name: column for column in extended}
        return {name: column for name, column in columns.items() if may_list(request, self.repository, column)}

    def standard_columns(self, request: HttpRequest) -> list[str]:
        """Names of the columns if the query string names none."""
        known = self.known_columns(request)
        return [name for column in super().get_list_display(request) if (name := attribute_name(column)) in known]

    def chosen_columns(self, request: HttpRequest) -> list[str]:
        """Names of the list's columns: those in the query string that the user may see, else the standard ones."""
        known = self.known_columns(request)
        return [name for name in wanted_columns(request.GET) if name in known] or self.standard_columns(request)

    def first_column(self, request: HttpRequest) -> int:
        """The index of the first chosen column in Django's list_display, which may begin with the checkbox."""
        return 1 if self.get_actions(request) else 0

    def get_list_display(self, request: HttpRequest) -> Any:
        """The chosen columns."""
        known = self.known_columns(request)
        return [known[name] for name in self.chosen_columns(request)]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        """The declared link columns, if shown; else the first column."""
        return [each for each in self.list_display_links or () if each in list_display] or list(list_display)[:1]

    def get_list_select_related(self, request: HttpRequest) -> Any:
        """The references that the page and the chosen columns need."""
        declared = super().get_list_select_related(request)
        if not wanted_columns(request.GET) or declared is True:
            return declared
        return list(dict.fromkeys([*(declared or ()), *text_paths(self.repository, self.chosen_columns(request))]))

    # --- address and views --------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[EntityChangeList]:
        return EntityChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The list with its tools. Redirects a query string with only a view, or an order by name, to the full one."""
        if request.method != "GET" or IS_POPUP_VAR in request.GET:
            return super().changelist_view(request, extra_context)
        if not self.has_view_permission(request):
            raise PermissionDenied
        address = full_address(self, request)
        if address is not None:
            return HttpResponseRedirect(f"?{address}")
        known = self.known_columns(request)
        if unknown := [name for name in wanted_columns(request.GET) if name not in known]:
            say_left_out(request, unknown)
        return super().changelist_view(request, {"list_tools": list_tools(self, request), **(extra_context or {})})

    def _change_views(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return changed_views(self, request)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any], columns: Sequence[object]) -> None:
        """Prepare loaded rows for display: set hidden references to null, load values that are not attributes."""
        owners = [column.column.owner for column in columns if isinstance(column, FirstOfCollection)]
        with_visible_references(request, rows, [*(attribute_name(column) for column in columns), *owners])
        load_collections(request, rows, columns)
        load_calculated(request, rows, columns)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allows only lookups that the API allows, since a filter could reveal hidden values character by character.

        Refuses regular expressions, whose matching the database does not limit in time.
        """
        name, *rest = lookup.split("__")
        if PATTERNS & set(rest):
            return False
        attribute = self.repository.by_python_name.get(self.model._meta.pk.name if name == "pk" else name)
        if attribute is None or attribute.field is None:
            return False
        if attribute.is_reference and (request is None or restricts(request, repositories[attribute.target])):
            return False  # for this user the references to hidden rows are null
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_ordering(self, request: HttpRequest) -> Any:
        """Orders lists newest first by default, and choosers by code, so that their pages do not overlap."""
        own = super().get_ordering(request)
        if own or not request.path.endswith("/autocomplete/"):
            return own
        code = self.repository.code
        return (code.python_name, "pk") if code is not None and code.field is not None else ("pk",)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """As Django's; searches referenced entities only if the user may read them."""
        fields = {name: self._readable(request, name) for name in self.get_search_fields(request)}
        if not any(fields.values()):
            return super().get_search_results(request, queryset, search_term)
        for word in smart_split(search_term):
            text = unescape_string_literal(word) if word[:1] in "\"'" and word[:1] == word[-1:] else word
            queryset = queryset.filter(
                reduce(or_, [Q(**{f"{name}__icontains": text}) & readable for name, readable in fields.items()])
            )
        return queryset, False

    def _readable(self, request: HttpRequest, lookup: str) -> Q:
        """The condition that the user may read each row on the path of a lookup."""
        condition, model, path = Q(), self.model, ""
        for name in lookup.split("__")[:-1]:
            path = f"{path}__{name}" if path else name
            related: Any = model._meta.get_field(name).related_model
            model = related
            if restricts(request, repositories.for_model(model)):
                condition &= Q(**{f"{path}__in": rows_of(request, model._default_manager.all()).values("pk")})
        return condition
