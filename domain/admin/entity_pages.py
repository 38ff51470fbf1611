"""The admin pages of every repository, generated from its declaration (spec 08, 8.1).

Pages save through a dataset, so that rules, versions, webhooks and validations hold here as everywhere. A refusal comes
back to the form it was made in: the page is rendered again with the message at the field it is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import FieldDoesNotExist, ObjectDoesNotExist
from django.db import models
from django.db.models import Q
from django.forms.formsets import DELETION_FIELD_NAME
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext, gettext_lazy

from domain.admin import custom_properties, hints
from domain.admin.deletion import deletion_shown
from domain.admin.form_errors import show_error, show_row_errors
from domain.admin.rights import (
    admin_context,
    edit_refusal,
    is_administrator,
    permitted,
    restricts,
    rows_of,
    text_paths,
    with_visible_references,
)
from domain.admin.widgets import MultilanguageFormField, ShownTexts
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.tables.write_transaction import check_stamps
from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import PREFIX
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import parse_input
from foundation import errors
from foundation.errors import PlatformError
from foundation.fields import MultilanguageField
from foundation.guids import new_guid
from foundation.kinds import Kind
from identity.admin import NameInput
from identity.context import Operation

#: Columns of a list page besides the display text.
_LIST_COLUMNS = 5
_LIST_FILTERS = 4
_FIRST_COLUMNS = ("state", "document_date")
#: The collection that a document is about.
_LINES = "Lines"
#: References that say more about an entity than its own members.
_TELLING = ("customer", "party", "product")
_LISTED_KINDS = (Kind.ENUM, Kind.STATE, Kind.DATE, Kind.DATETIME, Kind.BOOL, Kind.STRING)
#: Members of a form that is not worth folding.
_SHORT_FORM = 14
#: Likewise of an owned row; and how many of its members stand side by side.
_SHORT_ROW, _BESIDE = 8, 3
_SHOWN_FIRST = frozenset({"state", "user_status", "customer", "party", "product", "is_active", "active"})
#: Texts of a few lines, where Django would give each a quarter of the screen.
_FEW_LINES = frozenset({"notes", "headers", "scope", "document_notes", "allowed_values_filter_xml"})
_ABBREVIATIONS = re.compile(r"\b(?:uri|url|utc|xml|id)\b", re.I)
_EXTERNAL = frozenset({"external_id", "external_system"})
#: Bookkeeping that no administrator looks for in a list.
_INTERNAL = frozenset(
    {"adjustment_number", "creation_user", "creation_time", "entity_name", "planning_only", "read_only"}
)


def admin_dataset(request: HttpRequest) -> Dataset:
    """A dataset for what a page changes, in the database transaction that Django's admin has begun."""
    check_stamps()
    return Dataset(admin_context(request))


class EntityForm(forms.ModelForm[Any]):
    """Nothing is required here: late defaults may fill it, and the dataset names all that is missing at once."""

    entity_error: PlatformError | None = None
    #: Collections whose errors are shown at rows of their own.
    shown_collections: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        repository = self.repository
        for name, field in self.fields.items():
            field.required = False
            if name.startswith(PREFIX):
                continue
            if isinstance(field.widget, forms.Textarea) and name in _FEW_LINES:
                field.widget.attrs["rows"] = 3
            field.label = _ABBREVIATIONS.sub(lambda found: found[0].upper(), str(field.label))
            attribute = repository.by_python_name.get(name)
            if attribute is None:
                continue
            field.help_text = hints.hint(repository, attribute.name) or field.help_text
            if attribute.name in hints.NAME_ONE and isinstance(field.widget, forms.TextInput):
                field.widget = NameInput("repository-names", hints.repository_names)
        if any(name.startswith(PREFIX) for name in self.fields):
            custom_properties.custom_initial(self)

    @property
    def repository(self) -> Repository[Any]:
        """The repository whose entity is edited."""
        return repositories.for_model(self._meta.model)

    def _post_clean(self) -> None:
        """Without the check of constraints: it names an index above the form where the dataset names the attribute."""
        self.instance.validate_constraints = lambda exclude=None: None
        super()._post_clean()  # type: ignore[misc]
        del self.instance.validate_constraints

    def clean(self) -> dict[str, Any] | None:
        """Carries the dataset's refusal of the same input into the form."""
        cleaned = super().clean()
        if self.entity_error is not None:
            show_error(self, self.entity_error, self.shown_collections)
        return cleaned


class _EntityPage:
    """What pages and inlines of entities share."""

    form: Any = EntityForm
    extra = 0
    model: type[models.Model]
    formfield_overrides: Any = {MultilanguageField: {"form_class": MultilanguageFormField}}

    @property
    def repository(self) -> Repository[Any]:
        """The repository whose entities are shown."""
        return repositories.for_model(self.model)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Beside a reference one changes what it refers to, or adds one: nobody deletes a group on a product's page."""
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if isinstance(getattr(field, "widget", None), RelatedFieldWidgetWrapper):
            field.widget.can_delete_related = field.widget.can_view_related = False
            field.label_from_instance = lambda chosen: str(with_visible_references(request, [chosen], ())[0])
        return field

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> Any:
        """What may be referred to: what the person may read."""
        found = super().get_field_queryset(db, db_field, request)  # type: ignore[misc]
        return rows_of(request, db_field.remote_field.model._default_manager.all() if found is None else found)

    def get_queryset(self, request: HttpRequest) -> Any:
        """The rows that the person may read."""
        return rows_of(request, super().get_queryset(request))  # type: ignore[misc]

    def offered(self, request: HttpRequest) -> list[str]:
        """As `editable`, without references to repositories that the person may not read at all."""
        own = self.repository.by_python_name
        return [
            name
            for name in self.editable()
            if not own[name].is_reference or permitted(request, "read", repositories[own[name].target])
        ]

    def left_to_administrators(self, request: HttpRequest) -> list[str]:
        """Python names of what a role is not enough to change."""
        if is_administrator(request):
            return []
        own = self.repository.by_python_name
        return [each for each in self.editable() if self.repository.needs_administrator("update", own[each].name)]

    def may(self, request: HttpRequest, operation: Operation, obj: Any = None) -> bool:
        """Whether the person's roles and row policies allow it; the platform alone writes what is read-only."""
        written = operation == "read" or self.repository.access != "ReadOnly"
        return written and permitted(request, operation, self.repository, obj)

    def editable(self) -> list[str]:
        """Python names of what a form offers, in declared order."""
        repository = self.repository
        return [
            attribute.python_name
            for attribute in repository.attributes.values()
            if attribute.field is not None
            and not attribute.read_only
            and not attribute.key_alias
            and attribute.name != "Id"
            and attribute.kind is not Kind.BINARY
            and attribute.field.editable
        ]

    def shown_read_only(self) -> list[str]:
        """Python names of what a form shows beside it."""
        return [
            attribute.python_name
            for attribute in self.repository.attributes.values()
            if attribute.field is not None
            and (attribute.read_only or attribute.name == "Id")
            and not attribute.key_alias
            and not attribute.is_reference
            and attribute.kind is not Kind.BINARY
        ]


class ChildFormSet(forms.BaseInlineFormSet[Any, Any, Any]):
    """Form fields are prefixed with the collection's name: references have no reverse accessor to name them by."""

    collection = "children"
    entity_error: PlatformError | None = None
    request: HttpRequest
    #: Keys of rows that the person may read, but not change or delete.
    fixed: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    def get_queryset(self) -> Any:
        """The rows; their references to what the person may not see are null."""
        if not hasattr(self, "_queryset"):
            with_visible_references(self.request, list(super().get_queryset()))
        return super().get_queryset()

    def add_fields(self, form: Any, index: int | None) -> None:
        """A row that may not be changed is shown, and what is sent for it ignored."""
        super().add_fields(form, index)
        key = str(form.instance.pk)
        for name, field in form.fields.items():
            if name == DELETION_FIELD_NAME:
                field.disabled = key in self.kept
            elif key in self.fixed and name != "id":
                field.disabled = True

    def full_clean(self) -> None:
        """Carries the dataset's refusal of these rows into them."""
        super().full_clean()
        if self.is_bound and self.entity_error is not None:
            show_row_errors(self, self.collection, self.entity_error)

    @classmethod
    def get_default_prefix(cls) -> str:
        """`Lines-0-quantity`."""
        return cls.collection


class ChildInline(_EntityPage, admin.StackedInline[Any, Any]):
    """Owned entities on their parent's page."""

    show_change_link = True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All editable members but the way back to the parent."""
        owner = self.repository.owner
        return [name for name in self.offered(request) if owner is None or name != owner.python_name]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What every row needs, side by side; what few do is folded away."""
        names = list(self.get_fields(request, obj))
        own = self.repository.by_python_name
        if any(name not in own for name in names) or len(names) <= _SHORT_ROW:
            return super().get_fieldsets(request, obj)
        first = [name for name in names if name in _SHOWN_FIRST or not own[name].nullable]
        first.sort(key=lambda name: (own[name].kind is Kind.BOOL, name not in _SHOWN_FIRST))
        more = [name for name in names if name not in first]
        beside = [tuple(first[at : at + _BESIDE]) for at in range(0, len(first), _BESIDE)]
        return [(None, {"fields": beside}), (gettext_lazy("More"), {"fields": more, "classes": ("collapse",)})]

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """The rows' class, with the refusal of the first attempt if this is the second."""
        formset: Any = super().get_formset(request, obj, **kwargs)
        formset.entity_error = getattr(request, "entity_error", None)
        formset.request = request
        if obj is not None:
            formset.fixed = self._not_covered(request, obj, "update")
            formset.kept = self._not_covered(request, obj, "delete")
        return formset

    def _not_covered(self, request: HttpRequest, parent: Any, operation: Operation) -> frozenset[str]:
        """Keys of the parent's rows that the row policies for the operation leave out; asked where there are any."""
        rows = self.model._default_manager.filter(**{f"{self.fk_name}_id": parent.pk})
        covered = rows_of(request, rows, operation)
        if covered is rows:
            return frozenset()
        return frozenset(map(str, rows.exclude(pk__in=covered.values("pk")).values_list("pk", flat=True)))

    @property
    def is_history(self) -> bool:
        """Read-only repositories are written by the platform alone."""
        return self.repository.access == "ReadOnly"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """By the permissions on the rows' repository; obj is the parent, here and below."""
        return self.may(request, "read")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise; not where the platform alone writes, nor while the parent may not be edited."""
        return self._may_write(request, "create", obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return self._may_write(request, "update", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return self._may_write(request, "delete", obj)

    def _may_write(self, request: HttpRequest, operation: Operation, parent: Any) -> bool:
        if not self.may(request, operation):
            return False
        if parent is None:
            return True
        return permitted(request, "update", self.parent_repository, parent) and not edit_refusal(request, parent)

    @property
    def parent_repository(self) -> Repository[Any]:
        """Whose page it stands on."""
        return repositories.for_model(self.parent_model)


def _place(repository: Repository[Any], name: str) -> int:
    """Where a field stands: what the entity is called, whom it is about and what it cannot do without come first."""
    attribute = repository.by_python_name.get(name)
    if attribute is None or attribute.kind is Kind.BOOL:
        return 3
    if attribute in (repository.code, repository.label):
        return 0
    if name in _TELLING:
        return 1
    return 2 if attribute.required and attribute.initial() is None and not attribute.read_only else 3


class EntityAdmin(_EntityPage, admin.ModelAdmin[Any]):
    """The pages of one repository."""

    list_per_page = 50
    show_full_result_count = False
    actions_on_bottom = True
    save_on_top = True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Editable members first, then what the platform fills in."""
        return [*self.offered(request), *self.shown_read_only()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What every entity needs first; what few do, and what the platform keeps, folded away below."""
        own = self.repository.by_python_name
        names = list(self.get_fields(request, obj))
        kept = [name for name in names if name in set(self.shown_read_only()) and name not in _SHOWN_FIRST]
        external = [name for name in names if name in _EXTERNAL]
        rest = [name for name in names if name not in kept and name not in external]
        first = [name for name in rest if name in _SHOWN_FIRST or name not in own or not own[name].nullable]
        more = [name for name in rest if name not in first]
        if len(rest) <= _SHORT_FORM:
            first, more = rest, []
        first.sort(key=lambda name: _place(self.repository, name))
        if len(rest) < len(kept):
            # What the platform writes down, messages for example, is what the page is for.
            first, kept = [*kept, *first], []
        custom = list(custom_properties.custom_fields(self.repository))
        sections = [
            (None, [*first, *custom]),
            (gettext_lazy("More"), more),
            (gettext_lazy("From another system"), external),
        ]
        folded = {"classes": ("collapse",)}
        return [
            (title, {"fields": fields, **(folded if title else {})})
            for title, fields in (*sections, (gettext_lazy("Kept by the platform"), kept))
            if fields
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Everything on pages of read-only repositories; what decides access, for those who are no administrators."""
        if self.repository.access == "ReadOnly":
            return [*self.editable(), *self.shown_read_only()]
        return [*self.shown_read_only(), *self.left_to_administrators(request)]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the page is offered."""
        return self.may(request, "read")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """By the permissions on the repository and, for an entity, row policies; the same below."""
        return self.may(request, "read", obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Abstract repositories have no entities of their own to add."""
        return not self.repository.abstract and self.may(request, "create")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not while nobody may edit the entity."""
        return self.may(request, "update", obj) and not (obj is not None and edit_refusal(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Likewise."""
        return self.may(request, "delete", obj) and not (obj is not None and edit_refusal(request, obj))

    # --- what is shown --------------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The entity; None where there is none, or the person may not read it."""
        found = super().get_object(request, object_id, from_field)
        return None if found is None else with_visible_references(request, [found])[0]

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Raises Http404, for what does not exist as for what the person may not read."""
        raise Http404

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list; references of its rows to what the person may not see are null."""
        changelist = super().get_changelist_instance(request)
        columns = [name for name in self.get_list_display(request) if isinstance(name, str)]
        with_visible_references(request, list(changelist.result_list), columns)
        return changelist

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """As Django's; behind a reference only in what the person may read."""
        fields = {name: self._guards(request, name) for name in self.get_search_fields(request)}
        if not any(fields.values()):
            return super().get_search_results(request, queryset, search_term)
        for word in smart_split(search_term):
            text = unescape_string_literal(word) if word[:1] in "\"'" and word[:1] == word[-1:] else word
            queryset = queryset.filter(
                reduce(or_, [Q(**{f"{name}__icontains": text}) & guards for name, guards in fields.items()])
            )
        return queryset, False

    def _guards(self, request: HttpRequest, lookup: str) -> Q:
        """The condition that the person may read what lies on the way of a lookup."""
        found, model, path = Q(), self.model, ""
        for name in lookup.split("__")[:-1]:
            path = f"{path}__{name}" if path else name
            related: Any = model._meta.get_field(name).related_model
            model = related
            if restricts(request, repositories.for_model(model)):
                found &= Q(**{f"{path}__in": rows_of(request, model._default_manager.all()).values("pk")})
        return found

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What the dataset will delete and what will make it refuse, as far as the person may read it."""
        return deletion_shown(request, objs)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """As Django's; only administrators see which rows others touched."""
        response = super().history_view(request, object_id, extra_context)
        if not is_administrator(request):
            for entry in getattr(response, "context_data", {}).get("action_list", ()):
                if entry.user_id != request.user.pk:
                    entry.change_message = without_names(entry.change_message)
        return response

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """With the reason why a stored entity may not be edited, and values as read-only fields show them."""
        obj = kwargs.get("obj")
        context["edit_refusal"] = "" if obj is None else edit_refusal(request, obj)
        show_values(context["adminform"].form)
        for formset in context["inline_admin_formsets"]:
            for form in formset.formset.forms:
                show_values(form)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_ordering(self, request: HttpRequest) -> Any:
        """Lists are newest first unless a page says otherwise; choosers by code, so that their pages do not overlap."""
        own = super().get_ordering(request)
        if own or not request.path.endswith("/autocomplete/"):
            return own
        code = self.repository.code
        return (code.python_name, "pk") if code is not None and code.field is not None else ("pk",)

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """A new entity has no rows of what the platform alone writes, a history for example."""
        inlines: list[Any] = super().get_inline_instances(request, obj)
        if obj is not None:
            return inlines
        return [inline for inline in inlines if not isinstance(inline, ChildInline) or not inline.is_history]

    # --- saving ---------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """As Django's; a refused commit renders the same input again with the refusal's message."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except PlatformError as error:
            request.entity_error = error  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, form_url, extra_context)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form class, with the refusal of the first attempt if this is the second."""
        if custom := custom_properties.custom_fields(self.repository):
            # A class of its own for each request: what there is may have changed since the last.
            kwargs.setdefault("form", type(self.form.__name__, (self.form,), custom))
        form = super().get_form(request, obj, change, **kwargs)
        error: PlatformError | None = getattr(request, "entity_error", None)
        if error is None:
            return form
        inlines = self.get_inline_instances(request, obj)
        shown = frozenset(getattr(inline.formset, "collection", "") for inline in inlines)
        return type(form.__name__, (form,), {"entity_error": error, "shown_collections": shown})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Change the dataset as the form says; `save_related` commits it."""
        dataset = admin_dataset(request)
        request.entity_dataset = dataset  # type: ignore[attr-defined]
        repository = self.repository
        if change:
            record = dataset.open(repository, str(obj.pk), "update")
            names = form.changed_data
        else:
            # Django's inline formsets take a new parent's generated key away.
            obj.pk = obj.pk or new_guid()
            record = dataset.create(repository, id=str(obj.pk), by_client=True)
            # What the form was first shown with counts as given too; empty fields are left to defaults.
            names = [name for name in form.cleaned_data if form.cleaned_data[name] not in (None, "", {})]
        fill_record(dataset, record, form.cleaned_data, names)
        custom_properties.set_custom(dataset, record, repository, form, names)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Children, into the same dataset."""
        dataset: Dataset = request.entity_dataset  # type: ignore[attr-defined]
        repository = repositories.for_model(formset.model)
        parent = dataset.open(self.repository, str(form.instance.pk))
        formset.save(commit=False)
        for child in formset.deleted_objects:
            dataset.delete(dataset.open(repository, str(child.pk), "delete"), by_client=True)
        for inner in formset.forms:
            if inner in formset.deleted_forms or not inner.has_changed():
                continue
            if inner.instance in formset.new_objects:
                inner.instance.pk = inner.instance.pk or new_guid()
                record = dataset.create(repository, id=str(inner.instance.pk), parent=parent, by_client=True)
            else:
                record = dataset.open(repository, str(inner.instance.pk), "update")
            fill_record(dataset, record, inner.cleaned_data, inner.changed_data)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Children, then the commit of it all. Refuses to add what nobody entered anything for."""
        if not change and not form.has_changed() and not any(formset.has_changed() for formset in formsets):
            # Some entities, offers for instance, can do without any value; a form that is sent as it came is a slip.
            raise errors.Refused(errors.VALIDATION_FAILED, gettext("nothing has been entered."))
        for formset in formsets:
            self.save_formset(request, form, formset, change=change)
        commit(request, request.entity_dataset)  # type: ignore[attr-defined]
        # What late defaults and rules have filled in: messages and the history say the order's number.
        for entity in (form.instance, *(row for formset in formsets for row in getattr(formset, "new_objects", ()))):
            with suppress(ObjectDoesNotExist):
                entity.refresh_from_db()
                with_visible_references(request, [entity], ())

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete through a dataset."""
        self._delete(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete the chosen ones, all or none."""
        self._delete(request, list(queryset))

    def _delete(self, request: HttpRequest, objects: list[Any]) -> None:
        dataset = admin_dataset(request)
        for obj in objects:
            dataset.delete(dataset.open(self.repository, str(obj.pk), "delete"), by_client=True)
        commit(request, dataset)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """As Django's; a refusal is shown above the entity's page."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except PlatformError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(
                reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[object_id])
            )

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any) -> HttpResponse | None:
        """As Django's; a refusal is shown above the list."""
        try:
            return super().response_action(request, queryset, *args)
        except PlatformError as error:
            messages.error(request, error.message)
            return None


def show_values(form: Any) -> None:
    """Put on the form's instance what its read-only fields print; its inputs have read their values already."""
    entity = form.instance
    for field in entity._meta.fields:
        if isinstance(field, MultilanguageField) and isinstance(texts := field.value_from_object(entity), dict):
            setattr(entity, field.attname, ShownTexts(texts))
    if any(name.startswith(PREFIX) for name in form.fields):
        custom_properties.show_custom(form)


def without_names(message: str) -> str:
    """A LogEntry's change message without the texts of the objects that it names."""
    if not message.startswith("["):
        return ""
    steps = json.loads(message)
    for step in steps:
        for changed in step.values():
            if isinstance(changed, dict) and "object" in changed:
                changed["object"] = "…"
    return json.dumps(steps)


def fill_record(dataset: Dataset, record: Record, cleaned: dict[str, Any], names: list[str]) -> None:
    """Set the named form values on a record, in declared order."""
    for attribute in record.repository.attributes.values():
        name = attribute.python_name
        if name not in names or name not in cleaned or attribute.read_only or attribute.owner:
            continue
        dataset.set(record, attribute, form_value(attribute, cleaned[name]))


def form_value(attribute: Attribute, value: Any) -> Any:
    """Canonical form of a cleaned form value."""
    if isinstance(value, models.Model):
        return str(value.pk)
    if value in ("", {}) and attribute.nullable:
        return None
    return parse_input(attribute, value)


def commit(request: HttpRequest, dataset: Dataset) -> None:
    """Commit, and show what rules warn of."""
    dataset.commit()
    for warning in dataset.warnings:
        messages.warning(request, warning)


# --- generating ---------------------------------------------------------------------------------------------------


def list_columns(repository: Repository[Any]) -> list[str]:
    """What tells entities apart: `__str__`, the state, whom and what they are about, then what always has a value."""
    own = repository.by_python_name
    named = repository.name_member.partition(".")[0]
    names = ["__str__", *(name for name in (*_FIRST_COLUMNS, *_TELLING) if name in own and name != named)]
    told = [attribute for attribute in repository.default_members if _tells_apart(repository, attribute)]
    # Columns of ticks say little: only whether something is in use, and at the end.
    told.sort(key=lambda attribute: attribute.kind is Kind.BOOL)
    names.extend(attribute.python_name for attribute in told)
    return list(dict.fromkeys(names))[: _LIST_COLUMNS + 1]


def _tells_apart(repository: Repository[Any], attribute: Attribute) -> bool:
    if attribute.system or attribute.nullable or attribute.kind not in _LISTED_KINDS:
        return False
    if attribute in (repository.code, repository.label) or attribute.python_name in _INTERNAL:
        return False
    long = attribute.kind is Kind.STRING and attribute.max_length is None
    return not long and (attribute.kind is not Kind.BOOL or attribute.python_name in _SHOWN_FIRST)


def list_filters(repository: Repository[Any]) -> list[str]:
    """The state, enums and switches that always have a value; whether something is in use before other switches."""
    found = [
        attribute
        for attribute in repository.default_members
        if attribute.kind in (Kind.ENUM, Kind.BOOL)
        and not attribute.system
        and not attribute.nullable
        and attribute.python_name not in _INTERNAL
    ]
    found.sort(key=lambda attribute: (attribute.python_name not in _SHOWN_FIRST, attribute.kind is Kind.BOOL))
    names = ["state"] if "state" in repository.by_python_name else []
    return list(dict.fromkeys([*names, *(attribute.python_name for attribute in found)]))[:_LIST_FILTERS]


def search_fields(repository: Repository[Any]) -> list[str]:
    """Search members as Django lookups; the code where there are none."""
    members = repository.search_members or ((repository.code_member,) if repository.code_member else ())
    found: list[str] = []
    for member in members:
        path = member.replace(".", "__")
        try:
            _check_lookup(repository.model, path)
        except FieldDoesNotExist:
            continue
        found.append(path)
    return found or ["id"]


def _check_lookup(model: type[models.Model], path: str) -> None:
    current: Any = model
    for name in path.split("__"):
        field = current._meta.get_field(name)
        current = field.related_model


def admin_class(repository: Repository[Any]) -> type[EntityAdmin]:
    """The admin class of a repository."""
    references = [
        attribute.python_name
        for attribute in repository.references.values()
        if not attribute.read_only and attribute.field is not None and not attribute.key_alias
    ]
    columns = list_columns(repository)
    attributes: dict[str, Any] = {
        "list_display": columns,
        "list_select_related": text_paths(repository, columns) or False,
        "list_filter": list_filters(repository),
        "search_fields": search_fields(repository),
        "autocomplete_fields": references,
        "inlines": [inline_class(child) for child in _by_use(repository.collections.values())],
        "__doc__": f"Pages of {repository.name}.",
    }
    return type(f"{repository.model.__name__}Admin", (EntityAdmin,), attributes)


def _by_use(collections: Iterable[Child]) -> list[Child]:
    """Lines before all that few documents have."""
    return sorted(collections, key=lambda collection: collection.name != _LINES)


def inline_class(collection: Child) -> type[ChildInline]:
    """The inline of an owned collection."""
    child = repositories[collection.repository]
    back = child.references[collection.back_reference]
    references = [
        attribute.python_name
        for attribute in child.references.values()
        if not attribute.read_only and attribute.name != back.name and not attribute.owner
    ]
    return type(
        f"{child.model.__name__}Inline",
        (ChildInline,),
        {
            "model": child.model,
            "formset": type(f"{collection.name}FormSet", (ChildFormSet,), {"collection": collection.name}),
            "fk_name": back.python_name,
            "autocomplete_fields": references,
            "verbose_name_plural": in_words(collection.name),
            "classes": () if collection.name == _LINES else ("collapse",),
        },
    )


def in_words(name: str) -> str:
    """SalesOrders → Sales orders."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("WebHook", "Webhook"))
    return words[:1] + words[1:].lower()
