"""Admin pages of upstream providers and of the accounts that users have there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from foundation import errors
from foundation.messages import reason_of
from identity.admin_bases import PageAdmin, ReadOnlyAdmin, TabularInline
from identity.federation.provider import FederationFailed, documents, metadata
from identity.instance import link_base_url
from identity.models import FederatedAccount, IdentityProvider, IdentityProviderRole
from identity.stored_secrets import StoredSecretForm, secret_field


class IdentityProviderForm(StoredSecretForm):
    """A provider."""

    secret = "client_secret"  # noqa: S105  the name of the field
    sent_to = ("issuer",)
    client_secret = secret_field(_("Client secret"), _("Stored encrypted. Without one the client is public."))

    class Meta:
        model = IdentityProvider
        fields = (
            "name", "code", "issuer", "client_id", "client_secret", "scopes", "is_active", "new_users", "login_claim",
            "role_claim", "trusts_factors", "signs_out",
        )  # fmt: skip

    def clean_issuer(self) -> str:
        """An https URL without query (Discovery, 4.1); http for this machine."""
        issuer: str = self.cleaned_data["issuer"]
        parts = urlsplit(issuer)
        schemes = ["https", *(["http"] if parts.hostname in ("localhost", "127.0.0.1", "::1") else [])]
        if not parts.hostname or parts.query or parts.fragment or parts.scheme not in schemes:
            raise ValidationError(_("An issuer is an https URL without query and fragment."))
        return issuer

    def clean_scopes(self) -> str:
        scopes = self.cleaned_data["scopes"].split()
        if "openid" not in scopes:
            raise ValidationError(_("The scope openid is needed."))
        return " ".join(scopes)


class IdentityProviderRoleInline(TabularInline[Any, Any]):
    """Roles by claim."""

    model = IdentityProviderRole
    extra = 1


@admin.register(IdentityProvider)
class IdentityProviderAdmin(PageAdmin):
    """Providers at which users sign in."""

    form = IdentityProviderForm
    list_display = ("name", "issuer", "is_active", "new_users")
    readonly_fields = ("redirect_uri",)
    fieldsets = (
        (None, {"fields": ("name", "code", "is_active")}),
        (
            _("At the provider"),
            {"fields": ("redirect_uri", "issuer", "client_id", "client_secret", "scopes", "signs_out")},
        ),
        (_("Users"), {"fields": ("new_users", "login_claim", "role_claim", "trusts_factors")}),
    )
    inlines = (IdentityProviderRoleInline,)
    actions = ("check_providers",)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The provider, with the address of the instance for `redirect_uri`."""
        result = super().get_object(request, object_id, from_field)
        if result is not None:
            result.instance_url = link_base_url(request)
        return result

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """The code of a stored provider is in its redirect URI, and in tokens."""
        return (*self.readonly_fields, "code") if obj else self.readonly_fields

    @admin.display(description=_("Redirect URI"))
    def redirect_uri(self, provider: IdentityProvider) -> str:
        """The redirect URI to register at the provider."""
        base = getattr(provider, "instance_url", None)
        if base is None:
            return gettext("Shown once the provider is saved.")
        path = reverse("identity:federation_callback", args=[provider.code])
        return format_html("<code>{}</code>", base + path)

    def save_model(self, request: HttpRequest, obj: IdentityProvider, form: Any, change: bool) -> None:
        """Save, and show whether the provider can be reached."""
        super().save_model(request, obj, form, change)
        documents.clear()
        self._check(request, obj)

    @admin.action(description=_("Check the chosen providers"), permissions=["change"])
    def check_providers(self, request: HttpRequest, chosen: QuerySet[IdentityProvider]) -> None:
        """Load their discovery documents."""
        documents.clear()
        for provider in chosen:
            self._check(request, provider)

    def _check(self, request: HttpRequest, provider: IdentityProvider) -> None:
        try:
            metadata(provider)
        except FederationFailed as failed:
            # Administrators see the cause with its network addresses.
            cause = failed.__cause__ if isinstance(failed.__cause__, Exception) else failed
            problem = errors.reason(cause) if isinstance(cause, errors.Refused) else reason_of(cause)
            text = gettext("%(provider)s cannot be used yet: %(problem)s")
            self.message_user(request, text % {"provider": provider, "problem": problem}, messages.WARNING)
        else:
            self.message_user(request, gettext("%(provider)s answers.") % {"provider": provider}, messages.SUCCESS)


@admin.register(FederatedAccount)
class FederatedAccountAdmin(ReadOnlyAdmin):
    """Accounts that users have connected; deleting one disconnects it."""

    list_display = ("user", "provider", "subject", "connected", "last_login")
    list_filter = ("provider",)
    list_select_related = ("user", "provider")
    search_fields = ("user__login", "subject")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return PageAdmin.has_delete_permission(self, request, obj)
