"""Reserves logins: a login is never reused for another user, not even after a rename or deletion (spec 01, 1.5).

The table stores every login that a user has had, with the user's guid, and its normal form if that differs
(foundation.validators.look_alike_key). Its unique index ignores case, as the index of users does, and lets only one of
two concurrent transactions take a login.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Lower

from foundation import errors
from foundation.validators import identifier_problem, look_alike_key
from identity.models import TrustedApplication, UsedLogin, User


def check_login_unused(login: str, user_id: str) -> None:
    """Raise Refused(LOGIN_USED) if another user has, or had, the login or one that looks the same.

    Likewise where an application has it as its ApplicationUri, which is the `sub` of its service tokens (RFC 9068, 5).
    Raises BadRequest(INVALID_VALUE) if the login has invisible characters.
    """
    if problem := identifier_problem(login):
        raise errors.BadRequest(errors.INVALID_VALUE, "Login", problem, target="Login")
    for form in _forms(login):
        if login_holder(form) not in (None, user_id):
            raise _taken(login)
    if TrustedApplication.objects.filter(application_uri__iexact=login).exists():
        raise _taken(login)


def reserve_login(login: str, user_id: str) -> None:
    """Record the login as the user's, in the transaction that assigns it. Raises as `check_login_unused`."""
    if login_holder(login) == user_id:
        return
    check_login_unused(login, user_id)
    for form in _forms(login):
        if login_holder(form) is None:
            try:
                with transaction.atomic():
                    UsedLogin.objects.create(login=form, user_id=user_id)
            except IntegrityError as exc:
                raise _taken(login) from exc


def former_logins(user: User) -> list[str]:
    """Former logins of the user, oldest first."""
    used = UsedLogin.objects.filter(user_id=user.pk).order_by("since", "login").values_list("login", flat=True)
    shared = {form.lower() for login in (user.login, *used) for form in _forms(login)[1:]}
    return [login for login in used if login.lower() != user.login.lower() and login.lower() not in shared]


def _forms(login: str) -> list[str]:
    """The login, and its normal form if that differs in more than case."""
    shared = look_alike_key(login)[: UsedLogin._meta.get_field("login").max_length]
    return [login] if shared == login.lower() else [login, shared]


def login_holder(login: str) -> str | None:
    """The id of the user who has, or had, the login in any case; the user may be deleted."""
    used = UsedLogin.objects.annotate(lowered=Lower("login")).filter(lowered=Lower(Value(login)))
    result = used.values_list("user_id", flat=True).first()
    return None if result is None else str(result)


def _taken(login: str) -> errors.Refused:
    return errors.Refused(errors.LOGIN_USED, login, target="Login")
