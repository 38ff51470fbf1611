"""Revokes a user's access: sessions, access and refresh tokens, unredeemed codes. Deletes rows of deleted users and
roles.
"""

from __future__ import annotations

from django.db import models, transaction

from audit.actors import Actor
from foundation.models import Entity
from identity.models import DeviceGrant, Grant, User
from identity.oauth.issue import user_revoke
from identity.sessions import CLOSED_BY_ADMINISTRATOR, session_close_user


def user_access_revoke(user_id: str, reason: str = CLOSED_BY_ADMINISTRATOR, *, by: Actor) -> None:
    """Close the user's licensed sessions and revoke the tokens of applications. Personal tokens stay; they are refused
    while the user is inactive.
    """
    with transaction.atomic():
        Grant.objects.filter(user_id=user_id).delete()
        DeviceGrant.objects.filter(user_id=user_id).delete()
        if (user := User.objects.filter(pk=user_id).first()) is not None:
            user_revoke(user, by=by)
        session_close_user(user_id, reason)


def own_rows_delete(model: type[models.Model], id: str) -> None:
    """Delete the rows of plain tables that belong to a user or role: sign-ins, tokens, second factors, a picture.

    The dataset deletes entities and follows only references between entities.
    """
    for related in model._meta.related_objects:
        if related.on_delete is models.CASCADE and not issubclass(related.related_model, Entity):
            related.related_model._base_manager.filter(**{related.field.name: id}).delete()
