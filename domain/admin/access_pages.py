"""Admin pages of users and roles (spec 01, 1.7).

A password link is shown once, in the response itself: messages would store it in cookies. The page of a role has its
permissions and row policies.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit.record import record
from domain.admin.context import is_administrator
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.object_pages import object_page
from domain.admin.page_links import PageLink, page_link
from identity.admin import RolePermissionInline, RowPolicyInline
from identity.admin_bases import NameInput
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import CredentialsChanged
from identity.factors import notices
from identity.factors.listing import factors_of, factors_remove
from identity.instance import link_base_url
from identity.logins import former_logins
from identity.models import Role, User
from identity.password_reset import password_link_make
from identity.view_as import VIEW_MINUTES, may_be_viewed, view_start


@entity_page(User)
class UserAdmin(EntityAdmin):
    """Users, with password links and second factors."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Suggests the languages of the instance and the time zones."""
        if db_field.name == "time_zone":
            kwargs["widget"] = NameInput(lambda: sorted(available_timezones()))
        elif db_field.name == "default_language":
            kwargs["widget"] = NameInput(lambda: list(dict(settings.LANGUAGES)))
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds the password's state, the second factors and the former logins."""
        return ["password_link", "second_factors", "former_logins", *super().get_readonly_fields(request, obj)]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds, for administrators, the password's state next to the login."""
        sections = super().get_fieldsets(request, obj)
        if is_administrator(request):
            first: list[str] = sections[0][1]["fields"]
            at = first.index("login") + 1
            first[at:at] = ["password_link"] if obj is None else ["former_logins", "password_link", "second_factors"]
        return sections

    @admin.display(description=gettext_lazy("Former logins"))
    def former_logins(self, user: User) -> str:
        """The user's former logins, which stay reserved."""
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
        """The number of second factors, and a link to the page that removes them."""
        factors = factors_of(user)
        if not factors:
            return _("none")
        names = [passkey.name for passkey in factors.passkeys]
        state = ", ".join([*names, _("authenticator app")] if factors.app else names)
        address = reverse("admin:identity_user_factors", args=[user.pk])
        return format_html('{} · <a href="{}">{}</a>', state, address, _("Remove"))

    def get_urls(self) -> list[URLPattern]:
        """Adds the pages that create a password link, remove second factors, and start a view as the user."""
        link, factors = self.admin_site.admin_view(self.link_view), self.admin_site.admin_view(self.factors_view)
        view_as = self.admin_site.admin_view(self.view_as_view)
        return [
            path("<path:object_id>/view-as/", view_as, name="identity_user_view_as"),
            path("<path:object_id>/password-link/", link, name="identity_user_password_link"),
            path("<path:object_id>/factors/", factors, name="identity_user_factors"),
            *super().get_urls(),
        ]

    def factors_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows the second factors; POST removes the chosen ones and notifies the user."""
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
                with transaction.atomic():
                    factors_remove(user, passkeys=passkeys, app=app)
                    notices.user_notify(user, notices.REMOVED_BY_ADMINISTRATOR, by=actor_of(request))
                names = [passkey.name for passkey in passkeys]
                removed = ", ".join([*names, _("authenticator app")] if app else names)
                self.log_change(request, user, _("Removed second factors: %(names)s") % {"names": removed})
                self.message_user(request, _("Removed: %(names)s") % {"names": removed}, messages.SUCCESS)
                return redirect("admin:identity_user_change", user.pk)
        title = _("Second factors of %(name)s") % {"name": user.login}
        return object_page(self, request, user, "factors", title=title, person=user, factors=factors)

    def view_as_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows a confirmation; POST starts the view and redirects to the home page (identity.view_as)."""
        user = self.get_object(request, object_id)
        if not isinstance(user, User):
            raise Http404
        if not is_administrator(request) or not may_be_viewed(user):
            raise PermissionDenied
        if request.method == "POST":
            view_start(request, user)
            self.log_change(request, user, _("Saw the admin as this user"))
            return redirect("admin:index")
        title = _("See the admin as %(name)s") % {"name": user.login}
        return object_page(self, request, user, "view_as", title=title, person=user, minutes=VIEW_MINUTES)

    def link_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows a confirmation, POST creates the link and shows it."""
        user = self.get_object(request, object_id)
        if not isinstance(user, User):
            raise Http404
        caller = request.user
        if not isinstance(caller, User) or not caller.is_admin or not _may_log_in(user):
            raise PermissionDenied  # the link gives access to the account
        link = ""
        if request.method == "POST":
            link = password_link_make(user, link_base_url(request))
            record(CredentialsChanged, by=actor_of(request), subject=user_subject(user), change="password link made")
            self.log_change(request, user, _("New link to choose a password"))
        title = _("Password of %(name)s") % {"name": user.login}
        values = {"person": user, "link": link, "hours": settings.PASSWORD_RESET_TIMEOUT // 3600}
        return object_page(self, request, user, "password_link", title=title, **values)


@page_link(User)
def view_as_link(request: HttpRequest, user: User) -> PageLink | None:
    """The link from a user's page to the view as the user, for administrators."""
    if not is_administrator(request) or not may_be_viewed(user):
        return None
    url = reverse("admin:identity_user_view_as", args=[user.pk])
    return PageLink(_("See the admin as this user"), url, "visibility")


def _may_log_in(user: User) -> bool:
    return bool(user.active and user.user_type != "SystemUserNoLogin")


@entity_page(Role)
class RoleAdmin(EntityAdmin):
    """Roles with their permissions and row policies, which are rows of identity's tables and not entities."""

    is_audited = True

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        """Adds the inlines of identity's tables."""
        return [*super().get_inlines(request, obj), RolePermissionInline, RowPolicyInline]
