"""The signed proof that this instance has shown the consent page, and for what."""

from __future__ import annotations

from typing import Final

from django.core import signing

from identity.models import TrustedApplication, User

#: Parameter and salt of the proof.
CONSENT: Final = "_consent"
_PROOF_SECONDS = 3600


def proof_make(user: User, application: TrustedApplication, scopes: list[str]) -> str:
    """The value of the button that allows."""
    return signing.dumps(_content(user, application, scopes), salt=CONSENT)


def proof_fits(proof: str, user: User, application: TrustedApplication, scopes: list[str]) -> bool:
    """Whether the page was shown for just this: more scopes need another consent."""
    try:
        return bool(signing.loads(proof, salt=CONSENT, max_age=_PROOF_SECONDS) == _content(user, application, scopes))
    except signing.BadSignature:
        return False


def _content(user: User, application: TrustedApplication, scopes: list[str]) -> dict[str, object]:
    return {"user": user.pk, "client": application.client_id, "scopes": sorted(scopes)}
