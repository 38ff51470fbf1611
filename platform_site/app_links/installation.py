"""Registers and removes trusted applications for an administrator through the write engine, all or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from audit.actors import Actor
from domain.dataset.dataset import Dataset
from domain.entities.systems_extensions import Extension
from domain.entities.systems_security import system_user_create
from identity.application_removal import application_access_remove
from identity.applications import secret_generate
from identity.audit_actors import actor_of_call
from identity.context import CallContext
from identity.models import TrustedApplication, User
from identity.reference_tokens import MAX_LIFETIME, reference_token_issue
from identity.scopes import SERVICE_TOKEN_SCOPES

APPLICATIONS = "Systems.Security.TrustedApplications"
EXTENSIONS = "Systems.Core.Extensions"
_TOKEN_POLICIES = {
    "none": "None",
    "authenticatedUsers": "AuthenticatedUsers",
    "administratorsOnly": "AdministratorsOnly",
}


@dataclass(frozen=True, slots=True)
class Installed:
    """A registered application with the secrets that are shown once; "" if the link did not request them."""

    id: str
    secret: str = ""
    reference_token: str = ""


def attributes_of(link: dict[str, Any]) -> dict[str, Any]:
    """The attributes of the application in a valid link, without system user and secret.

    A service that also signs people in must have a logout URL (spec 01, 1.4): the redirect URI. A service's reference
    token needs a policy that allows it: the narrowest, if the link has none.
    """
    service, signs_in = link["serviceAccess"], link["impersonate"] != "none"
    policy = _TOKEN_POLICIES[link["referenceTokens"]]
    if service == "referenceToken" and policy == "None":
        policy = "AdministratorsOnly"
    return {
        "ApplicationUri": link["applicationUri"],
        "Name": link["applicationName"] or "(unnamed)",
        "ClientType": "Public" if link["clientType"] == "Public" else "Confidential",
        "ImpersonateAsInternalUserAllowed": signs_in,
        "ImpersonateAsCommunityUserAllowed": link["impersonate"] == "all",
        "ImpersonateLoginUrl": link["redirectUri"] or None,
        "ImpersonateLogoutUrl": link["redirectUri"] if signs_in and service != "none" else None,
        "SystemUserAllowed": service != "none",
        "ReferenceTokens": policy,
        "Scope": link["scope"] or None,
    }


def application_install(context: CallContext, link: dict[str, Any], *, system_user: str | None) -> Installed:
    """Register the application. system_user: guid of the service's user; None creates one without rights.

    Raises PlatformError if the write engine refuses, for example a taken ApplicationUri.
    """
    attributes = attributes_of(link)
    secret = ""
    if link["requestSecret"] == "true":
        secret, attributes["ApplicationSecretHash"] = secret_generate()
    with transaction.atomic():
        dataset = Dataset(context)
        if attributes["SystemUserAllowed"]:
            attributes["SystemUser"] = system_user or system_user_create(
                dataset, attributes["ApplicationUri"], attributes["Name"]
            )
        application = dataset.create(APPLICATIONS, attributes, by_client=True)
        dataset.commit()
        token = (
            _service_token(application.id, by=actor_of_call(context))
            if link["serviceAccess"] == "referenceToken"
            else ""
        )
    return Installed(application.id, secret, token)


def application_uninstall(context: CallContext, application: TrustedApplication) -> None:
    """Remove the application with its tokens, sessions and extensions. Raises PlatformError."""
    with transaction.atomic():
        application_access_remove(application)
        dataset = Dataset(context)
        removed = [(EXTENSIONS, id) for id in extensions_of(application).values_list("pk", flat=True)]
        removed.append((APPLICATIONS, application.pk))
        for name, id in removed:
            record = dataset.load(name, id)
            if record is not None:
                dataset.delete(record, by_client=True)
        dataset.commit()


def extensions_of(application: TrustedApplication) -> QuerySet[Extension]:
    """The extensions registered by the application, or by an administrator for it."""
    return Extension.objects.filter(extension_uri=application.application_uri).order_by("name")


def _service_token(application_id: str, *, by: Actor) -> str:
    application = TrustedApplication.objects.select_related("system_user").get(pk=application_id)
    scopes = [scope for scope in application.scopes if scope in SERVICE_TOKEN_SCOPES]
    token, _row = reference_token_issue(
        user=None, application=application, name="installation", scopes=scopes, lifetime=MAX_LIFETIME, by=by
    )
    return token


def system_users() -> list[User]:
    """The active system users, to choose one for a new service."""
    return list(User.objects.filter(user_type="SystemUserNoLogin", active=True).order_by("login"))
