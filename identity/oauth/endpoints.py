"""Base of the endpoints for clients: form parsing, rate limits and error responses (RFC 6749, 3.2 and 5.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import translation
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauthlib.oauth2.rfc6749.errors import OAuth2Error

from foundation import errors
from identity import rate_limits
from identity.anonymous_forms import MAX_BYTES, is_too_long
from identity.dpop import nonce_now
from identity.instance import client_address
from identity.oauth.clients import credentials_read
from identity.oauth.responses import FORM, UnreadableForm, no_store, parameters_given, repeated

# Descriptions that oauthlib lacks. One text for all causes of invalid_grant, to give attackers no hint.
_DESCRIPTIONS = {
    "invalid_client": "Unknown client, or wrong client secret.",
    "invalid_grant": "The code, refresh token or code_verifier does not fit.",
    "invalid_request": "The request lacks a parameter or has one twice.",
    "invalid_scope": "The scope is not one that was granted.",
}


@method_decorator([csrf_exempt, sensitive_post_parameters()], name="dispatch")
class FormEndpoint(View):
    """Base of form-encoded endpoints, before a view of the toolkit; OAuth2Error and TooManyRequests become responses.

    form        parameters of the valid form; empty ones count as omitted
    client_id   claimed by the request, for counting; "" without one. Wrong credentials are refused later.
    """

    form: dict[str, str]
    client_id: str

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if problem := form_problem(request):
            return problem
        self.form = {name: str(value) for name, value in parameters_given(request).items()}
        self.client_id = self._client_id()
        try:
            rate_limits.check_client(self.client_id, client_address(request))
            response = super().dispatch(request, *args, **kwargs)
            assert isinstance(response, HttpResponse)
            if response.status_code in {200, 201}:
                return no_store(response)
            return self._refusal(response.status_code, json.loads(response.content))
        except OAuth2Error as refused:
            return self._refusal(refused.status_code, dict(refused.twotuples))
        except errors.TooManyRequests as limited:
            return slow_down(limited)

    def count_guess(self, what: str) -> None:
        """Count an unknown token or code. Raises TooManyRequests for a client that has sent too many."""
        rate_limits.count_guess(f"{what}:{self.client_id}", client_address(self.request))

    def _client_id(self) -> str:
        try:
            authorization = self.request.META.get("HTTP_AUTHORIZATION", "")
            credentials = credentials_read(authorization, self.form)
        except OAuth2Error:
            return ""
        return credentials.client_id if credentials else ""

    def _refusal(self, status: int, content: dict[str, str]) -> HttpResponse:
        headers = {}
        if status == 401:
            rate_limits.note_client_failure(self.client_id, client_address(self.request))
            # RFC 6749, 5.2: the challenge names the scheme that the client used.
            headers["WWW-Authenticate"] = 'Basic realm="id"'
        elif content["error"] == "invalid_grant" and (
            limited := rate_limits.guess_refusal(f"grant:{self.client_id}", client_address(self.request))
        ):
            return slow_down(limited)
        elif content["error"] == "use_dpop_nonce":
            headers["DPoP-Nonce"] = nonce_now()
        return error_response(status, content["error"], content.get("error_description", ""), headers)


def form_problem(request: HttpRequest) -> HttpResponse | None:
    """A problem of the form, independent of the grant (RFC 6749, 3.2), or None."""
    if request.method != "POST":
        return error_response(405, "invalid_request", "Use POST.", {"Allow": "POST"})
    # An empty body needs no content type: the error is its missing parameters.
    is_empty = not request.content_type and request.META.get("CONTENT_LENGTH") in (None, "", "0")
    if request.content_type != FORM and not is_empty:
        return error_response(400, "invalid_request", f"The body must be {FORM}.")
    if request.META.get("QUERY_STRING"):
        return error_response(400, "invalid_request", "The parameters belong in the body; the URL may not have any.")
    if is_too_long(request):
        return error_response(413, "invalid_request", f"The body may have {MAX_BYTES} bytes.")
    try:
        names = repeated(parameters_given(request))
    except UnreadableForm as unreadable:
        return error_response(400, "invalid_request", str(unreadable))
    return error_response(400, "invalid_request", f"The body has {names[0]} more than once.") if names else None


def error_response(status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An error response (RFC 6749, 5.2)."""
    content = {"error": error, "error_description": description or _DESCRIPTIONS.get(error, error)}
    return no_store(JsonResponse(content, status=status, headers=dict(headers or {})))


def slow_down(limited: errors.TooManyRequests) -> HttpResponse:
    """The refusal of a client beyond a limit."""
    return error_response(429, "slow_down", english(limited), limited.headers())


def english(error: errors.PlatformError) -> str:
    """Its message for error_description, which has ASCII characters only (RFC 6749, 5.2)."""
    with translation.override("en"):
        return error.message
