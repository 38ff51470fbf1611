"""Tasks of webhooks (django-q2). Each is idempotent."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.cluster import every
from foundation.pruning import scheduled_pruning
from foundation.schedules import scheduled
from webhooks.announcer import TASK_SECONDS, enqueue
from webhooks.breaker import breakers_prune
from webhooks.conf import webhook_settings
from webhooks.delivery_loop import DeliveryLoop, has_leased_since
from webhooks.heartbeat import heartbeat_send
from webhooks.services import deliveries_prune


@every(lambda: webhook_settings().sweep_seconds, timeout_seconds=TASK_SECONDS)
def deliver(*delivery_ids: str, since: float | None = None) -> None:
    """Send due deliveries: first attempts after a commit, retries, and those of dead workers.

    The ids are only informative: the database decides what is due. `since`: see webhooks.announcer.
    """
    heartbeat_send()
    if since is None or not has_leased_since(since):
        DeliveryLoop().run()


@scheduled("webhooks: sweep", Schedule.MINUTES, minutes=1)
def sweep_due() -> None:
    """As `deliver`, under a schedule that administrators see."""
    enqueue()


prune = scheduled_pruning(
    "webhooks: prune",
    f"{__name__}.prune",
    Schedule.DAILY,
    {"webhook_deliveries": deliveries_prune, "webhook_circuits": breakers_prune},
)
