"""Proof that an authorization request led to the login page (OIDC Core, 3.1.2.1: prompt, max_age).

The browser's session stores the proof. The proof's id is a parameter of the URL to which the login page redirects. The
proof is valid in that session, for that request, and until the request is answered.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from typing import Any

from django.http import HttpRequest, QueryDict

#: Query parameter with the proof's id, in the request after the login page.
PARAMETER = "_asked"
_IN_SESSION = "asked_logins"
_SECONDS = 3600
# Proofs of one session, for login pages in several tabs. A new proof replaces the oldest, whose request shows the login
# page again.
_KEPT = 20

#: Id → [utc timestamp of the visit to the login page, digest of the request].
Proofs = dict[str, list[Any]]


def fresh_login_ask(request: HttpRequest, query: QueryDict) -> str:
    """Store a proof that this request leads to the login page; returns its id."""
    since = time.time() - _SECONDS
    valid = {name: proof for name, proof in _proofs(request).items() if proof[0] > since}
    newest = dict(sorted(valid.items(), key=lambda item: float(item[1][0]))[1 - _KEPT :])
    name = secrets.token_urlsafe(16)
    request.session[_IN_SESSION] = {**newest, name: [time.time(), _digest(query)]}
    return name


def fresh_login_asked_at(request: HttpRequest, query: QueryDict) -> float:
    """When this request led to the login page, as a UTC timestamp; infinity if it did not."""
    proof = _proofs(request).get(query.get(PARAMETER, ""))
    if proof is None or proof[1] != _digest(query) or proof[0] <= time.time() - _SECONDS:
        return float("inf")
    return float(proof[0])


def fresh_login_used(request: HttpRequest, query: QueryDict) -> None:
    """Delete the proof: the request has been answered."""
    proofs = _proofs(request)
    if query.get(PARAMETER, "") in proofs:
        request.session[_IN_SESSION] = {name: proof for name, proof in proofs.items() if name != query[PARAMETER]}


def fresh_logins_keep(request: HttpRequest) -> Proofs:
    """The session's proofs, to be put back with `fresh_logins_put` once another person has signed in."""
    return _proofs(request)


def fresh_logins_put(request: HttpRequest, proofs: Proofs) -> None:
    """Store the proofs again: the logout of the previous user has emptied the session."""
    if proofs:
        request.session[_IN_SESSION] = proofs


def _proofs(request: HttpRequest) -> Proofs:
    found: Proofs = request.session.get(_IN_SESSION, {})
    return found


def _digest(query: QueryDict) -> str:
    """Digest of the client's parameters. The platform's own parameters, whose names begin with _, are left out."""
    own = sorted((name, values) for name, values in query.lists() if not name.startswith("_"))
    return hashlib.sha256(json.dumps(own).encode()).hexdigest()
