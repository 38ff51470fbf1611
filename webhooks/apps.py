"""Django app."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """The webhooks app."""

    name = "webhooks"

    def ready(self) -> None:
        """Register the action, the checks of templates, and the tasks."""
        from domain.dataset.commit.history import Mask, mask_in_history
        from domain.model import behaviours
        from rules.actions import action_types
        from rules.starting_points import starting_points
        from webhooks import actions, services, tasks, templates, validation  # noqa: F401  (tasks are scheduled)
        from webhooks.starting_points import WEBHOOK_ON_RELEASE
        from webhooks.url_secrets import masked_url, revealed_url

        action_types.register(actions.WebHookAction)
        starting_points.add("send-a-webhook-on-release", WEBHOOK_ON_RELEASE)
        behaviours.add_validation("Systems.Config.WebHooks", validation.check_web_hook)
        behaviours.add_validation("Systems.Config.WebHooks", templates.AUTHORS.note)
        mask_in_history("Systems.Config.WebHooks", "URL", Mask(masked_url, revealed_url))
        behaviours.add_validation("Systems.Config.WebHooks", templates.announce_change)
        behaviours.add_validation("Systems.Config.WebHooks", services.template_cleanup)
