"""Admin site with sections by task instead of by Django app (spec 09, 9.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext, gettext_noop

from domain.model.registry import repositories
from identity.models import User
from identity.permissions import may_enter_admin
from platform_site.branding import brand_get

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
    (gettext_noop("Custom entities"), ("Custom.",)),
    (gettext_noop("Automation"), ("Systems.Bpm.", "Systems.Config.WebHook", "Systems.Config.Jobs", "Systems.Core.")),
    (gettext_noop("People and access"), ("Systems.Security.",)),
    (gettext_noop("Exchange and monitoring"), ("Systems.Exchange.", "Systems.Monitoring.", "Systems.Config.")),
)
OTHER = gettext_noop("Other")
#: Models without a repository: Django app → section.
_BY_APP = {
    "audit": gettext_noop("People and access"),
    "identity": gettext_noop("People and access"),
    "scripts": gettext_noop("Automation"),
    "rules": gettext_noop("Automation"),
    "webhooks": gettext_noop("Automation"),
    "jobs": gettext_noop("Automation"),
    "event_sinks": gettext_noop("Exchange and monitoring"),
    "django_q": gettext_noop("Exchange and monitoring"),
    "platform_site": gettext_noop("Exchange and monitoring"),
}


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page that is not the list of a model. Its URL is `admin/<name>/`, named `admin:<name>`.

    section  the section of the navigation, of SECTIONS
    view     called with the request and the context that every page has (title, navigation, breadcrumbs)
    may      whether the user may see the page
    """

    name: str
    title: Promise
    section: str
    view: Callable[[HttpRequest, dict[str, Any]], HttpResponse]
    may: Callable[[HttpRequest], bool]

    @property
    def url(self) -> str:
        """Its URL."""
        return reverse(f"admin:{self.name}")


class PlatformAdminSite(AdminSite):
    """The admin site of an instance, with the theme django-unfold.

    load_admin_pages sets these, since this module is imported before the admin modules of the apps:

    sections    returns the sections of cards of the home page
    chooser     the view of a chooser's entries
    extensions  returns the links to applications on the home page (Systems.Core.Extensions)
    finder      the view of the search over pages and entities
    tile        the view of one saved query as a card of the home page
    pages       the pages that are not lists of models
    """

    sections: ClassVar[Callable[[HttpRequest], list[Any]]]
    extensions: ClassVar[Callable[[HttpRequest], list[Any]]]
    chooser: ClassVar[Callable[..., HttpResponseBase]]
    finder: ClassVar[Callable[..., HttpResponseBase]]
    tile: ClassVar[Callable[..., HttpResponseBase]]
    pages: ClassVar[tuple[SitePage, ...]] = ()

    index_template = "site/admin_home.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the user may use the admin site at all (spec 01, 1.7)."""
        return isinstance(request.user, User) and may_enter_admin(request.user)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The home page: the cards that the user may see, then the pages by task."""
        cls = type(self)
        context = {"sections": cls.sections(request), "extensions": cls.extensions(request)}
        return super().index(request, {**context, **(extra_context or {})})

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """As Unfold's, with the sections as navigation."""
        context: dict[str, Any] = super().each_context(request)
        brand = brand_get()
        context |= {"site_title": brand.name, "site_header": brand.name, "site_icon": brand.logo}
        context["sidebar_navigation"] = [_group(section, request.path) for section in context["available_apps"]]
        return context

    def get_urls(self) -> list[URLResolver | URLPattern]:
        """Adds the URLs of the site's own pages."""
        own = [path(f"{page.name}/", self.admin_view(self._served), {"page": page}, page.name) for page in self.pages]
        tile = path("tiles/<uuid:query_id>/", self.admin_view(type(self).tile), name="tile")
        return [*own, tile, *super().get_urls()]

    def _served(self, request: HttpRequest, page: SitePage) -> HttpResponse:
        if not page.may(request):
            raise PermissionDenied
        links = [(gettext(page.section), _on_home(page.section))]
        return page.view(request, {**self.each_context(request), "title": str(page.title), "links": links})

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """The search over pages and entities (platform_site.admin_search)."""
        return type(self).finder(request)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:  # type: ignore[override]
        """The entries of choosers (platform_site.admin_choices)."""
        return type(self).chooser(request)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The sections with their aggregate roots by name; the pages of the owners show owned entities."""
        if app_label is not None:
            return super().get_app_list(request, app_label)
        kept = vars(request)
        if "sections" not in kept:  # called for the navigation and for the home page
            kept["sections"] = self._sections(request)
        found: list[Any] = kept["sections"]
        return found

    def _sections(self, request: HttpRequest) -> list[Any]:
        sections: dict[str, list[Any]] = {title: [] for title, _ in SECTIONS}
        for model, admin in self._registry.items():
            title = self._section(model, model._meta.app_label)
            if title is None or not admin.has_module_permission(request):
                continue
            if admin.has_view_or_change_permission(request):
                adds = admin.has_add_permission(request)
                entry = {
                    "name": capfirst(model._meta.verbose_name_plural),
                    "admin_url": _address(model, "changelist"),
                    "add_url": _address(model, "add") if adds else None,
                }
                sections.setdefault(title, []).append(entry)
        for page in self.pages:
            if page.may(request):
                entry = {"name": str(page.title), "admin_url": page.url, "add_url": None}
                sections.setdefault(page.section, []).append(entry)
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

    def pages_of_parts(self, request: HttpRequest) -> Iterator[tuple[str, str, str]]:
        """(name, name of the owner's list, URL) of the lists of owned entities that the user may read."""
        for model, admin in self._registry.items():
            if self._section(model, model._meta.app_label) is not None:
                continue
            if admin.has_module_permission(request) and admin.has_view_or_change_permission(request):
                owner = repositories.for_model(model).owner
                assert owner is not None
                name, owners = (each._meta.verbose_name_plural for each in (model, repositories[owner.target].model))
                yield capfirst(str(name)), capfirst(str(owners)), _address(model, "changelist")

    def app_index(self, request: HttpRequest, app_label: str, extra_context: Any = None) -> HttpResponseRedirect:  # type: ignore[override]
        """Redirects Django's page of an app to the home page, which lists by task."""
        return HttpResponseRedirect(reverse("admin:index"))

    def section_link(self, model: type[Any]) -> tuple[str, str] | None:
        """(title, URL on the home page) of the section with the model's list; None if no section has it."""
        title = self._section(model, model._meta.app_label)
        return None if title is None else (gettext(title), _on_home(title))

    @staticmethod
    def _section(model: type[Any], app_label: str) -> str | None:
        """The section's title; None for owned entities, which are in no section."""
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


@cache
def _address(model: type[Any], page: str) -> str:
    """The URL of a model's list or form. Cached per process, since every admin page has a hundred such links."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}")


def _group(section: dict[str, Any], path: str) -> dict[str, Any]:
    """A section of the sidebar. The item whose pages include the path is active, and so is its section."""
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
