"""Scheduled tasks of the instance itself."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import scheduled_pruning
from platform_site.recorded_requests import recorded_requests_prune

prune = scheduled_pruning(
    "platform: prune recorded requests",
    f"{__name__}.prune",
    Schedule.DAILY,
    {"recorded_requests": recorded_requests_prune},
)
