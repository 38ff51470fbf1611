"""Finds the caller of a request before the application runs: the scheduler has a queue for each caller.

The caller of a credential, a token or a session cookie, is looked up in the database once and cached. For requests
without a valid credential the caller is their address.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import parse_cookie

from foundation import errors
from identity.browser_sessions import SessionStore
from identity.credentials import read_credential
from identity.rate_limits import count_guess, counted_as
from identity.token_identity import identify
from platform_site.serving.bodies import takes_data

logger = logging.getLogger("platform.serving")

#: Lifetime of a cached credential, and maximum number of cached ones.
_KNOWN_SECONDS: Final = 60.0
_MAX_KNOWN: Final = 20_000


class Callers:
    """Cached callers by credential."""

    def __init__(self) -> None:
        # Python's hash of a credential (randomly keyed) → name of the caller, time.
        self._known: dict[int, tuple[str, float]] = {}

    def name(self, environ: dict[str, Any]) -> tuple[str, bool]:
        """The queue of the request, and whether `find` may return a better one."""
        credential = _credential(environ)
        if credential is not None:
            caller, found = self._known.get(hash(credential), ("", 0.0))
            if caller and time.monotonic() - found < _KNOWN_SECONDS:
                return caller, False
        return _address(environ), credential is not None

    def find(self, environ: dict[str, Any]) -> str:
        """Look the credential up in the database; returns the queue of the request."""
        try:
            caller = _caller(environ)
        except errors.PlatformError:
            caller = ""
        except Exception:
            # For example without database: the application will fail for the same reason and report it.
            logger.warning("could not find the caller of a request", exc_info=True)
            caller = ""
        if caller:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[hash(_credential(environ))] = (caller, time.monotonic())
        return caller or _address(environ)

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Whether the request has a valid token or, for a page, the cookie of a logged-in session.

        Raises TooManyRequests for an address that guesses session keys: `find` counts no guesses, because the
        application counts those of the requests that it handles.
        """
        if self.find(environ) != _address(environ):
            return True
        if not takes_data(environ):
            session = SessionStore(_session_key(environ))
            session.get(SESSION_KEY)  # loads it
            if session.key_is_unknown:
                count_guess("session-key", environ["REMOTE_ADDR"])
        return False


def _address(environ: dict[str, Any]) -> str:
    """The address as for rate limits: a /64 network of IPv6 is one sender."""
    return f"address {counted_as(environ['REMOTE_ADDR'])}"


def _credential(environ: dict[str, Any]) -> str | None:
    """The token of a request of the Domain API or SCIM, or the session key of another one; None without one.

    Not the header, whose many spellings of one token would each be looked up and cached.
    """
    if not takes_data(environ):
        return _session_key(environ)
    try:
        return read_credential(environ)
    except errors.PlatformError:
        return None


def _session_key(environ: dict[str, Any]) -> str | None:
    cookies: str = environ.get("HTTP_COOKIE", "")
    if settings.SESSION_COOKIE_NAME not in cookies:
        return None
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)


def _caller(environ: dict[str, Any]) -> str:
    """The id of the application or user; "" for none."""
    if takes_data(environ):
        identity = identify(_credential(environ) or "")
        return identity.application_id if identity.is_service else identity.caller.id
    return str(SessionStore(_session_key(environ)).get(SESSION_KEY) or "")
