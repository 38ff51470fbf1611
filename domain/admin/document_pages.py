"""Admin pages of documents: beside the form, buttons that change a document's state (spec 03, 3.5).

The state is not a form field, as it cannot be written over the API either: each button is a POST that calls the
functions of ChangeState, MakeVoid and Recalculate, so that rules, exit statuses and the history apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from domain.admin.context import admin_dataset, edit_refusal, own_repository
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.post_actions import PostActions
from domain.admin.submission import commit
from domain.admin.visible_rows import rows_of
from domain.dataset.records.record import Record
from domain.entities.document_states import (
    FORWARD,
    document_change_state,
    document_make_void,
    document_recalculate,
    transition_allowed,
)
from domain.entities.general_documents import Document
from domain.entities.systems_document_types import DocumentType, DocumentTypeUserStatus
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation import errors
from foundation.enums import DOCUMENT_STATE
from foundation.languages import active_language

_STATUSES = "Systems.Documents.DocumentTypeUserStatuses"
#: Separator of state and user status in the values of the select element.
_SEPARATOR = "/"
_VOID = "Void"


class TypeChooser(AutocompleteSelect):
    """Sends the page's model with its requests: the field's own model, the base, has documents of all types."""

    def __init__(self, field: Any, admin_site: Any, *, model: type[Model]) -> None:
        super().__init__(field, admin_site)
        self.model = model

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return {**attrs, "data-model-name": self.model._meta.model_name}


@entity_page(Document)
class DocumentAdmin(PostActions, EntityAdmin):
    """A document's page, with buttons to change its state, void and recalculate it."""

    change_form_template = "domain/document.html"

    post_actions = ("change-state", "make-void", "recalculate")

    def get_list_display(self, request: HttpRequest) -> Any:
        """The columns, with Void in place of the state of a void document."""
        return ["shown_state" if name == "state" else name for name in super().get_list_display(request)]

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The filters, with Void as a separate state."""
        return [StateFilter if name == "state" else name for name in super().get_list_filter(request)]

    @admin.display(description=_("State"), ordering="state")
    def shown_state(self, document: Document) -> str:
        """The state, or Void."""
        return gettext("Void") if document.void else document.state

    def has_post_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Users who may change documents may use the buttons, even if the state forbids edits."""
        return self.may(request, "update", obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The chooser of the document type offers only types of such documents."""
        if db_field.name == "document_type":
            kwargs["widget"] = TypeChooser(db_field, self.admin_site, model=self.model)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def do_change_state(self, request: HttpRequest, document: Document) -> None:
        """Change the state, and the user status within it."""
        self._step(request, document, _change_state)

    def do_make_void(self, request: HttpRequest, document: Document) -> None:
        """Make the document void."""
        self._step(request, document, _make_void)

    def do_recalculate(self, request: HttpRequest, document: Document) -> None:
        """Recalculate the document."""
        self._step(request, document, _recalculate)

    def _step(self, request: HttpRequest, document: Document, step: Callable[[HttpRequest, Record], str]) -> None:
        dataset = admin_dataset(request)
        with dataset.operating():
            done = step(request, dataset.open(own_repository(document), str(document.pk), "update"))
        commit(request, dataset)
        self.log_change(request, document, done)
        messages.success(request, done)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the buttons of a stored document."""
        document: Document | None = kwargs.get("obj")
        if document is not None:
            context["document"] = document
            context["may_step"] = not document.void and self.has_post_permission(request, document)
            context["may_recalculate"] = not edit_refusal(request, document)
            context["next_states"] = [] if document.void else next_states(request, document)
        return super().render_change_form(request, context, *args, **kwargs)


class StateFilter(admin.SimpleListFilter):
    """Filters documents by state; Void is a separate state."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [*((state, state) for state in DOCUMENT_STATE.members), (_VOID, _("Void"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = self.value()
        if state is None:
            return queryset
        if state == _VOID:
            return queryset.filter(void=True)
        if state not in DOCUMENT_STATE.members:
            raise IncorrectLookupParameters(state)
        return queryset.filter(void=False, state=state)


@entity_page(DocumentType)
class DocumentTypeAdmin(EntityAdmin):
    """Document types, as a list and for the chooser on a document's page."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """A chooser on a document's page gets only types of such documents."""
        result, duplicates = super().get_search_results(request, queryset, search_term)
        page = (request.GET.get("app_label", ""), request.GET.get("model_name", ""))
        if request.GET.get("field_name") == "document_type" and all(page):
            name = _entity_name(*page)
            result = result.filter(entity_name=name) if name else result
        return result, duplicates


def _entity_name(app_label: str, model_name: str) -> str:
    """The EntityName of a model's documents; "" for other models and abstract documents."""
    try:
        model = apps.get_model(app_label, model_name)
        repository = repositories.for_model(model)
    except LookupError:
        return ""
    return "" if repository.abstract or not issubclass(model, Document) else repository.entity_name


def next_states(request: HttpRequest, document: Document) -> list[tuple[str, str]]:
    """(value, label) of the states that the document may change to, later ones first, and of their user statuses."""
    now = document.state
    reachable = [state for state in FORWARD if transition_allowed(now, state, planning_only=document.planning_only)]
    reachable.sort(key=lambda state: FORWARD.index(state) < FORWARD.index(now))
    language = active_language()
    statuses: dict[str, list[tuple[str, str]]] = {}
    rows = DocumentTypeUserStatus._default_manager.filter(document_type_id=document.document_type_id, active=True)
    for status in rows_of(request, rows).order_by("display_order", "id"):
        if status.pk != document.user_status_id:
            label = f"{status.state} – {in_language(status.user_status_name, language)}"
            statuses.setdefault(status.state, []).append((f"{status.state}{_SEPARATOR}{status.pk}", label))
    result: list[tuple[str, str]] = []
    for state in reachable:
        result += [(state, state), *statuses.get(state, [])]
    return [*result, *statuses.get(now, [])]


def _change_state(request: HttpRequest, document: Record) -> str:
    state, _, status_id = request.POST.get("state", "").partition(_SEPARATOR)
    if state not in FORWARD:
        raise errors.Refused(errors.STATE_TRANSITION, document.describe(), document.values["State"], state)
    status = document.dataset.load(_STATUSES, status_id) if status_id else None
    document_change_state(document, state, user_status=status)
    return gettext("The state is {0} now.").replace("{0}", state)


def _make_void(request: HttpRequest, document: Record) -> str:
    document_make_void(document, request.POST.get("reason", ""))
    return gettext("The document is void now.")


def _recalculate(request: HttpRequest, document: Record) -> str:
    document_recalculate(document)
    return gettext("The document is recalculated.")
