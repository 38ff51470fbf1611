"""Scheduled tasks of the domain, and what those of the apps below ask it for."""

from __future__ import annotations

from django_q.models import Schedule

from audit.sources import entry_sources
from domain.dataset.commit.history_chain import ChangeSets
from domain.dataset.commit.retention import history_prune
from domain.dataset.tables.change_feed import change_feed_prune
from domain.dataset.transactions.domain_transactions import transactions_expire
from domain.dataset.transactions.stored_responses import responses_prune
from domain.wiring.failure_messages import messages_prune
from foundation.pruning import scheduled_pruning

entry_sources.add("change_sets", ChangeSets())
prune = scheduled_pruning(
    "domain: prune change feed and transactions and history",
    f"{__name__}.prune",
    Schedule.HOURLY,
    {
        "change_feed": change_feed_prune,
        "transactions": transactions_expire,
        "history": history_prune,
        "stored_responses": responses_prune,
        "information_messages": messages_prune,
    },
)
