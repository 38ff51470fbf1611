"""Pages of entities that act with the rights of the user who saved them last."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from domain.admin.entity_pages import EntityAdmin
from domain.dataset.checks.authors import Authors


class AuthoredAdmin(EntityAdmin):
    """Shows the author of a stored entity after its first section."""

    authors: ClassVar[Authors]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds the author of a stored entity."""
        sections = super().get_fieldsets(request, obj)
        author = [] if obj is None else [(None, {"fields": ["author"]})]
        return [*sections[:1], *author, *sections[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated, with the author."""
        return ["author", *super().get_readonly_fields(request, obj)]

    @admin.display(description=_("Author"))
    def author(self, entity: Any) -> str:
        """The user who saved the entity last, and whether that user may change access rights."""
        return self.authors.describe(entity.pk)
