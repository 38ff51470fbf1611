"""Circuit breakers, one for each destination: a dead host costs an attempt now and then and holds up nobody else.

closed      no row, or fewer than breaker_failures failures in a row: deliveries flow
open        nothing is sent before open_until; deliveries wait and keep their retries
half-open   open_until has passed: one attempt goes out under a lease (probe_until); its success closes the circuit, its
            failure opens it for longer

What says that a host is in trouble: no answer at all, 429 and 502 to 504. Any other answer, a 500 too, comes from a
host that works; it counts against the template (webhooks.health) and not against its neighbours on the host.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from foundation.fields import utc_now
from webhooks.conf import webhook_settings
from webhooks.models import OPEN_STATES, DestinationBreaker, WebHookDelivery
from webhooks.statements import rows_delete

TROUBLE_STATUSES = frozenset({429, 502, 503, 504})


def breakers_open(now: datetime) -> dict[str, DestinationBreaker]:
    """Every circuit that is open or half-open, by destination."""
    return {row.destination: row for row in DestinationBreaker.objects.filter(open_until__isnull=False)}


def is_blocked(breaker: DestinationBreaker, now: datetime) -> bool:
    """Whether nothing may be sent now: it is open, or a probe is under way."""
    assert breaker.open_until is not None
    return breaker.open_until > now or (breaker.probe_until is not None and breaker.probe_until > now)


def probe_claim(destination: str, *, now: datetime, lease: timedelta) -> bool:
    """Take the one probe of a half-open circuit; False when another worker was first."""
    free = Q(probe_until__isnull=True) | Q(probe_until__lte=now)
    return bool(
        DestinationBreaker.objects.filter(free, destination=destination, open_until__lte=now).update(
            probe_until=now + lease
        )
    )


def probe_release(destination: str) -> None:
    """Hand back a probe that found nothing to send."""
    DestinationBreaker.objects.filter(destination=destination).update(probe_until=None)


def breakers_prune() -> int:
    """Remove circuits that are not open and that nothing waits for: nobody would ever close them; how many."""
    waiting = WebHookDelivery.objects.filter(state__in=OPEN_STATES, destination=OuterRef("destination"))
    idle = DestinationBreaker.objects.filter(Q(open_until=None) | Q(open_until__lte=utc_now()), ~Exists(waiting))
    return idle.delete()[0]


def destinations_succeeded(destinations: Collection[str]) -> None:
    """Close the circuits of hosts that answered."""
    if destinations:
        rows_delete(DestinationBreaker, "destination", destinations)


def destination_failed(destination: str, *, now: datetime) -> None:
    """Count a failure; open the circuit at the limit, and again, for longer, when a probe failed."""
    settings = webhook_settings()
    row, _ = DestinationBreaker.objects.get_or_create(destination=destination)
    DestinationBreaker.objects.filter(pk=destination).update(failures=F("failures") + 1)
    row.refresh_from_db()
    if row.open_until is not None and row.open_until > now:
        return  # an attempt that was under way when the circuit opened
    if row.open_until is None and row.failures < settings.breaker_failures:
        return
    periods = settings.breaker_open_seconds
    row.open_until = now + timedelta(seconds=periods[min(row.times_opened, len(periods) - 1)])
    row.times_opened += 1
    row.probe_until = None
    row.save(update_fields=["open_until", "times_opened", "probe_until"])
