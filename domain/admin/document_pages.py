"""The admin pages of documents: beside the form, the steps of a document's life (spec 03, 3.5).

The state is no field of the form, because it is none of the API either: each step is a POST of its own that calls what
ChangeState, MakeVoid and Recalculate call, so that rules, exit statuses and the history hold here as everywhere.
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

from domain.admin.entity_pages import EntityAdmin, admin_dataset, commit
from domain.admin.post_actions import VerbPages
from domain.admin.rights import edit_refusal, own_repository
from domain.dataset.records.record import Record
from domain.entities.document_states import (
    FORWARD,
    document_change_state,
    document_make_void,
    document_recalculate,
    transition_allowed,
)
from domain.entities.general_documents import Document
from domain.entities.systems_documents import DocumentType, DocumentTypeUserStatus
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation import errors
from foundation.enums import DOCUMENT_STATE
from foundation.languages import active_language

_STATUSES = "Systems.Documents.DocumentTypeUserStatuses"
#: In the values of the chooser, between a state and a user status.
_SEPARATOR = "/"
_VOID = "Void"


class TypeChooser(AutocompleteSelect):
    """Asks on behalf of the page's model: the field is its base's, which has documents of all types."""

    def __init__(self, field: Any, admin_site: Any, *, model: type[Model]) -> None:
        super().__init__(field, admin_site)
        self.model = model

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return {**attrs, "data-model-name": self.model._meta.model_name}


class DocumentAdmin(VerbPages, EntityAdmin):
    """A document's page, with the states it can go to, voiding and recalculation."""

    change_form_template = "domain/document.html"

    verbs = ("change-state", "make-void", "recalculate")

    def get_list_display(self, request: HttpRequest) -> Any:
        """A document that is void is shown as void, whatever its state was."""
        return ["shown_state" if name == "state" else name for name in super().get_list_display(request)]

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Likewise."""
        return [StateFilter if name == "state" else name for name in super().get_list_filter(request)]

    @admin.display(description=_("State"), ordering="state")
    def shown_state(self, document: Document) -> str:
        """The state, or that it is void."""
        return gettext("Void") if document.void else document.state

    def has_verb_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Steps are for who may change documents, also where a state lets nobody edit the form."""
        return self.may(request, "update", obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The document type is one of such documents."""
        if db_field.name == "document_type":
            kwargs["widget"] = TypeChooser(db_field, self.admin_site, model=self.model)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def do_change_state(self, request: HttpRequest, found: Document) -> None:
        """Verb: to a state, and a user status of it."""
        self._step(request, found, _change_state)

    def do_make_void(self, request: HttpRequest, found: Document) -> None:
        """Verb."""
        self._step(request, found, _make_void)

    def do_recalculate(self, request: HttpRequest, found: Document) -> None:
        """Verb."""
        self._step(request, found, _recalculate)

    def _step(self, request: HttpRequest, found: Document, step: Callable[[HttpRequest, Record], str]) -> None:
        dataset = admin_dataset(request)
        with dataset.operating():
            done = step(request, dataset.open(own_repository(found), str(found.pk), "update"))
        commit(request, dataset)
        self.log_change(request, found, done)
        messages.success(request, done)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """With the steps that the stored document can take; a new one can take none yet."""
        document: Document | None = kwargs.get("obj")
        if document is not None:
            context["document"] = document
            context["may_step"] = not document.void and self.has_verb_permission(request, document)
            context["may_recalculate"] = not edit_refusal(request, document)
            context["next_states"] = [] if document.void else next_states(document)
        return super().render_change_form(request, context, *args, **kwargs)


class StateFilter(admin.SimpleListFilter):
    """By state; what is void is none of the others."""

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


class DocumentTypeAdmin(EntityAdmin):
    """Document types; the chooser of a document's page offers those of such documents."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Narrowed for a chooser, which says on which page it stands."""
        found, duplicates = super().get_search_results(request, queryset, search_term)
        asked = (request.GET.get("app_label", ""), request.GET.get("model_name", ""))
        if request.GET.get("field_name") == "document_type" and all(asked):
            name = _entity_name(*asked)
            found = found.filter(entity_name=name) if name else found
        return found, duplicates


def _entity_name(app_label: str, model_name: str) -> str:
    """The EntityName of a model's documents; "" for what is no document of its own."""
    try:
        model = apps.get_model(app_label, model_name)
        repository = repositories.for_model(model)
    except LookupError:
        return ""
    return "" if repository.abstract or not issubclass(model, Document) else repository.name


def next_states(document: Document) -> list[tuple[str, str]]:
    """(value, label) of the states that the document may go to, forward ones first, and of their user statuses."""
    now = document.state
    reachable = [state for state in FORWARD if transition_allowed(now, state, planning_only=document.planning_only)]
    reachable.sort(key=lambda state: FORWARD.index(state) < FORWARD.index(now))
    language = active_language()
    statuses: dict[str, list[tuple[str, str]]] = {}
    for status in DocumentTypeUserStatus._default_manager.filter(
        document_type_id=document.document_type_id, active=True
    ).order_by("display_order", "id"):
        if status.pk != document.user_status_id:
            label = f"{status.state} – {in_language(status.user_status_name, language)}"
            statuses.setdefault(status.state, []).append((f"{status.state}{_SEPARATOR}{status.pk}", label))
    found: list[tuple[str, str]] = []
    for state in reachable:
        found += [(state, state), *statuses.get(state, [])]
    return [*found, *statuses.get(now, [])]


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


#: Pages that are more than what is generated: model → what they have besides. Heirs of a model have it, too.
PAGES: dict[type[Model], type[EntityAdmin]] = {Document: DocumentAdmin, DocumentType: DocumentTypeAdmin}
