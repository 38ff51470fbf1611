"""Size limits of request bodies."""

from __future__ import annotations

from typing import Any

from django.conf import settings

_SERVICE = "/api/domain/odata/"


def takes_data(environ: dict[str, Any]) -> bool:
    """Whether the request is for the Domain API, which refuses a missing body in its own error format."""
    path: str = environ["PATH_INFO"]
    return path.startswith(_SERVICE)


def max_bytes(environ: dict[str, Any]) -> int:
    """The maximum size of the body."""
    limit: int = settings.MAX_BODY_BYTES if takes_data(environ) else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return limit
