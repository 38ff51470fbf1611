"""Admin pages of every repository, generated from its declaration (spec 08, 8.1).

Pages save through a dataset, so that rules, versions, webhooks and validations apply. A customized page is one class:

    @entity_page(WebHook)
    class WebHookAdmin(EntityAdmin):
        ...

It serves the model and the models derived from it. The declaration provides what the class omits (columns, filters,
search, inlines); AdminOptions configures it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext

from domain.admin import custom_properties
from domain.admin.calculated_columns import CalculatedColumn, calculated_columns, load_calculated
from domain.admin.change_messages import without_names
from domain.admin.choosers import load_chosen
from domain.admin.columns import shown_column
from domain.admin.context import admin_dataset, edit_refusal, is_administrator
from domain.admin.deletion import deletion_shown
from domain.admin.entity_lists import EntityLists
from domain.admin.fieldsets import form_fieldsets
from domain.admin.forms import ChildFormSet, EntityForm, texts_of_fields
from domain.admin.inlines import ChildInline, inline_classes
from domain.admin.lists import list_columns, list_filters, search_fields
from domain.admin.measures import attribute_name
from domain.admin.page_links import page_buttons, page_links
from domain.admin.save_previews import TRY, TRY_BUTTON
from domain.admin.submission import Submission, commit, fill_entity
from domain.admin.version_pages import VersionPages
from domain.admin.visible_rows import text_paths, with_visible_references
from domain.admin.widgets import ShownTexts
from domain.dataset.records.record import Record
from domain.model.custom_properties import PREFIX
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.errors import PlatformError
from foundation.fields import MultilanguageField


class PreviewMade(Exception):
    """Raised to end Django's view of a preview; the result is in the submission."""


class EntityAdmin(VersionPages, EntityLists):
    """The pages of one repository."""

    is_audited = False
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
        """Fill in the options that the class omits from the declaration."""
        super().__init__(model, site)
        repository = self.repository
        columns = [shown_column(repository, column) for column in list_columns(repository)]
        declared: dict[str, Any] = {
            "list_display": columns,
            "list_select_related": text_paths(repository, map(attribute_name, columns)) or False,
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
        custom = custom_properties.custom_names(self.repository)
        sections = form_fieldsets(self.repository, self.get_fields(request, obj), self.shown_read_only(), list(custom))
        is_editable = obj is None or self.has_change_permission(request, obj)
        read_only = self.get_readonly_fields(request, obj) if is_editable else self.repository.by_python_name
        sections = self.as_read(sections, {attribute_name(field) for field in read_only})
        if calculated := self._calculated(request, obj):
            sections.insert(1, (gettext("Calculated"), {"fields": calculated}))
        return sections

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Read-only attributes and those that only administrators may change; all of a read-only repository."""
        kept = self.left_to_administrators(request) if self.repository.access != "ReadOnly" else self.editable()
        return [*self.with_measures([*self.shown_read_only(), *kept]), *self._calculated(request, obj)]

    def _calculated(self, request: HttpRequest, obj: Any) -> list[CalculatedColumn]:
        """Calculated attributes of a stored entity."""
        return [] if obj is None else calculated_columns(request, self.repository)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the user may read the repository."""
        return self.may(request, "read")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may read the repository or, with obj, the entity; the other permissions alike."""
        return self.may(request, "read", obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """As for viewing; False for abstract repositories."""
        return not self.repository.abstract and self.may(request, "create")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """As for viewing; False while the entity's state forbids edits."""
        return self.may(request, "update", obj) and not edit_refusal(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """As for viewing; False while the entity's state forbids edits."""
        return self.may(request, "delete", obj) and not edit_refusal(request, obj)

    # --- one entity -----------------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The entity; None if it does not exist or the user may not read it."""
        result = super().get_object(request, object_id, from_field)
        return None if result is None else with_visible_references(request, [result])[0]

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Raises Http404, equally for missing and unreadable entities."""
        raise Http404

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Leaves out inlines of read-only repositories, such as a history, for a new entity."""
        inlines: list[Any] = super().get_inline_instances(request, obj)
        if obj is not None:
            return inlines
        return [each for each in inlines if not isinstance(each, ChildInline) or each.repository.access != "ReadOnly"]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds links, the reason why a stored entity cannot be edited, and values of read-only fields."""
        context["page_links"] = page_links(request, kwargs.get("obj"))
        context["page_buttons"] = page_buttons(request, kwargs.get("obj"))
        context["edit_refusal"] = edit_refusal(request, kwargs.get("obj"))
        if self._may_save(request, kwargs.get("obj")):
            context["actions_submit_line"] = [*context.get("actions_submit_line", ()), TRY_BUTTON]
        rows = [form for formset in context["inline_admin_formsets"] for form in formset.formset.forms]
        if (entity := kwargs.get("obj")) is not None:
            load_calculated(request, [entity], self._calculated(request, entity))
        shown = [context["adminform"].form, *rows]
        for form in shown:
            show_values(form)
        load_chosen(shown)
        return super().render_change_form(request, context, *args, **kwargs)

    def _may_save(self, request: HttpRequest, obj: Any) -> bool:
        if obj is None:
            return self.has_add_permission(request)
        return self.has_change_permission(request, obj)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Shows only administrators which rows other users changed."""
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
        """Runs in a copy of the page for the request. A POST with `_preview` saves nothing and returns the recalculated
        texts of amounts and quantities, {"Lines-0-line_amount": "1,610.35 EUR"}. A POST with `_dry_run` saves nothing
        either and shows the report of the dry run, unless the forms are invalid.
        """
        page = copy(self)
        page.submission = page.new_submission(request)
        preview: dict[str, str] | None = {} if "_preview" in request.POST else None
        page.submission.preview = preview
        page.submission.is_dry_run = TRY in request.POST
        try:
            return super(EntityAdmin, page).changeform_view(request, object_id, form_url, extra_context)
        except PreviewMade:
            if preview is not None:
                return JsonResponse(preview)
            return page._preview_page(request, object_id)

    def _preview_page(self, request: HttpRequest, object_id: str | None) -> HttpResponse:
        values = {
            **self.admin_site.each_context(request),
            "title": gettext("What saving would do"),
            "opts": self.opts,
            "original": None if object_id is None else self.get_object(request, object_id),
            "save_preview": self.submission.save_preview,
        }
        return TemplateResponse(request, "domain/save_preview.html", values)

    def get_inline_formsets(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """As Django's, which calls this to show a refused form; raises PreviewMade for a preview."""
        if self.submission.preview is not None or self.submission.save_preview is not None:
            raise PreviewMade
        return super().get_inline_formsets(request, *args, **kwargs)

    def new_submission(self, request: HttpRequest) -> Submission:
        """The submission that saves the forms of the request."""
        return Submission(request, self.fill)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form class of a request, with the current custom properties."""
        if custom := custom_properties.custom_fields(self.repository, request):
            kwargs.setdefault("form", type(self.form.__name__, (self.form,), custom))
        texts = texts_of_fields(self.repository)
        if obj is not None and not self.has_change_permission(request, obj):
            texts["help_texts"] = dict.fromkeys(texts["help_texts"], "")  # hints for entry
        form: Any = super().get_form(request, obj, change, **texts, **kwargs)
        form.submission = getattr(self, "submission", None)
        return form

    def _create_formsets(self, request: HttpRequest, obj: Any, change: bool) -> Any:
        formsets, inlines = super()._create_formsets(request, obj, change)  # type: ignore[misc]
        self.submission.formsets = formsets
        return formsets, inlines

    def fill(self, record: Record, form: EntityForm, names: Iterable[str]) -> None:
        """Set the named values of the form on the entity's record, before those of its rows and before the commit."""
        fill_entity(record, form, names)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Do nothing: the validation of the form has saved the entity."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Saves the rows of tables that are not repositories; the dataset has saved the others."""
        for formset in formsets:
            formset.save(commit=not isinstance(formset, ChildFormSet))
        # With values from late defaults and rules, since messages and the history show the order's number.
        for entity in (form.instance, *(row for formset in formsets for row in formset.new_objects)):
            with_visible_references(request, _refreshed(entity), ())

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete through a dataset."""
        self._delete(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete the selected entities, all or none."""
        self._delete(request, list(queryset))

    def _delete(self, request: HttpRequest, objects: list[Any]) -> None:
        dataset = admin_dataset(request)
        for obj in objects:
            dataset.delete(dataset.open(self.repository, str(obj.pk), "delete"), by_client=True)
        commit(request, dataset)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The readable entities that the dataset would delete, and those that would block the deletion."""
        return deletion_shown(request, objs)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """As Django's; shows a refusal above the entity's page."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except PlatformError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(
                reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[object_id])
            )

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any) -> HttpResponse | None:
        """As Django's; shows a refusal above the list."""
        try:
            return super().response_action(request, queryset, *args)
        except PlatformError as error:
            messages.error(request, error.message)
            return None


def show_values(form: Any) -> None:
    """Set display values on the form's instance for its read-only fields; the inputs have read their values already."""
    entity = form.instance
    for field in entity._meta.fields:
        if isinstance(field, MultilanguageField) and isinstance(texts := field.value_from_object(entity), dict):
            setattr(entity, field.attname, ShownTexts(texts))
    if any(name.startswith(PREFIX) for name in form.fields):
        custom_properties.show_custom(form)


def _refreshed(entity: Any) -> list[Any]:
    try:
        entity.refresh_from_db()
    except ObjectDoesNotExist:  # a rule has deleted the entity
        return []
    return [entity]


# --- registration -----------------------------------------------------------------------------------------------------

P = TypeVar("P", bound=type[EntityAdmin])
#: Model → the pages of its entities and of derived models.
_pages: dict[type[models.Model], type[EntityAdmin]] = {}


def entity_page(*entity_models: type[models.Model]) -> Callable[[P], P]:
    """Decorator of an EntityAdmin that serves the entities of these models instead of the generated pages."""

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
    # Django's plural would be "Companys"; the repository's name is the plural.
    model._meta.verbose_name = in_words(model.__name__).lower()
    model._meta.verbose_name_plural = in_words(repository.name.rpartition(".")[2])
    if not admin.site.is_registered(model):
        admin.site.register(model, next((_pages[base] for base in model.__mro__ if base in _pages), EntityAdmin))
