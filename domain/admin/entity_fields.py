"""Shared base of pages and inlines of entities."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import models
from django.http import HttpRequest

from domain.admin.choosers import EntityChooser
from domain.admin.context import is_administrator, permitted
from domain.admin.fieldsets import Fieldsets, editable, shown_read_only
from domain.admin.forms import EntityForm
from domain.admin.measures import NumberFormField, PercentFormField, ValueColumn, is_percent, readable
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.admin.widgets import MultilanguageFormField
from domain.model.administration import needs_administrator
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import MultilanguageField
from identity.context import Operation


class EntityFields:
    """Fields and permissions of an entity, for Django's ModelAdmin and InlineModelAdmin."""

    form: Any = EntityForm
    extra = 0
    model: type[models.Model]
    formfield_overrides: Any = {MultilanguageField: {"form_class": MultilanguageFormField}}

    @property
    def repository(self) -> Repository[Any]:
        return repositories.for_model(self.model)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Adds links to change or add a reference's target, but none to delete it; shows discounts in per cent."""
        if isinstance(db_field, models.DecimalField):
            kwargs["form_class"] = PercentFormField if is_percent(db_field) else NumberFormField
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if isinstance(getattr(field, "widget", None), RelatedFieldWidgetWrapper):
            field.widget.can_delete_related = field.widget.can_view_related = False
            field.label_from_instance = lambda chosen: str(with_visible_references(request, [chosen], ())[0])
        return field

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Uses choosers that load their chosen entities together (domain.admin.choosers)."""
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs.setdefault("widget", EntityChooser(db_field, self.admin_site))  # type: ignore[attr-defined]
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

    def with_measures(self, names: Iterable[str]) -> list[str | ValueColumn]:
        """Read-only fields, with measured values replaced by columns that show the measure."""
        return [readable(self.repository, name) for name in names]

    def as_read(self, sections: Fieldsets, read_only: Container[str]) -> Fieldsets:
        """The sections, with `with_measures` applied to the fields among `read_only`."""

        def shown(name: Any) -> Any:
            if isinstance(name, tuple):
                return tuple(map(shown, name))
            return readable(self.repository, name) if name in read_only else name

        return [(title, {**options, "fields": [*map(shown, options["fields"])]}) for title, options in sections]

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> Any:
        """The readable targets of a reference."""
        result = super().get_field_queryset(db, db_field, request)  # type: ignore[misc]
        return rows_of(request, db_field.remote_field.model._default_manager.all() if result is None else result)

    def get_queryset(self, request: HttpRequest) -> Any:
        """The rows that the user may read."""
        return rows_of(request, super().get_queryset(request))  # type: ignore[misc]

    def editable(self) -> list[str]:
        """Python names of the inputs, in declared order."""
        return editable(self.repository)

    def shown_read_only(self) -> list[str]:
        """Python names of the form's read-only fields."""
        return shown_read_only(self.repository)

    def offered(self, request: HttpRequest) -> list[str]:
        """As `editable`, without references to unreadable repositories."""
        own = self.repository.by_python_name
        return [
            name
            for name in self.editable()
            if not own[name].is_reference or permitted(request, "read", repositories[own[name].target])
        ]

    def left_to_administrators(self, request: HttpRequest) -> list[str]:
        """Python names of fields that only an administrator may change; [] for administrators."""
        if is_administrator(request):
            return []
        own = self.repository.by_python_name
        return [each for each in self.editable() if needs_administrator(self.repository, "update", own[each].name)]

    def may(self, request: HttpRequest, operation: Operation, obj: Any = None) -> bool:
        """Whether roles and row policies permit the operation; only the platform writes read-only repositories."""
        written = operation == "read" or self.repository.access != "ReadOnly"
        return written and permitted(request, operation, self.repository, obj)
