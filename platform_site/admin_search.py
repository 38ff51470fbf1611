"""The admin's search (Ctrl-K): requests by id, pages by name, and entities, all as the user's rights permit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst
from unfold.dataclasses import SearchResult

from domain.admin.visible_rows import text_paths, with_visible_references
from domain.model.registry import repositories
from platform_site.admin_site import PlatformAdminSite
from platform_site.models import RecordedRequest
from platform_site.request_inspector import detail_path, requests_by_id

#: Repositories whose entities are searched by number or name, in the order of the results.
SEARCHED = (
    "Crm.Sales.SalesOrders",
    "Crm.Sales.Customers",
    "Crm.Invoicing.Invoices",
    "Crm.Presales.Offers",
    "General.Products.Products",
    "General.Contacts.Persons",
    "General.Contacts.Companies",
    "Systems.Bpm.UserBusinessRules",
    "Systems.Config.WebHooks",
    "Systems.Core.Scripts",
    "Systems.Security.Users",
)
_MOST_PAGES, _MOST_ENTITIES = 10, 5
#: Request ids that callers may choose, except short ones, which may be words.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
#: Minimum characters of a search for entities; shorter texts find only pages.
_SHORTEST = 2
#: After this time no further repository is searched; the results name those left out.
_LONGEST_SECONDS = 1.0


def found_page(request: HttpRequest) -> HttpResponse:
    """The results of the command palette for the query parameter `s`."""
    started = time.monotonic()
    term = request.GET.get("s", "").strip()
    pages = islice(_pages(request, term), _MOST_PAGES)
    left_out: list[str] = []
    found = [*_requests(request, term), *pages, *_entities(request, term, started, left_out)] if term else []
    shown = {"results": found, "left_out": ", ".join(left_out)}
    return TemplateResponse(request, "unfold/helpers/command_results.html", shown)


def _requests(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    """Failed and slow requests with this id, for administrators."""
    page = admin.site.get_model_admin(RecordedRequest)
    if _REQUEST_ID.fullmatch(term) and page.has_view_permission(request):
        for row in requests_by_id(term)[:_MOST_ENTITIES]:
            kind = capfirst(str(RecordedRequest._meta.verbose_name))
            yield SearchResult(str(row), kind, detail_path(row), "troubleshoot")


def _pages(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    """The user's pages with all words in their names: those of the navigation first, then lists of owned entities."""
    words = term.casefold().split()
    for name, where, address in _all_pages(request):
        if all(word in name.casefold() for word in words):
            yield SearchResult(name, where, address, "table_rows")


def _all_pages(request: HttpRequest) -> Iterator[tuple[str, str, str]]:
    """(name, section or owner, URL) of every page of the user."""
    for section in admin.site.get_app_list(request):
        for model in section["models"]:
            if model["admin_url"]:
                yield str(model["name"]), section["name"], model["admin_url"]
    assert isinstance(admin.site, PlatformAdminSite)
    yield from admin.site.pages_of_parts(request)


def _entities(request: HttpRequest, term: str, started: float, left_out: list[str]) -> Iterator[SearchResult]:
    """Entities of the repositories that the user may read. Adds to `left_out` those for which no time is left."""
    for name in SEARCHED if len(term) >= _SHORTEST else ():
        repository = repositories[name]
        model: type[Model] = repository.model
        page: Any = admin.site.get_model_admin(model)
        if not page.has_view_permission(request):
            continue
        if time.monotonic() - started > _LONGEST_SECONDS:
            left_out.append(capfirst(str(model._meta.verbose_name_plural)))
            continue
        readable = page.get_queryset(request).select_related(*text_paths(repository))
        rows = list(page.get_search_results(request, readable, term)[0][:_MOST_ENTITIES])
        for row in with_visible_references(request, rows, ()):
            link = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk])
            yield SearchResult(str(row), capfirst(str(model._meta.verbose_name)), link, "description")
