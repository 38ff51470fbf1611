"""Whose request it is, before the application has seen it: callers take turns (foundation.turns).

What a request shows to say who calls, a token or the cookie of a session, is looked up once; the next request that
shows the same is from the same caller. What strangers send counts for their address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import parse_cookie

from foundation import errors
from identity.browser_sessions import SessionStore
from identity.credentials import read_credential
from identity.token_identity import identify

_API: Final = "/api/"
_TOKENS: Final = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")
_KEPT: Final = 20_000


class Callers:
    """The callers that this process knows."""

    def __init__(self) -> None:
        # By Python's own hash, whose key is secret, of what they show.
        self._known: dict[int, str] = {}

    def caller_of(self, environ: Mapping[str, Any]) -> tuple[str, bool]:
        """(a name that all requests of one caller share, whether `identify` would find a better one)."""
        shown = _shown(environ)
        known = self._known.get(shown) if shown else None
        return (f"address {environ['REMOTE_ADDR']}", shown != 0) if known is None else (known, False)

    def identify(self, environ: Mapping[str, Any]) -> None:
        """Ask who calls. A caller who is not found stays a stranger, and is told so by the application."""
        caller = _caller(environ)
        if caller:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[_shown(environ)] = caller


def _shown(environ: Mapping[str, Any]) -> int:
    """Zero for nothing."""
    if environ["PATH_INFO"].startswith(_API):
        tokens = [environ[name] for name in _TOKENS if name in environ]
        if tokens:
            return hash(tuple(tokens))
    key = _session_key(environ)
    return hash(key) if key else 0


def _session_key(environ: Mapping[str, Any]) -> str | None:
    cookies: str = environ.get("HTTP_COOKIE", "")
    if settings.SESSION_COOKIE_NAME not in cookies:
        return None
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)


def _caller(environ: Mapping[str, Any]) -> str:
    if environ["PATH_INFO"].startswith(_API) and any(name in environ for name in _TOKENS):
        try:
            identity = identify(read_credential(environ))
        except errors.PlatformError:
            return ""
        return identity.application_id if identity.is_service else identity.caller.id
    return str(SessionStore(_session_key(environ)).get(SESSION_KEY, ""))
