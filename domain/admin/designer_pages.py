"""Pages of custom entities: a diagram of the references, and the plan of a change that loses data (spec 10.3).

Such a change is saved only after the administrator has confirmed its plan; the confirmation contains the plan's token,
so a different plan needs a new confirmation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from domain.admin.context import admin_dataset
from domain.admin.diagram import diagram
from domain.admin.drafts import STEP, Draft, forget_errors, is_draft
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.form_errors import messages_of
from domain.admin.forms import EntityForm
from domain.admin.inlines import inline_class
from domain.admin.submission import Submission, commit
from domain.dataset.records.record import Record
from domain.entities.custom_entities.definitions import ENTITIES
from domain.entities.custom_entities.plans import Plan
from domain.entities.systems_custom_entities import CustomEntity, plan_of
from domain.model.registry import repositories
from foundation import errors

#: POST parameter of a confirmed plan.
CONFIRMED = "plan_token"
#: Fields that cannot change once the definition is stored.
_FIXED = ("name", "singular_name", "owner_repository", "is_document", "track_changes")
#: The fields of an attribute, in the order of entry; others follow.
_ORDER = (
    "attribute_no",
    "name",
    "attribute_type",
    "max_length",
    "decimal_places",
    "target_repository",
    "measure_reference",
    "enum_members",
    "default_value",
    "required",
    "is_unique",
    "is_indexed",
)
#: Shorter durations are shown as immediate.
_AT_ONCE_SECONDS = 0.5
_SECONDS_OF_MINUTE = 60


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan for templates/domain/plan.html. duration: in words."""

    plan: Plan
    duration: str


def shown_plan(plan: Plan) -> ShownPlan:
    """The plan with its duration in words."""
    seconds = plan.seconds
    if seconds < _AT_ONCE_SECONDS:
        return ShownPlan(plan, gettext("It takes less than a second."))
    if seconds < _SECONDS_OF_MINUTE:
        count = math.ceil(seconds)
        text = ngettext("It takes about %(count)s second.", "It takes about %(count)s seconds.", count)
    else:
        count = math.ceil(seconds / _SECONDS_OF_MINUTE)
        text = ngettext("It takes about %(count)s minute.", "It takes about %(count)s minutes.", count)
    return ShownPlan(plan, text % {"count": count})


class PlannedSubmission(Submission):
    """A submission that keeps the plan of an unconfirmed change."""

    plan: Plan | None = None
    _is_unconfirmed = False

    def commit_forms(self, form: EntityForm) -> list[tuple[Any, Record]]:
        """As the base; also records whether only the confirmation is missing."""
        try:
            return super().commit_forms(form)
        except errors.PlatformError as error:
            self._is_unconfirmed = all(code is errors.PLAN_NOT_CONFIRMED for _, code, _ in messages_of(error))
            raise

    def save(self, form: EntityForm) -> None:
        """As the base; for an unconfirmed change, makes the plan in a transaction that is rolled back."""
        super().save(form)
        if self._is_unconfirmed:
            with transaction.atomic():
                self.plan = plan_of(self._write(admin_dataset(self.request), form)[0][1])
                transaction.set_rollback(True)


def _inline() -> type[Any]:
    base = inline_class(repositories[ENTITIES].collections["Attributes"], is_open=True)

    def get_fieldsets(self: Any, request: HttpRequest, obj: Any = None) -> Any:
        """All fields in the line of the attribute; designer.css hides those that its type does not have."""
        names = list(self.get_fields(request, obj))
        names.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        return [(None, {"fields": [tuple(names)]})]

    return type("AttributesInline", (base,), {"get_fieldsets": get_fieldsets, "show_change_link": False})


@entity_page(CustomEntity)
class CustomEntityAdmin(EntityAdmin):
    """Custom entities."""

    inlines = (_inline(),)
    change_form_template = "domain/designer.html"
    list_display = ("name", "singular_name", "owner_repository", "is_document", "track_changes")
    search_fields = ("name", "notes")

    @property
    def media(self) -> Media:
        """Adds the style sheets of the diagram and the attributes."""
        media: Media = super().media
        return media + Media(css={"all": ["domain/diagram.css", "domain/designer.css"]})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated; adds the fixed fields of a stored definition."""
        generated = super().get_readonly_fields(request, obj)
        return generated if obj is None else [*generated, *_FIXED]

    def new_submission(self, request: HttpRequest) -> Submission:
        """A submission that makes plans; a draft for the way back from the plan page to the form."""
        return Draft(request, self.fill) if is_draft(request) else PlannedSubmission(request, self.fill)

    def fill(self, record: Record, form: EntityForm, names: Iterable[str]) -> None:
        """As the base; also sets the token of the confirmed plan."""
        super().fill(record, form, names)
        _confirm(self.submission.request, record)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the diagram of a stored definition; for an unconfirmed change, shows the plan page instead."""
        entity: CustomEntity | None = kwargs.get("obj")
        plan = getattr(self.submission, "plan", None)
        if entity is not None and plan is not None:
            kept = [(name, value) for name, values in request.POST.lists() for value in values if name not in _NOT_KEPT]
            return self._plan_page(request, entity, plan, kept, gettext("Save and lose the data"))
        if isinstance(self.submission, Draft):
            rows = [row for each in context["inline_admin_formsets"] for row in each.formset.forms]
            forget_errors([context["adminform"].form, *rows])
            context["errors"] = []
        if entity is not None and entity.name in repositories:
            context |= {"diagram": diagram(repositories[entity.name]), "link": f"{reverse('api-model')}#"}
        return super().render_change_form(request, context, *args, **kwargs)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Shows the plan if data would be lost; shows a refusal above the entity's page."""
        entity = self.get_object(request, unquote(object_id)) if request.method == "GET" else None
        if request.method != "GET":
            return super().delete_view(request, object_id, extra_context)
        if entity is None:
            raise Http404
        if not self.has_delete_permission(request, entity):
            raise PermissionDenied
        try:
            with transaction.atomic():
                dataset = admin_dataset(request)
                record = dataset.open(self.repository, str(entity.pk), "delete")
                dataset.delete(record, by_client=True)
                plan = plan_of(record)
                transaction.set_rollback(True)
        except errors.PlatformError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(reverse("admin:domain_customentity_change", args=[entity.pk]))
        if not plan.losses:
            return super().delete_view(request, object_id, extra_context)
        return self._plan_page(request, entity, plan, [("post", "yes")], gettext("Delete and lose the data"))

    def _delete(self, request: HttpRequest, objects: list[Any]) -> None:
        dataset = admin_dataset(request)
        for obj in objects:
            record = dataset.open(self.repository, str(obj.pk), "delete")
            _confirm(request, record)
            dataset.delete(record, by_client=True)
        commit(request, dataset)

    def _plan_page(
        self, request: HttpRequest, entity: CustomEntity, plan: Plan, kept: list[tuple[str, str]], verb: str
    ) -> HttpResponse:
        """The page that confirms a plan: posts `kept` again, with the token."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": entity,
            "title": gettext("Confirm the loss of data"),
            "shown": shown_plan(plan),
            "kept": kept,
            "token": CONFIRMED,
            "step": STEP,
            "verb": verb,
            "is_change": ("post", "yes") not in kept,
            "back": reverse("admin:domain_customentity_change", args=[entity.pk]),
        }
        return TemplateResponse(request, "domain/plan.html", context)


#: POST parameters that the plan page does not repeat, because it sets them itself.
_NOT_KEPT = frozenset({CONFIRMED, STEP, "csrfmiddlewaretoken"})


def _confirm(request: HttpRequest, record: Record) -> None:
    """Set the definition's PlanToken to the token of the confirmed plan."""
    if token := request.POST.get(CONFIRMED, ""):
        record.dataset.set(record, record.repository.attributes["PlanToken"], token[:16])
