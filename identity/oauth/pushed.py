"""Stores pushed authorization requests until their response (RFC 9126, 2.2 and 4).

A request_uri is used once: it opens the request for one browser. The login and consent pages need several requests of
the authorization endpoint, so the browser then uses a handle, which is valid until the response.
"""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass

from django.db.models import QuerySet

from foundation.fields import utc_now
from identity.models import PushedRequest, TrustedApplication
from identity.oauth.codes import stored_code

REQUEST_URI_PREFIX = "urn:ietf:params:oauth:request_uri:"
#: Query parameter with the handle.
HANDLE = "_pushed"
LIFETIME_SECONDS = 60
# Time for the login and consent pages; as long as the proof of identity.oauth.fresh_login.
_OPEN_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that a browser has opened."""

    parameters: dict[str, str]
    handle: str


def pushed_request_save(application: TrustedApplication, parameters: dict[str, str]) -> str:
    """Store the parameters; returns the request_uri."""
    token = secrets.token_urlsafe(32)
    PushedRequest.objects.create(
        digest=stored_code(token), application=application, parameters=parameters, expires=_after(LIFETIME_SECONDS)
    )
    return REQUEST_URI_PREFIX + token


def pushed_request_open(client_id: str, request_uri: str) -> OpenRequest | None:
    """Use the request_uri. None if it is unknown, expired, used, or (then it stays unused) another client's."""
    handle = secrets.token_urlsafe(32)
    unused = _live(client_id).filter(digest=stored_code(request_uri.removeprefix(REQUEST_URI_PREFIX)), is_open=False)
    # One statement, so that only one of two browsers with the same request_uri opens it.
    if not unused.update(digest=stored_code(handle), is_open=True, expires=_after(_OPEN_SECONDS)):
        return None
    return pushed_request_load(client_id, handle)


def pushed_request_load(client_id: str, handle: str) -> OpenRequest | None:
    """The opened request with this handle."""
    found = _live(client_id).filter(digest=stored_code(handle), is_open=True).first()
    return OpenRequest(found.parameters, handle) if found else None


def pushed_request_end(handle: str) -> None:
    """Delete the request, if it was a pushed one, after the response."""
    if handle:
        PushedRequest.objects.filter(digest=stored_code(handle), is_open=True).delete()


def pushed_requests_prune() -> int:
    """Delete expired requests; returns their number."""
    return PushedRequest.objects.filter(expires__lt=utc_now()).delete()[0]


def _live(client_id: str) -> QuerySet[PushedRequest]:
    if "\x00" in client_id:
        return PushedRequest.objects.none()  # PostgreSQL refuses NUL in parameters
    return PushedRequest.objects.filter(expires__gt=utc_now(), application__application_uri=client_id)


def _after(seconds: int) -> datetime.datetime:
    return utc_now() + datetime.timedelta(seconds=seconds)
