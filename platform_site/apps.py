"""Django app."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PlatformSiteConfig(AppConfig):
    """The platform_site app."""

    name = "platform_site"
    default_auto_field = "django.db.models.BigAutoField"


class PlatformAdminConfig(AdminConfig):
    """Makes `admin.site` a platform_site.admin_site.PlatformAdminSite."""

    default_site = "platform_site.admin_site.PlatformAdminSite"

    def ready(self) -> None:
        """Load the admin modules of all apps, then set the parts of the site that import them."""
        super().ready()
        from django.contrib.admin import site

        from domain.admin.extension_menu import menu_entries
        from platform_site import admin_search, overview
        from platform_site.admin_choices import Choices
        from platform_site.admin_site import PlatformAdminSite

        PlatformAdminSite.cards = overview.cards
        PlatformAdminSite.extensions = menu_entries
        PlatformAdminSite.finder = admin_search.found_page
        PlatformAdminSite.chooser = Choices.as_view(admin_site=site)
