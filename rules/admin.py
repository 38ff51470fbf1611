"""Admin pages of user business rules: rules with their children, statistics and traces, and the Try page (spec 05,
5.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, DateTimeField, F, FloatField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, NullIf
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from domain.admin.context import is_administrator
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.inlines import inline_class
from domain.entities.systems_bpm import UserBusinessRule
from domain.events.types import event_types
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation.languages import active_language
from rules import trace_log
from rules.actions import action_types
from rules.admin_forms import RowForm, RuleForm, RuleFormSet, attribute_names
from rules.authors import AUTHORS
from rules.models import RuleState
from rules.operations import repository_events
from rules.specs import RULES, stored_rules
from rules.trace_switches import switch_trace
from rules.try_page import try_page
from rules.validation import check_rule

_RULES = repositories[RULES]


def _inline(collection: str, title: Any, lines: Sequence[str | tuple[str, ...]]) -> type[Any]:
    """The inline of a collection; `lines` are its fields, line by line."""
    base = inline_class(_RULES.collections[collection], is_open=True)
    return type(
        f"Rule{collection}Inline",
        (base,),
        {
            "form": RowForm,
            "formset": type(f"Rule{collection}FormSet", (RuleFormSet,), {"collection": collection}),
            "verbose_name_plural": title,
            "classes": ("rule-rows",),
            "show_change_link": False,
            "get_fields": lambda self, request, obj=None: lines,
        },
    )


# In the order in which a rule runs: event, conditions, actions.
_INLINES = [
    _inline(
        "Events",
        gettext_lazy("Events: when"),
        [("event_type", "event_parameter"), ("execution_priority", "layer")],
    ),
    _inline(
        "Conditions",
        gettext_lazy("Conditions: if all of these hold"),
        [("condition_no", "attribute_name", "comparison_type", "value"), "notes"],
    ),
    _inline(
        "Actions",
        gettext_lazy("Actions: then do"),
        [("action_no", "action_type"), *((f"parameter_{n}_type", f"parameter_{n}_value") for n in (1, 2, 3))],
    ),
]


@entity_page(UserBusinessRule)
class RuleAdmin(EntityAdmin):
    """Rules with their statistics."""

    form = RuleForm
    inlines = _INLINES
    change_form_template = "rules/change_form.html"
    list_display = (
        "code",
        "title",
        "repository_name",
        "is_active",
        "soundness",
        "last_fired",
        "fired",
        "failures",
        "average",
    )
    list_display_links = ("code", "title")
    list_filter = ("is_active", "layer", "script_language", "repository_name")
    search_fields = ("code", "name", "repository_name", "notes")
    ordering = ("code",)

    class Media:
        css = {"all": ["rules/rules.css"]}

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The rule's main fields, then the script, then rarely used fields."""
        return [
            (None, {"fields": ["code", "name", "repository_name", "layer", "is_active", "notes", "trace"]}),
            (gettext("Script"), {"fields": ["script_language", "script_text"], "classes": ["collapse"]}),
            (
                gettext("Further"),
                {
                    "fields": ["author", "user_startable", "external_id", "external_system", *self.shown_read_only()],
                    "classes": ["collapse"],
                },
            ),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated, with the author."""
        return ["author", *super().get_readonly_fields(request, obj)]

    @admin.display(description=gettext_lazy("Author"))
    def author(self, rule: Any) -> str:
        """The user who saved the rule last, and whether that user may change access."""
        return AUTHORS.describe(rule.pk)

    # --- list -----------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserBusinessRule]:
        """Rules with their statistics, so that the list can be sorted by them."""
        state = RuleState.objects.filter(rule_id=OuterRef("pk"))
        numbers = {
            name: Subquery(state.values(name)[:1], output_field=BigIntegerField())
            for name in ("fired_count", "failure_count", "total_microseconds")
        }
        result: QuerySet[UserBusinessRule] = super().get_queryset(request)
        return result.annotate(
            last_fired_at=Subquery(state.values("last_fired")[:1], output_field=DateTimeField()), **numbers
        ).annotate(
            # Null before the first firing: PostgreSQL refuses to divide by zero, SQLite does not.
            mean_microseconds=Cast(F("total_microseconds"), FloatField())
            / NullIf(F("fired_count") + F("failure_count"), Value(0))
        )

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list, with the problems of the rules on the page."""
        changes = super().get_changelist_instance(request)
        shown = [rule.pk for rule in changes.result_list]
        problems = {spec.id: list(check_rule(spec)) for spec in stored_rules(active_only=False, only=shown)}
        for rule in changes.result_list:
            rule.problems = problems.get(rule.pk, [])
        return changes

    @admin.display(description=gettext_lazy("Name"))
    def title(self, rule: Any) -> str:
        """The name in the user's language."""
        return in_language(rule.name, active_language()) if rule.name else rule.code

    @admin.display(description=gettext_lazy("State"))
    def soundness(self, rule: Any) -> str:
        """Whether the rule can be evaluated, with its first problem."""
        problems = getattr(rule, "problems", [])
        if not problems:
            return gettext("sound")
        return format_html(
            '<strong class="rule-broken">{}</strong><br><span class="rule-problem">{}</span>',
            gettext("broken"),
            problems[0].message,
        )

    @admin.display(description=gettext_lazy("Last fired"), ordering="last_fired_at")
    def last_fired(self, rule: Any) -> Any:
        """When the conditions last held."""
        return rule.last_fired_at

    @admin.display(description=gettext_lazy("Fired"), ordering="fired_count")
    def fired(self, rule: Any) -> int:
        """How often the rule acted."""
        return rule.fired_count or 0

    @admin.display(description=gettext_lazy("Failures"), ordering="failure_count")
    def failures(self, rule: Any) -> int:
        """How often the rule failed."""
        return rule.failure_count or 0

    @admin.display(description=gettext_lazy("Average time"), ordering="mean_microseconds")
    def average(self, rule: Any) -> str:
        """Average time of a firing."""
        mean = rule.mean_microseconds
        return "–" if mean is None else f"{number_format(mean / 1000, 1)} ms"

    # --- one rule -------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Adds the stored rule's problems, the choices of its repository, and its newest traces."""
        rules = stored_rules(active_only=False, only=[object_id]) if object_id else []
        context: dict[str, Any] = {
            "action_types": [
                (action.name, gettext(action.description), [gettext(given.title) for given in action.parameters])
                for action in action_types
                if action.is_available
            ],
            "known_events": [(event.name, gettext(event.description)) for event in event_types],
        }
        for rule in rules:
            # Traces have data of other users' requests: only administrators see them, as over the API.
            traces = trace_log.newest(rule.id) if is_administrator(request) else []
            context |= {"problems": list(check_rule(rule)), "traces": traces}
            if rule.repository in repositories:
                repository = repositories[rule.repository]
                context["repository_events"] = repository_events(repository, request.LANGUAGE_CODE)["events"]
                context["attribute_names"] = list(dict.fromkeys(attribute_names(repository)))
        result: HttpResponse = super().changeform_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )
        return result

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Also saves the trace switch, which is no attribute of the rule."""
        super().save_related(request, form, formsets, change)
        if "trace" in form.changed_data:
            switch_trace(str(form.instance.pk), bool(form.cleaned_data["trace"]))

    def get_urls(self) -> list[Any]:
        """The generated pages and the Try page."""
        view = self.admin_site.admin_view(lambda request, object_id: try_page(self, request, object_id))
        return [path("<path:object_id>/try/", view, name="rules_try"), *super().get_urls()]
