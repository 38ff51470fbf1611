"""Registration of the pages of every repository with Django's admin site."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy

from domain.admin import access_pages, document_pages  # noqa: F401  (pages of their own)
from domain.admin.entity_pages import register_pages
from domain.model.registry import repositories

admin.site.site_header = admin.site.site_title = gettext_lazy("Business platform")
admin.site.index_title = gettext_lazy("Administration")
for _repository in repositories:
    register_pages(_repository)
