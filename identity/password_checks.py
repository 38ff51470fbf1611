"""Checks submitted passwords with rate limits and a queue (spec 01, 1.9)."""

from __future__ import annotations

from django.contrib.auth import authenticate
from django.http import HttpRequest

from foundation import errors
from identity import rate_limits
from identity.instance import client_address
from identity.known_browsers import browser_known
from identity.models import User
from identity.password_hashing import hash_queue


def password_authenticate(request: HttpRequest, login: str, password: str) -> User | None:
    """The user who may log in with this password, or None. Raises TooManyRequests.

    An unknown login takes as long as a wrong password: Django hashes in both cases. The attempt counts as a failure
    until it succeeds, so that the limits hold for parallel attempts.
    """
    address, browser = client_address(request), browser_known(request, login)
    attempt = rate_limits.count_login_attempt(login, address, browser)
    caller = f"browser {browser}" if browser else rate_limits.counted_as(address)
    try:
        with hash_queue.turn(caller, is_known=bool(browser)):
            user = authenticate(request, username=login, password=password)
    except errors.TooManyRequests:
        attempt.take_back()
        raise
    if not isinstance(user, User):
        return None
    attempt.take_back()
    return user


def password_is_right(request: HttpRequest, user: User, password: str) -> bool:
    """Whether the signed-in user has this password, under the same limits. Raises TooManyRequests."""
    return password_authenticate(request, user.login, password) == user
