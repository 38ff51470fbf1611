"""Rate limits per minute: per application, per user in it, and at the token and login endpoints (spec 01, 1.9).

Fixed windows of a minute of wall time, equal on all nodes. The limits are cached from the admin's row, by cache
version.
"""

from __future__ import annotations

import ipaddress
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from audit.actors import Actor
from audit.record import failure
from foundation import errors
from foundation.versioned_cache import VersionedCache
from identity.audit_kinds import ClientRefused, GuessingLimited
from identity.context import Quota
from identity.counters import counters
from identity.models import RateLimits
from identity.models.applications import SERVICE_SUFFIX

CACHE_VERSION = "limits"
WINDOW_SECONDS = 60
#: Interval between attempts of a login with too many failures; a divisor of WINDOW_SECONDS.
RETRY_INTERVAL_SECONDS = 5
# Factor of the limits of one login from all addresses, and of one address for all logins.
_TOTAL_FACTOR = 10
# Maximum characters of a counter's name, which bounds the counters' memory.
_NAME_LENGTH = 254

_limits = VersionedCache(lambda: RateLimits.objects.filter(pk=1).first() or RateLimits(), CACHE_VERSION)


def limits() -> RateLimits:
    """The configured limits; do not change the row."""
    return _limits.get()


def check_api_request(quota: Quota, requests: int = 1) -> None:
    """Count API requests: one, or parts of a batch. Raises TooManyRequests. An unlimited instance counts nothing."""
    configured = limits()
    application, user = quota.application_id, quota.user_id
    limit = configured.application_per_minute if quota.application_limit is None else quota.application_limit
    if limit:
        count(f"app:{application}", limit, amount=requests)
    if configured.user_per_minute:
        count(f"user:{application}:{user}", configured.user_per_minute, amount=requests)


def check_session_opening(application_id: str, user_id: str) -> None:
    """Refuse a caller who has opened too many sessions in this window. Raises TooManyRequests."""
    if limit := limits().sessions_per_minute:
        count(f"sessions:{application_id}:{user_id}", limit, amount=0)


def note_session_opened(application_id: str, user_id: str) -> None:
    """Count an opened session, also one that replaces another."""
    _add(f"sessions:{application_id}:{user_id}", 1)


def check_token_request(application_uri: str) -> None:
    """Count one token request of an application. Raises TooManyRequests."""
    if limit := limits().token_per_minute:
        count(f"token:{application_uri}", limit)


def check_client(client_id: str, address: str) -> None:
    """Refuse a client that has sent too many wrong secrets from this address. Raises TooManyRequests.

    Other clients at the address are not limited: a whole company may share one address.
    """
    if limit := limits().token_failures_per_minute:
        count(_client_failures(client_id, address), limit, amount=0)


def note_client_failure(client_id: str, address: str) -> None:
    """Count a wrong client secret, at any endpoint."""
    _add(_client_failures(client_id, address), 1)
    failure(ClientRefused, by=Actor(address=address), subject=f"client {client_id[:64]}" if client_id else "")


def count_guess(what: str, address: str, *, amount: int = 1) -> None:
    """Count an unknown code, token, link or session key. Raises TooManyRequests beyond the limit of failures.

    Called after the lookup, so that a valid value is accepted even from an address with many failures; for codes that
    are short enough to be guessed, also before it with amount 0 (check only).
    """
    if limit := limits().token_failures_per_minute:
        try:
            count(f"guess:{what[:_NAME_LENGTH]}:{counted_as(address)}", limit, amount=amount)
        except errors.TooManyRequests:
            failure(GuessingLimited, by=Actor(address=address), subject=what[:_NAME_LENGTH])
            raise


def guess_refusal(what: str, address: str) -> errors.TooManyRequests | None:
    """As `count_guess`, but returns the refusal, for views that render it."""
    try:
        count_guess(what, address)
    except errors.TooManyRequests as limited:
        return limited
    return None


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """A login attempt that is counted as a failure. counters: counter → window of the count."""

    counters: Mapping[str, int]

    def undo(self) -> None:
        """Undo the count of an attempt that has succeeded, or was refused unchecked."""
        for name, window in self.counters.items():
            _add(name, -1, window)


def count_login_attempt(login: str, address: str, browser: str = "") -> LoginAttempt:
    """Count an attempt as failed, before the password is checked, and limit a login that fails too often.

    Above the limits a login may be tried once in RETRY_INTERVAL_SECONDS. Raises TooManyRequests.

    Failures are counted per login and address, and per login and known browser (`browser`, from
    identity.known_browsers). So failures at another address or in another browser do not slow a user down. Higher
    limits apply to one login from all addresses, and to one address for all logins; known browsers are exempt.
    """
    configured, name, window = limits(), login_key(login), _window()
    own = _own_failures(name, address, browser)
    anywhere, at_address = f"login-anywhere:{name}", f"login-address:{counted_as(address)}"
    used = {counter: _add(counter, 1, window) for counter in (own, anywhere, at_address)}
    attempt = LoginAttempt(dict.fromkeys(used, window))

    def above(counter: str, limit: int) -> bool:
        return bool(limit) and used[counter] > limit

    turns: list[str] = []
    if above(own, configured.login_failures_per_minute) or (
        not browser and above(at_address, configured.login_address_per_minute)
    ):
        turns.append(own)
    if not browser:
        if above(anywhere, configured.login_failures_per_minute * _TOTAL_FACTOR):
            turns.append(anywhere)
        if above(at_address, configured.login_address_per_minute * _TOTAL_FACTOR):
            turns.append(at_address)
    try:
        for subject in turns:
            _check_retry_interval(subject)
    except errors.TooManyRequests:
        attempt.undo()
        raise
    if own in turns:
        return attempt
    # A failure below the limit also uses the interval.
    _add(_interval_counter(own), 1, window)
    return LoginAttempt({**attempt.counters, _interval_counter(own): window})


def _client_failures(client_id: str, address: str) -> str:
    # Both client ids of a dual-mode application have one secret.
    return f"client-failures:{client_id.removesuffix(SERVICE_SUFFIX)[:_NAME_LENGTH]}:{counted_as(address)}"


def _own_failures(name: str, address: str, browser: str) -> str:
    # The login is last: it may contain any character, so no other login produces this counter.
    return f"login:{f'browser {browser}' if browser else counted_as(address)} {name}"


def _check_retry_interval(subject: str) -> None:
    """Raise TooManyRequests if another attempt has used this interval, or has failed in it."""
    if _add(_interval_counter(subject), 1) > 1:
        seconds = max(1, RETRY_INTERVAL_SECONDS - int(time.time()) % RETRY_INTERVAL_SECONDS)
        raise errors.TooManyRequests(WINDOW_SECONDS // RETRY_INTERVAL_SECONDS, seconds, retry_after_seconds=seconds)


def _interval_counter(subject: str) -> str:
    return f"turn:{subject}:{int(time.time()) // RETRY_INTERVAL_SECONDS}"


def counted_as(address: str) -> str:
    """The counted form of an address: of IPv6 its /64 network, since one connection may use all of it."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # for example of a Unix socket
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


def login_key(login: str) -> str:
    """One counter name for all spellings that may be the same login.

    PostgreSQL finds `admin` for `ADMİN` (U+0130), which Python's lower() keeps apart. Logins that differ only in
    accents share a counter, which matters only after failures.
    """
    letters = unicodedata.normalize("NFKD", login)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def refusal(name: str, limit: int) -> errors.TooManyRequests | None:
    """As `count`, but returns the refusal, for views that render it."""
    try:
        count(name, limit)
    except errors.TooManyRequests as limited:
        return limited
    return None


def count(name: str, limit: int, *, amount: int = 1) -> None:
    """Count `amount` (0: check only). Raises TooManyRequests if the window has more than the limit."""
    used = _add(name, amount)
    if used + (1 if amount == 0 else 0) > limit:
        seconds = _seconds_left()
        raise errors.TooManyRequests(
            limit, seconds, retry_after_seconds=seconds, limit_headers=_headers(limit, used, seconds)
        )


def _add(name: str, amount: int, window: int | None = None) -> int:
    # With the prefix of the cache's keys: instances that share a Redis have separate counters.
    prefix = settings.CACHES["default"].get("KEY_PREFIX", "")
    return counters().add(prefix + name, _window() if window is None else window, amount)


def _window() -> int:
    return int(time.time()) // WINDOW_SECONDS


def _seconds_left() -> int:
    return max(1, WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS)


def _headers(limit: int, used: int, seconds: int) -> Mapping[str, str]:
    """RateLimit headers (draft-ietf-httpapi-ratelimit-headers)."""
    return {
        "RateLimit-Limit": str(limit),
        "RateLimit-Remaining": str(max(0, limit - used)),
        "RateLimit-Reset": str(seconds),
    }
