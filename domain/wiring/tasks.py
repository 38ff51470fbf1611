"""Scheduled tasks of the domain."""

from __future__ import annotations

from django_q.models import Schedule

from domain.dataset.tables.change_feed import change_feed_prune
from domain.dataset.transactions.domain_transactions import transactions_expire
from foundation.pruning import pruners
from foundation.schedules import scheduled

pruners.add("change_feed", change_feed_prune)
pruners.add("transactions", transactions_expire)


@scheduled("domain: prune change feed and transactions", Schedule.HOURLY)
def prune() -> str:
    """Delete old entries of the change feed and expired Domain transactions; returns a sentence for the task's row."""
    return f"{change_feed_prune()} changes and {transactions_expire()} transactions removed"
