"""Admin site with sections by task instead of by Django app (spec 09, 9.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext, gettext_noop

from domain.model.registry import repositories
from identity.models import User
from identity.permissions import may_enter_admin

if TYPE_CHECKING:
    # django-unfold has no types.
    from django.contrib.admin import AdminSite
else:
    from unfold.sites import UnfoldAdminSite as AdminSite

#: Section title → namespaces of repositories (prefixes), in the order of the page.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (gettext_noop("Sales"), ("Crm.",)),
    (gettext_noop("Products and stock"), ("General.Products.", "Logistics.")),
    (gettext_noop("Contacts and companies"), ("General.Contacts.", "General.EnterpriseCompanies")),
    (gettext_noop("Finance"), ("General.Currencies.", "Finance.", "Regulatory.")),
    (gettext_noop("Service and activities"), ("Applications.", "General.Activities.")),
    (gettext_noop("Documents"), ("Systems.Documents.", "General.Documents.")),
    (gettext_noop("Automation"), ("Systems.Bpm.", "Systems.Config.WebHook", "Systems.Core.")),
    (gettext_noop("People and access"), ("Systems.Security.",)),
    (gettext_noop("Exchange and monitoring"), ("Systems.Exchange.", "Systems.Monitoring.", "Systems.Config.")),
)
OTHER = gettext_noop("Other")
#: Models without a repository: Django app → section.
_BY_APP = {
    "identity": gettext_noop("People and access"),
    "scripts": gettext_noop("Automation"),
    "rules": gettext_noop("Automation"),
    "webhooks": gettext_noop("Automation"),
    "django_q": gettext_noop("Exchange and monitoring"),
}


class PlatformAdminSite(AdminSite):
    """The admin site of an instance, in the look of django-unfold.

    PlatformAdminConfig.ready sets these, since this module is imported before the admin modules of the apps:

    cards       makes the cards of the home page, for administrators
    chooser     the view of a chooser's entries
    extensions  makes the links to applications on the home page (Systems.Core.Extensions)
    finder      the view of the search over pages and entities
    """

    cards: ClassVar[Callable[[HttpRequest], list[Any]]]
    extensions: ClassVar[Callable[[HttpRequest], list[Any]]]
    chooser: ClassVar[Callable[..., HttpResponseBase]]
    finder: ClassVar[Callable[..., HttpResponseBase]]

    index_template = "site/admin_home.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the user may enter the admin site at all (spec 01, 1.7)."""
        return isinstance(request.user, User) and may_enter_admin(request.user)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The home page: the state of the instance for administrators, then the sections."""
        shown = type(self).cards(request) if getattr(request.user, "is_admin", False) else []
        return super().index(
            request, {"cards": shown, "extensions": type(self).extensions(request), **(extra_context or {})}
        )

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """As unfold's; the sections are the navigation."""
        context: dict[str, Any] = super().each_context(request)
        context |= {"site_title": self.site_title, "site_header": self.site_header}
        context["sidebar_navigation"] = [_group(section, request.path) for section in context["available_apps"]]
        return context

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """The search over pages and entities (platform_site.admin_search)."""
        return type(self).finder(request)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:  # type: ignore[override]
        """The entries of choosers (platform_site.admin_choices)."""
        return type(self).chooser(request)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The sections with their aggregate roots by name; owned entities are on the pages of their owners."""
        result = super().get_app_list(request, app_label)
        if app_label is not None:
            return result
        sections: dict[str, list[Any]] = {title: [] for title, _ in SECTIONS}
        for app in result:
            for model in app["models"]:
                title = self._section(model["model"], app["app_label"])
                if title is not None:
                    sections.setdefault(title, []).append(model)
        return [
            {
                "name": gettext(title),
                "app_label": _anchor(title),
                "app_url": _on_home(title),
                "has_module_perms": True,
                "models": sorted(models, key=lambda model: str(model["name"])),
            }
            for title, models in sections.items()
            if models
        ]

    def app_index(self, request: HttpRequest, app_label: str, extra_context: Any = None) -> HttpResponseRedirect:  # type: ignore[override]
        """Redirects Django's page of an app to the home page, which lists by task."""
        return HttpResponseRedirect(reverse("admin:index"))

    def section_link(self, model: type[Any]) -> tuple[str, str] | None:
        """(title, URL on the home page) of the section in which the model's list is; None where it is in none."""
        title = self._section(model, model._meta.app_label)
        return None if title is None else (gettext(title), _on_home(title))

    @staticmethod
    def _section(model: type[Any], app_label: str) -> str | None:
        """The section's title; None for owned entities, which no section lists."""
        try:
            repository = repositories.for_model(model)
        except LookupError:
            return _BY_APP.get(app_label, OTHER)
        if repository.owner is not None:
            return None
        if repository.admin_options.section:
            return repository.admin_options.section
        for title, namespaces in SECTIONS:
            if repository.name.startswith(namespaces):
                return title
        return OTHER


def _group(section: dict[str, Any], path: str) -> dict[str, Any]:
    """A section of the sidebar; active is the item whose pages the path is one of, and its section."""
    items = [
        {"title": model["name"], "link": model["admin_url"], "active": path.startswith(model["admin_url"])}
        for model in section["models"]
        if model["admin_url"]
    ]
    return {"title": section["name"], "items": items, "active": any(item["active"] for item in items)}


def _on_home(title: str) -> str:
    return f"{reverse('admin:index')}#{_anchor(title)}"


def _anchor(title: str) -> str:
    """The section's fragment on the home page, the same in every language."""
    return slugify(title)
