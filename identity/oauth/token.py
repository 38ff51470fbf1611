"""The token, revocation, introspection and userinfo endpoints (RFC 6749, 3.2; RFC 7009; RFC 7662; OIDC Core, 5.3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauthlib.oauth2.rfc6749.errors import OAuth2Error

from foundation import errors
from foundation.fields import utc_now
from identity import authentication, rate_limits
from identity.anonymous_forms import MAX_BYTES, is_too_long
from identity.changes import tokens_revoked
from identity.credentials import REFERENCE_PREFIX
from identity.instance import client_address
from identity.models import AccessToken, ReferenceToken, RefreshToken, TrustedApplication, User
from identity.oauth import claims, clients
from identity.oauth.responses import UnreadableForm, no_store, parameters_given, repeated
from identity.oauth.server import request_headers, server
from identity.reference_tokens import reference_token_revoke
from identity.token_identity import identify

# Parameters for oauthlib. Others would become attributes of oauthlib's request, such as `user`.
_FOR_OAUTHLIB = {
    "grant_type", "code", "redirect_uri", "code_verifier", "client_id", "client_secret", "scope", "refresh_token",
    "token", "token_type_hint",
}  # fmt: skip
_FORM = "application/x-www-form-urlencoded"
# Descriptions where oauthlib has none. One text for all causes of invalid_grant that would help an attacker.
_DESCRIPTIONS = {
    "invalid_grant": "The code, refresh token or code_verifier does not fit.",
    "invalid_request": "The request lacks a parameter or has one twice.",
    "invalid_scope": "The scope is not one that was granted.",
    "unsupported_grant_type": "grant_type must be authorization_code, client_credentials or refresh_token.",
}


@csrf_exempt
@sensitive_post_parameters()
def token(request: HttpRequest) -> HttpResponse:
    """POST grant_type and its parameters, form-encoded."""
    if problem := _form_problem(request):
        return problem
    if not _form(request).get("grant_type"):
        return _error(400, "invalid_request", "The request has no grant_type.")
    try:
        rate_limits.check_client(_client_id(request), client_address(request))
        rate_limits.check_token_request(_client_id(request))
    except errors.TooManyRequests as limited:
        return _slow_down(limited)
    return _oauth_response(request, server().create_token_response)


@csrf_exempt
@sensitive_post_parameters()
def revocation(request: HttpRequest) -> HttpResponse:
    """POST token: 200 and `{}` for a token that the client may revoke, and for an unknown one (spec 14, 14.4)."""
    if problem := _form_problem(request):
        return problem
    if limited := _too_many_failures(request):
        return limited
    raw = _form(request).get("token", "")
    if raw.startswith(REFERENCE_PREFIX):
        response = _revoke_reference(request, raw)
    else:
        response = _oauth_response(request, server().create_revocation_response)
    return _guess_counted(request, raw, response)


@csrf_exempt
@sensitive_post_parameters()
def introspection(request: HttpRequest) -> HttpResponse:
    """POST token: the token's state, for confidential clients (RFC 7662, 2.2)."""
    if problem := _form_problem(request):
        return problem
    if limited := _too_many_failures(request):
        return limited
    client = _authenticated(request)
    if client is None or client.is_public:
        return _refuse_client(request)
    raw = _form(request).get("token")
    if raw is None:
        return _error(400, "invalid_request", "The request has no token.")
    return _guess_counted(request, raw, no_store(JsonResponse(_introspect(raw, client))))


@csrf_exempt
def userinfo(request: HttpRequest) -> HttpResponse:
    """GET or POST with a user's access token that has the scope openid: in the header, or in a form (RFC 6750, 2.2)."""
    if request.method not in {"GET", "POST"}:
        return _error(405, "invalid_request", "Use GET or POST.", {"Allow": "GET, POST"})
    in_form = request.method == "POST" and request.content_type == _FORM
    if in_form and (problem := _form_problem(request)):
        return problem
    given = _form(request).get("access_token") if in_form else None
    if given and (request.META.keys() & {"HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY"}):
        return _error(400, "invalid_request", "Send the token in one place: the Authorization header or the body.")
    try:
        identity = authentication.identify_caller(request, given)
        if identity.is_service:
            raise errors.Forbidden(errors.USER_REQUIRED)
        authentication.require_scope_of(identity.scopes, "openid")
    except errors.PlatformError as refused:
        return _bearer_error(refused)
    user = User.objects.get(pk=identity.caller.id)
    return no_store(JsonResponse(claims.user_claims(user, identity.scopes)))


def _form_problem(request: HttpRequest) -> HttpResponse | None:
    """A problem of the form, independent of the grant (RFC 6749, 3.2), or None."""
    if request.method != "POST":
        return _error(405, "invalid_request", "Use POST.", {"Allow": "POST"})
    if request.content_type != _FORM:
        return _error(400, "invalid_request", f"The body must be {_FORM}.")
    if request.META.get("QUERY_STRING"):
        return _error(400, "invalid_request", "The parameters belong in the body; the URL may not have any.")
    if is_too_long(request):
        return _error(413, "invalid_request", f"The body may have {MAX_BYTES} bytes.")
    try:
        names = repeated(parameters_given(request))
    except UnreadableForm as unreadable:
        return _error(400, "invalid_request", str(unreadable))
    return _error(400, "invalid_request", f"The body has {names[0]} more than once.") if names else None


def _form(request: HttpRequest) -> dict[str, str]:
    """The parameters of a valid form; empty ones count as omitted."""
    return {name: str(value) for name, value in parameters_given(request).items()}


def _too_many_failures(request: HttpRequest) -> HttpResponse | None:
    """The refusal of a client that guesses its secret, as at the token endpoint; None for others."""
    try:
        rate_limits.check_client(_client_id(request), client_address(request))
    except errors.TooManyRequests as limited:
        return _slow_down(limited)
    return None


def _guess_counted(request: HttpRequest, raw: str, response: HttpResponse) -> HttpResponse:
    """The response to an authenticated client; its refusal if the client has tried too many unknown tokens.

    Revoked or expired tokens do not count, nor do JWTs, whose signature cannot be guessed.
    """
    if response.status_code != 200 or raw.count(".") == 2:
        return response
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    rows = ReferenceToken.objects.filter(digest=checksum), RefreshToken.objects.filter(token_checksum=checksum)
    if any(found.exists() for found in rows):
        return response
    limited = rate_limits.guess_refusal(f"token:{_client_id(request)}", client_address(request))
    return _slow_down(limited) if limited else response


def _slow_down(limited: errors.TooManyRequests) -> HttpResponse:
    return _error(429, "slow_down", limited.message, limited.headers())


def _client_id(request: HttpRequest) -> str:
    """The client's claimed id, for counting; wrong credentials are refused later."""
    try:
        credentials = clients.credentials_read(
            request.META.get("HTTP_AUTHORIZATION", ""), _form(request).get("client_id"), None
        )
    except OAuth2Error:
        return ""
    return credentials.client_id if credentials else ""


def _oauth_response(request: HttpRequest, answer_of: Callable[..., tuple[Any, str | None, int]]) -> HttpResponse:
    """oauthlib's response as a Django response."""
    body = urlencode({name: value for name, value in _form(request).items() if name in _FOR_OAUTHLIB})
    try:
        _headers, text, status = answer_of(
            request.path, http_method="POST", body=body, headers=request_headers(request)
        )
    except OAuth2Error as error:
        # Of two requests with one code or refresh token, the second fails only when it saves.
        text, status = error.json, error.status_code
    if status == 401:
        return _refuse_client(request)
    content: dict[str, Any] = json.loads(text) if text else {}
    if content.get("error") == "invalid_grant":
        limited = rate_limits.guess_refusal(f"grant:{_client_id(request)}", client_address(request))
        if limited:
            return _slow_down(limited)
    if "error" in content:
        return _error(status, content["error"], content.get("error_description") or "")
    return no_store(JsonResponse(content, status=status))


def _refuse_client(request: HttpRequest) -> HttpResponse:
    rate_limits.note_client_failure(_client_id(request), client_address(request))
    # RFC 6749, 5.2: the challenge names the scheme that the client used.
    return _error(
        401, "invalid_client", "Unknown client, or wrong client secret.", {"WWW-Authenticate": 'Basic realm="id"'}
    )


def _error(status: int, error: str, description: str, headers: Any = None) -> HttpResponse:
    content = {"error": error, "error_description": description or _DESCRIPTIONS.get(error, error)}
    return no_store(JsonResponse(content, status=status, headers=dict(headers or {})))


def _bearer_error(refused: errors.PlatformError) -> HttpResponse:
    """RFC 6750, 3.1."""
    if isinstance(refused, errors.TooManyRequests):
        return _slow_down(refused)
    error = "insufficient_scope" if refused.status == 403 else "invalid_token"
    response = _error(refused.status, error, refused.message, refused.headers())
    response.headers.setdefault("WWW-Authenticate", f'Bearer error="{error}"')
    return response


def _authenticated(request: HttpRequest) -> TrustedApplication | None:
    form = _form(request)
    try:
        credentials = clients.credentials_read(
            request.META.get("HTTP_AUTHORIZATION", ""), form.get("client_id"), form.get("client_secret")
        )
    except OAuth2Error:
        return None
    loaded = clients.client_authenticate(credentials)
    return loaded.application if loaded and loaded.application.is_enabled else None


def _revoke_reference(request: HttpRequest, raw: str) -> HttpResponse:
    client = _authenticated(request)
    if client is None:
        return _refuse_client(request)
    digest = hashlib.sha256(raw.encode()).hexdigest()
    row = ReferenceToken.objects.filter(digest=digest, application=client, revoked=None).first()
    if row is not None:
        reference_token_revoke(row)
        tokens_revoked()
    return no_store(JsonResponse({}))


def _introspect(raw: str, client: TrustedApplication) -> dict[str, Any]:
    """Active for a valid token of an enabled application and user, for the client that it was issued to.

    Only for that client (RFC 7662, 4): the API, for which access tokens are meant, checks them by itself.
    """
    try:
        found = identify(raw)
    except errors.PlatformError:
        return _introspect_refresh(raw, client)
    if found.application_uri != client.application_uri:
        return {"active": False}
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    row = AccessToken.objects.filter(token_checksum=checksum).first()
    return {
        "active": True,
        "scope": " ".join(sorted(found.scopes)),
        "client_id": found.application_uri,
        "username": found.caller.login,
        "sub": found.application_uri if found.is_service else found.caller.login,
        "token_type": "Bearer",
        "exp": int(found.expires),
        **({"iat": int(row.created.timestamp()), "sid": row.sid} if row else {}),
    }


def _introspect_refresh(raw: str, client: TrustedApplication) -> dict[str, Any]:
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    row = (
        RefreshToken.objects.select_related("user", "application")
        .filter(token_checksum=checksum, application=client, revoked=None)
        .first()
    )
    if row is None or row.expires <= utc_now() or not row.user.active:
        return {"active": False}
    return {
        "active": True,
        "scope": row.scope,
        "client_id": client.client_id,
        "username": row.user.login,
        "sub": row.user.login,
        "exp": int(row.expires.timestamp()),
    }
