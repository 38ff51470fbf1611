"""Trusted applications (spec 01, 1.3): Systems.Security.TrustedApplications, and the toolkit's Application."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication
from oauthlib.oauth2.rfc6749.errors import MissingRedirectURIError

from foundation.fields import EncryptedTextField, EnumField, ReferenceField, utc_now
from foundation.models import AggregateRoot
from foundation.texts import comma_separated
from identity.enums import ACCESS_TOKENS, CLIENT_AUTHENTICATION, CLIENT_TYPE
from identity.models.users import User

#: Suffix of a dual-mode application's client id for the client_credentials grant (spec 01).
SERVICE_SUFFIX = "-service"


_LOOPBACK = re.compile(
    r"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?][!-~]*|)"
)
_MAX_PORT = 65535


class TrustedApplicationQuerySet(models.QuerySet["TrustedApplication"]):
    """Supports lookups by `client_id`, which the toolkit's views use."""

    def filter(self, *args: Any, **kwargs: Any) -> TrustedApplicationQuerySet:
        return super().filter(*args, **_translated(kwargs))

    def get(self, *args: Any, **kwargs: Any) -> TrustedApplication:
        return super().get(*args, **_translated(kwargs))


def _translated(lookups: dict[str, Any]) -> dict[str, Any]:
    return {
        ("application_uri" + name.removeprefix("client_id") if name.split("__")[0] == "client_id" else name): value
        for name, value in lookups.items()
    }


class TrustedApplication(AggregateRoot):  # type: ignore[django-manager-missing]  # as for User
    """A registered OAuth client. Its grants follow from its flags.

    device_flow_allowed     whether the device flow is allowed (RFC 8628)
    token_exchange_applications  URIs of applications whose users' tokens it may exchange, comma-separated (RFC 8693)
    impersonate_login_url   redirect URIs, comma-separated, matched exactly (RFC 9700, 2.1)
    impersonate_logout_url  post-logout redirect URIs, comma-separated
    application_secret_hash base64(SHA-256(secret)); the previous one is valid until previous_secret_expires_utc
    client_authentication   Secret: in the request; SecretJwt, PrivateKeyJwt: a signed assertion (OIDC Core, 9)
    encrypted_secret           the secret itself, for SecretJwt alone; valid if it matches a valid hash
    json_web_key_set        public keys for PrivateKeyJwt, as JSON (RFC 7517); json_web_key_set_url: where they are
    registration_source     manual: by an administrator; dcr: by itself (identity.oauth.registration); cimd: by the
                            metadata document at its client id (identity.oauth.client_documents)
    document_expires_utc    expiry of the metadata of that document
    top_paging              whether $top is the size of a page (spec 14, 14.2); null: settings.TOP_PAGING
    new_secret_hash         a new ApplicationSecretHash set by the API; empty once committed
    """

    application_uri = models.CharField(max_length=254, unique=True)
    name = models.CharField(max_length=254)
    client_type = EnumField(CLIENT_TYPE, default="Confidential")
    application_secret_hash = models.CharField(max_length=250, null=True, blank=True)
    new_secret_hash = models.CharField(max_length=250, null=True, blank=True)
    previous_secret_hash = models.CharField(max_length=250, null=True, blank=True)
    previous_secret_expires_utc = models.DateTimeField(null=True, blank=True)
    client_authentication = EnumField(CLIENT_AUTHENTICATION, default="Secret")
    encrypted_secret = EncryptedTextField(null=True, blank=True)
    previous_encrypted_secret = EncryptedTextField(null=True, blank=True)
    json_web_key_set = models.TextField(null=True, blank=True)
    json_web_key_set_url = models.CharField(max_length=500, null=True, blank=True)
    pushed_requests_required = models.BooleanField(default=False)
    dpop_required = models.BooleanField(default=False)
    impersonate_as_internal_user_allowed = models.BooleanField(default=False)
    impersonate_as_community_user_allowed = models.BooleanField(default=False)
    device_flow_allowed = models.BooleanField(default=False)
    impersonate_login_url = models.CharField(max_length=500, null=True, blank=True)
    impersonate_logout_url = models.CharField(max_length=500, null=True, blank=True)
    front_channel_logout_url = models.CharField(max_length=500, null=True, blank=True)
    back_channel_logout_url = models.CharField(max_length=500, null=True, blank=True)
    system_user_allowed = models.BooleanField(default=False)
    system_user = ReferenceField(User, null=True, blank=True)
    token_exchange_applications = models.TextField(null=True, blank=True)
    scope = models.TextField(null=True, blank=True)
    access_tokens = EnumField(ACCESS_TOKENS, default="None")
    is_enabled = models.BooleanField(default=True)
    rate_limit_per_minute = models.PositiveIntegerField(null=True, blank=True)
    max_sessions = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Sessions at once; a further one closes the longest idle. Empty: no limit.")
    )
    top_paging = models.BooleanField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    registration_source = models.CharField(
        max_length=10,
        default=AbstractApplication.RegistrationSource.MANUAL.value,
        editable=False,
        help_text=_(
            "manual: an administrator has entered it. dcr: it registered itself with a token. cimd: by the metadata "
            "document at its application URI; name and login URLs follow the document."
        ),
    )
    document_expires_utc = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text=_("Until when that document is used without another request to its host."),
    )
    creation_time_utc = models.DateTimeField(default=utc_now, editable=False)

    # The toolkit's modules read these from the class when they are imported.
    CLIENT_PUBLIC = AbstractApplication.CLIENT_PUBLIC
    CLIENT_CONFIDENTIAL = AbstractApplication.CLIENT_CONFIDENTIAL
    GRANT_AUTHORIZATION_CODE = AbstractApplication.GRANT_AUTHORIZATION_CODE
    GRANT_CLIENT_CREDENTIALS = AbstractApplication.GRANT_CLIENT_CREDENTIALS
    GRANT_IMPLICIT = AbstractApplication.GRANT_IMPLICIT
    GRANT_OPENID_HYBRID = AbstractApplication.GRANT_OPENID_HYBRID
    GRANT_PASSWORD = AbstractApplication.GRANT_PASSWORD
    HS256_ALGORITHM = AbstractApplication.HS256_ALGORITHM
    RegistrationSource = AbstractApplication.RegistrationSource
    #: None, so that the toolkit's resolver of metadata documents fetches nothing.
    cimd_expires_at = None

    #: Whether the request uses the client id of the service half (identity.oauth.clients.client_load).
    service_half = False

    objects: ClassVar[models.Manager[TrustedApplication]] = TrustedApplicationQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name or self.application_uri

    # --- the toolkit's interface of an application --------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """RFC 6749, 2.2; with the suffix if the request uses the service half."""
        return f"{self.application_uri}{SERVICE_SUFFIX if self.service_half else ''}"

    @property
    def is_public(self) -> bool:
        """RFC 6749, 2.1: a client that cannot keep a secret."""
        return bool(self.client_type == "Public")

    @property
    def needs_secret(self) -> bool:
        """Whether it authenticates by its secret, sent or used to sign."""
        return not self.is_public and self.client_authentication != "PrivateKeyJwt"

    @property
    def is_interactive(self) -> bool:
        """Whether users may sign in through it."""
        return bool(self.impersonate_as_internal_user_allowed or self.impersonate_as_community_user_allowed)

    @property
    def has_registered_itself(self) -> bool:
        """Whether it registered itself, so its name is unverified: it needs PKCE and always the user's consent."""
        return bool(self.registration_source != self.RegistrationSource.MANUAL)

    @property
    def has_document(self) -> bool:
        """Whether its name and redirect URIs are those of the metadata document at its client id."""
        return bool(self.registration_source == self.RegistrationSource.CIMD)

    def admits(self, user: User) -> bool:
        """Whether this type of user may sign in to it (spec 01, 1.3)."""
        if user.user_type == "InternalUser":
            return bool(self.impersonate_as_internal_user_allowed)
        return bool(self.impersonate_as_community_user_allowed) and user.user_type == "ExternalCommunityUser"

    def exchanges(self, other: TrustedApplication) -> bool:
        """Whether it may exchange tokens of the other application."""
        return other.pk != self.pk and other.application_uri in self.exchangeable

    @property
    def exchangeable(self) -> list[str]:
        return comma_separated(self.token_exchange_applications or "")

    @property
    def login_urls(self) -> list[str]:
        return comma_separated(self.impersonate_login_url or "")

    @property
    def logout_urls(self) -> list[str]:
        return comma_separated(self.impersonate_logout_url or "")

    @property
    def scopes(self) -> list[str]:
        return (self.scope or "").split()

    @property
    def default_redirect_uri(self) -> str:
        """The URI to use when a request names none: only if there is exactly one (OIDC Core, 3.1.2.1)."""
        if len(self.login_urls) != 1:
            raise MissingRedirectURIError()
        return self.login_urls[0]

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Exact, case-sensitive match (RFC 9700, 4.1.3); of loopback URIs of public clients, without the port."""
        if uri in self.login_urls:
            return True
        portless = _portless_loopback(uri) if self.is_public else None
        return portless is not None and any(_portless_loopback(known) == portless for known in self.login_urls)

    def is_usable(self, request: object) -> bool:
        """Whether the toolkit may load it. Disabled ones are loaded too, so that the error can name the cause."""
        return True


def _portless_loopback(uri: str) -> str | None:
    """An http URI of this computer, without its port; None for others (RFC 8252, 7.3).

    A native application gets its port from the operating system, so the registered one cannot be known.
    """
    match = _LOOPBACK.fullmatch(uri)
    if match is None or int(match["port"] or 0) > _MAX_PORT:
        return None
    return f"http://{match['host']}{match['rest']}"
