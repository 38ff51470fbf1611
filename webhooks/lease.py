"""Leases of deliveries, in the database (spec 06, 6.2, "Two workers never …").

A lease is one conditional update, Pending → Delivering, with its own token: the worker that updates the row has the
lease. Only the holder of the token may record the outcome. When a worker dies its lease expires, and the row is due
again.

A delivery may be leased when
  it is due, and no earlier one of its entity and template is open (order),
  its destination has fewer than destination_concurrency attempts in flight, its template fewer than its share of them,
  the circuit of its template and destination is closed, or half-open with its probe free (one attempt),
  its template is not suspended.
A queue contains the deliveries of one template to one destination. Queues are processed one by one from a random start,
so that a long queue starves no other.

The share of a template is half of the destination's attempts that other templates do not use, rounded up: a receiver
path that does not respond leaves room for the other paths of its host.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.lookups import IsNull

from domain.entities.systems_config import WebHook
from foundation.encryption import Unreadable
from foundation.fields import utc_now
from webhooks.breaker import breakers_open, is_blocked, probe_lease, probe_release
from webhooks.conf import webhook_settings
from webhooks.headers import Header, opened_headers
from webhooks.models import TEMPLATE_DELETED, Queue, WebHookDelivery
from webhooks.suspension import templates_suspended

#: Every queue with something due. Walks the index `delivery_due` from one template to the next, and from one
#: destination of a template to the next: its cost depends on the number of queues, not their length. Scalar subqueries
#: with LIMIT, because PostgreSQL has no MIN of a uuid.
_READY_QUEUES = """
WITH RECURSIVE templates(id) AS (
    SELECT (SELECT web_hook_id FROM {table} WHERE state = 'Pending' ORDER BY web_hook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.web_hook_id FROM {table} d WHERE d.state = 'Pending' AND d.web_hook_id > templates.id
            ORDER BY d.web_hook_id LIMIT 1)
    FROM templates WHERE templates.id IS NOT NULL
), queues(id, destination) AS (
    SELECT templates.id, (SELECT MIN(d.destination) FROM {table} d
                          WHERE d.state = 'Pending' AND d.web_hook_id = templates.id)
    FROM templates WHERE templates.id IS NOT NULL
    UNION ALL
    SELECT queues.id, (SELECT MIN(d.destination) FROM {table} d
                       WHERE d.state = 'Pending' AND d.web_hook_id = queues.id AND d.destination > queues.destination)
    FROM queues WHERE queues.destination IS NOT NULL
)
SELECT id, destination FROM queues WHERE destination IS NOT NULL AND EXISTS (
    SELECT 1 FROM {table} d WHERE d.state = 'Pending' AND d.web_hook_id = queues.id
    AND d.destination = queues.destination AND d.next_attempt_time_utc <= %s)
"""

#: The first pending delivery of each entity of a template. Walks the index `delivery_order` from entity to entity.
_FIRSTS_OF_ENTITIES = """
WITH RECURSIVE entities(entity_id, number) AS (
    SELECT (SELECT entity_id FROM {table} WHERE web_hook_id = %s AND state = 'Pending' AND entity_id >= %s
            ORDER BY entity_id LIMIT 1), 1
    UNION ALL
    SELECT (SELECT d.entity_id FROM {table} d
            WHERE d.web_hook_id = %s AND d.state = 'Pending' AND d.entity_id > entities.entity_id
            ORDER BY d.entity_id LIMIT 1), number + 1
    FROM entities WHERE entities.entity_id IS NOT NULL AND number < %s
)
SELECT (SELECT d.id FROM {table} d
        WHERE d.web_hook_id = %s AND d.state = 'Pending' AND d.entity_id = entities.entity_id
        ORDER BY d.sequence, d.id LIMIT 1)
FROM entities WHERE entity_id IS NOT NULL
"""

#: Maximum deliveries, and then entities, that a lease reads.
_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery that only this process may send now.

    attempt_no  counts from 1
    secrets     signing secrets, the current one first
    unreadable  the reason why a header or signing secret cannot be decrypted, so that nothing may be sent
    probe_until end of its lease if it is the probe of a half-open circuit (webhooks.breaker)
    """

    delivery_id: str
    token: str
    web_hook_id: str
    web_hook_code: str
    destination: str
    url: str
    headers: tuple[Header, ...] = field(repr=False)
    body: bytes = field(repr=False)
    timeout_seconds: float
    max_retries: int
    attempt_no: int
    is_test: bool = False
    is_host_rendered: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    unreadable: str = ""
    probe_until: datetime | None = None

    @property
    def queue(self) -> Queue:
        """The queue whose circuit breaker the outcome changes."""
        return Queue(self.web_hook_id, self.destination)


def deliveries_lease(limit: int, *, now: datetime | None = None) -> list[Lease]:
    """Lease up to `limit` deliveries that are due. One read if nothing is due."""
    moment = now or utc_now()
    rows: list[WebHookDelivery] = []
    probed: set[Queue] = set()
    for queue, is_probe in _ready(moment):
        rows.extend(_lease_queue(queue, limit - len(rows), moment, is_probe=is_probe))
        if is_probe:
            probed.add(queue)
        if len(rows) >= limit:
            break
    return _leases(rows, probed, moment) if rows else []


def queues_ready(now: datetime) -> list[Queue]:
    """Queues with something due, open circuits included."""
    with connection.cursor() as cursor:
        sql = _READY_QUEUES.format(table=connection.ops.quote_name(WebHookDelivery._meta.db_table))
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(now)])
        return [Queue(str(row[0]), row[1]) for row in cursor.fetchall()]


def _ready(now: datetime) -> Iterator[tuple[Queue, bool]]:
    """(queue, whether only its probe may be sent), from a random start. Queues without room are left out."""
    queues = queues_ready(now)
    if not queues:
        return
    breakers = breakers_open()
    in_flight = _in_flight()
    start = secrets.randbelow(len(queues))
    for queue in (*queues[start:], *queues[:start]):
        breaker = breakers.get(queue)
        if (breaker is not None and is_blocked(breaker, now)) or _room(queue, in_flight) <= 0:
            continue
        yield queue, breaker is not None


def _in_flight(destination: str | None = None) -> Counter[Queue]:
    """Number of attempts in flight by queue, to one destination or to all."""
    result = WebHookDelivery.objects.filter(state="Delivering")
    if destination is not None:
        result = result.filter(destination=destination)
    counted = result.values_list("web_hook_id", "destination").annotate(Count("pk")).order_by()
    return Counter({Queue(str(web_hook_id), name): count for web_hook_id, name, count in counted})


def _room(queue: Queue, in_flight: Counter[Queue]) -> int:
    """Number of further concurrent attempts of the queue: see "share" in the module's docstring."""
    to_destination = sum(count for other, count in in_flight.items() if other.destination == queue.destination)
    left_by_others = webhook_settings().destination_concurrency - (to_destination - in_flight[queue])
    return (left_by_others + 1) // 2 - in_flight[queue]


def _lease_queue(queue: Queue, limit: int, now: datetime, *, is_probe: bool) -> list[WebHookDelivery]:
    settings = webhook_settings()
    with transaction.atomic():
        _lock_destination(queue.destination)
        room = min(limit, _room(queue, _in_flight(queue.destination)), 1 if is_probe else limit)
        due = _due(queue, room, now) if room > 0 else []
        _suspend(due)
        duration = timedelta(
            seconds=max((row.timeout_seconds for row in due), default=0) + settings.lease_margin_seconds
        )
        if not due or (is_probe and not probe_lease(queue, now=now, duration=duration)):
            return []
        token = secrets.token_hex(16)
        leased = WebHookDelivery.objects.filter(pk__in=[row.pk for row in due], state="Pending").update(
            state="Delivering",
            lease_token=token,
            lease_count=F("lease_count") + 1,
            lease_until_utc=now + duration,
        )
        if not leased:
            if is_probe:
                probe_release(queue, now + duration)
            return []
        return list(
            WebHookDelivery.objects.filter(state="Delivering", **queue._asdict(), lease_token=token).order_by(
                "next_attempt_time_utc", "sequence"
            )
        )


def _lock_destination(destination: str) -> None:
    """Serialize the leases of one destination, so that its limit and the order of its deliveries hold.

    On SQLite, BEGIN IMMEDIATE already does.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 6))", [f"webhooks:{destination}"])


def is_first_of_entity() -> Q:
    """A condition of deliveries: no earlier event of the same entity and template is open, and none is in flight.

    Two probes of the index `delivery_order` for each row. Subqueries with LIMIT, because of NOT EXISTS PostgreSQL makes
    a join that compares each delivery of a long backlog with each other one.
    """
    same_entity = WebHookDelivery.objects.filter(web_hook_id=OuterRef("web_hook_id"), entity_id=OuterRef("entity_id"))
    first = same_entity.filter(state="Pending").order_by("sequence", "id").values("id")[:1]
    in_flight = same_entity.filter(state="Delivering").order_by().values("id")[:1]
    return Q(pk=Subquery(first)) & Q(IsNull(Subquery(in_flight), True))


def _due(queue: Queue, limit: int, now: datetime) -> list[WebHookDelivery]:
    """Up to `limit` deliveries that may be sent now, the longest due first.

    Searches the longest due ones, then the first ones of entities, so that a few entities with a long backlog neither
    slow the query down nor block deliveries behind them.
    """
    due = WebHookDelivery.objects.filter(state="Pending", **queue._asdict(), next_attempt_time_utc__lte=now).order_by(
        "next_attempt_time_utc", "sequence"
    )
    leasable = due.filter(is_first_of_entity()).only("id", "web_hook_id", "timeout_seconds", "is_test")
    if connection.features.has_select_for_update_skip_locked:
        leasable = leasable.select_for_update(skip_locked=True, of=("self",))
    candidates = list(due.values_list("pk", flat=True)[:_CANDIDATES])
    rows = list(leasable.filter(pk__in=candidates)[:limit])
    if len(rows) < limit and len(candidates) == _CANDIDATES:
        known = {row.pk for row in rows}
        firsts = [pk for pk in _firsts_of_entities(queue.web_hook_id) if pk not in known]
        rows.extend(leasable.filter(pk__in=firsts)[: limit - len(rows)])
    return rows


def _firsts_of_entities(web_hook_id: str) -> list[str]:
    """Ids of the first pending deliveries of up to _CANDIDATES entities, from a random one."""
    pending = WebHookDelivery.objects.filter(web_hook_id=web_hook_id, state="Pending").order_by("entity_id")
    lowest = pending.values_list("entity_id", flat=True).first()
    highest = pending.values_list("entity_id", flat=True).last()
    if lowest is None or highest is None:
        return []
    start = UUID(int=UUID(lowest).int + secrets.randbelow(UUID(highest).int - UUID(lowest).int + 1))
    sql = _FIRSTS_OF_ENTITIES.format(table=connection.ops.quote_name(WebHookDelivery._meta.db_table))
    found: dict[str, None] = {}
    with connection.cursor() as cursor:
        for begin in (start, UUID(int=0)):
            if len(found) < _CANDIDATES:
                cursor.execute(sql, [web_hook_id, str(begin), web_hook_id, _CANDIDATES, web_hook_id])
                found.update((str(row[0]), None) for row in cursor.fetchall())
    return list(found)


def _suspend(due: list[WebHookDelivery]) -> None:
    """Suspend rows of suspended templates that were created after the suspension."""
    suspended = templates_suspended({row.web_hook_id for row in due if not row.is_test})
    held = [row for row in due if row.web_hook_id in suspended and not row.is_test]
    if held:
        WebHookDelivery.objects.filter(pk__in=[row.pk for row in held]).update(
            state="Suspended", next_attempt_time_utc=None
        )


def _leases(rows: list[WebHookDelivery], probed: Collection[Queue], now: datetime) -> list[Lease]:
    """Build the leases; a row of a queue in `probed` is a probe. Deliveries of a deleted template are cancelled."""
    hooks = WebHook._default_manager.in_bulk({row.web_hook_id for row in rows})
    orphans = [row.pk for row in rows if row.web_hook_id not in hooks]
    if orphans:
        WebHookDelivery.objects.filter(pk__in=orphans, state="Delivering").update(
            state="Cancelled",
            finish_time_utc=now,
            next_attempt_time_utc=None,
            lease_token=None,
            last_error=TEMPLATE_DELETED,
        )
    return [_lease(row, hooks[row.web_hook_id], probed, now) for row in rows if row.web_hook_id in hooks]


def _lease(row: WebHookDelivery, hook: WebHook, probed: Collection[Queue], now: datetime) -> Lease:
    assert row.lease_token is not None
    headers, unreadable = opened_headers(row.headers)
    signing = signing_secrets(hook, now)
    return Lease(
        delivery_id=str(row.pk),
        token=row.lease_token,
        web_hook_id=row.web_hook_id,
        web_hook_code=row.web_hook_code,
        destination=row.destination,
        url=row.request_url,
        headers=headers,
        body=row.request_body.encode(),
        timeout_seconds=row.timeout_seconds,
        max_retries=row.max_retries,
        attempt_no=row.attempt_count + 1,
        is_test=row.is_test,
        is_host_rendered=row.is_host_rendered,
        secrets=signing,
        unreadable=unreadable or next((each.reason for each in signing if isinstance(each, Unreadable)), ""),
        probe_until=row.lease_until_utc if Queue(row.web_hook_id, row.destination) in probed else None,
    )


def signing_secrets(hook: WebHook, now: datetime) -> tuple[str, ...]:
    """The current secret, and during a rotation the previous one (spec 06, 6.2)."""
    result = [hook.signing_secret] if hook.signing_secret else []
    expires = hook.previous_secret_expires_utc
    if hook.previous_signing_secret and (expires is None or expires > now):
        result.append(hook.previous_signing_secret)
    return tuple(result)


def leases_expire(now: datetime | None = None) -> int:
    """Make deliveries with an expired lease due again; returns their number.

    A delivery that repeatedly loses its worker may be the cause, and becomes Failed instead.
    """
    moment = now or utc_now()
    lost = WebHookDelivery.objects.filter(state="Delivering", lease_until_utc__lt=moment)
    limit = webhook_settings().lost_leases_max
    deadly = lost.filter(lease_count__gt=F("attempt_count") + limit).update(
        state="Failed",
        lease_token=None,
        finish_time_utc=moment,
        next_attempt_time_utc=None,
        last_error=f"The worker ended {limit + 1} times without an outcome.",
    )
    return deadly + lost.update(state="Pending", lease_token=None, next_attempt_time_utc=moment)


def leases_release(leases: Sequence[Lease]) -> None:
    """Release unsent leases and their probes when the worker stops."""
    for lease in leases:
        if lease.probe_until is not None:
            probe_release(lease.queue, lease.probe_until)
    for token in {lease.token for lease in leases}:
        WebHookDelivery.objects.filter(
            state="Delivering",
            lease_token=token,
            pk__in=[lease.delivery_id for lease in leases if lease.token == token],
        ).update(state="Pending", lease_token=None, lease_count=F("lease_count") - 1)
