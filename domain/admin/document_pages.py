"""Admin pages of documents: the form, and buttons that change a document's state (spec 03, 3.5).

As over the API, the state is not writable, so it is no form field: each button is a POST that calls the functions of
ChangeState, MakeVoid and Recalculate, so that rules, exit statuses and the history apply.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from domain.admin.choosers import EntityChooser
from domain.admin.context import admin_dataset, edit_refusal, own_repository, permitted
from domain.admin.document_board import VOID, BoardPage
from domain.admin.document_history import document_history
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.measures import ValueColumn
from domain.admin.state_picture import UserStatus, state_picture
from domain.admin.submission import commit
from domain.admin.visible_rows import rows_of, with_visible_references
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
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation import errors
from foundation.enums import DOCUMENT_STATE, label
from foundation.languages import active_language

_STATUSES = "Systems.Documents.DocumentTypeUserStatuses"
#: Separator of state and user status in the values of the select element.
_SEPARATOR = "/"
#: References between documents, and how many related documents a page lists.
_RELATIONS = ("parent", "prime_cause_document", "adjusted_document", "reverse_of_document")
_RELATED = 20


class TypeChooser(EntityChooser):
    """Sends the page's model with its requests: the field's model is the base, with documents of all types."""

    def __init__(self, field: Any, admin_site: Any, *, model: type[Model]) -> None:
        super().__init__(field, admin_site)
        self.model = model

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return {**attrs, "data-model-name": self.model._meta.model_name}


@entity_page(Document)
class DocumentAdmin(BoardPage):
    """A document's page, with buttons to change its state, void and recalculate it."""

    change_form_template = "domain/document.html"
    object_history_template = "domain/document_history.html"

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
        return gettext("Void") if document.void else label(document.state)

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

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Adds the changes of the document's state by all clients."""
        response = super().history_view(request, object_id, extra_context)
        if isinstance(response, TemplateResponse):
            values = response.context_data or {}
            values["happened"] = document_history(request, values["object"])
        return response

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the buttons of a stored document."""
        document: Document | None = kwargs.get("obj")
        context["total"] = _total(self.repository, document or self.model())
        if document is not None:
            context["document"] = document
            context["steps"] = _steps(document)
            context["related"] = related_documents(request, document)
            context["may_step"] = not document.void and self.has_post_permission(request, document)
            context["may_recalculate"] = not edit_refusal(request, document)
            context["next_states"] = [] if document.void else next_states(request, document)
        return super().render_change_form(request, context, *args, **kwargs)


class StateFilter(admin.SimpleListFilter):
    """Filters documents by state; Void is a separate state."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [*DOCUMENT_STATE.choices(), (VOID, _("Void"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = self.value()
        if state is None:
            return queryset
        if state == VOID:
            return queryset.filter(void=True)
        if state not in DOCUMENT_STATE.members:
            raise IncorrectLookupParameters(state)
        return queryset.filter(void=False, state=state)


@entity_page(DocumentType)
class DocumentTypeAdmin(EntityAdmin):
    """Document types: their list, the chooser on a document's page, and a picture of the states on a type's page."""

    change_form_template = "domain/document_type.html"

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the picture to the page of a stored type of known documents."""
        document_type: DocumentType | None = kwargs.get("obj")
        if document_type is not None and permitted(request, "read", repositories[_STATUSES]):
            context["state_picture"] = state_picture(_user_statuses(request, document_type))
        return super().render_change_form(request, context, *args, **kwargs)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """A chooser on a document's page gets only types of such documents."""
        result, duplicates = super().get_search_results(request, queryset, search_term)
        page = (request.GET.get("app_label", ""), request.GET.get("model_name", ""))
        if request.GET.get("field_name") == "document_type" and all(page):
            name = _entity_name(*page)
            result = result.filter(entity_name=name) if name else result
        return result, duplicates


def _user_statuses(request: HttpRequest, document_type: DocumentType) -> list[UserStatus]:
    """The type's active user statuses that the user may read, in their order."""
    rows = DocumentTypeUserStatus._default_manager.filter(document_type=document_type, active=True)
    language = active_language()
    return [
        UserStatus(str(row.pk), in_language(row.user_status_name, language), row.state, row.is_exit_status)
        for row in rows_of(request, rows).order_by("display_order", "id")
    ]


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
            text = f"{label(status.state)} – {in_language(status.user_status_name, language)}"
            statuses.setdefault(status.state, []).append((f"{status.state}{_SEPARATOR}{status.pk}", text))
    result: list[tuple[str, str]] = []
    for state in reachable:
        result += [(state, label(state)), *statuses.get(state, [])]
    return [*result, *statuses.get(now, [])]


def _steps(document: Document) -> list[tuple[str, str]]:
    """(label, "past", "current" or "") of the states in their usual order."""
    states = FORWARD if document.state in FORWARD else (document.state, *FORWARD)
    now = states.index(document.state)
    return [(label(state), "past" if at < now else "current" if at == now else "") for at, state in enumerate(states)]


def _total(repository: Repository[Any], document: Model) -> str:
    """The document's total with its currency; "" for documents without one."""
    attribute = repository.by_python_name.get("total_line_amount")
    return "" if attribute is None else ValueColumn(repository, attribute)(document)


def related_documents(request: HttpRequest, document: Document) -> list[tuple[str, str, str]]:
    """(URL, text, state) of at most _RELATED documents that the document refers to or that refer to it."""
    ahead = {key for name in _RELATIONS if (key := getattr(document, f"{name}_id")) is not None} - {document.pk}
    related = reduce(or_, (Q(**{f"{name}_id": document.pk}) for name in _RELATIONS), Q(pk__in=ahead))
    rows = Document._default_manager.filter(related).exclude(pk=document.pk).select_related("document_type")
    shown = with_visible_references(request, list(rows_of(request, rows).order_by("document_date", "pk")[:_RELATED]))
    return [
        (reverse(f"admin:domain_{own_repository(each).model._meta.model_name}_change", args=[each.pk]), str(each),
         gettext("Void") if each.void else label(each.state))
        for each in shown
    ]  # fmt: skip


def _change_state(request: HttpRequest, document: Record) -> str:
    state, _, status_id = request.POST.get("state", "").partition(_SEPARATOR)
    if state not in FORWARD:
        raise errors.Refused(errors.STATE_TRANSITION, document.describe(), document.values["State"], state)
    status = document.dataset.load(_STATUSES, status_id) if status_id else None
    document_change_state(document, state, user_status=status)
    return gettext("The state is {0} now.").replace("{0}", label(state))


def _make_void(request: HttpRequest, document: Record) -> str:
    document_make_void(document, request.POST.get("reason", ""))
    return gettext("The document is void now.")


def _recalculate(request: HttpRequest, document: Record) -> str:
    document_recalculate(document)
    return gettext("The document is recalculated.")
