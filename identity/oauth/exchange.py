"""Token exchange (RFC 8693), only for delegation: a service acts for the user who called it.

The new token's row refers to the subject token's row. Both have one session, and identity.token_identity accepts the
new token only while the subject token and the delegation are valid.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from typing import TYPE_CHECKING, Any, Final

from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidRequestError, InvalidScopeError, OAuth2Error
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from audit.actors import Actor
from foundation import errors
from foundation.fields import utc_now
from identity.credentials import REFERENCE_PREFIX
from identity.factors.policy import is_enough
from identity.instance import ID_PATH
from identity.models import AccessToken, TrustedApplication
from identity.oauth import claims, issue, jwt
from identity.oauth.scopes import scopes_narrow
from identity.token_identity import TokenIdentity, identify

if TYPE_CHECKING:
    from oauthlib.common import Request

#: RFC 8693, 3.
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
#: Maximum length of the chain of acting applications; each use of the token checks all of them.
MAX_ACTORS: Final = 3
_INVALID = "it is no valid access token of an internal user"


class ExchangeGrantHandler(GrantTypeBase):  # type: ignore[misc]
    """The grant urn:ietf:params:oauth:grant-type:token-exchange."""

    def create_token_response(self, request: Request, token_handler: Any) -> tuple[dict[str, str], str, int]:
        headers: dict[str, str] = self._get_default_headers()
        try:
            self.validate_client_authentication(request)
            self.validate_grant_type(request)
            issuer = oauth2_settings.oidc_issuer(request)
            token = exchange(request.client, request.decoded_body, issuer=issuer, dpop_jkt=request.dpop_jkt)
        except OAuth2Error as refused:
            return {**headers, **refused.headers}, refused.json, refused.status_code
        return headers, json.dumps(token), 200


def exchange(actor: TrustedApplication, form: list[tuple[str, str]], *, issuer: str, dpop_jkt: str) -> dict[str, Any]:
    """The response with the actor's own token of the subject token's user (RFC 8693, 2.2.1).

    `dpop_jkt`: the key that the actor proves to hold, to which the token is bound; "" for none.
    Raises InvalidRequestError, InvalidScopeError, or CustomOAuth2Error with invalid_target (2.2.2).
    """
    given = dict(form)
    _check_parameters(given)
    _check_target(form, issuer)
    raw = given["subject_token"]
    found, subject = _subject(raw, actor)
    audiences = _audiences(form, found)
    if len(found.actors) >= MAX_ACTORS:
        raise InvalidRequestError(description=f"At most {MAX_ACTORS} applications may act in a row for one sign-in.")
    left = math.floor((subject.expires - utc_now()).total_seconds())
    if left < 1:
        raise _refused("it has expired")
    row = AccessToken(
        user=subject.user,
        application=actor,
        scope=" ".join(_scopes(given.get("scope", ""), subject, actor)),
        sid=subject.sid,
        # A separate family, so that revoking the actor's token does not revoke the subject token.
        token_family=uuid.uuid4(),
        authenticated_by=subject.authenticated_by,
        dpop_jkt=dpop_jkt,
        subject_token=subject,
    )
    lifetime = min(left, oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS)
    acting = claims.act_claim((actor.application_uri, *found.actors))
    carried = {**_auth_time(raw), **acting, "aud": audiences}
    token = issue.access_token_sign(row, issuer=issuer, lifetime_seconds=lifetime, carried=carried)
    row.save(force_insert=True)
    issue.token_issued(row, by=Actor(row.user.login, application=actor.application_uri), grant="token-exchange")
    return {
        "access_token": token,
        "issued_token_type": ACCESS_TOKEN,
        "token_type": "DPoP" if dpop_jkt else "Bearer",
        "expires_in": lifetime,
        "scope": row.scope,
    }


def _check_parameters(given: dict[str, str]) -> None:
    """Check the parameters (RFC 8693, 2.1)."""
    for name in ("subject_token", "subject_token_type"):
        if name not in given:
            raise InvalidRequestError(description=f"The request has no {name}.")
    for name in ("subject_token_type", "requested_token_type"):
        if given.get(name, ACCESS_TOKEN) != ACCESS_TOKEN:
            raise InvalidRequestError(description=f"{name} must be {ACCESS_TOKEN}.")
    if "actor_token" in given or "actor_token_type" in given:
        raise InvalidRequestError(description="The actor is the authenticated client; leave actor_token out.")


def _check_target(form: list[tuple[str, str]], issuer: str) -> None:
    """Refuse targets other than this instance; `resource` may be repeated (RFC 8707, 2)."""
    root = issuer.removesuffix(ID_PATH)
    for name, value in form:
        if name == "audience" and value not in jwt.AUDIENCES:
            raise CustomOAuth2Error("invalid_target", description=f"audience must be {' or '.join(jwt.AUDIENCES)}.")
        if name == "resource" and not f"{value}/".startswith(f"{root}/"):
            raise CustomOAuth2Error("invalid_target", description="resource must be an address of this instance.")


def _audiences(form: list[tuple[str, str]], subject: TokenIdentity) -> list[str]:
    """The requested audiences, by default those of the subject token, which no exchange extends."""
    chosen = [value for name, value in form if name == "audience"] or list(subject.audiences)
    if not set(chosen) <= set(subject.audiences):
        raise CustomOAuth2Error(
            "invalid_target", description=f"The subject_token is for: {' '.join(subject.audiences)}."
        )
    return list(dict.fromkeys(chosen))


def _subject(raw: str, actor: TrustedApplication) -> tuple[TokenIdentity, AccessToken]:
    """The valid access token of a user that the actor may exchange."""
    # Reference tokens are refused before a lookup, so that they cannot be guessed here.
    if raw.startswith(REFERENCE_PREFIX):
        raise _refused("reference tokens cannot be exchanged")
    try:
        found = identify(raw)
    except errors.PlatformError as exc:
        raise _refused(_INVALID) from exc
    if found.is_service:
        raise _refused("it is a service's own")
    if found.jkt:
        raise _refused("it is bound to a key of its client")  # RFC 9449: the actor has no proof of it
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    row = AccessToken.objects.select_related("user", "application").filter(token_checksum=checksum).first()
    if row is None:
        raise _refused(_INVALID)
    if not actor.exchanges(row.application):
        raise _refused("the application may not exchange tokens of its client (TokenExchangeApplications)")
    if not is_enough(str(row.user_id), row.authenticated_by.split()[1:]):
        raise _refused("a role of the user requires another factor")
    return found, row


def _scopes(requested: str, subject: AccessToken, actor: TrustedApplication) -> list[str]:
    """The requested scopes, by default those of both the subject token and the actor; never offline_access."""
    common = [scope for scope in subject.scope.split() if scope in actor.scopes and scope != "offline_access"]
    chosen = scopes_narrow(requested.split(), common)
    if not chosen or not set(chosen) <= set(common):
        raise InvalidScopeError(
            description=f"The subject_token and the application have in common: {' '.join(common) or 'no scope'}."
        )
    return chosen


def _auth_time(raw: str) -> claims.Claims:
    """The claim `auth_time` of the subject token. Raises InvalidRequestError."""
    try:
        verified = jwt.verify_access_token(raw)
    except jwt.InvalidToken as exc:
        raise _refused(_INVALID) from exc
    return {"auth_time": verified["auth_time"]} if "auth_time" in verified else {}


def _refused(reason: str) -> InvalidRequestError:
    """RFC 8693, 2.2.2: invalid_request, not invalid_grant."""
    return InvalidRequestError(description=f"The subject_token is refused: {reason}.")
