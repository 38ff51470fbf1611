"""Admin pages of trusted applications (spec 01, 1.3).

Adding an application takes three pages: its kind, the settings of that kind, then its secret with sample programs. The
secret is shown once, in the response itself: messages would store it in cookies.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from domain.admin.application_kinds import ALL_SETTINGS, KINDS, ApplicationKind, initial_values, kind_form
from domain.admin.application_snippets import flows_of, service_client_id
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.forms import EntityForm
from domain.admin.object_pages import object_page
from domain.dataset.records.record import Record
from domain.entities.systems_security import store_secret, system_user_create
from foundation.fields import utc_now
from identity.applications import SECRET, SECRET_JWT, secret_generate, secret_rotate
from identity.audit_actors import actor_of
from identity.models import TrustedApplication
from identity.oauth.trial import service_token_try

#: Choices of days for which the previous secret stays valid, until clients have the new one.
GRACE_DAYS = (0, 1, 7, 30)


@entity_page(TrustedApplication)
class TrustedApplicationAdmin(EntityAdmin):
    """Trusted applications, with generated secrets and a guided way to add one."""

    list_display = ("name", "application_uri", "client_type", "scope", "is_enabled")
    #: Secret of the application that this copy of the page has created (EntityAdmin.changeform_view).
    new_secret = ""

    def shown_read_only(self) -> list[str]:
        """Adds the state of the secret, and a link to sample programs."""
        return ["secret", "start", *super().shown_read_only()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Sections by task: name the application, sign-in of people, service use; all expanded. For a new application
        of a kind, the fields of the kind.
        """
        if obj is None and (kind := _kind_of(request)) is not None:
            return [(kind.title, {"fields": kind.fields, "description": kind.meaning})]
        source = ("registration_source", "document_expires_utc") if obj and obj.has_registered_itself else ()
        groups = (
            (None, ("application_uri", "name", "client_type", "client_authentication", "secret",
                    "start", "json_web_key_set", "json_web_key_set_url", "dpop_required", "scope", "access_tokens",
                    "is_enabled", *source)),
            (gettext_lazy("People sign in"), (
                "impersonate_as_internal_user_allowed", "impersonate_as_community_user_allowed",
                "impersonate_login_url", "impersonate_logout_url", "device_flow_allowed",
                "front_channel_logout_url", "back_channel_logout_url", "pushed_requests_required",
            )),
            (gettext_lazy("It acts by itself"), ("system_user_allowed", "system_user", "token_exchange_applications")),
            (gettext_lazy("Limits"), ("rate_limit_per_minute", "max_sessions", "top_paging")),
        )  # fmt: skip
        named = {name for _title, names in groups for name in names}
        rest = [name for name in [*self.editable(), *self.shown_read_only()] if name not in named]
        shown = [(title, {"fields": names}) for title, names in groups]
        return [*shown, (gettext_lazy("More"), {"fields": rest, "classes": ("collapse",)})]

    @admin.display(description=gettext_lazy("Secret"))
    def secret(self, application: TrustedApplication) -> str | SafeString:
        """Whether a secret is set, until when the previous one is valid, and a link to generate a new one."""
        if application.pk is None or application._state.adding:
            return _("A confidential application gets a secret when it is saved; it is shown once.")
        if not application.needs_secret:
            return _("Public applications have none.") if application.is_public else _("It signs with its own key.")
        until = application.previous_secret_expires_utc
        state = _("set") if application.application_secret_hash else _("none")
        if until is not None and until > utc_now():
            state = _("%(state)s; the one before is good until %(until)s UTC") % {
                "state": state, "until": date_format(until, "SHORT_DATETIME_FORMAT"),
            }  # fmt: skip
        address = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Make a new secret"))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Shows the choice of a kind, then the form of the kind or the form with all settings."""
        kind = _kind_of(request)
        is_chosen = kind is not None or request.GET.get("kind") == ALL_SETTINGS or "_popup" in request.GET
        if request.method == "GET" and not is_chosen:
            return self._choose_kind(request)
        if kind is not None:
            more = {"show_save_and_continue": False, "show_save_and_add_another": False, "title": kind.title}
            extra_context = {**(extra_context or {}), **more}
        return super().add_view(request, form_url, extra_context)

    def _choose_kind(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Add a trusted application"),
            "kinds": KINDS.values(),
            "all_settings": ALL_SETTINGS,
        }
        return TemplateResponse(request, "identity/admin/kinds.html", context)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """For a new application of a kind, the form of the kind."""
        if obj is None and (kind := _kind_of(request)) is not None:
            kwargs["form"] = kind_form(kind)
        return super().get_form(request, obj, change, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Adds the initial values of the kind."""
        kind, given = _kind_of(request), super().get_changeform_initial_data(request)
        return given if kind is None else {**initial_values(kind), **given}

    def fill(self, record: Record, form: EntityForm, names: Iterable[str]) -> None:
        """Gives a new application the settings of its kind and, if it is confidential, a secret."""
        super().fill(record, form, names)
        if record.state == "Added" and (kind := _kind_of(self.submission.request)) is not None:
            _apply_kind(record, kind)
        model = TrustedApplication(
            client_type=record.client_type or "", client_authentication=record.client_authentication or ""
        )
        if record.state == "Added" and model.needs_secret:
            self.new_secret, digest = secret_generate()
            record.dataset.set(record, "ApplicationSecretHash", digest)
            if model.client_authentication == SECRET_JWT:
                store_secret(record, self.new_secret)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """For an application of a kind, the page with sample programs and the secret, which only this response has."""
        if _kind_of(request) is not None:
            if self.new_secret:
                return self._start(request, obj, secret=self.new_secret)
            return redirect("admin:identity_trustedapplication_start", obj.pk)
        if not self.new_secret:
            return super().response_add(request, obj, post_url_continue)
        return self._show(request, obj, self.new_secret)

    @admin.display(description=gettext_lazy("Code to start with"))
    def start(self, application: TrustedApplication) -> SafeString:
        """A link to the page with sample programs."""
        if application._state.adding:
            return SafeString("–")
        address = reverse("admin:identity_trustedapplication_start", args=[application.pk])
        return format_html('<a href="{}">curl, Python, JavaScript, C#</a>', address)

    def get_urls(self) -> list[URLPattern]:
        """Adds the pages that generate a secret, show sample programs, and request a token."""
        own = {"secret": self.secret_view, "start": self.start_view, "token": self.token_view}
        return [
            *(
                path(
                    f"<path:object_id>/{name}/",
                    self.admin_site.admin_view(view),
                    name=f"identity_trustedapplication_{name}",
                )
                for name, view in own.items()
            ),
            *super().get_urls(),
        ]

    def start_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows sample programs, which need the secret."""
        return self._start(request, self._application(request, object_id))

    @method_decorator(sensitive_post_parameters("secret"))
    def token_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """POST requests a token for the service with the given secret, and shows its claims or the error."""
        application = self._application(request, object_id)
        if not self.has_change_permission(request, application) or not application.system_user_allowed:
            raise PermissionDenied
        if request.method != "POST":
            return redirect("admin:identity_trustedapplication_start", application.pk)
        answer = service_token_try(
            request, client_id=service_client_id(application), secret=request.POST.get("secret", "")
        )
        shown = json.dumps(answer.content, indent=2, ensure_ascii=False)
        return self._start(request, application, answer={"is_token": answer.is_token, "shown": shown})

    def _application(self, request: HttpRequest, object_id: str) -> TrustedApplication:
        application = self.get_object(request, object_id)
        if not isinstance(application, TrustedApplication) or not self.has_view_permission(request, application):
            raise Http404
        return application

    def _start(self, request: HttpRequest, application: TrustedApplication, **values: Any) -> HttpResponse:
        title = _("Start with %(name)s") % {"name": application.name}
        is_service = application.system_user_allowed and application.client_authentication == SECRET
        return object_page(
            self,
            request,
            application,
            "start",
            title=title,
            application=application,
            flows=flows_of(request, application),
            service_client_id=service_client_id(application) if is_service else "",
            **values,
        )

    def secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows a form for the previous secret's remaining validity; POST generates a secret and shows it."""
        application = self._application(request, object_id)
        if not self.has_change_permission(request, application) or not application.needs_secret:
            raise PermissionDenied
        if request.method == "POST":
            days = request.POST.get("days", "")
            keep = int(days) if days in {str(choice) for choice in GRACE_DAYS} else 0
            secret = secret_rotate(application, keep_previous=datetime.timedelta(days=keep), by=actor_of(request))
            self.log_change(request, application, _("New secret"))
            return self._show(request, application, secret)
        return self._show(request, application, "")

    def _show(self, request: HttpRequest, application: TrustedApplication, secret: str) -> HttpResponse:
        title = _("Secret of %(name)s") % {"name": application.name}
        values = {"application": application, "secret": secret, "grace_days": GRACE_DAYS}
        return object_page(self, request, application, "secret", title=title, **values)


def _kind_of(request: HttpRequest) -> ApplicationKind | None:
    """The kind of a new application, if the request names one."""
    return KINDS.get(request.GET.get("kind", ""))


def _apply_kind(record: Record, kind: ApplicationKind) -> None:
    """Set the values that the form of the kind does not show; a service without a system user gets a new one."""
    members = record.repository.by_python_name
    for name, value in kind.settings.items():
        record.dataset.set(record, members[name].name, value)
    if record.system_user_allowed and record.system_user is None and record.application_uri:
        user = system_user_create(record.dataset, record.application_uri, record.name or record.application_uri)
        record.dataset.set(record, "SystemUser", user)
