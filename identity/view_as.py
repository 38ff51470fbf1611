"""An administrator sees the admin as another user does, without writing, and for a while (spec 01, 1.7).

The view is in the administrator's browser session, and only pages of the admin look at it: everywhere else (profile,
authorization endpoint, Domain API) the browser stays the administrator's. So nothing that belongs to the viewed user
but the rights to see rows and fields is within its reach.
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

#: How long a view lasts.
VIEW_MINUTES = 15
_IN_SESSION = "view_as"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class View:
    """The administrator of a browser sees the admin as the user, until then."""

    administrator: User
    user: User
    until: datetime.datetime


def may_be_viewed(user: User) -> bool:
    """Whether there is something to see: the admin is open to the user, who is no administrator."""
    return not user.is_admin and may_enter_admin(user)


def view_start(request: HttpRequest, user: User) -> None:
    """Start a view in this browser. Raises PermissionDenied unless an administrator asks for one of another user."""
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
    """End the view of this browser; returns the user who was viewed, None where there was no view."""
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
    """The view of this browser; None without one, after its time, and where it could not be started any more."""
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
    """Change the session's key, and the proof in forms: a page from before is no form of the other user's any more."""
    request.session.cycle_key()
    rotate_token(request)


class ViewAsMiddleware:
    """Gives pages of the admin the viewed user, and refuses everything that writes.

    A view that is over ends with a redirect, whatever was asked for, so that nobody takes the next page for one of it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """None where the view goes on as it is."""
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
