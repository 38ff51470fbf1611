"""The client of an upstream provider: discovery, authorization code with PKCE, validation of the id token.

Sources: OpenID Connect Discovery 1.0; OpenID Connect Core 1.0, 3.1.2.1 and 3.1.3.7; RFC 7636 (PKCE); RFC 9207 (iss);
RFC 9700. Every request goes through the egress policy. The documents of a provider are cached in the process for
CACHE_SECONDS; an unknown key id loads the keys again, once in RELOAD_SECONDS.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session

from foundation import errors
from foundation.egress.client import EgressAdapter, EgressSession
from foundation.egress.connection import EgressFailed
from foundation.messages import TranslatableMessage as Message
from identity.models import IdentityProvider

CACHE_SECONDS: Final = 600.0
RELOAD_SECONDS: Final = 60.0
#: Time without further requests to an unreachable provider.
FAILURE_SECONDS: Final = 5.0
#: Concurrent requests to providers: anonymous users cause them.
MAX_REQUESTS: Final = 8
_LEEWAY_SECONDS = 60
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
# Part of a stored text with blanks as separators (identity.factors.methods).
_TENANT = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_requests = threading.BoundedSemaphore(MAX_REQUESTS)


class FederationFailed(Exception):
    """The sign-in at the provider failed. The message is for users, and has no secret."""


class ProviderBusy(FederationFailed):
    """Too many requests of this process wait for providers."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an upstream sign-in.

    claims     of the id token and, if they lack the login, of userinfo
    auth_time  UTC timestamp of the upstream sign-in, None if the provider does not send it
    """

    subject: str
    claims: Mapping[str, Any]
    id_token: str
    auth_time: float | None

    @property
    def tenant(self) -> str:
        """The tenant at the provider (`tid`, of Entra ID and instances of this platform), "" without one."""
        tenant = self.text("tid")
        return tenant if _TENANT.fullmatch(tenant) else ""

    def text(self, name: str) -> str:
        """A claim that is a text, else ""."""
        value = self.claims.get(name)
        return value.strip() if isinstance(value, str) else ""

    def values(self, name: str) -> frozenset[str]:
        """The values of a claim that is a text or an array of texts."""
        value = self.claims.get(name)
        return frozenset(str(each) for each in (value if isinstance(value, list) else [value]) if each is not None)


class _Cache:
    """Documents by URL, loaded again after CACHE_SECONDS; failures are kept for FAILURE_SECONDS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, dict[str, Any] | FederationFailed]] = {}

    def get(self, url: str, load: Callable[[str], dict[str, Any]], max_age_seconds: float) -> dict[str, Any]:
        """The document at the URL, at most so old. Raises FederationFailed."""
        with self._lock:
            known = self._known.get(url)
        now = time.monotonic()
        if known is not None:
            at, result = known
            failed = isinstance(result, FederationFailed)
            if now - at < (FAILURE_SECONDS if failed else max_age_seconds):
                return _result(result)
        try:
            loaded: dict[str, Any] | FederationFailed = load(url)
        except ProviderBusy:
            raise  # not a failure of this document
        except FederationFailed as failure:
            loaded = failure
        with self._lock:
            self._known[url] = (now, loaded)
        return _result(loaded)

    def clear(self) -> None:
        """Forget all documents."""
        with self._lock:
            self._known.clear()


def _result(known: dict[str, Any] | FederationFailed) -> dict[str, Any]:
    if isinstance(known, FederationFailed):
        raise FederationFailed(*known.args) from known.__cause__
    return known


documents = _Cache()


class UpstreamSession(OAuth2Session):  # type: ignore[misc]
    """Authlib's client, whose requests go through the egress adapter and follow no redirect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, EgressAdapter())

    get_redirect_target = EgressSession.get_redirect_target


def metadata(provider: IdentityProvider) -> dict[str, Any]:
    """The discovery document (Discovery, 4). Raises FederationFailed."""
    url = provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
    result = documents.get(url, _load, CACHE_SECONDS)
    if result.get("issuer") != provider.issuer:
        raise FederationFailed(
            Message("Its discovery document names the issuer {0}, not {1}.", result.get("issuer"), provider.issuer)
        )
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if urlsplit(str(result.get(name, ""))).scheme not in ("https", "http"):
            raise FederationFailed(Message("Its discovery document has no {0}.", name))
    return result


def authorization_url(
    provider: IdentityProvider,
    *,
    redirect_uri: str,
    state: str,
    nonce: str,
    verifier: str,
    fresh: bool,
    login_hint: str = "",
) -> str:
    """The URL of the authorization request (Core, 3.1.2.1); `fresh`: force a new sign-in. Raises FederationFailed."""
    endpoint = metadata(provider)["authorization_endpoint"]
    extra = {"prompt": "login", "max_age": "0"} if fresh else {}
    if login_hint:
        extra["login_hint"] = login_hint
    with _session(provider, redirect_uri) as session:
        url, _state = session.create_authorization_url(
            endpoint, state=state, nonce=nonce, code_verifier=verifier, **extra
        )
    return str(url)


def exchange(
    provider: IdentityProvider, *, redirect_uri: str, code: str, nonce: str, verifier: str, issuer: str
) -> Identity:
    """Redeem the code and validate the id token. `issuer`: the response's `iss`, or "". Raises FederationFailed."""
    known = metadata(provider)
    named = known.get("authorization_response_iss_parameter_supported") is True
    if (issuer or named) and issuer != provider.issuer:
        raise FederationFailed(Message("The answer names another issuer."))
    with _session(provider, redirect_uri, known) as session:
        token = _requested(
            lambda: session.fetch_token(
                known["token_endpoint"], code=code, code_verifier=verifier, grant_type="authorization_code"
            )
        )
        id_token = token.get("id_token")
        if not isinstance(id_token, str):
            raise FederationFailed(Message("The provider sent no id token."))
        claims = _validated(provider, known, id_token, nonce)
        if provider.login_claim not in claims and (userinfo := known.get("userinfo_endpoint")):
            response = _requested(lambda: session.get(userinfo).json())
            # Core, 5.3.2: protects against token substitution.
            if not isinstance(response, dict) or response.get("sub") != claims["sub"]:
                raise FederationFailed(Message("Its userinfo is about somebody else."))
            claims = {**response, **claims}
    auth_time = claims.get("auth_time")
    return Identity(
        str(claims["sub"]), claims, id_token, float(auth_time) if isinstance(auth_time, int | float) else None
    )


def _session(provider: IdentityProvider, redirect_uri: str, known: Mapping[str, Any] | None = None) -> UpstreamSession:
    methods = (known or {}).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
    return UpstreamSession(
        provider.client_id,
        provider.client_secret or None,
        token_endpoint_auth_method=method if provider.client_secret else "none",
        scope=provider.scopes,
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
        leeway=0,
    )


def _load(url: str) -> dict[str, Any]:
    def ask() -> tuple[int, Any]:
        with EgressSession() as session:
            response = session.get(url)
        return response.status_code, response.json() if response.status_code == 200 else None

    status, result = _requested(ask)
    if status != 200:
        raise FederationFailed(Message("It answers {0} with status {1}.", url, status))
    if not isinstance(result, dict):
        raise FederationFailed(Message("It answers {0} with something else than a JSON object.", url))
    return result


def _requested(ask: Callable[[], Any]) -> Any:
    """The result of a request. Raises FederationFailed instead of the libraries' errors."""
    if not _requests.acquire(blocking=False):
        raise ProviderBusy(Message("Too many people sign in there just now. Try again in a moment."))
    try:
        return ask()
    except AuthlibBaseError as refused:
        # The code of RFC 6749, 5.2; the description is the provider's text, in its language.
        raise FederationFailed(Message("The provider refused: {0}", refused.error)) from refused
    except (errors.Refused, EgressFailed) as unreachable:
        # The cause contains network addresses, which anonymous users must not see.
        raise FederationFailed(Message("The provider cannot be reached.")) from unreachable
    except (requests.RequestException, ValueError) as broken:
        raise FederationFailed(Message("The provider's answer cannot be read.")) from broken
    finally:
        _requests.release()


def _validated(provider: IdentityProvider, known: Mapping[str, Any], id_token: str, nonce: str) -> dict[str, Any]:
    """The claims of the id token (Core, 3.1.3.7). Raises FederationFailed."""
    try:
        key = _key(known["jwks_uri"], jwt.get_unverified_header(id_token))
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key,
            algorithms=list(_ALGORITHMS),
            audience=provider.client_id,
            issuer=provider.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "sub", "iss", "aud"]},
        )
    except (jwt.PyJWTError, ValueError) as invalid:
        raise FederationFailed(Message("Its id token is not valid: {0}", type(invalid).__name__)) from invalid
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != provider.client_id:
        raise FederationFailed(Message("Its id token was issued to another application."))
    if claims.get("nonce") != nonce:
        raise FederationFailed(Message("Its id token answers another sign-in."))
    # Printable: without NUL and lone surrogates, which databases refuse.
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise FederationFailed(Message("Its id token has no usable subject."))
    return claims


def _key(url: str, header: Mapping[str, Any]) -> jwt.PyJWK:
    """The key that the token names; the only key if it names none."""
    kid = header.get("kid")
    for max_age_seconds in (CACHE_SECONDS, RELOAD_SECONDS):
        keys = jwt.PyJWKSet.from_dict(documents.get(url, _load, max_age_seconds)).keys
        signing = [key for key in keys if key.public_key_use in (None, "sig")]
        if kid is None and len(signing) == 1:
            return signing[0]
        for key in signing:
            if kid is not None and key.key_id == kid:
                return key
    raise jwt.InvalidKeyError("no such key")
