"""The authorization endpoint (spec 01, 1.2; RFC 6749, 4.1; OIDC Core, 3.1.2 and 3.3.2).

The toolkit's base view, with STEPS for its strategy: in order, each may raise, fill in fields, or end the request with
a response. OAuthToolkitError is returned to the client; FatalClientError must not be redirected and is shown as a page.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedRedirect
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views.base import BaseAuthorizationView
from oauthlib.oauth2.rfc6749 import errors

from foundation.errors import TooManyRequests
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from identity.factors.methods import acr_met
from identity.instance import client_address
from identity.languages import in_ui_language
from identity.login_target import DECLINED, second_factor_page
from identity.logins import login_holder
from identity.models import TrustedApplication
from identity.oauth import codes, jwt, pushed, responses
from identity.oauth.binding import check_dpop_jkt
from identity.oauth.client_documents import DocumentRefused, client_resolve
from identity.oauth.consent import CONSENT, proof_is_valid, proof_make
from identity.oauth.fresh_login import (
    PARAMETER,
    fresh_login_make,
    fresh_login_store,
    fresh_login_used,
    fresh_login_visited_at,
)
from identity.oauth.refusals import AuthorizationRefused, UnknownClient, UnknownRequestUri
from identity.oauth.scopes import scopes_for_user
from identity.oauth.sign_in import SignIn, application_joined, sign_in_get
from identity.scopes import DESCRIPTIONS

_FRESH_PROMPTS = {"login", "select_account"}
# RFC 7636, 4.2: BASE64URL of a SHA-256.
_S256_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_NONCE_LENGTH = 255
# Thirty years; larger values would not fit a float either.
_LONGEST_MAX_AGE = 10**9


@dataclass(slots=True)
class AuthorizationRequest:
    """State of one request. After `load_client`, `redirect_uri` is registered."""

    view: AuthorizationEndpoint
    http: HttpRequest
    query: QueryDict
    application: TrustedApplication = field(init=False)
    redirect_uri: str = field(init=False)
    scopes: list[str] = field(default_factory=list)
    max_age_seconds: int | None = None
    hinted_user: str | None = None
    sign_in: SignIn | None = None
    acr: str = ""
    is_pushed: bool = False
    handle: str = ""

    @property
    def carried(self) -> QueryDict:
        """The parameters in URLs of the login and consent pages; of a pushed request its handle and their own."""
        if not self.handle:
            return self.query.copy()
        result = QueryDict(mutable=True)
        shown = {name for name in self.query if name.startswith("_") or name in {"redirect_uri", "acr_values"}}
        own = {name: str(self.query[name]) for name in shown}
        result.update({**own, "client_id": self.application.client_id, pushed.HANDLE: self.handle})
        return result

    @property
    def prompt(self) -> set[str]:
        """OIDC Core, 3.1.2.1."""
        return set(self.query.get("prompt", "").split())

    @property
    def response_type(self) -> str:
        """The values in canonical order; their order does not matter (OAuth 2.0 Multiple Response Types, 3)."""
        return " ".join(sorted(self.query.get("response_type", "").split()))

    @property
    def mode(self) -> str:
        """The response mode: as requested, else query for a code alone and fragment for more."""
        requested = self.query.get("response_mode", "")
        if requested in responses.RESPONSE_MODES:
            return requested
        # The error of an unsupported response type uses the mode of its response.
        return "fragment" if {"token", "id_token"} & set(self.response_type.split()) else "query"


Step = Callable[[AuthorizationRequest], HttpResponse | None]


@method_decorator(csrf_exempt, name="dispatch")
class AuthorizationEndpoint(BaseAuthorizationView):  # type: ignore[misc]
    """GET, or POST with the same parameters in the body (OIDC Core, 3.1.2.1)."""

    http_method_names = ["get", "post"]
    authorization: AuthorizationRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            self.authorization = AuthorizationRequest(self, request, responses.parameters_given(request))
            dispatch = super().dispatch
            return in_ui_language(
                self.authorization.query.get("ui_locales", ""),
                lambda: responses.no_store(dispatch(request, *args, **kwargs)),
            )
        except responses.UnreadableForm as unreadable:
            description = reason_of(unreadable)
        except TooManyRequests as limited:
            page = responses.error_page(request, error="slow_down", description=limited.message, status=429)
            page.headers["Retry-After"] = str(limited.retry_after_seconds)
            return page
        except DisallowedRedirect:
            # The redirect URI is registered; Django has refused its length.
            description = Message("The request is too long.")
        return responses.error_page(request, error="invalid_request", description=description)

    def handle_no_permission(self) -> HttpResponseBase:
        """Accept anonymous requests: the redirect to the login page is a later step, after the checks."""
        return View.dispatch(self, self.request)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the same request as GET, to which the login page can return; nothing in it is secret."""
        return HttpResponseRedirect(f"{request.path}?{self.authorization.query.urlencode()}")

    def get(self, request: HttpRequest) -> HttpResponse:
        try:
            load_pushed(self.authorization)
        except OAuthToolkitError as error:
            return self.error_response(error, None)
        return in_ui_language(self.authorization.query.get("ui_locales", ""), self._respond)

    def _respond(self) -> HttpResponse:
        try:
            for step in STEPS:
                if (response := step(self.authorization)) is not None:
                    return response
            raise AssertionError("the last step responds")
        except OAuthToolkitError as error:
            return self.error_response(error, None)

    def error_response(self, error: OAuthToolkitError, application: None, **kwargs: Any) -> HttpResponse:
        """A page, or the error for the client in the response mode, which the toolkit does not support."""
        found = error.oauthlib_error
        pushed.pushed_request_end(self.authorization.handle)
        if isinstance(error, FatalClientError):
            return responses.error_page(self.request, error=found.error, description=found.description)
        authorization = self.authorization
        fresh_login_used(self.request, authorization.query)
        found.description = found.description or "The request cannot be served."
        found.state = authorization.query.get("state")
        return responses.return_to_client(
            self.request, authorization.redirect_uri, dict(found.twotuples), authorization.mode
        )


def load_pushed(authorization: AuthorizationRequest) -> None:
    """Replace the query by the pushed request that it names; ignores its other parameters (RFC 9101, 5)."""
    query = authorization.query
    client_id, request_uri, handle = (query.get(name, "") for name in ("client_id", "request_uri", pushed.HANDLE))
    if not handle and not request_uri.startswith(pushed.REQUEST_URI_PREFIX):
        return
    if {"client_id", "request_uri", pushed.HANDLE} & set(responses.repeated(query)):
        raise UnknownClient(Message("The request has client_id or request_uri twice."))
    if handle:
        found = pushed.pushed_request_load(client_id, handle)
    else:
        found = pushed.pushed_request_open(client_id, request_uri)
    if found is None:
        raise UnknownRequestUri()
    resolved = QueryDict(mutable=True)
    own = {name: str(value) for name, value in query.items() if name.startswith("_")}
    resolved.update({**own, **found.parameters, pushed.HANDLE: found.handle})
    authorization.query = authorization.http.protocol_parameters = resolved  # type: ignore[attr-defined]
    authorization.is_pushed, authorization.handle = True, found.handle


def load_client(authorization: AuthorizationRequest) -> None:
    """Load application and redirect URI. Raises UnknownClient."""
    if {"client_id", "redirect_uri"} & set(responses.repeated(authorization.query)):
        raise UnknownClient(Message("The request has client_id or redirect_uri twice."))
    try:
        application = client_resolve(authorization.query.get("client_id", ""), client_address(authorization.http))
    except DocumentRefused as refused:
        raise UnknownClient(reason_of(refused)) from refused
    if application is None or application.service_half:
        raise UnknownClient(Message("The client_id is not that of a trusted application."))
    authorization.application = application
    given = authorization.query.get("redirect_uri")
    if given is not None and not application.redirect_uri_allowed(given):
        raise UnknownClient(Message("The redirect_uri is not one of the application's login URLs."))
    try:
        authorization.redirect_uri = given or application.default_redirect_uri
    except errors.OAuth2Error as exc:
        raise UnknownClient(Message("The request needs a redirect_uri.")) from exc


def check_application(authorization: AuthorizationRequest) -> None:
    """Check that the application is enabled and interactive."""
    application = authorization.application
    if not application.is_enabled and application.has_registered_itself:
        # RFC 9700, 4.11.2: its redirect URI is unverified.
        raise UnknownClient(Message("The application registered itself and is not enabled; ask an administrator."))
    if not application.is_enabled:
        raise AuthorizationRefused("unauthorized_client", "The application is disabled.")
    if authorization.application.pushed_requests_required and not authorization.is_pushed:
        raise AuthorizationRefused(
            "invalid_request", "The application must push its authorization requests (RFC 9126)."
        )


def check_repeated(authorization: AuthorizationRequest) -> None:
    """Refuse repeated parameters (RFC 6749, 3.1)."""
    if names := responses.repeated(authorization.query):
        raise AuthorizationRefused("invalid_request", f"The request has {names[0]} more than once.")


def check_unsupported(authorization: AuthorizationRequest) -> None:
    """Refuse request objects (OIDC Core, 6), which are not supported."""
    for name, error in (("request", "request_not_supported"), ("request_uri", "request_uri_not_supported")):
        if name in authorization.query:
            raise AuthorizationRefused(error, f"This provider does not take the parameter {name}.")


def check_response_type(authorization: AuthorizationRequest) -> None:
    """Refuse a missing (invalid_request) or unknown (unsupported_response_type) one (RFC 6749, 4.1.2.1)."""
    if not authorization.response_type:
        raise AuthorizationRefused("invalid_request", "The request has no response_type.")
    supported = oauth2_settings.OIDC_RESPONSE_TYPES_SUPPORTED
    if authorization.response_type not in supported:
        raise AuthorizationRefused("unsupported_response_type", f"response_type must be {' or '.join(supported)}.")


def check_response_mode(authorization: AuthorizationRequest) -> None:
    """Refuse unknown modes, and tokens in a query (OAuth 2.0 Multiple Response Types, 5)."""
    mode = authorization.query.get("response_mode")
    if mode is not None and mode not in responses.RESPONSE_MODES:
        raise AuthorizationRefused("invalid_request", "response_mode must be query, fragment or form_post.")
    if mode == "query" and "id_token" in authorization.response_type:
        raise AuthorizationRefused("invalid_request", "An id_token cannot be answered in the query.")


def load_scopes(authorization: AuthorizationRequest) -> None:
    """Run oauthlib's checks of response type, PKCE, scopes and nonce; fill in the scopes."""
    scopes, details = authorization.view.validate_authorization_request(authorization.http)
    method = authorization.query.get("code_challenge_method")
    if method != "S256" and (method or "code_challenge" in details):
        raise AuthorizationRefused("invalid_request", "code_challenge_method must be S256.")
    if "code_challenge" in details and not _S256_CHALLENGE.fullmatch(details["code_challenge"]):
        raise AuthorizationRefused("invalid_request", "code_challenge must be the base64url form of a SHA-256.")
    check_nonce(authorization)
    check_dpop_jkt(authorization.query.get("dpop_jkt"))
    if "id_token" in authorization.response_type and "openid" not in scopes:
        raise AuthorizationRefused("invalid_request", "response_type code id_token needs the scope openid.")
    authorization.scopes = scopes


def check_nonce(authorization: AuthorizationRequest) -> None:
    """Refuse a nonce that cannot be stored: the id token must repeat it (OIDC Core, 3.1.2.1)."""
    nonce = authorization.query.get("nonce", "")
    if len(nonce) > _NONCE_LENGTH or "\x00" in nonce:
        raise AuthorizationRefused("invalid_request", f"nonce may have {_NONCE_LENGTH} characters, and no NUL.")


def load_max_age(authorization: AuthorizationRequest) -> None:
    """Parse the maximum age of the login (OIDC Core, 3.1.2.1)."""
    if given := authorization.query.get("max_age"):
        if not (given.isascii() and given.isdigit()):
            raise AuthorizationRefused("invalid_request", "max_age must be a number of seconds.")
        authorization.max_age_seconds = int(given) if len(given) < 10 else _LONGEST_MAX_AGE


def load_hint(authorization: AuthorizationRequest) -> None:
    """The id of the user of id_token_hint (OIDC Core, 3.1.2.1); an expired token is accepted, and a former login."""
    if raw := authorization.query.get("id_token_hint"):
        try:
            subject = str(jwt.verify_id_token_hint(raw)["sub"])
        except jwt.InvalidToken as exc:
            raise AuthorizationRefused("invalid_request", "id_token_hint is no id token of this provider.") from exc
        authorization.hinted_user = login_holder(subject) or ""


def check_prompt(authorization: AuthorizationRequest) -> None:
    """Refuse unknown values, and `none` with others."""
    unknown = authorization.prompt - {"none", "login", "consent", "select_account"}
    if unknown:
        raise AuthorizationRefused("invalid_request", "prompt must be none, login, consent or select_account.")
    if "none" in authorization.prompt and len(authorization.prompt) > 1:
        raise AuthorizationRefused("invalid_request", "prompt=none cannot be combined.")


def load_sign_in(authorization: AuthorizationRequest) -> HttpResponse | None:
    """Load the sign-in, or redirect to the login page (OIDC Core, 3.1.2.3)."""
    sign_in = sign_in_get(authorization.http)
    if sign_in is None or _too_old(authorization, sign_in):
        if "none" in authorization.prompt:
            raise AuthorizationRefused("login_required", "Nobody is signed in, or not recently enough.")
        return _login_page(authorization)
    another = authorization.hinted_user is not None and authorization.hinted_user != str(sign_in.user.pk)
    if another and "none" in authorization.prompt:
        raise AuthorizationRefused("login_required", "Somebody else is signed in than the id_token_hint names.")
    just_now = sign_in.auth_time.timestamp() >= fresh_login_visited_at(authorization.http, authorization.query)
    if (another or authorization.prompt & _FRESH_PROMPTS) and not just_now:
        return _login_page(authorization)
    if another:
        raise AuthorizationRefused("login_required", "Somebody else has signed in than the id_token_hint names.")
    authorization.sign_in = sign_in
    return None


def check_acr(authorization: AuthorizationRequest) -> HttpResponse | None:
    """Check that the sign-in meets acr_values; else redirect to the page of another factor (RFC 9470, 5)."""
    assert authorization.sign_in is not None
    acr = acr_met(authorization.sign_in.amr, authorization.query.get("acr_values", ""))
    if acr is not None:
        authorization.acr = acr
        return None
    if "none" in authorization.prompt:
        raise AuthorizationRefused("login_required", "The sign-in meets none of acr_values.")
    if DECLINED in authorization.query:
        raise AuthorizationRefused("unmet_authentication_requirements", "The user did not prove another factor.")
    return second_factor_page(f"{authorization.http.path}?{authorization.carried.urlencode()}")


def check_user(authorization: AuthorizationRequest) -> None:
    """Check that the application permits this type of user (spec 01, 1.3)."""
    assert authorization.sign_in is not None
    application, user = authorization.application, authorization.sign_in.user
    if not application.admits(user):
        raise AuthorizationRefused("access_denied", "This user may not use the application.")
    if user.user_type != "InternalUser" and "openid" not in authorization.scopes:
        raise AuthorizationRefused("invalid_scope", "External users need the scope openid; they get an id_token only.")
    authorization.scopes = scopes_for_user(user, authorization.scopes)


def ask_consent(authorization: AuthorizationRequest) -> HttpResponse | None:
    """Show the consent page if the application requires it or registered itself."""
    application = authorization.application
    unapproved = application.has_registered_itself
    if unapproved and "none" in authorization.prompt:
        raise AuthorizationRefused("consent_required", "People are always asked about this application.")
    if "consent" not in authorization.prompt and not unapproved:
        return None
    assert authorization.sign_in is not None
    consent = (authorization.sign_in.user, application, authorization.scopes)
    proof = authorization.query.get(CONSENT)
    if proof is not None:
        if not proof_is_valid(proof, *consent):
            raise AuthorizationRefused("access_denied", "The user did not consent.")
        return None
    hidden = [(name, value) for name, values in authorization.carried.lists() for value in values]
    context = {
        "application": application,
        "scopes": [DESCRIPTIONS[scope] for scope in authorization.scopes if scope in DESCRIPTIONS],
        "fields": hidden,
        "consent_name": CONSENT,
        "proof": proof_make(*consent),
        "user": authorization.sign_in.user,
        "described_at": urlsplit(application.client_id).netloc if application.has_document else "",
        "returns_to": (urlsplit(authorization.redirect_uri).netloc or authorization.redirect_uri) if unapproved else "",
    }
    response = render(authorization.http, "identity/consent.html", context)
    response.form_leads_away = True  # type: ignore[attr-defined]
    return response


def respond(authorization: AuthorizationRequest) -> HttpResponse:
    """The response with the code, and the id token of the hybrid flow."""
    assert authorization.sign_in is not None
    query = authorization.query
    uri, _headers, _body, _status = authorization.view.create_authorization_response(
        authorization.http,
        " ".join(authorization.scopes),
        {
            "redirect_uri": authorization.redirect_uri,
            "grant_instance": codes.code_prepare(
                authorization.sign_in, authorization.application, authorization.acr, query.get("dpop_jkt", "")
            ),
        },
        allow=True,
    )
    application_joined(authorization.sign_in, authorization.application)
    fresh_login_used(authorization.http, query)
    pushed.pushed_request_end(authorization.handle)
    parameters = responses.protocol_parameters(uri)
    return responses.return_to_client(authorization.http, authorization.redirect_uri, parameters, authorization.mode)


STEPS: tuple[Step, ...] = (
    load_client,
    check_repeated,
    check_application,
    check_unsupported,
    check_response_type,
    check_response_mode,
    load_scopes,
    check_prompt,
    load_max_age,
    load_hint,
    load_sign_in,
    check_acr,
    check_user,
    ask_consent,
    respond,
)


def _too_old(authorization: AuthorizationRequest, sign_in: SignIn) -> bool:
    """Whether the login is older than max_age (OIDC Core, 3.1.2.1)."""
    if authorization.max_age_seconds is None:
        return False
    # A login for this request satisfies every max_age, also 0.
    asked_at = fresh_login_visited_at(authorization.http, authorization.query)
    authenticated = sign_in.auth_time.timestamp()
    return authenticated < min(asked_at, time.time() - authorization.max_age_seconds)


def _login_page(authorization: AuthorizationRequest) -> HttpResponse:
    """Redirect to the login page and back to this request, with a proof of the login if required."""
    query, proofs = authorization.carried, None
    if (
        authorization.prompt & _FRESH_PROMPTS
        or authorization.max_age_seconds is not None
        or authorization.hinted_user is not None
    ):
        query[PARAMETER], proofs = fresh_login_make(authorization.http, authorization.query)
    parameters = {"next": f"{authorization.http.path}?{query.urlencode()}"}
    for name in ("login_hint", "ui_locales"):
        if name in authorization.query:
            parameters[name] = str(authorization.query[name])[:200]
    response = HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode(parameters)}")
    if proofs is not None:
        fresh_login_store(authorization.http, response, proofs)
    return response
