"""Dynamic client registration (RFC 7591), if the administrator's policy allows it.

The toolkit's view stores the toolkit's application, with one grant type and without a policy. Here an application gets
only the code flow with PKCE: no service, no reference tokens, and no URL that this instance would fetch.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.utils import parse_bearer_token

from audit.actors import PLATFORM
from audit.record import record
from foundation import errors
from foundation.fields import utc_now
from identity import rate_limits
from identity.anonymous_forms import MAX_BYTES, is_too_long
from identity.applications import secret_generate, url_problem
from identity.audit_kinds import AccessChanged
from identity.instance import client_address
from identity.models import RegistrationPolicy, RegistrationToken, TrustedApplication
from identity.oauth.endpoints import error_response, slow_down
from identity.oauth.responses import no_store
from identity.scopes import PROTOCOL_SCOPES

#: Grant types that may be registered.
GRANT_TYPES = ("authorization_code", "refresh_token")
_CLIENT_TYPES = {"none": "Public", "client_secret_basic": "Confidential", "client_secret_post": "Confidential"}
_PER_MINUTE = 10
_NAME_LENGTH = 100
# A redirect URI is stored between commas. Browsers read a backslash as a slash; RFC 3986 has none.
_URI = re.compile(r"[!#-+\--;=?-\[\]-~]{1,250}")
_URIS_LENGTH = 500
_UNAUTHORIZED = "An initial access token is needed that is neither used up nor expired."


class RegistrationRefused(Exception):
    """An error response (RFC 7591, 3.2.2)."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error, self.description = error, description


@dataclass(frozen=True, slots=True)
class ClientMetadata:
    """Valid metadata of a client (RFC 7591, 2). Members that are not here are ignored, URLs to fetch among them."""

    name: str
    redirect_uris: list[str]
    authentication: str
    scopes: list[str]

    @property
    def grant_types(self) -> list[str]:
        """Public applications have no refresh tokens."""
        return list(GRANT_TYPES[:1] if _CLIENT_TYPES[self.authentication] == "Public" else GRANT_TYPES)


def policy_read() -> RegistrationPolicy:
    """The administrator's policy; without a row, one that allows nothing."""
    return RegistrationPolicy.objects.filter(pk=1).first() or RegistrationPolicy()


def registration_token_issue(*, name: str, uses: int, lifetime: datetime.timedelta) -> tuple[str, RegistrationToken]:
    """(token, row); the token is shown once and not stored."""
    token = secrets.token_urlsafe(32)
    expires = utc_now() + lifetime
    return token, RegistrationToken.objects.create(digest=_digest(token), name=name, uses_left=uses, expires=expires)


def metadata_parse(body: bytes, policy: RegistrationPolicy) -> ClientMetadata:
    """The metadata of a request. Raises RegistrationRefused."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise _invalid("The body must be a JSON object.")
    return metadata_check(given, policy)


def metadata_check(given: dict[str, Any], policy: RegistrationPolicy) -> ClientMetadata:
    """The metadata of a JSON object. Raises RegistrationRefused."""
    authentication = given.get("token_endpoint_auth_method", "client_secret_basic")
    if not isinstance(authentication, str) or authentication not in _CLIENT_TYPES:
        raise _invalid(f"token_endpoint_auth_method must be one of: {', '.join(_CLIENT_TYPES)}.")
    grant_types = _texts(given, "grant_types", ["authorization_code"])
    if "authorization_code" not in grant_types or not set(grant_types) <= set(GRANT_TYPES):
        raise _invalid("grant_types must be authorization_code, and refresh_token if wanted.")
    if _texts(given, "response_types", ["code"]) != ["code"]:
        raise _invalid("response_types must be code.")
    uris = _redirect_uris(given)
    name = given.get("client_name", urlsplit(uris[0]).hostname or "Application")
    # isprintable also refuses surrogates and characters that change the text direction.
    if not isinstance(name, str) or not 0 < len(name.strip()) <= _NAME_LENGTH or not name.isprintable():
        raise _invalid(f"client_name must be a printable text of at most {_NAME_LENGTH} characters.")
    return ClientMetadata(name.strip(), uris, authentication, _scopes(given, policy))


def application_register(metadata: ClientMetadata, token: RegistrationToken, policy: RegistrationPolicy) -> Registered:
    """Use the token once and store the application. Raises RegistrationRefused if the token was used up meanwhile."""
    secret, digest = ("", None) if metadata.authentication == "none" else secret_generate()
    with transaction.atomic():
        usable = RegistrationToken.objects.filter(pk=token.pk, uses_left__gt=0, expires__gt=utc_now())
        if not usable.update(uses_left=F("uses_left") - 1):
            raise RegistrationRefused("invalid_token", _UNAUTHORIZED)
        application = application_store(
            metadata,
            policy,
            application_uri=f"registered-{secrets.token_hex(12)}",
            application_secret_hash=digest,
            registration_source=TrustedApplication.RegistrationSource.DCR,
            notes=f"Registered by itself with the initial access token “{token.name}”.",
        )
    return Registered(application, secret)


def application_store(metadata: ClientMetadata, policy: RegistrationPolicy, **values: Any) -> TrustedApplication:
    """Store an application that is limited to the code flow for internal users."""
    application = TrustedApplication.objects.create(
        name=metadata.name,
        client_type=_CLIENT_TYPES[metadata.authentication],
        impersonate_as_internal_user_allowed=True,
        impersonate_login_url=",".join(metadata.redirect_uris),
        scope=" ".join(metadata.scopes),
        is_enabled=not policy.needs_approval,
        **values,
    )
    subject = f"application {application.application_uri}"
    record(AccessChanged, by=PLATFORM, subject=subject, change="registered", source=application.registration_source)
    return application


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered application and its secret, which is shown once; "" for public ones."""

    application: TrustedApplication
    secret: str


@method_decorator(csrf_exempt, name="dispatch")
class RegistrationEndpoint(View):
    """POST metadata as JSON with an initial access token; 201 with the client id (RFC 7591, 3)."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        policy = policy_read()
        if not policy.is_allowed:
            return error_response(404, "not_found", "This instance does not register applications; ask its operator.")
        try:
            token = _token_of(request)
            rate_limits.count(f"registration:{token.pk}", _PER_MINUTE)
            if is_too_long(request):
                return error_response(413, "invalid_client_metadata", f"The body may have {MAX_BYTES} bytes.")
            metadata = metadata_parse(request.body, policy)
            registered = application_register(metadata, token, policy)
        except errors.TooManyRequests as limited:
            return slow_down(limited)
        except RegistrationRefused as refused:
            if refused.error == "invalid_token":
                challenge = {"WWW-Authenticate": 'Bearer realm="id", error="invalid_token"'}
                return error_response(401, refused.error, refused.description, challenge)
            return error_response(400, refused.error, refused.description)
        return no_store(JsonResponse(_registration_response(metadata, registered), status=201))


def _token_of(request: HttpRequest) -> RegistrationToken:
    """The usable token of the request. Raises RegistrationRefused, and TooManyRequests for an address that guesses."""
    given = parse_bearer_token(request.META.get("HTTP_AUTHORIZATION", "")) or ""
    row = RegistrationToken.objects.filter(digest=_digest(given)).first()
    if row is None or row.uses_left < 1 or row.expires <= utc_now():
        rate_limits.count_guess("registration", client_address(request))
        raise RegistrationRefused("invalid_token", _UNAUTHORIZED)
    return row


def _registration_response(metadata: ClientMetadata, registered: Registered) -> dict[str, Any]:
    """All registered metadata (RFC 7591, 3.2.1); a secret does not expire."""
    application = registered.application
    secret = {"client_secret": registered.secret, "client_secret_expires_at": 0} if registered.secret else {}
    return {
        "client_id": application.client_id,
        **secret,
        "client_id_issued_at": int(application.creation_time_utc.timestamp()),
        "client_name": metadata.name,
        "redirect_uris": metadata.redirect_uris,
        "token_endpoint_auth_method": metadata.authentication,
        "grant_types": metadata.grant_types,
        "response_types": ["code"],
        "scope": " ".join(metadata.scopes),
    }


def _redirect_uris(given: dict[str, Any]) -> list[str]:
    uris = _texts(given, "redirect_uris", [])
    if not uris or len(",".join(uris)) > _URIS_LENGTH:
        raise RegistrationRefused(
            "invalid_redirect_uri", f"1 to {_URIS_LENGTH} characters of redirect_uris are needed."
        )
    for uri in uris:
        if not _URI.fullmatch(uri) or url_problem(uri) or not _may_be_registered(uri):
            raise RegistrationRefused(
                "invalid_redirect_uri",
                "A redirect URI is an https URL, an http URL of the loopback address, or one with a scheme such as "
                "com.example.app; without a fragment, wildcards, user names and commas.",
            )
    return uris


def _may_be_registered(uri: str) -> bool:
    """Whether the redirect URI may be registered: private schemes must be domain names (RFC 8252, 7.1)."""
    parts = urlsplit(uri)
    return (parts.scheme in ("http", "https") and "@" not in parts.netloc) or "." in parts.scheme


def scopes_possible(policy: RegistrationPolicy) -> set[str]:
    """The scopes that the policy allows, and those of the protocol."""
    return {*policy.scopes.split(), *PROTOCOL_SCOPES}


def _scopes(given: dict[str, Any], policy: RegistrationPolicy) -> list[str]:
    """The wanted scopes, by default all that the policy allows."""
    requested = given.get("scope", policy.scopes)
    possible = scopes_possible(policy)
    if not isinstance(requested, str) or not set(requested.split()) <= possible:
        raise _invalid(f"scope may have: {' '.join(sorted(possible))}.")
    return list(dict.fromkeys(requested.split())) or ["openid"]


def _texts(given: dict[str, Any], name: str, default: list[str]) -> list[str]:
    value = given.get(name, default)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _invalid(f"{name} must be an array of strings.")
    return value


def _invalid(description: str) -> RegistrationRefused:
    return RegistrationRefused("invalid_client_metadata", description)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
