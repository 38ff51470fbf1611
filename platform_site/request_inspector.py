"""The request inspector: admin pages of failed and slow requests, for administrators only."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from domain.entities.systems_bpm import UserBusinessRule
from foundation.errors import INTERNAL_ERROR
from identity.admin_bases import ReadOnlyAdmin
from identity.models import Session, TrustedApplication, User
from platform_site.models import RecordedRequest
from platform_site.recorded_requests import inspector_path
from scripts.models import ScriptRun

_MOST_CHOICES, _MOST_LINKS = 20, 20
_SHOWN_MESSAGE = 80
#: Groups of the page of a request: title → fields.
_GROUPS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (None, ("request_id", "when", "method", "path", "status", "duration", "queries", "process")),
    (_("Error"), ("error_type", "error_code", "message", "failed_parts", "rule")),
    (_("Caller"), ("user", "trusted_application", "session", "client_address")),
    (_("Related"), ("script_runs", "same_id")),
)
#: 5xx that are not refusals by data or rules: bugs, and busy or unreachable services.
UNEXPECTED = Q(status__gte=500) & (Q(error_type__in=("", INTERNAL_ERROR.type)) | Q(status=503))


def requests_by_id(request_id: str) -> QuerySet[RecordedRequest]:
    """The requests with this id, newest first."""
    return RecordedRequest.objects.filter(request_id=request_id)


def unexpected_failures(since: datetime.datetime) -> QuerySet[RecordedRequest]:
    """Requests that failed for other reasons than refusals by data or rules, newest first."""
    return RecordedRequest.objects.filter(UNEXPECTED, at__gte=since)


def detail_path(row: RecordedRequest) -> str:
    """Path of the request's page."""
    return reverse("admin:platform_site_recordedrequest_change", args=[row.pk])


class OutcomeFilter(admin.SimpleListFilter):
    """Kinds of failures, and slow requests."""

    title = _("Outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("unexpected", _("Failed unexpectedly")),
            ("5xx", "5xx"),
            ("4xx", "4xx"),
            ("parts", _("Partly failed")),
            ("slow", _("Slow")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RecordedRequest]) -> QuerySet[RecordedRequest]:
        conditions = {
            "unexpected": UNEXPECTED,
            "5xx": Q(status__gte=500),
            "4xx": Q(status__gte=400, status__lt=500),
            "parts": Q(failed_parts__gt=0),
            "slow": Q(duration_ms__gte=settings.SLOW_REQUEST_SECONDS * 1000),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class FrequentValuesFilter(admin.SimpleListFilter):
    """The most frequent values of the column `parameter_name`; any other value may be given in the URL."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        column = str(self.parameter_name)
        counted = RecordedRequest.objects.order_by().values_list(column).annotate(count=Count("pk"))
        values = counted.exclude(**{column: ""}).order_by("-count")[:_MOST_CHOICES]
        return self.named([value for value, _count in values])

    def named(self, values: list[str]) -> list[tuple[str, str]]:
        """(value, name) of the values."""
        return [(value, value) for value in values]

    def has_output(self) -> bool:
        """True for a value that no row has, too: Django would ignore such a filter and list every row."""
        return bool(self.value()) or super().has_output()

    def queryset(self, request: HttpRequest, queryset: QuerySet[RecordedRequest]) -> QuerySet[RecordedRequest]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class UserFilter(FrequentValuesFilter):
    """Filters by user."""

    title, parameter_name = _("User"), "user_login"


class ApplicationFilter(FrequentValuesFilter):
    """Filters by application."""

    title, parameter_name = _("Application"), "application"


class ErrorFilter(FrequentValuesFilter):
    """Filters by type of error."""

    title, parameter_name = _("Error"), "error_type"


class RuleFilter(FrequentValuesFilter):
    """Filters by business rule."""

    title, parameter_name = _("Business rule"), "rule_id"

    def named(self, values: list[str]) -> list[tuple[str, str]]:
        """The codes of the rules that still exist."""
        codes = {str(pk): code for pk, code in UserBusinessRule.objects.filter(pk__in=values).values_list("pk", "code")}
        return [(value, codes.get(value, value)) for value in values]


@admin.register(RecordedRequest)
class RecordedRequestAdmin(ReadOnlyAdmin):
    """Failed and slow requests, read-only."""

    actions = None
    list_display = ("when", "shown_status", "what", "error", "duration", "user_login", "application")
    list_display_links = ("when", "what")
    list_filter = (
        OutcomeFilter, UserFilter, ApplicationFilter, ErrorFilter, RuleFilter, ("at", admin.DateFieldListFilter),
    )  # fmt: skip
    search_fields = ("path", "message", "user_login", "request_id")
    search_help_text = _(
        "Request id, path, message or user. Requests that succeeded without delay are only in the log."
    )
    list_per_page = 50
    show_full_result_count = False
    empty_value_display = "–"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list; redirects a search for the id of a single request to its page."""
        if request.GET.keys() == {"q"} and self.has_view_permission(request):
            found = list(requests_by_id(request.GET["q"].strip())[:2])
            if len(found) == 1:
                return HttpResponseRedirect(detail_path(found[0]))
        return super().changelist_view(request, extra_context)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search an id by index, other texts in all rows, whose number is bounded."""
        by_id = queryset.filter(request_id=search_term.strip())
        return (by_id, False) if by_id.exists() else super().get_search_results(request, queryset, search_term)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The groups of fields that are not empty for this request."""
        filled = [(title, [name for name in names if self._value(name, obj)]) for title, names in _GROUPS]
        return [(title, {"fields": names}) for title, names in filled if names]

    def _value(self, name: str, row: RecordedRequest) -> Any:
        return getattr(self, name)(row) if hasattr(self, name) else getattr(row, name)

    # --- the list -------------------------------------------------------------------------------------------------

    @admin.display(description=_("Time"), ordering="pk")
    def when(self, row: RecordedRequest) -> str:
        """The time to the second."""
        at = localtime(row.at)
        return f"{date_format(at, 'SHORT_DATE_FORMAT')} {at:%H:%M:%S}"

    @display(
        description=_("Status"), ordering="status", label={"2": "info", "3": "info", "4": "warning", "5": "danger"}
    )
    def shown_status(self, row: RecordedRequest) -> tuple[str, int]:
        """The status, coloured by its first digit."""
        return str(row.status)[0], row.status

    @admin.display(description=_("Request"), ordering="path")
    def what(self, row: RecordedRequest) -> str:
        """Method and path."""
        return f"{row.method} {_shortened(row.path)}"

    @admin.display(description=_("Error"), ordering="error_type")
    def error(self, row: RecordedRequest) -> str | None:
        """Type and beginning of the message."""
        return _shortened(": ".join(filter(None, (row.error_type, row.message)))) or None

    @admin.display(description=_("Duration"), ordering="duration_ms")
    def duration(self, row: RecordedRequest) -> str:
        """The duration in milliseconds."""
        return f"{number_format(row.duration_ms, 1)} ms"

    # --- the page of a request ------------------------------------------------------------------------------------

    @admin.display(description=_("User"))
    def user(self, row: RecordedRequest) -> SafeString | str | None:
        """The user, with a link."""
        return _linked(User.objects.filter(pk=row.user_id).first(), row.user_login)

    @admin.display(description=_("Application"))
    def trusted_application(self, row: RecordedRequest) -> SafeString | str | None:
        """The trusted application, with a link."""
        found = TrustedApplication.objects.filter(application_uri=row.application).first() if row.application else None
        return _linked(found, row.application)

    @admin.display(description=_("Session"))
    def session(self, row: RecordedRequest) -> SafeString | str | None:
        """The licensed session, with a link while it is stored."""
        return _linked(Session.objects.filter(pk=row.session_id).first() if row.session_id else None, row.session_id)

    @admin.display(description=_("Business rule"))
    def rule(self, row: RecordedRequest) -> SafeString | str | None:
        """The rule that raised the error, with a link while it exists."""
        found = UserBusinessRule.objects.filter(pk=row.rule_id).first() if row.rule_id else None
        return _linked(found, str(found or row.rule_id))

    @admin.display(description=_("Script runs"))
    def script_runs(self, row: RecordedRequest) -> SafeString | None:
        """Links to the script runs with the same request id."""
        return _list(_link(run, str(run)) for run in ScriptRun.objects.filter(request_id=row.request_id)[:_MOST_LINKS])

    @admin.display(description=_("Same request id"))
    def same_id(self, row: RecordedRequest) -> SafeString | None:
        """A link to the other requests with the same id."""
        count = requests_by_id(row.request_id).count()
        if count == 1:
            return None
        text = gettext("All %(count)s requests") % {"count": count}
        return format_html('<a href="{}">{}</a>', inspector_path(row.request_id), text)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_MESSAGE else f"{text[: _SHOWN_MESSAGE - 1]}…"


def _linked(row: Model | None, text: str) -> SafeString | str | None:
    return (_link(row, text) if row is not None else text) or None


def _link(row: Model, text: str) -> SafeString:
    page = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    return format_html('<a href="{}">{}</a>', reverse(page, args=[row.pk]), text)


def _list(links: Iterator[SafeString]) -> SafeString | None:
    return format_html_join(", ", "{}", ((link,) for link in links)) or None
