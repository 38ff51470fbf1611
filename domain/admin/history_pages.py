"""Pages of the change history: change sets with their changes (domain.entities.systems_core_history)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext

from domain.admin.context import is_administrator
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.page_links import PageLink, page_link
from domain.dataset.tables.history import ObjectChange, ObjectChangeset

_VALUES = frozenset({"changes", "old_values"})
#: Maximum duration of a request. Change sets are searched by time, since their request ids have no index.
_LONGEST_REQUEST = timedelta(hours=1)


@entity_page(ObjectChange)
class ObjectChangeAdmin(EntityAdmin):
    """The changes of objects. Only administrators see and filter by the values of all entities in one list."""

    def _find_columns(self, request: HttpRequest) -> dict[str, Any]:
        columns = super()._find_columns(request)
        hidden = () if is_administrator(request) else _VALUES
        return {name: column for name, column in columns.items() if name not in hidden}

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """As for other entities; refuses lookups on the values."""
        return lookup.split("__")[0] not in _VALUES and super().lookup_allowed(lookup, value, request)


@page_link(ObjectChangeset)
def request_link(request: HttpRequest, changeset: Any) -> PageLink | None:
    """The link to all change sets of the request, if it has several."""
    done: datetime = changeset.aggregate_last_update_time_utc
    same = {
        "aggregate_last_update_time_utc__gte": (done - _LONGEST_REQUEST).isoformat(),
        "aggregate_last_update_time_utc__lte": (done + _LONGEST_REQUEST).isoformat(),
        "request_id": changeset.request_id,
    }
    if not changeset.request_id or not ObjectChangeset.objects.filter(**same).exclude(pk=changeset.pk).exists():
        return None
    url = f"{reverse('admin:domain_objectchangeset_changelist')}?{urlencode(same)}"
    return PageLink(gettext("Everything that this request changed"), url, "history")
