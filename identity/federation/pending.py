"""Pending sign-ins at a provider, encrypted in the browser's cookie, so that anonymous requests write no row.

The cookie binds the provider's response to the browser (Core, 3.1.2.1: state), and has the nonce and the PKCE verifier.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
import zlib
from dataclasses import asdict, dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from foundation.encryption import Unreadable, decrypt, encrypt

#: Maximum duration of the sign-in at the provider.
MAX_SECONDS = 900
#: Browsers ignore cookies beyond 4,096 bytes, name and attributes included.
MAX_BYTES = 3_900
# For several tabs; a new sign-in replaces the oldest.
_MAX_PENDING = 4


@dataclass(frozen=True, slots=True)
class Pending:
    """One pending sign-in.

    target   URL of this instance after the sign-in, or ""
    fresh    whether the upstream sign-in must be newer than `at`
    user_id  the signed-in user who connects an account; "" for a sign-in
    """

    provider: str
    state: str
    nonce: str
    verifier: str
    target: str
    fresh: bool
    user_id: str
    at: float


def pending_make(provider: str, target: str, *, fresh: bool, user_id: str = "") -> Pending:
    """A new pending sign-in with random state, nonce and verifier."""
    state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    return Pending(provider, state, nonce, secrets.token_urlsafe(48), target, fresh, user_id, time.time())


def pending_store(request: HttpRequest, response: HttpResponse, attempt: Pending) -> None:
    """Add it to the browser's cookie; drops the oldest that do not fit. Raises ValueError if it is too long."""
    _store(response, [*_read(request), attempt][-_MAX_PENDING:])


def pending_take(request: HttpRequest, provider: str, state: str) -> Pending | None:
    """The pending sign-in with this state; None for another browser's, an expired or a completed one."""
    return next((each for each in _read(request) if each.state == state and each.provider == provider), None)


def pending_forget(request: HttpRequest, response: HttpResponse, attempt: Pending) -> None:
    """Remove it from the cookie after the provider's response."""
    _store(response, [each for each in _read(request) if each.state != attempt.state])


def _read(request: HttpRequest) -> list[Pending]:
    encrypted = request.COOKIES.get(_cookie())
    text = decrypt(encrypted) if encrypted else None
    if text is None or isinstance(text, Unreadable):
        return []
    entries = json.loads(zlib.decompress(base64.b64decode(text)))
    return [each for entry in entries if (each := Pending(**entry)).at > time.time() - MAX_SECONDS]


def _store(response: HttpResponse, all_begun: list[Pending]) -> None:
    if not all_begun:
        response.delete_cookie(_cookie(), samesite="Lax")
        return
    while len(encrypted := _encrypted(all_begun)) > MAX_BYTES:
        all_begun = all_begun[1:]
        if not all_begun:
            raise ValueError("the target is too long for a cookie")
    response.set_cookie(
        _cookie(),
        encrypted,
        max_age=MAX_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",  # the provider's redirect comes from another site
    )


def _encrypted(all_begun: list[Pending]) -> str:
    packed = zlib.compress(json.dumps([asdict(each) for each in all_begun]).encode())
    return encrypt(base64.b64encode(packed).decode())


def _cookie() -> str:
    return f"{settings.COOKIE_PREFIX}federation"
