"""Django app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class WebhooksConfig(AppConfig):
    """The webhooks app."""

    name = "webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add to the layers below: the action, the checks of templates; and to the workers: the pump."""
        from django_q.signals import post_spawn

        from domain.model import extensions
        from rules.actions import action_types
        from webhooks import actions, pump, schedules, services, templates, validation

        action_types.register(actions.WebHookAction)
        extensions.add_validation("Systems.Config.WebHooks", validation.check_web_hook)
        extensions.add_validation("Systems.Config.WebHooks", templates.announce_change)
        extensions.add_validation("Systems.Config.WebHooks", services.template_forget)
        post_spawn.connect(pump.start_in_worker, dispatch_uid="webhooks.pump")
        post_migrate.connect(schedules.ensure_schedules, dispatch_uid="webhooks.schedules")
