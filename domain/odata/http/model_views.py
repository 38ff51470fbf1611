"""Views of the model besides $metadata (spec 02, 2.1): OpenAPI, plain JSON, and the reset of caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language

from domain.model import custom_properties
from domain.odata.http.views import anonymous, http_response, lower_headers
from domain.odata.message.failures import failure
from domain.odata.message.message import JSON, NO_STORE, ODataResponse, json_response
from domain.odata.metadata import discovery, model_documents, model_json, openapi
from foundation import errors, stamps
from identity.authentication import authenticate
from identity.languages import activate_request_language

View = Callable[..., HttpResponse]


def _json_view(*methods: str) -> Callable[[Callable[..., ODataResponse]], View]:
    """Decorator of an API view outside the service root: checks the method, renders failures (spec 07)."""

    def decorated(answer: Callable[..., ODataResponse]) -> View:
        def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            with activate_request_language(request) as language:
                try:
                    if request.method not in methods:
                        raise errors.MethodNotAllowed(request.method or "", methods)
                    response = answer(request, **kwargs)
                except Exception as error:
                    response = failure(error, anonymous(request), f"{request.method} {request.path}")
                response.headers.setdefault("Content-Language", language)
            return http_response(response)

        return view

    return decorated


@_json_view("GET", "HEAD")
def openapi_json(request: HttpRequest) -> ODataResponse:
    """The OpenAPI document: the standard model without a token, and custom properties with one."""
    custom = "HTTP_AUTHORIZATION" in request.META
    if custom:
        authenticate(request)
    return model_documents.document_response(openapi.openapi_document(custom=custom), JSON, lower_headers(request))


@_json_view("GET", "HEAD")
def standard_model(request: HttpRequest, set_name: str = "") -> ODataResponse:
    """The standard model as an array of repositories; needs no token (spec 14, 14.3)."""
    details = _details(request)
    if set_name:
        # Names come from callers: a cache of them would be unbounded.
        document = model_documents.Document(orjson.dumps(discovery.model_of_set(set_name, None)))
    else:
        document = model_documents.model_document(
            f"standardmodel {details} {get_language()}", lambda: orjson.dumps(discovery.model(None, details=details))
        )
    return model_documents.document_response(document, JSON, lower_headers(request))


@_json_view("GET", "HEAD")
def current_model(request: HttpRequest, set_name: str = "") -> ODataResponse:
    """The sets of this instance that the caller may read, as an array of repositories (spec 14, 14.3)."""
    context = authenticate(request)
    if set_name:
        return json_response(discovery.model_of_set(set_name, context), headers=NO_STORE)
    return json_response(discovery.model(context, details=_details(request)), headers=NO_STORE)


@_json_view("GET", "HEAD")
def site_standard_model(request: HttpRequest) -> ODataResponse:
    """The standard model for the scripts of the pages under /api/; needs no token."""
    document = model_documents.model_document("site model", lambda: orjson.dumps(model_json.model(None, details=True)))
    return model_documents.document_response(document, JSON, lower_headers(request))


@_json_view("GET", "HEAD")
def site_current_model(request: HttpRequest) -> ODataResponse:
    """The sets that the caller may read, for the scripts of the pages under /api/."""
    return json_response(model_json.model(authenticate(request), details=True), headers=NO_STORE)


def _details(request: HttpRequest) -> bool:
    """Whether all members are asked for. Raises BadRequest for another value than true or false."""
    given = request.GET.get("details", "false")
    value = {"true": True, "1": True, "false": False, "0": False, "": False}.get(given.strip().lower())
    if value is None:
        raise errors.BadRequest(errors.INVALID_LITERAL, given, "Edm.Boolean", "details", target="details")
    return value


@_json_view("GET", "HEAD", "POST")
def legacy_login(request: HttpRequest) -> ODataResponse:
    """Refuse the reference platform's older login and name the way to go instead (spec 14, 14.4).

    The body with the password is not read. Raises Unauthorized, whatever the credentials.
    """
    raise errors.Unauthorized(errors.LEGACY_CREDENTIALS, request.path)


@_json_view("GET", "POST")
def reset(request: HttpRequest) -> ODataResponse:
    """Drop the caches of the model in every process of the machine, from the next request on.

    Definitions of custom properties, documents and query plans are cached under this stamp.
    """
    authenticate(request)
    stamps.bump(custom_properties.STAMP)
    return json_response({"success": True}, headers=NO_STORE)
