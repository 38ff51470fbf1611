"""Defaults that depend on the day."""

from __future__ import annotations

import datetime

from foundation.fields import utc_now

EXCHANGE_LOG_DAYS = 30


def current_date() -> datetime.date:
    """Today, UTC."""
    return utc_now().date()


def current_day() -> datetime.datetime:
    """The beginning of today, UTC: what dates default to where the model keeps a time with them."""
    return utc_now().replace(hour=0, minute=0, second=0, microsecond=0)


def in_thirty_days() -> datetime.date:
    """How long the log of an exchange is kept unless somebody says otherwise."""
    return current_date() + datetime.timedelta(days=EXCHANGE_LOG_DAYS)
