"""Authentication methods of a sign-in: `amr` values (RFC 8176), and the `acr` values that they meet (OIDC Core, 2).

acr  level  met by
pwd  0      any sign-in
mfa  1      two factors
phr  2      a passkey: a phishing-resistant key that the authenticator releases after it has verified the user
            (OpenID EAP ACR Values 1.0)

A sign-in at an upstream provider has the value `external`, and origins beside the amr values, such as `idp=contoso`:
the claims `idp` (the provider's code, `local` without one) and `tid` (the provider's tenant).

Tokens and codes store all as one text: the acr, the amr values and the origins, with spaces between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

PASSWORD, ONE_TIME_CODE, KEY, EXTERNAL = "pwd", "otp", "pop", "external"
_PRESENCE, _SEVERAL = "user", "mfa"
_ORDER = (EXTERNAL, PASSWORD, ONE_TIME_CODE, KEY, _PRESENCE, _SEVERAL)

#: acr value → level.
ACR_LEVELS: Final = {"pwd": 0, "mfa": 1, "phr": 2}
#: Role.required_factor → level.
FACTOR_LEVELS: Final = {"None": 0, "SecondFactor": 1, "Passkey": 2}

Amr = tuple[str, ...]


def amr_with(amr: Amr, proof: str) -> Amr:
    """The values after another proof. A passkey counts as several factors, because it has verified its user."""
    values = {*amr, proof}
    if KEY in values:
        values |= {_PRESENCE, _SEVERAL}
    if ONE_TIME_CODE in values and values & {PASSWORD, EXTERNAL}:
        values.add(_SEVERAL)
    return (*(value for value in _ORDER if value in values), *(value for value in amr if "=" in value))


def external_amr(idp: str, tenant: str, *, several: bool) -> Amr:
    """The values of a sign-in at an upstream provider; `several`: with several factors there."""
    origins = [f"idp={idp}", *([f"tid={tenant}"] if tenant else [])]
    return (EXTERNAL, *([_SEVERAL] if several else []), *origins)


def level_of(amr: Iterable[str]) -> int:
    """The level that the values reach."""
    values = set(amr)
    return 2 if KEY in values else int(_SEVERAL in values)


def acr_requested(text: str) -> list[str]:
    """The known values of the parameter acr_values, in the client's order of preference.

    Others are ignored: the parameter asks for voluntary claims (OIDC Core, 3.1.2.1), and clients of other providers
    send hints in it.
    """
    return [value for value in text.split() if value in ACR_LEVELS]


def level_requested(text: str) -> int:
    """The lowest level that meets the parameter acr_values."""
    return min((ACR_LEVELS[value] for value in acr_requested(text)), default=0)


def acr_met(amr: Iterable[str], text: str = "") -> str | None:
    """The first value of the parameter acr_values that the sign-in meets; None if it meets none of them.

    Without a known value: the highest that it meets.
    """
    level = level_of(amr)
    candidates = acr_requested(text) or list(reversed(ACR_LEVELS.keys()))
    return next((value for value in candidates if ACR_LEVELS[value] <= level), None)


def as_stored(acr: str, amr: Iterable[str]) -> str:
    """The text of `authenticated_by`."""
    return " ".join([acr, *amr])


def claims_of(authenticated_by: str) -> dict[str, Any]:
    """The claims `acr`, `amr`, `idp` and `tid` of a stored text; none for services and older tokens."""
    acr, *values = authenticated_by.split() or [""]
    origins = dict(value.split("=", 1) for value in values if "=" in value)
    amr = [value for value in values if "=" not in value]
    return {"acr": acr, "amr": amr, "idp": "local", **origins} if acr else {}
