"""Admin pages of jobs and of the history of their runs (spec 10.4)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.formats import localize, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from domain.admin.authored_pages import AuthoredAdmin
from domain.admin.context import admin_context, is_administrator
from domain.admin.entity_pages import entity_page
from domain.admin.post_actions import PostActions
from domain.entities.systems_config import Job
from foundation.clock import database_now
from foundation.fields import utc_now
from identity.admin_bases import HistoryAdmin
from jobs.authors import AUTHORS
from jobs.models import RUNNING, SUCCEEDED, WAITING, JobRun
from jobs.planning import run_request
from jobs.schedules import next_cron, next_night, time_zone
from jobs.settings_input import SettingsInput

_LATEST_RUNS = 10


@entity_page(Job)
class JobAdmin(PostActions, AuthoredAdmin):
    """Jobs: their settings by type, a button to run one now, and its latest runs."""

    authors = AUTHORS
    post_actions = ("run-now",)
    change_form_template = "jobs/job.html"
    list_display = ("name", "job_type", "is_active", "shown_schedule", "next_due", "last_run")
    list_filter = ("is_active", "job_type", "schedule")

    class Media:
        css = {"all": ("scripts/scripts.css", "jobs/jobs.css")}

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Replaces the field of the settings by inputs by type."""
        if db_field.name == "job_configurations":
            kwargs["widget"] = SettingsInput(admin_context(request))
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    @admin.display(description=_("Schedule"), ordering="schedule")
    def shown_schedule(self, job: Job) -> str:
        """The schedule; a cron expression unchanged."""
        return job.cron_expression or job.schedule

    @admin.display(description=_("Next due"), empty_value="–")
    def next_due(self, job: Job) -> str | None:
        """The next due time, in the instance's time zone."""
        if not job.is_active or job.schedule == "None":
            return None
        now = utc_now()
        due = next_night(now) if job.schedule == "Night" else next_cron(job.cron_expression or "", now)
        return localize(due.astimezone(time_zone()))

    @admin.display(description=_("Last run"), empty_value="–")
    def last_run(self, job: Job) -> SafeString | None:
        """Time and state of the last run."""
        run = JobRun.objects.filter(job_id=job.pk).first()
        return None if run is None else format_html("{} {}", state_badge(run.state), localize(localtime(run.due)))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the latest runs of a stored job."""
        job: Job | None = kwargs.get("obj")
        context["time_zone"] = time_zone().key
        if job is not None:
            context.update(
                may_run=self.has_post_permission(request, job),
                run_url=self.url_of(job, "run-now"),
                runs=_rows(job) if is_administrator(request) else [],
                next_due=self.next_due(job),
            )
        return super().render_change_form(request, context, *args, **kwargs)

    def do_run_now(self, request: HttpRequest, job: Job) -> None:
        """Request a run and return to the page."""
        run_request(job, request.user.get_username(), database_now())
        messages.success(request, gettext("A worker runs the job now. Reload this page to see what became of it."))


def _rows(job: Job) -> list[tuple[JobRun, SafeString]]:
    return [(run, state_badge(run.state)) for run in JobRun.objects.filter(job_id=job.pk)[:_LATEST_RUNS]]


def state_badge(state: str) -> SafeString:
    """A state as a badge in the colour of a success or a failure; without one while the run is open."""
    colour = "succeeded" if state == SUCCEEDED else "open" if state in (WAITING, RUNNING) else "failed"
    return format_html('<span class="run-outcome {}">{}</span>', colour, state)


@admin.register(JobRun)
class JobRunAdmin(HistoryAdmin):
    """The history of runs, read-only."""

    list_display = ("due", "shown_state", "job_name", "job_type", "trigger", "duration", "attempts", "head")
    list_display_links = ("due",)
    list_filter = ("state", "job_type", "trigger", ("due", admin.DateFieldListFilter))
    search_fields = ("job_name", "message", "started_by")
    search_help_text = _("Job, message, or who started it")
    list_per_page = 50
    show_full_result_count = False
    change_form_template = "jobs/job_run.html"

    class Media:
        css = {"all": ("scripts/scripts.css",)}

    def get_urls(self) -> list[URLPattern]:
        output = self.admin_site.admin_view(never_cache(self.output_view))
        return [path("<path:object_id>/output/", output, name="jobs_jobrun_output"), *super().get_urls()]

    @admin.display(description=_("State"), ordering="state")
    def shown_state(self, run: JobRun) -> SafeString:
        """The state, as a badge."""
        return state_badge(run.state)

    @admin.display(description=_("Duration"), ordering="duration_ms")
    def duration(self, run: JobRun) -> str:
        """The working time, without attempts whose worker died."""
        return f"{number_format(run.duration_ms / 1000, 1)} s"

    @admin.display(description=_("Message"), empty_value="–")
    def head(self, run: JobRun) -> str | None:
        """The beginning of the message."""
        return (run.message if len(run.message) <= 80 else f"{run.message[:79]}…") or None

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds a link to the job if it still exists."""
        run: JobRun = kwargs["obj"]
        context.update(
            run=run,
            badge=state_badge(run.state),
            duration=self.duration(run),
            job=Job._default_manager.filter(pk=run.job_id).first(),
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def output_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The output of a run, as a file."""
        run = JobRun.objects.filter(pk=object_id).first()
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        if run is None or not run.output_name:
            raise Http404
        return HttpResponse(
            run.output,
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{run.output_name}"'},
        )
