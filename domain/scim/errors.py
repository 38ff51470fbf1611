"""SCIM error responses (RFC 7644, 3.12), also for errors of the platform."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import UnsupportedMediaType, ValidationError
from rest_framework.response import Response

from domain.odata.http.exceptions import exception_handler, known_error
from foundation import errors

_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"
_TAKEN = (errors.DUPLICATE_VALUE, errors.LOGIN_USED)
_IN_USE = (errors.REFERENCE_IN_USE,)


class ScimError(Exception):
    """A SCIM error: HTTP status, text for people, and scimType; "" if the RFC defines none."""

    def __init__(self, status: int, detail: str, scim_type: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.scim_type = scim_type


def failure_response(failure: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler. The platform's handler logs unexpected errors and returns 500."""
    if isinstance(failure, ScimError):
        return _response(failure.status, errors.reason(failure), failure.scim_type)
    if isinstance(failure, ValidationError):
        return _response(400, _sentence(failure.detail), "invalidValue")
    request = context["request"]
    error = known_error(failure, request._request)
    if isinstance(failure, UnsupportedMediaType):
        error = errors.UnsupportedMediaType(
            errors.UNSUPPORTED_MEDIA_TYPE, "application/scim+json", request.content_type
        )
    if not isinstance(error, errors.PlatformError):
        return exception_handler(failure, context)
    status, scim_type = error.status, ""
    if isinstance(error, errors.Refused):
        status = 409 if error.code in (*_TAKEN, *_IN_USE) else 400
        scim_type = "uniqueness" if error.code in _TAKEN else "invalidValue" if status == 400 else ""
    elif error.code is errors.INVALID_BODY:
        scim_type = "invalidSyntax"
    response = _response(status, error.message, scim_type)
    for name, value in error.headers().items():
        response.headers[name] = value
    return response


def _response(status: int, detail: str, scim_type: str) -> Response:
    body: dict[str, Any] = {"schemas": [_SCHEMA], "status": str(status), "detail": detail}
    if scim_type:
        body["scimType"] = scim_type
    return Response(body, status=status)


def _sentence(detail: Any, at: str = "") -> str:
    """The first problem of a serializer, with its attribute."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        return _sentence(inner, at if name == "non_field_errors" else f"{at}.{name}" if at else str(name))
    if isinstance(detail, list):
        return _sentence(next((each for each in detail if each), ""), at)
    return f"{at}: {detail}" if at else str(detail)


__all__ = ["ScimError", "failure_response"]
