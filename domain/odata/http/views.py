"""HTTP views of the Domain API: Django request → ReceivedRequest, ODataResponse → Django response."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import HttpHeaders
from django.utils.encoding import escape_uri_path
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import ODataResponse, ReceivedRequest, version_of_refusal
from domain.odata.service import handler
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.streamed_responses import PushedResponse
from foundation.wsgi import HAS_CHUNKED_BODY
from identity.instance import base_url
from identity.rest import CallerThrottle, TokenAuthentication, context_of

SERVICE_PATH = "/api/domain/odata/"
#: Maximum of a GET's path and query together (spec 02, 2.6).
MAX_URL_BYTES = 8192
_NAMED_PATH = 200
#: Characters that `escape_uri_path` leaves as they are; most paths have no others.
_UNESCAPED = re.compile(r"[A-Za-z0-9/:@&+$,_.!~*'()-]*", re.ASCII)


class BytesParser(BaseParser):
    """The body as bytes."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """The whole body. Raises PayloadTooLarge, BadRequest."""
        return read_body(stream)


class FileParser(BaseParser):
    """The body as a temporary file: an import may be too large for memory."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """The file. Raises PayloadTooLarge, BadRequest."""
        return spool_body(stream)


class ODataViewRequest(Request):
    """REST framework's request, reduced to what the service needs. The view sets `user` and `auth`.

    It has no parser context, which refers to the request: only the garbage collector could free such a cycle.
    """

    user: Any = None
    auth: Any = None
    authenticators = (TokenAuthentication(),)
    _parsers = (BytesParser(), FileParser())

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.method = request.method

    @property
    def data(self) -> Any:
        """The body: bytes, or a file. The service checks its media type, which depends on the resource."""
        return self._parsers[_is_import(self._request)].parse(self._request)


#: Shared instances: creating them for each request would take 2 % of a keyed read.
_PERMISSIONS: list[BasePermission] = [IsAuthenticated()]
_THROTTLES: list[BaseThrottle] = [CallerThrottle()]


class ODataView(APIView):
    """The view of every URL under the service root. The service checks methods and media types by target.

    The framework takes 7 μs of the 150 μs of a keyed read.
    """

    #: Empty: the service sets all headers.
    default_response_headers: dict[str, str] = {}

    def get_permissions(self) -> list[BasePermission]:
        return _PERMISSIONS

    def get_throttles(self) -> list[BaseThrottle]:
        return _THROTTLES

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> ODataViewRequest:
        return ODataViewRequest(request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the URL, the caller and the rate limits. The service negotiates media type and OData version."""
        check_url(request._request)
        self.perform_authentication(request)
        self.check_permissions(request)
        self.check_throttles(request)

    def perform_authentication(self, request: Request) -> None:
        """Set user and auth."""
        request._authenticate()  # type: ignore[attr-defined]  # what `request.user` calls

    def respond(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """Call the service."""
        http = request._request
        check_encoding(http)
        given: Any = request.data
        if isinstance(given, bytes):
            body, body_file = given, None
            check_whole(http, body)
        else:
            body, body_file = b"", given
        received = ReceivedRequest(
            method=http.method or "",
            path=raw_path(http),
            query=http.META.get("QUERY_STRING", ""),
            headers=lower_headers(http),
            body=body,
            context=context_of(request),
            service_root=service_root(http),
            body_file=body_file,
        )
        try:
            response = handler.handle(received)
            if response.push is not None:
                return PushedResponse(response.push, status=response.status, headers=response.headers)
            return http_response(response)
        finally:
            if body_file is not None:
                body_file.close()

    get = head = post = put = patch = delete = options = trace = http_method_not_allowed = respond

    def handle_exception(self, exc: Exception) -> Any:
        """The error response to a request that has not reached the service."""
        response = super().handle_exception(exc)
        response.headers["OData-Version"] = version_of_refusal(lower_headers(self.request._request))
        return response


def _is_import(request: HttpRequest) -> bool:
    """Whether the body may be too large for memory."""
    return request.method == "POST" and raw_path(request).lower() in ("import", "import()")


def service_root(request: HttpRequest) -> str:
    """Absolute URL of the service root, from the configured public base URL, else from the request."""
    return f"{base_url(request)}{SERVICE_PATH}"


def raw_path(request: HttpRequest) -> str:
    """The path below the service root as sent, or re-encoded if the server provides only the decoded path.

    Re-encoding loses nothing: names and keys need no escaping, and encoded slashes occur only in quoted literals.
    """
    raw: str = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    if raw.startswith("/"):
        path = raw.partition("?")[0]
    else:
        path = request.path_info
        path = path if _UNESCAPED.fullmatch(path) else escape_uri_path(path)
    _, _, behind = path.partition(SERVICE_PATH.rstrip("/"))
    return behind.strip("/")


def check_url(request: HttpRequest) -> None:
    """Raise UrlTooLong for a GET that should be a POST (spec 02, 2.6). Next and delta links may be longer."""
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
    if HAS_CHUNKED_BODY not in request.META:
        return
    media = request.content_type or ""
    shows_its_end = media.endswith("json") or media.startswith("multipart/")
    if (body and not shows_its_end) or (request.method == "POST" and not body.strip()):
        raise errors.LengthRequired(errors.LENGTH_REQUIRED)


def read_body(request: HttpRequest) -> bytes:
    """The whole body. Raises PayloadTooLarge beyond settings.MAX_BODY_BYTES."""
    if (request.META.get("CONTENT_LENGTH") or "0") == "0":
        return b""
    _check_length(request, settings.MAX_BODY_BYTES)
    try:
        # Not request.body, which has the size limit of forms.
        return request.read()
    except OSError as exc:
        raise invalid_body(Message("the connection closed before the whole body arrived")) from exc


def _check_length(request: HttpRequest, most: int) -> None:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and int(length) > most:
        raise errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, most)


def spool_body(request: HttpRequest) -> BinaryIO:
    """The whole body in a temporary file. Raises PayloadTooLarge beyond settings.MAX_IMPORT_BYTES."""
    most = settings.MAX_IMPORT_BYTES
    _check_length(request, most)
    file = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=1 << 20))  # noqa: SIM115  (closed by the view)
    length, size = request.META.get("CONTENT_LENGTH") or "", 0
    try:
        while block := request.read(1 << 16):
            size += len(block)
            if size > most:
                raise errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, most)
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
    if response.error is not None:
        result.error_summary = response.error  # type: ignore[attr-defined]  # for the record of failed requests
        result.failed_parts = response.failed_parts  # type: ignore[attr-defined]
    return result
