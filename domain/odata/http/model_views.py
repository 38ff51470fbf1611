"""Views of the model besides $metadata (spec 02, 2.1): OpenAPI, plain JSON, and the reset of caches."""

from __future__ import annotations

from functools import partial

import orjson
from django.http import HttpResponse
from django.utils.translation import get_language
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from domain.dataset.checks import access
from domain.model import custom_properties
from domain.model.registry import repositories
from domain.odata.http.views import http_response, lower_headers
from domain.odata.message.message import JSON
from domain.odata.metadata import discovery, model_documents, model_json, openapi
from domain.odata.metadata.model_documents import Document
from foundation import cache_versions, errors
from identity.rest import context_of, has_credential
from identity.rest_views import PlatformView, PublicView


class OpenApi(PlatformView):
    """The OpenAPI document: the standard model without a token, and custom properties with one.

    `?namespace=Crm.Sales` selects a part of it.
    """

    permission_classes = ()

    def get_authenticators(self) -> list[BaseAuthentication]:
        """No authenticators without a token: an invalid cookie of an older client must not cause a 401."""
        return super().get_authenticators() if has_credential(self.request) else []

    def get(self, request: Request) -> HttpResponse:
        namespace = request.query_params.get("namespace", "")
        return _document(request, openapi.openapi_document(custom=request.auth is not None, namespace=namespace))


class DetailsSerializer(serializers.Serializer[None]):
    """The query option `details`: whether the document has all members."""

    details = serializers.BooleanField(default=False)


class StandardModel(PublicView):
    """The standard model as an array of repositories (spec 14, 14.3)."""

    def get(self, request: Request, set_name: str = "") -> HttpResponse:
        details = _details(request)
        if set_name:
            # Not cached: callers choose the names, so the cache would be unbounded.
            return _document(request, Document(orjson.dumps(discovery.model_of_set(set_name, None))))
        key = f"standardmodel {details} {get_language()}"
        write = partial(discovery.model, None, details=details)
        return _document(request, model_documents.model_document(key, lambda: orjson.dumps(write())))


class CurrentModel(PlatformView):
    """The sets of this instance that the caller may read, as an array of repositories (spec 14, 14.3)."""

    def get(self, request: Request, set_name: str = "") -> Response:
        if set_name:
            return Response(discovery.model_of_set(set_name, context_of(request)))
        return Response(discovery.model(context_of(request), details=_details(request)))


class SiteStandardModel(PublicView):
    """The standard model for the scripts of the pages under /api/."""

    def get(self, request: Request) -> HttpResponse:
        write = partial(model_json.model, None)
        return _document(request, model_documents.model_document("site model", lambda: orjson.dumps(write())))


class SiteCurrentModel(PlatformView):
    """The sets that the caller may read, for the scripts of the pages under /api/."""

    def get(self, request: Request) -> Response:
        return Response(model_json.model(context_of(request)))


class LegacyLogin(PublicView):
    """Refuses the reference platform's older login; the error names the replacement (spec 14, 14.4).

    The body with the password is not read.
    """

    def get(self, request: Request) -> Response:
        """Raises Unauthorized, whatever the credentials."""
        raise errors.Unauthorized(errors.LEGACY_CREDENTIALS, request.path)

    post = get


class Reset(PlatformView):
    """Drops the caches of the model in every process of the machine, from the next request on.

    Definitions of custom properties, documents and query plans are cached under this cache version. Rendering them
    again is expensive, so it takes the permission to change custom properties, whose saves drop the caches as well.
    """

    http_method_names = ["get", "post"]

    def post(self, request: Request) -> Response:
        access.require(context_of(request), repositories["Systems.Bpm.CustomProperties"], "update")
        cache_versions.bump(custom_properties.CACHE_VERSION)
        return Response({"success": True})

    get = post


def _document(request: Request, document: Document) -> HttpResponse:
    return http_response(model_documents.document_response(document, JSON, lower_headers(request._request)))


def _details(request: Request) -> bool:
    query = DetailsSerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    return bool(query.validated_data["details"])
