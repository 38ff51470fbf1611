"""Pages of calculated attributes: the rows as a tree, with types, errors and values on a chosen entity (spec 10.1).

The rows are those of the page's formset. Each change sends the form as a draft (domain.admin.drafts) to update the
tree; without scripts the buttons do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.forms import Media
from django.forms.formsets import DELETION_FIELD_NAME
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext, gettext_lazy

from domain.admin.calculation_tree import TYPES, Tree, number_of, row_of_form, type_text
from domain.admin.calculation_values import row_values, script_value
from domain.admin.code_completion import CodeCompletion
from domain.admin.context import admin_context, permitted
from domain.admin.drafts import STEP, Draft, entities_to_try, forget_errors, is_draft, is_removed, is_writable
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.forms import ChildFormSet, EntityForm
from domain.admin.inlines import inline_class
from domain.admin.submission import Submission
from domain.entities.systems_bpm import CalculatedAttribute
from domain.model.calculated_attributes import DEFINITIONS, PARAMETERS, PREFIX, Definition
from domain.model.custom_properties import escape_code
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import new_root
from domain.query.bind.binder import Binder
from domain.query.bind.calculated_types import value_types
from domain.query.bind.calculations.calculation import MAX_ROWS
from domain.query.bind.calculations.tracing import Tracing
from foundation import errors

COLLECTION = "Expressions"
#: CSS class of the fieldset that the tree replaces.
ROWS = "calculation-rows"
#: Fields of attributes in JavaScript.
_SCRIPT = ("script_language", "script_text", "value_type")
_STEP_OF_NUMBERS = 10
_ADD = re.compile(rf"add {COLLECTION}(?: (\d{{1,9}}))?")
_REMOVE = re.compile(rf"remove ({COLLECTION}-\d{{1,3}})")


class ExpressionForm(EntityForm):
    """One row; its inputs show the types of parameters in words."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for number in PARAMETERS:
            field: Any = self.fields.get(f"parameter_{number}_type")
            if field is not None:
                field.choices = [("", "---------"), *((name, gettext(text)) for name, text in TYPES.items())]
            if f"parameter_{number}_value" in self.fields:
                self.fields[f"parameter_{number}_value"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        titles = {"expression_no": gettext("Number"), "operator": gettext("Operator"), "notes": gettext("Notes")}
        for name, title in titles.items():
            if name in self.fields:
                self.fields[name].widget.attrs["aria-label"] = title


class ExpressionFormSet(ChildFormSet):
    """The rows, in the dataset's order so that errors are shown at their rows."""

    collection = COLLECTION

    def get_queryset(self) -> Any:
        return super().get_queryset().order_by("pk")


def _inline() -> type[Any]:
    base = inline_class(repositories[DEFINITIONS].collections[COLLECTION], is_open=True)
    members = {"form": ExpressionForm, "formset": ExpressionFormSet, "show_change_link": False}
    return type("ExpressionInline", (base,), members)


def with_step(data: QueryDict) -> QueryDict:
    """The submitted rows with a row added or removed by the step."""
    changed = data.copy()
    if (removed := _REMOVE.fullmatch(data.get(STEP, ""))) is not None:
        changed[f"{removed[1]}-{DELETION_FIELD_NAME}"] = "on"
    added = _ADD.fullmatch(data.get(STEP, ""))
    total = data.get(f"{COLLECTION}-TOTAL_FORMS", "")
    if added is not None and total.isdigit() and int(total) < MAX_ROWS:
        known = [number_of(data.get(f"{COLLECTION}-{index}-expression_no")) or 0 for index in range(int(total))]
        number = int(added[1]) if added[1] else max(known, default=0) + _STEP_OF_NUMBERS
        changed[f"{COLLECTION}-TOTAL_FORMS"] = str(int(total) + 1)
        changed[f"{COLLECTION}-{total}-expression_no"] = str(number)
    return changed


@dataclass(slots=True)
class Trial:
    """The part of the page next to the rows or script: entities to evaluate them on, and the value on the chosen one.

    type      inferred type of the value
    problem   error of the definition as a whole
    q         the search text
    entities  (guid, text); None without a repository
    entity    guid of the chosen one
    value     None: not evaluated
    """

    type: str = ""
    problem: str = ""
    q: str = ""
    entities: Sequence[tuple[str, str]] | None = None
    entity: str = ""
    value: str | None = None


@entity_page(CalculatedAttribute)
class CalculatedAttributeAdmin(CodeCompletion, EntityAdmin):
    """Calculated attributes, edited as trees."""

    inlines = (_inline(),)
    change_form_template = "domain/calculation.html"
    code_fields = {"script_text": ("javascript", 12)}
    list_display = ("__str__", "name", "repository_name", "script_language", "soundness", "is_active")
    list_filter = ("is_active", "script_language", "repository_name")
    search_fields = ("name", "caption", "repository_name", "notes")

    @property
    def media(self) -> Media:
        """Adds the script editor, and the script that sends drafts."""
        media: Media = super().media
        sheets = ["platform_site/editor.css", "domain/calculation.css"]
        return media + Media(css={"all": sheets}, js=["domain/draft.js"])

    @admin.display(description=gettext_lazy("State"))
    def soundness(self, attribute: Any) -> str:
        """Whether an active attribute can be evaluated; its page shows the row with the error."""
        if not attribute.is_active:
            return "–"
        repository = repositories.for_entity_name(attribute.repository_name)
        known = value_types(repository) if repository is not None else {}
        return gettext("sound") if PREFIX + escape_code(attribute.name) in known else gettext("broken")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A new attribute is active by default, unlike over the API."""
        return {"is_active": True, **super().get_changeform_initial_data(request)}

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Sections: identification, rows, script, then rarely used fields."""
        first = ["repository_name", "name", "caption", "is_active"]
        script = [name for name in self.editable() if name in _SCRIPT]
        external = ["external_id", "external_system"]
        others = [
            name for name in self.editable() if name not in (*first, *script, *external, "starting_expression_no")
        ]
        is_script = obj is not None and obj.script_language == "JavaScript"
        return [
            (None, {"fields": first}),
            (gettext("Value"), {"fields": ["starting_expression_no"], "classes": [ROWS]}),
            (gettext("Script"), {"fields": script, "classes": [] if is_script else ["collapse"]}),
            (gettext("More"), {"fields": others, "classes": ["collapse"]}),
            (gettext("From another system"), {"fields": external, "classes": ["collapse"]}),
            (gettext("Kept by the platform"), {"fields": self.shown_read_only(), "classes": ["collapse"]}),
        ]

    # --- drafts -------------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """A POST with STEP applies the step and shows the page again without saving."""
        if is_draft(request):
            request.POST = with_step(request.POST)  # type: ignore[assignment]
        return super().changeform_view(request, object_id, form_url, extra_context)

    def new_submission(self, request: HttpRequest) -> Submission:
        """A draft is shown again, not saved."""
        return Draft(request, self.fill) if is_draft(request) else super().new_submission(request)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Shows the rows as a tree to users who may write them; for a draft only the tree, without errors."""
        inlines = {inline.formset.prefix: inline for inline in context["inline_admin_formsets"]}
        form, inline = context["adminform"].form, inlines.get(COLLECTION)
        drafted = isinstance(self.submission, Draft)
        if drafted:
            forget_errors([form, *(row for each in inlines.values() for row in each.formset.forms)])
            context["errors"] = []
        if inline is not None and "repository_name" in form.fields and is_writable(inline):
            context |= _shown(request, form, inline.formset)
        if drafted and "trial" in context and request.headers.get("HX-Request"):
            return TemplateResponse(request, "domain/_calculation.html", context)
        return super().render_change_form(request, context, *args, **kwargs)


def _shown(request: HttpRequest, form: Any, formset: Any) -> dict[str, Any]:
    """The context of templates/domain/_calculation.html."""
    repository = repositories.for_entity_name(str(form["repository_name"].value() or ""))
    if repository is not None and not permitted(request, "read", repository):
        repository = None
    trial = Trial(q=request.POST.get("try_q", "").strip(), entity=request.POST.get("try_entity", "").lower())
    is_script = form["script_language"].value() == "JavaScript"
    tree = None
    if is_script:
        _try_script(request, form, repository, trial)
    else:
        tree = _tried_tree(request, form, formset, repository, trial)
    if trial.value is None and is_script:
        trial.entity = ""
    if repository is not None:
        trial.entities = entities_to_try(repository, request, trial.q)
        if trial.entity and trial.entity not in (key for key, _ in trial.entities):
            trial.entities = [*entities_to_try(repository, request, trial.entity), *trial.entities]
    return {"tree": tree, "is_script": is_script, "formset": formset, "trial": trial}


def _definition(form: Any, repository: Repository[Any], **others: Any) -> Definition:
    start = number_of(form["starting_expression_no"].value()) or 0
    return Definition(repository.name, str(form["name"].value() or "?"), {}, {}, start, **others)


def _try_script(request: HttpRequest, form: Any, repository: Repository[Any] | None, trial: Trial) -> None:
    script, value_type = str(form["script_text"].value() or ""), str(form["value_type"].value() or "String")
    if repository is not None and script and trial.entity:
        definition = _definition(form, repository, rows=(), script=script, value_type=value_type)
        trial.value = script_value(request, definition, repository, trial.entity)


def _tried_tree(
    request: HttpRequest, form: Any, formset: Any, repository: Repository[Any] | None, trial: Trial
) -> Tree:
    rows = [row for each in formset.forms if not is_removed(each) and (row := row_of_form(each)) is not None]
    tracing, values = None, None
    if repository is not None and rows:
        definition = _definition(form, repository, rows=tuple(rows))
        source = new_root(repository)
        binder = Binder(Access(admin_context(request).permissions), pending=(definition,))
        try:
            tracing = Tracing(binder, definition)
        except errors.BadRequest as refused:
            trial.problem = refused.message
        else:
            tracing.trace(source)
            trial.type, trial.problem = type_text(tracing.value), tracing.problem
            values = row_values(request, tracing, source, trial.entity) if trial.entity else None
    if request.POST.get(STEP, "").startswith("add ") and formset.forms:
        # Not autofocus: browsers log a warning if another element has the focus.
        formset.forms[-1].fields["operator"].widget.attrs["data-begin"] = True
    start = number_of(form["starting_expression_no"].value())
    if values is None:
        trial.entity = ""
    trial.value = (values or {}).get(start or 0)
    return Tree(request, formset.forms, start, repository, tracing.rows if tracing is not None else {}, values or {})
