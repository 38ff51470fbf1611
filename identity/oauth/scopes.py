"""Scopes of each flow (spec 01, 1.4; spec 14, 14.4; RFC 6749, 3.3)."""

from __future__ import annotations

from oauthlib.oauth2.rfc6749.errors import InvalidScopeError

from identity.models import TrustedApplication, User
from identity.scopes import (
    LEGACY_SCOPES,
    OIDC_SCOPES,
    PROTOCOL_SCOPES,
    PROVISIONING_SCOPE,
    SERVICE_SCOPES,
    SERVICE_TOKEN_SCOPES,
)


def scopes_grant(application: TrustedApplication, requested: list[str], *, service: bool) -> list[str]:
    """The granted scopes in the requested order; by default all that fit.

    Scopes of the application that do not fit the flow are omitted: those about a user for services, and offline_access
    for public applications (OIDC Core, 11). Scopes of the protocol need no entry in Scope, but are granted only when
    requested. Raises InvalidScopeError for scopes that the application does not have, or if none is left.
    """
    allowed = application.scopes or (list(SERVICE_SCOPES) if service else [])
    known = [scope for scope in dict.fromkeys(requested) if scope not in LEGACY_SCOPES]
    beyond = [scope for scope in known if scope not in (*allowed, *PROTOCOL_SCOPES)]
    if beyond:
        raise InvalidScopeError(description=f"The application may not have: {' '.join(_printable(beyond))}")
    fitting = [scope for scope in (known or allowed) if fits(application, scope, service=service)]
    if not fitting:
        raise InvalidScopeError(description="The application has no scope that fits this grant.")
    return fitting


def fits(application: TrustedApplication, scope: str, *, service: bool) -> bool:
    """Whether the scope applies to the flow."""
    if scope in LEGACY_SCOPES:
        return False
    if service:
        return scope in SERVICE_TOKEN_SCOPES
    if scope == PROVISIONING_SCOPE:
        return False
    return scope != "offline_access" or application.may_refresh


def scopes_for_user(user: User, scopes: list[str]) -> list[str]:
    """External users may only authenticate (spec 00, "External user")."""
    if user.user_type == "InternalUser":
        return scopes
    return [scope for scope in scopes if scope in OIDC_SCOPES and scope != "offline_access"]


def _printable(scopes: list[str]) -> list[str]:
    """The scopes as text with the characters of error_description: %x20-21 / %x23-5B / %x5D-7E (RFC 6749, 5.2)."""
    return ["".join(c for c in scope[:40] if 0x20 <= ord(c) <= 0x7E and c not in '"\\') for scope in scopes[:5]]
