"""Signed proof that the consent page was shown for a user, application and scopes."""

from __future__ import annotations

from typing import Final

from django.core import signing

from identity.models import TrustedApplication, User

#: Parameter and salt of the proof.
CONSENT: Final = "_consent"
_PROOF_SECONDS = 3600


def proof_make(user: User, application: TrustedApplication, scopes: list[str]) -> str:
    """The proof, which is the value of the page's Allow button."""
    return signing.dumps(_content(user, application, scopes), salt=CONSENT)


def proof_is_valid(proof: str, user: User, application: TrustedApplication, scopes: list[str]) -> bool:
    """Whether the proof is for exactly these arguments; further scopes need another consent."""
    try:
        return bool(signing.loads(proof, salt=CONSENT, max_age=_PROOF_SECONDS) == _content(user, application, scopes))
    except signing.BadSignature:
        return False


def _content(user: User, application: TrustedApplication, scopes: list[str]) -> dict[str, object]:
    return {"user": user.pk, "client": application.client_id, "scopes": sorted(scopes)}
