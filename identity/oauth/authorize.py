"""The authorization endpoint (spec 01, 1.2; RFC 6749, 4.1; OIDC Core, 3.1.2 and 3.3.2).

A request goes through STEPS in order; each looks at it, may fill something in, and may end it with an answer. What a
step refuses is an AuthorizationRefused, which goes back to the client; what must not be redirected is a page.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.conf import settings
from django.core import signing
from django.core.exceptions import DisallowedRedirect
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods
from oauthlib.oauth2.rfc6749.errors import FatalClientError, OAuth2Error

from foundation.phrases import Phrase, reason_of
from identity.languages import ui_language
from identity.models import TrustedApplication
from identity.oauth import jwt, responses
from identity.oauth.clients import client_load
from identity.oauth.fresh_login import PARAMETER, fresh_login_ask, fresh_login_asked_at, fresh_login_used
from identity.oauth.server import request_headers, server
from identity.oauth.sign_in import SignIn, application_joined, sign_in_get
from identity.oauth.validator import RESPONSE_TYPES
from identity.scopes import DESCRIPTIONS

# Proof, made by this instance, that the person was asked to consent.
_CONSENT = "_consent"
_PROOF_SECONDS = 3600
_FRESH_PROMPTS = {"login", "select_account"}
# What oauthlib is shown. Whatever else a request has would become attributes of oauthlib's request, `user` for example.
_FOR_OAUTHLIB = {
    "client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
}  # fmt: skip
# RFC 7636, 4.2: BASE64URL of a SHA-256.
_S256_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_NONCE_LENGTH = 255
# Thirty years; what is longer would not fit a float either.
_LONGEST_MAX_AGE = 10**9


class AuthorizationRefused(Exception):
    """An answer with `error` that the client is told."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.error = error
        self.description = description


@dataclass(slots=True)
class AuthorizationRequest:
    """One request on its way through the steps. After `load_client`, `redirect_uri` is one that may be answered to."""

    http: HttpRequest
    query: QueryDict
    application: TrustedApplication = field(init=False)
    redirect_uri: str = field(init=False)
    scopes: list[str] = field(default_factory=list)
    max_age_seconds: int | None = None
    hinted_login: str | None = None
    sign_in: SignIn | None = None

    @property
    def prompt(self) -> set[str]:
        """OIDC Core, 3.1.2.1."""
        return set(self.query.get("prompt", "").split())

    @property
    def response_type(self) -> str:
        """Its values in one order, since theirs does not matter (OAuth 2.0 Multiple Response Types, 3)."""
        return " ".join(sorted(self.query.get("response_type", "").split()))

    @property
    def mode(self) -> str:
        """Where the answer goes: as asked, else query for a code alone and fragment for more."""
        asked = self.query.get("response_mode", "")
        if asked in responses.RESPONSE_MODES:
            return asked
        # A response type that is not served has its error where its answer would have been.
        return "fragment" if {"token", "id_token"} & set(self.response_type.split()) else "query"

    @property
    def uri(self) -> str:
        """The request as oauthlib reads it."""
        known = {name: self.query[name] for name in _FOR_OAUTHLIB & set(self.query)}
        return f"{self.http.build_absolute_uri(self.http.path)}?{urlencode({**known, **self._response_type})}"

    @property
    def _response_type(self) -> dict[str, str]:
        return {"response_type": self.response_type} if self.response_type else {}


Step = Callable[[AuthorizationRequest], HttpResponse | None]


@csrf_exempt
@require_http_methods(["GET", "POST"])
def authorize(request: HttpRequest) -> HttpResponse:
    """GET, or POST with the same parameters in the body (OIDC Core, 3.1.2.1)."""
    try:
        query = responses.parameters_given(request)
        with translation.override(ui_language(query.get("ui_locales", ""))):
            return _serve(request, query)
    except responses.UnreadableForm as unreadable:
        return responses.error_page(request, error="invalid_request", description=reason_of(unreadable))
    except DisallowedRedirect:
        # The address is right, or it would have been refused, so its length is what Django does not take.
        return responses.error_page(request, error="invalid_request", description=Phrase("The request is too long."))


def _serve(request: HttpRequest, query: QueryDict) -> HttpResponse:
    if request.method == "POST":
        # As a GET it can be returned to after the login page; nothing of it is secret.
        return responses.no_store(HttpResponseRedirect(f"{request.path}?{query.urlencode()}"))
    asked = AuthorizationRequest(request, query)
    try:
        for step in STEPS:
            if (response := step(asked)) is not None:
                return responses.no_store(response)
        raise AssertionError("the last step answers")
    except FatalClientError as error:
        return responses.error_page(
            request, error=error.error or "invalid_request", description=error.description or _fatal(error)
        )
    except OAuth2Error as error:
        return _refuse(asked, error.error, error.description or "The request cannot be served.")
    except AuthorizationRefused as refused:
        return _refuse(asked, refused.error, refused.description)


def load_client(asked: AuthorizationRequest) -> None:
    """The application and the redirect URI. Raises FatalClientError, which is shown as a page, for wrong ones."""
    if {"client_id", "redirect_uri"} & set(responses.repeated(asked.query)):
        raise FatalClientError(description=Phrase("The request has client_id or redirect_uri twice."))
    loaded = client_load(asked.query.get("client_id", ""))
    if loaded is None or loaded.service_half:
        raise FatalClientError(description=Phrase("The client_id is not that of a trusted application."))
    asked.application = loaded.application
    given = asked.query.get("redirect_uri")
    if given is not None and not loaded.application.redirect_uri_allowed(given):
        raise FatalClientError(description=Phrase("The redirect_uri is not one of the application's login URLs."))
    try:
        asked.redirect_uri = given or loaded.application.default_redirect_uri
    except OAuth2Error as exc:
        raise FatalClientError(description=Phrase("The request needs a redirect_uri.")) from exc


def check_application(asked: AuthorizationRequest) -> None:
    """Enabled, and for people."""
    if not asked.application.is_enabled:
        raise AuthorizationRefused("unauthorized_client", "The application is disabled.")


def check_repeated(asked: AuthorizationRequest) -> None:
    """RFC 6749, 3.1: "Request and response parameters MUST NOT be included more than once"."""
    if names := responses.repeated(asked.query):
        raise AuthorizationRefused("invalid_request", f"The request has {names[0]} more than once.")


def check_unsupported(asked: AuthorizationRequest) -> None:
    """Request objects (OIDC Core, 6) are not offered; that must be said, not ignored."""
    for name, error in (("request", "request_not_supported"), ("request_uri", "request_uri_not_supported")):
        if name in asked.query:
            raise AuthorizationRefused(error, f"This provider does not take the parameter {name}.")


def check_response_type(asked: AuthorizationRequest) -> None:
    """RFC 6749, 4.1.2.1. A missing one is a malformed request, another one is not served."""
    if not asked.response_type:
        raise AuthorizationRefused("invalid_request", "The request has no response_type.")
    if asked.response_type not in RESPONSE_TYPES:
        raise AuthorizationRefused("unsupported_response_type", f"response_type must be {' or '.join(RESPONSE_TYPES)}.")


def check_response_mode(asked: AuthorizationRequest) -> None:
    """Tokens never travel in a query (OAuth 2.0 Multiple Response Types, 5)."""
    mode = asked.query.get("response_mode")
    if mode is not None and mode not in responses.RESPONSE_MODES:
        raise AuthorizationRefused("invalid_request", "response_mode must be query, fragment or form_post.")
    if mode == "query" and "id_token" in asked.response_type:
        raise AuthorizationRefused("invalid_request", "An id_token cannot be answered in the query.")


def load_scopes(asked: AuthorizationRequest) -> None:
    """oauthlib's own checks: response type, PKCE, scopes, nonce. Raises OAuth2Error."""
    scopes, details = server().validate_authorization_request(
        asked.uri, http_method="GET", headers=request_headers(asked.http)
    )
    if "code_challenge" in details and details.get("code_challenge_method") != "S256":
        raise AuthorizationRefused("invalid_request", "code_challenge_method must be S256.")
    if "code_challenge" in details and not _S256_CHALLENGE.fullmatch(details["code_challenge"]):
        raise AuthorizationRefused("invalid_request", "code_challenge must be the base64url form of a SHA-256.")
    check_nonce(asked)
    if "id_token" in asked.response_type and "openid" not in scopes:
        raise AuthorizationRefused("invalid_request", "response_type code id_token needs the scope openid.")
    asked.scopes = scopes


def check_nonce(asked: AuthorizationRequest) -> None:
    """It must come back whole in the id token, so what cannot be kept is refused (OIDC Core, 3.1.2.1)."""
    nonce = asked.query.get("nonce", "")
    if len(nonce) > _NONCE_LENGTH or "\x00" in nonce:
        raise AuthorizationRefused("invalid_request", f"nonce may have {_NONCE_LENGTH} characters, and no NUL.")


def load_max_age(asked: AuthorizationRequest) -> None:
    """How old the login may be (OIDC Core, 3.1.2.1)."""
    if given := asked.query.get("max_age"):
        if not (given.isascii() and given.isdigit()):
            raise AuthorizationRefused("invalid_request", "max_age must be a number of seconds.")
        asked.max_age_seconds = int(given) if len(given) < 10 else _LONGEST_MAX_AGE


def load_hint(asked: AuthorizationRequest) -> None:
    """Whom id_token_hint names (OIDC Core, 3.1.2.1); expired ones are as good as others."""
    if raw := asked.query.get("id_token_hint"):
        try:
            asked.hinted_login = str(jwt.verify_id_token_hint(raw)["sub"])
        except jwt.InvalidToken as exc:
            raise AuthorizationRefused("invalid_request", "id_token_hint is no id token of this provider.") from exc


def check_prompt(asked: AuthorizationRequest) -> None:
    """Known values; none stands alone."""
    unknown = asked.prompt - {"none", "login", "consent", "select_account"}
    if unknown:
        raise AuthorizationRefused("invalid_request", "prompt must be none, login, consent or select_account.")
    if "none" in asked.prompt and len(asked.prompt) > 1:
        raise AuthorizationRefused("invalid_request", "prompt=none cannot be combined.")


def load_sign_in(asked: AuthorizationRequest) -> HttpResponse | None:
    """The signed-in person, or the way to the login page (OIDC Core, 3.1.2.3)."""
    sign_in = sign_in_get(asked.http)
    if sign_in is None or _too_old(asked, sign_in):
        if "none" in asked.prompt:
            raise AuthorizationRefused("login_required", "Nobody is signed in, or not recently enough.")
        return _login_page(asked)
    another = asked.hinted_login is not None and asked.hinted_login != sign_in.user.login
    if another and "none" in asked.prompt:
        raise AuthorizationRefused("login_required", "Somebody else is signed in than the id_token_hint names.")
    just_now = sign_in.auth_time.timestamp() >= fresh_login_asked_at(asked.http, asked.query)
    if (another or asked.prompt & _FRESH_PROMPTS) and not just_now:
        return _login_page(asked)
    if another:
        raise AuthorizationRefused("login_required", "Somebody else has signed in than the id_token_hint names.")
    asked.sign_in = sign_in
    return None


def check_user(asked: AuthorizationRequest) -> None:
    """Whether this kind of user may use the application (spec 01, 1.3)."""
    assert asked.sign_in is not None
    application, user = asked.application, asked.sign_in.user
    if user.user_type == "InternalUser":
        allowed = application.impersonate_as_internal_user_allowed
    else:
        allowed = application.impersonate_as_community_user_allowed and user.user_type == "ExternalCommunityUser"
    if not allowed:
        raise AuthorizationRefused("access_denied", "This user may not use the application.")
    if user.user_type != "InternalUser" and "openid" not in asked.scopes:
        raise AuthorizationRefused("invalid_scope", "External users need the scope openid; they get an id_token only.")


def ask_consent(asked: AuthorizationRequest) -> HttpResponse | None:
    """Only when the application wishes it: an administrator has trusted it already."""
    if "consent" not in asked.prompt:
        return None
    assert asked.sign_in is not None
    answer = asked.query.get(_CONSENT)
    if answer is not None:
        if _consent_of(answer) != _consent(asked):
            raise AuthorizationRefused("access_denied", "The user did not consent.")
        return None
    proof = signing.dumps(_consent(asked), salt=_CONSENT)
    hidden = [(name, value) for name, values in asked.query.lists() for value in values]
    context = {
        "application": asked.application,
        "scopes": [DESCRIPTIONS[scope] for scope in asked.scopes if scope in DESCRIPTIONS],
        "fields": hidden,
        "consent_name": _CONSENT,
        "proof": proof,
        "user": asked.sign_in.user,
    }
    response = render(asked.http, "identity/consent.html", context)
    response.form_action = asked.redirect_uri  # type: ignore[attr-defined]  # browsers check redirects of forms too
    return response


def answer(asked: AuthorizationRequest) -> HttpResponse:
    """The code, and the id token of the hybrid flow."""
    assert asked.sign_in is not None
    headers, _body, _status = server().create_authorization_response(
        asked.uri,
        http_method="GET",
        headers=request_headers(asked.http),
        scopes=asked.scopes,
        credentials={
            "user": asked.sign_in.user,
            "sid": asked.sign_in.sid(str(asked.application.pk)),
            "auth_time": asked.sign_in.auth_time,
        },
    )
    application_joined(asked.http, asked.application)
    fresh_login_used(asked.http, asked.query)
    parameters = responses.protocol_parameters(headers["Location"])
    return responses.answer(asked.http, asked.redirect_uri, parameters, asked.mode)


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
    check_user,
    ask_consent,
    answer,
)


def _refuse(asked: AuthorizationRequest, error: str, description: str) -> HttpResponse:
    fresh_login_used(asked.http, asked.query)
    return responses.answer_error(
        asked.http,
        asked.redirect_uri,
        error=error,
        description=description,
        state=asked.query.get("state"),
        mode=asked.mode,
    )


def _fatal(error: FatalClientError) -> str:
    return Phrase("The request cannot be served ({0}).", error.error)


def _too_old(asked: AuthorizationRequest, sign_in: SignIn) -> bool:
    """max_age (OIDC Core, 3.1.2.1)."""
    if asked.max_age_seconds is None:
        return False
    # Having just logged in for this request is recent enough for any max_age, 0 too.
    asked_at = fresh_login_asked_at(asked.http, asked.query)
    authenticated = sign_in.auth_time.timestamp()
    return authenticated < min(asked_at, time.time() - asked.max_age_seconds)


def _consent(asked: AuthorizationRequest) -> dict[str, object]:
    """What is consented to: more scopes need another consent."""
    assert asked.sign_in is not None
    return {
        "user": asked.sign_in.user.pk,
        "client": asked.application.client_id,
        "scopes": sorted(asked.scopes),
    }


def _consent_of(answer: str) -> object:
    try:
        return signing.loads(answer, salt=_CONSENT, max_age=_PROOF_SECONDS)
    except signing.BadSignature:
        return None


def _login_page(asked: AuthorizationRequest) -> HttpResponse:
    """To the login page and back to this request; with the proof of the visit, where the request needs one."""
    query = asked.query.copy()
    if asked.prompt & _FRESH_PROMPTS or asked.max_age_seconds is not None or asked.hinted_login is not None:
        query[PARAMETER] = fresh_login_ask(asked.http, asked.query)
    parameters = {"next": f"{asked.http.path}?{query.urlencode()}"}
    for name in ("login_hint", "ui_locales"):
        if name in asked.query:
            parameters[name] = str(asked.query[name])[:200]
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode(parameters)}")
