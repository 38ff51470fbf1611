"""The Django app that the models of custom entities belong to; it has no module of models and no migrations."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CustomEntitiesConfig(AppConfig):
    """The app of the models that domain.entities.custom_entities.building makes."""

    name = "domain.entities.custom_entities"
    label = "custom"
    verbose_name = _("Custom entities")
