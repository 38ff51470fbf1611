"""Statistics of deliveries, for metrics, readiness and the admin's charts (spec 06, 6.3; spec 09, 9.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Avg, Count, Exists, Min, OuterRef, Q, QuerySet
from django.db.models.functions import TruncDate, TruncHour

from domain.entities.systems_bpm import UserBusinessRule, UserBusinessRuleAction
from domain.entities.systems_config import WebHook
from foundation.fields import utc_now
from webhooks.breaker import has_deliveries
from webhooks.heartbeat import ALIVE_SECONDS
from webhooks.lease import is_first_of_entity
from webhooks.models import (
    DELIVERY_STATE,
    CircuitBreaker,
    TemplateHealth,
    WebHookAttempt,
    WebHookDelivery,
    WorkerHeartbeat,
)

#: Lag of the oldest due delivery above which administrators are warned; a shorter lag is normal under load.
MAX_LAG_SECONDS = 120.0
#: Days that charts of a template show.
SHOWN_DAYS = 14


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    """Statistics of the outbox.

    by_state             state → deliveries
    lag_seconds          time for which the oldest sendable delivery has been due
    open_circuits        "CODE (host:port)" of templates with an open or half-open circuit
    suspended_templates  number of suspended templates
    """

    by_state: dict[str, int]
    lag_seconds: float
    open_circuits: tuple[str, ...]
    suspended_templates: int


def delivery_statistics(now: datetime | None = None) -> DeliveryStatistics:
    """The current statistics of the outbox."""
    moment = now or utc_now()
    counted = dict(WebHookDelivery.objects.values_list("state").annotate(Count("pk")).order_by())
    # A circuit without deliveries would never be closed.
    blocked = CircuitBreaker.objects.filter(
        Q(open_until__gt=moment) | has_deliveries("Pending"), open_until__isnull=False
    )
    # Deliveries that wait for a failing receiver, or for an earlier event's retry, do not count as lag.
    its_circuit = CircuitBreaker.objects.filter(
        web_hook_id=OuterRef("web_hook_id"), destination=OuterRef("destination"), open_until__isnull=False
    )
    oldest = WebHookDelivery.objects.filter(
        is_first_of_entity(), ~Exists(its_circuit), state="Pending", next_attempt_time_utc__lte=moment
    ).aggregate(oldest=Min("next_attempt_time_utc"))["oldest"]
    return DeliveryStatistics(
        by_state={state: counted.get(state, 0) for state in DELIVERY_STATE.members},
        lag_seconds=max(0.0, (moment - oldest).total_seconds()) if oldest else 0.0,
        open_circuits=_names(blocked),
        suspended_templates=TemplateHealth.objects.filter(suspended_at__isnull=False).count(),
    )


def _names(breakers: Iterable[CircuitBreaker]) -> tuple[str, ...]:
    queues = [breaker.queue for breaker in breakers]
    codes = dict(
        WebHook._default_manager.filter(pk__in={queue.web_hook_id for queue in queues}).values_list("pk", "code")
    )
    return tuple(sorted(f"{codes.get(queue.web_hook_id, '?')} ({queue.destination})" for queue in queues))


@dataclass(frozen=True, slots=True)
class DayOfTemplate:
    """A template's deliveries on a day (UTC). average_ms: None on days without an attempt."""

    day: date
    delivered: int
    failed: int
    average_ms: float | None


def template_days(web_hook_id: str) -> list[DayOfTemplate]:
    """The last SHOWN_DAYS, oldest first: deliveries that ended on each, and the average time of its attempts."""
    first = utc_now().date() - timedelta(days=SHOWN_DAYS - 1)
    since = datetime.combine(first, time(), tzinfo=UTC)
    ended = WebHookDelivery.objects.filter(web_hook_id=web_hook_id, finish_time_utc__gte=since)
    counts = {
        (row[0], row[1]): row[2]
        for row in ended.annotate(day=TruncDate("finish_time_utc", tzinfo=UTC))
        .values_list("day", "state")
        .annotate(Count("pk"))
        .order_by()
    }
    times = dict(
        WebHookAttempt.objects.filter(delivery__web_hook_id=web_hook_id, start_time_utc__gte=since)
        .annotate(day=TruncDate("start_time_utc", tzinfo=UTC))
        .values_list("day")
        .annotate(Avg("duration_ms"))
        .order_by()
    )
    return [
        DayOfTemplate(day, counts.get((day, "Delivered"), 0), counts.get((day, "Failed"), 0), times.get(day))
        for day in (first + timedelta(days=index) for index in range(SHOWN_DAYS))
    ]


@dataclass(frozen=True, slots=True)
class Ended:
    """The deliveries of all templates that ended in the hour from `begin` on."""

    begin: datetime
    delivered: int
    failed: int


def deliveries_by_hour() -> list[Ended]:
    """The last 24 hours, oldest first, the running one last."""
    last = utc_now().replace(minute=0, second=0, microsecond=0)
    begins = [last - timedelta(hours=index) for index in reversed(range(24))]
    counts = {
        (row[0], row[1]): row[2]
        for row in WebHookDelivery.objects.filter(finish_time_utc__gte=begins[0])
        .annotate(hour=TruncHour("finish_time_utc", tzinfo=UTC))
        .values_list("hour", "state")
        .annotate(Count("pk"))
        .order_by()
    }
    return [Ended(at, counts.get((at, "Delivered"), 0), counts.get((at, "Failed"), 0)) for at in begins]


def rules_of(web_hook: WebHook) -> QuerySet[UserBusinessRule]:
    """The rules whose actions send the template, which they name by its code or id."""
    actions = UserBusinessRuleAction._default_manager.filter(action_type="WEBHOOK").filter(
        Q(parameter_1_value__iexact=web_hook.code) | Q(parameter_1_value__icontains=str(web_hook.pk))
    )
    return UserBusinessRule._default_manager.filter(pk__in=actions.values("user_business_rule")).order_by("code")


def workers_alive(now: datetime | None = None) -> list[WorkerHeartbeat]:
    """Worker processes with a recent heartbeat."""
    since = (now or utc_now()) - timedelta(seconds=ALIVE_SECONDS)
    return list(WorkerHeartbeat.objects.filter(seen_at__gte=since).order_by("worker"))


def workers_problem(now: datetime | None = None) -> str | None:
    """The reason why webhooks and tasks may be late, as a sentence; None if there is none."""
    if not workers_alive(now):
        return f"No worker process has been heard of for {ALIVE_SECONDS:g} seconds."
    lag = delivery_statistics(now).lag_seconds
    return f"Webhooks are {lag:.0f} seconds late." if lag > MAX_LAG_SECONDS else None
