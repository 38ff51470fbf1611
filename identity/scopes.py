"""The scopes (spec 01, 1.4) by flow."""

from __future__ import annotations

OIDC_SCOPES = ("openid", "profile", "email", "offline_access")
API_SCOPES = ("read", "update", "exec", "sec")
ALL_SCOPES = (*OIDC_SCOPES, *API_SCOPES)
#: Scopes of the protocol, which an application's Scope need not list (spec 14, 14.4).
PROTOCOL_SCOPES = ("openid", "profile", "offline_access")
#: What a service application without Scope gets (spec 14, 14.4), and requests that name no scope of the API.
DEFAULT_API_SCOPES = ("read", "update")
#: What a service needs to provision users (domain.scim). Not advertised, since clients request it only as configured.
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
