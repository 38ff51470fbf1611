"""Scopes of each flow (spec 01, 1.4; spec 14, 14.4; RFC 6749, 3.3)."""

from __future__ import annotations

from oauthlib.oauth2.rfc6749.errors import InvalidScopeError

from identity.models import TrustedApplication, User
from identity.scopes import (
    API_SCOPES,
    DEFAULT_API_SCOPES,
    LEGACY_SCOPES,
    OIDC_SCOPES,
    PROTOCOL_SCOPES,
    PROVISIONING_SCOPE,
    SERVICE_TOKEN_SCOPES,
)


def scopes_allowed(application: TrustedApplication, *, service: bool) -> frozenset[str]:
    """The scopes that tokens of the application may have."""
    return frozenset((*_own(application, service), *PROTOCOL_SCOPES))


def scopes_grant(
    application: TrustedApplication, requested: list[str], *, service: bool, refreshable: bool = True
) -> list[str]:
    """The granted scopes in the requested order; by default all that fit.

    Scopes of the application that do not fit the flow are omitted: those about a user for services, and offline_access
    without refresh tokens (OIDC Core, 11). Scopes of the protocol need no entry in Scope, but are granted only when
    requested. A request without a scope of the API gets the application's read and update, too: the owner's document
    (4.2) lists only those of the protocol, and an access token gives access (1). A service sends DomainApi for it.
    Raises InvalidScopeError for scopes that the application does not have, or if none is left.
    """
    known = [scope for scope in dict.fromkeys(requested) if scope not in LEGACY_SCOPES]
    allowed = scopes_allowed(application, service=service)
    beyond = [scope for scope in known if scope not in allowed]
    if beyond:
        raise InvalidScopeError(description=f"The application may not have: {' '.join(_printable(beyond))}")
    own = _own(application, service)
    if known and not set(known) & set(API_SCOPES) and (not service or set(requested) & set(LEGACY_SCOPES)):
        known += [scope for scope in DEFAULT_API_SCOPES if scope in own]
    fitting = [
        scope
        for scope in (known or own)
        if applies_to_flow(application, scope, service=service, refreshable=refreshable)
    ]
    if not fitting:
        raise InvalidScopeError(description="The application has no scope that fits this grant.")
    return fitting


def scopes_narrow(requested: list[str], granted: list[str]) -> list[str]:
    """The requested scopes without the ignored ones; without any, the granted ones. The caller checks them."""
    return [scope for scope in dict.fromkeys(requested) if scope not in LEGACY_SCOPES] or granted


def scopes_refresh(requested: list[str], granted: list[str]) -> list[str]:
    """As `scopes_narrow`, for a refresh. One that repeats an authorization request without a scope of the API keeps the
    read and update that `scopes_grant` added there.
    """
    known = scopes_narrow(requested, granted)
    if set(known) & set(API_SCOPES):
        return known
    return [*known, *(scope for scope in DEFAULT_API_SCOPES if scope in granted)]


def applies_to_flow(application: TrustedApplication, scope: str, *, service: bool, refreshable: bool) -> bool:
    """Whether the scope applies to the flow; `refreshable`: whether the flow has refresh tokens."""
    if scope in LEGACY_SCOPES:
        return False
    if service:
        return scope in SERVICE_TOKEN_SCOPES
    if scope == PROVISIONING_SCOPE:
        return False
    return scope != "offline_access" or (refreshable and not application.is_public)


def _own(application: TrustedApplication, service: bool) -> list[str]:
    return application.scopes or (list(DEFAULT_API_SCOPES) if service else [])


def scopes_for_user(user: User, scopes: list[str]) -> list[str]:
    """External users may only authenticate (spec 00, "External user")."""
    if user.user_type == "InternalUser":
        return scopes
    return [scope for scope in scopes if scope in OIDC_SCOPES and scope != "offline_access"]


def _printable(scopes: list[str]) -> list[str]:
    """The scopes as text with the characters of error_description: %x20-21 / %x23-5B / %x5D-7E (RFC 6749, 5.2)."""
    return ["".join(c for c in scope[:40] if 0x20 <= ord(c) <= 0x7E and c not in '"\\') for scope in scopes[:5]]
