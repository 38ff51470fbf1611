"""Passkeys: WebAuthn ceremonies (Web Authentication Level 3, 7), with python-fido2 for formats and signatures.

The challenge of a ceremony is in a signed text that the page sends back, so the login page writes no row.
An assertion is accepted once: its challenge must be younger than that of the passkey's last assertion, and the
signature counter must not go back (7.2, step 22). Both are compared in the statement that stores them.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from foundation.fields import utc_now
from identity.instance import base_url, requested_host
from identity.models import Passkey, User

logger = logging.getLogger(__name__)
_SALT = "identity.factors.passkeys"
#: Time for a ceremony. A login page may be open for a while before its passkey is used.
_SECONDS = 15 * 60
_TIMEOUT_MS = 5 * 60 * 1000
MAX_PASSKEYS = 20


class PasskeyRefused(Exception):
    """The browser's response is refused; the message is for people, in their language."""


@dataclass(frozen=True, slots=True)
class Ceremony:
    """The data of one ceremony for its page.

    options  JSON for navigator.credentials (PublicKeyCredentialCreationOptionsJSON, …RequestOptionsJSON)
    state    signed text that comes back with the response
    """

    options: str
    state: str


def relying_party_id(request: HttpRequest) -> str:
    """The host name to which passkeys belong; "" where browsers refuse passkeys.

    They need HTTPS or localhost, and a name: an IP address is no relying party id (WebAuthn 3, 5.1.2).
    """
    base = urlsplit(base_url(request))
    host = base.hostname or ""
    if host != urlsplit(f"//{requested_host(request)}").hostname or _is_address(host):
        return ""
    is_local = host == "localhost" or host.endswith(".localhost")
    return host if base.scheme == "https" or is_local else ""


def registration_begin(request: HttpRequest, user: User) -> Ceremony:
    """A ceremony that registers a passkey for the user (WebAuthn 3, 7.1)."""
    options, state = _server(request).register_begin(
        PublicKeyCredentialUserEntity(
            id=UUID(str(user.pk)).bytes, name=user.login, display_name=user.display_name() or user.login
        ),
        credentials=_descriptors(request, user),
        resident_key_requirement=ResidentKeyRequirement.REQUIRED,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return _ceremony(dict(options)["publicKey"], state, f"register {user.pk}")


def registration_complete(request: HttpRequest, user: User, *, name: str, state: str, response: str) -> Passkey:
    """Store the passkey of the browser's response. Raises PasskeyRefused."""
    found, _made_at = _state(state, f"register {user.pk}")
    server = _server(request)
    with _refusing():
        given = RegistrationResponse.from_dict(_json(response))
        data = server.register_complete(found, given)
        transports = _transports(response)
    credential = data.credential_data
    if credential is None or credential.credential_id != given.raw_id:
        raise PasskeyRefused(_("The browser's response is not complete."))
    if Passkey.objects.filter(user=user).count() >= MAX_PASSKEYS:
        raise PasskeyRefused(_("An account may have %(number)s passkeys.") % {"number": MAX_PASSKEYS})
    try:
        with transaction.atomic():
            return Passkey.objects.create(
                user=user,
                name=name,
                credential_id=websafe_encode(credential.credential_id),
                credential=websafe_encode(bytes(credential)),
                rp_id=relying_party_id(request),
                transports=transports,
                sign_count=data.counter,
            )
    except IntegrityError as exc:
        raise PasskeyRefused(_("This passkey is registered already.")) from exc


def assertion_begin(request: HttpRequest, user: User | None = None) -> Ceremony:
    """A ceremony that proves a passkey: of the user, or, without a login, of any user (7.2)."""
    options, state = _server(request).authenticate_begin(
        credentials=None if user is None else _descriptors(request, user),
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return _ceremony(dict(options)["publicKey"], state, _purpose(user))


def assertion_complete(request: HttpRequest, *, state: str, response: str, user: User | None = None) -> User:
    """The user whose passkey signed the response. Raises PasskeyRefused."""
    found, at = _state(state, _purpose(user))
    server = _server(request)
    with _refusing():
        given = AuthenticationResponse.from_dict(_json(response))
    known = Passkey.objects.filter(credential_id=websafe_encode(given.raw_id), rp_id=relying_party_id(request))
    passkey = known.select_related("user").first()
    if passkey is None or (user is not None and passkey.user_id != user.pk):
        raise PasskeyRefused(_("This passkey is not known here. It may have been removed from the account."))
    with _refusing():
        handle = given.response.user_handle
        if handle is not None and handle != UUID(str(passkey.user_id)).bytes:
            raise ValueError("The user handle is that of another account.")
        server.authenticate_complete(found, [AttestedCredentialData(websafe_decode(passkey.credential))], given)
    _use(passkey, counter=given.response.authenticator_data.counter, at=at)
    result: User = passkey.user
    return result


def _use(passkey: Passkey, *, counter: int, at: int) -> None:
    """Record the use. Raises PasskeyRefused for a replayed assertion, and for a counter that did not increase."""
    # 7.2, step 22: authenticators without a counter always send 0.
    counts = Q(sign_count__lt=counter) if counter else Q(sign_count=0)
    used = Passkey.objects.filter(counts, pk=passkey.pk, last_challenge__lt=at)
    if used.update(sign_count=counter, last_challenge=at, last_used=utc_now()):
        return
    if Passkey.objects.filter(counts, pk=passkey.pk).exists():
        raise PasskeyRefused(_("This response has been used already, or a newer page was used. Try again."))
    logger.warning("the signature counter of passkey %s went back: it may have been copied", passkey.pk)
    raise PasskeyRefused(_("The passkey may have been copied: its counter went back. Tell an administrator."))


def _server(request: HttpRequest) -> Fido2Server:
    rp_id = relying_party_id(request)
    if not rp_id:
        raise PasskeyRefused(_("Passkeys need HTTPS and a host name; this page has an IP address or no HTTPS."))
    origin = base_url(request)
    parts = urlsplit(origin)
    expected = f"{parts.scheme}://{parts.netloc}"
    return _server_of(rp_id, expected)


@lru_cache(maxsize=16)
def _server_of(rp_id: str, origin: str) -> Fido2Server:
    """A server without request state, cached: creating one probes the available algorithms and took 1.5 ms."""
    server = Fido2Server(PublicKeyCredentialRpEntity(id=rp_id, name=rp_id), verify_origin=lambda got: got == origin)
    server.timeout = _TIMEOUT_MS  # type: ignore[assignment]  # milliseconds; declared as None
    return server


def _ceremony(options: Any, state: Any, purpose: str) -> Ceremony:
    at = time.time_ns() // 1000
    signed = signing.dumps({"state": state, "purpose": purpose, "at": at}, salt=_SALT)
    return Ceremony(json.dumps(options, default=dict), signed)


def _state(text: str, purpose: str) -> tuple[Any, int]:
    """The library's state, and the creation time of the challenge (µs)."""
    try:
        found = signing.loads(text, salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature as exc:
        raise PasskeyRefused(_("It took too long. Try again.")) from exc
    if found["purpose"] != purpose:
        raise PasskeyRefused(_("The response belongs to another page. Try again."))
    return found["state"], int(found["at"])


def _purpose(user: User | None) -> str:
    return "sign in" if user is None else f"prove {user.pk}"


def _descriptors(request: HttpRequest, user: User) -> list[PublicKeyCredentialDescriptor]:
    rows = Passkey.objects.filter(user=user, rp_id=relying_party_id(request))
    return [
        PublicKeyCredentialDescriptor(
            type=PublicKeyCredentialType.PUBLIC_KEY,
            id=websafe_decode(row.credential_id),
            transports=[AuthenticatorTransport(each) for each in row.transports.split()] or None,
        )
        for row in rows
    ]


def _transports(response: str) -> str:
    """The transports that the library knows, for later ceremonies (WebAuthn 3, 5.2.1.1)."""
    given = _json(response)["response"].get("transports")
    named = {str(each) for each in given} if isinstance(given, list) else set()
    return " ".join(sorted(named & {each.value for each in AuthenticatorTransport}))


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise PasskeyRefused for malformed input; the library passes the various errors of its parsers on."""
    try:
        yield
    except Exception as exc:
        logger.info("a passkey's response was refused: %s", exc)
        raise PasskeyRefused(_("The passkey's response cannot be accepted. Try again.")) from exc


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
