"""Lists the devices of a user, the applications with an open sign-in, and signs them out."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from audit.actors import Actor
from identity.models import AccessToken, ReferenceToken, RefreshToken, Session, User
from identity.oauth.issue import family_revoke
from identity.sessions import session_close, sessions_list


def devices_list(user: User) -> QuerySet[Session]:
    """Open sessions of the user's sign-ins, newest first. Those of personal tokens end with their token."""
    tokens = ReferenceToken.objects.filter(user=user).values_list("pk", flat=True)
    return sessions_list().filter(user=user, is_service=False).exclude(key__in=[str(token) for token in tokens])


def device_sign_out(session: Session, *, by: Actor) -> None:
    """Close the session and revoke its access and refresh tokens, so that it cannot be opened again."""
    with transaction.atomic():
        families = {
            *AccessToken.objects.filter(sid=session.key).values_list("token_family", flat=True),
            *RefreshToken.objects.filter(sid=session.key, revoked=None).values_list("token_family", flat=True),
        }
        for family in families:
            family_revoke(family, by=by)
        session_close([session.key])
