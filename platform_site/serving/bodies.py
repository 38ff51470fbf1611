"""Size limits of request bodies."""

from __future__ import annotations

from typing import Any

from django.conf import settings

_SERVICE = "/api/domain/odata/"
_IMPORTS = (f"{_SERVICE}import", f"{_SERVICE}import()")
_PROVISIONING = "/scim/v2/"


def takes_data(environ: dict[str, Any]) -> bool:
    """Whether the request is for the Domain API or SCIM, whose callers send tokens, and which refuse a missing body in
    their own error format.
    """
    path: str = environ["PATH_INFO"]
    return path.startswith((_SERVICE, _PROVISIONING))


def max_bytes(environ: dict[str, Any]) -> int:
    """The maximum size of the body."""
    path: str = environ["PATH_INFO"]
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if path.startswith(_SERVICE):
        limit = settings.MAX_IMPORT_BYTES if path.rstrip("/").lower() in _IMPORTS else settings.MAX_BODY_BYTES
    return limit
