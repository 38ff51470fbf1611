"""Registration of the pages of every repository with Django's admin site."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy

from domain.admin import (  # noqa: F401  (pages of their own)
    access_pages,
    application_pages,
    calculation_pages,
    designer_pages,
    document_pages,
    history_pages,
)
from domain.admin.entity_pages import register_pages
from domain.entities.custom_entities import live
from domain.entities.custom_entities.building import APP
from domain.model.registry import repositories

admin.site.index_title = gettext_lazy("Administration")
for _repository in repositories:
    register_pages(_repository)


def follow_model() -> None:
    """Register the pages of the current custom entities, whose models have been rebuilt."""
    current = {repository.model for repository in repositories}
    for model in [model for model in admin.site._registry if model._meta.app_label == APP]:
        if model not in current:
            admin.site.unregister(model)
    for repository in repositories:
        if repository.model._meta.app_label == APP:
            register_pages(repository)


live.listen(follow_model)
