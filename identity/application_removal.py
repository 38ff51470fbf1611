"""Revokes the access of an application before it is deleted."""

from __future__ import annotations

from django.db import transaction

from identity.changes import tokens_revoked
from identity.models import (
    AccessToken,
    DeviceGrant,
    Grant,
    IDToken,
    ReferenceToken,
    RefreshToken,
    Session,
    TrustedApplication,
)
from identity.sessions import session_close


def application_access_remove(application: TrustedApplication) -> None:
    """Close the application's sessions, which frees their slots, and delete its codes and tokens."""
    with transaction.atomic():
        sessions = Session.objects.filter(application=application)
        session_close(list(sessions.filter(closed=None).values_list("key", flat=True)))
        for model in (Grant, DeviceGrant, RefreshToken, AccessToken, IDToken, ReferenceToken, Session):
            model.objects.filter(application=application).delete()
        tokens_revoked()
