"""Circuit breakers, one for each template and destination: a failing receiver gets only occasional attempts.

closed      no row, or fewer than breaker_failures failures in a row: deliveries flow
open        nothing is sent before open_until; deliveries wait and keep their retries
half-open   open_until has passed: one attempt, the probe, goes out under a lease (probe_until); its success closes the
            circuit, its failure opens it for longer

The end of its lease identifies a probe. The failure of another attempt, which began before the circuit opened or whose
lease as a probe has ended, does not change an open or half-open circuit.

A failure is a missing response, 429 or 502 to 504. Any other status, also 500, comes from a working receiver and may
concern one entity only: the template's next deliveries are sent. webhooks.suspension counts it.

Templates of one destination share no circuit breaker: one path may fail while another path of the host works.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from foundation.fields import utc_now
from webhooks.conf import webhook_settings
from webhooks.models import OPEN_STATES, CircuitBreaker, Queue, WebHookDelivery
from webhooks.statements import rows_delete

RECEIVER_DOWN_STATUSES = frozenset({429, 502, 503, 504})
#: Concurrent probes of one destination, over all of its templates: a host that accepts no connection occupies each for
#: connect_timeout_seconds.
PROBES_PER_DESTINATION = 2


def breakers_open() -> dict[Queue, CircuitBreaker]:
    """Every circuit that is open or half-open."""
    return {row.queue: row for row in CircuitBreaker.objects.filter(open_until__isnull=False)}


def is_blocked(breaker: CircuitBreaker, now: datetime) -> bool:
    """Whether nothing may be sent now: the circuit is open, or a probe is in flight."""
    assert breaker.open_until is not None
    return breaker.open_until > now or (breaker.probe_until is not None and breaker.probe_until > now)


def probe_lease(queue: Queue, *, now: datetime, duration: timedelta) -> bool:
    """Lease the one probe of a half-open circuit; False if another worker has it.

    The caller holds the destination's lock. Also False while PROBES_PER_DESTINATION others probe the destination.
    """
    probing = CircuitBreaker.objects.filter(destination=queue.destination, probe_until__gt=now)
    if probing.count() >= PROBES_PER_DESTINATION:
        return False
    free = Q(probe_until__isnull=True) | Q(probe_until__lte=now)
    return bool(
        CircuitBreaker.objects.filter(free, **queue._asdict(), open_until__lte=now).update(probe_until=now + duration)
    )


def probe_release(queue: Queue, probe_until: datetime) -> None:
    """Release an unsent probe; a probe with another lease stays."""
    CircuitBreaker.objects.filter(**queue._asdict(), probe_until=probe_until).update(probe_until=None)


def has_deliveries(*states: str) -> Exists:
    """A condition of circuit breakers: there are deliveries in one of the states that use the breaker."""
    return Exists(
        WebHookDelivery.objects.filter(
            state__in=states, web_hook_id=OuterRef("web_hook_id"), destination=OuterRef("destination")
        )
    )


def breakers_prune() -> int:
    """Delete circuits that are not open and have no open deliveries; returns their number."""
    idle = CircuitBreaker.objects.filter(
        Q(open_until=None) | Q(open_until__lte=utc_now()), ~has_deliveries(*OPEN_STATES)
    )
    return idle.delete()[0]


def circuits_close(queues: Collection[Queue]) -> None:
    """Close the circuits of receivers that answered."""
    if queues:
        rows_delete(CircuitBreaker, Queue._fields, queues)


def circuit_failed(queue: Queue, *, now: datetime, probe_until: datetime | None = None) -> None:
    """Count a failure; open the circuit at the limit, and again, for longer, if the probe failed.

    probe_until is the lease of a probe; None for other attempts.
    """
    settings = webhook_settings()
    row, _ = CircuitBreaker.objects.get_or_create(**queue._asdict())
    CircuitBreaker.objects.filter(pk=row.pk).update(failures=F("failures") + 1)
    row.refresh_from_db()
    if row.open_until is not None and (probe_until is None or row.probe_until != probe_until):
        return  # the attempt began before the circuit opened
    if row.open_until is None and row.failures < settings.breaker_failures:
        return
    periods = settings.breaker_open_seconds
    row.open_until = now + timedelta(seconds=periods[min(row.times_opened, len(periods) - 1)])
    row.times_opened += 1
    row.probe_until = None
    row.save(update_fields=["open_until", "times_opened", "probe_until"])
