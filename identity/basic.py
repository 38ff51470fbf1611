"""HTTP Basic (RFC 7617) with a login and a personal token, for clients that support nothing else (spec 11, 11.1).

Accepted over TLS, or from this machine. A user's own password is accepted only if
settings.TABLE_API_PASSWORD_APPLICATION names the trusted application of such calls, and only for users whose sign-in
needs no second factor; attempts are limited as at the login page.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress

from django.conf import settings
from django.http import HttpRequest

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from identity.authentication import identify_caller
from identity.credentials import REFERENCE_PREFIX
from identity.factors.listing import factors_of
from identity.factors.policy import required_level
from identity.instance import client_address
from identity.models import TrustedApplication, User
from identity.password_checks import password_authenticate
from identity.rate_limits import login_key
from identity.token_identity import TokenIdentity, identify, identify_user

#: One text for all causes, so that it does not reveal which logins exist.
_WRONG = Message("the login or the personal token is wrong")


def has_basic_credentials(request: HttpRequest) -> bool:
    """Whether the Authorization header is one of HTTP Basic."""
    header: str = request.META.get("HTTP_AUTHORIZATION", "")
    return header[:6].lower() == "basic "


def identify_basic(request: HttpRequest) -> TokenIdentity:
    """The identity of the caller. Raises Unauthorized, Forbidden, TooManyRequests."""
    if not (request.is_secure() or _is_this_machine(request)):
        raise errors.Unauthorized(errors.TOKEN_INVALID, Message("HTTP Basic is accepted over TLS only"))
    login, password = _credentials(request.META["HTTP_AUTHORIZATION"])
    if not password.startswith(REFERENCE_PREFIX):
        return _of_password(request, login, password)
    identity = identify_caller(request, password)
    if identity.is_service or login_key(identity.caller.login) != login_key(login):
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG)
    return identity


def identify_again(request: HttpRequest) -> TokenIdentity:
    """The identity of a caller whom `identify_basic` has identified by this request. Raises Unauthorized, Forbidden.

    A password is not hashed again: it is valid as long as the user's has not been changed since.
    """
    _, password = _credentials(request.META["HTTP_AUTHORIZATION"])
    if password.startswith(REFERENCE_PREFIX):
        return identify(password)
    known: User = request.password_user  # type: ignore[attr-defined]
    user = User.objects.filter(pk=known.pk).first()
    if user is None or user.password != known.password:
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG)
    return _identity_of(user, _password_application())


def _is_this_machine(request: HttpRequest) -> bool:
    try:
        return ipaddress.ip_address(client_address(request)).is_loopback
    except ValueError:
        return False


def _credentials(header: str) -> tuple[str, str]:
    """(login, password). Raises Unauthorized."""
    try:
        decoded = base64.b64decode(header[6:].strip(), validate=True).decode()
    except (binascii.Error, ValueError) as exc:
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG) from exc
    login, _, password = decoded.partition(":")
    return login, password


def _of_password(request: HttpRequest, login: str, password: str) -> TokenIdentity:
    application = _password_application()
    user = password_authenticate(request, login, password)
    if user is None:
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG)
    request.password_user = user  # type: ignore[attr-defined]
    return _identity_of(user, application)


def _password_application() -> TrustedApplication:
    uri: str = settings.TABLE_API_PASSWORD_APPLICATION
    application = TrustedApplication.objects.filter(application_uri=uri).first() if uri else None
    if application is None:
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG)
    return application


def _identity_of(user: User, application: TrustedApplication) -> TokenIdentity:
    if _needs_another_factor(user):
        raise errors.Unauthorized(errors.TOKEN_INVALID, _WRONG)
    return identify_user(user, application, scopes=("read",))


def _needs_another_factor(user: User) -> bool:
    return required_level(str(user.pk)) > 0 or bool(factors_of(user))
