"""Validation and secrets of trusted applications, for the admin and the API (spec 01, 1.3)."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
import secrets
from collections import defaultdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actors import Actor
from audit.record import record
from foundation.messages import reason_of, translated
from foundation.validators import identifier_problem
from identity.audit_kinds import SecretChanged
from identity.changes import access_changed
from identity.client_keys import InvalidKey, key_set_parse
from identity.licences import ADVANCED_BPM, licence_terms
from identity.logins import login_holder
from identity.scopes import API_SCOPES, KNOWN_SCOPES, LEGACY_SCOPES, PROVISIONING_SCOPE, SERVICE_TOKEN_SCOPES

if TYPE_CHECKING:
    from identity.models import TrustedApplication
from identity.models.applications import SERVICE_SUFFIX

# Pages of the instance get their tokens without a redirect (identity.page_tokens), so they have no login URL.
PAGE_APPLICATIONS = frozenset({"DomainApiSite"})
SECRET, SECRET_JWT, PRIVATE_KEY_JWT = "Secret", "SecretJwt", "PrivateKeyJwt"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
#: Host and port without a scheme: `localhost:5080/callback` would parse as a URL of the scheme `localhost`.
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:\d+(?:[/?#]|$)")
_NEVER_A_REDIRECT = {"javascript", "data", "vbscript", "file", "about", "blob"}

Problems = dict[str, list[str]]


def secret_hash(secret: str) -> str:
    """base64(SHA-256(secret)): a fast hash is enough, since secrets are generated with at least 256 bits."""
    return base64.b64encode(hashlib.sha256(secret.encode()).digest()).decode()


def secret_generate() -> tuple[str, str]:
    """(secret, hash) of a new 256-bit secret. Show the secret once; store only the hash."""
    secret = secrets.token_urlsafe(32)
    return secret, secret_hash(secret)


def secret_rotate(application: TrustedApplication, *, keep_previous: datetime.timedelta, by: Actor) -> str:
    """Give the application a new secret and return it, to be shown once.

    The previous secret stays valid for `keep_previous`, so that clients can be changed without an interruption; 0 ends
    it.
    """
    secret, digest = secret_generate()
    kept = bool(keep_previous) and bool(application.application_secret_hash)
    model = type(application)
    with transaction.atomic():
        model.objects.filter(pk=application.pk).update(
            previous_secret_hash=application.application_secret_hash if kept else None,
            previous_secret_expires_utc=timezone.now() + keep_previous if kept else None,
            application_secret_hash=digest,
            previous_encrypted_secret=application.encrypted_secret if kept else None,
            encrypted_secret=secret if application.client_authentication == SECRET_JWT else None,
            object_version=F("object_version") + 1,
        )
        access_changed(model)
        record(SecretChanged, by=by, subject=f"application {application.application_uri}", previousIsKept=kept)
    return secret


def secret_matches(application: TrustedApplication, secret: str) -> bool:
    """Whether the secret is the application's current or still valid previous one. Constant time."""
    given = secret_hash(secret).encode()
    current = hmac.compare_digest(given, (application.application_secret_hash or "").encode())
    until = application.previous_secret_expires_utc
    previous_valid = bool(application.previous_secret_hash) and until is not None and until > timezone.now()
    previous = hmac.compare_digest(given, (application.previous_secret_hash or "").encode())
    return bool(secret) and (current or (previous and previous_valid))


def client_secrets(application: TrustedApplication) -> list[str]:
    """The valid secrets themselves, which only applications with client_secret_jwt keep."""
    kept = (application.encrypted_secret, application.previous_encrypted_secret)
    return [secret for secret in kept if secret and secret_matches(application, secret)]


def check_application(application: TrustedApplication) -> None:
    """Run every check. Raises ValidationError with the problems by field."""
    problems: Problems = defaultdict(list)
    for check in (
        check_client_id, check_system_user, check_login_url, check_dual_mode, check_urls, check_scope, check_secret,
        check_max_sessions, check_keys, check_exchange,
    ):  # fmt: skip
        check(application, problems)
    if problems:
        raise ValidationError(dict(problems))


def check_client_id(application: TrustedApplication, problems: Problems) -> None:
    """Check that a client id is visible and no login: both are the `sub` of tokens (RFC 9068, 5)."""
    if problem := identifier_problem(application.application_uri):
        problems["application_uri"].append(problem.translated(_))
    if login_holder(application.application_uri) is not None:
        problems["application_uri"].append(_("A user has, or had, this login. Choose another application URI."))


def check_system_user(application: TrustedApplication, problems: Problems) -> None:
    """Check that a service application has an internal or system user."""
    if not application.system_user_allowed:
        return
    user = application.system_user
    if user is None:
        problems["system_user"].append(_("A service application needs a system user."))
    elif not user.may_call(as_service=True):
        problems["system_user"].append(_("The system user must be an internal or a system user."))


def check_login_url(application: TrustedApplication, problems: Problems) -> None:
    """Check that an interactive application has a redirect URI, or the device flow, which needs none."""
    is_own = application.application_uri in PAGE_APPLICATIONS
    if application.is_interactive and not (application.login_urls or application.device_flow_allowed or is_own):
        problems["impersonate_login_url"].append(_("An interactive application needs a login URL or the device flow."))


def check_dual_mode(application: TrustedApplication, problems: Problems) -> None:
    """Check that a dual-mode application has the URLs that its service half needs (spec 01, 1.4)."""
    if not application.system_user_allowed or not application.is_interactive:
        return
    uri = f"{application.application_uri}{SERVICE_SUFFIX}"
    if not application.login_urls:
        problems["impersonate_login_url"].append(
            _(
                "An application that signs people in and also runs as a service needs a login URL: without one its "
                "client id %(uri)s is refused. Add one, or register the service as an application of its own."
            )
            % {"uri": uri}
        )
    if not application.logout_urls:
        problems["impersonate_logout_url"].append(
            _(
                "An application that signs people in and also runs as a service needs a logout URL: without one its "
                "client id %(uri)s is refused. Add one, or register the service as an application of its own."
            )
            % {"uri": uri}
        )


def application_warnings(application: TrustedApplication, *, has_secret: bool) -> list[str]:
    """Settings of a valid application that cannot work, each with a fix; a sentence for each.

    `has_secret`: whether it has the secret that it authenticates by; for client_secret_jwt the encrypted one.

    Warnings, not errors: the missing half may follow, such as the secret or an enabled user.
    """
    result: list[str] = []
    takes_tokens = application.is_interactive or application.system_user_allowed or bool(application.exchangeable)
    if takes_tokens and application.client_authentication == SECRET_JWT and not has_secret:
        result.append(
            _(
                "The application has no secret that it could sign with, so it cannot get a token. Make a new secret on "
                "its page in the admin: for client_secret_jwt it is kept encrypted, not only as a hash."
            )
        )
    elif takes_tokens and application.needs_secret and not has_secret:
        result.append(
            _(
                "The application has no secret, so it cannot get a token. Make one on its page in the admin, or write "
                "the base64 form of its SHA-256 to ApplicationSecretHash."
            )
        )
    if application.login_urls and not application.is_interactive:
        result.append(
            _(
                "The application has login URLs, but may sign nobody in. Allow internal or community users, or remove "
                "the URLs."
            )
        )
    if not takes_tokens and application.access_tokens == "None":
        result.append(
            _("Nobody can use the application. Let people sign in, let it run as a service, or allow reference tokens.")
        )
    if application.system_user_allowed and application.system_user is not None and not application.system_user.active:
        result.append(_("The system user is not active, so the service is refused. Activate it, or choose another."))
    result += _scope_warnings(application)
    return result


def _scope_warnings(application: TrustedApplication) -> list[str]:
    result: list[str] = []
    scopes = application.scopes
    if application.system_user_allowed and scopes and not set(scopes) & set(SERVICE_TOKEN_SCOPES):
        result.append(_("A service without a scope of the API gets no token. Add read, update or exec to Scope."))
    if "offline_access" in scopes and (application.is_public or not application.is_interactive):
        result.append(
            _(
                "The scope offline_access gives nothing here: refresh tokens are for confidential applications that "
                "sign people in. Remove it from Scope."
            )
        )
    if PROVISIONING_SCOPE in scopes and not (application.system_user and application.system_user.is_admin):
        result.append(
            _("The scope scim gives nothing here: the system user of a service that provisions is an administrator.")
        )
    if "exec" in scopes and ADVANCED_BPM not in licence_terms().features:
        result.append(
            _("The scope exec gives nothing here: no script runs without the feature %(feature)s of the licence.")
            % {"feature": ADVANCED_BPM}
        )
    only_external = application.is_interactive and not application.impersonate_as_internal_user_allowed
    serves_nobody_else = not application.system_user_allowed and application.access_tokens == "None"
    if only_external and serves_nobody_else and set(scopes) & set(API_SCOPES):
        result.append(
            _("Community users get an id_token only, so scopes of the API give nothing here. Remove them from Scope.")
        )
    return result


def check_urls(application: TrustedApplication, problems: Problems) -> None:
    """Check each listed URL by itself."""
    for field in (
        "impersonate_login_url",
        "impersonate_logout_url",
        "front_channel_logout_url",
        "back_channel_logout_url",
    ):
        for url in (getattr(application, field) or "").split(","):
            if url.strip() and (problem := url_problem(url.strip())):
                problems[field].append(problem)


def url_problem(url: str) -> str | None:
    """The problem of a redirect URI (RFC 6749, 3.1.2; RFC 8252, 7), or None."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme.lower(), parts.hostname
    except ValueError:
        return _("%(url)s is not a URL.") % {"url": url}
    if _HOST_AND_PORT.match(url):
        return _("%(url)s has no scheme. Write https:// or, for a loopback address, http:// before it.") % {"url": url}
    if not scheme or any(character.isspace() or ord(character) < 32 for character in url):
        return _("%(url)s is not an absolute URL.") % {"url": url}
    if "#" in url:
        return _("%(url)s must not have a fragment.") % {"url": url}
    if scheme in _NEVER_A_REDIRECT:
        return _("%(url)s uses a scheme that cannot be redirected to.") % {"url": url}
    if scheme in {"http", "https"} and not host:
        return _("%(url)s is not an absolute URL.") % {"url": url}
    if scheme == "http" and host not in _LOOPBACK:
        return _("%(url)s must use https; http is for loopback addresses only.") % {"url": url}
    if "*" in url:
        return _("%(url)s must not have wildcards.") % {"url": url}
    return None


def check_scope(application: TrustedApplication, problems: Problems) -> None:
    """Check that the scopes exist."""
    unknown = [scope for scope in application.scopes if scope not in KNOWN_SCOPES and scope not in LEGACY_SCOPES]
    if unknown:
        problems["scope"].append(_("Unknown scopes: %(scopes)s.") % {"scopes": ", ".join(unknown)})


def check_secret(application: TrustedApplication, problems: Problems) -> None:
    """Check that secret hashes are base64 SHA-256, and that service applications are confidential."""
    for field in ("application_secret_hash", "new_secret_hash", "previous_secret_hash"):
        value = getattr(application, field)
        if value and not is_secret_hash(value):
            problems[field].append(_("Not the base64 form of a SHA-256 hash."))
    if application.is_public and application.system_user_allowed:
        problems["client_type"].append(_("A public application cannot keep the secret that a service needs."))


def check_keys(application: TrustedApplication, problems: Problems) -> None:
    """Check the keys: stored or at a URL, not both, and required for private_key_jwt (OIDC Registration, 2)."""
    stored, url = application.json_web_key_set, application.json_web_key_set_url
    if application.is_public and application.client_authentication != SECRET:
        problems["client_authentication"].append(_("A public application does not authenticate; choose Secret."))
    if stored and url:
        problems["json_web_key_set_url"].append(_("Enter the keys or the URL where they are, not both."))
    if application.client_authentication == PRIVATE_KEY_JWT and not (stored or url):
        problems["json_web_key_set"].append(_("private_key_jwt needs the application's public keys, or their URL."))
    if stored:
        try:
            key_set_parse(stored)
        except InvalidKey as exc:
            reason = translated(reason_of(exc), _)
            problems["json_web_key_set"].append(_("This is no JSON Web Key Set: %(reason)s.") % {"reason": reason})
    if url and (problem := url_problem(url)):
        problems["json_web_key_set_url"].append(problem)
    elif url and urlsplit(url).scheme not in {"http", "https"}:
        problems["json_web_key_set_url"].append(_("%(url)s is not an https URL.") % {"url": url})


def check_exchange(application: TrustedApplication, problems: Problems) -> None:
    """Check that only a confidential application exchanges tokens, and only those of other existing applications."""
    if not application.exchangeable:
        return
    if application.is_public:
        problems["token_exchange_applications"].append(_("A public application may not exchange tokens."))
    if application.application_uri in application.exchangeable:
        problems["token_exchange_applications"].append(_("An application does not exchange its own tokens."))
    named = set(application.exchangeable) - {application.application_uri}
    known = type(application).objects.filter(application_uri__in=named).values_list("application_uri", flat=True)
    if unknown := sorted(named - set(known)):
        problems["token_exchange_applications"].append(
            _("Unknown applications: %(names)s.") % {"names": ", ".join(unknown)}
        )


def check_max_sessions(application: TrustedApplication, problems: Problems) -> None:
    """Check that the limit of sessions is not 0, which would silently disable the application."""
    if application.max_sessions == 0:
        problems["max_sessions"].append(
            _("At least 1; leave it empty for no limit, or disable the application to keep it out.")
        )


def is_secret_hash(text: str) -> bool:
    """Whether the text has the form of `secret_hash`."""
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False
