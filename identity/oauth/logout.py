"""Sign-out: RP-initiated, front-channel and back-channel logout of OpenID Connect.

A sign-out ends the browser's sign-in, closes the licensed sessions of all its applications, and revokes their access
tokens and codes. Refresh tokens stay: they were granted for offline_access (Back-Channel Logout, 2.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.contrib.auth import logout as django_logout
from django.core import signing
from django.core.exceptions import DisallowedRedirect
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.crypto import salted_hmac
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.exceptions import InvalidRequestFatalError, OIDCError
from oauth2_provider.views import RPInitiatedLogoutView

from audit.actors import Actor
from audit.record import record
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from identity import instance
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import SignedOut
from identity.browser_sessions import SessionStore
from identity.browser_sign_ins import browser_session_get
from identity.changes import tokens_revoked
from identity.federation.logout import upstream_sign_out
from identity.languages import in_ui_language
from identity.logins import login_holder
from identity.models import AccessToken, Grant, TrustedApplication, User
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
from identity.oauth.sign_in import SignIn, applications_of, sign_in_of, sign_in_stored
from identity.sessions import session_close

_CONFIRM_SALT = "identity.endsession"
_CONFIRM_SECONDS = 600


@method_decorator(csrf_exempt, name="dispatch")
class EndSessionEndpoint(RPInitiatedLogoutView):  # type: ignore[misc]
    """id_token_hint, client_id, post_logout_redirect_uri, state, ui_locales; from the query or the body.

    The toolkit's view for id tokens that are not stored and all applications of the sign-in. Its confirmation is bound
    to the browser, because applications may POST as well (RP-Initiated Logout, 2).
    """

    http_method_names = ["get", "post"]
    hinted_sid: str | None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            # The toolkit reads its parameters here.
            request.GET = parameters_given(request)  # type: ignore[assignment]
        except UnreadableForm as unreadable:
            return error_page(request, error="invalid_request", description=reason_of(unreadable))
        return in_ui_language(request.GET.get("ui_locales", ""), lambda: self._dispatch(request, *args, **kwargs))

    def _dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if names := repeated(request.GET):
            return self.error_response(_refused(Message("The request has {0} more than once.", names[0])))
        try:
            return no_store(super().dispatch(request, *args, **kwargs))
        except DisallowedRedirect:
            # As at the authorization endpoint: Django refuses the length.
            return error_page(request, error="invalid_request", description=Message("The request is too long."))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The confirmation signs out; a form of an application goes on as a GET, to which browsers add the cookie."""
        if _confirmed(request):
            response: HttpResponse = self.get(request)
            return response
        query = request.GET.copy()
        query.pop("confirm", None)
        return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")

    def validate_logout_request(
        self, id_token_hint: str | None, client_id: str | None, post_logout_redirect_uri: str | None
    ) -> tuple[TrustedApplication | None, str | None]:
        """The application, and the id of the user whom the hint names. Raises OIDCError."""
        hint = _verified(id_token_hint) if id_token_hint else {}
        client_id = client_id or hint.get("aud")
        if hint and client_id != hint["aud"]:
            raise _refused(Message("The client_id is not the one that the id_token_hint was issued to."))
        application = client_load(client_id) if client_id else None
        if client_id and application is None:
            raise _refused(Message("The client_id is not that of a trusted application."))
        if post_logout_redirect_uri and (
            application is None or post_logout_redirect_uri not in application.logout_urls
        ):
            raise _refused(Message("The post_logout_redirect_uri is not one of the application's logout URLs."))
        self.hinted_sid = hint.get("sid")
        return application, login_holder(hint["sub"]) if hint else None

    def must_prompt(self, token_user: str | None) -> bool:
        sign_in = sign_in_stored(self.request)
        return sign_in is not None and token_user != str(sign_in.user.pk) and not _confirmed(self.request)

    def do_logout(
        self,
        application: TrustedApplication | None = None,
        post_logout_redirect_uri: str | None = None,
        state: str | None = None,
        token_user: str | None = None,
    ) -> HttpResponse:
        if sign_in_stored(self.request) is None and self.hinted_sid:
            # Another browser, or a server: the hint identifies the session.
            _close([self.hinted_sid])
        target = post_logout_redirect_uri
        if target and state:
            target = with_parameters(target, {"state": state})
        return sign_out_everywhere(self.request, target, application)

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """The confirmation page: the request does not prove a relation to the sign-in (RP-Initiated Logout, 2)."""
        parameters = self.request.GET
        context["fields"] = [(name, value) for name, value in parameters.items() if name != "confirm"]
        context["proof"] = signing.dumps(_session_proof(self.request), salt=_CONFIRM_SALT)
        response = render(self.request, "identity/logout.html", context)
        response.form_leads_away = "post_logout_redirect_uri" in parameters  # type: ignore[attr-defined]
        return response

    def error_response(self, error: OIDCError) -> HttpResponse:
        """An error page instead of a redirect, because the request is not trusted."""
        return error_page(self.request, error=error.error, description=error.description)


def sign_out_everywhere(
    request: HttpRequest, target: str | None = None, application: TrustedApplication | None = None
) -> HttpResponse:
    """End the browser's sign-in here and at its upstream provider; redirect to the target, or show a page."""
    upstream = upstream_sign_out(request)
    frames = sign_out(request)
    if upstream is not None:
        target = upstream.url(target or "")
    if target and not frames:
        return redirect_to(target)
    response = render(
        request, "identity/signed_out.html", {"frames": frames, "target": target, "application": application}
    )
    response.frame_sources = frames  # type: ignore[attr-defined]  # for the page's security policy
    return response


def sign_out(request: HttpRequest) -> list[str]:
    """End the browser's sign-in everywhere; returns the front-channel URLs for its page."""
    sign_in = sign_in_stored(request)
    frames: list[str] = []
    if sign_in is not None:
        by = replace(actor_of(request), name=sign_in.user.login)
        frames = _end(sign_in, issuer=instance.issuer(request), by=by)
    django_logout(request)
    return frames


def browser_sign_out(user: User, key: str, *, issuer: str, by: Actor) -> bool:
    """End the user's sign-in in another browser (identity.browser_sign_ins), at its applications, too.

    Returns whether the user had it. Its front-channel URLs are not loaded: that browser would have to.
    """
    session = browser_session_get(user, key)
    if session is None:
        return False
    sign_in = sign_in_of(SessionStore().decode(session.session_data), user)
    if sign_in is not None:
        _end(sign_in, issuer=issuer, by=by)
    session.delete()
    return True


def _end(sign_in: SignIn, *, issuer: str, by: Actor) -> list[str]:
    """Close the sessions of the sign-in's applications, revoke their tokens, and enqueue their logout tokens.

    Returns the front-channel URLs.
    """
    sids = {application: sign_in.sid(str(application.pk)) for application in applications_of(sign_in)}
    _close(sids.values())
    for application, sid in sids.items():
        if application.back_channel_logout_url:
            backchannel.enqueue(application, issuer=issuer, subject=sign_in.user.login, sid=sid)
    record(SignedOut, by=by, subject=user_subject(sign_in.user))
    return [
        with_parameters(application.front_channel_logout_url, {"iss": issuer, "sid": sid})
        for application, sid in sids.items()
        if application.front_channel_logout_url
    ]


def _close(sids: Iterable[str]) -> None:
    keys = list(sids)
    with transaction.atomic():
        session_close(keys)
        Grant.objects.filter(sid__in=keys, used=None).delete()
        if AccessToken.objects.filter(sid__in=keys).delete()[0]:
            tokens_revoked()


def _verified(hint: str) -> jwt.Claims:
    try:
        return jwt.verify_id_token_hint(hint)
    except jwt.InvalidToken as exc:
        raise _refused(Message("The id_token_hint is not an id token of this provider.")) from exc


def _refused(description: str) -> OIDCError:
    return InvalidRequestFatalError(description)


def _confirmed(request: HttpRequest) -> bool:
    """Whether the user has confirmed on the page: other sites do not know this browser's proof."""
    try:
        proof = signing.loads(request.POST.get("confirm", ""), salt=_CONFIRM_SALT, max_age=_CONFIRM_SECONDS)
    except signing.BadSignature:
        return False
    return bool(proof == _session_proof(request))


def _session_proof(request: HttpRequest) -> str:
    return salted_hmac(_CONFIRM_SALT, request.session.session_key or "").hexdigest()
