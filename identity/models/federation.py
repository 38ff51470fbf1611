"""Upstream OpenID providers at which users sign in, and their accounts there (docs/guides/administrators.md)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from foundation.fields import EncryptedTextField, utc_now
from identity.models.users import Role, User


class IdentityProvider(models.Model):
    """An OpenID provider that this instance trusts to identify users.

    code         part of the redirect URI, and the `idp` claim of tokens
    new_users    type of the user that is created for a person without an account; or none is created
    login_claim  the claim that becomes the login of a new user
    role_claim   the claim whose values map to roles (IdentityProviderRole); empty: roles are assigned here only
    """

    class NewUsers(models.TextChoices):
        """Just-in-time creation; the values are user types."""

        NONE = "", _("Refuse: an administrator makes each user")
        EXTERNAL = "ExternalCommunityUser", _("Create an external user")
        INTERNAL = "InternalUser", _("Create an internal user")

    code = models.SlugField(_("Code"), max_length=40, unique=True, help_text=_("Part of the redirect URI."))
    name = models.CharField(_("Name"), max_length=100, help_text=_("Shown on the sign-in page."))
    issuer = models.CharField(
        _("Issuer"), max_length=500, unique=True, help_text=_("Exactly as the provider's discovery document has it.")
    )
    client_id = models.CharField(_("Client id"), max_length=254)
    client_secret = EncryptedTextField(_("Client secret"), null=True, blank=True)
    scopes = models.CharField(_("Scopes"), max_length=254, default="openid profile email")
    is_active = models.BooleanField(_("Active"), default=True)
    new_users = models.CharField(
        _("People without an account"), max_length=32, choices=NewUsers.choices, default=NewUsers.NONE, blank=True
    )
    login_claim = models.CharField(_("Claim with the login"), max_length=64, default="preferred_username")
    role_claim = models.CharField(
        _("Claim with roles"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("At each sign-in the roles below follow this claim. Empty: roles are assigned here only."),
    )
    trusts_factors = models.BooleanField(
        _("Second factors there count here"),
        default=False,
        help_text=_("A sign-in whose amr has mfa meets roles and applications that ask for a second factor."),
    )
    signs_out = models.BooleanField(_("Sign out there, too"), default=True)

    objects: ClassVar[models.Manager[IdentityProvider]]

    class Meta:
        ordering = ("name",)
        verbose_name = _("identity provider")
        verbose_name_plural = _("identity providers")

    def __str__(self) -> str:
        return self.name


class IdentityProviderRole(models.Model):
    """Maps a value of the provider's role claim to a role, which users get and lose with it."""

    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="role_mappings")
    claim_value = models.CharField(_("Value of the claim"), max_length=254)
    role = models.ForeignKey(Role, verbose_name=_("Role"), on_delete=models.CASCADE)

    objects: ClassVar[models.Manager[IdentityProviderRole]]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "claim_value", "role"], name="identity_identityproviderrole_once"
            )
        ]
        verbose_name = _("role by claim")
        verbose_name_plural = _("roles by claim")

    def __str__(self) -> str:
        return f"{self.claim_value} → {self.role}"


class FederatedAccount(models.Model):
    """A user's account at a provider: `subject` is the provider's `sub`, which it never reassigns (OIDC Core, 2)."""

    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="accounts")
    subject = models.CharField(_("Subject"), max_length=255)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="federated_accounts")
    connected = models.DateTimeField(_("Connected"), default=utc_now, editable=False)
    last_login = models.DateTimeField(_("Last sign-in"), null=True, editable=False)

    objects: ClassVar[models.Manager[FederatedAccount]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["provider", "subject"], name="identity_federatedaccount_subject"),
            models.UniqueConstraint(fields=["provider", "user"], name="identity_federatedaccount_user"),
        ]
        verbose_name = _("connected account")
        verbose_name_plural = _("connected accounts")

    def __str__(self) -> str:
        return f"{self.user} at {self.provider}"
