"""Pages of one entity besides its form."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from domain.admin.entity_pages import EntityAdmin


def object_page(page: EntityAdmin, request: HttpRequest, obj: Any, template: str, **values: Any) -> HttpResponse:
    """The response with a page of an object; not cacheable."""
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "back": reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_change", args=[obj.pk]),
        **values,
    }
    headers = {"Cache-Control": "no-store"}
    return TemplateResponse(request, f"identity/admin/{template}.html", context, headers=headers)
