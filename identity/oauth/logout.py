"""Sign-out: RP-initiated, front-channel and back-channel logout of OpenID Connect.

A sign-out ends the browser's sign-in, closes the licensed sessions of all its applications, and revokes their access
tokens. Refresh tokens stay: they were granted for offline_access (Back-Channel Logout, 2.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import logout as django_logout
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import translation
from django.utils.crypto import salted_hmac
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from identity import instance
from identity.changes import tokens_revoked
from identity.languages import ui_language
from identity.models import AccessToken, TrustedApplication
from identity.oauth import backchannel, jwt
from identity.oauth.clients import client_load
from identity.oauth.responses import (
    UnreadableForm,
    error_page,
    no_store,
    parameters_given,
    redirect_to,
    repeated,
    with_parameters,
)
from identity.oauth.sign_in import applications_of, sign_in_get
from identity.sessions import session_close

_CONFIRM_SALT = "identity.endsession"
_CONFIRM_SECONDS = 600


class LogoutRefused(Exception):
    """A request that cannot be served; shown as a page, since it is not trusted."""


@dataclass(frozen=True, slots=True)
class LogoutRequest:
    """A validated request (RP-Initiated Logout, 2). `hint` has the claims of id_token_hint, {} without one."""

    application: TrustedApplication | None
    hint: dict[str, Any]
    redirect_uri: str | None
    state: str | None


@csrf_exempt
@require_http_methods(["GET", "POST"])
def end_session(request: HttpRequest) -> HttpResponse:
    """id_token_hint, client_id, post_logout_redirect_uri, state, ui_locales; from the query or the body."""
    try:
        parameters = parameters_given(request)
    except UnreadableForm as unreadable:
        return error_page(request, error="invalid_request", description=str(unreadable))
    with translation.override(ui_language(parameters.get("ui_locales", ""))):
        return _serve(request, parameters)


def _serve(request: HttpRequest, parameters: QueryDict) -> HttpResponse:
    try:
        logout = load_request(parameters)
    except LogoutRefused as refused:
        return error_page(request, error="invalid_request", description=reason_of(refused))
    sign_in = sign_in_get(request)
    if sign_in is None:
        # Another browser, or a server: the hint identifies the session.
        if sid := logout.hint.get("sid"):
            _close([str(sid)])
        return _signed_out(request, logout, [])
    if logout.hint.get("sub") != sign_in.user.login and not _confirmed(request):
        return _confirmation_page(request, logout, parameters)
    return _signed_out(request, logout, sign_out(request))


def load_request(parameters: QueryDict) -> LogoutRequest:
    """Validate the request. Raises LogoutRefused."""
    if names := repeated(parameters):
        raise LogoutRefused(Message("The request has {0} more than once.", names[0]))
    hint: dict[str, Any] = {}
    if raw := parameters.get("id_token_hint"):
        try:
            hint = dict(jwt.verify_id_token_hint(raw))
        except jwt.InvalidToken as exc:
            raise LogoutRefused(Message("The id_token_hint is not an id token of this provider.")) from exc
    client_id = parameters.get("client_id") or hint.get("aud")
    if hint and client_id != hint.get("aud"):
        raise LogoutRefused(Message("The client_id is not the one that the id_token_hint was issued to."))
    application = client_load(str(client_id)) if client_id else None
    if client_id and application is None:
        raise LogoutRefused(Message("The client_id is not that of a trusted application."))
    redirect_uri = parameters.get("post_logout_redirect_uri") or None
    if redirect_uri and (application is None or redirect_uri not in application.logout_urls):
        raise LogoutRefused(Message("The post_logout_redirect_uri is not one of the application's logout URLs."))
    return LogoutRequest(application, hint, redirect_uri, parameters.get("state"))


def sign_out(request: HttpRequest) -> list[str]:
    """End the browser's sign-in everywhere; returns the front-channel URLs for its page."""
    sign_in = sign_in_get(request)
    if sign_in is None:
        return []
    applications = applications_of(request)
    issuer = instance.issuer(request)
    sids = {application: sign_in.sid(str(application.pk)) for application in applications}
    _close(sids.values())
    for application, sid in sids.items():
        if application.back_channel_logout_url:
            backchannel.enqueue(application, issuer=issuer, subject=sign_in.user.login, sid=sid)
    django_logout(request)
    return [
        with_parameters(application.front_channel_logout_url, {"iss": issuer, "sid": sid})
        for application, sid in sids.items()
        if application.front_channel_logout_url
    ]


def _close(sids: Iterable[str]) -> None:
    keys = list(sids)
    with transaction.atomic():
        session_close(keys)
        if AccessToken.objects.filter(sid__in=keys).delete()[0]:
            tokens_revoked()


def _signed_out(request: HttpRequest, logout: LogoutRequest, frames: list[str]) -> HttpResponse:
    target = logout.redirect_uri
    if target and logout.state:
        target = with_parameters(target, {"state": logout.state})
    if target and not frames:
        return no_store(redirect_to(target))
    context = {"frames": frames, "target": target, "application": logout.application}
    response = render(request, "identity/signed_out.html", context)
    response.frame_sources = frames  # type: ignore[attr-defined]  # for the page's security policy
    return no_store(response)


def _confirmation_page(request: HttpRequest, logout: LogoutRequest, parameters: QueryDict) -> HttpResponse:
    """Ask the user, because the request does not prove a relation to the sign-in (RP-Initiated Logout, 2)."""
    fields = [(name, value) for name, value in parameters.items() if name != "confirm"]
    proof = signing.dumps(_session_proof(request), salt=_CONFIRM_SALT)
    context = {"fields": fields, "proof": proof, "application": logout.application}
    response = render(request, "identity/logout.html", context)
    response.form_action = logout.redirect_uri  # type: ignore[attr-defined]
    return no_store(response)


def _confirmed(request: HttpRequest) -> bool:
    """Whether the user has confirmed on the page above: other sites do not know this browser's proof."""
    try:
        proof = signing.loads(request.POST.get("confirm", ""), salt=_CONFIRM_SALT, max_age=_CONFIRM_SECONDS)
    except signing.BadSignature:
        return False
    return bool(proof == _session_proof(request))


def _session_proof(request: HttpRequest) -> str:
    return salted_hmac(_CONFIRM_SALT, request.session.session_key or "").hexdigest()
