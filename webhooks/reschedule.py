"""Computes the time of the next attempt of a failed delivery (spec 06, 6.2). Pure: no clock, no database.

The schedule is the platform's, not the task broker's, so that retries survive restarts and the loss of the broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from domain.entities.systems_config import WebHook
from foundation.fields import utc_now
from webhooks.conf import webhook_settings

#: Maximum number of retries of a template (spec 06, 6.1).
MAX_RETRIES = 10


def retry_delay(
    attempts_made: int,
    retry_after: timedelta | None = None,
    *,
    max_retries: int = MAX_RETRIES,
    spread: Callable[[float, float], float] = random.uniform,
) -> timedelta | None:
    """Wait before the next attempt, or None if there is none.

    attempts_made counts from 1. retry_after (RFC 9110, 10.2.3) wins if longer, up to retry_after_max_seconds.
    """
    if attempts_made > max_retries:
        return None
    settings = webhook_settings()
    schedule = settings.retry_seconds
    seconds = schedule[min(attempts_made, len(schedule)) - 1]
    seconds *= spread(1 - settings.retry_jitter, 1 + settings.retry_jitter)
    if retry_after is not None:
        seconds = max(seconds, min(retry_after.total_seconds(), settings.retry_after_max_seconds))
    return timedelta(seconds=seconds)


def retries_of(web_hook: WebHook) -> int:
    """Number of retries of a template: its MaxRetries, else the default of its RetryLogic."""
    if web_hook.max_retries is not None:
        return min(web_hook.max_retries, MAX_RETRIES)
    return webhook_settings().default_retries if web_hook.retry_logic == "Retry" else 0


def parse_retry_after(value: str | None, *, now: datetime | None = None) -> timedelta | None:
    """Parse a Retry-After header: seconds or a date (RFC 9110, 10.2.3); None for other text."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text) if len(text) < 10 else 10**9)
    try:
        moment = parsedate_to_datetime(text)
        return max(timedelta(), moment - (now or utc_now()))
    except (ValueError, TypeError, OverflowError):
        return None
