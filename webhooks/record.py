"""Records outcomes: one attempt row each, and the delivery's new state (spec 06, 6.2 and 6.3)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from foundation.fields import utc_now
from foundation.guids import new_guid
from foundation.per_process import process_name
from webhooks.breaker import circuit_failed, circuits_close, probe_release
from webhooks.lease import Lease
from webhooks.models import WebHookAttempt, WebHookDelivery
from webhooks.reschedule import retry_delay
from webhooks.send import Outcome
from webhooks.statements import rows_insert, time_value
from webhooks.suspension import administrators_notify, template_failed, templates_succeeded

logger = logging.getLogger(__name__)

Finished = tuple[Lease, Outcome]


def deliveries_record(finished: Sequence[Finished], *, now: datetime | None = None) -> None:
    """Record outcomes in one database transaction.

    If the lease has expired meanwhile, another worker may hold the delivery: then only the attempt is stored.
    """
    moment = now or utc_now()
    with transaction.atomic():
        rows_insert([_attempt(lease, outcome) for lease, outcome in finished])
        with connection.cursor() as cursor:
            cursor.executemany(_UPDATE_DELIVERY, [_parameters(lease, outcome, moment) for lease, outcome in finished])
        suspended = _count(finished, moment)
    for lease, outcome in finished:
        if not outcome.delivered:
            logger.info(
                "webhook not delivered: %s",
                outcome.error,
                extra={"delivery": lease.delivery_id, "web_hook": lease.web_hook_code, "attempt": lease.attempt_no},
            )
    for code in suspended:
        logger.warning("webhook suspended after a long run of failures", extra={"web_hook": code})
        administrators_notify(code)


def _attempt(lease: Lease, outcome: Outcome) -> WebHookAttempt:
    return WebHookAttempt(
        id=new_guid(),
        delivery_id=lease.delivery_id,
        attempt_no=lease.attempt_no,
        start_time_utc=outcome.started_at,
        duration_ms=outcome.duration_ms,
        outcome=outcome.name,
        status_code=outcome.status,
        error=outcome.error,
        address=outcome.address,
        worker=process_name(),
        request_head=outcome.request_head,
        response_head=outcome.response_head,
        response_body=outcome.response_body,
    )


#: The token proves that the lease is still held: each lease writes a new one.
_UPDATE_DELIVERY = f"""
UPDATE {WebHookDelivery._meta.db_table} SET
    state = %s, finish_time_utc = %s, next_attempt_time_utc = %s, lease_token = NULL, lease_until_utc = NULL,
    attempt_count = attempt_count + 1, last_status_code = %s, last_error = %s,
    aggregate_last_update_time_utc = %s, object_version = object_version + 1
WHERE id = %s AND lease_token = %s AND state = 'Delivering'
"""  # noqa: S608 (names of our own)


def _parameters(lease: Lease, outcome: Outcome, now: datetime) -> tuple[Any, ...]:
    """The parameters of `_UPDATE_DELIVERY`."""
    state, finish, due = _next_step(lease, outcome, now)
    return (
        state,
        time_value(finish),
        time_value(due),
        outcome.status,
        outcome.error,
        time_value(now),
        lease.delivery_id,
        lease.token,
    )


def _next_step(lease: Lease, outcome: Outcome, now: datetime) -> tuple[str, datetime | None, datetime | None]:
    """(state, finish time, next due time): delivered, due again, or failed for good."""
    if outcome.delivered:
        return "Delivered", now, None
    delay = None
    if not outcome.permanent:
        delay = retry_delay(lease.attempt_no, outcome.retry_after, max_retries=lease.max_retries)
    return ("Failed", now, None) if delay is None else ("Pending", None, now + delay)


def _count(finished: Sequence[Finished], now: datetime) -> list[str]:
    """Update breakers and the health of templates; returns codes of templates that became suspended."""
    circuits_close({lease.queue for lease, outcome in finished if outcome.status and not outcome.is_receiver_down})
    templates_succeeded({lease.web_hook_id for lease, outcome in finished if outcome.delivered})
    suspended = []
    for lease, outcome in finished:
        if outcome.is_receiver_down:
            circuit_failed(lease.queue, now=now, probe_until=lease.probe_until)
        elif outcome.status is None and lease.probe_until is not None:
            probe_release(lease.queue, lease.probe_until)  # never sent: says nothing about the receiver
        if not outcome.delivered and not lease.is_test and template_failed(lease.web_hook_id, now=now):
            suspended.append(lease.web_hook_code)
    return suspended
