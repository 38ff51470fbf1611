"""Claims of tokens and userinfo about users and services (spec 01, 1.5; OIDC Core, 2 and 5.1)."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any

from identity.factors.methods import claims_of
from identity.instance import database_name
from identity.models import AccessToken, Grant, RefreshToken, User
from identity.oauth.jwt import AUDIENCES

Claims = dict[str, Any]

#: Claim of a user → the scope that requests it (OIDC Core, 5.4).
CLAIM_SCOPES = {
    "sub": "openid",
    "id": "openid",
    "name": "profile",
    "preferred_username": "profile",
    "locale": "profile",
    "user_type": "profile",
    "is_admin": "profile",
    "email": "email",
    "email_verified": "email",
}
#: The other claims of id tokens (OIDC Core, 2).
PROTOCOL_CLAIMS = [
    "iss", "aud", "iat", "exp", "jti", "sid", "auth_time", "acr", "amr", "idp", "tid", "nonce", "at_hash", "c_hash",
]  # fmt: skip

#: Administrators may enter any address, and verification of an address is not recorded.
EMAIL_VERIFIED = False


def access_token_claims(
    row: AccessToken, *, issuer: str, issued: datetime.datetime, auth_time: datetime.datetime | None
) -> Claims:
    """The claims of the access token of a row (RFC 9068, 2.2)."""
    application, user = row.application, row.user
    claims: Claims = {
        "iss": issuer,
        "aud": AUDIENCES,
        "iat": int(issued.timestamp()),
        "nbf": int(issued.timestamp()),
        "exp": int(row.expires.timestamp()),
        "jti": uuid.uuid4().hex,
        "client_id": application.application_uri,
        "scope": row.scope.split(),
        "sid": row.sid,
        **({"cnf": {"jkt": row.dpop_jkt}} if row.dpop_jkt else {}),
    }
    if row.is_service:
        system_user = application.system_user
        assert system_user is not None
        # RFC 9068, 2.2: without a resource owner, sub is the application; no user has it as login.
        return {
            **claims,
            "sub": application.application_uri,
            "client_system_user": system_user.login,
            "client_system_user_type": system_user.user_type,
            "client_system_user_id": system_user.pk,
            "client_db": database_name(),
        }
    return {
        **claims,
        **user_claims(user),
        "email": user.email,
        "email_verified": EMAIL_VERIFIED,
        "db": database_name(),
        **_auth_time(auth_time),
        **claims_of(row.authenticated_by),
    }


def user_claims(user: User) -> Claims:
    """The claims of a user that id tokens and userinfo may have."""
    return {
        "sub": user.login,
        "id": user.pk,
        "name": user.display_name(user.default_language or "en"),
        "preferred_username": user.login,
        "locale": user.default_language or "en",
        "user_type": user.user_type,
        "is_admin": user.is_admin,
        **({"email": user.email, "email_verified": EMAIL_VERIFIED} if user.email else {}),
    }


def sign_in_claims(source: Grant | RefreshToken) -> Claims:
    """The claims of an id token about the sign-in that it results from (OIDC Core, 2; Back-Channel Logout, 2.1)."""
    return {"sid": source.sid, **_auth_time(source.auth_time), **claims_of(source.authenticated_by)}


def act_claim(actors: Sequence[str]) -> Claims:
    """The claim `act` for the acting applications, newest first: each contains the earlier one (RFC 8693, 4.1)."""
    result: Claims = {}
    for actor in reversed(actors):
        result = {"act": {"sub": actor, **result}}
    return result


def _auth_time(moment: datetime.datetime | None) -> Claims:
    return {"auth_time": int(moment.timestamp())} if moment else {}
