"""Base of the JSON views. Separate from identity.rest, which the framework's own views import."""

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
        """Refuse unsupported methods before authentication."""
        if request.method not in self.allowed_methods:
            raise errors.MethodNotAllowed(request.method or "", self.allowed_methods)
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Set Cache-Control where the view has not."""
        result = super().finalize_response(request, response, *args, **kwargs)
        result.headers.setdefault("Cache-Control", "no-store")
        if isinstance(auth := getattr(request, "_auth", None), CallContext):
            position_note([auth.session_id])  # later reads from a replica must not be older
        return result


class PublicView(PlatformView):
    """A public view, which ignores credentials."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
