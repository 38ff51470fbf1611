"""Sign-out: RP-initiated, front-channel and back-channel logout of OpenID Connect.

A sign-out ends the browser's sign-in, closes the licensed sessions of all its applications, and revokes their access
tokens. Refresh tokens stay: they were granted for offline_access (Back-Channel Logout, 2.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import logout as django_logout
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.crypto import salted_hmac
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.exceptions import InvalidRequestFatalError, OIDCError
from oauth2_provider.views import RPInitiatedLogoutView

from audit.record import record
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from identity import instance
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import SignedOut
from identity.changes import tokens_revoked
from identity.federation.logout import upstream_sign_out
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


@method_decorator(csrf_exempt, name="dispatch")
class EndSessionEndpoint(RPInitiatedLogoutView):  # type: ignore[misc]
    """id_token_hint, client_id, post_logout_redirect_uri, state, ui_locales; from the query or the body.

    The toolkit's view with id tokens that are not stored, all applications of the sign-in, and a confirmation that is
    bound to the browser, for applications may POST as well (RP-Initiated Logout, 2).
    """

    http_method_names = ["get", "post"]
    hinted_sid: str | None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            # The toolkit reads its parameters here.
            request.GET = parameters_given(request)  # type: ignore[assignment]
        except UnreadableForm as unreadable:
            return error_page(request, error="invalid_request", description=reason_of(unreadable))
        with translation.override(ui_language(request.GET.get("ui_locales", ""))):
            if names := repeated(request.GET):
                return self.error_response(_refused(Message("The request has {0} more than once.", names[0])))
            return no_store(super().dispatch(request, *args, **kwargs))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = self.get(request)
        return response

    def validate_logout_request(
        self, id_token_hint: str | None, client_id: str | None, post_logout_redirect_uri: str | None
    ) -> tuple[TrustedApplication | None, str | None]:
        """The application, and the login that the hint names. Raises OIDCError."""
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
        return application, hint.get("sub")

    def must_prompt(self, token_user: str | None) -> bool:
        sign_in = sign_in_get(self.request)
        return sign_in is not None and token_user != sign_in.user.login and not _confirmed(self.request)

    def do_logout(
        self,
        application: TrustedApplication | None = None,
        post_logout_redirect_uri: str | None = None,
        state: str | None = None,
        token_user: str | None = None,
    ) -> HttpResponse:
        if sign_in_get(self.request) is None and self.hinted_sid:
            # Another browser, or a server: the hint identifies the session.
            _close([self.hinted_sid])
        target = post_logout_redirect_uri
        if target and state:
            target = with_parameters(target, {"state": state})
        return sign_out_everywhere(self.request, target, application)

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """Ask the user, because the request does not prove a relation to the sign-in (RP-Initiated Logout, 2)."""
        parameters = self.request.GET
        context["fields"] = [(name, value) for name, value in parameters.items() if name != "confirm"]
        context["proof"] = signing.dumps(_session_proof(self.request), salt=_CONFIRM_SALT)
        response = render(self.request, "identity/logout.html", context)
        response.form_leads_away = "post_logout_redirect_uri" in parameters  # type: ignore[attr-defined]
        return response

    def error_response(self, error: OIDCError) -> HttpResponse:
        """A page: the request is not trusted."""
        return error_page(self.request, error=error.error, description=error.description)


def sign_out_everywhere(
    request: HttpRequest, target: str | None = None, application: TrustedApplication | None = None
) -> HttpResponse:
    """End the browser's sign-in here and at its upstream provider, and lead the browser to the target, or a page."""
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
    by = actor_of(request)
    django_logout(request)
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
    """Whether the user has confirmed on the page above: other sites do not know this browser's proof."""
    try:
        proof = signing.loads(request.POST.get("confirm", ""), salt=_CONFIRM_SALT, max_age=_CONFIRM_SECONDS)
    except signing.BadSignature:
        return False
    return bool(proof == _session_proof(request))


def _session_proof(request: HttpRequest) -> str:
    return salted_hmac(_CONFIRM_SALT, request.session.session_key or "").hexdigest()
