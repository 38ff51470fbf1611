"""The size limits of request bodies, and the check for known senders."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import parse_cookie

from foundation import errors
from identity.browser_sessions import SessionStore
from identity.credentials import read_credential
from identity.rate_limits import count_guess
from identity.token_identity import identify

logger = logging.getLogger("platform.serving")

_SERVICE = "/api/domain/odata/"


def takes_data(environ: dict[str, Any]) -> bool:
    """Whether the request is for the Domain API, which refuses a missing body in its own error format."""
    path: str = environ["PATH_INFO"]
    return path.startswith(_SERVICE)


def max_bytes(environ: dict[str, Any]) -> int:
    """The longest body that is received."""
    limit: int = settings.MAX_BODY_BYTES if takes_data(environ) else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return limit


def is_known(environ: dict[str, Any]) -> bool:
    """Whether the request has a valid token or, for a page, the cookie of a logged-in session.

    Raises TooManyRequests for an address that tries session keys. Wrong tokens are counted by the Domain API, which
    answers their requests.
    """
    try:
        if takes_data(environ):
            identify(read_credential(environ))
            return True
        session = SessionStore(parse_cookie(environ.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME))
        if SESSION_KEY in session:
            return True
        if session.key_is_unknown:
            count_guess("session-key", environ["REMOTE_ADDR"])
        return False
    except errors.TooManyRequests:
        raise
    except errors.PlatformError:
        return False
    except Exception:
        # The database is unavailable, for example: the application fails for the same reason and reports it.
        logger.warning("could not tell who sends a body", exc_info=True)
        return False
