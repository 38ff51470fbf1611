"""The sign-in of a browser: its time, its applications, and their `sid`s.

A sign-in has an id, from which the sid of each application is derived, so that applications cannot correlate them.
"""

from __future__ import annotations

import datetime
import time
import uuid
from dataclasses import dataclass

from django.http import HttpRequest

from identity.factors.methods import PASSWORD, Amr
from identity.models import TrustedApplication, User

_SIGN_IN = "sign_in"
_AUTH_TIME = "auth_time"
_AMR = "amr"
_APPLICATIONS = "applications"


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
    user = request.user
    if not isinstance(user, User) or not user.active:
        return None
    if _SIGN_IN not in request.session or _AUTH_TIME not in request.session:
        sign_in_started(request)
    auth_time = datetime.datetime.fromtimestamp(request.session[_AUTH_TIME], datetime.UTC)
    return SignIn(user, request.session[_SIGN_IN], auth_time, amr_get(request))


def amr_get(request: HttpRequest) -> Amr:
    """The amr values of this browser's sign-in."""
    return tuple(request.session.get(_AMR, (PASSWORD,)))


def application_joined(request: HttpRequest, application: TrustedApplication) -> None:
    """Record that the application takes part in this sign-in, so that it is notified of the sign-out."""
    joined: list[str] = request.session.get(_APPLICATIONS, [])
    if str(application.pk) not in joined:
        request.session[_APPLICATIONS] = [*joined, str(application.pk)]


def applications_of(request: HttpRequest) -> list[TrustedApplication]:
    """The applications that took part in the sign-in."""
    return list(TrustedApplication.objects.filter(pk__in=request.session.get(_APPLICATIONS, [])))
