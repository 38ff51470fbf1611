"""Absolute addresses of this instance, and its id site's issuer (spec 00, "Base addresses")."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import validate_host

ID_PATH = "/id"


def base_url(request: HttpRequest) -> str:
    """The configured public base URL, else the one by which the request came; no trailing slash."""
    configured: str = settings.BASE_URL
    return configured or f"{request.scheme}://{request.get_host()}"


def link_base_url(request: HttpRequest) -> str:
    """The root of a link that is mailed: as `base_url`, but a port in the Host header must be this instance's.

    The hosts that a request may name are checked with any port. On another port of the host somebody else may listen,
    who would get the link's secret.
    """
    name, colon, port = request.get_host().rpartition(":")
    has_port = colon and port.isdigit()  # what follows the last colon of a bare IPv6 address ends in a bracket
    if settings.BASE_URL or not has_port or port == str(settings.PORT):
        return base_url(request)
    return f"{request.scheme}://{name}:{settings.PORT}"


def issuer(request: HttpRequest) -> str:
    """`iss` of what this instance issues (OIDC Discovery, 3)."""
    return base_url(request) + ID_PATH


def is_issuer(text: str) -> bool:
    """Whether a token's `iss` is this instance.

    Without a configured base URL an instance is whatever name it is called by, so every allowed host counts; the
    signature already proves where the token comes from.
    """
    if settings.BASE_URL:
        return bool(text == settings.BASE_URL + ID_PATH)
    parts = urlsplit(text)
    if parts.path != ID_PATH or parts.scheme not in {"http", "https"}:
        return False
    hosts: list[str] = settings.ALLOWED_HOSTS
    return validate_host(parts.hostname or "", hosts) or validate_host(f"[{parts.hostname}]", hosts)


def client_address(request: HttpRequest) -> str:
    """The address of the other end of the connection; the web server applies what trusted proxies say."""
    return str(request.META.get("REMOTE_ADDR", ""))
