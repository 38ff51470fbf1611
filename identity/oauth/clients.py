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
    """The credentials of a client. `secret` "" without one; `by_basic` determines the challenge of a refusal."""

    client_id: str
    secret: str
    by_basic: bool = False


@dataclass(frozen=True, slots=True)
class LoadedClient:
    """An application, and whether it was addressed as the service half of a dual-mode one."""

    application: TrustedApplication
    service_half: bool


def client_load(client_id: str) -> LoadedClient | None:
    """The application with this id; an exact match wins over `<ApplicationUri>-service`."""
    if not client_id or "\x00" in client_id:
        return None
    names = [client_id]
    if client_id.endswith(SERVICE_SUFFIX):
        names.append(client_id.removesuffix(SERVICE_SUFFIX))
    found = {
        row.application_uri: row
        for row in TrustedApplication.objects.select_related("system_user").filter(application_uri__in=names)
    }
    for name in names:
        if name in found:
            return LoadedClient(found[name], service_half=name != client_id)
    return None


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


def client_authenticate(credentials: ClientCredentials | None) -> LoadedClient | None:
    """The client if its secret is correct, or for a public one, absent. None otherwise."""
    loaded = client_load(credentials.client_id) if credentials else None
    if loaded is None or credentials is None:
        return None
    if loaded.application.is_public:
        return loaded if not credentials.secret else None
    return loaded if secret_matches(loaded.application, credentials.secret) else None


def check_grant(application: TrustedApplication, grant_type: str, *, service_half: bool) -> None:
    """Check that the application may use the grant. Raises UnauthorizedClientError with the reason."""
    if not application.is_enabled:
        raise UnauthorizedClientError(description="The application is disabled.")
    if grant_type == "client_credentials":
        check_service(application, service_half=service_half)
        return
    if service_half:
        raise UnauthorizedClientError(
            description=f"A client id that ends in {SERVICE_SUFFIX} is for the client_credentials grant only."
        )
    if not application.is_interactive:
        raise UnauthorizedClientError(description="The application may not sign people in.")
    if grant_type == "refresh_token" and application.is_public:
        raise UnauthorizedClientError(description="Public applications may not use refresh tokens.")


def check_service(application: TrustedApplication, *, service_half: bool) -> None:
    """The rules of client_credentials for service-only and dual-mode applications. Raises UnauthorizedClientError."""
    name = application.application_uri
    if not application.system_user_allowed:
        raise UnauthorizedClientError(description="The application may not run as a service (SystemUserAllowed).")
    if application.is_public:
        raise UnauthorizedClientError(description="A public application may not run as a service.")
    if application.system_user is None or not application.system_user.active:
        raise UnauthorizedClientError(description="The application has no active system user.")
    if service_half:
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
    return ClientCredentials(unquote_plus(client_id), unquote_plus(secret), by_basic=True)
