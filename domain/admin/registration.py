"""Registration of the pages of every repository with Django's admin site."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy

from domain.admin import access_pages, document_pages
from domain.admin.entity_pages import admin_class, in_words
from domain.model.registry import repositories
from domain.model.repository import Repository


def register_repository(site: admin.AdminSite, repository: Repository[Any]) -> None:
    """Give a repository its pages, unless somebody wrote better ones by hand."""
    # Django's rule for plurals knows "Companys"; the repository's name is the plural.
    meta = repository.model._meta
    meta.verbose_name = in_words(repository.model.__name__).lower()
    meta.verbose_name_plural = in_words(repository.name.rpartition(".")[2])
    if site.is_registered(repository.model):
        return
    pages = admin_class(repository)
    for model, more in document_pages.PAGES.items():
        if issubclass(repository.model, model):
            pages = type(pages.__name__, (more, pages), {"__doc__": pages.__doc__})
    site.register(repository.model, pages)


admin.site.site_header = gettext_lazy("Business platform")
admin.site.site_title = gettext_lazy("Business platform")
admin.site.index_title = gettext_lazy("Administration")
access_pages.register(admin.site)
for _repository in repositories:
    register_repository(admin.site, _repository)
