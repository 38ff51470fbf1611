"""HTTP views of the Domain API: Django request → ReceivedRequest, ODataResponse → Django response."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import HttpHeaders
from django.utils.decorators import classonlymethod
from django.utils.encoding import escape_uri_path
from rest_framework.views import APIView

from domain.odata.message.failures import failure
from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import ODataResponse, ReceivedRequest, version_of_refusal
from domain.odata.service import handler
from foundation import errors
from foundation.long_polls import LongPollResponse
from foundation.messages import TranslatableMessage as Message
from foundation.wsgi import CAME_IN_CHUNKS
from identity.authentication import authenticate
from identity.context import CallContext
from identity.instance import base_url
from identity.languages import activate_request_language

SERVICE_PATH = "/api/domain/odata/"
#: Maximum of a GET's path and query together (spec 02, 2.6).
MAX_URL_BYTES = 8192
_NAMED_PATH = 200


class ODataView(APIView):
    """Every URL under the service root.

    DRF's Request, negotiation and exception handling are not used: OData has its own, and they would cost more than a
    keyed read.
    """

    @classonlymethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """The view, without CSRF checks: callers authenticate by tokens, not cookies."""
        return super().as_view(**initkwargs)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse | LongPollResponse:
        """Authenticate, read the body, call the service."""
        headers = lower_headers(request)
        body, body_file = b"", None
        try:
            check_url(request)
            context = authenticate(request)
            check_encoding(request)
            if _is_import(request):
                body_file = spool_body(request)
            else:
                body = read_body(request)
                check_whole(request, body)
        except Exception as error:
            # The caller is unknown, but the request itself names a language.
            with activate_request_language(request) as language:
                refusal = failure(error, anonymous(request), f"{request.method} {request.path}")
            return http_response(refusal, {"Content-Language": language, "OData-Version": version_of_refusal(headers)})
        received = ReceivedRequest(
            method=request.method or "",
            path=raw_path(request),
            query=request.META.get("QUERY_STRING", ""),
            headers=headers,
            body=body,
            context=context,
            service_root=service_root(request),
            body_file=body_file,
        )
        try:
            response = handler.handle(received)
            if response.poll is not None:
                return LongPollResponse(response.poll, status=response.status, headers=response.headers)
            return http_response(response)
        finally:
            if body_file is not None:
                body_file.close()


def _is_import(request: HttpRequest) -> bool:
    """Whether the body may be too large for memory."""
    return request.method == "POST" and raw_path(request).lower() in ("import", "import()")


def anonymous(request: HttpRequest) -> CallContext:
    """The context of an unauthenticated caller."""
    return CallContext(user=None, request_id=getattr(request, "request_id", ""))


def service_root(request: HttpRequest) -> str:
    """Absolute URL of the service root, from the configured public base URL, else from the request."""
    return f"{base_url(request)}{SERVICE_PATH}"


def raw_path(request: HttpRequest) -> str:
    """The path below the service root as sent, or re-encoded if the server provides only the decoded path.

    That loses nothing: names and keys of this model need no escaping, and encoded slashes stay in quoted literals.
    """
    raw: str = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    path = raw.partition("?")[0] if raw.startswith("/") else escape_uri_path(request.path_info)
    _, _, behind = path.partition(SERVICE_PATH.rstrip("/"))
    return behind.strip("/")


def check_url(request: HttpRequest) -> None:
    """Raise UrlTooLong for a GET that should be a POST (spec 02, 2.6). Links of this service may be longer."""
    query: str = request.META.get("QUERY_STRING", "")
    if len(query) + len(request.path_info) <= MAX_URL_BYTES or request.method not in ("GET", "HEAD"):
        return
    if "$skiptoken=" in query or "$deltatoken=" in query:
        return
    path = raw_path(request)[:_NAMED_PATH]
    raise errors.UrlTooLong(errors.URL_TOO_LONG, MAX_URL_BYTES, path)


def lower_headers(request: HttpRequest) -> dict[str, str]:
    """Headers with lower-case names."""
    return {
        known: value
        for name, value in request.META.items()
        if (known := _header_names[name] if name in _header_names else _header_name(name)) and isinstance(value, str)
    }


#: Name in the WSGI environ → name of the header; "" for other variables.
_header_names: dict[str, str] = {}
_HEADER_NAMES_KEPT = 1000


def _header_name(name: str) -> str:
    header = (HttpHeaders.parse_header_name(name) or "").lower()
    if len(_header_names) < _HEADER_NAMES_KEPT:
        _header_names[name] = header
    return header


def check_encoding(request: HttpRequest) -> None:
    """Raise UnsupportedMediaType for a compressed body (RFC 9110, 8.4)."""
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ("", "identity"):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding: identity", encoding)


def check_whole(request: HttpRequest, body: bytes) -> None:
    """Raise LengthRequired for a chunked body whose format does not show whether it is complete.

    If a connection breaks, or a chunk is invalid, the web server passes the part before that as the whole body. JSON
    and multipart show where they end. But half a script would run, and EndTransaction without its body commits.
    """
    if CAME_IN_CHUNKS not in request.META:
        return
    media = request.content_type or ""
    shows_its_end = media.endswith("json") or media.startswith("multipart/")
    if (body and not shows_its_end) or (request.method == "POST" and not body.strip()):
        raise errors.LengthRequired(errors.LENGTH_REQUIRED)


def read_body(request: HttpRequest) -> bytes:
    """The whole body. Raises PayloadTooLarge beyond settings.MAX_BODY_BYTES."""
    if (request.META.get("CONTENT_LENGTH") or "0") == "0":
        return b""
    _check_length(request)
    try:
        # Not request.body, which has the size limit of forms.
        return request.read()
    except OSError as exc:
        raise invalid_body(Message("the connection closed before the whole body arrived")) from exc


def _check_length(request: HttpRequest) -> None:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and int(length) > settings.MAX_BODY_BYTES:
        raise errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, settings.MAX_BODY_BYTES)


def spool_body(request: HttpRequest) -> BinaryIO:
    """The whole body in a temporary file. Raises PayloadTooLarge beyond settings.MAX_BODY_BYTES."""
    _check_length(request)
    file = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=1 << 20))  # noqa: SIM115  (closed by the view)
    length, size = request.META.get("CONTENT_LENGTH") or "", 0
    try:
        while block := request.read(1 << 16):
            size += len(block)
            if size > settings.MAX_BODY_BYTES:
                raise errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, settings.MAX_BODY_BYTES)
            file.write(block)
        if length.isdigit() and size < int(length):
            raise ConnectionError("the body is shorter than its Content-Length")
    except Exception as exc:
        file.close()
        if not isinstance(exc, OSError):
            raise
        raise invalid_body(Message("the connection closed before the whole body arrived")) from exc
    file.seek(0)
    return file


def http_response(response: ODataResponse, extra: Mapping[str, str] | None = None) -> HttpResponse:
    """The Django response."""
    headers = {**response.headers, **extra} if extra else response.headers
    result = HttpResponse(response.body, status=response.status, headers=headers)
    if not response.body and "Content-Type" not in headers:
        # Django's own default.
        del result.headers["Content-Type"]
    return result
