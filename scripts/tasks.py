"""Scheduled tasks of scripts (spec 04, 4.4)."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import scheduled_pruning
from scripts import history

prune = scheduled_pruning("scripts: prune history", f"{__name__}.prune", Schedule.DAILY, {"script_runs": history.prune})
