"""Tasks of webhooks (django-q2). Each is short and idempotent."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import pruners
from foundation.schedules import scheduled
from webhooks.breaker import breakers_prune
from webhooks.delivery_loop import deliver_due, process_delivery_loop
from webhooks.services import deliveries_prune

pruners.add("webhook_deliveries", deliveries_prune)
pruners.add("webhook_circuits", breakers_prune)


def deliver(*delivery_ids: str) -> None:
    """Wake the delivery loop for committed deliveries. The ids are for people; the database knows what is due."""
    loop = process_delivery_loop()
    if loop is not None:
        loop.wake()
    else:
        deliver_due()


@scheduled("webhooks: sweep", Schedule.MINUTES, minutes=1)
def sweep_due() -> None:
    """Deliver due deliveries that were not announced. Each worker's delivery loop also finds them."""
    deliver()


@scheduled("webhooks: prune", Schedule.DAILY)
def prune() -> str:
    """Delete finished deliveries beyond their retention, and unused circuits; returns a sentence."""
    return f"{deliveries_prune()} deliveries and {breakers_prune()} circuits removed"
