"""Django app."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """The webhooks app."""

    name = "webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the action, the checks of templates, and the tasks."""
        from domain.model import behaviours
        from rules.actions import action_types
        from webhooks import actions, services, tasks, templates, validation  # noqa: F401  (tasks are scheduled)

        action_types.register(actions.WebHookAction)
        behaviours.add_validation("Systems.Config.WebHooks", validation.check_web_hook)
        behaviours.add_validation("Systems.Config.WebHooks", templates.AUTHORS.note)
        behaviours.add_validation("Systems.Config.WebHooks", templates.announce_change)
        behaviours.add_validation("Systems.Config.WebHooks", services.template_cleanup)
