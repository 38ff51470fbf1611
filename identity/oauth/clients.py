"""Client authentication (RFC 6749, 2.3; RFC 7521, 4.2), and the halves of dual-mode applications (spec 01, 1.4)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus, urlsplit

from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749.errors import InvalidClientError, InvalidRequestError, UnauthorizedClientError

from identity.applications import PRIVATE_KEY_JWT, SECRET, SECRET_JWT, secret_matches
from identity.client_jwt import InvalidClientJwt, subject_of
from identity.instance import ID_PATH
from identity.models import TrustedApplication
from identity.models.applications import SERVICE_SUFFIX
from identity.oauth.assertions import ASSERTION_TYPE, assertion_check

if TYPE_CHECKING:
    from oauthlib.common import Request

_REFUSED = "Unknown client, or wrong client secret."
_METHODS = {
    SECRET: "client_secret_basic or client_secret_post",
    SECRET_JWT: "client_secret_jwt",
    PRIVATE_KEY_JWT: "private_key_jwt",
}

#: RFC 8693, 2.1.
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
#: RFC 8628, 3.4.
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials of a client; `secret` and `assertion` are "" if not sent."""

    client_id: str
    secret: str = ""
    assertion: str = ""


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


def credentials_read(authorization: str, form: Mapping[str, str]) -> ClientCredentials | None:
    """The credentials of client_secret_basic, client_secret_post, or an assertion; None if the request names no client.

    Raises InvalidRequestError if the request uses several (RFC 6749, 2.3).
    """
    basic = _basic(authorization)
    client_id, secret = form.get("client_id"), form.get("client_secret", "")
    if "client_assertion" in form or "client_assertion_type" in form:
        if basic or secret:
            raise InvalidRequestError(description="Use client_assertion or a client secret, not both.")
        return _assertion(form)
    if basic is None:
        return ClientCredentials(client_id, secret) if client_id else None
    if secret:
        raise InvalidRequestError(description="Use the Authorization header or client_secret, not both.")
    if client_id and client_id != basic.client_id:
        raise InvalidRequestError(description="client_id differs from the client of the Authorization header.")
    return basic


def client_authenticate(credentials: ClientCredentials | None, audiences: set[str]) -> TrustedApplication:
    """The application: by its method of authentication, or a public one without any. Raises InvalidClientError.

    `audiences`: URLs of this provider, one of which must be the `aud` of an assertion.
    """
    application = client_load(credentials.client_id) if credentials else None
    if application is None or credentials is None:
        raise InvalidClientError(description=_REFUSED)
    if application.is_public:
        if credentials.secret or credentials.assertion:
            raise InvalidClientError(description=_REFUSED)
        return application
    if (application.client_authentication == SECRET) == bool(credentials.assertion):
        raise InvalidClientError(
            description=f"The application must authenticate by {_METHODS[application.client_authentication]}."
        )
    if not credentials.assertion:
        if not secret_matches(application, credentials.secret):
            raise InvalidClientError(description=_REFUSED)
        return application
    try:
        assertion_check(application, credentials.assertion, audiences)
    except InvalidClientJwt as exc:
        raise InvalidClientError(description=f"The client_assertion is refused: {exc}.") from exc
    return application


def audiences_of(request: Request) -> set[str]:
    """Valid audiences of an assertion: the issuer, the token endpoint, and the requested endpoint (RFC 9126, 2)."""
    issuer: str = oauth2_settings.oidc_issuer(request)
    return {issuer, f"{issuer}/connect/token", endpoint_url(request)}


def endpoint_url(request: Request) -> str:
    """The URL of the request, without its query."""
    issuer: str = oauth2_settings.oidc_issuer(request)
    return issuer.removesuffix(ID_PATH) + str(urlsplit(request.uri).path)


def check_grant(application: TrustedApplication, grant_type: str) -> None:
    """Check that the application may use the grant. Raises UnauthorizedClientError with the reason."""
    if not application.is_enabled:
        raise UnauthorizedClientError(description="The application is disabled.")
    if grant_type == "client_credentials":
        check_service(application)
        return
    if grant_type == TOKEN_EXCHANGE:
        if application.is_public:
            raise UnauthorizedClientError(description="A public application may not exchange tokens.")
        if not application.exchangeable:
            raise UnauthorizedClientError(
                description="The application may not exchange tokens (TokenExchangeApplications)."
            )
        return
    if application.service_half:
        raise UnauthorizedClientError(
            description=f"A client id that ends in {SERVICE_SUFFIX} is for the client_credentials grant only."
        )
    if not application.is_interactive:
        raise UnauthorizedClientError(description="The application may not sign people in.")
    if grant_type == DEVICE_CODE and not application.device_flow_allowed:
        raise UnauthorizedClientError(description="The application may not use the device flow (DeviceFlowAllowed).")
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
    if not application.system_user.may_call(as_service=True):
        raise UnauthorizedClientError(description="The system user must be an internal or a system user.")
    if application.service_half:
        if not application.login_urls or not application.logout_urls:
            raise UnauthorizedClientError(
                description=f"A dual-mode application needs login and logout URLs; any other uses the client id {name}."
            )
    elif application.is_interactive:
        raise UnauthorizedClientError(
            description=f"{name} also signs people in; its service half uses the client id {name}{SERVICE_SUFFIX}."
        )


def _assertion(form: Mapping[str, str]) -> ClientCredentials:
    """RFC 7521, 4.2: client_id may be left out, since the assertion names the client."""
    if form.get("client_assertion_type") != ASSERTION_TYPE:
        raise InvalidRequestError(description=f"client_assertion_type must be {ASSERTION_TYPE}.")
    assertion = form.get("client_assertion")
    if not assertion:
        raise InvalidRequestError(description="The request has no client_assertion.")
    subject = subject_of(assertion)
    if form.get("client_id", subject) != subject:
        raise InvalidRequestError(description="client_id differs from the client of client_assertion.")
    return ClientCredentials(subject, assertion=assertion)


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
