"""Scheduled tasks of scripts (spec 04, 4.4)."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import pruners
from foundation.schedules import scheduled
from scripts import history

pruners.add("script_runs", history.prune)


@scheduled("scripts: prune history", Schedule.DAILY)
def prune() -> str:
    """Delete runs older than SCRIPT_HISTORY_DAYS; returns a sentence for the task's row."""
    return f"{history.prune()} runs deleted"
