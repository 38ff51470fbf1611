"""Tasks of jobs (django-q2). Each is idempotent."""

from __future__ import annotations

from django.conf import settings
from django_q.models import Schedule

from foundation.clock import database_now
from foundation.cluster import every
from foundation.pruning import scheduled_pruning
from jobs.planning import runs_prune
from jobs.worker import MARGIN_SECONDS, RUN_SECONDS, Worker

#: Timeout of a task: the time in which further runs begin, and one run.
TASK_SECONDS = int(RUN_SECONDS + 2 * MARGIN_SECONDS)


@every(lambda: float(settings.JOBS_TICK_SECONDS), timeout_seconds=TASK_SECONDS)
def work() -> None:
    """Create the due runs, and execute those that no other worker executes."""
    Worker().work()


def prune_runs() -> int:
    """Delete runs past their retention; returns their number."""
    return runs_prune(database_now(), settings.JOB_HISTORY_DAYS)


prune = scheduled_pruning("jobs: prune runs", f"{__name__}.prune", Schedule.DAILY, {"job_runs": prune_runs})
