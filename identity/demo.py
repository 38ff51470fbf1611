"""Demo users, roles, licence and applications (spec 09, 9.1). Demo mode only: every secret here is public.

Writes identity's own tables through the ORM at first start, the one exception to "rows are written by the dataset": a
dataset needs a user and an application. Idempotent: existing rows are not changed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction

from identity.applications import check_application, secret_hash
from identity.changes import access_changed
from identity.licences import ADVANCED_BPM
from identity.models import Licence, RateLimits, Role, RolePermission, RoleUser, TrustedApplication, User

_SECRET = "DEMO"  # noqa: S105
_CLIENT = "http://localhost:5080"
_LOGIN_URLS = ",".join(
    f"{_CLIENT}/{path}" for path in ("signin-callback", "signin-oidc", "callback", "silent-renew", "")
)
_LOGOUT_URLS = ",".join(f"{_CLIENT}/{path}" for path in ("signout-callback", "signout-callback-oidc", "signed-out", ""))

# Repository or namespace → operations of the role "Sales": letters of create, read, update, delete.
_SALES = {
    "Crm.Sales.*": "cru",
    "Crm.*": "ru",
    "Crm.Presales.*": "cru",
    "General.Products.*": "r",
    "General.Contacts.*": "ru",
    "General.Documents.*": "ru",
    "General.*": "r",
    "Systems.Core.*": "r",
    "Systems.Documents.*": "r",
    "Systems.Security.Users": "r",
}

_USERS: tuple[dict[str, Any], ...] = (
    {"login": "admin", "name": {"EN": "Administrator", "BG": "Администратор", "DE": "Administrator"}, "is_admin": True},
    {"login": "demo", "name": {"EN": "Demo User", "BG": "Демо потребител", "DE": "Demobenutzer"}},
    {
        "login": "customer",
        "name": {"EN": "Demo Customer", "BG": "Демо клиент", "DE": "Demokunde"},
        "user_type": "ExternalCommunityUser",
    },
    {
        "login": "service",
        "name": {"EN": "Demo Service", "BG": "Демо услуга", "DE": "Demodienst"},
        "user_type": "SystemUserNoLogin",
        "is_admin": True,
    },
)

_INTERACTIVE: dict[str, Any] = {
    "impersonate_as_internal_user_allowed": True,
    "impersonate_as_community_user_allowed": True,
    "impersonate_login_url": _LOGIN_URLS,
    "impersonate_logout_url": _LOGOUT_URLS,
}
_APPLICATIONS: tuple[dict[str, Any], ...] = (
    {
        "application_uri": "ServiceDemoClient",
        "name": "Service demo client",
        "system_user_allowed": True,
        "scope": "read update exec",
        "access_tokens": "AdministratorsOnly",
    },
    {
        "application_uri": "PublicDemoClient",
        "name": "Public demo client",
        "client_type": "Public",
        "scope": "openid profile email read update",
        "access_tokens": "AuthenticatedUsers",
        **_INTERACTIVE,
    },
    {
        "application_uri": "WebDemoClient",
        "name": "Web demo client",
        "scope": "openid profile email offline_access read update",
        **_INTERACTIVE,
    },
    {
        "application_uri": "DualDemoClient",
        "name": "Dual-mode demo client",
        "system_user_allowed": True,
        "scope": "openid profile email offline_access read update exec",
        **_INTERACTIVE,
    },
)
DEMO_LOGINS = tuple(fields["login"] for fields in _USERS)
DEMO_APPLICATIONS = tuple(fields["application_uri"] for fields in _APPLICATIONS)


@transaction.atomic
def seed_identity() -> None:
    """Create the missing demo users, roles, licence and applications."""
    users = {fields["login"]: _user(fields) for fields in _USERS}
    _sales_role(users["demo"])
    Licence.objects.get_or_create(pk=1, defaults={"sessions": settings.LICENSE_SESSIONS, "features": [ADVANCED_BPM]})
    RateLimits.objects.get_or_create(pk=1)
    for fields in _APPLICATIONS:
        _application(fields, users["service"])
    access_changed(User, Role, Licence, RateLimits, TrustedApplication)


def holds_demo_secret() -> bool:
    """Whether an application has the publicly known secret."""
    return TrustedApplication.objects.filter(application_secret_hash=secret_hash(_SECRET)).exists()


def _user(fields: dict[str, Any]) -> User:
    result = User.objects.filter(login=fields["login"]).first()
    if result is not None:
        return result
    system = fields.get("user_type") == "SystemUserNoLogin"
    email = None if system else f"{fields['login']}@example.com"
    password = None if system else fields["login"]
    return User.objects.create_user(**{"password": password, "email": email, "default_language": "en", **fields})


def _sales_role(member: User) -> None:
    role, created = Role.objects.get_or_create(name="Sales", defaults={"role_description": "Reads and updates sales."})
    if not created:
        return
    RoleUser.objects.create(user=member, role=role)
    for repository, letters in _SALES.items():
        RolePermission.objects.create(
            role=role,
            repository=repository,
            can_create="c" in letters,
            can_read="r" in letters,
            can_update="u" in letters,
            can_delete="d" in letters,
        )


def _application(fields: dict[str, Any], system_user: User) -> None:
    application = TrustedApplication(**fields)
    if TrustedApplication.objects.filter(application_uri=application.application_uri).exists():
        return
    if not application.is_public:
        application.application_secret_hash = secret_hash(_SECRET)
    if application.system_user_allowed:
        application.system_user = system_user
    check_application(application)
    application.save()
