"""The scopes (spec 01, 1.4) by flow."""

from __future__ import annotations

OIDC_SCOPES = ("openid", "profile", "email", "offline_access")
API_SCOPES = ("read", "update", "exec", "sec")
ALL_SCOPES = (*OIDC_SCOPES, *API_SCOPES)
#: Scopes of the protocol, which an application's Scope need not list (spec 14, 14.4).
PROTOCOL_SCOPES = ("openid", "profile", "offline_access")
#: Scopes of a service application without Scope (spec 14, 14.4).
SERVICE_SCOPES = ("read", "update")
#: Scope for provisioning users (domain.scim). Not advertised: administrators assign it explicitly.
PROVISIONING_SCOPE = "scim"
SERVICE_TOKEN_SCOPES = (*API_SCOPES, PROVISIONING_SCOPE)
KNOWN_SCOPES = (*ALL_SCOPES, PROVISIONING_SCOPE)
LEGACY_SCOPES = ("DomainApi",)  # accepted and ignored: older clients always request it

# Scopes that need consent; `sec` grants nothing here (docs/decisions.md).
DESCRIPTIONS = {
    "openid": "Who you are",
    "profile": "Your name and language",
    "email": "Your e-mail address",
    "offline_access": "Access while you are away",
    "read": "Read data",
    "update": "Change data",
    "exec": "Run scripts",
}
