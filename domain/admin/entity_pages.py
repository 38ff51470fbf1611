"""Admin pages of every repository, generated from its declaration (spec 08, 8.1).

Pages save through a dataset, so that rules, versions, webhooks and validations apply. A page with code of its own is
one class:

    @entity_page(WebHook)
    class WebHookAdmin(EntityAdmin):
        ...

It serves the model and the models derived from it. The declaration provides what the class omits (columns, filters,
search, inlines); AdminOptions configures it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import copy
from functools import reduce
from operator import or_
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import smart_split, unescape_string_literal

from domain.admin import custom_properties
from domain.admin.context import admin_dataset, edit_refusal, is_administrator
from domain.admin.deletion import deletion_shown
from domain.admin.entity_fields import EntityFields
from domain.admin.fieldsets import form_fieldsets
from domain.admin.forms import ChildFormSet, EntityForm
from domain.admin.inlines import ChildInline, inline_classes
from domain.admin.lists import PATTERNS, list_columns, list_filters, search_fields
from domain.admin.measures import attribute_name, readable
from domain.admin.submission import Submission, commit, fill_entity
from domain.admin.visible_rows import restricts, rows_of, text_paths, with_visible_references
from domain.admin.widgets import ShownTexts
from domain.dataset.records.record import Record
from domain.model.custom_properties import PREFIX
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.errors import PlatformError
from foundation.fields import MultilanguageField
from identity.admin_bases import PageAdmin


class EntityAdmin(EntityFields, PageAdmin):
    """The pages of one repository."""

    list_per_page = 50
    show_full_result_count = False
    actions_on_bottom = True
    save_on_top = True
    list_display: Any = ()
    list_filter: ClassVar[Any] = ()
    search_fields: ClassVar[Any] = ()
    autocomplete_fields: ClassVar[Any] = ()
    inlines: ClassVar[Any] = ()
    #: State of the request that a copy of the page serves (changeform_view).
    submission: Submission

    def __init__(self, model: type[models.Model], site: admin.AdminSite) -> None:
        """Fill in from the declaration what the class omits."""
        super().__init__(model, site)
        repository = self.repository
        columns = list_columns(repository)
        declared: dict[str, Any] = {
            "list_display": [readable(repository, name) for name in columns],
            "list_select_related": text_paths(repository, columns) or False,
            "list_filter": list_filters(repository),
            "search_fields": search_fields(repository),
            "autocomplete_fields": [
                attribute.python_name
                for attribute in repository.references.values()
                if not attribute.read_only and attribute.field is not None and not attribute.key_alias
            ],
            "inlines": inline_classes(repository),
        }
        for name, value in declared.items():
            if not getattr(self, name):
                setattr(self, name, value)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The inputs, then the read-only fields."""
        return [*self.offered(request), *self.shown_read_only()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Sections: essential fields first; rarely used and read-only fields collapsed below."""
        custom = custom_properties.custom_fields(self.repository)
        sections = form_fieldsets(self.repository, self.get_fields(request, obj), self.shown_read_only(), list(custom))
        is_editable = obj is None or self.has_change_permission(request, obj)
        read_only = self.get_readonly_fields(request, obj) if is_editable else self.repository.by_python_name
        return self.as_read(sections, {attribute_name(field) for field in read_only})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Read-only attributes and those that only administrators may change; all of a read-only repository."""
        if self.repository.access == "ReadOnly":
            return self.with_measures([*self.editable(), *self.shown_read_only()])
        return self.with_measures([*self.shown_read_only(), *self.left_to_administrators(request)])

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the user may read the repository."""
        return self.may(request, "read")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may read the repository or, with obj, the entity; the other permissions alike."""
        return self.may(request, "read", obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Abstract repositories have no entities of their own."""
        return not self.repository.abstract and self.may(request, "create")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not while the entity's state forbids edits."""
        return self.may(request, "update", obj) and not edit_refusal(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not while the entity's state forbids edits."""
        return self.may(request, "delete", obj) and not edit_refusal(request, obj)

    # --- lists ----------------------------------------------------------------------------------------------------

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list; references of its rows to what the user may not see are null."""
        changelist = super().get_changelist_instance(request)
        columns = [attribute_name(column) for column in self.get_list_display(request)]
        with_visible_references(request, list(changelist.result_list), columns)
        return changelist

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the API would compare: a condition in the address tells what a hidden value begins with.

        No patterns: the database matches them without a limit of time.
        """
        name, *rest = lookup.split("__")
        if PATTERNS & set(rest):
            return False
        attribute = self.repository.by_python_name.get(self.model._meta.pk.name if name == "pk" else name)
        if attribute is None or attribute.field is None:
            return False
        if attribute.is_reference and (request is None or restricts(request, repositories[attribute.target])):
            return False  # for this user the references to hidden rows are null
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_ordering(self, request: HttpRequest) -> Any:
        """Lists are newest first unless a page says otherwise; choosers by code, so that their pages do not overlap."""
        own = super().get_ordering(request)
        if own or not request.path.endswith("/autocomplete/"):
            return own
        code = self.repository.code
        return (code.python_name, "pk") if code is not None and code.field is not None else ("pk",)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """As Django's; behind a reference only in rows that the user may read."""
        fields = {name: self._readable(request, name) for name in self.get_search_fields(request)}
        if not any(fields.values()):
            return super().get_search_results(request, queryset, search_term)
        for word in smart_split(search_term):
            text = unescape_string_literal(word) if word[:1] in "\"'" and word[:1] == word[-1:] else word
            queryset = queryset.filter(
                reduce(or_, [Q(**{f"{name}__icontains": text}) & readable for name, readable in fields.items()])
            )
        return queryset, False

    def _readable(self, request: HttpRequest, lookup: str) -> Q:
        """The condition that the user may read each row on the path of a lookup."""
        condition, model, path = Q(), self.model, ""
        for name in lookup.split("__")[:-1]:
            path = f"{path}__{name}" if path else name
            related: Any = model._meta.get_field(name).related_model
            model = related
            if restricts(request, repositories.for_model(model)):
                condition &= Q(**{f"{path}__in": rows_of(request, model._default_manager.all()).values("pk")})
        return condition

    # --- one entity -----------------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The entity; None if it does not exist or the user may not read it."""
        result = super().get_object(request, object_id, from_field)
        return None if result is None else with_visible_references(request, [result])[0]

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Raises Http404, equally for missing and unreadable entities."""
        raise Http404

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """A new entity has no rows of read-only repositories, such as a history."""
        inlines: list[Any] = super().get_inline_instances(request, obj)
        if obj is not None:
            return inlines
        return [each for each in inlines if not isinstance(each, ChildInline) or each.repository.access != "ReadOnly"]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the reason why a stored entity may not be edited, and values in the form of read-only fields."""
        context["edit_refusal"] = edit_refusal(request, kwargs.get("obj"))
        show_values(context["adminform"].form)
        for formset in context["inline_admin_formsets"]:
            for form in formset.formset.forms:
                show_values(form)
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Only administrators see which rows other users changed."""
        response = super().history_view(request, object_id, extra_context)
        if not is_administrator(request):
            for entry in getattr(response, "context_data", {}).get("action_list", ()):
                if entry.user_id != request.user.pk:
                    entry.change_message = without_names(entry.change_message)
        return response

    # --- saving (domain.admin.submission) -------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Served by a copy of the page for the request."""
        page = copy(self)
        page.submission = Submission(request, page.fill)
        return super(EntityAdmin, page).changeform_view(request, object_id, form_url, extra_context)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form class of a request, with the current custom properties."""
        if custom := custom_properties.custom_fields(self.repository):
            kwargs.setdefault("form", type(self.form.__name__, (self.form,), custom))
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.submission = getattr(self, "submission", None)
        return form

    def _create_formsets(self, request: HttpRequest, obj: Any, change: bool) -> Any:
        formsets, inlines = super()._create_formsets(request, obj, change)  # type: ignore[misc]
        self.submission.formsets = formsets
        return formsets, inlines

    def fill(self, record: Record, form: EntityForm, names: Iterable[str]) -> None:
        """Set the named values of the form on the entity's record, before its rows are and before the commit."""
        fill_entity(record, form, names)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Saved when the form was validated."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Rows of entities are saved; those of other tables follow."""
        for formset in formsets:
            formset.save(commit=not isinstance(formset, ChildFormSet))
        # What late defaults and rules have filled in: messages and the history say the order's number.
        for entity in (form.instance, *(row for formset in formsets for row in formset.new_objects)):
            with_visible_references(request, _refreshed(entity), ())

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

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What the dataset will delete and what will make it refuse, as far as the user may read it."""
        return deletion_shown(request, objs)

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


def _refreshed(entity: Any) -> list[Any]:
    try:
        entity.refresh_from_db()
    except ObjectDoesNotExist:  # a rule has deleted it
        return []
    return [entity]


# --- registration -----------------------------------------------------------------------------------------------------

P = TypeVar("P", bound=type[EntityAdmin])
#: Model → the pages of its entities and of derived models.
_pages: dict[type[models.Model], type[EntityAdmin]] = {}


def entity_page(*entity_models: type[models.Model]) -> Callable[[P], P]:
    """Decorator of an EntityAdmin: it serves the entities of these models instead of the pages made of declarations."""

    def add(page: P) -> P:
        for model in entity_models:
            _pages[model] = page
            for repository in repositories:
                if issubclass(repository.model, model) and admin.site.is_registered(repository.model):
                    admin.site.unregister(repository.model)
                    register_pages(repository)
        return page

    return add


def register_pages(repository: Repository[Any]) -> None:
    """Register the pages of a repository with Django's admin site, unless its app has registered its own."""
    model = repository.model
    # Django's rule for plurals knows "Companys"; the repository's name is the plural.
    model._meta.verbose_name = in_words(model.__name__).lower()
    model._meta.verbose_name_plural = in_words(repository.name.rpartition(".")[2])
    if not admin.site.is_registered(model):
        admin.site.register(model, next((_pages[base] for base in model.__mro__ if base in _pages), EntityAdmin))
