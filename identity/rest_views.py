"""Base of the views that answer JSON. Apart from identity.rest, which the framework's own views import."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.views import APIView

from foundation import errors
from identity.context import CallContext
from identity.languages import activate_request_language
from identity.session_positions import position_note


class PlatformView(APIView):
    """A view with the platform's errors; responses are not stored unless the view says otherwise."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Respond in the language of the request."""
        with activate_request_language(request) as language:
            response = super().dispatch(request, *args, **kwargs)
        response.headers.setdefault("Content-Language", language)
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse methods that the view lacks before it asks who calls."""
        if request.method not in self.allowed_methods:
            raise errors.MethodNotAllowed(request.method or "", self.allowed_methods)
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Set Cache-Control where the view has not."""
        result = super().finalize_response(request, response, *args, **kwargs)
        result.headers.setdefault("Cache-Control", "no-store")
        if isinstance(auth := getattr(request, "_auth", None), CallContext):
            position_note([auth.session_id])  # what it has seen here, on whichever server
        return result


class PublicView(PlatformView):
    """A view for everybody, which needs no credential and reads none."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
