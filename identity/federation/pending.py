"""Sign-ins that a browser has begun at a provider, sealed in its cookie: an anonymous request writes no row.

The cookie binds the provider's answer to this browser (Core, 3.1.2.1: state) and holds the nonce and the PKCE verifier.
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

from foundation.vault import Unreadable, seal, unseal

#: Time at the provider.
MAX_SECONDS = 900
#: Browsers ignore cookies beyond 4,096 bytes, name and attributes included.
MAX_BYTES = 3_900
# Several tabs; a new sign-in replaces the oldest.
_KEPT = 4


@dataclass(frozen=True, slots=True)
class Pending:
    """One sign-in that was begun.

    target   where it leads on this instance, or ""
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
    """A new one, with random state, nonce and verifier."""
    state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    return Pending(provider, state, nonce, secrets.token_urlsafe(48), target, fresh, user_id, time.time())


def pending_store(request: HttpRequest, response: HttpResponse, begun: Pending) -> None:
    """Add it to the browser's cookie, and drop the oldest that do not fit. Raises ValueError if it is too long."""
    _store(response, [*_read(request), begun][-_KEPT:])


def pending_take(request: HttpRequest, provider: str, state: str) -> Pending | None:
    """The begun sign-in with this state; None for another browser's, an old or an answered one."""
    return next((each for each in _read(request) if each.state == state and each.provider == provider), None)


def pending_forget(request: HttpRequest, response: HttpResponse, begun: Pending) -> None:
    """Remove it from the cookie: it was answered."""
    _store(response, [each for each in _read(request) if each.state != begun.state])


def _read(request: HttpRequest) -> list[Pending]:
    sealed = request.COOKIES.get(_cookie())
    text = unseal(sealed) if sealed else None
    if text is None or isinstance(text, Unreadable):
        return []
    entries = json.loads(zlib.decompress(base64.b64decode(text)))
    return [each for entry in entries if (each := Pending(**entry)).at > time.time() - MAX_SECONDS]


def _store(response: HttpResponse, all_begun: list[Pending]) -> None:
    if not all_begun:
        response.delete_cookie(_cookie(), samesite="Lax")
        return
    while len(sealed := _sealed(all_begun)) > MAX_BYTES:
        all_begun = all_begun[1:]
        if not all_begun:
            raise ValueError("the target is too long for a cookie")
    response.set_cookie(
        _cookie(),
        sealed,
        max_age=MAX_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",  # the provider's redirect comes from another site
    )


def _sealed(all_begun: list[Pending]) -> str:
    packed = zlib.compress(json.dumps([asdict(each) for each in all_begun]).encode())
    return seal(base64.b64encode(packed).decode())


def _cookie() -> str:
    return f"{settings.COOKIE_PREFIX}federation"
