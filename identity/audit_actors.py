"""The actor of an audit entry (audit.actors)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

from audit.actors import PLATFORM, Actor
from identity.context import CallContext
from identity.instance import client_address
from identity.models import TrustedApplication, User

if TYPE_CHECKING:
    from oauthlib.common import Request


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in user of a page; the administrator while viewing the admin as another user."""
    view = getattr(request, "view_as", None)
    user = request.user if view is None else view.administrator
    name = user.login if isinstance(user, User) else ""
    return Actor(name, client_address(request), request_id=getattr(request, "request_id", ""))


def anonymous_actor(request: HttpRequest) -> Actor:
    """The actor of an anonymous request: only its address."""
    return Actor(address=client_address(request), request_id=getattr(request, "request_id", ""))


def actor_of_call(context: CallContext) -> Actor:
    """The caller of a service; the platform itself without one."""
    name = context.user.login if context.user is not None else PLATFORM.name
    return Actor(name, context.client_address, context.application, context.session_id or "", context.request_id)


def actor_of_client(request: Request, user: User | None, application: TrustedApplication) -> Actor:
    """An application, and the user for whom it acts, at an OAuth endpoint."""
    address = str(request.headers.get("REMOTE_ADDR", ""))
    return Actor(user.login if user is not None else "", address, application.application_uri)


def user_subject(user: User) -> str:
    """The user as the subject of an entry."""
    return f"user {user.login}"
