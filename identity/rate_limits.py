"""Requests a minute, per application, per user in it, and at the token and login endpoints (spec 01, 1.9).

Fixed windows of a minute of wall time, so that all nodes agree on them. Limits are read from the admin's row, by stamp.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Mapping

from foundation import errors, stamps
from identity.counters import counters
from identity.models import RateLimits

STAMP = "limits"
WINDOW_SECONDS = 60

_cached: tuple[int, RateLimits] | None = None


def limits() -> RateLimits:
    """The configured limits, at most a few seconds old; treat the row as a value."""
    global _cached
    stamp = stamps.current(STAMP)
    known = _cached
    if known is None or known[0] != stamp:
        known = _cached = (stamp, RateLimits.objects.filter(pk=1).first() or RateLimits())
    return known[1]


def check_api_request(application_id: str, application_limit: int | None, user_id: str) -> None:
    """Count one API request. Raises TooManyRequests. An unlimited instance counts nothing."""
    configured = limits()
    limit = configured.application_per_minute if application_limit is None else application_limit
    if limit:
        count(f"app:{application_id}", limit)
    if configured.user_per_minute:
        count(f"user:{application_id}:{user_id}", configured.user_per_minute)


def check_token_request(application_uri: str) -> None:
    """Count one token request of an application. Raises TooManyRequests."""
    if limit := limits().token_per_minute:
        count(f"token:{application_uri}", limit)


def check_token_failures(address: str) -> None:
    """Refuse client authentication from an address that guesses. Raises TooManyRequests."""
    if limit := limits().token_failures_per_minute:
        count(f"token-failures:{address}", limit, amount=0)


def note_token_failure(address: str) -> None:
    """Count a failed client authentication."""
    _add(f"token-failures:{address}", 1)


def check_login(login: str, address: str) -> None:
    """Refuse a login that has failed too often lately, or an address that guesses. Raises TooManyRequests."""
    configured = limits()
    if configured.login_failures_per_minute:
        count(f"login:{_login_key(login)}", configured.login_failures_per_minute, amount=0)
    if configured.login_address_per_minute:
        count(f"login-address:{address}", configured.login_address_per_minute, amount=0)


def note_login_failure(login: str, address: str) -> None:
    """Count a failed login, whether or not there is such a user."""
    _add(f"login:{_login_key(login)}", 1)
    _add(f"login-address:{address}", 1)


def _login_key(login: str) -> str:
    """One counter for all spellings that may be the same login.

    PostgreSQL finds `admin` for `ADMİN` (U+0130), which Python's lower() keeps apart. Logins that differ in accents
    alone share a counter; that costs them nothing as long as nobody guesses.
    """
    letters = unicodedata.normalize("NFKD", login)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def count(name: str, limit: int, *, amount: int = 1) -> None:
    """Count `amount` (0: only look). Raises TooManyRequests when the window holds more than the limit."""
    used = _add(name, amount)
    if used + (1 if amount == 0 else 0) > limit:
        seconds = _seconds_left()
        raise errors.TooManyRequests(
            limit, seconds, retry_after_seconds=seconds, limit_headers=_headers(limit, used, seconds)
        )


def _add(name: str, amount: int) -> int:
    return counters().add(name, int(time.time()) // WINDOW_SECONDS, amount)


def _seconds_left() -> int:
    return max(1, WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS)


def _headers(limit: int, used: int, seconds: int) -> Mapping[str, str]:
    """draft-ietf-httpapi-ratelimit-headers, the widely understood form."""
    return {
        "RateLimit-Limit": str(limit),
        "RateLimit-Remaining": str(max(0, limit - used)),
        "RateLimit-Reset": str(seconds),
    }
