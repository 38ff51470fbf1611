"""Time-based one-time passwords (RFC 6238) of authenticator apps: six digits, 30 seconds, SHA-1, as all apps have."""

from __future__ import annotations

import pyotp
import segno
from django.db.models import F
from django.http import HttpRequest
from pyotp.exceptions import OTPVerificationError

from audit.actors import Actor
from foundation.encryption import Unreadable
from foundation.fields import utc_now
from identity.factors.notices import APP_BLOCKED, user_notify
from identity.instance import requested_host
from identity.models import AuthenticatorApp, User

#: Clock difference of a phone, in steps of 30 seconds.
_WINDOW = 1
#: After so many wrong codes in a row no code is accepted until another factor is proven (NIST SP 800-63B-4, 3.2.2).
MAX_FAILURES = 100


def secret_make() -> str:
    """A new secret: 160 bits in base32 (RFC 4226, 4, R6)."""
    return pyotp.random_base32()


def secret_uri(request: HttpRequest, user: User, secret: str) -> str:
    """The otpauth: URI of the secret, which apps read from the QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.login, issuer_name=requested_host(request))


def qr_code(text: str) -> str:
    """The QR code as a data URI of an SVG; black on white, so that it can be read in dark colours too."""
    return segno.make(text, error="m", micro=False).svg_data_uri(scale=5, dark="#000", light="#fff")


def app_add(user: User, secret: str, code: str) -> bool:
    """Store the secret if the code proves that the app has it; replaces the app before."""
    step = _step_of(secret, code)
    if step is None:
        return False
    AuthenticatorApp.objects.update_or_create(
        user=user,
        defaults={"secret": secret, "last_step": step, "failed_codes": 0, "created": utc_now(), "last_used": None},
    )
    return True


def code_use(user: User, code: str, *, by: Actor) -> bool:
    """Whether the code is right and newer than the last accepted one; then uses it. by: the sender.

    The attempt counts as failed until the code is accepted, so that the limit holds for parallel attempts.
    """
    rows = AuthenticatorApp.objects.filter(user=user)
    if not rows.filter(failed_codes__lt=MAX_FAILURES).update(failed_codes=F("failed_codes") + 1):
        return False
    app = rows.get()
    step = _step_of(app.secret, code)
    if step is not None and rows.filter(last_step__lt=step).update(last_step=step, failed_codes=0, last_used=utc_now()):
        return True
    if app.failed_codes == MAX_FAILURES:
        user_notify(user, APP_BLOCKED, by=by)
    return False


def app_is_blocked(user: User) -> bool:
    """Whether too many wrong codes were tried."""
    return AuthenticatorApp.objects.filter(user=user, failed_codes__gte=MAX_FAILURES).exists()


def failures_forget(user: User) -> None:
    """Reset the count of wrong codes after the user has proven another factor."""
    AuthenticatorApp.objects.filter(user=user).update(failed_codes=0)


def _step_of(secret: str, code: str) -> int | None:
    """The time step of the code; None for a wrong code, and for a secret whose encryption key is lost."""
    digits = code.replace(" ", "")
    if isinstance(secret, Unreadable) or not (len(digits) == 6 and digits.isascii() and digits.isdigit()):
        return None
    try:
        return pyotp.TOTP(secret).verify_and_get_timecode(digits, valid_window=_WINDOW)
    except OTPVerificationError:
        return None
