"""What the forms of the admin say beside fields whose names do not tell what to write there.

Keyed by the repository that declares an attribute and the attribute's API name; subtypes have the hints of their bases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from domain.model.registry import repositories
from domain.model.repository import Repository

_DOCUMENTS, _PRODUCTS = "General.Documents.Documents", "General.Products.Products"
_APPLICATIONS, _WEBHOOKS = "Systems.Security.TrustedApplications", "Systems.Config.WebHooks"
_PROPERTIES, _CUSTOMERS = "Systems.Bpm.CustomProperties", "Crm.Sales.Customers"
_TYPES, _CALCULATED = "Systems.Documents.DocumentTypes", "Systems.Bpm.CalculatedAttributes"

HINTS: Mapping[tuple[str, str], Any] = {
    (_DOCUMENTS, "DocumentNo"): _("Empty: the next number of the document type."),
    (_DOCUMENTS, "DocumentType"): _("Empty: the only type of such documents, where there is one only."),
    (_PRODUCTS, "PartNumber"): _("Empty: the next number of the product group, where the group has one."),
    (_PRODUCTS, "ProductGroup"): _(
        "Empty: the default group. It gives number, unit and type, where they are left empty."
    ),
    ("General.Products.ProductGroups", "IsDefault"): _("Products that were given no group are of this one."),
    (_CUSTOMERS, "Party"): _("A company or a person, which you add first under Contacts and companies."),
    (_CUSTOMERS, "Number"): _("Empty: the next number."),
    (_APPLICATIONS, "ApplicationUri"): _("The client id by which the application introduces itself."),
    (_APPLICATIONS, "Scope"): _(
        "What it may ask for, with spaces between: read update exec (the API), openid profile email (who somebody is), "
        "offline_access (refresh tokens)."
    ),
    (_APPLICATIONS, "ImpersonateAsInternalUserAllowed"): _("Internal users may sign in to it."),
    (_APPLICATIONS, "ImpersonateAsCommunityUserAllowed"): _(
        "External users may sign in to it; it learns who they are and gets no access token."
    ),
    (_APPLICATIONS, "ImpersonateLoginUrl"): _("Where sign-ins return to: exact addresses with commas between them."),
    (_APPLICATIONS, "ImpersonateLogoutUrl"): _(
        "Where people may be sent after they signed out: exact addresses with commas between them."
    ),
    (_APPLICATIONS, "SystemUserAllowed"): _(
        "It works by itself (client credentials), with the rights of the system user. Where people sign in to it, too, "
        "it does so by its application URI with -service behind it, and needs a logout URL."
    ),
    (_WEBHOOKS, "RepositoryName"): _("Whose entities it tells about, for example Crm.Sales.SalesOrders."),
    (_WEBHOOKS, "URL"): _("For example https://shop.example/orders/{DocumentNo}. The host holds no placeholder."),
    (_WEBHOOKS, "Headers"): _("One a line, for example Content-Type: application/json"),
    (_WEBHOOKS, "Body"): _('Literal braces are doubled, for example {{"order": "{DocumentNo}"}}'),
    (_WEBHOOKS, "MaxRetries"): _("Empty: as many as the retry logic says. At most 10."),
    (_PROPERTIES, "Code"): _("The name in rules (@CODE), in scripts and, as CustomProperty_CODE, in the API."),
    (_PROPERTIES, "EntityName"): _("The repository whose entities have it, for example Crm.Sales.Customers."),
    (_TYPES, "EntityName"): _("The repository of its documents, for example Crm.Sales.SalesOrders."),
    ("Systems.Bpm.UserBusinessRules", "IsActive"): _("As long as it is not active, a rule does nothing."),
    ("Systems.Security.Users", "IsAdmin"): _("May do everything, and needs no role."),
    (_CALCULATED, "RepositoryName"): _("Whose entities have it, for example Crm.Sales.SalesOrders."),
}
#: Attributes that hold the name of a repository.
NAME_ONE = frozenset({"RepositoryName", "EntityName", "DocumentEntityName", "AllowedValuesEntityName"})


def hint(repository: Repository[Any], attribute: str) -> Any:
    """The hint at an attribute's field; "" where its name says enough."""
    for model in repository.model.__mro__:
        try:
            base = repositories.for_model(model)
        except LookupError:
            continue
        if found := HINTS.get((base.name, attribute)):
            return found
    return ""


def repository_names() -> list[str]:
    """What can be written where a repository is named."""
    return sorted(repository.name for repository in repositories)
