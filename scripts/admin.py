"""The admin pages of managed scripts and of the runs of all scripts (spec 04, 4.4)."""

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

from domain.admin.entity_pages import EntityAdmin, admin_class
from domain.admin.post_actions import VerbPages
from domain.admin.rights import admin_context, is_administrator
from domain.entities.systems_core import Script
from domain.model.registry import repositories
from foundation.errors import PlatformError
from scripts import history
from scripts.argument_form import PREFIX, ArgumentForm
from scripts.authors import AUTHORS
from scripts.models import ScriptRun
from scripts.parameters import EMPTY, InvalidSchema, ParameterSchema, read_schema
from scripts.trial import Trial, trial_run
from scripts.validation import source_problems

_LATEST_RUNS = 10
#: attribute of the entity → field of its form
_FIELDS = {"ScriptText": "script_text", "ParameterSchema": "parameter_schema"}


class ScriptAdmin(VerbPages, EntityAdmin):
    """Write a script, try it, see how it ran."""

    verbs = ("run",)

    change_form_template = "scripts/script.html"
    list_display = ("code", "__str__", "is_active", "language", "last_run")
    list_filter = ("is_active", "language")

    class Media:
        css = {"all": ("scripts/scripts.css",)}
        js = ()

    def has_verb_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Running needs the scope `exec`, which only administrators have here (domain.admin.rights)."""
        return "exec" in admin_context(request).scopes and super().has_verb_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        """Checking, then the others."""
        check = self.admin_site.admin_view(never_cache(require_POST(self.check_view)))
        return [path("check/", check, name=f"{self.opts.app_label}_{self.opts.model_name}_check"), *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated; a saved script has its author, too."""
        sections = super().get_fieldsets(request, obj)
        author = [] if obj is None else [(None, {"fields": ["author"]})]
        return [*sections[:1], *author, *sections[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated, with the author."""
        return ["author", *super().get_readonly_fields(request, obj)]

    @admin.display(description=_("Author"))
    def author(self, script: Script) -> str:
        """Who saved it last, and whether it may so change who may do what."""
        return AUTHORS.told(script.pk)

    @admin.display(description=_("Last run"), empty_value="–")
    def last_run(self, script: Script) -> SafeString | None:
        """When, and what became of it."""
        run = ScriptRun.objects.filter(kind="Managed", name=script.code).first()
        return None if run is None else format_html("{} {}", outcome_badge(run.outcome), _when(run))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Texts get what the editor looks for; without scripts they are plain text areas."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        code = {"script_text": "javascript", "parameter_schema": "json"}.get(db_field.name)
        if code is not None and field is not None:
            field.widget.attrs.update(
                {
                    "data-code": code,
                    "rows": 22 if code == "javascript" else 8,
                    "spellcheck": "false",
                    "autocapitalize": "off",
                }
            )
            if code == "javascript":
                field.widget.attrs["data-check"] = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_check")
                field.help_text = _("The body of a function. Tab indents; Escape, then Tab, leaves the editor.")
            else:
                field.help_text = _(
                    'JSON: {"name": {"type": "number", "direction": "Input", "required": true, "default": 1}}'
                )
        return field

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """With the Run panel and the latest runs; a new script has neither."""
        script: Script | None = kwargs.get("obj")
        if script is not None:
            context.update(
                self._panel(script, ArgumentForm(_schema(script))),
                may_run=self.has_verb_permission(request, script),
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
        except PlatformError:  # no worker is free: the next key asks again
            problems = []
        found = [
            {"field": _FIELDS[each.attribute], "line": each.line, "column": each.column, "message": each.message}
            for each in problems
        ]
        return JsonResponse({"problems": found})

    # --- trying ---------------------------------------------------------------------------------------------------

    def do_run(self, request: HttpRequest, script: Script) -> HttpResponse:
        """POST arguments: what became of it, as a page, or as a part of one for the page's own script."""
        form = ArgumentForm(_schema(script), request.POST)
        context: dict[str, Any] = {"form_problems": [], "trial": None}
        if form.is_valid():
            trial = trial_run(
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


def shown(trial: Trial) -> dict[str, Any]:
    """A trial as its template takes it."""
    error = trial.error
    details = [] if error is None else [(each.target or "", each.message) for each in error.details]
    return {
        "trial": trial,
        "outcome": "Succeeded" if error is None else error.code.type,
        "outputs": _json(trial.outputs),
        "return_value": _json(trial.return_value),
        "details": details,
    }


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _text(given: str | None) -> str | None:
    """Forms send line ends as CR LF: positions and the editor count by LF."""
    return None if given is None else given.replace("\r\n", "\n")


def _schema(script: Script) -> ParameterSchema:
    try:
        return read_schema(script.parameter_schema)
    except InvalidSchema:  # stored by somebody else's tool; saving it again says what is wrong
        return EMPTY


def _runs_of(script: Script) -> Any:
    history.flush_if_free()
    return ScriptRun.objects.filter(kind="Managed", name=script.code)


def _runs_url(script: Script) -> str:
    return f"{reverse('admin:scripts_scriptrun_changelist')}?{urlencode({'kind': 'Managed', 'name': script.code})}"


def outcome_badge(outcome: str) -> SafeString:
    """An outcome with its colour."""
    return format_html(
        '<span class="run-outcome {}">{}</span>', "succeeded" if outcome == "Succeeded" else "failed", outcome
    )


def _when(run: ScriptRun) -> str:
    return str(localize(localtime(run.started)))


class ScriptRunAdmin(admin.ModelAdmin[ScriptRun]):
    """The history of runs: read, not written."""

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
        """A script's page links to its own runs."""
        return lookup == "name" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The platform writes them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody rewrites history."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Retention deletes them."""
        return False

    @admin.display(description=_("Outcome"), ordering="outcome")
    def shown_outcome(self, run: ScriptRun) -> SafeString:
        """As a badge."""
        return outcome_badge(run.outcome)

    @admin.display(description=_("Script"), ordering="name", empty_value="–")
    def shown_name(self, run: ScriptRun) -> str | None:
        """ExecuteScript runs what has no name."""
        return run.name or None

    @admin.display(description=_("Duration"), ordering="duration_ms")
    def duration(self, run: ScriptRun) -> str:
        """In milliseconds."""
        return f"{number_format(run.duration_ms, 1)} ms"

    @admin.display(description=_("Message or console"), empty_value="–")
    def head(self, run: ScriptRun) -> str | None:
        """The beginning of what it said."""
        text = (run.message or run.console_head).strip()
        return (text if len(text) <= 80 else f"{text[:79]}…") or None

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """With a link to the script, where there is one."""
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


def _register() -> None:
    """In place of the generated pages, whose search and references stand where ours say nothing."""
    generated = admin_class(repositories.for_model(Script))
    if admin.site.is_registered(Script):
        admin.site.unregister(Script)
    admin.site.register(Script, type("ScriptAdmin", (ScriptAdmin, generated), {"__doc__": ScriptAdmin.__doc__}))
    admin.site.register(ScriptRun, ScriptRunAdmin)


_register()
