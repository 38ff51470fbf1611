"""What became of attempts, written down: one attempt row each, and the delivery moved on (spec 06, 6.2 and 6.3)."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection, transaction

from foundation.fields import utc_now
from foundation.guids import new_guid
from webhooks.breaker import circuit_failed, circuits_close, probe_release
from webhooks.claim import Claim
from webhooks.health import administrators_notify, template_failed, templates_succeeded
from webhooks.models import WebHookAttempt, WebHookDelivery
from webhooks.reschedule import retry_delay
from webhooks.send import Outcome
from webhooks.statements import rows_insert, time_value

logger = logging.getLogger(__name__)

Finished = tuple[Claim, Outcome]


def deliveries_record(finished: Sequence[Finished], *, now: datetime | None = None) -> None:
    """Record outcomes in one database transaction.

    A claim whose lease has ended meanwhile belongs to somebody else: its attempt is kept, the delivery left alone.
    """
    moment = now or utc_now()
    with transaction.atomic():
        rows_insert([_attempt(claim, outcome) for claim, outcome in finished])
        with connection.cursor() as cursor:
            cursor.executemany(_MOVE_ON, [_moved(claim, outcome, moment) for claim, outcome in finished])
        suspended = _count(finished, moment)
    for claim, outcome in finished:
        if not outcome.delivered:
            logger.info(
                "webhook not delivered: %s",
                outcome.error,
                extra={"delivery": claim.delivery_id, "web_hook": claim.web_hook_code, "attempt": claim.attempt_no},
            )
    for code in suspended:
        logger.warning("webhook suspended after a long run of failures", extra={"web_hook": code})
        administrators_notify(code)


def _attempt(claim: Claim, outcome: Outcome) -> WebHookAttempt:
    return WebHookAttempt(
        id=new_guid(),
        delivery_id=claim.delivery_id,
        attempt_no=claim.attempt_no,
        start_time_utc=outcome.started_at,
        duration_ms=outcome.duration_ms,
        outcome=outcome.name,
        status_code=outcome.status,
        error=outcome.error,
        address=outcome.address,
        worker=worker_name(),
        request_head=outcome.request_head,
        response_head=outcome.response_head,
        response_body=outcome.response_body,
    )


def worker_name() -> str:
    """Which process sends: host and process id."""
    return _worker_name(os.getpid())


@lru_cache(maxsize=1)
def _worker_name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"[:128]


#: The token says that the claim still stands: another claim would have written another one.
_MOVE_ON = f"""
UPDATE {WebHookDelivery._meta.db_table} SET
    state = %s, finish_time_utc = %s, next_attempt_time_utc = %s, claim_token = NULL, lease_until_utc = NULL,
    attempt_count = attempt_count + 1, last_status_code = %s, last_error = %s,
    aggregate_last_update_time_utc = %s, object_version = object_version + 1
WHERE id = %s AND claim_token = %s AND state = 'Delivering'
"""  # noqa: S608 (names of our own)


def _moved(claim: Claim, outcome: Outcome, now: datetime) -> tuple[Any, ...]:
    """The parameters of `_MOVE_ON`."""
    state, finish, due = _next_step(claim, outcome, now)
    return (
        state,
        time_value(finish),
        time_value(due),
        outcome.status,
        outcome.error,
        time_value(now),
        claim.delivery_id,
        claim.token,
    )


def _next_step(claim: Claim, outcome: Outcome, now: datetime) -> tuple[str, datetime | None, datetime | None]:
    """(state, when it finished, when it is due again): delivered, due again, or dead."""
    if outcome.delivered:
        return "Delivered", now, None
    delay = None
    if not outcome.permanent:
        delay = retry_delay(claim.attempt_no, outcome.retry_after, max_retries=claim.max_retries)
    return ("Failed", now, None) if delay is None else ("Pending", None, now + delay)


def _count(finished: Sequence[Finished], now: datetime) -> list[str]:
    """Move breakers and the health of templates; codes of templates that became suspended."""
    circuits_close({claim.queue for claim, outcome in finished if outcome.status and not outcome.host_trouble})
    templates_succeeded({claim.web_hook_id for claim, outcome in finished if outcome.delivered})
    suspended = []
    for claim, outcome in finished:
        if outcome.host_trouble:
            circuit_failed(claim.queue, now=now, probe_until=claim.probe_until)
        elif outcome.status is None and claim.probe_until is not None:
            probe_release(claim.queue, claim.probe_until)  # refused by ourselves: it says nothing of the receiver
        if not outcome.delivered and not claim.is_test and template_failed(claim.web_hook_id, now=now):
            suspended.append(claim.web_hook_code)
    return suspended
