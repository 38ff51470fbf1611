"""Base URLs and issuer of this instance (spec 00, "Base addresses")."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.request import validate_host

ID_PATH = "/id"
#: Host header → the ALLOWED_HOSTS that allowed it, and the result of `get_host`
_allowed_hosts: dict[str, tuple[list[str], str]] = {}
_MAX_ALLOWED_HOSTS = 100


def requested_host(request: HttpRequest) -> str:
    """As `request.get_host()`, which takes a tenth of a keyed read: cached with the list of allowed hosts.

    Raises DisallowedHost.
    """
    header = request.META.get("HTTP_HOST", "")
    if not header:
        return request.get_host()
    allowed, host = _allowed_hosts.get(header, (None, ""))
    if allowed is not settings.ALLOWED_HOSTS:
        host = request.get_host()
        if len(_allowed_hosts) >= _MAX_ALLOWED_HOSTS:
            _allowed_hosts.clear()
        _allowed_hosts[header] = settings.ALLOWED_HOSTS, host
    return host


def base_url(request: HttpRequest) -> str:
    """The configured public base URL, else the host of the request; no trailing slash."""
    configured: str = settings.BASE_URL
    return configured or f"{request.scheme}://{requested_host(request)}"


def link_base_url(request: HttpRequest) -> str:
    """Base URL of a mailed link: as `base_url`, but a port in the Host header must be this instance's.

    ALLOWED_HOSTS does not check the port. Another server on another port of the host would receive the link's secret.
    """
    name, colon, port = requested_host(request).rpartition(":")
    has_port = colon and port.isdigit()  # In a bare IPv6 address the text after the last colon ends in a bracket
    if settings.BASE_URL or not has_port or port == str(settings.PORT):
        return base_url(request)
    return f"{request.scheme}://{name}:{settings.PORT}"


def database_name() -> str:
    """The main database's name; of a file without its extension."""
    return Path(str(connection.settings_dict["NAME"])).stem


def issuer(request: HttpRequest) -> str:
    """The `iss` of issued tokens (OIDC Discovery, 3)."""
    return base_url(request) + ID_PATH


def is_issuer(text: str) -> bool:
    """Whether a token's `iss` is this instance.

    Without a configured base URL every allowed host counts; the signature already proves the origin of the token.
    """
    if settings.BASE_URL:
        return bool(text == settings.BASE_URL + ID_PATH)
    parts = urlsplit(text)
    if parts.path != ID_PATH or parts.scheme not in {"http", "https"}:
        return False
    hosts: list[str] = settings.ALLOWED_HOSTS
    return validate_host(parts.hostname or "", hosts) or validate_host(f"[{parts.hostname}]", hosts)


def client_address(request: HttpRequest) -> str:
    """The peer address of the connection; the web server has applied the headers of trusted proxies."""
    return str(request.META.get("REMOTE_ADDR", ""))
