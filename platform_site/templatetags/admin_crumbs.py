"""Breadcrumbs of admin pages: section, list, object."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.text import Truncator, capfirst

from platform_site.admin_site import PlatformAdminSite

register = template.Library()
_LONGEST_NAME = 60


@register.inclusion_tag("admin/_crumbs.html")
def admin_crumbs(opts: Any, here: object = "", obj: Model | None = None) -> dict[str, Any]:
    """Links to the section, the list of `opts` and `obj`; `here` is the current page, by default the list."""
    site: Any = admin.site
    assert isinstance(site, PlatformAdminSite)
    links = [link for link in (site.section_link(opts.model),) if link is not None]
    pages = f"admin:{opts.app_label}_{opts.model_name}"
    name = str(capfirst(opts.verbose_name_plural))
    if not here:
        return {"links": links, "here": name}
    links.append((name, reverse(f"{pages}_changelist")))
    if obj is not None:
        links.append((_short(obj), reverse(f"{pages}_change", args=[quote(obj.pk)])))
    return {"links": links, "here": _short(here)}


def _short(shown: object) -> str:
    return Truncator(str(shown)).chars(_LONGEST_NAME)
