"""Admin pages of managed scripts and of the history of script runs (spec 04, 4.4)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import orjson
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.formats import localize, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from domain.admin.authored_pages import AuthoredAdmin
from domain.admin.code_completion import CodeCompletion
from domain.admin.context import admin_context, is_administrator
from domain.admin.entity_pages import entity_page
from domain.admin.post_actions import PostActions
from domain.entities.systems_core import Script
from foundation.errors import PlatformError
from identity.admin_bases import HistoryAdmin
from scripts import history
from scripts.argument_form import PREFIX, ArgumentForm
from scripts.authors import AUTHORS
from scripts.dry_run import DryRun, script_dry_run
from scripts.models import ScriptRun
from scripts.parameters import EMPTY, InvalidSchema, ParameterSchema, read_schema
from scripts.validation import source_problems

_LATEST_RUNS = 10
#: attribute of the entity → field of its form
_FIELDS = {"ScriptText": "script_text", "ParameterSchema": "parameter_schema"}
_HELP = {
    "script_text": _("The body of a function. Tab indents; Escape, then Tab, leaves the editor."),
    "parameter_schema": _('JSON: {"name": {"type": "number", "direction": "Input", "required": true, "default": 1}}'),
}


@entity_page(Script)
class ScriptAdmin(CodeCompletion, PostActions, AuthoredAdmin):
    """Managed scripts: an editor, a panel to run the script, and its latest runs."""

    authors = AUTHORS
    post_actions = ("run",)
    code_fields = {"script_text": ("javascript", 22), "parameter_schema": ("json", 8)}

    change_form_template = "scripts/script.html"
    list_display = ("code", "__str__", "is_active", "language", "last_run")
    list_filter = ("is_active", "language")

    class Media:
        css = {"all": ("platform_site/editor.css", "scripts/scripts.css")}
        js = ()

    def has_post_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Whether the user may run scripts: the scope `exec`, which only administrators have (domain.admin.context)."""
        return "exec" in admin_context(request).scopes and super().has_post_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        check = self.admin_site.admin_view(never_cache(require_POST(self.check_view)))
        return [path("check/", check, name=f"{self.opts.app_label}_{self.opts.model_name}_check"), *super().get_urls()]

    @admin.display(description=_("Last run"), empty_value="–")
    def last_run(self, script: Script) -> SafeString | None:
        """Time and outcome of the last run."""
        run = ScriptRun.objects.filter(kind="Managed", name=script.code).first()
        return None if run is None else format_html("{} {}", outcome_badge(run.outcome), _when(run))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Adds the syntax check to the source, and descriptions to source and schema."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in _HELP:
            field.help_text = _HELP[db_field.name]
            if db_field.name == "script_text":
                field.widget.attrs["data-check"] = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_check")
        return field

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the run panel and the latest runs of a stored script."""
        script: Script | None = kwargs.get("obj")
        if script is not None:
            context.update(
                self._panel(script, ArgumentForm(_schema(script))),
                may_run=self.has_post_permission(request, script),
                runs=_runs_of(script)[:_LATEST_RUNS] if is_administrator(request) else [],
            )
        return super().render_change_form(request, context, *args, **kwargs)

    def _panel(self, script: Script, form: ArgumentForm) -> dict[str, Any]:
        return {
            "run_form": form,
            "run_url": self.url_of(script, "run"),
            "runs_url": _runs_url(script),
        }

    # --- checking -------------------------------------------------------------------------------------------------

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """POST the form → {"problems": [{"field", "line", "column", "message"}]}."""
        if not (self.has_change_permission(request) or self.has_add_permission(request)):
            raise PermissionDenied
        given = request.POST
        try:
            problems = list(
                source_problems(
                    _text(given.get("script_text")),
                    _text(given.get("parameter_schema")),
                    given.get("language", "JavaScript"),
                )
            )
        except PlatformError:  # no free worker; the editor checks again after the next key press
            problems = []
        result = [
            {"field": _FIELDS[each.attribute], "line": each.line, "column": each.column, "message": each.message}
            for each in problems
        ]
        return JsonResponse({"problems": result})

    # --- trying ---------------------------------------------------------------------------------------------------

    def do_run(self, request: HttpRequest, script: Script) -> HttpResponse:
        """Run the script with the arguments of the form; responds with a page, or a fragment for the page's script."""
        form = ArgumentForm(_schema(script), request.POST)
        context: dict[str, Any] = {"form_problems": [], "trial": None}
        if form.is_valid():
            trial = script_dry_run(
                str(script.pk), form.arguments(), admin_context(request), text=_text(request.POST.get("script_text"))
            )
            context.update(shown(trial))
        else:
            context["form_problems"] = [(name.removeprefix(PREFIX), texts) for name, texts in form.errors.items()]
        if request.headers.get("X-Fragment"):
            context.update(runs=_runs_of(script)[:_LATEST_RUNS], runs_url=_runs_url(script))
            return TemplateResponse(request, "scripts/_answer.html", context)
        context.update(
            self.admin_site.each_context(request),
            **self._panel(script, form),
            title=gettext("Run of {0}").replace("{0}", script.code),
            opts=self.opts,
            media=self.media,
            original=script,
        )
        return TemplateResponse(request, "scripts/run.html", context)


def shown(dry_run: DryRun) -> dict[str, Any]:
    """The template's values for a dry run."""
    error = dry_run.error
    details = [] if error is None else [(each.target or "", each.message) for each in error.details]
    return {
        "trial": dry_run,
        "outcome": "Succeeded" if error is None else error.code.type,
        "outputs": _json(dry_run.outputs),
        "return_value": _json(dry_run.return_value),
        "details": details,
    }


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _text(given: str | None) -> str | None:
    """Forms send CR LF line ends; positions and the editor count LF."""
    return None if given is None else given.replace("\r\n", "\n")


def _schema(script: Script) -> ParameterSchema:
    try:
        return read_schema(script.parameter_schema)
    except InvalidSchema:  # stored by another client; saving the script reports the problem
        return EMPTY


def _runs_of(script: Script) -> Any:
    history.pending.flush_if_due()
    return ScriptRun.objects.filter(kind="Managed", name=script.code)


def _runs_url(script: Script) -> str:
    return f"{reverse('admin:scripts_scriptrun_changelist')}?{urlencode({'kind': 'Managed', 'name': script.code})}"


def outcome_badge(outcome: str) -> SafeString:
    """An outcome as a badge in its colour."""
    return format_html(
        '<span class="run-outcome {}">{}</span>', "succeeded" if outcome == "Succeeded" else "failed", outcome
    )


def _when(run: ScriptRun) -> str:
    return str(localize(localtime(run.started)))


@admin.register(ScriptRun)
class ScriptRunAdmin(HistoryAdmin):
    """The history of script runs, read-only."""

    list_display = ("started", "shown_outcome", "kind", "shown_name", "user_login", "duration", "head")
    list_display_links = ("started",)
    list_filter = ("kind", "outcome", ("started", admin.DateFieldListFilter), "user_login")
    search_fields = ("name", "user_login", "message", "source_digest", "transaction_id")
    search_help_text = _("Script, user, message, digest of a source, or transaction")
    list_per_page = 50
    show_full_result_count = False
    change_form_template = "scripts/script_run.html"

    class Media:
        css = {"all": ("scripts/scripts.css",)}

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow the link from a script's page to its runs by name."""
        return lookup == "name" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    @admin.display(description=_("Outcome"), ordering="outcome")
    def shown_outcome(self, run: ScriptRun) -> SafeString:
        """The outcome, as a badge."""
        return outcome_badge(run.outcome)

    @admin.display(description=_("Script"), ordering="name", empty_value="–")
    def shown_name(self, run: ScriptRun) -> str | None:
        """The script's name; a script of ExecuteScript has none."""
        return run.name or None

    @admin.display(description=_("Duration"), ordering="duration_ms")
    def duration(self, run: ScriptRun) -> str:
        """The duration in milliseconds."""
        return f"{number_format(run.duration_ms, 1)} ms"

    @admin.display(description=_("Message or console"), empty_value="–")
    def head(self, run: ScriptRun) -> str | None:
        """The beginning of the message or console."""
        text = (run.message or run.console_head).strip()
        return (text if len(text) <= 80 else f"{text[:79]}…") or None

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds a link to the script if it still exists."""
        run: ScriptRun = kwargs["obj"]
        script = Script._default_manager.filter(code=run.name).first() if run.kind == "Managed" else None
        context.update(
            run=run, badge=outcome_badge(run.outcome), duration=self.duration(run), script_url=_page_of(script)
        )
        return super().render_change_form(request, context, *args, **kwargs)


def _page_of(script: Script | None) -> str | None:
    if script is None:
        return None
    try:
        return reverse(f"admin:{script._meta.app_label}_{script._meta.model_name}_change", args=[script.pk])
    except NoReverseMatch:
        return None
