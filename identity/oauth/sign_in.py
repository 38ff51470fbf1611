"""The sign-in of a browser: its time, its applications, and their `sid`s.

A sign-in has an id, from which the sid of each application is derived, so that applications cannot correlate them.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from foundation.fields import utc_now
from identity.factors.methods import PASSWORD, Amr
from identity.models import SignInApplication, TrustedApplication, User

_SIGN_IN = "sign_in"
_AUTH_TIME = "auth_time"
_AMR = "amr"


@dataclass(frozen=True, slots=True)
class SignIn:
    """The signed-in user of this browser, and time and amr values (identity.factors.methods) of the sign-in."""

    user: User
    id: str
    auth_time: datetime.datetime
    amr: Amr

    def sid(self, application_id: str) -> str:
        """The session id that this application's tokens carry."""
        return str(uuid.uuid5(uuid.UUID(self.id), application_id))


def sign_in_started(request: HttpRequest, amr: Amr = (PASSWORD,), auth_time: float | None = None) -> None:
    """Record a new sign-in; called after django.contrib.auth.login. auth_time is a UTC timestamp, by default now."""
    request.session[_AUTH_TIME] = time.time() if auth_time is None else auth_time
    request.session[_AMR] = list(amr)
    request.session.setdefault(_SIGN_IN, str(uuid.uuid4()))


def sign_in_get(request: HttpRequest) -> SignIn | None:
    """The sign-in of the request's browser, or None."""
    return _sign_in(request, request.user)


def sign_in_stored(request: HttpRequest) -> SignIn | None:
    """As `sign_in_get`, for ending it: also one that lacks a factor which a role of its user has come to require.

    Reads the session, so a sign-in that has just ended is none.
    """
    return _sign_in(request, get_user(request))


def sign_in_of(session: Mapping[str, Any], user: User) -> SignIn | None:
    """The sign-in in the data of the user's browser session; None if they are without one."""
    if _SIGN_IN not in session or _AUTH_TIME not in session:
        return None
    auth_time = datetime.datetime.fromtimestamp(session[_AUTH_TIME], datetime.UTC)
    return SignIn(user, session[_SIGN_IN], auth_time, tuple(session.get(_AMR, (PASSWORD,))))


def amr_get(request: HttpRequest) -> Amr:
    """The amr values of this browser's sign-in."""
    return tuple(request.session.get(_AMR, (PASSWORD,)))


def application_joined(sign_in: SignIn, application: TrustedApplication) -> None:
    """Record that the application took part in the sign-in, so that it is notified of the sign-out.

    A row, because of several requests at once the last to save the session would win.
    """
    SignInApplication.objects.update_or_create(
        sign_in=sign_in.id, application=application, defaults={"last_joined": utc_now()}
    )


def applications_of(sign_in: SignIn) -> list[TrustedApplication]:
    """The applications that took part in the sign-in."""
    joined = SignInApplication.objects.filter(sign_in=sign_in.id).values("application")
    return list(TrustedApplication.objects.filter(pk__in=joined))


def _sign_in(request: HttpRequest, user: AbstractBaseUser | AnonymousUser) -> SignIn | None:
    if not isinstance(user, User) or not user.active:
        return None
    if _SIGN_IN not in request.session or _AUTH_TIME not in request.session:
        sign_in_started(request)
    return sign_in_of(request.session, user)
