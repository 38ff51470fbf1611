"""Token models that replace the toolkit's, and reference tokens (spec 01, 1.4 and 1.5).

`token_family` identifies the tokens that result from one authorization code or one client_credentials request; `sid` is
the session of the sign-in (OIDC Back-Channel Logout, 2.1) and the key of the licensed session. `authenticated_by` says
how the user signed in: the acr, then the amr values (identity.factors.methods).
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractDeviceGrant,
    AbstractGrant,
    AbstractIDToken,
    AbstractRefreshToken,
)

from foundation.fields import guid_primary_key, utc_now
from identity.models.applications import TrustedApplication
from identity.models.users import User


class Grant(AbstractGrant):  # type: ignore[misc]
    """An authorization code. A used one is kept until it expires, so that its reuse is detected (RFC 6749, 4.1.2)."""

    sid = models.CharField(max_length=64, blank=True, default="", db_index=True)
    token_family = models.UUIDField(null=True)
    auth_time = models.DateTimeField(null=True)
    authenticated_by = models.CharField(max_length=255, blank=True, default="")
    used = models.DateTimeField(null=True)
    dpop_jkt = models.CharField(max_length=43, blank=True, default="")

    objects: ClassVar[models.Manager[Grant]] = models.Manager()


class DeviceGrant(AbstractDeviceGrant):  # type: ignore[misc]
    """A device's request that a user allows in a browser (RFC 8628); both codes are stored as digests.

    The data of the sign-in is that of the user who allowed it.
    """

    application = models.ForeignKey(TrustedApplication, on_delete=models.CASCADE)
    sid = models.CharField(max_length=64, blank=True, default="")
    token_family = models.UUIDField(null=True)
    auth_time = models.DateTimeField(null=True)
    authenticated_by = models.CharField(max_length=255, blank=True, default="")
    # The toolkit writes the time at each save; here it is that of the last poll.
    last_checked = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[DeviceGrant]] = models.Manager()

    class Meta(AbstractDeviceGrant.Meta):  # type: ignore[misc]
        indexes = [
            models.Index(fields=["user_code"], name="identity_devicegrant_user_code"),
            models.Index(fields=["expires"], name="identity_devicegrant_expires"),
        ]


class AccessToken(AbstractAccessToken):  # type: ignore[misc]
    """An issued access token; only the checksum of the JWT is stored. A deleted row is a revoked token.

    subject_token  the token that was exchanged for it (RFC 8693); no constraint, since that row may be deleted at any
                   time, which revokes this one
    """

    sid = models.CharField(max_length=64, blank=True, default="", db_index=True)
    token_family = models.UUIDField(null=True, db_index=True)
    is_service = models.BooleanField(default=False)
    subject_token = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    authenticated_by = models.CharField(max_length=255, blank=True, default="")
    dpop_jkt = models.CharField(max_length=43, blank=True, default="")

    objects: ClassVar[models.Manager[AccessToken]] = models.Manager()

    class Meta(AbstractAccessToken.Meta):  # type: ignore[misc]
        indexes = [models.Index(fields=["expires"], name="identity_accesstoken_expires")]


class RefreshToken(AbstractRefreshToken):  # type: ignore[misc]
    """A refresh token with the data for its successors, since its access token may have been deleted.

    is_withdrawn  revoked unused: its response was lost, and the repeated request got another (identity.oauth.refresh)
    """

    sid = models.CharField(max_length=64, blank=True, default="", db_index=True)
    scope = models.TextField(blank=True, default="")
    auth_time = models.DateTimeField(null=True)
    authenticated_by = models.CharField(max_length=255, blank=True, default="")
    expires = models.DateTimeField()
    is_withdrawn = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[RefreshToken]] = models.Manager()

    class Meta(AbstractRefreshToken.Meta):  # type: ignore[misc]
        pass


class IDToken(AbstractIDToken):  # type: ignore[misc]
    """Required by the toolkit; id tokens are verified by signature and never stored."""

    objects: ClassVar[models.Manager[IDToken]] = models.Manager()

    class Meta(AbstractIDToken.Meta):  # type: ignore[misc]
        pass


class ReferenceToken(models.Model):
    """A personal (PAT) or service (SAT) token of the form enrt_<64 hex>; only its digest is stored."""

    PERSONAL = "PAT"
    SERVICE = "SAT"

    id = guid_primary_key()
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=8, editable=False, help_text=_("The last characters of the token."))
    name = models.CharField(max_length=254)
    kind = models.CharField(max_length=3, choices=[(PERSONAL, "Personal"), (SERVICE, "Service")], default=PERSONAL)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="reference_tokens")
    application = models.ForeignKey(TrustedApplication, on_delete=models.CASCADE, related_name="reference_tokens")
    scope = models.TextField()
    created = models.DateTimeField(default=utc_now, editable=False)
    expires = models.DateTimeField()
    revoked = models.DateTimeField(null=True, editable=False)
    last_used = models.DateTimeField(null=True, editable=False)

    objects: ClassVar[models.Manager[ReferenceToken]]

    def __str__(self) -> str:
        return f"{self.name} (…{self.hint})"


class PushedRequest(models.Model):
    """A pushed authorization request (RFC 9126), by the digest of its request_uri, or of its handle once opened."""

    digest = models.CharField(max_length=64, primary_key=True)
    application = models.ForeignKey(TrustedApplication, on_delete=models.CASCADE, related_name="+")
    parameters = models.JSONField()
    expires = models.DateTimeField(db_index=True)
    is_open = models.BooleanField(default=False, help_text=_("A browser has used the request_uri."))

    objects: ClassVar[models.Manager[PushedRequest]]

    def __str__(self) -> str:
        return self.digest


class UsedValue(models.Model):
    """Digest of a value that may be used once (identity.single_use); after `expires` the value is invalid anyway."""

    digest = models.CharField(max_length=64, primary_key=True)
    expires = models.DateTimeField(db_index=True)

    objects: ClassVar[models.Manager[UsedValue]]

    def __str__(self) -> str:
        return self.digest


class SigningKey(models.Model):
    """The public half of a key that signs tokens; the private half is a file of its node."""

    kid = models.CharField(max_length=64, primary_key=True)
    public_jwk = models.JSONField()
    created = models.DateTimeField(default=utc_now)
    retired = models.DateTimeField(null=True, help_text=_("Published until no live token can use it any more."))

    objects: ClassVar[models.Manager[SigningKey]]

    def __str__(self) -> str:
        return self.kid
