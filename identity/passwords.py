"""Sets passwords, and revokes the access that depends on the old one (spec 01, 1.6)."""

from __future__ import annotations

from django.db import transaction

from audit.actors import Actor
from identity.access_revocation import user_access_revoke
from identity.factors.notices import PASSWORD_CHANGED, user_notify
from identity.models import ReferenceToken, User
from identity.reference_tokens import reference_token_revoke
from identity.sessions import CLOSED_PASSWORD


def password_set(user: User, password: str, *, ends_access: bool, by: Actor) -> None:
    """Set a validated password; ends browser sessions of the old one, and notifies the user by mail.

    ends_access: also revoke access, refresh and personal tokens and unredeemed authorization codes, and close licensed
    sessions.
    """
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        if ends_access:
            password_access_revoke(user, by=by)
        user_notify(user, PASSWORD_CHANGED, by=by)


def password_access_revoke(user: User, *, by: Actor) -> None:
    """Revoke all access that the old password may have given: tokens, unredeemed codes, licensed sessions."""
    for token in ReferenceToken.objects.filter(user=user, revoked=None, kind=ReferenceToken.PERSONAL):
        reference_token_revoke(token, by=by)
    user_access_revoke(user.pk, CLOSED_PASSWORD, by=by)
