"""Codes and tokens bound to the key of a DPoP proof (RFC 9449, 5 and 10)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidGrantError

from identity.dpop import InvalidProof, proof_check
from identity.models import TrustedApplication
from identity.oauth.clients import endpoint_url
from identity.oauth.refusals import AuthorizationRefused

if TYPE_CHECKING:
    from oauthlib.common import Request

# The base64url form of a SHA-256.
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}")


def request_key(request: Request, application: TrustedApplication) -> str:
    """The thumbprint of the key that the client proves to hold; "" without a proof. Raises CustomOAuth2Error."""
    proof = request.headers.get("HTTP_DPOP")
    if proof is None:
        if application.dpop_required:
            raise CustomOAuth2Error("invalid_dpop_proof", description="The application must send a DPoP proof.")
        return ""
    try:
        return proof_check(proof, method="POST", url=endpoint_url(request))
    except InvalidProof as exc:
        raise CustomOAuth2Error(exc.error, description=f"The DPoP proof is refused: {exc}.") from exc


def check_bound(request: Request, jkt: str) -> None:
    """Check that the request proves the key that the code is bound to. Raises InvalidGrantError."""
    if jkt and getattr(request, "dpop_jkt", "") != jkt:
        raise InvalidGrantError(description="The authorization code is bound to the key of another DPoP proof.")


def check_dpop_jkt(given: str | None) -> None:
    """Check that the parameter dpop_jkt is a thumbprint (RFC 9449, 10). Raises AuthorizationRefused."""
    if given is not None and not _THUMBPRINT.fullmatch(given):
        raise AuthorizationRefused("invalid_request", "dpop_jkt must be the base64url form of a SHA-256.")
