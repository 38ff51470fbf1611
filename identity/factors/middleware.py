"""Sets the signed-in user of a request, if the sign-in has the factors that the user's roles require."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from identity.factors.policy import is_enough
from identity.models import User
from identity.oauth.sign_in import amr_get


class SignInMiddleware(AuthenticationMiddleware):
    """Sets `request.user`; anonymous if the sign-in lacks a required factor. This covers all pages, and existing
    sign-ins when a role gets a requirement.
    """

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _user(request))  # type: ignore[assignment]


def _user(request: HttpRequest) -> AbstractBaseUser | AnonymousUser:
    user = get_user(request)
    if isinstance(user, User) and not is_enough(str(user.pk), amr_get(request)):
        return AnonymousUser()
    return user
