"""Who sends what: deliveries are claimed with a lease in the database (spec 06, 6.2, "Two workers never …").

A claim is one conditional update, Pending → Delivering with a token of its own; whoever updates the row has it. Only
the token's holder may record the outcome. A worker that dies leaves a lease that ends, and the row is due again.

A delivery may be claimed when
  it is due, and no earlier one of its entity and destination is open (order),
  its destination has fewer than destination_concurrency attempts under way,
  its destination's circuit is closed, or half-open with the probe to be had (one attempt),
  its template is not suspended.
Destinations are asked one by one, from another one each time, so that a long queue of one starves nobody.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q

from domain.entities.systems_config import WebHook
from foundation.fields import utc_now
from webhooks.breaker import breakers_open, is_blocked, probe_claim, probe_release
from webhooks.conf import webhook_settings
from webhooks.headers import Header
from webhooks.health import templates_suspended
from webhooks.models import OPEN_STATES, TEMPLATE_DELETED, WebHookDelivery

#: Every destination with something due. A walk over the index from one destination to the next: its cost follows the
#: number of destinations, not the length of their queues. Runs on SQLite and PostgreSQL alike.
_READY_DESTINATIONS = """
WITH RECURSIVE waiting(name) AS (
    SELECT MIN(destination) FROM {table} WHERE state = 'Pending'
    UNION ALL
    SELECT (SELECT MIN(d.destination) FROM {table} d WHERE d.state = 'Pending' AND d.destination > waiting.name)
    FROM waiting WHERE waiting.name IS NOT NULL
)
SELECT name FROM waiting WHERE name IS NOT NULL AND EXISTS (
    SELECT 1 FROM {table} d WHERE d.state = 'Pending' AND d.destination = waiting.name
    AND d.next_attempt_time_utc <= %s)
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A delivery that this process, and no other, may send now.

    attempt_no  counts from 1
    secrets     signing secrets, the current one first
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
    secrets: tuple[str, ...] = field(default=(), repr=False)


def deliveries_claim(limit: int, *, now: datetime | None = None) -> list[Claim]:
    """Claim up to `limit` deliveries that are due. Two reads when there is nothing to do."""
    moment = now or utc_now()
    rows: list[WebHookDelivery] = []
    for destination, is_probe in _ready(moment):
        rows.extend(_claim_destination(destination, limit - len(rows), moment, is_probe=is_probe))
        if len(rows) >= limit:
            break
    return _claims(rows, moment) if rows else []


def destinations_ready(now: datetime) -> list[str]:
    """Destinations with something due, by name, open circuits included."""
    with connection.cursor() as cursor:
        sql = _READY_DESTINATIONS.format(table=connection.ops.quote_name(WebHookDelivery._meta.db_table))
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(now)])
        return [row[0] for row in cursor.fetchall()]


def _ready(now: datetime) -> Iterator[tuple[str, bool]]:
    """(destination, whether only its probe may go), beginning anywhere."""
    names = destinations_ready(now)
    if not names:
        return
    breakers = breakers_open(now)
    start = secrets.randbelow(len(names))
    for name in (*names[start:], *names[:start]):
        breaker = breakers.get(name)
        if breaker is None:
            yield name, False
        elif not is_blocked(breaker, now):
            yield name, True


def _claim_destination(destination: str, limit: int, now: datetime, *, is_probe: bool) -> list[WebHookDelivery]:
    settings = webhook_settings()
    with transaction.atomic():
        _lock_destination(destination)
        busy = WebHookDelivery.objects.filter(state="Delivering", destination=destination).count()
        room = min(limit, settings.destination_concurrency - busy, 1 if is_probe else limit)
        due = list(_due(destination, now)[:room]) if room > 0 else []
        _suspend(due)
        lease = timedelta(seconds=max((row.timeout_seconds for row in due), default=0) + settings.lease_margin_seconds)
        if not due or (is_probe and not probe_claim(destination, now=now, lease=lease)):
            return []
        token = secrets.token_hex(16)
        claimed = WebHookDelivery.objects.filter(pk__in=[row.pk for row in due], state="Pending").update(
            state="Delivering",
            claim_token=token,
            claim_count=F("claim_count") + 1,
            lease_until_utc=now + lease,
        )
        if not claimed:
            if is_probe:
                probe_release(destination)
            return []
        return list(
            WebHookDelivery.objects.filter(destination=destination, state="Delivering", claim_token=token).order_by(
                "next_attempt_time_utc", "sequence"
            )
        )


def _lock_destination(destination: str) -> None:
    """Claims of one destination follow one another, so that its bound and its order hold.

    SQLite's BEGIN IMMEDIATE has seen to that already.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 6))", [f"webhooks:{destination}"])


def waits_for_an_earlier_one() -> Exists:
    """Whether an earlier event of the same entity and destination is open still."""
    return Exists(
        WebHookDelivery.objects.filter(
            Q(sequence__lt=OuterRef("sequence")) | Q(sequence=OuterRef("sequence"), id__lt=OuterRef("id")),
            destination=OuterRef("destination"),
            entity_id=OuterRef("entity_id"),
            state__in=OPEN_STATES,
        )
    )


def _due(destination: str, now: datetime) -> Sequence[WebHookDelivery]:
    due = (
        WebHookDelivery.objects.filter(
            ~waits_for_an_earlier_one(), state="Pending", destination=destination, next_attempt_time_utc__lte=now
        )
        .only("id", "web_hook_id", "timeout_seconds", "is_test")
        .order_by("next_attempt_time_utc", "sequence")
    )
    if connection.features.has_select_for_update_skip_locked:
        due = due.select_for_update(skip_locked=True, of=("self",))
    return due  # type: ignore[return-value]


def _suspend(due: list[WebHookDelivery]) -> None:
    """Take out what belongs to suspended templates: rows that came after the suspension."""
    suspended = templates_suspended({row.web_hook_id for row in due if not row.is_test})
    held = [row for row in due if row.web_hook_id in suspended and not row.is_test]
    if held:
        WebHookDelivery.objects.filter(pk__in=[row.pk for row in held]).update(
            state="Suspended", next_attempt_time_utc=None
        )


def _claims(rows: list[WebHookDelivery], now: datetime) -> list[Claim]:
    """What sending needs. Deliveries of a template that is gone are cancelled: nobody is left who wants them sent."""
    hooks = WebHook._default_manager.in_bulk({row.web_hook_id for row in rows})
    orphans = [row.pk for row in rows if row.web_hook_id not in hooks]
    if orphans:
        WebHookDelivery.objects.filter(pk__in=orphans, state="Delivering").update(
            state="Cancelled",
            finish_time_utc=now,
            next_attempt_time_utc=None,
            claim_token=None,
            last_error=TEMPLATE_DELETED,
        )
    return [_claim(row, hooks[row.web_hook_id], now) for row in rows if row.web_hook_id in hooks]


def _claim(row: WebHookDelivery, hook: WebHook, now: datetime) -> Claim:
    assert row.claim_token is not None
    return Claim(
        delivery_id=str(row.pk),
        token=row.claim_token,
        web_hook_id=row.web_hook_id,
        web_hook_code=row.web_hook_code,
        destination=row.destination,
        url=row.request_url,
        headers=tuple((name, value) for name, value in row.headers),
        body=row.request_body.encode(),
        timeout_seconds=row.timeout_seconds,
        max_retries=row.max_retries,
        attempt_no=row.attempt_count + 1,
        is_test=row.is_test,
        secrets=signing_secrets(hook, now),
    )


def signing_secrets(hook: WebHook, now: datetime) -> tuple[str, ...]:
    """The current secret, and during a rotation the previous one (spec 06, 6.2)."""
    found = [hook.signing_secret] if hook.signing_secret else []
    expires = hook.previous_secret_expires_utc
    if hook.previous_signing_secret and (expires is None or expires > now):
        found.append(hook.previous_signing_secret)
    return tuple(found)


def leases_expire(now: datetime | None = None) -> int:
    """Make claims whose worker died due again; how many.

    A delivery that keeps losing its worker may be what kills it, and becomes Failed instead.
    """
    moment = now or utc_now()
    lost = WebHookDelivery.objects.filter(state="Delivering", lease_until_utc__lt=moment)
    limit = webhook_settings().lost_claims_max
    deadly = lost.filter(claim_count__gt=F("attempt_count") + limit).update(
        state="Failed",
        claim_token=None,
        finish_time_utc=moment,
        next_attempt_time_utc=None,
        last_error=f"The worker ended {limit + 1} times without an outcome.",
    )
    return deadly + lost.update(state="Pending", claim_token=None, next_attempt_time_utc=moment)


def claims_release(claims: Sequence[Claim]) -> None:
    """Hand back what was claimed and not sent: the worker stops."""
    for token in {claim.token for claim in claims}:
        WebHookDelivery.objects.filter(
            state="Delivering",
            claim_token=token,
            pk__in=[claim.delivery_id for claim in claims if claim.token == token],
        ).update(state="Pending", claim_token=None, claim_count=F("claim_count") - 1)
