"""Defaults that depend on the day."""

from __future__ import annotations

import datetime

from foundation.fields import utc_now

EXCHANGE_LOG_DAYS = 30


def current_date() -> datetime.date:
    return utc_now().date()


def current_day() -> datetime.datetime:
    """The beginning of today, UTC: the default of dates that the model stores with a time."""
    return utc_now().replace(hour=0, minute=0, second=0, microsecond=0)


def in_thirty_days() -> datetime.date:
    """The default retention of an exchange's log."""
    return current_date() + datetime.timedelta(days=EXCHANGE_LOG_DAYS)
