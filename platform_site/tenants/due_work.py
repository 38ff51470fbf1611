"""Computes when a stopped tenant must run again for its background work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Max, Min
from django_q.brokers import get_broker

from audit.models import AuditEntry
from domain.dataset.tables.models import ChangeFeedEntry
from domain.entities.systems_config import Job
from event_sinks.models import SinkState
from foundation.clock import database_now
from jobs.models import CRON, NIGHT, RUNNING, WAITING, JobRun, JobState
from jobs.planning import due_of
from jobs.schedules import next_cron, next_night
from webhooks.lease import is_first_of_entity
from webhooks.models import CircuitBreaker, TemplateHealth, WebHookDelivery

#: Maximum delay: sessions expire, and daily tasks delete old data.
MAX_DELAY = timedelta(hours=1)


def next_due() -> datetime:
    """The next time at which the worker is needed: now while it has work, at the latest after MAX_DELAY."""
    now = database_now()
    found = (*_tasks(now), *_deliveries(), *_jobs(now), *_sinks(), *_audit(now), now + MAX_DELAY)
    return max(now, min(found))


def _tasks(now: datetime) -> Iterator[datetime]:
    if get_broker().queue_size() or get_broker().lock_size():
        yield now


def _deliveries() -> Iterator[datetime]:
    """For each queue the time of its first attempt, or that at which its open circuit breaker permits a probe."""
    suspended = TemplateHealth.objects.filter(suspended_at__isnull=False).values("web_hook_id")
    pending = WebHookDelivery.objects.filter(is_first_of_entity(), state="Pending").exclude(web_hook_id__in=suspended)
    pauses = {
        (str(each.web_hook_id), each.destination): each.open_until
        for each in CircuitBreaker.objects.filter(open_until__isnull=False)
    }
    queues = pending.values_list("web_hook_id", "destination").annotate(Min("next_attempt_time_utc")).order_by()
    for web_hook_id, destination, due in queues:
        pause = pauses.get((str(web_hook_id), destination))
        yield max(due, pause) if pause is not None else due
    leased = WebHookDelivery.objects.filter(state="Delivering").aggregate(until=Min("lease_until_utc"))["until"]
    if leased is not None:
        yield leased


def _jobs(now: datetime) -> Iterator[datetime]:
    runs = JobRun.objects.filter(state__in=(WAITING, RUNNING))
    if runs.filter(state=RUNNING).exists():
        yield now
    if (waiting := runs.filter(state=WAITING).aggregate(due=Min("due"))["due"]) is not None:
        yield waiting
    jobs = list(Job._default_manager.filter(is_active=True).exclude(schedule="None"))
    states = JobState.objects.in_bulk([job.pk for job in jobs])
    scheduled = JobRun.objects.filter(job_id__in=[job.pk for job in jobs], trigger__in=(CRON, NIGHT))
    last = dict(scheduled.values_list("job_id").annotate(Max("due")).order_by())
    for job in jobs:
        if (due := due_of(job, states.get(job.pk), last.get(job.pk), now)) is not None:
            yield due
        elif job.schedule == "Night":
            yield next_night(now)
        elif job.cron_expression:
            yield next_cron(job.cron_expression, now)


def _sinks() -> Iterator[datetime]:
    newest = ChangeFeedEntry.objects.aggregate(newest=Max("id"))["newest"] or 0
    behind = SinkState.objects.filter(sink__is_active=True, last__lt=newest)
    yield from behind.values_list("next_attempt", flat=True)


def _audit(now: datetime) -> Iterator[datetime]:
    if AuditEntry.objects.filter(position=None).exists():
        yield now
