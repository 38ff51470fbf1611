"""Checks submitted passwords with rate limits and a queue (spec 01, 1.9)."""

from __future__ import annotations

from django.contrib.auth import authenticate
from django.http import HttpRequest

from audit.record import failure
from foundation import errors
from identity import rate_limits
from identity.audit_actors import anonymous_actor, user_subject
from identity.audit_kinds import SignInFailed
from identity.instance import client_address
from identity.known_browsers import known_browser_id
from identity.models import User
from identity.password_hashing import hash_queue


def password_authenticate(request: HttpRequest, login: str, password: str) -> User | None:
    """The user with this login and password, or None. Raises TooManyRequests.

    An unknown login takes as long as a wrong password: Django hashes in both cases. The attempt counts as a failure
    until it succeeds, so that the limits hold for parallel attempts.
    """
    address, browser = client_address(request), known_browser_id(request, login)
    try:
        attempt = rate_limits.count_login_attempt(login, address, browser)
    except errors.TooManyRequests:
        sign_in_failed(request, "limit")
        raise
    caller = f"browser {browser}" if browser else rate_limits.counted_as(address)
    try:
        with hash_queue.turn(caller, is_known=bool(browser)):
            user = authenticate(request, username=login, password=password)
    except errors.TooManyRequests:
        attempt.undo()
        raise
    if not isinstance(user, User):
        sign_in_failed(request, "password", login=login)
        return None
    attempt.undo()
    return user


def sign_in_failed(request: HttpRequest, reason: str, *, login: str = "") -> None:
    """Record a failure in the audit chain, with the login only if it is a user's: others may be mistyped passwords."""
    known = User.objects.filter(login__iexact=login).first() if login else None
    subject = user_subject(known) if known is not None else "unknown login" if login else ""
    failure(SignInFailed, by=anonymous_actor(request), subject=subject, reason=reason)


def password_is_right(request: HttpRequest, user: User, password: str) -> bool:
    """Whether the signed-in user has this password, under the same limits. Raises TooManyRequests."""
    return password_authenticate(request, user.login, password) == user
