"""Scheduled tasks of the domain, and what those of the apps below ask it for."""

from __future__ import annotations

from django_q.models import Schedule

from audit.sources import entry_sources
from domain.dataset.commit.history_chain import ChangeSets
from domain.dataset.commit.retention import history_prune
from domain.dataset.tables.change_feed import change_feed_prune
from domain.dataset.transactions.domain_transactions import transactions_expire
from domain.dataset.transactions.idempotent_answers import answers_prune
from foundation.pruning import pruners
from foundation.schedules import scheduled

entry_sources.add("change_sets", ChangeSets())
pruners.add("change_feed", change_feed_prune)
pruners.add("transactions", transactions_expire)
pruners.add("history", history_prune)
pruners.add("idempotent_answers", answers_prune)


@scheduled("domain: prune change feed and transactions and history", Schedule.HOURLY)
def prune() -> str:
    """Delete old entries of the change feed, expired Domain transactions, changes past their retention and answers to
    old idempotency keys; returns a sentence for the task's row.
    """
    entries, transactions, changes = change_feed_prune(), transactions_expire(), history_prune()
    return f"{entries} entries, {transactions} transactions, {changes} changes and {answers_prune()} answers removed"
