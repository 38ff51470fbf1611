"""What the commands that import and export have in common."""

from __future__ import annotations

from foundation import errors
from identity.context import CallContext
from identity.management.support import user_get
from identity.permissions import permissions_for


def context_of(login: str) -> CallContext:
    """The context of the user with this login, with the user's rights; without one that of the platform.

    Raises CommandError.
    """
    if not login:
        return CallContext(user=None)
    user = user_get(login)
    return CallContext(user=user.as_caller("en"), permissions=permissions_for(str(user.pk), is_admin=user.is_admin))


def message_of(error: errors.PlatformError) -> str:
    """The message that the API would answer."""
    message: str = errors.render(error, correlation_id="", debug=False).body["error"]["message"]
    return message
