"""Django app of the foundation."""

from django.apps import AppConfig


class FoundationConfig(AppConfig):
    """Owns the table of version stamps."""

    name = "foundation"
    default_auto_field = "django.db.models.BigAutoField"
