"""Ends what a user has been given: sessions, access and refresh tokens, and codes that are not redeemed."""

from __future__ import annotations

from django.db import transaction

from audit.actors import OPERATOR, Actor
from identity.models import DeviceGrant, Grant, User
from identity.oauth.issue import user_revoke
from identity.sessions import CLOSED_BY_ADMINISTRATOR, session_close_user


def access_end(user_id: str, reason: str = CLOSED_BY_ADMINISTRATOR, *, by: Actor = OPERATOR) -> None:
    """Close the user's licensed sessions and revoke the tokens of applications. Personal tokens are the user's own:
    while the user is inactive they are refused.
    """
    with transaction.atomic():
        Grant.objects.filter(user_id=user_id).delete()
        DeviceGrant.objects.filter(user_id=user_id).delete()
        if (user := User.objects.filter(pk=user_id).first()) is not None:
            user_revoke(user, by=by)
        session_close_user(user_id, reason)
