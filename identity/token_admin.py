"""Admin pages of tokens and signing keys."""

from __future__ import annotations

import datetime
import json
from typing import Any

import oauth2_provider.admin  # noqa: F401  (registers pages, which are unregistered below)
from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from audit.actors import Actor
from foundation import errors
from identity.admin_bases import IssuingAdmin, ReadOnlyAdmin
from identity.audit_actors import actor_of
from identity.models import (
    AccessToken,
    Grant,
    IDToken,
    ReferenceToken,
    RefreshToken,
    SigningKey,
    User,
)
from identity.oauth.issue import family_revoke
from identity.oauth.keys import keys_rotate
from identity.reference_tokens import ReferenceTokenRefused, reference_token_issue, reference_token_revoke
from identity.scopes import SERVICE_TOKEN_SCOPES

for model in (AccessToken, Grant, IDToken, RefreshToken):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class ReferenceTokenAddForm(forms.ModelForm):  # type: ignore[type-arg]
    """Issues a token for a user or, without a user, for the application's service; validation issues it."""

    #: Set for each request.
    by: Actor
    user = forms.ModelChoiceField(
        User.objects.filter(user_type="InternalUser"), required=False, help_text=_("Empty: a service token.")
    )
    scope = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SERVICE_TOKEN_SCOPES],
        widget=forms.CheckboxSelectMultiple,
        initial=["read"],
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
                by=self.by,
            )
        except ReferenceTokenRefused as refused:
            self.add_error(None, errors.reason(refused))
        return data

    def _post_clean(self) -> None:
        # reference_token_issue has created the row; the form's own instance is never saved.
        if not self.errors:
            self.instance = self.row

    def save(self, commit: bool = True) -> ReferenceToken:
        return self.row

    def save_m2m(self) -> None:
        """Nothing to save."""


@admin.register(ReferenceToken)
class ReferenceTokenAdmin(IssuingAdmin):
    """Reference tokens; a new token is shown once."""

    form = ReferenceTokenAddForm
    list_display = ("name", "kind", "user", "application", "scope", "hint", "expires", "revoked", "last_used")
    list_filter = ("kind", "application", ("revoked", admin.EmptyFieldListFilter))
    list_select_related = ("user", "application")
    search_fields = ("name", "user__login", "hint")
    ordering = ("-created",)
    actions = ("revoke_tokens",)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """The form, with the request's user as the issuer."""
        form = super().get_form(request, *args, **kwargs)
        return type(form.__name__, (form,), {"by": actor_of(request)})

    @admin.action(description=_("Revoke the chosen tokens"), permissions=["change"])
    def revoke_tokens(self, request: HttpRequest, chosen: QuerySet[ReferenceToken]) -> None:
        """Revoke the tokens; effective on other nodes within a second."""
        rows = list(chosen.filter(revoked=None))
        for row in rows:
            reference_token_revoke(row, by=actor_of(request))
        text = ngettext("Revoked %(count)s token.", "Revoked %(count)s tokens.", len(rows)) % {"count": len(rows)}
        self.message_user(request, text, messages.SUCCESS)


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    """Issued access tokens; the tokens themselves are not stored."""

    list_display = ("user", "application", "is_service", "scope", "created", "expires")
    list_filter = ("is_service", "application")
    list_select_related = ("user", "application")
    search_fields = ("user__login", "application__application_uri", "sid")
    fields = ("user", "application", "is_service", "scope", "sid", "created", "expires")
    ordering = ("-created",)
    actions = ("revoke_tokens",)

    @admin.action(description=_("Revoke the chosen tokens and all of their families"), permissions=["change"])
    def revoke_tokens(self, request: HttpRequest, chosen: QuerySet[AccessToken]) -> None:
        """Revoke the tokens and the refresh tokens of the same sign-ins, and close their sessions."""
        families = set(chosen.values_list("token_family", flat=True))
        for family in families:
            family_revoke(family, by=actor_of(request))
        count = len(families)
        text = ngettext("Revoked %(count)s token family.", "Revoked %(count)s token families.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnlyAdmin):
    """The signing keys that are published."""

    list_display = ("kid", "created", "retired")
    fields = ("kid", "public_key", "created", "retired")
    ordering = ("-created",)
    actions = ("rotate",)

    @admin.display(description=_("Public key (JWK)"))
    def public_key(self, key: SigningKey) -> SafeString:
        """As text: unfold colours JSON by inline styles, which the Content-Security-Policy refuses."""
        return format_html('<pre tabindex="0">{}</pre>', json.dumps(key.public_jwk, indent=2))

    @admin.action(description=_("Rotate the signing key"), permissions=["change"])
    def rotate(self, request: HttpRequest, chosen: QuerySet[SigningKey]) -> None:
        """Give this node a new key; tokens signed with older keys stay valid until they expire."""
        said = gettext("New tokens are signed with %(key)s in ten minutes, once applications know it.")
        said %= {"key": keys_rotate(by=actor_of(request)).kid}
        self.message_user(request, said, messages.SUCCESS)
