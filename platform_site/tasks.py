"""Scheduled tasks of the instance itself."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import pruners
from foundation.schedules import scheduled
from platform_site.recorded_requests import recorded_requests_prune

pruners.add("recorded_requests", recorded_requests_prune)


@scheduled("platform: prune recorded requests", Schedule.DAILY)
def prune() -> str:
    """Delete recorded requests past their retention and bounds; returns a sentence for the task's row."""
    return f"{recorded_requests_prune()} recorded requests deleted"
