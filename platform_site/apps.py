"""Django app."""

from functools import cache
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class PlatformSiteConfig(AppConfig):
    """The platform_site app."""

    name = "platform_site"

    def ready(self) -> None:
        from platform_site import job_types, tasks  # noqa: F401  (they register themselves)


class PlatformAdminConfig(SimpleAdminConfig):
    """Makes `admin.site` a platform_site.admin_site.PlatformAdminSite. Its pages are loaded with the URLs."""

    default_site = "platform_site.admin_site.PlatformAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


@cache
def load_admin_pages() -> None:
    """Load the admin modules of all apps, then set the parts of the site that import them.

    Called by platform_site.urls. Commands and workers show no pages; loading them takes a third of their start.
    """
    from django.contrib.admin import autodiscover, site

    from domain.admin.extension_menu import menu_entries
    from platform_site import admin_search, overview, tiles
    from platform_site.admin_choices import Choices
    from platform_site.admin_site import PlatformAdminSite
    from platform_site.configuration_page import CONFIGURATION
    from platform_site.demo_receiver import RECEIVED
    from platform_site.event_map import EVENT_MAP
    from platform_site.permission_matrix import MATRIX

    autodiscover()
    PlatformAdminSite.sections = overview.sections
    PlatformAdminSite.extensions = menu_entries
    PlatformAdminSite.finder = admin_search.found_page
    PlatformAdminSite.tile = tiles.tile_page
    PlatformAdminSite.pages = (MATRIX, EVENT_MAP, CONFIGURATION, RECEIVED)
    PlatformAdminSite.chooser = Choices.as_view(admin_site=site)


def _check_pages(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    load_admin_pages()
    found: list[checks.CheckMessage] = check_admin_app(app_configs, **options)
    return found
