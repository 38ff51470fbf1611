"""Authenticates API requests: request → CallContext (spec 01, 1.5 to 1.9)."""

from __future__ import annotations

from django.http import HttpRequest

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext, Quota
from identity.credentials import REFERENCE_PREFIX, read_credential
from identity.dpop import check_possession
from identity.instance import base_url, client_address
from identity.languages import other_message_language, request_culture, request_language
from identity.permissions import assignments_for, permissions_for
from identity.preferences import COMPANY, LOCATION, ROLE, context_guid, names_context, read_prefer, read_reason
from identity.rate_limits import count_guess
from identity.sessions import session_touch
from identity.token_identity import TokenIdentity, identify

#: Audiences of access tokens (identity.oauth.jwt.AUDIENCES).
DOMAIN_API, TABLE_API = "DomainAPI", "TableAPI"


def authenticate(request: HttpRequest, *, audience: str = DOMAIN_API) -> CallContext:
    """The context of an API call; also set as `request.call_context` for the log.

    Checked in order: the token and its audience (401, 400; 403 for external users), then the licensed session (503). A
    call with a cached token makes no query, no write and no RSA operation.
    """
    identity = identify_caller(request)
    if audience not in identity.audiences:
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("it is for another service"))
    return authenticated(request, identity)


def authenticated(request: HttpRequest, identity: TokenIdentity) -> CallContext:
    """The context of an identified caller's call, in a licensed session. Raises Unavailable without a free slot."""
    address = client_address(request)
    session_id = session_touch(identity.session, address)
    context = _context(request, identity, session_id, address)
    request.call_context = context  # type: ignore[attr-defined]
    return context


def identify_caller(request: HttpRequest, token: str | None = None, *, url: str | None = None) -> TokenIdentity:
    """Identify the token, by default that in the headers, without opening a session. For profile and userinfo.

    Raises TooManyRequests for an address that guesses reference tokens; valid tokens are accepted from it.
    """
    token = token or read_credential(request.META)
    try:
        identity = identify(token)
    except errors.Unauthorized:
        if token.startswith(REFERENCE_PREFIX):
            count_guess("reference-token", client_address(request))
        raise
    if identity.jkt is not None or "HTTP_DPOP" in request.META:
        check_possession(request, token, identity.jkt, url=url)
    return identity


def require_scope_of(scopes: frozenset[str], scope: str) -> None:
    """Raises Forbidden naming the scope that the token lacks (spec 01, 1.7)."""
    if scope not in scopes:
        raise errors.Forbidden(errors.SCOPE_MISSING, scope)


def _context(request: HttpRequest, identity: TokenIdentity, session_id: str, address: str) -> CallContext:
    prefer = read_prefer(request)
    caller = identity.caller
    language = request_language(request, identity.default_language)
    assigned = assignments_for(caller.id, is_admin=caller.is_admin)
    company = location = role = None
    if names_context(request, prefer):
        company, location, role = (context_guid(request, prefer, name) for name in (COMPANY, LOCATION, ROLE))
    return CallContext(
        user=caller,
        application=identity.application_uri,
        session_id=session_id,
        scopes=identity.scopes,
        permissions=permissions_for(caller.id, is_admin=caller.is_admin),
        language=language,
        message_language=other_message_language(request, language),
        culture=request_culture(request, language),
        client_address=address,
        request_id=getattr(request, "request_id", ""),
        root_url=base_url(request),
        traceparent=getattr(request, "traceparent", ""),
        company_id=assigned.among(assigned.companies, company),
        location_id=assigned.among(assigned.locations, location),
        role_id=assigned.among(assigned.roles, role),
        top_paging=identity.top_paging,
        prefer=prefer,
        reason=read_reason(request),
        quota=Quota(identity.application_id, identity.application_limit, caller.id),
    )
