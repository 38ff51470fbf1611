"""Recovery codes: single-use replacements of a second factor.

A code has 80 random bits, so a digest without a slow hash is enough: a stolen database cannot be searched for it.
"""

from __future__ import annotations

import base64
import hashlib
import secrets

from django.db import transaction

from identity.models import RecoveryCode, User

NUMBER = 10
_BYTES = 10


def codes_make(user: User) -> list[str]:
    """Replace the user's codes by new ones, which only this return value has."""
    codes = [base64.b32encode(secrets.token_bytes(_BYTES)).decode().lower() for _ in range(NUMBER)]
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(user, code)) for code in codes)
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def code_use(user: User, code: str) -> bool:
    """Whether the code is an unused one of the user; then uses it. Case, spaces and hyphens do not matter."""
    return bool(RecoveryCode.objects.filter(user=user, digest=_digest(user, code)).delete()[0])


def codes_left(user: User) -> int:
    """Number of unused codes."""
    return RecoveryCode.objects.filter(user=user).count()


def _digest(user: User, code: str) -> str:
    plain = "".join(code.lower().replace("-", "").split())
    return hashlib.sha256(f"{user.pk}:{plain}".encode()).hexdigest()
