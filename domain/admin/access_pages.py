"""Admin pages that access control needs beyond the generated ones (spec 01, 1.3 and 1.7).

A trusted application gets its secret here, and it is shown once: in the answer itself, not as a message, since messages
wait in cookies. So is the link by which a person chooses their password: administrators know nobody's. A role shows its
permissions and row policies on its own page.
"""

from __future__ import annotations

import datetime
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from domain.admin.entity_pages import admin_class, commit
from domain.admin.rights import is_administrator
from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from foundation.fields import utc_now
from identity.admin import RolePermissionInline, RowPolicyInline
from identity.applications import secret_generate, secret_rotate
from identity.instance import link_base_url
from identity.logins import former_logins
from identity.models import Role, TrustedApplication, User
from identity.password_reset import link_make

#: Days that the secret before may stay good: clients need time to be given the new one.
GRACE_DAYS = (0, 1, 7, 30)
_SECRETS = ("new_secret_hash", "application_secret_hash", "previous_secret_hash", "previous_secret_expires_utc")

_Generated: Any = admin_class(repositories["Systems.Security.TrustedApplications"])


class TrustedApplicationAdmin(_Generated):  # type: ignore[misc]
    """Trusted applications, with secrets that are made here and never typed in."""

    list_display = ("name", "application_uri", "client_type", "scope", "is_enabled")

    def editable(self) -> list[str]:
        """As generated, without the hashes."""
        return [name for name in super().editable() if name not in _SECRETS]

    def shown_read_only(self) -> list[str]:
        """As generated, with the state of the secret."""
        return ["secret", *super().shown_read_only()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """By what one wants to do: name it, let people sign in, let it act by itself; nothing of it is folded away."""
        groups = (
            (None, ("application_uri", "name", "client_type", "secret", "scope", "access_tokens", "is_enabled")),
            (gettext_lazy("People sign in"), (
                "impersonate_as_internal_user_allowed", "impersonate_as_community_user_allowed",
                "impersonate_login_url", "impersonate_logout_url",
                "front_channel_logout_url", "back_channel_logout_url",
            )),
            (gettext_lazy("It acts by itself"), ("system_user_allowed", "system_user")),
            (gettext_lazy("Limits"), ("rate_limit_per_minute", "max_sessions")),
        )  # fmt: skip
        named = {name for _title, names in groups for name in names}
        rest = [name for name in [*self.editable(), *self.shown_read_only()] if name not in named]
        shown = [(title, {"fields": names}) for title, names in groups]
        return [*shown, (gettext_lazy("More"), {"fields": rest, "classes": ("collapse",)})]

    @admin.display(description=gettext_lazy("Secret"))
    def secret(self, application: TrustedApplication) -> str | SafeString:
        """Whether there is one, how long the one before is good, and the way to a new one."""
        if application.pk is None or application._state.adding:
            return _("A confidential application gets a secret when it is saved; it is shown once.")
        if application.is_public:
            return _("Public applications have none.")
        until = application.previous_secret_expires_utc
        state = _("set") if application.application_secret_hash else _("none")
        if until is not None and until > utc_now():
            state = _("%(state)s; the one before is good until %(until)s UTC") % {
                "state": state, "until": date_format(until, "SHORT_DATETIME_FORMAT"),
            }  # fmt: skip
        address = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Make a new secret"))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """A new confidential application gets a secret."""
        super().save_model(request, obj, form, change)
        if not change and form.cleaned_data.get("client_type") != "Public":
            dataset: Dataset = request.entity_dataset  # type: ignore[attr-defined]
            secret, digest = secret_generate()
            record = dataset.open(self.repository, str(obj.pk), "update")
            dataset.set(record, "ApplicationSecretHash", digest)
            request.new_secret = secret  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret; this answer is the only one that has it."""
        secret = getattr(request, "new_secret", "")
        if not secret:
            return super().response_add(request, obj, post_url_continue)  # type: ignore[no-any-return]
        return self._show(request, obj, secret)

    def get_urls(self) -> list[URLPattern]:
        """The generated pages and the one that makes a secret."""
        view = self.admin_site.admin_view(self.secret_view)
        own = path("<path:object_id>/secret/", view, name="identity_trustedapplication_secret")
        return [own, *super().get_urls()]

    def secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks how long the secret before stays good; POST makes the new one and shows it."""
        application = self.get_object(request, object_id)
        if not isinstance(application, TrustedApplication):
            raise Http404
        if not self.has_change_permission(request, application) or application.is_public:
            raise PermissionDenied
        if request.method == "POST":
            days = request.POST.get("days", "")
            keep = int(days) if days in {str(choice) for choice in GRACE_DAYS} else 0
            secret = secret_rotate(application, keep_previous=datetime.timedelta(days=keep))
            self.log_change(request, application, _("New secret"))
            return self._show(request, application, secret)
        return self._show(request, application, "")

    def _show(self, request: HttpRequest, application: TrustedApplication, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Secret of %(name)s") % {"name": application.name},
            "application": application,
            "secret": secret,
            "grace_days": GRACE_DAYS,
            "back": reverse("admin:identity_trustedapplication_change", args=[application.pk]),
        }
        response = TemplateResponse(request, "identity/admin/secret.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response


_GeneratedUser: Any = admin_class(repositories["Systems.Security.Users"])


class UserAdmin(_GeneratedUser):  # type: ignore[misc]
    """Users, with a link for those who have no password yet or have lost it."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated, with the way to a password, and the logins that stay the user's."""
        return ["password_link", "former_logins", *super().get_readonly_fields(request, obj)]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """As generated; for administrators the password stands with the login."""
        sections = super().get_fieldsets(request, obj)
        if is_administrator(request):
            first: list[str] = sections[0][1]["fields"]
            at = first.index("login") + 1
            first[at:at] = ["password_link"] if obj is None else ["former_logins", "password_link"]
        return sections

    @admin.display(description=gettext_lazy("Former logins"))
    def former_logins(self, user: User) -> str:
        """Nobody else is ever given them."""
        return ", ".join(former_logins(user)) or "–"

    @admin.display(description=gettext_lazy("Password"))
    def password_link(self, user: User) -> str | SafeString:
        """Whether there is one, and the way to a link by which the person chooses one."""
        if user.pk is None or user._state.adding:
            return _("Once the user is saved, you can make a link by which they choose one.")
        if not _may_log_in(user):
            return _("This user does not log in.")
        state = _("set") if user.has_usable_password() else _("none")
        address = reverse("admin:identity_user_password_link", args=[user.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Make a link to choose a password"))

    def get_urls(self) -> list[URLPattern]:
        """The generated pages and the one that makes a link."""
        view = self.admin_site.admin_view(self.link_view)
        return [path("<path:object_id>/password-link/", view, name="identity_user_password_link"), *super().get_urls()]

    def link_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST makes the link and shows it."""
        user = self.get_object(request, object_id)
        if not isinstance(user, User):
            raise Http404
        caller = request.user
        if not isinstance(caller, User) or not caller.is_admin or not _may_log_in(user):
            raise PermissionDenied  # whoever has the link is the user
        link = ""
        if request.method == "POST":
            link = link_make(user, link_base_url(request))
            self.log_change(request, user, _("New link to choose a password"))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Password of %(name)s") % {"name": user.login},
            "person": user,
            "link": link,
            "hours": settings.PASSWORD_RESET_TIMEOUT // 3600,
            "back": reverse("admin:identity_user_change", args=[user.pk]),
        }
        response = TemplateResponse(request, "identity/admin/password_link.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response


def _may_log_in(user: User) -> bool:
    return bool(user.active and user.user_type != "SystemUserNoLogin")


_GeneratedRole: Any = admin_class(repositories["Systems.Security.Roles"])


class RoleAdmin(_GeneratedRole):  # type: ignore[misc]
    """Roles with what they may do."""

    inlines = (*_GeneratedRole.inlines, RolePermissionInline, RowPolicyInline)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """The entities through the dataset; then identity's own tables, which refer to the role's row."""
        own = [formset for formset in formsets if formset.model._meta.model_name in ("rolepermission", "rowpolicy")]
        for formset in formsets:
            if formset not in own:
                self.save_formset(request, form, formset, change=change)
        commit(request, request.entity_dataset)  # type: ignore[attr-defined]
        for formset in own:
            formset.save()


def register(site: admin.AdminSite) -> None:
    """Called before the generated pages are registered, which leave alone what has pages."""
    site.register(TrustedApplication, TrustedApplicationAdmin)
    site.register(User, UserAdmin)
    site.register(Role, RoleAdmin)
