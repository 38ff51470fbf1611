"""The tasks of the webhooks (django-q2). Each is short and may run twice without harm."""

from __future__ import annotations

from webhooks.breaker import breakers_prune
from webhooks.pump import deliver_due, process_pump
from webhooks.services import deliveries_prune


def deliver(*delivery_ids: str) -> None:
    """Deliveries were committed: look at once. The ids are for people; the database knows what is due."""
    pump = process_pump()
    if pump is not None:
        pump.wake()
    else:
        deliver_due()


def sweep_due() -> None:
    """Look for what is due and was not announced. Each worker's pump does so by itself every few seconds."""
    deliver()


def prune() -> str:
    """Remove finished deliveries beyond their retention, and circuits of no use; a sentence for the task's record."""
    return f"{deliveries_prune()} deliveries and {breakers_prune()} circuits removed"
