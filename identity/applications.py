"""Rules of trusted applications, for the admin and the API alike (spec 01, 1.3)."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import secrets
from collections import defaultdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.scopes import ALL_SCOPES, LEGACY_SCOPES

if TYPE_CHECKING:
    from identity.models import TrustedApplication

SERVICE_SUFFIX = "-service"
# The instance's own pages get their tokens without a redirect (identity.own_pages), so they have no login URL.
OWN_PAGES = frozenset({"DomainApiSite"})
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_NEVER_A_REDIRECT = {"javascript", "data", "vbscript", "file", "about", "blob"}

Problems = dict[str, list[str]]


def secret_hash(secret: str) -> str:
    """base64(SHA-256(secret)): fast on purpose, since secrets are machine-made with at least 256 bits."""
    return base64.b64encode(hashlib.sha256(secret.encode()).digest()).decode()


def secret_generate() -> tuple[str, str]:
    """(secret, hash) of a new 256-bit secret. Show the first once; store only the second."""
    secret = secrets.token_urlsafe(32)
    return secret, secret_hash(secret)


def secret_rotate(application: TrustedApplication, *, keep_previous: datetime.timedelta) -> str:
    """Give the application a new secret and return it, to be shown once.

    The one before stays good for `keep_previous`, so that clients can be changed without an interruption; 0 ends it.
    """
    from identity.changes import access_changed

    secret, digest = secret_generate()
    kept = bool(keep_previous) and bool(application.application_secret_hash)
    model = type(application)
    with transaction.atomic():
        model.objects.filter(pk=application.pk).update(
            previous_secret_hash=application.application_secret_hash if kept else None,
            previous_secret_expires_utc=timezone.now() + keep_previous if kept else None,
            application_secret_hash=digest,
            object_version=F("object_version") + 1,
        )
        access_changed(model)
    return secret


def secret_matches(application: TrustedApplication, secret: str) -> bool:
    """Whether the secret is the application's, or the one before within its time. Constant time."""
    given = secret_hash(secret).encode()
    current = hmac.compare_digest(given, (application.application_secret_hash or "").encode())
    until = application.previous_secret_expires_utc
    previous_valid = bool(application.previous_secret_hash) and until is not None and until > timezone.now()
    previous = hmac.compare_digest(given, (application.previous_secret_hash or "").encode())
    return bool(secret) and (current or (previous and previous_valid))


def check_application(application: TrustedApplication) -> None:
    """Every rule at once. Raises ValidationError with the problems by field."""
    problems: Problems = defaultdict(list)
    for check in (check_system_user, check_login_url, check_urls, check_scope, check_secret):
        check(application, problems)
    if problems:
        raise ValidationError(dict(problems))


def check_system_user(application: TrustedApplication, problems: Problems) -> None:
    """A service application acts as an internal or system user."""
    if not application.system_user_allowed:
        return
    user = application.system_user
    if user is None:
        problems["system_user"].append(_("A service application needs a system user."))
    elif user.user_type not in {"InternalUser", "SystemUserNoLogin"}:
        problems["system_user"].append(_("The system user must be an internal or a system user."))


def check_login_url(application: TrustedApplication, problems: Problems) -> None:
    """People who sign in must be sent back somewhere."""
    if application.is_interactive and not application.login_urls and application.application_uri not in OWN_PAGES:
        problems["impersonate_login_url"].append(_("An interactive application needs a login URL."))


def check_urls(application: TrustedApplication, problems: Problems) -> None:
    """Each listed URL by itself."""
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
    """What is wrong with a redirect URI (RFC 6749, 3.1.2; RFC 8252, 7), or None."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme.lower(), parts.hostname
    except ValueError:
        return _("%(url)s is not a URL.") % {"url": url}
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
    """Only scopes that exist."""
    unknown = [scope for scope in application.scopes if scope not in ALL_SCOPES and scope not in LEGACY_SCOPES]
    if unknown:
        problems["scope"].append(_("Unknown scopes: %(scopes)s.") % {"scopes": ", ".join(unknown)})


def check_secret(application: TrustedApplication, problems: Problems) -> None:
    """A secret hash is a base64 SHA-256, and only confidential applications run as services."""
    for field in ("application_secret_hash", "new_secret_hash", "previous_secret_hash"):
        value = getattr(application, field)
        if value and not is_secret_hash(value):
            problems[field].append(_("Not the base64 form of a SHA-256 hash."))
    if application.is_public and application.system_user_allowed:
        problems["client_type"].append(_("A public application cannot keep the secret that a service needs."))


def is_secret_hash(text: str) -> bool:
    """Whether the text is what `secret_hash` makes."""
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False
