"""Admin pages of trusted applications, users and roles (spec 01, 1.3 and 1.7).

The secret of an application and a password link are shown once, in the response itself: messages would store them in
cookies. The page of a role has its permissions and row policies.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from domain.admin.context import is_administrator
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.forms import EntityForm
from domain.dataset.records.record import Record
from domain.entities.systems_security import seal_secret
from foundation.fields import utc_now
from identity.admin import RolePermissionInline, RowPolicyInline
from identity.applications import SECRET_JWT, secret_generate, secret_rotate
from identity.factors import notices
from identity.factors.listing import factors_of, factors_remove
from identity.instance import link_base_url
from identity.logins import former_logins
from identity.models import Role, TrustedApplication, User
from identity.password_reset import password_link_make

#: Days for which the previous secret may stay valid, until clients have the new one.
GRACE_DAYS = (0, 1, 7, 30)


@entity_page(TrustedApplication)
class TrustedApplicationAdmin(EntityAdmin):
    """Trusted applications, with generated secrets."""

    list_display = ("name", "application_uri", "client_type", "scope", "is_enabled")
    #: Secret of the application that this copy of the page has created (EntityAdmin.changeform_view).
    new_secret = ""

    def shown_read_only(self) -> list[str]:
        """Adds the state of the secret."""
        return ["secret", *super().shown_read_only()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Sections by task: name the application, sign-in of people, service use; all expanded."""
        source = ("registration_source", "document_expires_utc") if obj and obj.has_registered_itself else ()
        groups = (
            (None, ("application_uri", "name", "client_type", "client_authentication", "secret",
                    "json_web_key_set", "json_web_key_set_url", "dpop_required", "scope", "access_tokens",
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
        """Whether there is a secret, until when the previous one is valid, and a link to generate a new one."""
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

    def fill(self, record: Record, form: EntityForm, names: Iterable[str]) -> None:
        """A new confidential application gets a secret."""
        super().fill(record, form, names)
        model = TrustedApplication(
            client_type=record.client_type or "", client_authentication=record.client_authentication or ""
        )
        if record.state == "Added" and model.needs_secret:
            self.new_secret, digest = secret_generate()
            record.dataset.set(record, "ApplicationSecretHash", digest)
            if model.client_authentication == SECRET_JWT:
                seal_secret(record, self.new_secret)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret; this response is the only one that has it."""
        if not self.new_secret:
            return super().response_add(request, obj, post_url_continue)
        return self._show(request, obj, self.new_secret)

    def get_urls(self) -> list[URLPattern]:
        """Adds the page that generates a secret."""
        view = self.admin_site.admin_view(self.secret_view)
        own = path("<path:object_id>/secret/", view, name="identity_trustedapplication_secret")
        return [own, *super().get_urls()]

    def secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows a form for the previous secret's validity; POST generates a secret and shows it."""
        application = self.get_object(request, object_id)
        if not isinstance(application, TrustedApplication):
            raise Http404
        if not self.has_change_permission(request, application) or not application.needs_secret:
            raise PermissionDenied
        if request.method == "POST":
            days = request.POST.get("days", "")
            keep = int(days) if days in {str(choice) for choice in GRACE_DAYS} else 0
            secret = secret_rotate(application, keep_previous=datetime.timedelta(days=keep))
            self.log_change(request, application, _("New secret"))
            return self._show(request, application, secret)
        return self._show(request, application, "")

    def _show(self, request: HttpRequest, application: TrustedApplication, secret: str) -> HttpResponse:
        title = _("Secret of %(name)s") % {"name": application.name}
        values = {"application": application, "secret": secret, "grace_days": GRACE_DAYS}
        return _secret_page(self, request, application, "secret", title=title, **values)


@entity_page(User)
class UserAdmin(EntityAdmin):
    """Users, with password links and second factors."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds the password's state, the second factors and the former logins."""
        return ["password_link", "second_factors", "former_logins", *super().get_readonly_fields(request, obj)]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds, for administrators, the password's state beside the login."""
        sections = super().get_fieldsets(request, obj)
        if is_administrator(request):
            first: list[str] = sections[0][1]["fields"]
            at = first.index("login") + 1
            first[at:at] = ["password_link"] if obj is None else ["former_logins", "password_link", "second_factors"]
        return sections

    @admin.display(description=gettext_lazy("Former logins"))
    def former_logins(self, user: User) -> str:
        """Logins that the user had before; no other user can take them."""
        return ", ".join(former_logins(user)) or "–"

    @admin.display(description=gettext_lazy("Password"))
    def password_link(self, user: User) -> str | SafeString:
        """Whether there is a password, and a link to the page that creates a password link."""
        if user.pk is None or user._state.adding:
            return _("Once the user is saved, you can make a link by which they choose one.")
        if not _may_log_in(user):
            return _("This user does not log in.")
        state = _("set") if user.has_usable_password() else _("none")
        address = reverse("admin:identity_user_password_link", args=[user.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Make a link to choose a password"))

    @admin.display(description=gettext_lazy("Second factors"))
    def second_factors(self, user: User) -> str | SafeString:
        """How many there are, and a link to the page that removes them."""
        factors = factors_of(user)
        if not factors:
            return _("none")
        names = [passkey.name for passkey in factors.passkeys]
        state = ", ".join([*names, _("authenticator app")] if factors.app else names)
        address = reverse("admin:identity_user_factors", args=[user.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Remove"))

    def get_urls(self) -> list[URLPattern]:
        """Adds the pages that create a password link and remove second factors."""
        link, factors = self.admin_site.admin_view(self.link_view), self.admin_site.admin_view(self.factors_view)
        return [
            path("<path:object_id>/password-link/", link, name="identity_user_password_link"),
            path("<path:object_id>/factors/", factors, name="identity_user_factors"),
            *super().get_urls(),
        ]

    def factors_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows the second factors, POST removes the chosen ones and tells the user."""
        user = self.get_object(request, object_id)
        if not isinstance(user, User):
            raise Http404
        if not is_administrator(request):
            raise PermissionDenied
        factors = factors_of(user)
        if request.method == "POST":
            chosen = set(request.POST.getlist("factor"))
            passkeys = [passkey for passkey in factors.passkeys if str(passkey.pk) in chosen]
            app = factors.app is not None and "app" in chosen
            if passkeys or app:
                factors_remove(user, passkeys=passkeys, app=app)
                names = [passkey.name for passkey in passkeys]
                removed = ", ".join([*names, _("authenticator app")] if app else names)
                self.log_change(request, user, _("Removed second factors: %(names)s") % {"names": removed})
                notices.user_notify(user, notices.REMOVED_BY_ADMINISTRATOR)
                self.message_user(request, _("Removed: %(names)s") % {"names": removed}, messages.SUCCESS)
                return redirect("admin:identity_user_change", user.pk)
        title = _("Second factors of %(name)s") % {"name": user.login}
        return _secret_page(self, request, user, "factors", title=title, person=user, factors=factors)

    def link_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows a confirmation, POST creates the link and shows it."""
        user = self.get_object(request, object_id)
        if not isinstance(user, User):
            raise Http404
        caller = request.user
        if not isinstance(caller, User) or not caller.is_admin or not _may_log_in(user):
            raise PermissionDenied  # the link gives its holder the account
        link = ""
        if request.method == "POST":
            link = password_link_make(user, link_base_url(request))
            self.log_change(request, user, _("New link to choose a password"))
        title = _("Password of %(name)s") % {"name": user.login}
        values = {"person": user, "link": link, "hours": settings.PASSWORD_RESET_TIMEOUT // 3600}
        return _secret_page(self, request, user, "password_link", title=title, **values)


def _secret_page(page: EntityAdmin, request: HttpRequest, obj: Any, template: str, **values: Any) -> HttpResponse:
    """A page of an object, which no cache stores."""
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "back": reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_change", args=[obj.pk]),
        **values,
    }
    headers = {"Cache-Control": "no-store"}
    return TemplateResponse(request, f"identity/admin/{template}.html", context, headers=headers)


def _may_log_in(user: User) -> bool:
    return bool(user.active and user.user_type != "SystemUserNoLogin")


@entity_page(Role)
class RoleAdmin(EntityAdmin):
    """Roles with their permissions and row policies."""

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds identity's own tables."""
        return [*super().get_inlines(request, obj), RolePermissionInline, RowPolicyInline]
