"""Lets an administrator view the admin as another user, read-only and for a limited time (spec 01, 1.7).

The view is in the administrator's browser session, and only pages of the admin apply it: everywhere else (profile,
authorization endpoint, Domain API) the browser remains the administrator's. So the view gives only the user's read
rights, no access to the user's account.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import rotate_token
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from audit.record import record
from foundation.fields import utc_now
from foundation.texts import utc_text
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import ViewAsEnded, ViewAsStarted
from identity.models import User
from identity.permissions import may_enter_admin

logger = logging.getLogger(__name__)

#: Duration of a view.
VIEW_MINUTES = 15
_IN_SESSION = "view_as"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class View:
    """A view: the administrator, the viewed user, and the end."""

    administrator: User
    user: User
    until: datetime.datetime


def may_be_viewed(user: User) -> bool:
    """Whether the user may open the admin and is no administrator."""
    return not user.is_admin and may_enter_admin(user)


def view_start(request: HttpRequest, user: User) -> None:
    """Start a view in this browser. Raises PermissionDenied unless an administrator views another user."""
    administrator = request.user
    if not isinstance(administrator, User) or not administrator.is_admin or not may_be_viewed(user):
        raise PermissionDenied
    until = utc_now() + datetime.timedelta(minutes=VIEW_MINUTES)
    request.session[_IN_SESSION] = {
        "administrator": str(administrator.pk),
        "user": str(user.pk),
        "until": until.timestamp(),
    }
    _renew(request)
    logger.info("%s sees the admin as %s", administrator.login, user.login)
    record(ViewAsStarted, by=actor_of(request), subject=user_subject(user), until=utc_text(until))


def view_end(request: HttpRequest) -> User | None:
    """End the view of this browser; returns the viewed user, None without a view."""
    stored = request.session.pop(_IN_SESSION, None)
    if stored is None:
        return None
    _renew(request)
    user = User.objects.filter(pk=stored["user"]).first()
    if user is not None:
        record(ViewAsEnded, by=actor_of(request), subject=user_subject(user))
    logger.info("%s no longer sees the admin as %s", *(getattr(each, "login", "") for each in (request.user, user)))
    return user


def view_get(request: HttpRequest) -> View | None:
    """The view of this browser; None without one, once it has expired, and if it could no longer be started."""
    stored: dict[str, Any] | None = request.session.get(_IN_SESSION)
    administrator = request.user
    if stored is None or not isinstance(administrator, User) or not administrator.is_admin:
        return None
    until = datetime.datetime.fromtimestamp(stored["until"], datetime.UTC)
    if str(administrator.pk) != stored["administrator"] or until <= utc_now():
        return None
    user = User.objects.filter(pk=stored["user"]).first()
    return View(administrator, user, until) if user is not None and may_be_viewed(user) else None


def _renew(request: HttpRequest) -> None:
    """Change the session's key and CSRF token, so that forms of earlier pages are refused."""
    request.session.cycle_key()
    rotate_token(request)


class ViewAsMiddleware:
    """Sets the viewed user on pages of the admin, and refuses writes.

    The first request after the end of a view is redirected, so that its page is not taken for the viewed user's.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """None to continue with the view function."""
        match = request.resolver_match
        if match is None or "admin" not in match.namespaces or _IN_SESSION not in request.session:
            return None
        view = view_get(request)
        if view is None:
            view_end(request)
            messages.info(request, _("The view as another user has ended. You see the admin as yourself again."))
            return redirect("admin:index")
        request.user, request.view_as = view.user, view  # type: ignore[attr-defined]
        if request.method not in _SAFE:
            return render(request, "identity/view_as_refused.html", status=403)
        return None


@never_cache
@login_required
@require_POST
def stop_page(request: HttpRequest) -> HttpResponse:
    """End the view; the response leads back to the page of the user."""
    user = view_end(request)
    return redirect("admin:index") if user is None else redirect("admin:identity_user_change", user.pk)
