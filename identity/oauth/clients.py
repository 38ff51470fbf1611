"""Client authentication (RFC 6749, 2.3), and the halves of dual-mode applications (spec 01, 1.4)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_plus

from oauthlib.oauth2.rfc6749.errors import InvalidRequestError, UnauthorizedClientError

from identity.applications import secret_matches
from identity.models import TrustedApplication
from identity.models.applications import SERVICE_SUFFIX


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials of a client; `secret` "" without one."""

    client_id: str
    secret: str


def client_load(client_id: str) -> TrustedApplication | None:
    """The application with this id; an exact match wins over `<ApplicationUri>-service`, its service half."""
    if not client_id or "\x00" in client_id:
        return None
    names = [client_id]
    if client_id.endswith(SERVICE_SUFFIX):
        names.append(client_id.removesuffix(SERVICE_SUFFIX))
    found = {
        row.application_uri: row
        for row in TrustedApplication.objects.select_related("system_user").filter(application_uri__in=names)
    }
    application = next((found[name] for name in names if name in found), None)
    if application is not None:
        application.service_half = application.application_uri != client_id
    return application


def credentials_read(authorization: str, client_id: str | None, client_secret: str | None) -> ClientCredentials | None:
    """client_secret_basic or client_secret_post; None if the request names no client.

    Raises InvalidRequestError if the request uses both (RFC 6749, 2.3).
    """
    basic = _basic(authorization)
    if basic is None:
        return ClientCredentials(client_id, client_secret or "") if client_id else None
    if client_secret:
        raise InvalidRequestError(description="Use the Authorization header or client_secret, not both.")
    if client_id and client_id != basic.client_id:
        raise InvalidRequestError(description="client_id differs from the client of the Authorization header.")
    return basic


def client_authenticate(credentials: ClientCredentials | None) -> TrustedApplication | None:
    """The application if its secret is correct, or for a public one, absent. None otherwise."""
    application = client_load(credentials.client_id) if credentials else None
    if application is None or credentials is None:
        return None
    authentic = not credentials.secret if application.is_public else secret_matches(application, credentials.secret)
    return application if authentic else None


def check_grant(application: TrustedApplication, grant_type: str) -> None:
    """Check that the application may use the grant. Raises UnauthorizedClientError with the reason."""
    if not application.is_enabled:
        raise UnauthorizedClientError(description="The application is disabled.")
    if grant_type == "client_credentials":
        check_service(application)
        return
    if application.service_half:
        raise UnauthorizedClientError(
            description=f"A client id that ends in {SERVICE_SUFFIX} is for the client_credentials grant only."
        )
    if not application.is_interactive:
        raise UnauthorizedClientError(description="The application may not sign people in.")
    if grant_type == "refresh_token" and application.is_public:
        raise UnauthorizedClientError(description="Public applications may not use refresh tokens.")


def check_service(application: TrustedApplication) -> None:
    """The rules of client_credentials for service-only and dual-mode applications. Raises UnauthorizedClientError."""
    name = application.application_uri
    if not application.system_user_allowed:
        raise UnauthorizedClientError(description="The application may not run as a service (SystemUserAllowed).")
    if application.is_public:
        raise UnauthorizedClientError(description="A public application may not run as a service.")
    if application.system_user is None or not application.system_user.active:
        raise UnauthorizedClientError(description="The application has no active system user.")
    if application.service_half:
        if not application.is_interactive:
            raise UnauthorizedClientError(
                description=f"{name} is not a dual-mode application; use the client id {name} itself."
            )
        if not application.login_urls or not application.logout_urls:
            raise UnauthorizedClientError(description="A dual-mode application needs login and logout URLs.")
    elif application.is_interactive:
        raise UnauthorizedClientError(
            description=f"{name} also signs people in; its service half uses the client id {name}{SERVICE_SUFFIX}."
        )


def _basic(authorization: str) -> ClientCredentials | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, separator, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as exc:
        raise InvalidRequestError(description="The Authorization header cannot be read.") from exc
    if not separator:
        raise InvalidRequestError(description="The Authorization header cannot be read.")
    return ClientCredentials(unquote_plus(client_id), unquote_plus(secret))
