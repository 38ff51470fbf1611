"""Django app."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PlatformSiteConfig(AppConfig):
    """The platform_site app."""

    name = "platform_site"

    def ready(self) -> None:
        from platform_site import job_types, tasks  # noqa: F401  (they register themselves)


class PlatformAdminConfig(AdminConfig):
    """Makes `admin.site` a platform_site.admin_site.PlatformAdminSite."""

    default_site = "platform_site.admin_site.PlatformAdminSite"

    def ready(self) -> None:
        """Load the admin modules of all apps, then set the parts of the site that import them."""
        super().ready()
        from django.contrib.admin import site

        from domain.admin.extension_menu import menu_entries
        from platform_site import admin_search, overview, tiles
        from platform_site.admin_choices import Choices
        from platform_site.admin_site import PlatformAdminSite
        from platform_site.configuration_page import CONFIGURATION
        from platform_site.demo_receiver import RECEIVED
        from platform_site.event_map import EVENT_MAP
        from platform_site.permission_matrix import MATRIX

        PlatformAdminSite.sections = overview.sections
        PlatformAdminSite.extensions = menu_entries
        PlatformAdminSite.finder = admin_search.found_page
        PlatformAdminSite.tile = tiles.tile_page
        PlatformAdminSite.pages = (MATRIX, EVENT_MAP, CONFIGURATION, RECEIVED)
        PlatformAdminSite.chooser = Choices.as_view(admin_site=site)
