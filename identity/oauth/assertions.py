"""Client assertions: private_key_jwt and client_secret_jwt (RFC 7523, 3; OIDC Core, 9).

An application authenticates only by the method that its administrator chose, so a stolen secret is useless if keys are
registered. Each method has its own algorithms, so a public key never serves as a secret.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jwt

from identity.applications import PRIVATE_KEY_JWT, client_secrets
from identity.client_jwt import (
    LEEWAY_SECONDS,
    Claims,
    InvalidClientJwt,
    check_not_later,
    claims_of,
    header_of,
    identifier_of,
    seconds_of,
)
from identity.client_keys import SIGNING_ALGORITHMS, InvalidKey, public_key
from identity.models import TrustedApplication
from identity.oauth.key_sets import keys_for
from identity.single_use import use_once

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SECRET_ALGORITHM = "HS256"  # noqa: S105
#: Algorithms of assertions, for the metadata.
ASSERTION_ALGORITHMS = [*SIGNING_ALGORITHMS, _SECRET_ALGORITHM]
# Libraries use a minute to an hour; the jti is stored for this time.
_LONGEST_SECONDS = 3600
# Keys that are tried for an assertion without a key id.
_MAX_TRIED = 4


def assertion_check(application: TrustedApplication, assertion: str, audiences: set[str]) -> None:
    """Check the assertion, and mark it used. `audiences`: URLs of this provider, one of which must be its `aud`.

    Raises InvalidClientJwt.
    """
    header = header_of(assertion)
    if header.get("crit"):
        raise InvalidClientJwt("it has critical headers, of which none is known")
    claims = _signed_claims(application, assertion, header)
    if claims.get("iss") != application.client_id or claims.get("sub") != application.client_id:
        raise InvalidClientJwt("its iss and sub must be the client id")
    given = claims.get("aud")
    if not audiences & {aud for aud in (given if isinstance(given, list) else [given]) if isinstance(aud, str)}:
        raise InvalidClientJwt(f"its aud must be one of: {' '.join(sorted(audiences))}")
    left = seconds_of(claims, "exp") - time.time()
    if left <= -LEEWAY_SECONDS:
        raise InvalidClientJwt("it has expired")
    if left > _LONGEST_SECONDS + LEEWAY_SECONDS:
        raise InvalidClientJwt(f"its exp is more than {_LONGEST_SECONDS} seconds ahead")
    check_not_later(claims, "nbf")
    check_not_later(claims, "iat")
    jti = identifier_of(claims)
    # Both client ids of a dual-mode application have one key.
    if not use_once("client assertion", str(application.pk), jti, seconds=left + 2 * LEEWAY_SECONDS):
        raise InvalidClientJwt("its jti has been used before")


def _signed_claims(application: TrustedApplication, assertion: str, header: Claims) -> Claims:
    algorithm = header.get("alg")
    if application.client_authentication == PRIVATE_KEY_JWT:
        allowed, keys = SIGNING_ALGORITHMS, _public_keys(application, header)
    else:
        allowed, keys = [_SECRET_ALGORITHM], iter(client_secrets(application))
    if algorithm not in allowed:
        raise InvalidClientJwt(f"its alg must be {' or '.join(allowed)}")
    problem = InvalidClientJwt("the application has no key for it")
    for key in keys:
        try:
            return claims_of(assertion, key, str(algorithm))
        except InvalidClientJwt as exc:
            problem = exc
    raise problem


def _public_keys(application: TrustedApplication, header: Claims) -> Iterator[jwt.PyJWK | str]:
    algorithm = str(header.get("alg"))
    try:
        for key in keys_for(application, header.get("kid"), algorithm)[:_MAX_TRIED]:
            yield public_key(key, algorithm)
    except InvalidKey as exc:
        raise InvalidClientJwt(str(exc)) from exc
