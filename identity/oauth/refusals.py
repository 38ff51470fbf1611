"""Refusals of authorization requests: returned to the client, or shown as a page (RFC 6749, 4.1.2.1)."""

from __future__ import annotations

from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauthlib.oauth2.rfc6749 import errors

from foundation.messages import TranslatableMessage as Message


class AuthorizationRefused(OAuthToolkitError):  # type: ignore[misc]
    """An error response that is returned to the client."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(errors.CustomOAuth2Error(error, description=description))


class UnknownClient(FatalClientError):  # type: ignore[misc]
    """An error that is shown as a page, because the redirect URI is unknown."""

    def __init__(self, description: str) -> None:
        super().__init__(errors.InvalidRequestFatalError(description=description))


class UnknownRequestUri(FatalClientError):  # type: ignore[misc]
    """An invalid request_uri; shown as a page, because the redirect URI was in it (RFC 9126, 4; RFC 9101, 7)."""

    def __init__(self) -> None:
        text = Message(
            "The request_uri is unknown, expired, already used, or that of another application. Start again at the "
            "application."
        )
        super().__init__(errors.CustomOAuth2Error("invalid_request_uri", description=text))
