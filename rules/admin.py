"""Admin pages of user business rules: rules with their children, statistics and traces, and the Try page (spec 05,
5.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import transaction
from django.db.models import BigIntegerField, DateTimeField, F, FloatField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, NullIf
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from domain.admin.authored_pages import AuthoredAdmin
from domain.admin.code_completion import CodeCompletion
from domain.admin.context import admin_dataset, is_administrator
from domain.admin.drafts import Draft, forget_errors, is_draft, is_writable
from domain.admin.entity_pages import entity_page
from domain.admin.inlines import inline_class
from domain.admin.post_actions import PostActions
from domain.admin.submission import Submission, commit
from domain.entities.copies import entity_copy
from domain.entities.systems_bpm import UserBusinessRule
from domain.events.types import event_types
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation import charts
from foundation.errors import PlatformError
from foundation.languages import active_language
from rules import trace_log
from rules.actions import action_types
from rules.admin_forms import RowForm, RuleForm, RuleFormSet, attribute_names
from rules.authors import AUTHORS
from rules.charts import firings_chart
from rules.drafts import draft_of, with_step
from rules.models import RuleState
from rules.operations import repository_events
from rules.sentence import clauses
from rules.specs import RULES, RuleSpec, stored_rules
from rules.start_page import start_view
from rules.starting_points import chosen_start, free_code, initial_rows, starting_points
from rules.statistics import rule_days
from rules.trace_switches import switch_trace
from rules.try_page import tried_draft, try_page
from rules.validation import check_rule

_RULES = repositories[RULES]


#: CSS class of the fieldset that the sentence replaces.
SENTENCE = "rule-sentence"
#: Days over which the firings per day are averaged.
_SHOWN_DAYS = 7


def _starts(request: HttpRequest, rule: RuleSpec) -> list[tuple[str, str, str]]:
    """(name, title, description) of the starting points, for a new rule that has none yet."""
    if rule.id or request.method != "GET" or chosen_start(request):
        return []
    return [
        (name, gettext(starting_points[name].title), gettext(starting_points[name].description))
        for name in starting_points.names()
    ]


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
            "get_extra": lambda self, request, obj=None, **kwargs: (
                0 if obj is not None else len(initial_rows(request, collection))
            ),
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
class RuleAdmin(CodeCompletion, PostActions, AuthoredAdmin):
    """Rules with their statistics, written as sentences (rules.sentence)."""

    form = RuleForm
    inlines = _INLINES
    change_form_template = "rules/change_form.html"
    list_display = (
        "code",
        "title",
        "repository_name",
        "switch",
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
    actions = ("activate_chosen", "deactivate_chosen")
    post_actions = ("switch", "duplicate")
    code_fields = {"script_text": ("javascript", 12)}
    authors = AUTHORS

    @property
    def media(self) -> Media:
        """Adds the assets of entity choosers, which a later choice may need."""
        chooser: Media = AutocompleteSelect(UserBusinessRule._meta.pk, self.admin_site).media
        media: Media = super().media
        sheets = ["platform_site/editor.css", charts.CSS, "rules/rules.css"]
        scripts: list[Any] = [charts.JS, "domain/draft.js"]
        return media + chooser + Media(css={"all": sheets}, js=scripts)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The rule's main fields, then the script, then rarely used fields."""
        return [
            (None, {"fields": ["code", "name", ("is_active", "trace")]}),
            (gettext("Rule"), {"fields": ["repository_name"], "classes": [SENTENCE]}),
            (gettext("Script"), {"fields": ["script_language", "script_text"], "classes": ["collapse"]}),
            (
                gettext("More"),
                {"fields": ["notes", "layer", "author", "user_startable"], "classes": ["collapse"]},
            ),
            (
                gettext("From another system"),
                {"fields": ["external_id", "external_system"], "classes": ["collapse"]},
            ),
            (gettext("Kept by the platform"), {"fields": self.shown_read_only(), "classes": ["collapse"]}),
        ]

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

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any], columns: Sequence[object]) -> None:
        """Adds the problems and recent firings of the rules."""
        super().prepare_rows(request, rows, columns)
        shown = [rule.pk for rule in rows]
        problems = {spec.id: list(check_rule(spec)) for spec in stored_rules(active_only=False, only=shown)}
        days = rule_days(shown, days=_SHOWN_DAYS)
        for rule in rows:
            rule.problems = problems.get(rule.pk, [])
            rule.per_day = sum(day.fired for day in days[str(rule.pk)]) / _SHOWN_DAYS

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list, with switches for the rules that the user may change."""
        changes = super().get_changelist_instance(request)
        query = urlencode({"back": request.GET.urlencode()})
        for rule in changes.result_list:
            if self.has_change_permission(request, rule):
                rule.switch_url = f"{self.url_of(rule, 'switch')}?{query}&to={int(not rule.is_active)}"
        return changes

    @admin.display(description=gettext_lazy("Active"), ordering="is_active")
    def switch(self, rule: Any) -> str:
        """Whether the rule is active: a switch for users who may change it."""
        text = gettext("Yes") if rule.is_active else gettext("No")
        url = getattr(rule, "switch_url", "")
        if not url:
            return text
        return format_html(
            '<button class="rule-switch" role="switch" aria-checked="{}" aria-label="{}" formaction="{}"></button>',
            "true" if rule.is_active else "false",
            gettext("{0} is active").replace("{0}", rule.code),
            url,
        )

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
    def fired(self, rule: Any) -> str:
        """Number of firings, and their daily average in the last week."""
        per_day = number_format(getattr(rule, "per_day", 0.0), 1)
        return format_html(
            '{} <br><span class="rule-problem">({})</span>',
            number_format(rule.fired_count or 0),
            gettext("{0} a day").replace("{0}", per_day),
        )

    @admin.display(description=gettext_lazy("Failures"), ordering="failure_count")
    def failures(self, rule: Any) -> int:
        """Number of failures."""
        return rule.failure_count or 0

    @admin.display(description=gettext_lazy("Average time"), ordering="mean_microseconds")
    def average(self, rule: Any) -> str:
        """Average time of a firing."""
        mean = rule.mean_microseconds
        return "–" if mean is None else f"{number_format(mean / 1000, 1)} ms"

    @admin.action(description=gettext_lazy("Activate the chosen rules"), permissions=["change"])
    def activate_chosen(self, request: HttpRequest, chosen: QuerySet[UserBusinessRule]) -> None:
        """Activate each chosen rule that is sound."""
        self._switch_all(request, chosen, to=True)

    @admin.action(description=gettext_lazy("Deactivate the chosen rules"), permissions=["change"])
    def deactivate_chosen(self, request: HttpRequest, chosen: QuerySet[UserBusinessRule]) -> None:
        """Deactivate each chosen rule."""
        self._switch_all(request, chosen, to=False)

    def _switch_all(self, request: HttpRequest, chosen: QuerySet[UserBusinessRule], *, to: bool) -> None:
        switched = 0
        for rule in chosen.filter(is_active=not to):
            try:
                self._switch(request, rule, to=to)
            except PlatformError as error:
                messages.error(request, f"{rule.code}: {error.message}")
            else:
                switched += 1
        text = (
            ngettext("%(count)d rule is active now.", "%(count)d rules are active now.", switched)
            if to
            else ngettext("%(count)d rule is not active now.", "%(count)d rules are not active now.", switched)
        )
        self.message_user(request, text % {"count": switched}, messages.SUCCESS if switched else messages.WARNING)

    def _switch(self, request: HttpRequest, rule: UserBusinessRule, *, to: bool) -> None:
        """Activate or deactivate. Raises PlatformError for a rule that cannot be active."""
        with transaction.atomic():
            dataset = admin_dataset(request)
            record = dataset.open(self.repository, str(rule.pk), "update")
            dataset.set(record, self.repository.attributes["IsActive"], to)
            commit(request, dataset)
            self.log_change(request, rule, [{"changed": {"fields": [gettext("Active")]}}])

    def do_switch(self, request: HttpRequest, rule: UserBusinessRule) -> HttpResponse:
        """Activate or deactivate one rule of the list; the list is shown again."""
        try:
            self._switch(request, rule, to=request.GET.get("to") == "1")
        except PlatformError as error:
            messages.error(request, f"{rule.code}: {error.message}")
        back = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        return HttpResponseRedirect(f"{back}?{request.GET.get('back', '')}")

    def do_duplicate(self, request: HttpRequest, rule: UserBusinessRule) -> HttpResponse:
        """Copy the rule with its rows, not active, and show the copy. Raises PlatformError as saving does."""
        with transaction.atomic():
            dataset = admin_dataset(request)
            copied = entity_copy(dataset.open(self.repository, str(rule.pk), "read"))
            for name, value in {"Code": free_code(rule.code), "IsActive": False}.items():
                dataset.set(copied, self.repository.attributes[name], value)
            commit(request, dataset)
            copy: UserBusinessRule = UserBusinessRule.objects.get(pk=copied.id)
            self.log_addition(request, copy, [{"added": {}}])
        messages.success(request, gettext("This is a copy of {0}. It is not active.").replace("{0}", rule.code))
        return HttpResponseRedirect(self.url_of(copy))

    # --- one rule -------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Adds the stored rule's problems, firings, the choices of its repository, and its newest traces."""
        if is_draft(request):
            request.POST = with_step(request.POST)  # type: ignore[assignment]
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
            firings = firings_chart(gettext("Firings by day"), rule_days([rule.id])[rule.id])
            context |= {"problems": list(check_rule(rule)), "traces": traces, "firings": firings}
            if rule.repository in repositories:
                repository = repositories[rule.repository]
                context["repository_events"] = repository_events(repository, request.LANGUAGE_CODE)["events"]
                context["attribute_names"] = list(dict.fromkeys(attribute_names(repository)))
        result: HttpResponse = super().changeform_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )
        return result

    def new_submission(self, request: HttpRequest) -> Submission:
        """A draft is shown again, not saved."""
        return Draft(request, self.fill) if is_draft(request) else super().new_submission(request)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Initial values from the starting point in the URL."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        start = chosen_start(request)
        if start is not None:
            texts = {"name": {active_language().upper(): gettext(start.title)}, "repository_name": start.repository}
            initial |= {"code": free_code(start.code), "is_active": True, **texts}
        return initial

    def get_formset_kwargs(self, request: HttpRequest, obj: Any, inline: Any, prefix: str) -> dict[str, Any]:
        """Adds the rows of the starting point to a new rule."""
        kwargs: dict[str, Any] = super().get_formset_kwargs(request, obj, inline, prefix)
        if request.method == "GET" and obj._state.adding:
            kwargs["initial"] = initial_rows(request, prefix)
        return kwargs

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Shows the rows as a sentence to users who may write them; a draft without errors."""
        inlines = {inline.formset.prefix: inline for inline in context["inline_admin_formsets"]}
        form = context["adminform"].form
        draft = isinstance(self.submission, Draft)
        if draft:
            forget_errors([form, *(row for inline in inlines.values() for row in inline.formset.forms)])
        if (
            "repository_name" in form.fields
            and len(inlines) == len(_INLINES)
            and all(map(is_writable, inlines.values()))
        ):
            formsets = {name: inline.formset for name, inline in inlines.items()}
            rule = draft_of(request, form, formsets)
            context |= {"clauses": clauses(request, rule, formsets), "starting_points": _starts(request, rule)}
            context |= tried_draft(rule, request)
        if draft:
            return TemplateResponse(request, "rules/_sentence.html", context)
        return super().render_change_form(request, context, *args, **kwargs)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Also saves the trace switch, which is no attribute of the rule."""
        super().save_related(request, form, formsets, change)
        if "trace" in form.changed_data:
            switch_trace(str(form.instance.pk), bool(form.cleaned_data["trace"]))

    def get_urls(self) -> list[Any]:
        """The generated pages and the Try page."""
        view = self.admin_site.admin_view(lambda request, object_id: try_page(self, request, object_id))
        start = self.admin_site.admin_view(never_cache(require_POST(start_view)))
        return [
            path("<path:object_id>/try/", view, name="rules_try"),
            path("<path:object_id>/start/", start, name="rules_start"),
            *super().get_urls(),
        ]
