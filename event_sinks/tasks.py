"""Tasks of event sinks (django-q2). Idempotent: a lease excludes a second worker."""

from __future__ import annotations

from event_sinks.delivery import LEASE_SECONDS, RUN_SECONDS, sinks_deliver
from event_sinks.models import EventSink
from foundation.cluster import SharedNumber, every

#: Interval of reads of the change feed, and on an instance without active sinks.
POLL_SECONDS, IDLE_SECONDS = 1.0, 10.0
#: The current interval of this cluster.
_interval = SharedNumber()


@every(lambda: _interval.value or POLL_SECONDS, timeout_seconds=int(RUN_SECONDS + LEASE_SECONDS))
def deliver() -> None:
    """Deliver events to the sinks that are behind."""
    is_needed = EventSink.objects.filter(is_active=True).exists()
    _interval.value = POLL_SECONDS if is_needed else IDLE_SECONDS
    if is_needed:
        sinks_deliver()
