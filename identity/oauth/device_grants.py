"""The device authorization grant (RFC 8628): requests of devices, their polling, and user codes.

Codes are stored as digests, like authorization codes. A device code gives tokens once.
"""

from __future__ import annotations

import datetime
import json
import secrets
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError, OAuth2Error
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant
from oauthlib.openid.connect.core.grant_types.base import GrantTypeBase

from foundation.fields import utc_now
from identity.factors.methods import acr_met, as_stored
from identity.models import DeviceGrant, TrustedApplication
from identity.oauth.codes import stored_code
from identity.oauth.scopes import scopes_for_user
from identity.oauth.sign_in import SignIn

if TYPE_CHECKING:
    from oauthlib.common import Request

#: Lifetime of the codes, and the seconds between two polls of the device.
EXPIRES_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 5
# RFC 8628, 6.1: no vowels, to avoid words; 20^8 codes are 34 bits.
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_REFUSED = "The device code is unknown, already used or was issued to another client."


class DeviceGrantHandler(GrantTypeBase):  # type: ignore[misc]
    """oauthlib's handler, with an id token if openid was granted."""

    def __init__(self, request_validator: Any = None, **kwargs: Any) -> None:
        self.proxy_target = _Handler(request_validator, **kwargs)
        self.register_token_modifier(self.add_id_token)


class _Handler(DeviceCodeGrant):  # type: ignore[misc]
    def create_token_response(self, request: Request, token_handler: Any) -> tuple[dict[str, str], str, int]:
        headers: dict[str, str] = self._get_default_headers()
        try:
            self.validate_token_request(request)
            token = token_handler.create_token(request)
            modifiers: list[Callable[..., Any]] = self._token_modifiers
            for modifier in modifiers:
                token = modifier(token, token_handler, request)
            self.request_validator.save_token(token, request)
        except OAuth2Error as refused:
            return {**headers, **refused.headers}, refused.json, refused.status_code
        return headers, json.dumps(token), 200


def device_request(application: TrustedApplication, scopes: list[str]) -> tuple[str, str]:
    """Store a device's request; returns (device code, user code)."""
    device_code, user_code = secrets.token_urlsafe(32), "".join(secrets.choice(_LETTERS) for _ in range(8))
    DeviceGrant.objects.create(
        application=application,
        client_id=application.application_uri[:100],
        device_code=stored_code(device_code),
        user_code=stored_code(user_code),
        scope=" ".join(scopes),
        expires=utc_now() + datetime.timedelta(seconds=EXPIRES_SECONDS),
    )
    return device_code, f"{user_code[:4]}-{user_code[4:]}"


def device_find(user_code: str) -> DeviceGrant | None:
    """The pending request with this user code, in any spelling; None for others."""
    typed = "".join(character for character in user_code.upper() if character.isalpha())
    waiting = DeviceGrant.objects.filter(status=DeviceGrant.AUTHORIZATION_PENDING, expires__gt=utc_now())
    return waiting.select_related("application").filter(user_code=stored_code(typed)).first()


def device_decide(grant: DeviceGrant, sign_in: SignIn, *, allowed: bool) -> bool:
    """Allow or deny the request as the signed-in user; False if it was decided meanwhile."""
    status = DeviceGrant.AUTHORIZED if allowed else DeviceGrant.DENIED
    waiting = DeviceGrant.objects.filter(pk=grant.pk, status=DeviceGrant.AUTHORIZATION_PENDING)
    decided = waiting.update(
        status=status,
        user=sign_in.user,
        scope=" ".join(scopes_for_user(sign_in.user, grant.scope.split())),
        # A device is no part of the browser's session: its own ends with its tokens.
        sid=str(family := uuid.uuid4()),
        token_family=family,
        auth_time=sign_in.auth_time,
        authenticated_by=as_stored(acr_met(sign_in.amr) or "", sign_in.amr),
    )
    return bool(decided)


def device_load(device_code: str, application: TrustedApplication, request: Request) -> str | None:
    """The status of a device's request by oauthlib's names; loads the data of an allowed one into `request`."""
    grants = DeviceGrant.objects.filter(application=application, device_code=stored_code(device_code))
    grant = grants.select_related("user").first()
    if grant is None or grant.status == DeviceGrant.EXPIRED:
        return None
    if grant.expires <= utc_now():
        return str(DeviceCodeGrant.DEVICE_CODE_EXPIRED)
    if grant.status == DeviceGrant.DENIED:
        return str(DeviceCodeGrant.DEVICE_CODE_DENIED)
    if grant.status == DeviceGrant.AUTHORIZATION_PENDING:
        now = utc_now()
        since = now - datetime.timedelta(seconds=INTERVAL_SECONDS - 1)  # of networks that are not even
        polled = grants.filter(Q(last_checked=None) | Q(last_checked__lte=since)).update(last_checked=now)
        return str(DeviceCodeGrant.DEVICE_CODE_PENDING if polled else DeviceCodeGrant.DEVICE_CODE_SLOW_DOWN)
    if grant.user is None or not grant.user.active:
        raise InvalidGrantError(description="The user is disabled.")
    if not application.admits(grant.user):
        raise InvalidGrantError(description="The application may no longer sign this user in.")
    request.grant_instance = grant
    request.user = grant.user
    request.scopes = grant.scope.split()
    request.nonce = None
    return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED)


def device_use(request: Request) -> None:
    """Mark the device's request used. Raises InvalidGrantError if another poll has used it."""
    allowed = DeviceGrant.objects.filter(pk=request.grant_instance.pk, status=DeviceGrant.AUTHORIZED)
    if not allowed.update(status=DeviceGrant.EXPIRED):
        raise InvalidGrantError(description=_REFUSED)
