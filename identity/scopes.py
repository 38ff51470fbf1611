"""The scopes (spec 01, 1.4) and which of them fit which flow."""

from __future__ import annotations

OIDC_SCOPES = ("openid", "profile", "email", "offline_access")
API_SCOPES = ("read", "update", "exec", "sec")
ALL_SCOPES = (*OIDC_SCOPES, *API_SCOPES)
LEGACY_SCOPES = ("DomainApi",)  # accepted and ignored: older clients always ask for it

# What people are asked to consent to; `sec` gives nothing here (docs/decisions.md).
DESCRIPTIONS = {
    "openid": "Who you are",
    "profile": "Your name and language",
    "email": "Your e-mail address",
    "offline_access": "Access while you are away",
    "read": "Read data",
    "update": "Change data",
    "exec": "Run scripts",
}
