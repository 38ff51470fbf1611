"""Renders failures of views as the error of spec 07: settings.REST_FRAMEWORK's EXCEPTION_HANDLER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.settings import api_settings

from domain.odata.http.views import http_response
from domain.odata.message.failures import failure
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext
from identity.languages import activate_request_language


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """The response to a failure in a view of Django REST framework."""
    request: Request = context["request"]
    if isinstance(error, exceptions.UnsupportedMediaType):
        known = ", ".join(parser.media_type for parser in context["view"].parser_classes)
        error = errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, known, request.content_type)
    return failure_response(error, request._request)


def failure_response(error: Exception, request: HttpRequest) -> HttpResponse:
    """The response to a failure, in the language of the request. A bug is logged with its traceback."""
    anonymous = CallContext(user=None, request_id=getattr(request, "request_id", ""))
    with activate_request_language(request) as language:
        response = failure(known_error(error, request), anonymous, f"{request.method} {request.path}")
    return http_response(response, {"Content-Language": language})


def known_error(error: Exception, request: HttpRequest) -> Exception:
    """The PlatformError for an exception of the frameworks; other exceptions unchanged."""
    match error:
        case exceptions.NotAuthenticated():
            return errors.Unauthorized(errors.TOKEN_MISSING)
        case exceptions.ValidationError():
            details = tuple(_details(error.detail))
            first = details[0]
            return errors.BadRequest(first.code, *first.parameters, target=first.target, details=details)
        case DisallowedHost():
            return errors.BadRequest(errors.INVALID_HEADER, "Host", Message("this instance does not serve that name"))
        case RequestDataTooBig():
            return errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        case exceptions.ParseError() | SuspiciousOperation():
            return errors.BadRequest(errors.INVALID_BODY, str(error))
        case exceptions.PermissionDenied():
            return errors.Forbidden(errors.ACCESS_DENIED, error.detail)
        case PermissionDenied():
            return errors.Forbidden(errors.ACCESS_DENIED, request.path)
        case exceptions.NotFound() | Http404():
            return errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
    return error


def _details(problems: Any, target: str = "") -> Iterator[errors.Detail]:
    """The errors of a serializer, nested in lists and dicts, as details whose target is the path of the value."""
    if isinstance(problems, dict):
        for name, inner in problems.items():
            at = target if name == api_settings.NON_FIELD_ERRORS_KEY else f"{target}/{name}" if target else str(name)
            yield from _details(inner, at)
    elif isinstance(problems, list):
        for inner in problems:
            yield from _details(inner, target)
    elif target:
        yield errors.Detail(errors.INVALID_VALUE, (target, str(problems)), target)
    else:
        yield errors.Detail(errors.INVALID_BODY, (str(problems),))
