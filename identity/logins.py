"""Reserves logins: a login is never reused for another user, not even after a rename or deletion (spec 01, 1.5).

The table stores every login that a user has had, with the user's guid. Its unique index ignores case, as the index of
users does, and lets only one of two concurrent transactions take a login.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Lower

from foundation import errors
from identity.models import UsedLogin, User


def check_login_unused(login: str, user_id: str) -> None:
    """Raise Refused(LOGIN_USED) where another user has, or had, the login."""
    holder = _holder(login)
    if holder not in (None, user_id):
        raise _taken(login)


def claim_login(login: str, user_id: str) -> None:
    """Record the login as the user's, in the transaction that assigns it. Raises Refused(LOGIN_USED)."""
    holder = _holder(login)
    if holder is None:
        try:
            with transaction.atomic():
                UsedLogin.objects.create(login=login, user_id=user_id)
        except IntegrityError as exc:
            raise _taken(login) from exc
    elif holder != user_id:
        raise _taken(login)


def former_logins(user: User) -> list[str]:
    """Former logins of the user, oldest first."""
    used = UsedLogin.objects.filter(user_id=user.pk).order_by("since", "login").values_list("login", flat=True)
    return [login for login in used if login.lower() != user.login.lower()]


def _holder(login: str) -> str | None:
    used = UsedLogin.objects.annotate(lowered=Lower("login")).filter(lowered=Lower(Value(login)))
    result = used.values_list("user_id", flat=True).first()
    return None if result is None else str(result)


def _taken(login: str) -> errors.Refused:
    return errors.Refused(errors.LOGIN_USED, login, target="Login")
