"""Inlines: owned collections as rows on the page of their owner."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.http import HttpRequest

from domain.admin.context import edit_refusal, once, permitted
from domain.admin.entity_fields import EntityFields
from domain.admin.fieldsets import row_fieldsets
from domain.admin.forms import ChildFormSet, texts_of_fields
from domain.admin.measures import ValueColumn, attribute_name
from domain.admin.visible_rows import rows_of, text_paths
from domain.model.attributes import Child
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from identity.admin_bases import StackedInline
from identity.context import Operation


class ChildInline(EntityFields, StackedInline[Any, Any]):
    """The rows of an owned collection: one line of inputs per row, with rarely used ones collapsed below it."""

    template = "domain/rows.html"
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> Any:
        """The rows that the user may read, with the currencies and units of their values."""
        measured = [each.python_name for each in self.repository.attributes.values() if each.measure]
        paths = text_paths(self.repository, measured) if measured else ()
        return super().get_queryset(request).select_related(*paths) if paths else super().get_queryset(request)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Removes the links of choosers in the line of a row, which has no room; the row's page has them."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, RelatedFieldWidgetWrapper) and db_field.name in self._in_line(request):
            field.widget = widget.widget
        return field

    def _in_line(self, request: HttpRequest) -> frozenset[str]:
        """Names of the fields of a row that are not collapsed."""

        def find() -> frozenset[str]:
            sections: Any = row_fieldsets(self.repository, list(self.get_fields(request)))
            return frozenset(flatten_fieldsets([each for each in sections if not each[0]]))

        return once(request, ("in line", type(self)), find)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The declared row columns; the row's page has the rest. Without declaration all inputs except the reference to
        the owner and to the entity of the page.
        """
        owner = self.repository.owner
        back = {self.fk_name, owner.python_name if owner is not None else ""}  # the template renders it
        inputs = [name for name in self.offered(request) if name not in back]
        shown = self._shown_columns()
        columns = self.repository.admin_options.row_columns
        return [name for name in columns if name in inputs or name in shown] if columns else inputs

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Sections: essential fields, then rarely used ones."""
        sections = row_fieldsets(self.repository, list(self.get_fields(request, obj)))
        return self.as_read(sections, {attribute_name(field) for field in self.get_readonly_fields(request, obj)})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The columns without an input, and measured values of rows that may not be changed, which Django would show
        without their measure.
        """
        shown = self.with_measures(self._shown_columns())
        if self.has_change_permission(request, obj):
            return shown
        return [*shown, *(each for each in self.with_measures(self.offered(request)) if isinstance(each, ValueColumn))]

    def _shown_columns(self) -> list[str]:
        inputs = self.editable()
        return [name for name in self.repository.admin_options.row_columns if name not in inputs]

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """The class of the rows' forms, for this request."""
        formset: Any = super().get_formset(
            request, obj, **texts_of_fields(repositories.for_model(self.model)), **kwargs
        )
        formset.request = request
        if obj is not None:
            formset.fixed = self._not_covered(request, obj, "update")
            formset.kept = self._not_covered(request, obj, "delete")
        return formset

    def _not_covered(self, request: HttpRequest, parent: Any, operation: Operation) -> frozenset[str]:
        """Keys of the parent's rows that row policies exclude from the operation; no query without policies."""
        rows = self.model._default_manager.filter(**{f"{self.fk_name}_id": parent.pk})
        covered = rows_of(request, rows, operation)
        if covered is rows:
            return frozenset()
        return frozenset(map(str, rows.exclude(pk__in=covered.values("pk")).values_list("pk", flat=True)))

    # obj is the parent in these methods; the permissions are those on the rows' repository.

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may read such rows."""
        return self.may(request, "read")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may add rows, and the parent may be edited."""
        return self._may_write(request, "create", obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may change rows, and the parent may be edited."""
        return self._may_write(request, "update", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may delete rows, and the parent may be edited."""
        return self._may_write(request, "delete", obj)

    def _may_write(self, request: HttpRequest, operation: Operation, parent: Any) -> bool:
        if not self.may(request, operation):
            return False
        if parent is None:
            return True
        owner = repositories.for_model(self.parent_model)
        return permitted(request, "update", owner, parent) and not edit_refusal(request, parent)


def inline_classes(repository: Repository[Any]) -> list[type[ChildInline]]:
    """The inlines of a repository's collections, the open ones first."""
    opened = repository.admin_options.open_collections
    ordered = sorted(repository.collections.values(), key=lambda collection: collection.name not in opened)
    return [inline_class(collection, is_open=collection.name in opened) for collection in ordered]


def inline_class(collection: Child, *, is_open: bool = False) -> type[ChildInline]:
    """The inline of an owned collection."""
    child = repositories[collection.repository]
    back = child.references[collection.back_reference]
    attributes: dict[str, Any] = {
        "model": child.model,
        "formset": type(f"{collection.name}FormSet", (ChildFormSet,), {"collection": collection.name}),
        "fk_name": back.python_name,
        "autocomplete_fields": [
            attribute.python_name
            for attribute in child.references.values()
            if not attribute.read_only and attribute.name != back.name and not attribute.owner
        ],
        "verbose_name_plural": in_words(collection.name),
        "tab": not is_open,
    }
    return type(f"{child.model.__name__}Inline", (ChildInline,), attributes)
