"""Django app."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PlatformSiteConfig(AppConfig):
    """The platform_site app."""

    name = "platform_site"
    default_auto_field = "django.db.models.BigAutoField"


class PlatformAdminConfig(AdminConfig):
    """Makes platform_site.admin_site.PlatformAdminSite the site that `admin.site` is."""

    default_site = "platform_site.admin_site.PlatformAdminSite"
