"""Known browsers, with an earlier login: failed logins in other browsers do not slow them down (spec 01, 1.9).

The cookie is signed, gives no access, and contains the id of its own counter of failures, whose limit is that of an
address.
"""

from __future__ import annotations

import hashlib
import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

_COOKIE = "known_browser"
_SALT = "identity.known_browsers"
_SECONDS = 180 * 24 * 3600


def known_browser_id(request: HttpRequest, login: str) -> str:
    """The id of the browser, if this login has succeeded in it before; else ""."""
    try:
        result = signing.loads(request.COOKIES.get(_COOKIE, ""), salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature:
        return ""
    return str(result["browser"]) if result["login"] == _digest(login) else ""


def browser_remember(response: HttpResponse, login: str) -> None:
    """Set the cookie: the login has succeeded in this browser."""
    response.set_cookie(
        _COOKIE,
        signing.dumps({"login": _digest(login), "browser": secrets.token_hex(8)}, salt=_SALT),
        max_age=_SECONDS,
        path=settings.LOGIN_URL.rpartition("/")[0],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _digest(login: str) -> str:
    return hashlib.sha256(login.strip().casefold().encode()).hexdigest()
