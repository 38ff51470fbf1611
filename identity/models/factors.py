"""Second factors of users: passkeys, authenticator apps and recovery codes. identity.factors writes them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.fields import EncryptedTextField, guid_primary_key, utc_now
from identity.models.users import User


class Passkey(models.Model):
    """A discoverable WebAuthn credential with user verification, for one host name.

    credential_id   base64url; at most 1023 bytes (WebAuthn 3, 4)
    credential      base64url of the attested credential data (WebAuthn 3, 6.5.1), which has the public key
    rp_id           the relying party id: the host name at which it was registered
    sign_count      the authenticator's signature counter; 0 for authenticators without one
    last_challenge  creation time of the challenge of its last accepted assertion, in µs since 1970
    """

    id = guid_primary_key()
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=64)
    credential_id = models.CharField(max_length=1400, unique=True, editable=False)
    credential = models.TextField(editable=False)
    rp_id = models.CharField(max_length=253, editable=False)
    transports = models.CharField(max_length=64, blank=True, default="", editable=False)
    sign_count = models.BigIntegerField(default=0, editable=False)
    last_challenge = models.BigIntegerField(default=0, editable=False)
    created = models.DateTimeField(default=utc_now, editable=False)
    last_used = models.DateTimeField(null=True, editable=False)

    objects: ClassVar[models.Manager[Passkey]]

    def __str__(self) -> str:
        return self.name


class AuthenticatorApp(models.Model):
    """The user's app for time-based one-time passwords (RFC 6238).

    secret        base32; encrypted in the database
    last_step     number of the 30 seconds whose code was accepted last; a code is valid once (RFC 6238, 5.2)
    failed_codes  wrong codes since the last accepted one
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="authenticator_app")
    secret = EncryptedTextField(editable=False)
    last_step = models.BigIntegerField(default=0, editable=False)
    failed_codes = models.PositiveIntegerField(default=0, editable=False)
    created = models.DateTimeField(default=utc_now, editable=False)
    last_used = models.DateTimeField(null=True, editable=False)

    objects: ClassVar[models.Manager[AuthenticatorApp]]

    def __str__(self) -> str:
        return str(self.user_id)


class RecoveryCode(models.Model):
    """An unused recovery code, of which only the digest is stored. A used code is deleted."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="recovery_codes")

    objects: ClassVar[models.Manager[RecoveryCode]]

    def __str__(self) -> str:
        return str(self.user_id)
