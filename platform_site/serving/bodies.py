"""The size limits of request bodies, and the check for known senders."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import parse_cookie

from foundation import errors
from identity.credentials import read_credential
from identity.token_identity import identify

logger = logging.getLogger("platform.serving")

_API = "/api/"
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
    """Whether the request has a valid token or, for a page, the cookie of a logged-in session."""
    try:
        if environ["PATH_INFO"].startswith(_API) and "HTTP_AUTHORIZATION" in environ:
            identify(read_credential(environ))
            return True
        key = parse_cookie(environ.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME)
        return bool(key) and SESSION_KEY in import_module(settings.SESSION_ENGINE).SessionStore(key)
    except errors.PlatformError:
        return False
    except Exception:
        # The database is unavailable, for example: the application fails for the same reason and reports it.
        logger.warning("could not tell who sends a body", exc_info=True)
        return False
