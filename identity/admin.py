"""Admin pages of identity's own tables.

Users, roles and trusted applications are entities and get their pages from the domain's registry; RolePermissionInline
and RowPolicyInline are for the page of a role.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import django.contrib.auth.admin  # noqa: F401  (these two register pages, which are taken back below)
import oauth2_provider.admin  # noqa: F401
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from foundation import errors
from foundation.fields import utc_now
from identity.licences import FEATURES, licence_read
from identity.models import (
    AccessToken,
    Grant,
    IDToken,
    Licence,
    RateLimits,
    ReferenceToken,
    RefreshToken,
    ReservedSeat,
    RolePermission,
    RowPolicy,
    Session,
    SigningKey,
    TrustedApplication,
    User,
)
from identity.oauth.issue import family_revoke
from identity.oauth.keys import keys_rotate
from identity.reference_tokens import ReferenceTokenRefused, reference_token_issue, reference_token_revoke
from identity.row_policies import grant_names, repository_names
from identity.scopes import API_SCOPES
from identity.session_hooks import transactions_open
from identity.sessions import session_close_by_id
from identity.usage import NEARLY_FULL, usage_by_day, usage_by_hour, usage_chart, usage_now, usage_warnings

for model in (TrustedApplication, AccessToken, Grant, IDToken, RefreshToken, Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)

# Choosing one of many users by a drop-down would load them all.
_USER_FIELDS = ("user",)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows that only the platform itself writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Actions ask for this permission; the page itself stays read-only by its fields.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class SingleRowAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A table of one row, which is changed and never removed."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not self.model._default_manager.exists()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class NameInput(forms.TextInput):
    """A text with suggestions: some hundred names are too many for a drop-down in each row."""

    def __init__(self, list_id: str, names: Callable[[], list[str]]) -> None:
        super().__init__(attrs={"list": list_id, "size": 40, "autocomplete": "off", "spellcheck": "false"})
        self._list_id, self._names = list_id, names

    def render(self, *args: Any, **kwargs: Any) -> SafeString:
        """The field, and the list that it refers to; of several equal lists on a page browsers take the first."""
        options = format_html_join("", '<option value="{}"></option>', ((name,) for name in self._names()))
        return format_html('{}<datalist id="{}">{}</datalist>', super().render(*args, **kwargs), self._list_id, options)


class RolePermissionForm(forms.ModelForm):  # type: ignore[type-arg]
    """Suggests what there is to be granted."""

    class Meta:
        model = RolePermission
        fields = ("role", "repository", "can_read", "can_create", "can_update", "can_delete")
        widgets = {"repository": NameInput("grants", grant_names)}


class RowPolicyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Suggests repositories and says what a filter may ask of the call."""

    class Meta:
        model = RowPolicy
        fields = (
            "role", "repository", "filter", "on_read", "on_create", "on_update", "on_delete", "is_active", "notes",
        )  # fmt: skip
        widgets = {
            "repository": NameInput("repositories", repository_names),
            "filter": forms.Textarea(attrs={"rows": 3, "cols": 60, "spellcheck": "false"}),
        }
        help_texts = {
            "filter": _(
                "OData filter, for example: Responsible/Id eq $user.Id. Of the call it may ask $user.Id, $user.Login, "
                "$user.Name, $user.Email, $user.UserType, $user.IsAdmin, $company.Id, $location.Id, $role.Id and "
                "$application."
            )
        }


class RolePermissionInline(admin.TabularInline):  # type: ignore[type-arg]
    """What a role may do."""

    model = RolePermission
    form = RolePermissionForm
    extra = 1

    class Media:
        css: ClassVar = {"all": ("identity/admin.css",)}


class RowPolicyInline(admin.StackedInline):  # type: ignore[type-arg]
    """Which rows a role sees and changes."""

    model = RowPolicy
    form = RowPolicyForm
    fields = ("repository", "filter", ("on_read", "on_create", "on_update", "on_delete"), "is_active", "notes")
    extra = 0


@admin.register(RolePermission)
class RolePermissionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Permissions of all roles in one list."""

    form = RolePermissionForm
    list_display = ("role", "repository", "can_read", "can_create", "can_update", "can_delete")
    list_display_links = ("repository",)
    list_editable = ("can_read", "can_create", "can_update", "can_delete")
    list_filter = ("role",)
    search_fields = ("repository", "role__name")


@admin.register(RowPolicy)
class RowPolicyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Row policies; a filter that cannot be applied is refused at its field."""

    form = RowPolicyForm
    fields = ("role", "repository", "filter", ("on_read", "on_create", "on_update", "on_delete"), "is_active", "notes")
    list_display = ("role", "repository", "filter", "on_read", "on_create", "on_update", "on_delete", "is_active")
    list_display_links = ("repository",)
    list_filter = ("role", "is_active")
    search_fields = ("repository", "filter", "role__name")


class ReservedSeatInline(admin.TabularInline):  # type: ignore[type-arg]
    """Slots kept for users."""

    model = ReservedSeat
    raw_id_fields = _USER_FIELDS
    extra = 0


class LicenceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Features by name; those that this version does not know are kept as they are."""

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
    """Slots, features and reserved seats, with the use that is made of them."""

    form = LicenceForm
    list_display = ("__str__", "used_now")
    readonly_fields = ("used_now", "used_today", "used_lately")
    inlines = (ReservedSeatInline,)

    class Media:
        css: ClassVar = {"all": ("identity/admin.css",)}

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With what threatens the slots."""
        if request.method == "GET":
            for text in usage_warnings():
                messages.warning(request, text)
        return super().change_view(request, object_id, form_url, extra_context)

    @admin.display(description=_("In use"))
    def used_now(self, licence: Licence) -> str:
        """A gauge."""
        taken, slots = usage_now()
        said = gettext("%(taken)s of %(slots)s") % {"taken": taken, "slots": slots}
        gauge = '<span class="usage-now"><meter min="0" max="{}" high="{}" value="{}"></meter> {}</span>'
        return format_html(gauge, max(slots, 1), max(slots, 1) * NEARLY_FULL, taken, said)

    @admin.display(description=_("Most sessions at once, by hour (UTC)"))
    def used_today(self, licence: Licence) -> str:
        """The gauge's history: a day by the hour."""
        return usage_chart(usage_by_hour(utc_now()), licence_read().sessions, "H:i")

    @admin.display(description=_("Most sessions at once, by day (UTC)"))
    def used_lately(self, licence: Licence) -> str:
        """The gauge's history: a month by the day."""
        return usage_chart(usage_by_day(utc_now()), licence_read().sessions, "j M")


class OpenFilter(admin.SimpleListFilter):
    """Open sessions, unless one asks for others."""

    title = _("State")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("closed", _("Closed")), ("all", _("All"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """As usual, but what is shown without a choice is what is open."""
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
    """The time of today, or the day before it."""
    return date_format(moment, "H:i" if moment.date() == utc_now().date() else "j M H:i")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Who is connected."""

    list_display = ("user", "application", "client_address", "since", "active", "transactions", "state")
    list_filter = (OpenFilter, "application")
    list_select_related = ("user", "application")
    search_fields = ("user__login", "application__application_uri", "client_address")
    ordering = ("-opened",)
    actions = ("close_sessions",)

    class Media:
        css: ClassVar = {"all": ("identity/admin.css",)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Nobody changes a session here; what threatens the slots is said above who holds them."""
        if request.method == "GET":
            for text in usage_warnings():
                messages.warning(request, text)
        return super().changelist_view(request, {"title": gettext("Sessions"), **(extra_context or {})})

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """With the open Domain transactions of all rows of the page, by one question."""
        changelist = super().get_changelist_instance(request)
        counts = transactions_open([str(session.pk) for session in changelist.result_list if session.closed is None])
        for session in changelist.result_list:
            session.open_transactions = counts.get(str(session.pk), 0)
        return changelist

    @admin.display(description=_("Opened"), ordering="opened")
    def since(self, session: Session) -> str:
        """In short: seven columns have to fit."""
        return _short(session.opened)

    @admin.display(description=_("Last activity"), ordering="last_activity")
    def active(self, session: Session) -> str:
        """At most 30 seconds behind."""
        return _short(session.last_activity)

    @admin.display(description=_("Open transactions"))
    def transactions(self, session: Session) -> int:
        """Domain transactions that would end with it."""
        return int(getattr(session, "open_transactions", 0))

    @admin.display(description=_("State"))
    def state(self, session: Session) -> str:
        """Open, or why it was closed."""
        if session.closed is not None:
            return gettext(session.close_reason) if session.close_reason else gettext("closed")
        return gettext("open") if session.expires > utc_now() else gettext("expired")

    @admin.action(description=_("Close the chosen sessions"), permissions=["change"])
    def close_sessions(self, request: HttpRequest, chosen: QuerySet[Session]) -> None:
        """Give their slots back at once."""
        closed = sum(session_close_by_id(session.pk) for session in chosen)
        said = ngettext("Closed %(count)s session.", "Closed %(count)s sessions.", closed) % {"count": closed}
        self.message_user(request, said, messages.SUCCESS)


@admin.register(RateLimits)
class RateLimitsAdmin(SingleRowAdmin):
    """Limits are in force for the next request."""

    list_display = ("__str__", "application_per_minute", "user_per_minute", "token_per_minute")


class ReferenceTokenAddForm(forms.ModelForm):  # type: ignore[type-arg]
    """A token for a user or, without one, for the application's service."""

    user = forms.ModelChoiceField(
        User.objects.filter(user_type="InternalUser"), required=False, help_text=_("Empty: a service token.")
    )
    scope = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in API_SCOPES], widget=forms.CheckboxSelectMultiple, initial=["read"]
    )
    days = forms.IntegerField(min_value=1, max_value=365, initial=30)

    class Meta:
        model = ReferenceToken
        fields = ("name", "application", "user")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.errors:
            return data
        try:
            self.token, self.row = reference_token_issue(
                user=data["user"],
                application=data["application"],
                name=data["name"],
                scopes=data["scope"],
                lifetime=datetime.timedelta(days=data["days"]),
            )
        except ReferenceTokenRefused as refused:
            self.add_error(None, errors.reason(refused))
        return data

    def _post_clean(self) -> None:
        # The row is made by the service above, complete and valid; the form's own instance is never saved.
        if not self.errors:
            self.instance = self.row

    def save(self, commit: bool = True) -> ReferenceToken:
        return self.row

    def save_m2m(self) -> None:
        """Nothing to save."""


@admin.register(ReferenceToken)
class ReferenceTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Reference tokens; a new one is shown once."""

    form = ReferenceTokenAddForm
    list_display = ("name", "kind", "user", "application", "scope", "hint", "expires", "revoked", "last_used")
    list_filter = ("kind", "application", ("revoked", admin.EmptyFieldListFilter))
    list_select_related = ("user", "application")
    search_fields = ("name", "user__login", "hint")
    ordering = ("-created",)
    actions = ("revoke_tokens",)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ReferenceToken, form: Any, change: bool) -> None:
        """Issued while the form was checked."""

    def response_add(self, request: HttpRequest, obj: ReferenceToken, *args: Any, **kwargs: Any) -> HttpResponse:
        token = getattr(request, "reference_token", "")
        self.message_user(
            request, format_html("{} <code>{}</code>", gettext("Copy the token now; it is not shown again."), token)
        )
        return self.response_post_save_add(request, obj)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        request.reference_token = form.token  # type: ignore[attr-defined]
        return super().save_form(request, form, change)

    @admin.action(description=_("Revoke the chosen tokens"), permissions=["change"])
    def revoke_tokens(self, request: HttpRequest, chosen: QuerySet[ReferenceToken]) -> None:
        """At once, on other nodes within a second."""
        rows = list(chosen.filter(revoked=None))
        for row in rows:
            reference_token_revoke(row)
        said = ngettext("Revoked %(count)s token.", "Revoked %(count)s tokens.", len(rows)) % {"count": len(rows)}
        self.message_user(request, said, messages.SUCCESS)


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    """Issued access tokens; the tokens themselves are not kept."""

    list_display = ("user", "application", "is_service", "scope", "created", "expires")
    list_filter = ("is_service", "application")
    list_select_related = ("user", "application")
    search_fields = ("user__login", "application__application_uri", "sid")
    fields = ("user", "application", "is_service", "scope", "sid", "created", "expires")
    ordering = ("-created",)
    actions = ("revoke_tokens",)

    @admin.action(description=_("Revoke the chosen tokens and all of their families"), permissions=["change"])
    def revoke_tokens(self, request: HttpRequest, chosen: QuerySet[AccessToken]) -> None:
        """Refresh tokens of the same sign-in too; sessions are closed."""
        families = set(chosen.values_list("token_family", flat=True))
        for family in families:
            family_revoke(family)
        count = len(families)
        said = ngettext("Revoked %(count)s token family.", "Revoked %(count)s token families.", count)
        self.message_user(request, said % {"count": count}, messages.SUCCESS)


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnlyAdmin):
    """Published keys."""

    list_display = ("kid", "created", "retired")
    ordering = ("-created",)
    actions = ("rotate",)

    @admin.action(description=_("Sign with a new key from now on"), permissions=["change"])
    def rotate(self, request: HttpRequest, chosen: QuerySet[SigningKey]) -> None:
        """On the node that serves this request; old tokens stay good until they expire."""
        said = gettext("New tokens are signed with %(key)s.") % {"key": keys_rotate().kid}
        self.message_user(request, said, messages.SUCCESS)
