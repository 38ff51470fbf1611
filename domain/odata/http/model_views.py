"""Doors to the model besides $metadata (spec 02, 2.1): OpenAPI, plain JSON, and the reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse

from domain.model import custom_properties
from domain.odata.http.views import http_response, lower_headers
from domain.odata.message.failures import failure
from domain.odata.message.message import JSON, ODataRequest, ODataResponse, json_response
from domain.odata.metadata import model_documents, model_json, openapi
from foundation import errors, stamps
from identity.authentication import authenticate
from identity.context import CallContext
from identity.languages import speaking

View = Callable[..., HttpResponse]


def _json_view(*methods: str) -> Callable[[Callable[..., ODataResponse]], View]:
    """A view of the API outside the service root: its methods are checked, its failures rendered (spec 07)."""

    def decorated(answer: Callable[..., ODataResponse]) -> View:
        def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            with speaking(request) as language:
                try:
                    if request.method not in methods:
                        raise errors.MethodNotAllowed(request.method or "", methods)
                    response = answer(request, **kwargs)
                except Exception as error:
                    context = CallContext(user=None, request_id=getattr(request, "request_id", ""))
                    asked = ODataRequest(request.method or "", request.path, "", {}, b"", context, "")
                    response = failure(asked, error)
                response.headers.setdefault("Content-Language", language)
            return http_response(response)

        return view

    return decorated


@_json_view("GET", "HEAD")
def openapi_json(request: HttpRequest) -> ODataResponse:
    """The OpenAPI document: the standard model for anybody, with custom properties for who shows a token."""
    custom = "HTTP_AUTHORIZATION" in request.META
    if custom:
        authenticate(request)
    return model_documents.document_response(openapi.openapi_document(custom=custom), JSON, lower_headers(request))


@_json_view("GET", "HEAD")
def standard_model(request: HttpRequest, set_name: str = "") -> ODataResponse:
    """What is shipped, for anybody."""
    details = _details(request)

    def write() -> bytes:
        found = model_json.model_of_set(set_name, None) if set_name else model_json.model(None, details=details)
        return orjson.dumps(found)

    if set_name:
        # Names come from callers; only whole documents are kept.
        document = model_documents.Document(write())
    else:
        document = model_documents.model_document(f"standardmodel {details}", write)
    return model_documents.document_response(document, JSON, lower_headers(request))


@_json_view("GET", "HEAD")
def current_model(request: HttpRequest, set_name: str = "") -> ODataResponse:
    """What this caller finds on this instance."""
    context = authenticate(request)
    if set_name:
        found = model_json.model_of_set(set_name, context)
    else:
        found = model_json.model(context, details=_details(request))
    return json_response(found, headers={"Cache-Control": "no-store"})


def _details(request: HttpRequest) -> bool:
    return request.GET.get("details", "").lower() in ("true", "1")


@_json_view("GET", "POST")
def reset(request: HttpRequest) -> ODataResponse:
    """Drop what is kept of the model: on every process of the machine from the next request on.

    Definitions of custom properties, documents and query plans are all kept under this stamp.
    """
    authenticate(request)
    stamps.bump(custom_properties.STAMP)
    return json_response({"success": True}, headers={"Cache-Control": "no-store"})
