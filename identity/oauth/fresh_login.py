"""Proof that an authorization request led to the login page (OIDC Core, 3.1.2.1: prompt, max_age).

The browser's session stores the proof. The proof's id is a parameter of the URL to which the login page redirects. The
proof is valid in that session, for that request, until the response to it.

Without a signed-in user the proofs are in a signed cookie, which the login moves to the session, so anonymous requests
write no row. With TLS the cookie has the prefix __Host-: a sibling host that could set it would give a victim the proof
of another browser (RFC 6265bis, 4.1.3.2).
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse, QueryDict

#: Query parameter with the proof's id, in the request after the login page.
PARAMETER = "_asked"
_IN_SESSION = "asked_logins"
_SALT = "asked_logins"
_SECONDS = 3600
# Proofs of one session, for login pages in several tabs. A new proof replaces the oldest, whose request shows the login
# page again.
_MAX_PROOFS = 20

#: Id → [utc timestamp of the visit to the login page, digest of the request].
Proofs = dict[str, list[Any]]


def fresh_login_make(request: HttpRequest, query: QueryDict) -> tuple[str, Proofs]:
    """The id of a new proof that this request leads to the login page, and the proofs to store with it."""
    since = time.time() - _SECONDS
    valid = {name: proof for name, proof in _proofs(request).items() if proof[0] > since}
    newest = dict(sorted(valid.items(), key=lambda item: float(item[1][0]))[1 - _MAX_PROOFS :])
    name = secrets.token_urlsafe(16)
    return name, {**newest, name: [time.time(), _digest(query)]}


def fresh_login_store(request: HttpRequest, response: HttpResponse, proofs: Proofs) -> None:
    """Store the proofs in the session of the signed-in user, else in a cookie of the response."""
    if request.user.is_authenticated:
        request.session[_IN_SESSION] = proofs
        return
    response.set_cookie(
        _cookie(),
        signing.dumps(proofs, salt=_SALT, compress=True),
        max_age=_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def fresh_login_visited_at(request: HttpRequest, query: QueryDict) -> float:
    """The UTC timestamp at which this request led to the login page; infinity if it did not."""
    proof = _proofs(request).get(query.get(PARAMETER, ""))
    if proof is None or proof[1] != _digest(query) or proof[0] <= time.time() - _SECONDS:
        return float("inf")
    return float(proof[0])


def fresh_login_used(request: HttpRequest, query: QueryDict) -> None:
    """Delete the proof after the response."""
    proofs = _proofs(request)
    if query.get(PARAMETER, "") in proofs:
        request.session[_IN_SESSION] = {name: proof for name, proof in proofs.items() if name != query[PARAMETER]}


def fresh_logins_save(request: HttpRequest) -> Proofs:
    """The session's proofs, to be stored by `fresh_logins_restore` after another user has signed in."""
    return _proofs(request)


def fresh_logins_restore(request: HttpRequest, response: HttpResponse, proofs: Proofs) -> None:
    """Move the proofs, from a cookie or another session, to the session of the user who has just signed in."""
    if proofs:
        request.session[_IN_SESSION] = proofs
    if _cookie() in request.COOKIES:
        response.delete_cookie(_cookie(), samesite="Lax")


def _cookie() -> str:
    return f"{settings.COOKIE_PREFIX}asked_logins"


def _proofs(request: HttpRequest) -> Proofs:
    found: Proofs
    if request.user.is_authenticated:
        found = request.session.get(_IN_SESSION, {})
        return found
    try:
        found = signing.loads(request.COOKIES.get(_cookie(), ""), salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature:
        return {}
    return found


def _digest(query: QueryDict) -> str:
    """Digest of the client's parameters. The platform's own parameters, whose names begin with _, are left out."""
    own = sorted((name, values) for name, values in query.lists() if not name.startswith("_"))
    return hashlib.blake2b(json.dumps(own).encode(), digest_size=16).hexdigest()
