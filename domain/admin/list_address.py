"""The query string of a list: columns and order by name, filters, search, and the saved view.

columns   names of columns, separated by commas: `columns=__str__,state`
sort      names of columns, with a minus for descending order: `sort=-document_date`; replaced by Django's `o`, which
          has indexes of columns, before the list is shown, since indexes change with columns and rights
view      the id of a saved view; alone, it stands for the view's query string; empty: no view, not even the default
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.options import IS_FACETS_VAR, IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.views.main import ALL_VAR, ERROR_FLAG, ORDER_VAR, PAGE_VAR, SEARCH_VAR
from django.http import HttpRequest, QueryDict

COLUMNS, SORT, VIEW = "columns", "sort", "view"
#: Parameters of the current page of a list, which saved views do not contain.
PASSING = (PAGE_VAR, ALL_VAR, ERROR_FLAG, IS_POPUP_VAR, IS_FACETS_VAR, TO_FIELD_VAR, VIEW)
#: Parameters that are no filters.
NO_FILTERS = (*PASSING, COLUMNS, SORT, ORDER_VAR, SEARCH_VAR)


def wanted_columns(query: QueryDict) -> list[str]:
    """The names of columns, each once; [] for the standard ones."""
    names = (name.strip() for given in query.getlist(COLUMNS) for name in given.split(","))
    return list(dict.fromkeys(name for name in names if name))


def sort_of_order(order: str, names: Sequence[str], first: int) -> str:
    """Converts Django's `o` to `sort`. first: index of the first named column; ignores other indexes."""
    result = []
    for part in order.split("."):
        _, minus, digits = part.rpartition("-")
        place = int(digits) - first if digits.isdecimal() and len(digits) < 4 else -1
        if 0 <= place < len(names):
            result.append(f"{minus}{names[place]}")
    return ",".join(result)


def order_of_sort(sort: str, names: Sequence[str], first: int) -> str:
    """Converts `sort` to Django's `o`; ignores unknown names."""
    result = []
    for part in sort.split(","):
        name = part.strip().removeprefix("-")
        if name in names:
            result.append(f"{'-' if part.strip().startswith('-') else ''}{names.index(name) + first}")
    return ".".join(result)


def filters_of(page: Any, request: HttpRequest, query: QueryDict) -> dict[str, list[str]]:
    """The filters that the user may apply: parameter → values."""
    return {
        name: [str(value) for value in values]
        for name, values in query.lists()
        if name not in NO_FILTERS and all(page.lookup_allowed(name, str(value), request) for value in values)
    }


def with_place(query: QueryDict, names: Sequence[str], first: int) -> str:
    """The query string with one `columns` parameter, and `o` in place of `sort`."""
    result = query.copy()
    columns = wanted_columns(result)
    result.pop(COLUMNS, None)
    if columns:
        result[COLUMNS] = ",".join(columns)
    if SORT in result:
        order = order_of_sort(result.get(SORT, ""), names, first)
        result.pop(SORT)
        result.pop(ORDER_VAR, None)
        if order:
            result[ORDER_VAR] = order
    return result.urlencode(safe=",")
