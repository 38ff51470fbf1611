"""Admin pages of identity's own tables.

Users, roles and trusted applications are entities: domain.admin makes their pages from declarations, and shows
RolePermissionInline and RowPolicyInline on the page of a role.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, ClassVar, cast

import django.contrib.auth.admin  # noqa: F401  (these two register pages, which are unregistered below)
import oauth2_provider.admin  # noqa: F401
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from foundation import charts
from foundation.fields import utc_now
from identity import federation_admin, registration_admin, token_admin  # noqa: F401  (register pages)
from identity.admin_bases import NameInput, PageAdmin, ReadOnlyAdmin, SingleRowAdmin, StackedInline, TabularInline
from identity.licences import FEATURES, licence_read
from identity.models import (
    Licence,
    RateLimits,
    ReservedSeat,
    RolePermission,
    RowPolicy,
    Session,
    TrustedApplication,
)
from identity.row_policies import grant_names, repository_names
from identity.session_hooks import transactions_open
from identity.sessions import session_close_by_id
from identity.usage import NEARLY_FULL, usage_by_day, usage_by_hour, usage_chart, usage_now, usage_warnings

for model in (TrustedApplication, Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)

# A drop-down would load all users.
_USER_FIELDS = ("user",)


class RolePermissionForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form with suggestions for repositories and wildcards."""

    class Meta:
        model = RolePermission
        fields = ("role", "repository", "can_read", "can_create", "can_update", "can_delete")
        widgets = {"repository": NameInput(grant_names)}


class RowPolicyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form with suggestions for repositories and the variables of a filter."""

    class Meta:
        model = RowPolicy
        fields = (
            "role", "repository", "filter", "on_read", "on_create", "on_update", "on_delete", "is_active", "notes",
        )  # fmt: skip
        widgets = {
            "repository": NameInput(repository_names),
            "filter": forms.Textarea(attrs={"rows": 3, "cols": 60, "spellcheck": "false"}),
        }
        help_texts = {
            "filter": _(
                "OData filter, for example: Responsible/Id eq $user.Id. Of the call it may ask $user.Id, $user.Login, "
                "$user.Name, $user.Email, $user.UserType, $user.IsAdmin, $company.Id, $location.Id, $role.Id and "
                "$application."
            )
        }


class RolePermissionInline(TabularInline[Any, Any]):
    """The permissions of a role."""

    model = RolePermission
    form = RolePermissionForm
    extra = 1
    hide_title = True  # it would repeat the role and the repository

    class Media:
        css: ClassVar = {"all": ("identity/admin.css",)}


class RowPolicyInline(StackedInline[Any, Any]):
    """The row policies of a role."""

    model = RowPolicy
    form = RowPolicyForm
    fields = ("repository", "filter", ("on_read", "on_create", "on_update", "on_delete"), "is_active", "notes")
    extra = 0


@admin.register(RolePermission)
class RolePermissionAdmin(PageAdmin):
    """The permissions of all roles."""

    form = RolePermissionForm
    list_display = ("role", "repository", "can_read", "can_create", "can_update", "can_delete")
    list_display_links = ("repository",)
    list_editable = ("can_read", "can_create", "can_update", "can_delete")
    list_filter = ("role",)
    search_fields = ("repository", "role__name")


@admin.register(RowPolicy)
class RowPolicyAdmin(PageAdmin):
    """The row policies of all roles; a filter that does not compile is an error at its field."""

    form = RowPolicyForm
    fields = ("role", "repository", "filter", ("on_read", "on_create", "on_update", "on_delete"), "is_active", "notes")
    list_display = ("role", "repository", "filter", "on_read", "on_create", "on_update", "on_delete", "is_active")
    list_display_links = ("repository",)
    list_filter = ("role", "is_active")
    search_fields = ("repository", "filter", "role__name")


class ReservedSeatInline(TabularInline[Any, Any]):
    """Licence slots that are reserved for users."""

    model = ReservedSeat
    raw_id_fields = _USER_FIELDS
    extra = 0


class LicenceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Features as checkboxes; stored features that this version does not know stay choices."""

    features = forms.MultipleChoiceField(label=_("Features"), widget=forms.CheckboxSelectMultiple, required=False)

    class Meta:
        model = Licence
        fields = ("sessions", "features")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = [str(name) for name in self.instance.features or ()]
        choices = cast(forms.MultipleChoiceField, self.fields["features"])
        choices.choices = [(name, name) for name in dict.fromkeys([*FEATURES, *stored])]


@admin.register(Licence)
class LicenceAdmin(SingleRowAdmin):
    """Slots, features and reserved seats of the licence, and how many sessions use them."""

    form = LicenceForm
    list_display = ("__str__", "used_now")
    readonly_fields = ("used_now", "used_today", "used_lately")
    inlines = (ReservedSeatInline,)

    class Media:
        css: ClassVar = {"all": ("identity/admin.css", charts.CSS)}
        js = (charts.JS,)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Adds warnings when slots run short."""
        if request.method == "GET":
            for text in usage_warnings():
                messages.warning(request, text)
        return super().change_view(request, object_id, form_url, extra_context)

    @admin.display(description=_("In use"))
    def used_now(self, licence: Licence) -> str:
        """Open sessions and slots, as a gauge."""
        taken, slots = usage_now()
        text = gettext("%(taken)s of %(slots)s") % {"taken": taken, "slots": slots}
        gauge = '<span class="usage-now"><meter min="0" max="{}" high="{}" value="{}"></meter> {}</span>'
        return format_html(gauge, max(slots, 1), max(slots, 1) * NEARLY_FULL, taken, text)

    @admin.display(description=_("Most sessions at once, by hour (UTC)"))
    def used_today(self, licence: Licence) -> str:
        """The most sessions of each hour of a day."""
        return usage_chart(usage_by_hour(utc_now()), licence_read().sessions, "H:i").render()

    @admin.display(description=_("Most sessions at once, by day (UTC)"))
    def used_lately(self, licence: Licence) -> str:
        """The most sessions of each day of a month."""
        return usage_chart(usage_by_day(utc_now()), licence_read().sessions, "j M").render()


class OpenFilter(admin.SimpleListFilter):
    """Filters by state; the default is open."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("closed", _("Closed")), ("all", _("All"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Shows Open in place of All for the default."""
        first, *others = super().choices(changelist)
        yield {**first, "display": _("Open")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        match self.value():
            case "all":
                return queryset
            case "closed":
                return queryset.exclude(closed=None)
        return queryset.filter(closed=None, expires__gt=utc_now())


def _short(moment: datetime.datetime) -> str:
    """The time; with the day unless it is today."""
    return date_format(moment, "H:i" if moment.date() == utc_now().date() else "j M H:i")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions, the open ones by default."""

    list_display = ("user", "application", "client_address", "since", "active", "transactions", "state")
    list_filter = (OpenFilter, "application")
    list_select_related = ("user", "application")
    search_fields = ("user__login", "application__application_uri", "client_address")
    ordering = ("-opened",)
    actions = ("close_sessions",)

    class Media:
        css: ClassVar = {"all": ("identity/admin.css",)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """A title for a read-only list, and warnings when slots run short."""
        if request.method == "GET":
            for text in usage_warnings():
                messages.warning(request, text)
        return super().changelist_view(request, {"title": gettext("Sessions"), **(extra_context or {})})

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Loads the open Domain transactions of the page's rows with one query."""
        changelist = super().get_changelist_instance(request)
        counts = transactions_open([str(session.pk) for session in changelist.result_list if session.closed is None])
        for session in changelist.result_list:
            session.open_transactions = counts.get(str(session.pk), 0)
        return changelist

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds a button for the list's action, which closes the session."""
        session: Session | None = kwargs.get("obj")
        if session is not None and session.is_open and self.has_change_permission(request):
            fields = {"action": "close_sessions", ACTION_CHECKBOX_NAME: session.pk}
            url = reverse("admin:identity_session_changelist")
            button = {"title": gettext("Close the session"), "url": url, "icon": "logout", "fields": fields}
            context["page_buttons"] = [button]
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("Opened"), ordering="opened")
    def since(self, session: Session) -> str:
        """Short form of the opening time: seven columns must fit."""
        return _short(session.opened)

    @admin.display(description=_("Last activity"), ordering="last_activity")
    def active(self, session: Session) -> str:
        """The last request, at most 30 seconds late."""
        return _short(session.last_activity)

    @admin.display(description=_("Open transactions"))
    def transactions(self, session: Session) -> int:
        """Open Domain transactions, which end with the session."""
        return int(getattr(session, "open_transactions", 0))

    @admin.display(description=_("State"))
    def state(self, session: Session) -> str:
        """Open, expired, or why the session was closed."""
        if session.closed is not None:
            return gettext(session.close_reason) if session.close_reason else gettext("closed")
        return gettext("open") if session.expires > utc_now() else gettext("expired")

    @admin.action(description=_("Close the chosen sessions"), permissions=["change"])
    def close_sessions(self, request: HttpRequest, chosen: QuerySet[Session]) -> None:
        """Close the sessions and free their slots."""
        closed = sum(session_close_by_id(session.pk) for session in chosen)
        text = ngettext("Closed %(count)s session.", "Closed %(count)s sessions.", closed) % {"count": closed}
        self.message_user(request, text, messages.SUCCESS)


@admin.register(RateLimits)
class RateLimitsAdmin(SingleRowAdmin):
    """Rate limits; a change applies to the next request."""

    fieldsets = (
        (
            None,
            {
                "description": _("Numbers are per minute; 0 means no limit."),
                "fields": [field.name for field in RateLimits._meta.fields if field.editable],
            },
        ),
    )
    list_display = ("__str__", "application_per_minute", "user_per_minute", "token_per_minute")
