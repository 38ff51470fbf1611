"""The second factors of a user, for pages and for the steps of a sign-in."""

from __future__ import annotations

from dataclasses import dataclass

from identity.factors.recovery import codes_left
from identity.models import AuthenticatorApp, Passkey, RecoveryCode, User


@dataclass(frozen=True, slots=True)
class Factors:
    """A user's factors; `recovery_codes` is the number of unused ones."""

    passkeys: list[Passkey]
    app: AuthenticatorApp | None
    recovery_codes: int

    def __bool__(self) -> bool:
        """Whether the user has a second factor; recovery codes alone are none."""
        return bool(self.passkeys or self.app)

    @property
    def level(self) -> int:
        """The highest level that the user can reach (identity.factors.methods)."""
        return 2 if self.passkeys else int(self.app is not None)


def factors_of(user: User) -> Factors:
    """The user's factors, passkeys oldest first."""
    passkeys = list(Passkey.objects.filter(user=user).order_by("created", "pk"))
    return Factors(passkeys, AuthenticatorApp.objects.filter(user=user).first(), codes_left(user))


def factors_remove(user: User, *, passkeys: list[Passkey], app: bool) -> None:
    """Remove the passkeys, and the app; without a factor left, the recovery codes too."""
    Passkey.objects.filter(user=user, pk__in=[passkey.pk for passkey in passkeys]).delete()
    if app:
        AuthenticatorApp.objects.filter(user=user).delete()
    if not factors_of(user):
        RecoveryCode.objects.filter(user=user).delete()
